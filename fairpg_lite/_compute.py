"""What a worker does with one cell, wherever it runs (chapter 15)."""

import random
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairpg_lite import _provenance
from fairpg_lite._cells import Cell, plain

# A Dask worker may have several threads, and all that `same_world` sets belongs to the process.
_ONE_AT_A_TIME = threading.RLock()


def compute(cell: Cell, dtype: torch.dtype) -> dict[str, Any]:
    """Run one cell: its result, or the error it ended with, beside versions and seconds.

    ``dtype`` is torch's default number format in the process that asked.
    """
    with _ONE_AT_A_TIME:
        return _compute(cell, dtype)


def _compute(cell: Cell, dtype: torch.dtype) -> dict[str, Any]:
    start = time.perf_counter()
    outcome: dict[str, Any]
    try:
        with same_world(cell.seed, dtype):
            result = cell.experiment(cell.lam, cell.seed)
        if not isinstance(result, dict):
            raise TypeError(f"{cell.experiment.name} returned {result!r}; return a dictionary.")
        outcome = {"status": "done", "result": plain("result", result)}
    except (Exception, SystemExit) as error:
        outcome = {"status": "failed", "error": describe(error)}
    seconds = round(time.perf_counter() - start, 6)
    return {**outcome, "versions": _provenance.versions(), "seconds": seconds}


@contextmanager
def same_world(seed: int, dtype: torch.dtype) -> Iterator[None]:
    """The same surroundings in every process: one thread, one number format, seeded streams.

    The number of threads changes the order of sums and hence the last digits. The global random
    streams are for the experiment that forgets to pass a generator: it, too, must not depend on
    what ran before it in the same process. Everything is put back afterwards. On a Dask worker one
    gap remains: the worker's own threads draw from Python's `random` in the midst of a cell.
    """
    before = (torch.get_num_threads(), torch.get_default_dtype())
    streams = (random.getstate(), np.random.get_state())  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        torch.set_default_dtype(dtype)
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(before[0])
            torch.set_default_dtype(before[1])
            random.setstate(streams[0])
            np.random.set_state(streams[1])  # noqa: NPY002


def describe(error: BaseException) -> dict[str, Any]:
    """An error as it is stored: type, message and the way to it, without this machine's paths."""
    # The first frame is `_compute`, above.
    frames = traceback.extract_tb(error.__traceback__)[1:]
    way = [f"{_short(f.filename)}:{f.lineno} in {f.name}: {f.line}" for f in frames]
    return {"type": type(error).__name__, "message": str(error), "traceback": way}


def _short(filename: str) -> str:
    """The path below the package's or an installed library's root, else the bare name."""
    path = Path(filename)
    roots = [_provenance.PACKAGE.parent, *(Path(p) for p in sys.path if "-packages" in p)]
    for root in roots:
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return path.name
