"""The objective, U - lam * D + entropy * H, and its value for each query (chapters 2 and 7).

Everything but a metric that is not linear in exposure goes one way:
scores -> policy -> exposure -> plain functions.
"""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from fairpg_lite import _check, metrics
from fairpg_lite.batch import Batch, Queries
from fairpg_lite.disparity import Disparity, disparity_of, takes
from fairpg_lite.measures import DISPARITIES, MEASURES
from fairpg_lite.metrics import Utility
from fairpg_lite.policy import MakePolicy, PlackettLuce, Policy
from fairpg_lite.pooling import (
    POOLS,
    Pool,
    RunningPool,
    check_poolable,
    check_pooled_function,
    pooled_disparity,
)
from fairpg_lite.relevance import GAINS, MERITS, Gain, Merit, is_column, merit_of
from fairpg_lite.reward_to_go import BASELINES

#: Utilities that are linear in exposure; any other is a function of rankings.
LINEAR_UTILITIES = ("ndcg", "dcg")


class Estimator(Protocol):
    """A way to get exposure with a gradient, beside "sample" and "exact"."""

    def __call__(
        self,
        policy: PlackettLuce,
        position_bias: Tensor | None,
        generator: torch.Generator | None,
        /,
    ) -> Tensor:
        """Exposure, or an estimate of it, whose gradient in the scores is yours.

        Args:
            policy: With ``scores (B, n)``.
            position_bias: ``(n,)``; None is 1/log2(1+j).
            generator: Where random numbers come from.

        Returns:
            ``(B, n)``.
        """
        ...


class Terms(NamedTuple):
    """Utility, disparity and entropy of each query ``(B,)``.

    A pooled disparity is one number for all of them, repeated so that the mean is that number.
    """

    utility: Tensor
    disparity: Tensor
    entropy: Tensor


