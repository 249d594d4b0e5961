"""Experiments for the sweep's tests: importable, so that worker processes find them by name."""

import math
import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

calls: list[tuple[float, int]] = []
"""What ran in this process; a worker has a list of its own."""


@dataclass(frozen=True)
class Plain:
    """A few numbers with all their digits, after an optional pause."""

    factor: float = 3.0
    pause: float = 0.0
    name = "plain"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        calls.append((lam, seed))
        time.sleep(self.pause)
        return {"value": math.sqrt(self.factor * lam + seed), "path": [lam / 3, seed, "text", None]}


@dataclass(frozen=True)
class Careless:
    """Draws from the global streams, in the default number format, and sums in torch's order."""

    size: int = 5000
    name = "careless"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        numbers = torch.rand(self.size)
        return {
            "dtype": str(numbers.dtype),
            "sum": float((numbers * lam).sum()),
            "numpy": float(np.random.rand()),  # noqa: NPY002
            "python": random.random(),
            "threads": torch.get_num_threads(),
        }


@dataclass(frozen=True)
class Failing:
    """Fails at one seed, until the file `mended` exists."""

    at: int = 1
    mended: str = ""
    name = "failing"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        if seed == self.at and not (self.mended and Path(self.mended).exists()):
            raise ArithmeticError(f"seed {seed} does not converge")
        return {"value": lam + seed}


@dataclass(frozen=True)
class Deadly:
    """Kills the process it runs in, once: the first to rename `flag`, by its number, does it."""

    flag: str
    pause: float = 0.05
    name = "deadly"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        time.sleep(self.pause)
        if seed == 2:
            try:
                Path(self.flag).rename(f"{self.flag}.{os.getpid()}")
            except FileNotFoundError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return {"value": lam + seed}


@dataclass(frozen=True)
class Waiting:
    """All but the first seed wait until the file `flag` is there."""

    flag: str
    name = "waiting"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        while seed and not Path(self.flag).exists():
            time.sleep(0.01)
        return {"value": lam + seed}


@dataclass(frozen=True)
class Returning:
    """Returns what it is told to, in `box`."""

    key: str
    name = "returning"

    def __call__(self, lam: float, seed: int) -> Any:
        return box[self.key]


box: dict[str, Any] = {
    "nan": {"ndcg": 0.5, "theta": [1.0, float("nan")]},
    "infinity": {"ndcg": float("-inf")},
    "tensor": {"theta": torch.zeros(2)},
    "list": [1, 2],
    "numpy nan": {"ndcg": np.float64("nan")},
}
