"""One evaluator for every method (chapters 9 to 13): same data in, same measures out.

Nothing is sampled unless it has to be: utility and disparity follow from exposure, and ERR and RR
of a Plackett-Luce policy from the same integral (`fairpg_lite.exact.exact_err`). AP of such a
policy is a mean over drawn rankings, and so are all three of a policy class of one's own, unless it
has a method ``expected_value``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from fairpg_lite import _check, metrics
from fairpg_lite._extras import require
from fairpg_lite.batch import Batch, Queries
from fairpg_lite.disparity import Disparity
from fairpg_lite.exact import TOLERANCE
from fairpg_lite.measures import MEASURES, Measure, Options, RankedQueries, of_disparity
from fairpg_lite.policy import FixedRanking, MakePolicy, PlackettLuce, Policy
from fairpg_lite.pooling import Pool, PooledValue, check_poolable, check_pooled_function
from fairpg_lite.relevance import Gain, Merit, gains_of, merit_of
from fairpg_lite.resampling import bootstrap_interval, sign_flip_p_value
from fairpg_lite.scorers import Scorer, eval_mode, score

# Queries judged together.
_BATCH_SIZE = 64


class Predictor(Protocol):
    """An estimator with scikit-learn's manners: `FairRanker`, LightGBM's Booster, a pipeline."""

    def predict(self, X: Any, /) -> Any:
        """Scores ``(N,)`` of documents with features ``(N, d)``."""
        ...


class Difference(NamedTuple):
    """First less second in the mean over the same queries."""

    mean: float
    low: float
    """Lower end of the 95 % bootstrap interval over queries."""
    high: float
    """Its upper end."""
    p_value: float
    """Two-sided, by exchanging first and second in each query at random: of a mean over queries
    this flips the signs of their differences."""
    queries: int
    """Queries in which both have an answer; of a pooled measure, those in the pool."""


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
    """The mean of each measure over the queries; of a pooled measure, its one value."""
    per_query: dict[str, Tensor]
    """Each measure ``(Q,)`` in the dataset's order, without those that are pooled; NaN for a query
    that is left out."""
    defined: dict[str, int]
    """In how many queries each measure has an answer of its own; of a pooled measure, all that are
    in the pool, or 0."""
    k: int | None = None
    """Cut-off of "ndcg_at_k", "err", "ap" and "rr"."""
    pooled: dict[str, PooledValue] = field(default_factory=dict)
    """What each pooled measure was computed from."""
    query_ids: Sequence[Any] | None = None
    """The id of each query ``(Q,)``, if the dataset has ids."""

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
        return f"Evaluation({', '.join(parts)}, queries={self._query_count()})"

    def to_dict(self) -> dict[str, Any]:
        """The means and the cut-off, ready for JSON."""
        return {"k": self.k, **self.means}

    def to_pandas(self) -> Any:
        """A pandas table with a row for each query.

        Returns:
            A DataFrame whose columns are the measures, without those that are pooled, which have no
            value per query. The index is the id of each query, or its number from 0. NaN stands
            for a query that is left out.

        >>> evaluation = Evaluation({"ndcg": 0.5}, {"ndcg": torch.tensor([0.0, 1.0])}, {"ndcg": 2})
        >>> evaluation.to_pandas().reset_index()
           query  ndcg
        0      0   0.0
        1      1   1.0
        """
        pandas = require("pandas", "experiments")
        columns = {name: values.numpy() for name, values in self.per_query.items()}
        ids = range(self._query_count()) if self.query_ids is None else self.query_ids
        return pandas.DataFrame(columns, index=pandas.Index(ids, name="query"))

    def interval(self, measure: str) -> tuple[float, float]:
        """95 % bootstrap interval of a mean over the queries that have an answer.

        A pooled measure is computed again for every draw of queries. Items of few queries are
        missing in some draws, and a measure of single items (envy, Nash welfare) is then larger or
        smaller in all draws than it was: its value may lie outside of the interval.

        Args:
            measure: One of those that were computed.

        Returns:
            The lower and the upper end.
        """
        if measure in self.pooled:
            return self.pooled[measure].interval()
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
        if measure in self.pooled or measure in other.pooled:
            return self._compare_pooled(other, measure)
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

    def _compare_pooled(self, other: "Evaluation", measure: str) -> Difference:
        """This pooled value less another."""
        for evaluation in (self, other):
            evaluation._demand(measure)
        first = self.pooled.get(measure)
        second = other.pooled.get(measure)
        if first is None or second is None or not first.is_of_same_documents(second):
            raise ValueError(
                f"compare: {measure} is pooled in one evaluation and not alike in the other; "
                "evaluate both on the same queries with the same pooled=."
            )
        low, high = first.interval_of_difference(second)
        p_value = first.p_value(second)
        queries = min(self.defined[measure], other.defined[measure])
        return Difference(first.value - second.value, low, high, p_value, queries)

    def _values(self, measure: str) -> Tensor:
        """A measure of each query ``(Q,)``, in double precision."""
        self._demand(measure)
        return self.per_query[measure].double()

    def _demand(self, measure: str) -> None:
        """Refuse a measure that was not computed."""
        if measure not in self.means:
            raise KeyError(f"{measure!r} was not computed; there are {', '.join(self.means)}.")

    def _query_count(self) -> int:
        """How many queries were judged."""
        for values in self.per_query.values():
            return len(values)
        for value in self.pooled.values():
            return len(value.lengths)
        return 0


def evaluate(
    ranker: Scorer | Predictor | Tensor | Sequence[Policy],
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
    pooled: str = "query",
    posterior: Tensor | None = None,
    policy: MakePolicy = PlackettLuce,
    method: str = "exact",
) -> Evaluation:
    """Judge a ranker on a data set (chapters 7 to 13).

    Args:
        ranker: A scorer, which stands for its Plackett-Luce policy (or that of ``policy``); a
            fitted estimator, whose ``predict`` makes scores of the features, such as `FairRanker`
            or a Booster of LightGBM; scores ``(N,)`` of all documents, from anywhere; or one
            `Policy` for each query, in their order.
        dataset: The queries.
        measures: Names in `fairpg_lite.measures.MEASURES`, or rows of your own; or a mapping of
            names to functions of exposure, merit, groups and mask of your own. Only these are
            computed. None is NDCG and D_group, or D_ind where there are no groups.
        k: Cut-off of "ndcg_at_k", "err", "ap" and "rr"; None is the whole list.
        deterministic: Judge the policy's mode, one fixed ranking, instead of the policy.
        undefined: What a query without an answer counts. None is each measure's own value in the
            table; "skip" leaves such queries out of each mean; a mapping such as ``{"ndcg": 0.0}``
            says it for some measures.
        merit: Of a relevance, by name or a function, for the disparities.
        gain: Of a relevance, by name or a function, for NDCG.
        max_grade: Top of the scale, for ERR; None is the highest relevance, 1 at least.
        position_bias: Attention per position ``(n,)`` for exposure and NDCG; None is 1/log2(1+j).
        samples: Rankings to draw for ERR, AP and RR, and for exposure with ``method="sample"``;
            None is exact where the policy has an exact way, and 1,000 elsewhere: so AP of a
            Plackett-Luce policy is drawn, with a fixed seed.
        tolerance: Order of the error of what is integrated.
        pooled: Whether disparities compare documents within each query, "query"; or the sums over
            all queries in which an item, known by its `document_ids`, occurs, "item"; or all
            documents of all queries as one list, "dataset". Then each disparity is one number.
            Utilities are means over queries in any case. See `fairpg_lite.pooling`.
        posterior: ``(D, N)``, D draws of the relevance of all documents, for "phi".
        policy: What makes a policy of scores and mask.
        method: How exposure is found: "exact", or "sample", the mean over ``samples`` drawn
            rankings, with a fixed seed, for lists that take too long to integrate. The noise of few
            rankings looks like disparity: a disparity is then too high on average.

    Returns:
        The means, and each measure of each query.

    >>> from fairpg_lite import synthetic
    >>> data = synthetic(n_queries=20)
    >>> evaluate(data.relevance, data, ("ndcg", "d_group"))
    Evaluation(ndcg=0.8986, d_group=0.0005, queries=20)
    >>> evaluate(data.relevance, data, ("ndcg", "d_group"), pooled="dataset")
    Evaluation(ndcg=0.8986, d_group=0.0000, queries=20)
    """
    if len(dataset) == 0:
        raise ValueError("evaluate: the dataset holds no query.")
    rows = _chosen(measures, dataset)
    _check_choices(rows, k, samples, undefined)
    if method not in ("exact", "sample"):
        raise ValueError(f"evaluate: method is {method!r}; choose 'exact' or 'sample'.")
    check_poolable("evaluate", dataset, pooled)
    to_pool = _rows_to_pool(rows, pooled)
    _check_posterior(rows, posterior, dataset)
    if max_grade is None:
        max_grade = max(1.0, float(dataset.relevance.max().ceil()))
    options = Options(k, gain, merit, max_grade, position_bias, samples, tolerance, method)
    generator = torch.Generator(dataset.features.device).manual_seed(0)
    values: dict[str, list[Tensor]] = {name: [] for name in rows if name not in to_pool}
    pools: list[Pool] = []
    order: list[Tensor] = []
    with eval_mode(ranker):
        _check_relevance(dataset, rows, options)
        for batch, judged in _policies(ranker, dataset, policy):
            if deterministic:
                judged = FixedRanking(judged.mode, judged.mask, batch.relevance.dtype)
            draws = None if posterior is None else _draws_of(posterior, batch, dataset)
            ranked = RankedQueries(
                judged, batch.relevance, batch.groups, batch.mask, options, generator, draws
            )
            with _check.trusted():
                for name, parts in values.items():
                    parts.append(rows[name].compute(ranked).reshape(-1))
                if to_pool:
                    pools.append(_pool_of(ranked, batch))
            order.append(batch.queries.cpu())
    in_order = torch.cat(order).argsort()
    columns = {name: torch.cat(parts).cpu()[in_order] for name, parts in values.items()}
    evaluation = _summary(columns, rows, undefined, k, _ids_of(dataset))
    if not to_pool:
        return evaluation
    pool = Pool.joined(pools)
    pooled_values = {}
    for name, function in to_pool.items():
        stand_in = _stand_in(rows[name], undefined)
        pooled_values[name] = PooledValue(function, pooled, pool, stand_in)
    return _with_pooled(evaluation, list(rows), pooled_values)


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


def _rows_to_pool(rows: Mapping[str, Measure], pooled: str) -> dict[str, Disparity]:
    """The plain functions of the rows whose queries are pooled."""
    functions: dict[str, Disparity] = {}
    if pooled == "query":
        return functions
    for name, row in rows.items():
        if row.function is not None:
            check_pooled_function("evaluate", name, row.function, pooled)
            functions[name] = row.function
    return functions


def _pool_of(ranked: RankedQueries, batch: Batch) -> Pool:
    """The documents of a batch with their exposure, in double precision on the CPU."""
    n = batch.mask.shape[-1]
    pool = Pool.of_padded(
        ranked.exposure.detach().reshape(-1, n),
        ranked.merit.reshape(-1, n),
        batch.mask.reshape(-1, n),
        batch.queries,
        groups=None if batch.groups is None else batch.groups.reshape(-1, n),
        document_ids=None if batch.document_ids is None else batch.document_ids.reshape(-1, n),
    )
    return pool.on_cpu()


def _with_pooled(
    evaluation: Evaluation, names: Sequence[str], pooled_values: dict[str, PooledValue]
) -> Evaluation:
    """The evaluation with pooled measures, all of them in the order of ``names``."""
    means = {}
    defined = {}
    for name in names:
        if name in pooled_values:
            value = pooled_values[name]
            means[name] = value.value
            defined[name] = 0 if math.isnan(value.answer) else len(value.lengths)
        else:
            means[name] = evaluation.means[name]
            defined[name] = evaluation.defined[name]
    return replace(evaluation, means=means, defined=defined, pooled=pooled_values)


def _check_posterior(
    rows: Mapping[str, Measure], posterior: Tensor | None, dataset: Queries
) -> None:
    """Refuse a posterior that is missing or of other documents."""
    if posterior is None:
        for name, row in rows.items():
            if "posterior" in row.needs:
                raise ValueError(
                    f"evaluate: {name} needs draws of the relevance; give posterior= of shape "
                    f"(D, {len(dataset.relevance)}), or leave the measure out."
                )
        return
    _check.floating("evaluate", "posterior", posterior)
    if posterior.ndim != 2 or posterior.shape[1] != len(dataset.relevance):
        raise ValueError(
            f"evaluate: posterior has shape {tuple(posterior.shape)}, and the dataset has "
            f"{len(dataset.relevance)} documents; give (D, {len(dataset.relevance)}), D draws of "
            "the relevance of all documents."
        )
    if len(posterior) == 0:
        raise ValueError("evaluate: posterior holds no draw; give one at least.")
    _check.finite("evaluate", "posterior", posterior)


def _draws_of(posterior: Tensor, batch: Batch, dataset: Queries) -> Tensor:
    """The draws ``(D, …, n)`` of the documents of a batch; padding repeats other documents."""
    n = batch.mask.shape[-1]
    place = torch.arange(n, device=dataset.offsets.device)
    starts = dataset.offsets[batch.queries.to(dataset.offsets.device)]
    rows = (starts.unsqueeze(-1) + place).clamp(max=len(dataset.relevance) - 1)
    draws = posterior.to(batch.relevance.device)[:, rows.to(batch.relevance.device)]
    return draws.reshape(len(posterior), *batch.mask.shape).to(batch.relevance.dtype)


def _check_choices(
    rows: Mapping[str, Measure],
    k: int | None,
    samples: int | None,
    undefined: str | Mapping[str, float] | None,
) -> None:
    """Refuse a cut-off, a number of samples or an ``undefined`` that makes no sense."""
    if k is not None and not (_check.is_whole(k) and k >= 1):
        raise ValueError(f"evaluate: k is {k!r}; give a whole number from 1, or None.")
    if samples is not None and not (_check.is_whole(samples) and samples >= 1):
        raise ValueError(f"evaluate: samples is {samples!r}; give a whole number from 1, or None.")
    if undefined is None or undefined == "skip":
        return
    if not isinstance(undefined, Mapping):
        raise ValueError(
            f"evaluate: undefined is {undefined!r}; give 'skip', None, or a mapping such as "
            "{'ndcg': 0.0}."
        )
    for name in undefined:
        if name not in rows and name not in MEASURES:
            raise ValueError(
                f"evaluate: undefined names {name!r}, which is no measure; "
                f"choose from {', '.join(rows)}."
            )


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
    ranker: Scorer | Predictor | Tensor | Sequence[Policy],
    dataset: Queries,
    make_policy: MakePolicy,
) -> Iterator[tuple[Batch, Policy]]:
    """The policies of a ranker, and the queries of each, in float32 at least."""
    if callable(ranker):
        return _policies_of_scorer(ranker, dataset, make_policy)
    if isinstance(ranker, Tensor) or getattr(ranker, "ndim", 0) == 1:
        return _policies_of_scores(torch.as_tensor(ranker), dataset, make_policy)
    if hasattr(ranker, "predict"):
        predicted = ranker.predict(dataset.features.numpy(force=True))
        return _policies_of_scores(torch.as_tensor(np.asarray(predicted)), dataset, make_policy)
    return _given_policies(ranker, dataset)


def _policies_of_scorer(
    scorer: Scorer, dataset: Queries, make_policy: MakePolicy
) -> Iterator[tuple[Batch, Policy]]:
    """The policies of a scorer, which is fed in its own number format."""
    dtype = dataset.features.dtype
    if isinstance(scorer, nn.Module):
        first = next(scorer.parameters(), None)
        dtype = dtype if first is None else first.dtype
    # Half precision is too coarse to be judged in.
    judged_in = torch.promote_types(dtype, torch.float32)
    for batch in dataset.batches(_BATCH_SIZE, dtype=dtype, reuse=True):
        scores = score(scorer, batch).to(judged_in)
        yield _judged_in(batch, judged_in), make_policy(scores, _needed_mask(batch))


def _policies_of_scores(
    scores: Tensor, dataset: Queries, make_policy: MakePolicy
) -> Iterator[tuple[Batch, Policy]]:
    """The policies of scores ``(N,)``, in double precision."""
    _check.same_shape("evaluate", "scores", scores, "relevance", dataset.relevance.shape)
    scores = scores.to(dataset.features.device).double()
    lengths = dataset.lengths.tolist()
    by_query = scores.split(lengths)
    for batch in dataset.batches(_BATCH_SIZE, dtype=torch.float64, reuse=True):
        padded = torch.zeros_like(batch.relevance)
        for row, query in enumerate(batch.queries.tolist()):
            padded[row, : lengths[query]] = by_query[query]
        yield batch, make_policy(padded, _needed_mask(batch))


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
        document_ids=None if batch.document_ids is None else batch.document_ids.view(shape),
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
    query_ids: Sequence[Any] | None,
) -> Evaluation:
    """The evaluation of columns ``(Q,)`` in which NaN stands for a query without an answer."""
    per_query = {}
    defined = {}
    means = {}
    for name, column in columns.items():
        has_answer = ~column.isnan()
        stand_in = _stand_in(rows[name], undefined)
        defined[name] = int(has_answer.sum())
        per_query[name] = torch.where(has_answer, column, stand_in)
        means[name] = float(per_query[name].double().nanmean())
    return Evaluation(means, per_query, defined, k, query_ids=query_ids)


def _ids_of(dataset: Queries) -> Sequence[Any] | None:
    """The ids of the queries as plain values, or None for a dataset without ids."""
    query_ids = getattr(dataset, "query_ids", None)
    return None if query_ids is None else list(query_ids.tolist())


def _stand_in(row: Measure, undefined: str | Mapping[str, float] | None) -> float:
    """What counts where a measure has no answer; NaN leaves it out."""
    if undefined is None:
        return row.undefined
    if isinstance(undefined, str):  # "skip"
        return math.nan
    return undefined.get(row.name, row.undefined)
