"""One evaluator for every method (chapters 9 to 13): same data in, same measures out, exact.

Nothing is sampled unless it has to be: utility and disparity follow from exposure, and ERR of a
Plackett-Luce policy from the same integral (`fairpg_lite.exact.exact_err`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fairpg_lite import _check, metrics
from fairpg_lite.batch import Batch, Queries
from fairpg_lite.disparity import Disparity
from fairpg_lite.exact import TOLERANCE
from fairpg_lite.measures import MEASURES, Measure, Options, RankedQueries, of_disparity
from fairpg_lite.policy import FixedRanking, PlackettLuce, Policy
from fairpg_lite.relevance import Gain, Merit, gains_of, merit_of
from fairpg_lite.resampling import bootstrap_interval, sign_flip_p_value
from fairpg_lite.scorers import Scorer, eval_mode, score

# Queries judged together.
_BATCH_SIZE = 64


class Difference(NamedTuple):
    """First less second in the mean over the same queries."""

    mean: float
    low: float
    """Lower end of the 95 % bootstrap interval over queries."""
    high: float
    """Its upper end."""
    p_value: float
    """Two-sided, by flipping the sign of each query's difference at random."""
    queries: int
    """Queries in which both have an answer."""


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found; ``evaluation.ndcg`` and so on are the means.

    >>> evaluation = Evaluation({"ndcg": 0.5}, {"ndcg": torch.tensor([0.0, 1.0])}, {"ndcg": 2})
    >>> evaluation
    Evaluation(ndcg=0.5000, queries=2)
    >>> evaluation.ndcg
    0.5
    """

    means: dict[str, float]
    """The mean of each measure over the queries."""
    per_query: dict[str, Tensor]
    """Each measure ``(Q,)`` in the dataset's order; NaN for a query that is left out."""
    defined: dict[str, int]
    """In how many queries each measure has an answer of its own."""
    k: int | None = None
    """Cut-off of "ndcg_at_k" and "err"."""

    def __getattr__(self, name: str) -> float:
        """The mean of a measure."""
        # Copying and unpickling ask for attributes before there are fields.
        means: dict[str, float] = self.__dict__.get("means", {})
        if name in means:
            return means[name]
        if name in MEASURES:
            raise AttributeError(
                f"{name} was not computed; name it in evaluate(..., measures=({name!r}, ...))."
            )
        raise AttributeError(f"Evaluation has no attribute {name!r}.")

    def __repr__(self) -> str:
        parts = [f"{name}={value:.4f}" for name, value in self.means.items()]
        if self.k is not None:
            parts.append(f"k={self.k}")
        queries = len(next(iter(self.per_query.values())))
        return f"Evaluation({', '.join(parts)}, queries={queries})"

    def to_dict(self) -> dict[str, Any]:
        """The means and the cut-off, ready for JSON."""
        return {"k": self.k, **self.means}

    def interval(self, measure: str) -> tuple[float, float]:
        """95 % bootstrap interval of a mean over the queries that have an answer.

        Args:
            measure: One of those that were computed.

        Returns:
            The lower and the upper end.
        """
        values = self._values(measure)
        return bootstrap_interval(values[~values.isnan()])

    def compare(self, other: "Evaluation", measure: str) -> Difference:
        """This evaluation less another of the same queries, query by query.

        Args:
            other: What another ranker got on the same queries.
            measure: One that was computed for both.

        Returns:
            The mean difference, its interval and its p-value.
        """
        first = self._values(measure)
        second = other._values(measure)
        if first.shape != second.shape:
            raise ValueError(
                f"compare: {len(first)} queries against {len(second)}; take the same queries."
            )
        differences = first - second
        differences = differences[~differences.isnan()]
        low, high = bootstrap_interval(differences)
        p_value = sign_flip_p_value(differences)
        return Difference(float(differences.mean()), low, high, p_value, len(differences))

    def _values(self, measure: str) -> Tensor:
        """A measure of each query ``(Q,)``, in double precision."""
        if measure not in self.per_query:
            raise KeyError(f"{measure!r} was not computed; there are {', '.join(self.per_query)}.")
        return self.per_query[measure].double()


