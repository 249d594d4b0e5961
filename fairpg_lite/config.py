"""What a training run is told, and what it tells: `TrainConfig` and `History` (chapter 7)."""

from dataclasses import dataclass, field
from typing import Any

import torch

from fairpg_lite import _check
from fairpg_lite.data import RankingDataset
from fairpg_lite.objective import GROUP_DISPARITIES, Objective


@dataclass(frozen=True)
class TrainConfig(Objective):
    """Settings of one run of Fair-PG-Rank; the defaults are the paper's where it names them.

    The fields of `Objective` say what is maximised, these how. Chapter 7.
    """

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
        super().__post_init__()
        self._numbers("epochs", "batch_size", above=True, whole=True)
        self._numbers("lr", "lr_decay", above=True)
        self._numbers("weight_decay")
        self._choice("optimizer", ("adam", "sgd"))
        self._choice("compiled", ("auto", True, False))
        _check.seed(f"{type(self).__name__}: seed", self.seed)
        if self.patience is not None:
            self._numbers("patience", above=True, whole=True)
        if self.lr_decay > 1:
            self._refuse("lr_decay", "a decay makes less; give at most 1")

    def check_data(self, dataset: RankingDataset) -> None:
        """Refuse queries that cannot be trained on with these settings."""
        if len(dataset) == 0:
            raise ValueError("fit: the dataset holds no query.")
        if self.lam > 0 and self.disparity in GROUP_DISPARITIES and dataset.groups is None:
            found = f"disparity={self.disparity!r} with lam > 0 needs groups"
            raise ValueError(f"fit: {found}; give the dataset some, or choose 'individual'.")
        # In pieces: on the whole array the check would need as much memory again, and more.
        if not all(bool(torch.isfinite(x).all()) for x in dataset.features.split(8192)):
            for name, query in zip(dataset.query_ids.tolist(), dataset, strict=True):
                _check.finite("fit", f"features of query {name}, at ", query.features)


@dataclass
class History:
    """One entry per epoch in each list; returned by ``fit``.

    ``utility`` and ``disparity`` are means over the training queries as seen during the epoch
    (sampled if the training sampled); ``valid_utility`` and ``valid_disparity`` are exact, on the
    validation set, after the epoch.
    """

    utility: list[float] = field(default_factory=list)
    disparity: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    valid_utility: list[float] = field(default_factory=list)
    valid_disparity: list[float] = field(default_factory=list)
    stopped: str = ""
    """Why training ended, "epochs", "patience" or "interrupted"."""
    kept: int = 0
    """The epoch, counted from 1, whose weights the scorer holds; 0 before the first."""
    compiled: bool = False
    """Whether the compiled way trained, and not autograd; the numbers are the same."""

    def __len__(self) -> int:
        return len(self.utility)

    def __repr__(self) -> str:
        epochs, stopped, kept, *_ = (told := self.summary()).values()
        measures = ", ".join(f"{k.replace('_', ' ')} {v:.5f}" for k, v in list(told.items())[3:])
        of = "" if kept == epochs else f", of which {kept} is kept"
        return f"History({epochs} epochs{of}: {measures}, stopped by {stopped or 'nothing yet'})"

    def append(self, **values: float) -> None:
        """Add a value to each of the named lists."""
        for name, value in values.items():
            getattr(self, name).append(value)

    def summary(self) -> dict[str, Any]:
        """The training in few numbers."""
        kept = self.kept or len(self)
        names = ("utility", "disparity", "valid_utility", "valid_disparity")
        last = {name: getattr(self, name)[kept - 1] for name in names if getattr(self, name)}
        return {"epochs": len(self), "stopped": self.stopped, "kept": kept, **last}
