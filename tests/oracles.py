"""Slow, independent ways to the same numbers: enumeration (n <= 7) and subsets (n <= 15).

Nothing here imports the package: an error there cannot hide itself here.
"""

import itertools
import math

import torch
from torch import Tensor


def all_rankings(n: int) -> list[tuple[int, ...]]:
    return list(itertools.permutations(range(n)))


def ranking_probability(scores: Tensor, ranking: tuple[int, ...]) -> Tensor:
    """Equation (5) of the paper, factor by factor."""
    weights = scores.exp()
    probability = scores.new_ones(())
    for i in range(len(ranking)):
        remaining = sum(weights[d] for d in ranking[i:])
        probability = probability * weights[ranking[i]] / remaining
    return probability


def expectation(scores: Tensor, value) -> Tensor:
    """Sum over all n! rankings of probability times ``value(ranking)``."""
    return sum(ranking_probability(scores, r) * value(r) for r in all_rankings(len(scores)))


def position_probs_by_subsets(scores: Tensor) -> Tensor:
    """P[i, k]: probability that document i stands at position k, by a programme over subsets.

    ``reach[A]`` is the probability that the first |A| documents are exactly the set A.
    """
    n = len(scores)
    weights = scores.softmax(-1)
    member = torch.tensor([[(a >> i) & 1 for i in range(n)] for a in range(2**n)], dtype=torch.bool)
    size = member.sum(-1)
    left = torch.where(member, 0.0, weights).sum(-1)
    reach = scores.new_zeros(2**n)
    reach[0] = 1.0
    columns = []
    for k in range(n):
        sets = torch.nonzero(size == k).squeeze(-1)
        # Next document i given the set A: its weight over the weight that is left.
        step = torch.where(member[sets], 0.0, weights / left[sets].unsqueeze(-1))
        flow = reach[sets].unsqueeze(-1) * step
        columns.append(flow.sum(0))
        into = (sets.unsqueeze(-1) | (1 << torch.arange(n))).flatten()
        keep = ~member[sets].flatten()
        reach = reach.index_add(0, into[keep], flow.flatten()[keep])
    return torch.stack(columns, -1)


def log2_bias(n: int) -> Tensor:
    return torch.tensor([1.0 / math.log2(1 + j) for j in range(1, n + 1)], dtype=torch.float64)


def dcg_of(ranking, relevance, discount) -> float:
    return sum(
        (2.0 ** float(relevance[d]) - 1) * float(v) for d, v in zip(ranking, discount, strict=True)
    )


def ideal_dcg(relevance, discount) -> float:
    best = sorted(range(len(relevance)), key=lambda d: -float(relevance[d]))
    return dcg_of(best, relevance, discount)


def individual_disparity_by_loop(exposure, merit) -> Tensor:
    """Equation (3), pair by pair."""
    n = len(merit)
    pairs = [(i, j) for i in range(n) for j in range(n) if merit[i] >= merit[j] > 0]
    if not pairs:
        return exposure.sum() * 0.0
    hinge = [torch.relu(exposure[i] / merit[i] - exposure[j] / merit[j]) for i, j in pairs]
    return torch.stack(hinge).sum() / len(pairs)


def group_disparity_by_loop(exposure, merit, groups) -> Tensor:
    """Equation (4) for two groups; a tie in merit counts both directions."""
    (a, b) = sorted(set(groups.tolist()))
    mean = {g: (exposure[groups == g].mean(), merit[groups == g].mean()) for g in (a, b)}
    total = exposure.sum() * 0.0
    for hi, lo in ((a, b), (b, a)):
        if mean[hi][1] >= mean[lo][1]:
            total = total + torch.relu(mean[hi][0] / mean[hi][1] - mean[lo][0] / mean[lo][1])
    return total