def evaluate(
    ranker: Scorer | Tensor | Sequence[Policy],
    dataset: Queries,
    measures: Sequence[str | Measure] | Mapping[str, Disparity] | None = None,
    *,
    k: int | None = None,
    deterministic: bool = False,
    undefined: str | Mapping[str, float] | None = None,
    merit: str | Merit = "identity",
    gain: str | Gain = "exponential",
    max_grade: float | None = None,
    position_bias: Tensor | None = None,
    samples: int | None = None,
    tolerance: float = TOLERANCE,
) -> Evaluation:
    """Judge a ranker on a data set (chapters 7 to 13).

    Args:
        ranker: A scorer, which stands for its Plackett-Luce policy; scores ``(N,)`` of all
            documents, from anywhere; or one `Policy` for each query, in their order.
        dataset: The queries.
        measures: Names in `fairpg_lite.measures.MEASURES`, or rows of your own; or a mapping of
            names to functions of exposure, merit, groups and mask of your own. Only these are
            computed. None is NDCG and D_group, or D_ind where there are no groups.
        k: Cut-off of "ndcg_at_k" and "err"; None is the whole list.
        deterministic: Judge the policy's mode, one fixed ranking, instead of the policy.
        undefined: What a query without an answer counts. None is each measure's own value in the
            table; "skip" leaves such queries out of each mean; a mapping such as ``{"ndcg": 0.0}``
            says it for some measures.
        merit: Of a relevance, by name or a function, for the disparities.
        gain: Of a relevance, by name or a function, for NDCG.
        max_grade: Top of the scale, for ERR; None is the highest relevance, 1 at least.
        position_bias: Attention per position ``(n,)`` for exposure and NDCG; None is 1/log2(1+j).
        samples: Rankings to draw for ERR; None is exact where the policy has an exact way.
        tolerance: Accuracy of what is integrated.

    Returns:
        The means, and each measure of each query.

    >>> from fairpg_lite import synthetic
    >>> data = synthetic(n_queries=20)
    >>> evaluate(data.relevance, data, ("ndcg", "d_group"))
    Evaluation(ndcg=0.8986, d_group=0.0005, queries=20)
    """
    if len(dataset) == 0:
        raise ValueError("evaluate: the dataset holds no query.")
    rows = _chosen(measures, dataset)
    if max_grade is None:
        max_grade = max(1.0, float(dataset.relevance.max().ceil()))
    options = Options(k, gain, merit, max_grade, position_bias, samples, tolerance)
    generator = torch.Generator(dataset.features.device).manual_seed(0)
    values: dict[str, list[Tensor]] = {name: [] for name in rows}
    order: list[Tensor] = []
    with eval_mode(ranker):
        _check_relevance(dataset, rows, options)
        for batch, policy in _policies(ranker, dataset):
            if deterministic:
                policy = FixedRanking(policy.mode, policy.mask, batch.relevance.dtype)
            ranked = RankedQueries(
                policy, batch.relevance, batch.groups, batch.mask, options, generator
            )
            with _check.trusted():
                for name, row in rows.items():
                    values[name].append(row.compute(ranked).reshape(-1))
            order.append(batch.queries.cpu())
    in_order = torch.cat(order).argsort()
    columns = {name: torch.cat(parts).cpu()[in_order] for name, parts in values.items()}
    return _summary(columns, rows, undefined, k)


def _chosen(
    measures: Sequence[str | Measure] | Mapping[str, Disparity] | None, dataset: Queries
) -> dict[str, Measure]:
    """The rows that are asked for, in the order asked."""
    if measures is None:
        measures = ("ndcg", "d_ind") if dataset.groups is None else ("ndcg", "d_group")
    if isinstance(measures, str):
        measures = (measures,)
    if len(measures) == 0:
        raise ValueError("evaluate: measures is empty; name one at least.")
    if isinstance(measures, Mapping):
        return {name: of_disparity(name, name, function) for name, function in measures.items()}
    rows = {}
    for measure in measures:
        row = measure if isinstance(measure, Measure) else _row(measure)
        if "groups" in row.needs and dataset.groups is None:
            raise ValueError(
                f"evaluate: {row.name} compares groups, and the dataset has none; "
                "give it some, dataset.replace(groups=...), or leave the measure out."
            )
        rows[row.name] = row
    return rows


def _row(name: str) -> Measure:
    if name not in MEASURES:
        raise ValueError(
            f"evaluate: there is no measure {name!r}; choose from {', '.join(MEASURES)}."
        )
    return MEASURES[name]


def _check_relevance(dataset: Queries, rows: Mapping[str, Measure], options: Options) -> None:
    """Look at all grades once, and not again batch by batch."""
    grades = dataset.relevance.to(torch.promote_types(dataset.features.dtype, torch.float32))
    gains_of("evaluate", grades, options.gain, None)
    if "err" in rows:
        metrics.satisfaction(grades, options.max_grade)
    _check.finite("evaluate", "merit", merit_of(grades, options.merit), least=0.0)


