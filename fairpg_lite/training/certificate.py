"""A promise for queries that nobody has seen (chapter 14).

A budget that is kept on some queries, as `fit_to_budget` keeps it, says little about the next ones.
`certify` takes policies that were made from other data, from the fairest to the most useful, and
calibration queries that none of them has seen. It tests them in this order with the bets of
`fairpg_lite.betting` and stops at the first that does not pass. If a policy above the budget is
certified, then the first such policy on the path is, and one test errs with probability alpha at
most: so a path of any length needs no correction (fixed-sequence testing).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._extras import progress_bar, require
from fairpg_lite.batch import Queries
from fairpg_lite.betting import betting_bound, queries_needed
from fairpg_lite.disparity import Disparity
from fairpg_lite.evaluation import Predictor, evaluate
from fairpg_lite.exposure import position_bias as default_bias
from fairpg_lite.measures import DISPARITIES, MEASURES, Measure, of_disparity
from fairpg_lite.policy import Policy
from fairpg_lite.post_processing import group_rows
from fairpg_lite.relevance import Merit, merit_of
from fairpg_lite.scorers import Scorer

#: What `certify` tests: whatever `evaluate` judges.
Ranker = Scorer | Predictor | Tensor | Sequence[Policy]


@dataclass(frozen=True)
class Certificate:
    """What `certify` found.

    >>> found = Certificate(
    ...     0.01, 0.1, 1.0, 500, ("fair", "sharp"), (0.001, 0.02), (0.006, 0.026), (0.8, 0.9), 1, 0
    ... )
    >>> found.chosen_name
    'fair'
    >>> found.certified
    (True, False)
    """

    delta: float
    """The budget."""
    alpha: float
    """How often, at most, a policy above the budget is certified."""
    cap: float
    """What a query's disparity counts at most; the certificate is about the mean of min(D, cap)."""
    queries: int
    """How many calibration queries counted."""
    names: tuple[str, ...]
    """Of the policies, in the order of the path."""
    means: tuple[float, ...]
    """Mean of min(D, cap) of each policy on the calibration queries."""
    bounds: tuple[float, ...]
    """Upper bound of the population's mean, of each policy for itself, with confidence 1 - alpha.
    Those behind the first that is above the budget belong to no certificate."""
    utilities: tuple[float, ...]
    """Mean NDCG of each policy on the calibration queries."""
    n_certified: int
    """How many policies, from the first on, have a bound within the budget."""
    chosen: int | None
    """The number of the most useful certified policy on the path, from 0; None if there is none."""
    above_cap: int = 0
    """Disparities of all policies and calibration queries that were above ``cap``."""

    @property
    def chosen_name(self) -> str | None:
        """The name of the policy that was chosen, or None."""
        return None if self.chosen is None else self.names[self.chosen]

    @property
    def certified(self) -> tuple[bool, ...]:
        """For each policy, whether the budget is certified for it."""
        return tuple(number < self.n_certified for number in range(len(self.names)))

    @property
    def message(self) -> str:
        """The outcome in words."""
        return _message(self)

    def to_pandas(self) -> Any:
        """A pandas table with a row for each policy.

        Returns:
            A DataFrame with the columns ndcg, mean, bound and certified, by the policies' names.

        >>> found = Certificate(0.01, 0.1, 1.0, 9, ("a",), (0.0,), (0.2,), (0.8,), 0, None)
        >>> found.to_pandas().reset_index()
          policy  ndcg  mean  bound  certified
        0      a   0.8   0.0    0.2      False
        """
        pandas = require("pandas", "experiments")
        columns = {
            "ndcg": self.utilities,
            "mean": self.means,
            "bound": self.bounds,
            "certified": self.certified,
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="policy"))


