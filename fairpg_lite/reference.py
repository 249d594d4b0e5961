r"""Algorithm 1 of the paper, literally: Fair-PG-Rank on one page of plain PyTorch.

This is what everything fast is checked against. It uses nothing else of the package: rankings are
drawn document by document, log-probabilities are added up position by position, and every ranking
gets a backward pass of its own. On the same rankings `fairpg_lite.fit` takes the same steps.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

#: Features ``(n, d)``, relevance ``(n,)``, and groups ``(n,)`` of 0 and 1 or None.
Query = tuple[Tensor, Tensor, Tensor | None]


def fair_pg_rank(
    scorer: nn.Module,
    optimizer: torch.optim.Optimizer,
    queries: Sequence[Query],
    *,
    disparity: str = "d_group",
    lam: float = 0.0,
    gamma: float = 0.0,
    samples: int = 10,
    epochs: int = 1,
    generator: torch.Generator | None = None,
) -> None:
    """Train ``scorer`` in place by Algorithm 1 of the paper's appendix.

    Args:
        scorer: From features ``(n, d)`` to scores ``(n,)``.
        optimizer: Over the scorer's parameters. The paper's update is `torch.optim.SGD`; its
            experiments use `torch.optim.Adam`.
        queries: Features, relevance and groups of each query.
        disparity: "d_ind" or "d_group".
        lam: Weight of the disparity.
        gamma: Weight of the entropy of Softmax(scores).
        samples: Rankings drawn per query, the paper's S.
        epochs: Passes over the queries, instead of "until convergence on the validation set".
        generator: Where the order of queries and the rankings are drawn from.

    >>> scorer = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Flatten(0))
    >>> optimizer = torch.optim.SGD(scorer.parameters(), lr=0.5)
    >>> query = (torch.eye(2), torch.tensor([1.0, 0.0]), None)
    >>> fair_pg_rank(scorer, optimizer, [query], epochs=100)
    >>> scores = scorer(query[0])
    >>> bool(scores[0] > scores[1])
    True
    """
    for _ in range(epochs):
        for q in torch.randperm(len(queries), generator=generator).tolist():
            features, relevance, groups = queries[q]
            scores = scorer(features)
            rankings = [draw_ranking(scores.detach(), generator) for _ in range(samples)]
            take_step(
                optimizer,
                scores,
                torch.tensor(rankings),
                relevance,
                groups,
                disparity=disparity,
                lam=lam,
                gamma=gamma,
            )


def take_step(
    optimizer: torch.optim.Optimizer,
    scores: Tensor,
    rankings: Tensor,
    relevance: Tensor,
    groups: Tensor | None = None,
    *,
    disparity: str = "d_group",
    lam: float = 0.0,
    gamma: float = 0.0,
) -> None:
    r"""One update on one query.

    .. math:: \theta \leftarrow \theta + \eta\, (\hat\nabla U - \lambda \hat\nabla D)

    Both gradients are means over the rankings of a number times :math:`\nabla \log \pi(r)`, so the
    numbers are added first.

    Args:
        optimizer: Over the parameters that the scores depend on.
        scores: ``(n,)``.
        rankings: ``(S, n)``, drawn from the policy with these scores.
        relevance: ``(n,)``, which is also the merit, as in the paper's experiments.
        groups: ``(n,)``, 0 or 1; "d_group" needs them.
        disparity: "d_ind" or "d_group".
        lam: Weight of the disparity.
        gamma: Weight of the entropy.
    """
    utility = torch.stack([ndcg(ranking, relevance) for ranking in rankings])
    reward = utility - utility.mean()  # the baseline b(q)
    if lam > 0:
        exposure = torch.stack([exposure_of(ranking, relevance) for ranking in rankings])
        if disparity == "d_ind":
            excess = d_ind_excess(exposure, relevance)
        elif disparity == "d_group" and groups is not None:
            excess = d_group_excess(exposure, relevance, groups)
        else:
            raise ValueError(
                f"disparity is {disparity!r}; choose 'd_ind', or 'd_group' and groups."
            )
        # The paper does not say whether the disparity has a baseline, too. Here it has.
        reward = reward - lam * (excess - excess.mean())
    optimizer.zero_grad()
    for ranking, weight in zip(rankings, reward, strict=True):
        loss = -weight * log_probability(scores, ranking) / len(rankings)
        loss.backward(retain_graph=True)
    if gamma > 0:
        p = torch.softmax(scores, -1)
        entropy = -(p * torch.log(p)).sum()
        (-gamma * entropy).backward()
    optimizer.step()


def draw_ranking(scores: Tensor, generator: torch.Generator | None = None) -> list[int]:
    """One ranking of ``scores (n,)``: a draw from the softmax of what is left, until nothing is."""
    left = list(range(len(scores)))
    ranking = []
    while left:
        p = torch.softmax(scores[left], -1)
        pick = int(torch.multinomial(p, 1, generator=generator))
        ranking.append(left.pop(pick))
    return ranking


def log_probability(scores: Tensor, ranking: Tensor) -> Tensor:
    """Equation (5) of the paper: log pi(r), one softmax for each position."""
    total = torch.zeros((), dtype=scores.dtype)
    for position in range(len(ranking)):
        total = total + torch.log_softmax(scores[ranking[position:]], -1)[0]
    return total


def ndcg(ranking: Tensor, relevance: Tensor) -> Tensor:
    """NDCG of one ranking; 1 for a query without a relevant document."""
    gain = 2.0**relevance - 1.0
    discount = position_bias(relevance)
    ideal = (gain.sort(descending=True).values * discount).sum()
    if ideal == 0:
        return torch.ones((), dtype=relevance.dtype)
    return (gain[ranking] * discount).sum() / ideal


def exposure_of(ranking: Tensor, relevance: Tensor) -> Tensor:
    """v_r(d), the attention that each document gets in one ranking, ``(n,)``."""
    exposure = torch.zeros_like(relevance)
    exposure[ranking] = position_bias(relevance)
    return exposure


def position_bias(relevance: Tensor) -> Tensor:
    """v_j = 1 / log2(1 + j) for the positions j = 1, ..., n."""
    j = torch.arange(1, len(relevance) + 1, dtype=relevance.dtype)
    return 1.0 / torch.log2(1.0 + j)


def d_ind_excess(exposure: Tensor, merit: Tensor) -> Tensor:
    r"""What stands before :math:`\nabla \log \pi(r)` in the gradient of D_ind.

    .. math:: \frac{1}{|H|} \sum_{(i,j) \in H}
              1\Bigl[\frac{v_\pi(d_i)}{M_i} > \frac{v_\pi(d_j)}{M_j}\Bigr]
              \Bigl(\frac{v_r(d_i)}{M_i} - \frac{v_r(d_j)}{M_j}\Bigr)

    over the pairs :math:`H = \{(i, j): M_i \ge M_j > 0\}`.

    Args:
        exposure: v_r of each ranking, ``(S, n)``; its mean is the estimate of v_pi.
        merit: ``(n,)``.

    Returns:
        One number for each ranking, ``(S,)``.
    """
    exposure = exposure[:, merit > 0]
    merit = merit[merit > 0]
    ratio = exposure / merit
    difference = ratio[:, :, None] - ratio[:, None, :]
    in_h = merit[:, None] >= merit[None, :]
    is_ahead = difference.mean(0) > 0
    return (difference * (in_h & is_ahead)).sum((1, 2)) / max(1, int(in_h.sum()))


def d_group_excess(exposure: Tensor, merit: Tensor, groups: Tensor) -> Tensor:
    r"""What stands before :math:`\nabla \log \pi(r)` in the gradient of D_group.

    .. math:: 1[\xi\, \mathrm{diff}(\pi) > 0]\; \xi\, \mathrm{diff}(r) , \qquad
              \mathrm{diff}(r) = \frac{\sum_{d \in G_0} v_r(d)}{\sum_{d \in G_0} M_d}
              - \frac{\sum_{d \in G_1} v_r(d)}{\sum_{d \in G_1} M_d} ,

    with :math:`\xi = 1` if the mean merit of :math:`G_0` is no less than that of :math:`G_1`, and
    -1 otherwise.

    Args:
        exposure: v_r of each ranking, ``(S, n)``; its mean is the estimate of v_pi.
        merit: ``(n,)``.
        groups: ``(n,)``, 0 or 1.

    Returns:
        One number for each ranking, ``(S,)``; zeros if a group has no merit.
    """
    first = groups == 0
    second = groups == 1
    if merit[first].sum() == 0 or merit[second].sum() == 0:
        return torch.zeros_like(exposure[:, 0])
    ratio_of_first = exposure[:, first].sum(1) / merit[first].sum()
    ratio_of_second = exposure[:, second].sum(1) / merit[second].sum()
    difference = ratio_of_first - ratio_of_second
    sign = 1.0 if merit[first].mean() >= merit[second].mean() else -1.0
    if sign * difference.mean() <= 0:
        return torch.zeros_like(difference)
    return sign * difference
