"""One cell of a sweep: an experiment, a lambda and a seed (chapter 15)."""

import dataclasses
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from fairpg_lite import _check

# A directory name on every system; no separator, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]*")


class Experiment(Protocol):
    """One method on one data set: a frozen dataclass whose fields are its configuration."""

    @property
    def name(self) -> str: ...

    def __call__(self, lam: float, seed: int) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Cell:
    """One run: ``experiment(lam, seed)``, stored as one file.

    Chapter 15.
    """

    experiment: Experiment
    """A frozen dataclass with a ``name`` that can be called with (lam, seed)."""
    lam: float
    """Weight of the disparity, zero or more."""
    seed: int
    """Fixes data, initialisation and sampling, zero or more."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", _lam(self.lam, "Cell: lam"))
        object.__setattr__(self, "seed", _seed(self.seed, "Cell: seed"))
        if not dataclasses.is_dataclass(self.experiment) or isinstance(self.experiment, type):
            raise TypeError(
                f"Cell: experiment is {self.experiment!r}; give an instance of a frozen dataclass, "
                "whose fields are stored as its configuration."
            )
        name = getattr(self.experiment, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"Cell: the name of {type(self.experiment).__name__} is {name!r}; it becomes a "
                "directory: give letters, digits and any of ._+=- after the first of them."
            )

    @property
    def config(self) -> dict[str, Any]:
        """The experiment's class and fields, as they are stored."""
        fields = dataclasses.fields(self.experiment)  # type: ignore[arg-type]
        values = {field.name: getattr(self.experiment, field.name) for field in fields}
        return plain(self.experiment.name, {"class": type(self.experiment).__name__, **values})

    def path(self, out: str | Path) -> Path:
        """Where this cell is stored below ``out``; different cells never share a file."""
        lam = repr(self.lam).removesuffix(".0")
        return Path(out) / self.experiment.name / f"lam={lam}_seed={self.seed}.json"


def grid(experiment: Experiment, lambdas: Iterable[float], seeds: Iterable[int]) -> list[Cell]:
    """Every lambda with every seed, lambda by lambda.

    Chapter 15.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Square:
    ...     name = "square"
    ...
    ...     def __call__(self, lam, seed):
    ...         return {"value": lam**2 + seed}
    >>> [cell.path("runs").name for cell in grid(Square(), [0, 0.5], range(2))]
    ['lam=0_seed=0.json', 'lam=0_seed=1.json', 'lam=0.5_seed=0.json', 'lam=0.5_seed=1.json']
    """
    weights = _axis("lambdas", lambdas, _lam)
    numbers = _axis("seeds", seeds, _seed)
    return [Cell(experiment, lam, seed) for lam in weights for seed in numbers]


def _axis(name: str, values: Any, check: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"grid: {name} is {values!r}; give a sequence, such as range(5).")
    checked = [check(value, f"grid: {name}[{i}]") for i, value in enumerate(values)]
    if not checked:
        raise ValueError(f"grid: {name} is empty; give at least one.")
    for i, value in enumerate(checked):
        if value in checked[:i]:
            first = checked.index(value)
            raise ValueError(f"grid: {name}[{i}] is {value} again, as {name}[{first}]; drop one.")
    return checked


def _lam(value: Any, where: str) -> float:
    try:
        lam = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{where} is {value!r}; give a number.") from None
    if not (math.isfinite(lam) and lam >= 0):
        raise ValueError(f"{where} is {value!r}; give a finite number, zero or more.")
    return lam + 0.0  # -0.0 is 0.0 and has its file name


def _seed(value: Any, where: str) -> int:
    return _check.seed(where, value)


def plain(where: str, value: Any) -> Any:
    """``value`` as JSON gives it back, or an error that names the entry JSON cannot hold.

    Tuples become lists and numpy's scalars Python's; floats keep every digit. NaN and infinity
    are refused: they are no JSON, and a run that gives them has failed.

    >>> plain("result", {"ndcg": 0.5, "theta": (1, 2)})
    {'ndcg': 0.5, 'theta': [1, 2]}
    >>> plain("result", {"theta": [0.0, float("nan")]})
    Traceback (most recent call last):
    ...
    ValueError: result['theta'][1] is nan; only finite numbers can be stored, and None for a \
value that is not defined.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(
                f"{where} is {value!r}; only finite numbers can be stored, and None for a value "
                "that is not defined."
            )
        return float(value)
    if isinstance(value, list | tuple):
        return [plain(f"{where}[{i}]", entry) for i, entry in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(f"{where}[{key!r}]", entry) for key, entry in value.items()}
    if hasattr(value, "fingerprint"):  # a dataset: known by its content
        return {"class": type(value).__name__, "fingerprint": value.fingerprint()}
    if isinstance(value, FunctionType) and "<" not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return plain(where, {"class": type(value).__name__, **fields})
    raise TypeError(
        f"{where} is a {type(value).__name__}; only numbers, strings, None, lists and "
        "dictionaries with strings for keys can be stored (a tensor: .tolist(); a function: one "
        "with a name of its own in its module)."
    )
