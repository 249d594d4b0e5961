"""The paper's loop taken at its word: the yardstick for ``fit``.

Rankings are drawn one by one, document by document; the log-probability is added up position by
position; every sample gets a backward pass of its own. This is how the authors' published code
proceeds, written anew here from Algorithm 1. It is slow on purpose and nothing else uses it.
"""

import math

import torch
from torch import Tensor


def draw(scores: Tensor, generator: torch.Generator) -> list[int]:
    """One ranking: a softmax draw from what is left, until nothing is."""
    left = list(range(len(scores)))
    ranking = []
    while left:
        probabilities = torch.softmax(scores[left], -1)
        pick = int(torch.multinomial(probabilities, 1, generator=generator))
        ranking.append(left.pop(pick))
    return ranking


def log_probability(scores: Tensor, ranking: list[int]) -> Tensor:
    """Equation (5), one softmax after another."""
    total = torch.zeros((), dtype=scores.dtype)
    for position in range(len(ranking)):
        total = total + torch.log_softmax(scores[ranking[position:]], -1)[0]
    return total


def ndcg_of(ranking: list[int], relevance: Tensor) -> float:
    gain = [2.0 ** float(r) - 1.0 for r in relevance]
    best = sorted(gain, reverse=True)
    ideal = sum(g / math.log2(j + 2) for j, g in enumerate(best))
    return sum(gain[d] / math.log2(j + 2) for j, d in enumerate(ranking)) / ideal if ideal else 1.0


def exposure_of(ranking: list[int]) -> Tensor:
    exposure = torch.zeros(len(ranking))
    for position, document in enumerate(ranking):
        exposure[document] = 1.0 / math.log2(position + 2)
    return exposure


def pair_coefficients(paid: Tensor, merit: Tensor) -> Tensor:
    """D_ind's coefficient of grad log pi for each sample ``(S,)``, from the S x n x n tensor."""
    ratio = paid / merit.clamp(min=1e-12)
    pairs = (merit[:, None] >= merit[None, :]) & (merit[None, :] > 0)
    difference = ratio[:, :, None] - ratio[:, None, :]
    active = pairs & (difference.mean(0) > 0)
    return (difference * active).sum((-1, -2)) / pairs.sum().clamp(min=1)


def group_coefficients(paid: Tensor, merit: Tensor, groups: Tensor) -> Tensor:
    """D_group's coefficient of grad log pi for each sample ``(S,)``."""
    first, second = groups == 0, groups == 1
    if merit[first].sum() == 0 or merit[second].sum() == 0:
        return torch.zeros(len(paid))
    difference = paid[:, first].sum(-1) / merit[first].sum()
    difference = difference - paid[:, second].sum(-1) / merit[second].sum()
    sign = 1.0 if merit[first].mean() >= merit[second].mean() else -1.0
    return sign * difference * float(sign * difference.mean() > 0)


def step(
    scorer: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    query: tuple[Tensor, Tensor, Tensor | None],
    *,
    lam: float,
    samples: int,
    disparity: str,
    generator: torch.Generator,
) -> None:
    """One update of Algorithm 1 on one query."""
    features, relevance, groups = query
    scores = scorer(features)
    rankings = [draw(scores.detach(), generator) for _ in range(samples)]
    reward = torch.tensor([ndcg_of(r, relevance) for r in rankings])
    coefficient = reward - reward.mean()
    if lam > 0:
        paid = torch.stack([exposure_of(r) for r in rankings])
        if disparity == "individual":
            unfair = pair_coefficients(paid, relevance)
        else:
            assert groups is not None
            unfair = group_coefficients(paid, relevance, groups)
        coefficient = coefficient - lam * (unfair - unfair.mean())
    optimizer.zero_grad()
    for ranking, weight in zip(rankings, coefficient, strict=True):
        loss = -weight * log_probability(scores, ranking) / samples
        loss.backward(retain_graph=True)
    optimizer.step()