def _policies(
    ranker: Scorer | Tensor | Sequence[Policy], dataset: Queries
) -> Iterator[tuple[Batch, Policy]]:
    """The policies of a ranker, and the queries of each, in float32 at least."""
    if callable(ranker):
        return _policies_of_scorer(ranker, dataset)
    if isinstance(ranker, Tensor) or getattr(ranker, "ndim", 0) == 1:
        return _policies_of_scores(torch.as_tensor(ranker), dataset)
    return _given_policies(ranker, dataset)


def _policies_of_scorer(scorer: Scorer, dataset: Queries) -> Iterator[tuple[Batch, Policy]]:
    """The Plackett-Luce policies of a scorer, which is fed in its own number format."""
    dtype = dataset.features.dtype
    if isinstance(scorer, nn.Module):
        first = next(scorer.parameters(), None)
        dtype = dtype if first is None else first.dtype
    # Half precision is too coarse to be judged in.
    judged_in = torch.promote_types(dtype, torch.float32)
    for batch in dataset.batches(_BATCH_SIZE, dtype=dtype, reuse=True):
        scores = score(scorer, batch).to(judged_in)
        yield _judged_in(batch, judged_in), PlackettLuce(scores, _needed_mask(batch))


def _policies_of_scores(scores: Tensor, dataset: Queries) -> Iterator[tuple[Batch, Policy]]:
    """The Plackett-Luce policies of scores ``(N,)``, in double precision."""
    _check.same_shape("evaluate", "scores", scores, "relevance", dataset.relevance.shape)
    scores = scores.to(dataset.features.device).double()
    lengths = dataset.lengths.tolist()
    by_query = scores.split(lengths)
    for batch in dataset.batches(_BATCH_SIZE, dtype=torch.float64, reuse=True):
        padded = torch.zeros_like(batch.relevance)
        for row, query in enumerate(batch.queries.tolist()):
            padded[row, : lengths[query]] = by_query[query]
        yield batch, PlackettLuce(padded, _needed_mask(batch))


def _given_policies(policies: Sequence[Policy], dataset: Queries) -> Iterator[tuple[Batch, Policy]]:
    """One policy for each query, in double precision."""
    if len(policies) != len(dataset):
        raise ValueError(
            f"evaluate: {len(policies)} policies for {len(dataset)} queries; "
            "give one for each query, or a scorer."
        )
    for batch in dataset.batches(1, dtype=torch.float64):
        query = int(batch.queries)
        policy = policies[query]
        if not isinstance(policy, Policy):
            raise TypeError(
                f"evaluate: policy {query} is {_check.kind_of(policy)}; give a Policy, such as "
                "DoublyStochastic(matrix) or PlackettLuce(scores)."
            )
        shape = policy.mode.shape
        if shape[-1] != batch.relevance.shape[-1]:
            raise ValueError(
                f"evaluate: policy {query} ranks {shape[-1]} documents, "
                f"the query has {batch.relevance.shape[-1]}."
            )
        yield _with_shape(batch, shape), policy


def _with_shape(batch: Batch, shape: torch.Size) -> Batch:
    """A batch of one query with the axes of its policy, ``(n,)`` or ``(1, n)``."""
    return batch._replace(
        relevance=batch.relevance.view(shape),
        groups=None if batch.groups is None else batch.groups.view(shape),
        mask=batch.mask.view(shape),
    )


def _judged_in(batch: Batch, dtype: torch.dtype) -> Batch:
    return batch._replace(relevance=batch.relevance.to(dtype))


def _needed_mask(batch: Batch) -> Tensor | None:
    """The mask, or None if nothing is padded: computing without one is quicker."""
    return None if bool(batch.mask.all()) else batch.mask


def _summary(
    columns: Mapping[str, Tensor],
    rows: Mapping[str, Measure],
    undefined: str | Mapping[str, float] | None,
    k: int | None,
) -> Evaluation:
    """The evaluation of columns ``(Q,)`` in which NaN stands for a query without an answer."""
    if isinstance(undefined, str) and undefined != "skip":
        raise ValueError(
            f"evaluate: undefined is {undefined!r}; give 'skip', None, or a mapping such as "
            "{'ndcg': 0.0}."
        )
    overrides = {} if undefined is None or isinstance(undefined, str) else dict(undefined)
    per_query = {}
    defined = {}
    means = {}
    for name, column in columns.items():
        has_answer = ~column.isnan()
        stand_in = math.nan if undefined == "skip" else overrides.get(name, rows[name].undefined)
        defined[name] = int(has_answer.sum())
        per_query[name] = torch.where(has_answer, column, stand_in)
        means[name] = float(per_query[name].double().nanmean())
    return Evaluation(means, per_query, defined, k)
