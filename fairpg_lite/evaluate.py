"""One evaluator for every method (chapters 9 to 13): same data in, same figures out, exact.

NDCG, average rank and the disparities of a stochastic policy are exact; only its ERR, which does
not follow from exposure, is a mean over sampled rankings.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fairpg_lite import metrics
from fairpg_lite.batch import Batch
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import Merit, group_disparity, individual_disparity, merit_of
from fairpg_lite.exact import TOLERANCE
from fairpg_lite.exposure import position_bias, ranking_exposure
from fairpg_lite.policy import PlackettLuce

Scorer = Callable[[Tensor], Tensor]
FIGURES = ("ndcg", "ndcg_at_k", "err", "average_rank", "d_ind", "d_group", "group_gap")


@dataclass(frozen=True)
class Evaluation:
    """Means over queries; ``per_query`` holds each figure ``(Q,)`` in the dataset's order.

    ``ndcg_at_k`` is NDCG at the cut-off ``k`` (None: the whole list). Queries where a figure has
    no answer carry NaN if that was asked for, and the means leave them out. ``group_gap`` is
    D_group without its direction (`group_disparity` with ``two_sided``).

    Chapters 7 to 13.
    """

    ndcg: float
    ndcg_at_k: float
    err: float
    average_rank: float
    d_ind: float
    d_group: float
    group_gap: float
    k: int | None
    per_query: dict[str, Tensor]

    def to_dict(self) -> dict[str, Any]:
        """The means, ready for JSON."""
        return {"k": self.k, **{name: getattr(self, name) for name in FIGURES}}

    def __repr__(self) -> str:
        figures = ", ".join(f"{name}={getattr(self, name):.4f}" for name in FIGURES)
        return f"Evaluation({figures}, k={self.k}, queries={len(self.per_query['ndcg'])})"


def evaluate(
    what: Scorer | Sequence[Tensor],
    dataset: RankingDataset,
    k: int | None = None,
    *,
    deterministic: bool = False,
    undefined: float = 1.0,
    undefined_disparity: float = 0.0,
    merit: str | Merit = "identity",
    bias: Tensor | None = None,
    max_grade: float | None = None,
    samples: int = 100,
    seed: int = 0,
    batch_size: int = 64,
    tolerance: float = TOLERANCE,
) -> Evaluation:
    """NDCG, NDCG@k, ERR, average rank, D_ind and D_group of a method on a dataset.

    ``what`` is a scorer (its stochastic policy, or with ``deterministic`` its most probable
    ranking), or one probability matrix ``(n, n)`` per query, row = document, column = position.
    ``undefined`` is the NDCG of a query with nothing relevant, ``undefined_disparity`` the D_group
    of a query that lacks a group or its merit; NaN leaves such queries out of the means. ERR of a
    policy is not linear in exposure: it is the mean over ``samples`` rankings drawn with ``seed``
    (of a matrix: NaN, since a matrix does not fix it). ``max_grade`` defaults to the larger of 1
    and the highest relevance in the dataset, rounded up.

    Chapters 7 to 13.
    """
    if max_grade is None:
        max_grade = max(1.0, float(dataset.relevance.max().ceil()))
    rules = _Rules(k, undefined, undefined_disparity, merit, bias, max_grade)
    rows: dict[str, list[Tensor]] = {name: [] for name in FIGURES}
    order: list[Tensor] = []
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        if callable(what):
            views = _scored(what, dataset, deterministic, samples, generator, batch_size, tolerance)
        else:
            views = _given(what, dataset)
        for batch, view in views:
            for name, values in rules.figures(batch, view).items():
                rows[name].append(values)
            order.append(batch.queries)
    position = torch.cat(order).argsort()
    per_query = {name: torch.cat(values)[position] for name, values in rows.items()}
    means = {name: float(per_query[name].double().nanmean()) for name in FIGURES}
    return Evaluation(**means, k=k, per_query=per_query)


class _Policy:
    """A Plackett-Luce policy as the evaluator sees it."""

    def __init__(self, policy: PlackettLuce, rankings: Tensor, tolerance: float):
        self.policy, self.rankings, self.tolerance = policy, rankings, tolerance

    def exposure(self, bias: Tensor) -> Tensor:
        return self.policy.exposure(bias, tolerance=self.tolerance)

    def rank(self) -> Tensor:
        """Expected position: one plus the chance of each other document to come first."""
        scores = self.policy.scores
        ahead = torch.sigmoid(scores.unsqueeze(-2) - scores.unsqueeze(-1))
        if self.policy.mask is not None:
            ahead = ahead * self.policy.mask.unsqueeze(-2)
        return 0.5 + ahead.sum(-1)


class _Ranking:
    """A single ranking per query ``(B, n)``."""

    def __init__(self, ranking: Tensor, mask: Tensor):
        self.rankings, self.mask = ranking.unsqueeze(0), mask

    def exposure(self, bias: Tensor) -> Tensor:
        return ranking_exposure(self.rankings[0], bias, self.mask)

    def rank(self) -> Tensor:
        return 1.0 + self.rankings[0].argsort(-1)


class _Matrix:
    """Probabilities ``(1, n, n)`` of documents at positions; no ranking can be read off them."""

    rankings = None

    def __init__(self, probs: Tensor):
        self.probs = probs

    def exposure(self, bias: Tensor) -> Tensor:
        return self.probs @ bias.to(self.probs)

    def rank(self) -> Tensor:
        return self.exposure(torch.arange(1, self.probs.shape[-1] + 1))


View = _Policy | _Ranking | _Matrix


def _scored(
    scorer: Scorer,
    dataset: RankingDataset,
    deterministic: bool,
    samples: int,
    generator: torch.Generator,
    batch_size: int,
    tolerance: float,
) -> Iterator[tuple[Batch, View]]:
    parameters = list(scorer.parameters()) if isinstance(scorer, nn.Module) else []
    dtype = parameters[0].dtype if parameters else dataset.features.dtype
    for batch in dataset.batches(batch_size, dtype=dtype, reuse=True):
        policy = PlackettLuce(scorer(batch.features).to(dtype), batch.mask)
        if deterministic:
            yield batch, _Ranking(policy.mode, batch.mask)
        else:
            yield batch, _Policy(policy, policy.sample((samples,), generator), tolerance)


def _given(matrices: Sequence[Tensor], dataset: RankingDataset) -> Iterator[tuple[Batch, View]]:
    if len(matrices) != len(dataset):
        raise ValueError(
            f"evaluate: {len(matrices)} probability matrices for {len(dataset)} queries; "
            "give one per query, or a scorer."
        )
    for batch in dataset.batches(1, dtype=torch.float64):
        matrix = torch.as_tensor(matrices[int(batch.queries)], dtype=torch.float64)
        n = batch.relevance.shape[-1]
        sums = torch.cat([matrix.sum(-1), matrix.sum(-2)]) if matrix.shape == (n, n) else None
        if sums is None or (sums - 1.0).abs().max() > 1e-6 or matrix.min() < -1e-9:
            raise ValueError(
                f"evaluate: the matrix of query {int(batch.queries)} has shape "
                f"{tuple(matrix.shape)} for {n} documents, or its rows and columns do not sum to "
                "one; give the probability of each document (row) at each position (column)."
            )
        yield batch, _Matrix(matrix.unsqueeze(0))


@dataclass(frozen=True)
class _Rules:
    """The choices that turn a view of a method into figures, one value per query ``(B,)``."""

    k: int | None
    undefined: float
    undefined_disparity: float
    merit: str | Merit
    bias: Tensor | None
    max_grade: float

    def figures(self, batch: Batch, view: View) -> dict[str, Tensor]:
        relevance, mask = batch.relevance, batch.mask
        n = relevance.shape[-1]
        discount = position_bias(n, dtype=relevance.dtype)
        discounted = view.exposure(discount)
        exposure = discounted if self.bias is None else view.exposure(self.bias[:n].to(relevance))
        merit = merit_of(relevance, self.merit)
        ndcg = self._ndcg(discounted, discount, batch)
        ndcg_at_k = ndcg
        if self.k is not None and self.k < n:
            discount = position_bias(n, k=self.k, dtype=relevance.dtype)
            ndcg_at_k = self._ndcg(view.exposure(discount), discount, batch)
        return {
            "ndcg": ndcg,
            "ndcg_at_k": ndcg_at_k,
            "err": self._err(batch, view.rankings),
            "average_rank": _average_rank(view.rank(), batch),
            "d_ind": individual_disparity(exposure, merit, mask),
            "d_group": self._group(exposure, merit, batch),
            "group_gap": self._group(exposure, merit, batch, two_sided=True),
        }

    def _ndcg(self, exposure: Tensor, discount: Tensor, batch: Batch) -> Tensor:
        return metrics.expected_ndcg(
            exposure,
            batch.relevance,
            position_bias=discount,
            mask=batch.mask,
            undefined=self.undefined,
        )

    def _group(
        self, exposure: Tensor, merit: Tensor, batch: Batch, two_sided: bool = False
    ) -> Tensor:
        if batch.groups is None:
            return torch.full_like(exposure[..., 0], float("nan"))
        return group_disparity(
            exposure,
            merit,
            batch.groups,
            batch.mask,
            undefined=self.undefined_disparity,
            two_sided=two_sided,
        )

    def _err(self, batch: Batch, rankings: Tensor | None) -> Tensor:
        if rankings is None:
            return torch.full_like(batch.relevance[..., 0], float("nan"))
        values = metrics.err(
            rankings, batch.relevance, mask=batch.mask, k=self.k, max_grade=self.max_grade
        )
        return values.mean(0)


def _average_rank(rank: Tensor, batch: Batch) -> Tensor:
    """Relevance-weighted mean of expected positions; NaN where nothing is relevant."""
    weight = torch.where(batch.mask, batch.relevance, 0.0)
    total = weight.sum(-1)
    return (weight * rank).sum(-1) / total.where(total > 0, float("nan"))
