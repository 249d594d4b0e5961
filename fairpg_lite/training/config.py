"""What a training run is told: `TrainConfig` (chapter 7)."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.relevance import GAINS, MERITS, Gain, Merit

#: A disparity of your own, (exposure, merit, groups, mask) -> one value per query.
Disparity = Callable[[Tensor, Tensor, Tensor | None, Tensor | None], Tensor]
#: A utility of your own, larger is better, (rankings, relevance, mask=mask) -> one value each.
Utility = Callable[..., Tensor]

#: Utilities that are linear in exposure; any other is a function of rankings.
UTILITIES = ("ndcg", "dcg")
#: Disparities that compare groups, so that they need to know them.
GROUP_DISPARITIES = ("group", "gap")


@dataclass(frozen=True)
class TrainConfig:
    """Settings of one run of Fair-PG-Rank; the defaults are the paper's where it names them.

    The first of them, to ``gain``, say what is maximised, the others how. Chapter 7.
    """

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
    optimizer: str = "adam"
    """"adam" or "sgd"."""
    lr: float = 1e-3
    """Learning rate."""
    lr_decay: float = 1.0
    """Factor on the learning rate after every epoch, at most 1."""
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
    compiled: str | bool = "auto"
    """Whether Numba trains instead of autograd, to the same numbers; "auto" where it can and where
    that pays, True (an error where it cannot), or False."""

    def __post_init__(self) -> None:
        self._numbers("samples", "epochs", "batch_size", above=True, whole=True)
        if self.patience is not None:
            self._numbers("patience", above=True, whole=True)
        self._numbers("tolerance", "lr", "lr_decay", above=True)
        self._numbers("lam", "entropy", "weight_decay")
        _check.seed("TrainConfig: seed", self.seed)
        self._choice("method", ("sample", "exact"))
        self._choice("baseline", ("mean", "loo", None))
        self._choice("utility", UTILITIES)
        self._choice("disparity", (*GROUP_DISPARITIES, "individual", None))
        self._choice("merit", tuple(MERITS))
        self._choice("gain", tuple(GAINS))
        self._choice("optimizer", ("adam", "sgd"))
        self._choice("compiled", ("auto", True, False))
        if self.draws and self.baseline is not None and self.samples < 2:
            self._refuse("samples", f"baseline={self.baseline!r} needs at least two")
        if self.lam > 0 and self.disparity is None:
            self._refuse("lam", "there is no disparity to weigh; choose one, or lam=0")
        if self.lr_decay > 1:
            self._refuse("lr_decay", "a decay makes less; give at most 1")

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
        """Plain values for a result file; functions by module and name, tensors as lists."""

        def plain(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value.tolist()
            if hasattr(value, "__qualname__"):
                return f"{value.__module__}.{value.__qualname__}"
            return repr(value) if callable(value) else value

        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}