def certify(
    policies: Mapping[str, Ranker] | Sequence[Ranker],
    calibration: Queries,
    delta: float,
    alpha: float = 0.1,
    *,
    cap: float = 1.0,
    disparity: str | Disparity = "d_group",
    merit: str | Merit = "identity",
    position_bias: Tensor | None = None,
    undefined: str | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Certificate:
    r"""The most useful policy of a path that keeps a budget on the population, if one does.

    With probability :math:`1 - \alpha` or more over the calibration queries, no certified policy
    has a mean disparity above :math:`\delta`:

    .. math:: P\bigl(E[\min(D, \mathrm{cap})] \le \delta
              \text{ for all certified policies}\bigr) \ge 1 - \alpha .

    This holds for any number of calibration queries and any distribution of D, if the queries are
    independent draws of the population, and if policies, their order, ``cap``, ``delta`` and
    ``alpha`` were chosen without them. See `fairpg_lite.betting`. Among the certified policies the
    one with the highest NDCG on the calibration queries is chosen. Chapter 14.

    Args:
        policies: The path, from the fairest to the most useful: by name, or in a list. Each is
            what `evaluate` judges: a scorer, scores ``(N,)`` of all documents, or one `Policy`
            for each query.
        calibration: Queries that were used neither to make the policies nor to order them.
        delta: The budget, above 0 and below ``cap``.
        alpha: How often, at most, the promise may be broken.
        cap: What a query's disparity counts at most. The smaller it is, the fewer queries are
            needed, and the less a rare, very unfair query weighs. `largest_disparity` of *other*
            queries, the training queries say, is what it should not be far below.
        disparity: A name in `fairpg_lite.measures.DISPARITIES`, or a function.
        merit: Of a relevance, by name or a function.
        position_bias: Attention per position ``(n,)``; None is 1/log2(1+j).
        undefined: What becomes of queries without a disparity, such as those of one group only.
            None counts them as 0, as `evaluate` does: then they are part of the population. "skip"
            leaves them out: then the promise is about queries that have a disparity.
        seed: Of the random order in which the queries are looked at. Whoever tries several and
            shows the best breaks the promise.
        progress: Whether to show a progress bar on stderr.

    Returns:
        Means, bounds, and the policy that was chosen; ``chosen`` is None, and ``message`` says why,
        if not even the first policy passes.

    Raises:
        ValueError: If an argument makes no sense.

    >>> from fairpg_lite import synthetic
    >>> calibration = synthetic(500, seed=1)
    >>> scores = calibration.features.sum(-1)
    >>> path = {f"temperature {t}": scores / t for t in (100, 4, 1)}
    >>> found = certify(path, calibration, delta=0.01, cap=0.25, progress=False)
    >>> found.chosen_name
    'temperature 4'
    """
    path = _named(policies)
    _check_numbers(delta, alpha, cap)
    if undefined not in (None, "skip"):
        raise ValueError(f"certify: undefined is {undefined!r}; give None or 'skip'.")
    measure = _measure_of(disparity)
    generator = torch.Generator().manual_seed(_check.seed("certify: seed", seed))
    order = torch.randperm(len(calibration), generator=generator)
    means = []
    bounds = []
    utilities = []
    above_cap = 0
    queries = 0
    with progress_bar("certify", len(path), "policy", progress) as bar:
        for name, ranker in path.items():
            judged = evaluate(
                ranker,
                calibration,
                ("ndcg", measure),
                merit=merit,
                position_bias=position_bias,
                undefined=undefined,
            )
            values = judged.per_query[measure.name].double()[order]
            values = values[~values.isnan()]
            _check_disparities(name, values)
            queries = len(values)
            above_cap += int((values > cap).sum())
            means.append(float(values.clamp(max=cap).mean()))
            bounds.append(float(betting_bound(values, alpha, cap=cap)))
            utilities.append(judged.means["ndcg"])
            bar.update(1)
    n_certified = 0
    while n_certified < len(bounds) and bounds[n_certified] <= delta:
        n_certified += 1
    chosen = None
    if n_certified > 0:
        chosen = max(range(n_certified), key=lambda number: utilities[number])
    return Certificate(
        delta=delta,
        alpha=alpha,
        cap=cap,
        queries=queries,
        names=tuple(path),
        means=tuple(means),
        bounds=tuple(bounds),
        utilities=tuple(utilities),
        n_certified=n_certified,
        chosen=chosen,
        above_cap=above_cap,
    )


def largest_disparity(
    dataset: Queries,
    *,
    merit: str | Merit = "identity",
    position_bias: Tensor | None = None,
) -> Tensor:
    r"""The largest D_group that any ranking of each query can have.

    For two groups D_group is the positive part of :math:`\sum_i c_i v_i`, where :math:`c` does not
    depend on the ranking, so the worst ranking sorts by :math:`c` (chapter 14).

    Args:
        dataset: Queries with groups.
        merit: Of a relevance, by name or a function.
        position_bias: Attention per position ``(n,)``; None is 1/log2(1+j).

    Returns:
        ``(Q,)``, 0 for a query with less than two groups that have merit. For more than two groups
        the sum over the pairs of the largest of each, which no ranking need attain.

    >>> from fairpg_lite import synthetic
    >>> largest_disparity(synthetic(3))
    tensor([0.1786, 0.1483, 0.0000], dtype=torch.float64)
    """
    if dataset.groups is None:
        raise ValueError("largest_disparity: the dataset has no groups; dataset.replace(groups=…).")
    lengths = dataset.lengths.tolist()
    longest = max(lengths)
    if position_bias is None:
        position_bias = default_bias(longest, dtype=torch.float64)
    if position_bias.ndim != 1 or len(position_bias) < longest:
        raise ValueError(
            f"largest_disparity: position_bias has shape {tuple(position_bias.shape)}; give a "
            f"value for each of the {longest} positions."
        )
    merits = merit_of(dataset.relevance.double(), merit)
    largest = []
    by_query = zip(merits.split(lengths), dataset.groups.split(lengths), strict=True)
    for query_merit, groups in by_query:
        rows = group_rows(query_merit, groups).rows
        attention = position_bias[: len(groups)].to(rows).sort(descending=True).values
        worst = (rows.sort(-1, descending=True).values @ attention).relu()
        if len(worst) == 0:
            largest.append(worst.new_zeros(()))
        elif len(groups.unique()) == 2:  # two rows are the two directions of a tie
            largest.append(worst.max())
        else:
            largest.append(worst.sum())
    return torch.stack(largest)


def _named(policies: Mapping[str, Ranker] | Sequence[Ranker]) -> dict[str, Ranker]:
    """The path by name; policies of a list are called by their numbers."""
    if isinstance(policies, Tensor) or not isinstance(policies, Mapping | Sequence):
        raise TypeError(
            f"certify: policies is {_check.kind_of(policies)}; give a list or a dictionary of "
            "rankers, from the fairest to the most useful."
        )
    if len(policies) == 0:
        raise ValueError("certify: policies is empty; give one at least.")
    if isinstance(policies, Mapping):
        return dict(policies)
    if isinstance(policies[0], Policy):
        raise TypeError(
            "certify: policies is a list of Policy, which is one ranker with a policy for each "
            "query; put it into a list, [policies]."
        )
    return {str(number): ranker for number, ranker in enumerate(policies)}


def _check_numbers(delta: float, alpha: float, cap: float) -> None:
    """Refuse a budget, a level or a cap that makes no sense."""
    if not 0.0 < cap < math.inf:
        raise ValueError(f"certify: cap is {cap}; give a number above 0.")
    if not delta > 0.0:
        raise ValueError(
            f"certify: delta is {delta}; no number of queries shows that a mean is 0, so give a "
            "budget above 0."
        )
    if not delta < cap:
        raise ValueError(
            f"certify: delta is {delta:g} and cap is {cap:g}; min(D, cap) is never above cap, so "
            "give a budget below it."
        )
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"certify: alpha is {alpha}; give a number above 0 and below 1.")


