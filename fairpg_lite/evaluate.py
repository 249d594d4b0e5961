"""One evaluator for every method (chapters 9 to 13): same data in, same measures out, exact.

Nothing is sampled unless asked for: utility and disparity follow from exposure, and ERR from the
same integral (`fairpg_lite.exact.exact_err`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from fairpg_lite import _check, metrics
from fairpg_lite.disparity import group_disparity, individual_disparity, row_pieces
from fairpg_lite.evaluation import MEASURES, NAN, Evaluation
from fairpg_lite.exact import TOLERANCE, exact_err
from fairpg_lite.exposure import bias_like, position_bias, ranking_exposure
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.relevance import Gain, Merit, gains_of, merit_of
from fairpg_lite.scorers import Batch, Queries, Scorer, eval_mode, score


def evaluate(
    what: Scorer | Tensor | Sequence[Tensor],
    dataset: Queries,
    k: int | None = None,
    *,
    deterministic: bool = False,
    undefined: float = 1.0,
    undefined_disparity: float = 0.0,
    merit: str | Merit = "identity",
    gain: str | Gain = "exponential",
    bias: Tensor | None = None,
    max_grade: float | None = None,
    samples: int | None = None,
    seed: int = 0,
    batch_size: int = 64,
    tolerance: float = TOLERANCE,
) -> Evaluation:
    """NDCG, NDCG@k, ERR, average rank, D_ind, D_group and the two-sided gap of a method.

    Args:
        what: A scorer (its stochastic policy), scores ``(N,)`` of all documents from anywhere, or
            one probability matrix ``(n, n)`` per query, row = document, column = position; of a
            matrix ERR is NaN, since a matrix does not fix it.
        dataset: The queries, a `RankingDataset` or anything with its batches.
        k: Cut-off of ``ndcg_at_k`` and of ERR.
        deterministic: Judge the most probable ranking instead of the stochastic policy.
        undefined: NDCG of a query with nothing relevant; NaN leaves such queries out of the mean.
        undefined_disparity: D_group of a query that lacks a group or its merit; NaN as above.
        merit: Merit of a relevance, for the disparities.
        gain: Gain of a relevance in NDCG: "exponential", "linear", "binary" or a function.
        bias: Attention per position for the disparities; None is 1/log2(1+j).
        max_grade: Top of the scale, for ERR; by default the larger of 1 and the highest relevance
            in the dataset, rounded up.
        samples: None computes the policy's ERR exactly; a number averages it over so many rankings.
        seed: Of those rankings.
        batch_size: Queries scored together.
        tolerance: Accuracy of what is integrated.

    Chapters 7 to 13.
    """
    if len(dataset) == 0:
        raise ValueError("evaluate: the dataset holds no query.")
    if max_grade is None:
        max_grade = max(1.0, float(dataset.relevance.max().ceil()))
    rules = _Rules(k, merit, gain, bias, max_grade)
    dtype = _dtype(what, dataset)
    rules.check(dataset.relevance.to(_single(dtype)))
    generator = torch.Generator(dataset.features.device)
    generator.manual_seed(_check.seed("evaluate: seed", seed))

    def view_of(policy: PlackettLuce) -> View:
        if deterministic:
            return _Ranking(policy)
        rankings = None if samples is None else policy.sample((samples,), generator)
        return _Policy(policy, rankings, tolerance)

    views: Iterable[tuple[Batch, View]]
    if callable(what) or getattr(what, "ndim", 0) == 1:
        scored = _scored(cast(Scorer | Tensor, what), dataset, dtype, batch_size)
        views = ((batch, view_of(policy)) for batch, policy in scored)
    else:
        views = _given(cast(Sequence[Tensor], what), dataset)
    rows, order = [], []
    with eval_mode(what):
        for batch, view in views:
            with _check.trusted():
                rows.append(rules.measures(batch, view))
            order.append(batch.queries.cpu())
    # Where a query has no answer of its own.
    stand_in = {"ndcg": undefined, "ndcg_at_k": undefined, "d_ind": 0.0}
    if not isinstance(view, _Matrix):
        stand_in["err"] = 0.0
    if batch.groups is not None:
        stand_in |= {"d_group": undefined_disparity, "group_gap": undefined_disparity}
    position = torch.cat(order).argsort()
    per_query, defined = {}, {}
    for name in MEASURES:
        values = torch.cat([row[name] for row in rows]).cpu()[position]
        defined[name] = int((~values.isnan()).sum())
        per_query[name] = torch.where(values.isnan(), stand_in.get(name, NAN), values)
    means = {name: float(per_query[name].double().nanmean()) for name in MEASURES}
    return Evaluation(**means, k=k, per_query=per_query, defined=defined)


class _Policy:
    """A Plackett-Luce policy as the evaluator sees it; ``rankings`` of it, if ERR is sampled."""

    def __init__(self, policy: PlackettLuce, rankings: Tensor | None, tolerance: float):
        self.policy, self.rankings, self.tolerance = policy, rankings, tolerance

    def exposure(self, bias: Tensor | None) -> Tensor:
        return self.policy.exposure(bias, tolerance=self.tolerance)

    def rank(self) -> Tensor:
        """Expected position: one plus the chance of each other document to come first."""
        scores, mask = self.policy.scores, self.policy.mask
        rank = torch.empty_like(scores)
        for rows in row_pieces(scores):
            ahead = (scores.unsqueeze(-2) - scores[..., rows, None]).sigmoid_()
            rank[..., rows] = (ahead if mask is None else ahead.mul_(mask.unsqueeze(-2))).sum(-1)
        return 0.5 + rank

    def err(self, relevance: Tensor, top: float, k: int | None) -> Tensor:
        mask = self.policy.mask
        if self.rankings is not None:
            values = metrics.err(self.rankings, relevance, max_grade=top, k=k, mask=mask)
            return values.mean(0)
        satisfied = metrics.satisfaction(relevance, top, mask=mask)
        return exact_err(self.policy.scores, satisfied, mask, k, self.tolerance)


class _Ranking:
    """A single ranking per query ``(B, n)``."""

    def __init__(self, policy: PlackettLuce):
        self.ranking, self.scores, self.mask = policy.mode, policy.scores, policy.mask

    def exposure(self, bias: Tensor | None) -> Tensor:
        return ranking_exposure(self.ranking, bias_like("evaluate", bias, self.scores), self.mask)

    def rank(self) -> Tensor:
        return 1.0 + self.ranking.argsort(-1)

    def err(self, relevance: Tensor, top: float, k: int | None) -> Tensor:
        return metrics.err(self.ranking, relevance, max_grade=top, k=k, mask=self.mask)


class _Matrix:
    """Probabilities ``(1, n, n)`` of documents at positions; no ranking can be read off them."""

    def __init__(self, probs: Tensor):
        self.probs = probs

    def exposure(self, bias: Tensor | None) -> Tensor:
        return self.probs @ bias_like("evaluate", bias, self.probs)

    def rank(self) -> Tensor:
        return self.exposure(torch.arange(1.0, self.probs.shape[-1] + 1))

    def err(self, relevance: Tensor, top: float, k: int | None) -> Tensor:
        return torch.full_like(relevance[..., 0], NAN)


View = _Policy | _Ranking | _Matrix


def _scored(
    what: Scorer | Tensor, dataset: Queries, dtype: torch.dtype, batch_size: int
) -> Iterator[tuple[Batch, PlackettLuce]]:
    """The policies of a scorer, or of scores ``(N,)`` for all documents of the dataset."""
    given = None if callable(what) else _scores_of_all(what, dataset)
    single = _single(dtype)
    for batch in dataset.batches(batch_size, dtype=dtype, reuse=True):
        batch = batch._replace(relevance=batch.relevance.to(single))
        if given is None:
            scores = score(cast(Scorer, what), batch)
        else:
            starts = dataset.offsets[:-1].to(given.device)[batch.queries].unsqueeze(-1)
            row = starts + torch.arange(batch.mask.shape[-1], device=given.device)
            scores = given[row.clamp(max=len(given) - 1)] * batch.mask
        mask = None if bool(batch.mask.all()) else batch.mask
        yield batch, PlackettLuce(scores.to(single), mask)


def _dtype(what: object, dataset: Queries) -> torch.dtype:
    """Number format of the scorer, or of the scores; else that of the data."""
    parameters = list(what.parameters()) if isinstance(what, nn.Module) else []
    if parameters:
        return parameters[0].dtype
    if callable(what):
        return dataset.features.dtype
    is_float = isinstance(what, Tensor) and what.is_floating_point()
    return cast(Tensor, what).dtype if is_float else torch.float64


def _single(dtype: torch.dtype) -> torch.dtype:
    """No measure is computed in half precision."""
    return torch.promote_types(dtype, torch.float32)


def _scores_of_all(scores: Tensor, dataset: Queries) -> Tensor:
    scores = torch.as_tensor(scores, device=dataset.features.device)
    if scores.shape != dataset.relevance.shape:
        raise ValueError(
            f"evaluate: scores has shape {tuple(scores.shape)} for {len(dataset.relevance)} "
            "documents; give one score per document of the dataset, in its order."
        )
    return scores if scores.is_floating_point() else scores.double()


def _given(matrices: Sequence[Tensor], dataset: Queries) -> Iterator[tuple[Batch, _Matrix]]:
    if len(matrices) != len(dataset):
        raise ValueError(
            f"evaluate: {len(matrices)} probability matrices for {len(dataset)} queries; "
            "give one per query, or a scorer."
        )
    for batch in dataset.batches(1, dtype=torch.float64):
        query, n = int(batch.queries), batch.relevance.shape[-1]
        matrix = torch.as_tensor(matrices[query], dtype=torch.float64).to(batch.relevance.device)
        sums = torch.cat([matrix.sum(-1), matrix.sum(-2)]) if matrix.shape == (n, n) else None
        if sums is None or (sums - 1.0).abs().max() > 1e-6 or matrix.min() < -1e-9:
            raise ValueError(
                f"evaluate: the matrix of query {query} has shape {tuple(matrix.shape)} for {n} "
                "documents, or its rows and columns do not sum to one; give the probability of "
                "each document (row) at each position (column)."
            )
        yield batch, _Matrix(matrix.unsqueeze(0))


@dataclass(frozen=True)
class _Rules:
    """The choices that turn a view of a method into measures."""

    k: int | None
    merit: str | Merit
    gain: str | Gain
    bias: Tensor | None
    max_grade: float

    def check(self, relevance: Tensor) -> None:
        """Once for all queries, and not again batch by batch."""
        gains_of("evaluate", relevance, self.gain, None)
        metrics.satisfaction(relevance, self.max_grade)
        _check.non_negative("evaluate", "merit", merit_of(relevance, self.merit))

    def measures(self, batch: Batch, view: View) -> dict[str, Tensor]:
        """One value per query ``(B,)``; NaN where a measure has no answer."""
        relevance, mask, n = batch.relevance, batch.mask, batch.relevance.shape[-1]
        discounted = view.exposure(None)
        exposure = discounted if self.bias is None else view.exposure(self.bias[:n].to(relevance))
        ndcg = ndcg_at_k = self._ndcg(discounted, None, batch)
        if self.k is not None and self.k < n:
            cut = position_bias(n, k=self.k, dtype=relevance.dtype).to(relevance.device)
            ndcg_at_k = self._ndcg(view.exposure(cut), cut, batch)
        grade = torch.where(mask, relevance, 0.0)
        merit = torch.where(mask, merit_of(relevance, self.merit), 0.0)
        relevant, total = (grade > 0).any(-1), grade.sum(-1)
        d_group = group_gap = torch.full_like(total, NAN)
        if batch.groups is not None:
            shown = (exposure, merit, batch.groups, mask)
            d_group = group_disparity(*shown, undefined=NAN)
            group_gap = group_disparity(*shown, undefined=NAN, two_sided=True)
        err = view.err(relevance, self.max_grade, self.k)
        d_ind = individual_disparity(exposure, merit, mask)
        return {
            "ndcg": ndcg,
            "ndcg_at_k": ndcg_at_k,
            "err": torch.where(relevant, err, NAN),
            "average_rank": (grade * view.rank()).sum(-1) / total.where(relevant, NAN),
            "d_ind": torch.where((merit > 0).any(-1), d_ind, NAN),
            "d_group": d_group,
            "group_gap": group_gap,
        }

    def _ndcg(self, exposure: Tensor, bias: Tensor | None, batch: Batch) -> Tensor:
        weight, constant = metrics.ndcg_weights(batch.relevance, self.gain, bias, batch.mask, NAN)
        return (weight * exposure).sum(-1) + constant
