"""Queries to try gradients on, as chapter 8 draws them, and their true gradients."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairpg_lite import PlackettLuce, RankingDataset, position_bias
from fairpg_lite.compiled.kernels.arguments import Problem, Times
from fairpg_lite.compiled.problem import problem_of, times_of
from fairpg_lite.objective import Objective

#: The published shares of the grades 0 to 4 in Yahoo's data.
SHARES = torch.tensor([0.261, 0.358, 0.286, 0.077, 0.019], dtype=torch.float64)
#: The names of the objectives; lambda is 10 where there is a disparity.
OBJECTIVES = ("NDCG", "NDCG@10", "NDCG - 10 D_ind", "NDCG - 10 D_group")
#: At equal scores the exposures of all documents are equal, where a disparity has a kink, and no
#: gradient; so queries with a disparity are tried nearby instead.
NEARLY_EQUAL = 0.01
#: Up to so many documents the truth comes from a programme over all subsets.
SUBSETS = 15


def objective_named(name: str, n: int) -> Objective:
    """The objective of that name for queries of n documents, exact at the usual tolerance."""
    if name == "NDCG@10":
        bias = position_bias(n, k=10, dtype=torch.float64)
        return Objective(disparity=None, position_bias=bias, method="exact")
    if name == "NDCG":
        return Objective(disparity=None, method="exact")
    return Objective(lam=10.0, disparity=name.split()[-1].lower(), method="exact")


@dataclass
class Trial:
    """B queries of n documents, an objective, and scores."""

    objective: str
    n: int
    spread: float
    queries: int
    seed: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether the truth comes from subsets, and not from the race at its finest."""
        return self.n <= SUBSETS

    @cached_property
    def data(self) -> RankingDataset:
        """The queries: grades with Yahoo's shares, groups by a coin, no features."""
        g = torch.Generator().manual_seed(self.seed)
        n_documents = self.queries * self.n
        relevance = torch.multinomial(SHARES, n_documents, True, generator=g).double()
        groups = torch.randint(0, 2, (n_documents,), generator=g)
        offsets = torch.arange(0, n_documents + 1, self.n)
        features = torch.zeros(n_documents, 1, dtype=torch.float64)
        return RankingDataset(features, relevance, offsets, groups=groups)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Scores ``(B, n)`` that agree in part with the grades and favour the better group.

        Without the favour the one-sided group disparity would be zero in most queries.
        """
        g = torch.Generator().manual_seed(self.seed + 1)
        relevance = self.data.relevance.view(self.queries, self.n)
        groups = self.data.groups
        assert groups is not None
        in_second = groups.view(self.queries, self.n).double()
        deviation = relevance.std(-1, keepdim=True).clamp(min=0.1)
        standing = (relevance - relevance.mean(-1, keepdim=True)) / deviation
        better = torch.sign((in_second - 0.5) * (standing * in_second).sum(-1, keepdim=True))
        mixed = torch.randn(self.queries, self.n, generator=g, dtype=torch.float64)
        spread = self.spread
        if "D_" in self.objective:
            spread = max(spread, NEARLY_EQUAL)
        return (spread * (0.6 * standing + 0.8 * mixed + 0.5 * better)).numpy()

    @cached_property
    def bias(self) -> NDArray[np.float64]:
        """Position bias ``(n,)``."""
        return self.problem.position_bias

    @cached_property
    def problem(self) -> Problem:
        """The queries and the objective, as kernels take them."""
        return problem_of(self.data, objective_named(self.objective, self.n), torch.float64)

    def times(self, tolerance: float) -> Times:
        """Where a race is evaluated for a tolerance."""
        objective = objective_named(self.objective, self.n)
        objective = Objective(**{**vars(objective), "tolerance": tolerance})
        return times_of(np.array([self.n]), objective, torch.float64)

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """The true gradients ``(B, n)``, by autograd."""
        objective = objective_named(self.objective, self.n)
        method = subset_exposure if self.is_exact else finest_exposure
        objective = Objective(**{**vars(objective), "method": method})
        batch = next(iter(self.data.batches(self.queries)))
        assert batch.queries.tolist() == list(range(self.queries))
        scores = torch.tensor(self.scores, requires_grad=True)
        total = objective.total(objective.terms(scores, batch)).sum()
        return torch.autograd.grad(total, scores)[0].numpy()


def finest_exposure(
    policy: PlackettLuce, bias: Tensor | None, _: torch.Generator | None = None
) -> Tensor:
    """Exact exposure at the finest tolerance that float64 has."""
    return policy.exposure(bias, 1e-12)


def subset_exposure(
    policy: PlackettLuce, bias: Tensor | None, _: torch.Generator | None = None
) -> Tensor:
    """Exposure ``(B, n)`` by a programme over the 2^n sets of documents that may come first.

    It shares nothing with the race: the probability that the first k documents are the set A
    flows on to the sets with one document more.
    """
    scores = policy.scores
    n = scores.shape[-1]
    if bias is None:
        bias = position_bias(n, dtype=torch.float64)
    sets = torch.arange(2**n)
    is_member = (sets[:, None] >> torch.arange(n)) & 1 == 1
    size = is_member.sum(-1)
    weight = scores.softmax(-1)
    left = (weight[..., None, :] * ~is_member).sum(-1)
    reach = torch.zeros(*scores.shape[:-1], 2**n, dtype=scores.dtype)
    reach[..., 0] = 1.0
    exposure = torch.zeros_like(scores)
    for k in range(n):
        chosen = (size == k).nonzero().squeeze(-1)
        chance = weight[..., None, :] * ~is_member[chosen] / left[..., chosen, None]
        flow = reach[..., chosen, None] * chance
        exposure = exposure + bias[k] * flow.sum(-2)
        target = (chosen[:, None] | (1 << torch.arange(n))).flatten()
        reach = reach.index_add(-1, target, flow.flatten(-2))
    return exposure
