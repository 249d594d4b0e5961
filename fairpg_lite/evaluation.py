"""One evaluator for every method (chapters 9 to 13): same data in, same measures out, exact.

Nothing is sampled unless asked for: utility and disparity follow from exposure, and ERR from the
same integral (`fairpg_lite.exact.exact_err`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fairpg_lite import _check, metrics
from fairpg_lite._memory import pieces
from fairpg_lite.batch import Batch
from fairpg_lite.disparity import group_disparity, individual_disparity
from fairpg_lite.exact import TOLERANCE, exact_err
from fairpg_lite.exposure import bias_like, position_bias, ranking_exposure
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.relevance import Gain, Merit, gains_of, merit_of
from fairpg_lite.scorers import Scorer, eval_mode, score

#: The measures in their order, and what people call them.
MEASURES = {
    "ndcg": "NDCG",
    "ndcg_at_k": "NDCG@k",
    "err": "ERR",
    "average_rank": "average rank",
    "d_ind": "D_ind",
    "d_group": "D_group",
    "group_gap": "two-sided gap",
}
NAN = float("nan")
# Queries judged together, and how often intervals draw the queries again.
_AT_ONCE, _RESAMPLES = 64, 2000


class Difference(NamedTuple):
    """First less second in the mean over the same queries, and its 95 % bootstrap interval.

    ``p_value`` is two-sided, by flipping the sign of each query's difference at random.
    """

    mean: float
    low: float
    high: float
    p_value: float
    queries: int


@dataclass(frozen=True)
class Evaluation:
    """Means over queries; ``per_query`` holds each measure ``(Q,)`` in the dataset's order.

    ``group_gap`` is D_group without its direction (`group_disparity` with ``two_sided``).
    ``defined`` counts the queries where a measure has an answer of its own.
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
    defined: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The means, ready for JSON."""
        return {"k": self.k, **{name: getattr(self, name) for name in MEASURES}}

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={getattr(self, name):.4f}" for name in MEASURES)
        return f"Evaluation({means}, k={self.k}, queries={len(self.per_query['ndcg'])})"

    def interval(self, measure: str) -> tuple[float, float]:
        """95 % bootstrap interval of a mean over the queries that have an answer."""
        values = self.per_query[measure].double()
        return _bootstrap(values[~values.isnan()])

    def compare(self, other: "Evaluation", measure: str) -> Difference:
        """This evaluation less another of the same queries, query by query."""
        first, second = self.per_query[measure], other.per_query[measure]
        if first.shape != second.shape:
            raise ValueError(f"compare: {len(first)} queries against {len(second)}; take the same.")
        paired = first.double() - second.double()
        paired = paired[~paired.isnan()]
        p_value = _sign_flips(paired)
        return Difference(float(paired.mean()), *_bootstrap(paired), p_value, len(paired))


def _uniform(n: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return (torch.rand(n, generator=generator, dtype=torch.float64) for _ in range(_RESAMPLES))


def _bootstrap(values: Tensor) -> tuple[float, float]:
    n = len(values)
    if n == 0:
        return NAN, NAN
    means = torch.stack([values[(u * n).long()].mean() for u in _uniform(n)])
    low, high = means.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return low, high


def _sign_flips(paired: Tensor) -> float:
    """Share of sign patterns whose sum is as far from 0 as the one that was seen, itself one."""
    sums = torch.stack([(u - 0.5).sign() @ paired for u in _uniform(len(paired))])
    as_far = sums.abs() >= paired.sum().abs() * (1.0 - 1e-12)
    return (1 + int(as_far.sum())) / (1 + _RESAMPLES) if len(paired) else NAN


def evaluate(
    what: Scorer | Tensor | Sequence[Tensor],
    dataset: Any,
    k: int | None = None,
    *,
    deterministic: bool = False,
    undefined: float = 1.0,
    undefined_disparity: float = 0.0,
    merit: str | Merit = "identity",
    gain: str | Gain = "exponential",
    max_grade: float | None = None,
    samples: int | None = None,
    tolerance: float = TOLERANCE,
) -> Evaluation:
    """NDCG, NDCG@k, ERR, average rank, D_ind, D_group and two-sided gap (chapters 7 to 13).

    Args:
        what: A scorer (its stochastic policy), scores ``(N,)`` of all documents from anywhere, or
            one probability matrix ``(n, n)`` per query, row = document, column = position, which
            fixes no ERR.
        dataset: The queries, a `RankingDataset` or anything with its batches.
        k: Cut-off of ``ndcg_at_k`` and of ERR; None is the whole list.
        deterministic: Judge the most probable ranking instead of the stochastic policy.
        undefined: NDCG of a query with nothing relevant; NaN leaves such queries out of the mean.
        undefined_disparity: D_group of a query that lacks a group or its merit; NaN as above.
        merit: Of a relevance, by name or a function, for the disparities.
        gain: The same for NDCG.
        max_grade: Top of the scale, for ERR; by default the highest relevance, 1 at least.
        samples: None computes the policy's ERR exactly; a number averages it over so many rankings.
        tolerance: Accuracy of what is integrated.
    """
    if len(dataset) == 0:
        raise ValueError("evaluate: the dataset holds no query.")
    if max_grade is None:
        max_grade = max(1.0, float(dataset.relevance.max().ceil()))
    generator = torch.Generator(dataset.features.device).manual_seed(0)
    judge = _Judge(k, merit, gain, max_grade, deterministic, samples, tolerance, generator)
    if getattr(what, "ndim", 0) == 1:  # scores: the one feature of their documents
        scores = torch.as_tensor(what, device=dataset.features.device)
        _check.same_shape("evaluate", "scores", scores, "relevance", dataset.relevance.shape)
        dataset = dataset.replace(features=scores.double().unsqueeze(-1))
        what = partial(torch.squeeze, dim=-1)
    matrices = not callable(what)
    first = what.parameters() if isinstance(what, nn.Module) else iter(())
    dtype = torch.float64 if matrices else next(first, dataset.features).dtype
    single = torch.promote_types(dtype, torch.float32)  # at least: half precision is too coarse
    shown: Any = _given if matrices else partial(_scored, dtype=dtype, single=single)
    rows, order = [], []
    with eval_mode(what):
        # Once for all queries, and not again batch by batch.
        grades = dataset.relevance.to(single)
        gains_of("evaluate", grades, gain, None)
        metrics.satisfaction(grades, max_grade)
        _check.finite("evaluate", "merit", merit_of(grades, merit), least=0.0)
        for batch, policy in shown(what, dataset):
            with _check.trusted():
                rows.append(judge.measures(batch, policy))
            order.append(batch.queries.cpu())
    # Where a query has no answer of its own.
    stand_in = {"ndcg": undefined, "ndcg_at_k": undefined, "d_ind": 0.0}
    if not matrices:
        stand_in["err"] = 0.0
    if batch.groups is not None:
        stand_in |= {"d_group": undefined_disparity, "group_gap": undefined_disparity}
    per_query, defined = {}, {}
    table = torch.cat(rows, -1).cpu()[:, torch.cat(order).argsort()]
    for name, values in zip(MEASURES, table, strict=True):
        defined[name] = int((~values.isnan()).sum())
        per_query[name] = torch.where(values.isnan(), stand_in.get(name, NAN), values)
    means = {name: float(per_query[name].double().nanmean()) for name in MEASURES}
    return Evaluation(**means, k=k, per_query=per_query, defined=defined)


def _scored(
    scorer: Scorer, dataset: Any, dtype: torch.dtype, single: torch.dtype
) -> Iterator[tuple[Batch, PlackettLuce]]:
    """The policies of a scorer that works in ``dtype``, judged in ``single``."""
    for batch in dataset.batches(_AT_ONCE, dtype=dtype, reuse=True):
        mask = None if bool(batch.mask.all()) else batch.mask
        policy = PlackettLuce(score(scorer, batch).to(single), mask)
        yield batch._replace(relevance=batch.relevance.to(single)), policy


def _given(matrices: Sequence[Tensor], dataset: Any) -> Iterator[tuple[Batch, Tensor]]:
    """Probabilities ``(1, n, n)`` of documents at positions, query by query."""
    if len(matrices) != len(dataset):
        found = f"{len(matrices)} probability matrices for {len(dataset)} queries"
        raise ValueError(f"evaluate: {found}; give one per query, or a scorer.")
    for batch in dataset.batches(1, dtype=torch.float64):
        query, n = int(batch.queries), batch.relevance.shape[-1]
        matrix = torch.as_tensor(matrices[query], dtype=torch.float64).to(batch.relevance.device)
        sums = torch.cat([matrix.sum(-1), matrix.sum(-2)]) if matrix.shape == (n, n) else None
        if sums is None or (sums - 1.0).abs().max() > 1e-6 or matrix.min() < -1e-9:
            found = f"the matrix of query {query} has shape {tuple(matrix.shape)} for {n} documents"
            raise ValueError(f"evaluate: {found}, or its rows and columns do not sum to one.")
        yield batch, matrix.unsqueeze(0)


@dataclass(frozen=True)
class _Judge:
    """The choices that turn a policy, or matrices, into measures."""

    k: int | None
    merit: str | Merit
    gain: str | Gain
    max_grade: float
    deterministic: bool
    samples: int | None
    tolerance: float
    generator: torch.Generator

    def measures(self, batch: Batch, shown: PlackettLuce | Tensor) -> Tensor:
        """All `MEASURES` in their order for each query ``(7, B)``; NaN where one has no answer."""
        relevance, mask, n = batch.relevance, batch.mask, batch.relevance.shape[-1]
        paid, rank, err = self._seen(batch, shown)
        exposure = paid(None)
        how: dict[str, Any] = {"gain": self.gain, "mask": mask, "undefined": NAN}
        ndcg = ndcg_at_k = metrics.expected_ndcg(exposure, relevance, **how)
        if self.k is not None and self.k < n:
            cut = position_bias(n, k=self.k, dtype=relevance.dtype).to(relevance.device)
            ndcg_at_k = metrics.expected_ndcg(paid(cut), relevance, position_bias=cut, **how)
        grade = torch.where(mask, relevance, 0.0)
        merit = torch.where(mask, merit_of(relevance, self.merit), 0.0)
        relevant, total = (grade > 0).any(-1), grade.sum(-1)
        d_group = group_gap = torch.full_like(total, NAN)
        if batch.groups is not None:
            by_group = partial(group_disparity, exposure, merit, batch.groups, mask, undefined=NAN)
            d_group, group_gap = by_group(), by_group(two_sided=True)
        average_rank = (grade * rank).sum(-1) / total.where(relevant, NAN)
        d_ind = individual_disparity(exposure, merit, mask).where((merit > 0).any(-1), NAN)
        err = err.where(relevant, NAN)
        return torch.stack([ndcg, ndcg_at_k, err, average_rank, d_ind, d_group, group_gap])

    def _seen(self, batch: Batch, shown: PlackettLuce | Tensor) -> tuple[Any, Tensor, Tensor]:
        """Exposure as a function of position bias; expected rank ``(B, n)``; and ERR ``(B,)``."""
        relevance = batch.relevance
        if isinstance(shown, Tensor):
            rank = shown @ torch.arange(1, shown.shape[-1] + 1).to(shown)
            no_err = torch.full_like(relevance[..., 0], NAN)
            return lambda bias: shown @ bias_like("evaluate", bias, shown), rank, no_err
        scores, mask = shown.scores, shown.mask
        how: dict[str, Any] = {"max_grade": self.max_grade, "k": self.k, "mask": mask}
        if self.deterministic:
            order, like = shown.mode, partial(bias_like, "evaluate", like=scores)
            err = metrics.err(order, relevance, **how)
            return lambda v: ranking_exposure(order, like(v), mask), 1.0 + order.argsort(-1), err
        if self.samples is None:
            satisfied = metrics.satisfaction(relevance, self.max_grade, mask)
            err = exact_err(scores, satisfied, mask, self.k, self.tolerance)
        else:
            rankings = shown.sample((self.samples,), self.generator)
            err = metrics.err(rankings, relevance, **how).mean(0)
        return partial(shown.exposure, tolerance=self.tolerance), _expected_rank(shown), err


def _expected_rank(policy: PlackettLuce) -> Tensor:
    """One plus the chance of each other document to come first ``(B, n)``."""
    scores, mask = policy.scores, policy.mask
    rank = torch.empty_like(scores)
    for rows in pieces(scores.shape[-1], scores.numel()):
        ahead = (scores.unsqueeze(-2) - scores[..., rows, None]).sigmoid_()
        rank[..., rows] = (ahead if mask is None else ahead.mul_(mask.unsqueeze(-2))).sum(-1)
    return 0.5 + rank
