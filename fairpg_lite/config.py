"""What to train, and how: one frozen dataclass, one sentence per field (chapter 7)."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairpg_lite.disparity import MERITS, Merit

#: A disparity of your own: (exposure, merit, groups, mask) -> one value per query.
Disparity = Callable[[Tensor, Tensor, Tensor | None, Tensor | None], Tensor]
#: A utility of your own, larger is better: (rankings, relevance, mask=mask) -> one value each.
Utility = Callable[..., Tensor]

LINEAR_UTILITIES = ("ndcg", "dcg")
SAMPLED_UTILITIES = ("err", "average_rank", "average_precision", "reciprocal_rank")


@dataclass(frozen=True)
class TrainConfig:
    """Settings of one run of Fair-PG-Rank; the defaults are the paper's where it names them.

    Chapter 7.
    """

    lam: float = 0.0
    """Weight of the disparity in the objective, the paper's lambda."""
    disparity: str | Disparity | None = "group"
    """"group" (D_group), "individual" (D_ind), None, or a function of exposure and merit."""
    utility: str | Utility = "ndcg"
    """"ndcg", "dcg", "err", "average_rank" (lower is better: its negative is maximised),
    "average_precision", "reciprocal_rank", or a function of rankings, to be maximised."""
    method: str = "sample"
    """How exposure gets its gradient: "sample" as in the paper, or "exact"."""
    samples: int = 10
    """Rankings drawn per query, the paper's S."""
    baseline: str | None = "mean"
    """What is subtracted from a reward: "mean" (the paper), "loo" (unbiased) or None."""
    entropy: float = 0.0
    """Weight of the entropy of Softmax(scores), the paper's gamma."""
    entropy_decay: float = 1.0
    """Factor on the entropy weight after every epoch."""
    merit: str | Merit = "identity"
    """Merit as a function of relevance: "identity", "square", "sqrt" or a function."""
    position_bias: Tensor | None = None
    """Attention per position ``(n,)`` for exposure and utility; None is 1/log2(1+j)."""
    undefined: float = 0.0
    """D_group of a query that lacks a group or its merit; a constant, so it moves nothing."""
    tolerance: float = 1e-5
    """Accuracy of exact exposure while training."""
    optimizer: str = "adam"
    """"adam" or "sgd"."""
    lr: float = 1e-3
    """Learning rate."""
    lr_decay: float = 1.0
    """Factor on the learning rate after every epoch."""
    weight_decay: float = 0.0
    """L2 penalty handed to the optimiser."""
    epochs: int = 20
    """Passes over the training queries."""
    batch_size: int = 1
    """Queries per update; 1 is the paper's one query at a time."""
    patience: int | None = None
    """Stop after so many epochs without a better objective on the validation set."""
    seed: int = 0
    """Fixes the order of queries (a generator seeded with 2 * seed) and the rankings drawn
    (another, with 2 * seed + 1); initialisation is the scorer's own."""
    dtype: torch.dtype | None = None
    """Number format of training; None keeps the scorer's."""
    device: str = "cpu"
    """Where to train."""

    def __post_init__(self) -> None:
        positive = ("samples", "epochs", "batch_size", "lr", "tolerance", "lr_decay")
        for name in positive:
            if not getattr(self, name) > 0:
                self._refuse(name, "give a number above zero")
        for name in ("lam", "entropy", "entropy_decay", "weight_decay"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                self._refuse(name, "give a finite number, zero or more")
        for name in ("samples", "epochs", "batch_size"):
            if getattr(self, name) != int(getattr(self, name)):
                self._refuse(name, "give a whole number")
        self._choice("method", ("sample", "exact"))
        self._choice("baseline", ("mean", "loo", None))
        self._choice("optimizer", ("adam", "sgd"))
        if not callable(self.utility):
            self._choice("utility", LINEAR_UTILITIES + SAMPLED_UTILITIES)
        if not callable(self.disparity):
            self._choice("disparity", ("group", "individual", None))
        if not callable(self.merit):
            self._choice("merit", tuple(MERITS))
        if self.draws and self.baseline is not None and self.samples < 2:
            self._refuse("samples", f"baseline={self.baseline!r} needs at least two")
        if self.lam > 0 and self.disparity is None:
            self._refuse("lam", "there is no disparity to weigh; choose one, or lam=0")
        if self.patience is not None and self.patience < 1:
            self._refuse("patience", "give at least one epoch, or None")

    def _refuse(self, name: str, remedy: str) -> None:
        raise ValueError(f"TrainConfig: {name} is {getattr(self, name)!r}; {remedy}.")

    def _choice(self, name: str, allowed: tuple[Any, ...]) -> None:
        if getattr(self, name) not in allowed:
            self._refuse(name, f"choose one of {', '.join(map(repr, allowed))}")

    @property
    def linear(self) -> bool:
        """Whether the utility is linear in exposure, so that it needs no sampling of its own."""
        return self.utility in LINEAR_UTILITIES

    @property
    def draws(self) -> bool:
        """Whether training draws rankings at all."""
        return self.method == "sample" or not self.linear

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a result file; functions by their name, tensors as lists."""

        def plain(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value.tolist()
            if isinstance(value, torch.dtype):
                return str(value).removeprefix("torch.")
            return getattr(value, "__name__", repr(value)) if callable(value) else value

        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}
