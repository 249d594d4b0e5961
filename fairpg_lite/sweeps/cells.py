"""A cell of a sweep: one experiment at one lambda and one seed."""

import dataclasses
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

from fairpg_lite import _check
from fairpg_lite.sweeps.settings import as_json, settings_of

# A directory name on every system; no separator, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]*")


class Experiment(Protocol):
    """One method on one data set: a frozen dataclass whose fields are its settings.

    An experiment that leaves files behind, such as a trained model, takes a third argument ``out``:
    a folder to write them to (`fairpg_lite.sweeps.experiment.FairPGRank` is one).
    """

    @property
    def name(self) -> str:
        """What it is called in tables and figures, and the folder of its results."""

    def __call__(self, lam: float, seed: int, /) -> dict[str, Any]:
        """Run it.

        Args:
            lam: The weight of the disparity.
            seed: Fixes everything that is random.

        Returns:
            What it measured, by name: numbers, strings, lists and dictionaries of them, or None.
        """


@dataclass(frozen=True)
class Cell:
    """One run of a sweep, ``experiment(lam, seed)``.

    Two cells are the same run if experiment (its name and fields), lambda and seed are the same.

    >>> from fairpg_lite import synthetic
    >>> from fairpg_lite.sweeps import FairPGRank, Splits
    >>> data = synthetic(4, seed=0)
    >>> Cell(FairPGRank(Splits(data, data)), lam=5.0, seed=1).label
    'Fair-PG-Rank/lam=5_seed=1'
    """

    experiment: Experiment
    """What is run, a frozen dataclass with a name."""
    lam: float
    """Weight of the disparity, finite and not negative."""
    seed: int
    """A whole number from 0 up to below 2**61."""

    def __post_init__(self) -> None:
        if not dataclasses.is_dataclass(self.experiment) or isinstance(self.experiment, type):
            raise TypeError(
                f"Cell: experiment is {self.experiment!r}; give an instance of a frozen dataclass, "
                "whose fields are its settings."
            )
        name = getattr(self.experiment, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise TypeError(
                f"Cell: the experiment's name is {name!r}; give a name for a directory, of "
                "letters, digits and any of ._+=- after the first."
            )
        if isinstance(self.lam, bool) or not isinstance(self.lam, Real):
            raise TypeError(f"Cell: lam is {self.lam!r}; give a number.")
        if not 0 <= self.lam < math.inf:
            raise ValueError(f"Cell: lam is {self.lam!r}; give a finite number, zero or more.")
        object.__setattr__(self, "lam", float(self.lam) + 0.0)  # -0.0 is 0.0 and has its file name
        object.__setattr__(self, "seed", _check.seed("Cell: seed", self.seed))

    @cached_property
    def config(self) -> dict[str, Any]:
        """The experiment's class and fields as they are stored; refuses what cannot be."""
        return as_json(self.experiment.name, settings_of(self.experiment))

    @property
    def label(self) -> str:
        """The name of this cell's files; different cells have different ones."""
        lam = repr(self.lam).removesuffix(".0")
        return f"{self.experiment.name}/lam={lam}_seed={self.seed}"

    def path(self, out: str | Path) -> Path:
        """The JSON file that this cell is stored in, below ``out``."""
        return Path(out) / f"{self.label}.json"

    def models(self, out: str | Path) -> Path:
        """The folder of the files that the experiment writes, below ``out``."""
        return Path(out) / "models" / self.label


def grid(experiment: Experiment, lams: Iterable[float], seeds: Iterable[int]) -> list[Cell]:
    """Every lambda with every seed.

    Args:
        experiment: What is run at each.
        lams: Weights of the disparity.
        seeds: Whole numbers.

    Returns:
        The cells, lambda by lambda.

    >>> from fairpg_lite import synthetic
    >>> from fairpg_lite.sweeps import FairPGRank, Splits
    >>> data = synthetic(4, seed=0)
    >>> cells = grid(FairPGRank(Splits(data, data)), [0, 5], range(2))
    >>> [(cell.lam, cell.seed) for cell in cells]
    [(0.0, 0), (0.0, 1), (5.0, 0), (5.0, 1)]
    """
    return [Cell(experiment, lam, seed) for lam, seed in product(lams, seeds)]
