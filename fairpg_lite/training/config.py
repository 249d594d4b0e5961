"""What a training run is told: `TrainConfig`."""

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import nn

from fairpg_lite import _check
from fairpg_lite.objective import Objective


class MakeOptimizer(Protocol):
    """What makes an optimiser; the classes of ``torch.optim`` are such."""

    def __call__(
        self, parameters: list[nn.Parameter], /, *, lr: float, weight_decay: float
    ) -> torch.optim.Optimizer:
        """The optimiser of the parameters.

        Args:
            parameters: What is trained.
            lr: Learning rate of the first epoch; later ones are set in its ``param_groups``.
            weight_decay: L2 penalty.

        Returns:
            A new optimiser.
        """
        ...


@dataclass(frozen=True)
class TrainConfig(Objective):
    """Settings of one run of Fair-PG-Rank; the defaults are the paper's where it names them.

    What is maximised is a `fairpg_lite.objective.Objective`, whose fields come first; the fields
    below say how. Settings that make no sense are refused when they are given (chapter 7).

    >>> TrainConfig(lam=10.0, disparity="d_ind", epochs=5).lr
    0.001
    """

    optimizer: str | MakeOptimizer = "adam"
    """"adam", "sgd", or what makes one of parameters, ``lr=`` and ``weight_decay=``, such as
    ``torch.optim.AdamW``."""
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
    """Stop after so many epochs without a better objective on the validation queries; None never
    does, nor does a training without validation queries."""
    seed: int = 0
    """Fixes the order of queries (a generator seeded with 2 * seed) and the rankings drawn
    (another, with 2 * seed + 1); initialisation is the scorer's own."""
    # Not compared: two runs that differ in nothing else are the same run, with the same numbers.
    compiled: str | bool = field(default="auto", compare=False)
    """Whether Numba trains instead of autograd, to the same numbers; "auto" where it can and where
    that pays, True (an error where it cannot), or False."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._demand_count("epochs", "batch_size")
        if self.patience is not None:
            self._demand_count("patience")
        self._demand_above_zero("lr", "lr_decay")
        if self.lr_decay > 1:
            self._refuse("lr_decay", "a decay makes less; give at most 1")
        self._demand_zero_or_more("weight_decay")
        self._demand_choice("optimizer", ("adam", "sgd"), or_function=True)
        self._demand_choice("compiled", ("auto", True, False))
        _check.seed("TrainConfig: seed", self.seed)
