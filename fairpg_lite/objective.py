"""The objective, U - lam * D + gamma * H, and its value for each query (chapters 2 and 7).

Everything but a metric that is not linear in exposure goes one way:
scores -> policy -> exposure -> plain functions.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairpg_lite import _check, metrics
from fairpg_lite.disparity import group_disparity, individual_disparity
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.relevance import GAINS, MERITS, Gain, Merit, merit_of
from fairpg_lite.scorers import Batch, documents_of

#: A disparity of your own, (exposure, merit, groups, mask) -> one value per query.
Disparity = Callable[[Tensor, Tensor, Tensor | None, Tensor | None], Tensor]
#: A utility of your own, larger is better, (rankings, relevance, mask=mask) -> one value each.
Utility = Callable[..., Tensor]

#: Utilities that are linear in exposure; any other is a function of rankings.
UTILITIES = ("ndcg", "dcg")
#: Disparities that compare groups, so that they need to know them.
GROUP_DISPARITIES = ("group", "gap")


@dataclass(frozen=True)
class Objective:
    """What is maximised; the defaults are the paper's where it names them."""

    lam: float = 0.0
    """Weight of the disparity in the objective, the paper's lambda."""
    disparity: str | Disparity | None = "group"
    """"group" (D_group), "gap" (the same in both directions), "individual" (D_ind), None, or a
    function of exposure and merit."""
    utility: str | Utility = "ndcg"
    """"ndcg", "dcg", or a function of rankings, to be maximised."""
    method: str = "sample"
    """How exposure gets its gradient, "sample" as in the paper or "exact"."""
    samples: int = 10
    """Rankings drawn per query, the paper's S."""
    baseline: str | None = "mean"
    """What is subtracted from a reward, "mean" (the paper), "loo" (unbiased) or None."""
    entropy: float = 0.0
    """Weight of the entropy of Softmax(scores), the paper's gamma."""
    merit: str | Merit = "identity"
    """Merit as a function of relevance, "identity", "square", "sqrt" or a function."""
    position_bias: Tensor | None = None
    """Attention per position ``(n,)`` for exposure and utility; None is 1/log2(1+j)."""
    tolerance: float = 1e-5
    """Accuracy of exact exposure while training."""
    gain: str | Gain = "exponential"
    """Gain of a relevance in NDCG and DCG, "exponential", "linear", "binary" or a function."""

    def __post_init__(self) -> None:
        self._numbers("samples", above=True, whole=True)
        self._numbers("tolerance", above=True)
        self._numbers("lam", "entropy")
        self._choice("method", ("sample", "exact"))
        self._choice("baseline", ("mean", "loo", None))
        self._choice("utility", UTILITIES)
        self._choice("disparity", (*GROUP_DISPARITIES, "individual", None))
        self._choice("merit", tuple(MERITS))
        self._choice("gain", tuple(GAINS))
        if self.draws and self.baseline is not None and self.samples < 2:
            self._refuse("samples", f"baseline={self.baseline!r} needs at least two")
        if self.lam > 0 and self.disparity is None:
            self._refuse("lam", "there is no disparity to weigh; choose one, or lam=0")

    def _refuse(self, name: str, remedy: str) -> None:
        raise ValueError(f"{type(self).__name__}: {name} is {getattr(self, name)!r}; {remedy}.")

    def _numbers(self, *names: str, above: bool = False, whole: bool = False) -> None:
        """Finite numbers of at least zero, or ``above`` it; ``whole`` ones may count things."""
        kind = "number above zero" if above else "finite number, zero or more"
        for name in names:
            value = getattr(self, name)
            if not (math.isfinite(value) and (value > 0 if above else value >= 0)):
                self._refuse(name, f"give a {kind}")
            if whole and not _check.is_whole(value):
                self._refuse(name, "give a whole number, an int")

    def _choice(self, name: str, allowed: tuple[Any, ...]) -> None:
        """One of the names, or a function where a field takes one."""
        value = getattr(self, name)
        free = name in ("utility", "disparity", "merit", "gain") and callable(value)
        if not free and value not in allowed:
            self._refuse(name, f"choose one of {', '.join(map(repr, allowed))}")

    @property
    def linear(self) -> bool:
        """Whether the utility is linear in exposure, so that it needs no sampling of its own."""
        return self.utility in UTILITIES

    @property
    def draws(self) -> bool:
        """Whether training draws rankings at all."""
        return self.method == "sample" or not self.linear

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a result file; functions by their name, tensors as lists."""

        def plain(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value.tolist()
            return getattr(value, "__name__", repr(value)) if callable(value) else value

        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


class Terms(NamedTuple):
    """Utility, disparity and entropy of each query ``(B,)``."""

    utility: Tensor
    disparity: Tensor
    entropy: Tensor

    def total(self, lam: float, gamma: float) -> Tensor:
        """What is maximised ``(B,)``: equation (1) plus the entropy term."""
        value = self.utility
        if lam > 0:
            value = value.sub(self.disparity, alpha=lam)
        if gamma > 0:
            value = value.add(self.entropy, alpha=gamma)
        return value


def batch_terms(
    scores: Tensor,
    batch: Batch,
    objective: Objective,
    generator: torch.Generator | None,
    weights: "NdcgWeights | None" = None,
) -> Terms:
    """The terms for ``scores (B, n)`` of a batch; ``weights`` saves working out NDCG's."""
    mask = None if bool(batch.mask.all()) else batch.mask
    policy = PlackettLuce(scores, mask)
    rankings = policy.sample((objective.samples,), generator) if objective.draws else None
    exposure = policy.exposure(
        objective.position_bias,
        objective.method,
        rankings=rankings,
        baseline=objective.baseline,
        tolerance=objective.tolerance,
    )
    utility = _utility(policy, exposure, rankings, batch, objective, weights)
    with torch.set_grad_enabled(torch.is_grad_enabled() and objective.lam > 0):
        disparity = _disparity(exposure, batch, mask, objective)
    with torch.set_grad_enabled(torch.is_grad_enabled() and objective.entropy > 0):
        entropy = policy.entropy()
    return Terms(utility, disparity, entropy)