def _measure_of(disparity: str | Disparity) -> Measure:
    """The row of a disparity."""
    if callable(disparity):
        return of_disparity("disparity", "disparity", disparity)
    if disparity not in DISPARITIES:
        raise ValueError(
            f"certify: disparity is {disparity!r}; choose from {', '.join(DISPARITIES)}, or give a "
            "function."
        )
    return MEASURES[disparity]


def _check_disparities(name: str, values: Tensor) -> None:
    """Refuse values that betting cannot use."""
    if len(values) == 0:
        raise ValueError(
            "certify: no calibration query has a disparity; give queries with two groups that "
            "have merit, or undefined=None."
        )
    if bool((values < 0).any()) or not bool(values.isfinite().all()):
        worst = values.min().item()
        raise ValueError(
            f"certify: policy {name!r} has a query with disparity {worst:g}; give a disparity that "
            "is zero or more."
        )


def _message(certificate: Certificate) -> str:
    """The outcome of a certification in words."""
    confidence = f"confidence {1.0 - certificate.alpha:g}"
    if certificate.chosen is None:
        text = (
            f"none: the first policy, {certificate.names[0]}, has mean {certificate.means[0]:.3g} "
            f"on {certificate.queries} queries, and with {confidence} it is at most "
            f"{certificate.bounds[0]:.3g}, above the budget of {certificate.delta:g}"
        )
        needed = queries_needed(certificate.delta, certificate.alpha, cap=certificate.cap)
        if needed > certificate.queries:
            text += f"; even with no disparity at all, {needed} queries are needed"
        return text + _on_cap(certificate)
    number = certificate.chosen
    text = (
        f"{certificate.names[number]}: with {confidence} its disparity is at most "
        f"{certificate.bounds[number]:.3g} on the population, within the budget of "
        f"{certificate.delta:g} (mean {certificate.means[number]:.3g} on {certificate.queries} "
        "queries)"
    )
    if certificate.n_certified < len(certificate.names):
        stopped = certificate.names[certificate.n_certified]
        bound = certificate.bounds[certificate.n_certified]
        text += f"; the path ends at {stopped}, whose bound is {bound:.3g}"
    return text + _on_cap(certificate)


def _on_cap(certificate: Certificate) -> str:
    """What is to be said of disparities above the cap."""
    if certificate.above_cap == 0:
        return f"; no disparity was above the cap of {certificate.cap:g}."
    return (
        f"; {certificate.above_cap} disparities were above the cap of {certificate.cap:g} and "
        "count as the cap."
    )
