"""Cells in this process, on processes of this machine, or on a Dask cluster (chapter 15).

Each way is a generator of (number, outcome) in the order in which cells finish. A cell whose worker
died is yielded as `Lost`: that is the machine's fault, not the experiment's, and the caller asks
again.
"""

import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import torch

from fairpg_lite import _provenance
from fairpg_lite._cells import Cell, plain
from fairpg_lite._extras import require

# A Dask worker may have several threads, and all that `same_world` sets belongs to the process.
_ONE_AT_A_TIME = threading.RLock()
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
Numbered = tuple[int, Cell]


@dataclass(frozen=True)
class Lost:
    """In place of an outcome: the worker went away with the cell, and this was said of it."""

    reason: str


Outcomes = Generator[tuple[int, dict[str, Any]] | Lost, None, None]


def outcomes(
    cells: Sequence[Numbered], n_jobs: int, scheduler: str | None, patience: float
) -> Outcomes:
    """Compute ``cells``; each outcome with its number as soon as it is there."""
    dtype = torch.get_default_dtype()
    if scheduler is not None:
        require("distributed", "cluster")
        from fairpg_lite._cluster import on_cluster

        experiments = [cell for _, cell in cells]
        with on_cluster(scheduler, experiments, patience, compute) as (submit, watch):
            yield from gather(submit, watch, cells, dtype)
    elif n_jobs == 1:
        for number, cell in cells:
            yield number, compute(cell, dtype)
    else:
        require("joblib", "experiments")
        from joblib.externals import loky

        workers = loky.cpu_count() if n_jobs < 0 else n_jobs
        # Kept for the next sweep: a worker takes seconds to import torch.
        pool = loky.get_reusable_executor(max_workers=workers, timeout=300, env=_ONE_THREAD)
        try:
            yield from gather(partial(pool.submit, compute), lambda: None, cells, dtype)
        except BaseException:  # Ctrl-C, or the caller has closed this generator
            pool.shutdown(wait=True, kill_workers=True)
            raise


def gather(
    submit: Callable[[Cell, torch.dtype], Future],
    watch: Callable[[], None],
    cells: Sequence[Numbered],
    dtype: torch.dtype,
) -> Outcomes:
    """All ``cells``, on any executor; ``watch`` is called while nothing arrives."""
    done: SimpleQueue[Future] = SimpleQueue()
    numbers: dict[Future, int] = {}
    for number, cell in cells:
        future = submit(cell, dtype)
        numbers[future] = number
        future.add_done_callback(done.put)
    while numbers:
        try:
            future = done.get(timeout=1)
        except Empty:
            watch()
            continue
        number = numbers.pop(future)
        # An experiment's errors are in the outcome: these are its worker's, or of the way there.
        error = CancelledError() if future.cancelled() else future.exception()
        if error is None:
            yield number, future.result()
        else:
            yield Lost(f"{type(error).__name__}: {error}")


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
    inside = [path.relative_to(root).as_posix() for root in roots if path.is_relative_to(root)]
    return inside[0] if inside else path.name