def _utility(
    policy: PlackettLuce,
    exposure: Tensor,
    rankings: Tensor | None,
    batch: Batch,
    objective: Objective,
    weights: "NdcgWeights | None",
) -> Tensor:
    """The chosen utility ``(B,)``: from exposure where it is linear in it, else from rankings."""
    kind, relevance, mask = objective.utility, batch.relevance, policy.mask
    if callable(kind):
        assert rankings is not None
        return policy.expect(kind(rankings, relevance, mask=mask), rankings, objective.baseline)
    if kind == "dcg":
        return metrics.expected_dcg(exposure, relevance, gain=objective.gain, mask=mask)
    options = (relevance, objective.gain, objective.position_bias, mask)
    weight, constant = weights.of(batch) if weights else metrics.ndcg_weights(*options)
    return (weight * exposure).sum(-1) + constant


def _disparity(exposure: Tensor, batch: Batch, mask: Tensor | None, objective: Objective) -> Tensor:
    """The chosen disparity ``(B,)`` of an exposure ``(B, n)``; zeros if there is none."""
    kind, groups = objective.disparity, batch.groups
    if kind is None or (kind in GROUP_DISPARITIES and groups is None):
        return torch.zeros_like(exposure[..., 0])
    merit = merit_of(batch.relevance, objective.merit)
    if callable(kind):
        return kind(exposure, merit, groups, mask)
    if kind == "individual":
        return individual_disparity(exposure, merit, mask)
    assert groups is not None
    return group_disparity(exposure, merit, groups, mask, two_sided=kind == "gap")


class NdcgWeights:
    """NDCG's weights for all documents of a dataset and constants for its queries, made once."""

    def __init__(
        self, relevance: Tensor, offsets: Tensor, objective: Objective, dtype: torch.dtype
    ):
        self.offsets = offsets.to(relevance.device)
        lengths, grades = self.offsets.diff(), relevance.to(dtype)
        self.weight, self.constant = torch.empty_like(grades), grades.new_empty(len(lengths))
        for n in lengths.unique().tolist():  # queries of one length need no padding
            queries = (lengths == n).nonzero().squeeze(-1)
            rows = self.offsets[queries].unsqueeze(-1) + torch.arange(n, device=grades.device)
            self.weight[rows], self.constant[queries] = metrics.ndcg_weights(
                grades[rows], objective.gain, objective.position_bias, None
            )

    def of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Weights ``(B, n)``, zero for padding, and constants ``(B,)`` of a batch."""
        return documents_of(batch, self.weight, self.offsets), self.constant[batch.queries]
