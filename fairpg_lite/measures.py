"""The table of measures: what can be said about a policy on a query, by name.

A measure is one function and one row of `MEASURES`. `evaluate`, the command line, the columns of a
table and the axes of a figure read this table; a disparity in it can also be trained,
``TrainConfig(disparity=name)``.

A disparity is a function of expected exposure, so it cannot demand that every single list be fair
(Gorantla et al. 2023): two policies may expose every document alike, one by fair lists and one by
lists of which none is fair.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fairpg_lite import metrics
from fairpg_lite._memory import pieces
from fairpg_lite.disparity import (
    Disparity,
    disparity_of,
    group_disparity,
    group_gap,
    individual_disparity,
)
from fairpg_lite.exact import TOLERANCE, exact_err
from fairpg_lite.expected_exposure import (
    expected_exposure_disparity,
    expected_exposure_loss,
    expected_exposure_relevance,
)
from fairpg_lite.exposure import bias_like, ranking_exposure
from fairpg_lite.fair_division import dominance_shortfall, envy
from fairpg_lite.parity import (
    attention_weighted_rank_fairness,
    click_disparity,
    exposure_parity,
    signed_gap,
)
from fairpg_lite.policy import (
    DoublyStochastic,
    FixedRanking,
    Metric,
    Mixture,
    PlackettLuce,
    Policy,
)
from fairpg_lite.relevance import Gain, Merit, gains_of, merit_of
from fairpg_lite.uncertain_merit import phi_fairness
from fairpg_lite.welfare import (
    attention_inequity,
    gini_exposure,
    gini_welfare_loss,
    nash_welfare_loss,
)

NAN = float("nan")


@dataclass(frozen=True)
class Options:
    """The choices that measures depend on, beside the policy and the data."""

    k: int | None = None
    """Cut-off of "ndcg_at_k", "err", "ap" and "rr"; None is the whole list."""
    gain: str | Gain = "exponential"
    """Gain of a relevance, in NDCG."""
    merit: str | Merit = "identity"
    """What the disparities take for merit, a function of relevance or the name of a column."""
    max_grade: float = 4.0
    """Top of the scale, in ERR."""
    position_bias: Tensor | None = None
    """Attention per position, ``(n,)`` or longer; None is 1/log2(1+j)."""
    samples: int | None = None
    """Rankings to draw for a measure of whole rankings; None is exact where there is an exact way,
    and `SAMPLES` elsewhere."""
    tolerance: float = TOLERANCE
    """Accuracy of what is integrated."""
    method: str = "exact"
    """How exposure is found, "exact" or "sample", the mean over drawn rankings."""


#: Rankings drawn where a policy has no exact way to a measure of whole rankings.
SAMPLES = 1000


@dataclass(frozen=True)
class RankedQueries:
    """A policy and the queries that it ranks: what a measure looks at.

    The leading axes are those of the policy, B queries or none at all.
    """

    policy: Policy
    relevance: Tensor
    """``(…, n)``."""
    groups: Tensor | None
    """``(…, n)``, or None if the data have none."""
    mask: Tensor
    """``(…, n)``, True for a real document."""
    options: Options
    generator: torch.Generator | None = None
    posterior: Tensor | None = None
    """``(D, …, n)``, draws of relevance, or None."""
    columns: Mapping[str, Tensor] | None = None
    """Named values of the documents, each ``(…, n)``, or None."""

    @cached_property
    def exposure(self) -> Tensor:
        """Expected exposure ``(…, n)``, computed once for all measures that need it."""
        return self.exposure_by(self.options.position_bias)

    def exposure_by(self, position_bias: Tensor | None) -> Tensor:
        """Expected exposure ``(…, n)`` by another position bias."""
        is_listed = isinstance(self.policy, FixedRanking | DoublyStochastic)
        if self.options.method == "sample" and not is_listed:
            return self._drawn_exposure(position_bias)
        if isinstance(self.policy, PlackettLuce):
            return self.policy.exposure(position_bias, self.options.tolerance)
        return self.policy.exposure(position_bias)

    def _drawn_exposure(self, position_bias: Tensor | None) -> Tensor:
        """Mean exposure ``(…, n)`` over drawn rankings, a few at a time."""
        samples = SAMPLES if self.options.samples is None else self.options.samples
        bias = bias_like("evaluate", position_bias, self.relevance)
        total = torch.zeros_like(self.relevance)
        for part in pieces(samples, self.relevance.numel()):
            count = len(range(samples)[part])
            rankings = self.policy.sample((count,), self.generator)
            total += ranking_exposure(rankings, bias, self.policy.mask).sum(0)
        return total / samples

    @cached_property
    def position_probs(self) -> Tensor:
        """Probability of each position ``(…, n, n)`` [document, position]."""
        if isinstance(self.policy, PlackettLuce):
            return self.policy.position_probs(self.options.tolerance)
        return self.policy.position_probs()

    @cached_property
    def merit(self) -> Tensor:
        """Merit ``(…, n)``, zero for padding."""
        merit = merit_of(self.relevance, self.options.merit, self.columns)
        return torch.where(self.mask, merit, 0.0)

    @cached_property
    def grade(self) -> Tensor:
        """Relevance ``(…, n)``, zero for padding."""
        return torch.where(self.mask, self.relevance, 0.0)

    @cached_property
    def has_relevant(self) -> Tensor:
        """Whether anything is relevant, ``(…)``."""
        return (self.grade > 0).any(-1)


@dataclass(frozen=True)
class Measure:
    """One row of the table."""

    name: str
    """What it is called in ``measures=``, ``--disparity`` and the columns of a table."""
    label: str
    """What it is called in a table for people and on an axis."""
    compute: Callable[[RankedQueries], Tensor]
    """One value ``(…)`` for each query, NaN for a query that has no answer."""
    better: str
    """Which direction is better, "higher", "lower", or "zero" from both sides."""
    undefined: float
    """What a query without an answer counts; NaN leaves it out of the mean."""
    needs: tuple[str, ...] = ()
    """What must be there beside relevance, "groups", "posterior" or nothing."""
    math_label: str = ""
    """The label on an axis, if it is a formula."""
    function: Disparity | None = None
    """The plain function of exposure, merit, groups and mask, of a measure that is one; queries of
    such a measure can be pooled."""
    least: float = 0.0
    """The least value that a disparity can have; no budget can be below."""

    @property
    def disparity(self) -> Disparity | None:
        """The plain function, of a measure that can be trained; None of any other."""
        return self.function if self.better == "lower" else None

    @property
    def axis_label(self) -> str:
        """Label and direction, for an axis."""
        directions = {
            "higher": "higher is better",
            "lower": "lower is better" if self.disparity is None else "lower is fairer",
            "zero": "zero is fair",
        }
        return f"{self.math_label or self.label} ({directions[self.better]})"


def of_disparity(
    name: str,
    label: str,
    function: Disparity,
    *,
    needs: tuple[str, ...] = (),
    better: str = "lower",
    math_label: str = "",
    least: float = 0.0,
) -> Measure:
    """The row of a disparity.

    Args:
        name: What it is called in ``measures=`` and ``disparity=``.
        label: What it is called in a table for people.
        function: One value per query of exposure, merit, groups and mask.
        needs: ("groups",) if it compares groups.
        better: "lower"; or "higher" or "zero" for what is reported and cannot be trained.
        math_label: The label on an axis, if it is a formula.
        least: The least value that it can have.

    Returns:
        The row; a query without an answer counts 0, as it does in training.
    """

    def compute(ranked: RankedQueries) -> Tensor:
        return disparity_of(
            function,
            ranked.exposure,
            ranked.merit,
            groups=ranked.groups,
            mask=ranked.mask,
            position_bias=ranked.options.position_bias,
            undefined=NAN,
            columns=ranked.columns,
        )

    return Measure(name, label, compute, better, 0.0, needs, math_label, function, least)


def _ndcg(ranked: RankedQueries) -> Tensor:
    return metrics.expected_ndcg(
        ranked.exposure,
        ranked.relevance,
        gain=ranked.options.gain,
        position_bias=ranked.options.position_bias,
        mask=ranked.mask,
        undefined=NAN,
    )


def _ndcg_at_k(ranked: RankedQueries) -> Tensor:
    k = ranked.options.k
    n = ranked.relevance.shape[-1]
    if k is None or k >= n:
        return _ndcg(ranked)
    bias = bias_like("evaluate", ranked.options.position_bias, ranked.relevance).clone()
    bias[k:] = 0.0
    return metrics.expected_ndcg(
        ranked.exposure_by(bias),
        ranked.relevance,
        gain=ranked.options.gain,
        position_bias=bias,
        mask=ranked.mask,
        undefined=NAN,
    )


def _err(ranked: RankedQueries) -> Tensor:
    options = ranked.options

    def exact(policy: PlackettLuce) -> Tensor:
        satisfied = metrics.satisfaction(ranked.relevance, options.max_grade, policy.mask)
        return exact_err(policy.scores, satisfied, policy.mask, options.k, options.tolerance)

    def of_rankings(rankings: Tensor, mask: Tensor | None) -> Tensor:
        return metrics.err(
            rankings, ranked.relevance, max_grade=options.max_grade, k=options.k, mask=mask
        )

    return _over_policy(ranked.policy, ranked, of_rankings, exact).where(ranked.has_relevant, NAN)


def _rr(ranked: RankedQueries) -> Tensor:
    options = ranked.options

    def exact(policy: PlackettLuce) -> Tensor:
        # RR is the ERR of a reader whom any relevant document satisfies for certain.
        satisfied = gains_of("evaluate", ranked.relevance, "binary", policy.mask)
        satisfied = satisfied.to(policy.scores)
        return exact_err(policy.scores, satisfied, policy.mask, options.k, options.tolerance)

    def of_rankings(rankings: Tensor, mask: Tensor | None) -> Tensor:
        return metrics.reciprocal_rank(rankings, ranked.relevance, k=options.k, mask=mask)

    return _over_policy(ranked.policy, ranked, of_rankings, exact).where(ranked.has_relevant, NAN)


def _ap(ranked: RankedQueries) -> Tensor:
    """Average precision, by drawn rankings unless the policy has finitely many."""

    def of_rankings(rankings: Tensor, mask: Tensor | None) -> Tensor:
        return metrics.average_precision(rankings, ranked.relevance, k=ranked.options.k, mask=mask)

    return _over_policy(ranked.policy, ranked, of_rankings, None).where(ranked.has_relevant, NAN)


def _over_policy(
    policy: Policy,
    ranked: RankedQueries,
    of_rankings: Callable[[Tensor, Tensor | None], Tensor],
    exact: Callable[[PlackettLuce], Tensor] | None,
) -> Tensor:
    """The mean ``(…)`` of a metric of rankings and mask.

    It is exact if the policy has an exact way and no number of samples is asked for.
    """
    if ranked.options.samples is None and ranked.options.method == "exact":
        if isinstance(policy, Mixture):
            parts = [_over_policy(part, ranked, of_rankings, exact) for part in policy.policies]
            weights = policy.weights.to(parts[0])
            return torch.einsum("k,k...->...", weights, torch.stack(parts))
        if isinstance(policy, PlackettLuce) and exact is not None:
            return exact(policy)

    def metric(rankings: Tensor, /) -> Tensor:
        return of_rankings(rankings, policy.mask)

    return _expected(policy, metric, ranked)


def _average_rank(ranked: RankedQueries) -> Tensor:
    total = ranked.grade.sum(-1).where(ranked.has_relevant, NAN)
    return (ranked.grade * expected_rank(ranked.policy)).sum(-1) / total


def _phi(ranked: RankedQueries) -> Tensor:
    assert ranked.posterior is not None
    return phi_fairness(ranked.position_probs, ranked.posterior, ranked.mask)


def _expected(policy: Policy, metric: Metric, ranked: RankedQueries) -> Tensor:
    """The expectation ``(…)`` of a metric of rankings, exact for policies of finitely many."""
    samples = ranked.options.samples
    if samples is None and hasattr(policy, "expected_value"):
        exact: Tensor = policy.expected_value(metric)
        return exact
    rankings = policy.sample((SAMPLES if samples is None else samples,), ranked.generator)
    return metric(rankings).mean(0)


def expected_rank(policy: Policy) -> Tensor:
    """The position ``(…, n)`` that each document can expect, counted from 1."""
    if isinstance(policy, FixedRanking):
        return 1.0 + policy.mode.argsort(-1).to(policy.dtype)
    if not isinstance(policy, PlackettLuce):
        probs = policy.position_probs()
        return probs @ torch.arange(1, probs.shape[-1] + 1).to(probs)
    # One plus the chance of each other document to come first.
    scores = policy.scores
    rank = torch.empty_like(scores)
    for rows in pieces(scores.shape[-1], scores.numel()):
        is_ahead = (scores.unsqueeze(-2) - scores[..., rows, None]).sigmoid_()
        if policy.mask is not None:
            is_ahead = is_ahead.mul_(policy.mask.unsqueeze(-2))
        rank[..., rows] = is_ahead.sum(-1)
    return 0.5 + rank  # the sum counts a document's own half


_ROWS = (
    Measure("ndcg", "NDCG", _ndcg, "higher", 1.0),
    Measure("ndcg_at_k", "NDCG@k", _ndcg_at_k, "higher", 1.0),
    Measure("err", "ERR", _err, "higher", 0.0),
    Measure("ap", "AP", _ap, "higher", 0.0),
    Measure("rr", "RR", _rr, "higher", 0.0),
    Measure("average_rank", "average rank", _average_rank, "lower", NAN),
    of_disparity("d_ind", "D_ind", individual_disparity, math_label=r"$D_{\mathrm{ind}}$"),
    of_disparity(
        "d_group",
        "D_group",
        group_disparity,
        needs=("groups",),
        math_label=r"$D_{\mathrm{group}}$",
    ),
    of_disparity("group_gap", "two-sided gap", group_gap, needs=("groups",)),
    of_disparity("signed_gap", "signed gap", signed_gap, needs=("groups",), better="zero"),
    of_disparity("parity", "parity of exposure", exposure_parity, needs=("groups",)),
    of_disparity("clicks", "disparate impact", click_disparity, needs=("groups",)),
    of_disparity("awrf", "AWRF", attention_weighted_rank_fairness, needs=("groups",)),
    of_disparity("ee_l", "EE-L", expected_exposure_loss),
    of_disparity("ee_d", "EE-D", expected_exposure_disparity),
    of_disparity("ee_r", "EE-R", expected_exposure_relevance, better="higher"),
    of_disparity("gini", "Gini of exposure", gini_exposure),
    of_disparity("nash", "Nash welfare loss", nash_welfare_loss, least=-math.inf),
    of_disparity("gini_welfare", "Gini welfare loss", gini_welfare_loss, least=-math.inf),
    of_disparity("inequity", "inequity of attention", attention_inequity),
    of_disparity("envy", "envy", envy),
    of_disparity("dominance", "loss against a random ranking", dominance_shortfall),
    Measure("phi", "phi-fairness", _phi, "higher", NAN, needs=("posterior",)),
)
#: All measures by name, in the order in which tables show them.
MEASURES: dict[str, Measure] = {row.name: row for row in _ROWS}
#: Those of the paper, which the command line shows unless it is asked for others.
DEFAULT_MEASURES = ("ndcg", "ndcg_at_k", "err", "average_rank", "d_ind", "d_group", "group_gap")
#: The plain functions of those that can be trained.
DISPARITIES: dict[str, Disparity] = {
    row.name: row.disparity for row in _ROWS if row.disparity is not None
}