@dataclass(frozen=True)
class Objective:
    """What is maximised: mean U - lam * D + entropy * H over the queries."""

    lam: float = 0.0
    """Weight of the disparity in the objective, the paper's lambda."""
    disparity: str | Disparity | None = "d_group"
    """"d_group", "d_ind" or any other disparity in `fairpg_lite.measures`, a function of exposure,
    merit, groups and mask, or None."""
    utility: str | Utility = "ndcg"
    """"ndcg", "dcg", or a function of rankings, relevance and mask, to be maximised."""
    method: str | Estimator = "sample"
    """How exposure gets its gradient, "sample" as in the paper, "exact", or a function of policy,
    position bias and generator (`Estimator`).

    A rule of thumb, measured for 10 to 1,000 documents: "exact" takes as long as 2 to 20 rankings
    while scores lie a few units apart, as 10 to 80 where they lie 10 or 20 apart, and as 20 to
    1,600 with a cut-off; in that time it has at most a twentieth of the error of any sampled
    gradient, and mostly a thousandth or less; more than a hundredth only for ten documents whose
    scores lie 10 or 20 apart. A better gradient is not always a better training: of seven that
    were compared, by means over eight seeds, "exact" was the first at 99 % of the best objective
    in the three of Yahoo's shape, and a sampled gradient in the four of German Credit, where for
    a network the best of the sampled ones also ended higher. "sample" is for utilities that are
    no functions of exposure, and for steps that must be quicker than that."""
    samples: int = 10
    """Rankings drawn per query, the paper's S."""
    baseline: str | None = "mean"
    """What is subtracted from a reward, "mean" (the paper), "loo" (unbiased) or None; with
    ``reward_to_go`` also "uniform" (`PlackettLuce.sampled_exposure`)."""
    entropy: float = 0.0
    """Weight of the entropy of Softmax(scores), the paper's gamma. It regularises the training:
    validation queries choose the epoch by U - lam * D, without it."""
    merit: str | Merit = "identity"
    """Merit as a function of relevance, "identity", "square", "sqrt" or a function; or a column of
    the data, "column:NAME"."""
    position_bias: Tensor | None = None
    """Attention per position ``(n,)`` for exposure and utility; None is 1/log2(1+j). To train for
    the first ten positions, give ``position_bias(n, k=10)`` of `fairpg_lite.exposure`, and judge
    with the same, ``evaluate(..., position_bias=...)``."""
    tolerance: float = 1e-5
    """Order of the error of exact exposure while training, which is some four times this at most
    (`fairpg_lite.exact.exact_exposure`); a step needs fewer digits than a result, which
    `evaluate` integrates to 1e-10."""
    gain: str | Gain = "exponential"
    """Gain of a relevance in NDCG and DCG, "exponential", "linear", "binary" or a function."""
    # Results are stored that were made before there was this field.
    pooled: str = field(default="query", metadata={"stored": "if changed"})
    """Which documents the disparity compares, "query", those of each query; "item", the sums of
    each item over the queries in which its id occurs; "dataset", the documents of all queries as
    one list (`fairpg_lite.pooling`).

    In training the pool is a batch, in each process its own. Updates then follow the gradient of
    the mean pooled disparity of the batches that ``RankingDataset.batches`` forms of ``batch_size``
    queries, in which queries of similar length stand together. As an estimate of the gradient of
    the whole data set's pooled disparity that is biased, because a disparity is not linear in the
    sums, unless ``batch_size`` is the number of queries (or see ``running``). `evaluate` and the
    validation of a training pool the whole data set."""
    running: bool = field(default=False, metadata={"stored": "if changed"})
    """Whether the pool of a batch has all other queries in it, too, with the exposure that they had
    when they were last seen, at the start of the training at first.

    The disparity is then that of the whole data set, as far as it is remembered. Its gradient goes
    through the batch's own documents, and is scaled by the number of queries over that of the
    batch. Over the batches of an epoch its mean is the gradient of the whole data set's disparity
    at the remembered exposure: exactly the full gradient if the weights stood still, and biased by
    what they moved in the last epoch else, which vanishes with the learning rate. With
    ``method="sample"`` what is remembered is an estimate, too."""
    policy: MakePolicy | None = field(default=None, metadata={"stored": "if changed"})
    """What makes a policy of scores and mask; None is `PlackettLuce`. Another kind is trained with
    ``method="exact"``, by the gradient of its own exposure."""

    reward_to_go: bool = field(default=False, metadata={"stored": "if changed"})
    """Whether the exposure of a document pulls on the draws up to its own place only, instead of on
    all draws of a ranking, as in the paper (`fairpg_lite.reward_to_go`); for ``method="sample"``
    and a utility that is linear in exposure."""

    def __post_init__(self) -> None:
        self._demand_count("samples")
        self._demand_above_zero("tolerance")
        self._demand_zero_or_more("lam", "entropy")
        self._demand_choice("method", ("sample", "exact"), or_function=True)
        self._demand_choice("policy", (None,), or_function=True)
        self._demand_choice("baseline", BASELINES)
        self._demand_choice("reward_to_go", (True, False))
        self._demand_choice("utility", LINEAR_UTILITIES, or_function=True)
        self._demand_choice("disparity", (*DISPARITIES, None), or_function=True)
        if not is_column(self.merit):
            self._demand_choice("merit", tuple(MERITS), or_function=True)
        self._demand_choice("gain", tuple(GAINS), or_function=True)
        self._demand_choice("pooled", POOLS)
        self._demand_choice("running", (True, False))
        if self.running and self.pooled == "query":
            self._refuse("running", "there is no pool; choose pooled='item' or 'dataset'")
        if self.disparity is not None:
            function = self._disparity_function()
            name = self.disparity if isinstance(self.disparity, str) else "the disparity"
            check_pooled_function(type(self).__name__, name, function, self.pooled)
        if self.needs_rankings and self.baseline in ("mean", "loo") and self.samples < 2:
            self._refuse("samples", f"baseline={self.baseline!r} needs at least two")
        self._check_reward_to_go()
        if self.lam > 0 and self.disparity is None:
            self._refuse("lam", "there is no disparity to weigh; choose one, or lam=0")

    @property
    def is_linear(self) -> bool:
        """Whether the utility is linear in exposure, so that it needs no sampling of its own."""
        return self.utility in LINEAR_UTILITIES

    @property
    def needs_rankings(self) -> bool:
        """Whether rankings are drawn at all."""
        return self.method == "sample" or not self.is_linear

    @property
    def needs_groups(self) -> bool:
        """Whether the disparity compares groups."""
        return isinstance(self.disparity, str) and "groups" in MEASURES[self.disparity].needs

    def terms(
        self,
        scores: Tensor,
        batch: Batch,
        generator: torch.Generator | None = None,
        ideal: Tensor | None = None,
    ) -> Terms:
        """The terms of each query of a batch.

        Args:
            scores: ``(B, n)``.
            batch: The queries.
            generator: Where rankings are drawn from; None is torch's own stream.
            ideal: ``(Q,)``, what `ideals` has found for the whole dataset; None works it out.

        Returns:
            Utility, disparity and entropy, each ``(B,)``, with a gradient in the scores.
        """
        return self.terms_and_exposure(scores, batch, generator, ideal)[0]

    def terms_and_exposure(
        self,
        scores: Tensor,
        batch: Batch,
        generator: torch.Generator | None = None,
        ideal: Tensor | None = None,
        others: RunningPool | None = None,
    ) -> tuple[Terms, Tensor]:
        """The terms of each query of a batch, and the exposure ``(B, n)`` that they are made of.

        Args:
            scores: ``(B, n)``.
            batch: The queries.
            generator: Where rankings are drawn from; None is torch's own stream.
            ideal: ``(Q,)``, what `ideals` has found for the whole dataset; None works it out.
            others: All queries as they are remembered, to be pooled with the batch; None pools
                the batch alone.

        Returns:
            The terms, and the exposure.
        """
        mask = None if bool(batch.mask.all()) else batch.mask
        policy = PlackettLuce(scores, mask) if self.policy is None else self.policy(scores, mask)
        rankings = None
        if not self.is_linear:  # else what pays for exposure is drawn where exposure is
            rankings = policy.sample((self.samples,), generator)
        exposure = self._exposure(policy, rankings, generator)
        utility = self._utility(policy, exposure, rankings, batch, mask, ideal)
        # What has no weight is reported, and needs no gradient.
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.lam > 0):
            disparity = self._disparity(exposure, batch, mask, others)
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.entropy > 0):
            entropy = self._entropy(policy, exposure)
        return Terms(utility, disparity, entropy), exposure

    def pool_of(self, exposure: Tensor, batch: Batch) -> Pool:
        """The documents of a batch, to be pooled with those of others.

        Args:
            exposure: ``(B, n)``.
            batch: The queries.

        Returns:
            The pool.
        """
        if not _check.is_trusted():
            check_poolable(type(self).__name__, batch, self.pooled)
        merit = merit_of(batch.relevance, self.merit, batch.columns)
        return Pool.of_padded(
            exposure,
            merit,
            batch.mask,
            batch.queries,
            groups=batch.groups,
            document_ids=batch.document_ids,
        )

    def pooled_disparity(self, pool: Pool) -> Tensor:
        """The chosen disparity of a pool.

        Args:
            pool: Documents of many queries.

        Returns:
            One number, ``()``; zero if there is no disparity, or no groups that it needs.
        """
        if self.disparity is None or (self.needs_groups and pool.groups is None):
            return torch.zeros_like(pool.exposure).sum()
        return pooled_disparity(self._disparity_function(), pool, self.pooled)

    def total(self, terms: Terms) -> Tensor:
        """What is maximised ``(B,)``: equation (1) of the paper, plus the entropy term."""
        value = terms.utility
        if self.lam > 0:
            value = value.sub(terms.disparity, alpha=self.lam)
        if self.entropy > 0:
            value = value.add(terms.entropy, alpha=self.entropy)
        return value

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a result file; functions by module and name, tensors as lists."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def _exposure(
        self, policy: Policy, rankings: Tensor | None, generator: torch.Generator | None
    ) -> Tensor:
        """Exposure ``(B, n)`` with the gradient that the method gives it."""
        if self.method == "exact":
            if isinstance(policy, PlackettLuce):
                return policy.exposure(self.position_bias, self.tolerance)
            return policy.exposure(self.position_bias)
        if not isinstance(policy, PlackettLuce):
            raise TypeError(
                f"{type(self).__name__}: method is {self.method!r}, which needs a Plackett-Luce "
                f"policy, and policy makes a {type(policy).__name__}; choose method='exact'."
            )
        if callable(self.method):
            return self.method(policy, self.position_bias, generator)
        return policy.sampled_exposure(
            self.position_bias,
            samples=self.samples,
            generator=generator,
            rankings=rankings,
            baseline=self.baseline,
            reward_to_go=self.reward_to_go,
        )

    def _entropy(self, policy: Policy, exposure: Tensor) -> Tensor:
        """The entropy term ``(B,)``; zeros for a policy that is not one of scores."""
        if isinstance(policy, PlackettLuce):
            return policy.softmax_entropy()
        if self.entropy > 0:
            raise TypeError(
                f"{type(self).__name__}: entropy is {self.entropy}, which is that of Plackett-Luce "
                f"scores, and policy makes a {type(policy).__name__}; choose entropy=0."
            )
        return torch.zeros_like(exposure[..., 0])

    def _utility(
        self,
        policy: Policy,
        exposure: Tensor,
        rankings: Tensor | None,
        batch: Batch,
        mask: Tensor | None,
        ideal: Tensor | None,
    ) -> Tensor:
        """The chosen utility ``(B,)``."""
        if self.utility == "dcg":
            return metrics.expected_dcg(exposure, batch.relevance, gain=self.gain, mask=mask)
        if self.utility == "ndcg":
            return metrics.expected_ndcg(
                exposure,
                batch.relevance,
                gain=self.gain,
                position_bias=self.position_bias,
                mask=mask,
                ideal=None if ideal is None else ideal[batch.queries],
            )
        assert callable(self.utility)
        assert rankings is not None
        if not isinstance(policy, PlackettLuce):
            raise TypeError(
                f"{type(self).__name__}: a utility of your own is differentiated through "
                f"Plackett-Luce scores, and policy makes a {type(policy).__name__}; choose 'ndcg' "
                "or 'dcg'."
            )
        options: dict[str, Any] = {"mask": mask}
        if takes(self.utility, "columns"):
            options["columns"] = batch.columns or {}
        values = self.utility(rankings, batch.relevance, **options)
        return policy.expect(values, rankings, self.baseline)

    def _disparity(
        self, exposure: Tensor, batch: Batch, mask: Tensor | None, others: RunningPool | None
    ) -> Tensor:
        """The chosen disparity ``(B,)`` of an exposure ``(B, n)``; zeros if there is none."""
        if self.disparity is None or (self.needs_groups and batch.groups is None):
            return torch.zeros_like(exposure[..., 0])
        if others is not None:
            pool = others.with_batch(exposure, batch.mask, batch.queries)
            value = self.pooled_disparity(pool)
            # Only the batch's own documents have a gradient; the others' is as large on average.
            scale = others.query_count / len(batch.queries)
            value = value.detach() + scale * (value - value.detach())
            return value.expand(exposure.shape[:-1])
        if self.pooled != "query":
            value = self.pooled_disparity(self.pool_of(exposure, batch))
            return value.expand(exposure.shape[:-1])
        return disparity_of(
            self._disparity_function(),
            exposure,
            merit_of(batch.relevance, self.merit, batch.columns),
            groups=batch.groups,
            mask=mask,
            position_bias=self.position_bias,
            columns=batch.columns,
        )

    def _disparity_function(self) -> Disparity:
        """The plain function of the chosen disparity."""
        assert self.disparity is not None
        if isinstance(self.disparity, str):
            return DISPARITIES[self.disparity]
        return self.disparity

    def _check_reward_to_go(self) -> None:
        """Refuse reward-to-go, or its baseline, where it would do nothing or be wrong."""
        if self.baseline == "uniform" and not self.reward_to_go:
            self._refuse("baseline", "it is one for each draw; choose reward_to_go=True with it")
        if not self.reward_to_go:
            return
        if not self.is_linear:
            self._refuse(
                "reward_to_go",
                f"utility is {self.utility!r}, which is no function of exposure, so nobody can say "
                "which draw earned what; choose 'ndcg' or 'dcg', or reward_to_go=False",
            )
        if self.method != "sample":
            self._refuse(
                "reward_to_go",
                f"method is {self.method!r}, which differentiates no drawn rankings; choose "
                "method='sample', or reward_to_go=False",
            )

    def _refuse(self, name: str, remedy: str) -> None:
        raise ValueError(f"{type(self).__name__}: {name} is {getattr(self, name)!r}; {remedy}.")

    def _demand_zero_or_more(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                self._refuse(name, "give a finite number, zero or more")

    def _demand_above_zero(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                self._refuse(name, "give a number above zero")

    def _demand_count(self, *names: str) -> None:
        self._demand_above_zero(*names)
        for name in names:
            if not _check.is_whole(getattr(self, name)):
                self._refuse(name, "give a whole number, an int")

    def _demand_choice(
        self, name: str, choices: tuple[object, ...], *, or_function: bool = False
    ) -> None:
        value = getattr(self, name)
        if or_function and callable(value):
            return
        if value not in choices:
            self._refuse(name, f"choose one of {', '.join(map(repr, choices))}")


def ideals(dataset: Queries, objective: Objective, dtype: torch.dtype) -> Tensor:
    """Ideal DCG of every query of a dataset, to be worked out once for all epochs.

    Args:
        dataset: Q queries.
        objective: Its gain and position bias.
        dtype: The number format to compute in.

    Returns:
        ``(Q,)``.
    """
    lengths = dataset.lengths
    grades = dataset.relevance.to(dtype)
    ideal = grades.new_empty(len(lengths))
    for length in lengths.unique().tolist():  # queries of one length need no padding
        queries = (lengths == length).nonzero().squeeze(-1)
        rows = dataset.offsets[queries].unsqueeze(-1) + torch.arange(length, device=grades.device)
        ideal[queries] = metrics.ideal_dcg(
            grades[rows], gain=objective.gain, position_bias=objective.position_bias
        )
    return ideal


def _plain(value: Any) -> Any:
    """A field's value as JSON can hold it."""
    if isinstance(value, Tensor):
        return value.tolist()
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value) if callable(value) else value
