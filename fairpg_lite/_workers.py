"""Cells in this process, on processes of this machine, or on a Dask cluster (chapter 15).

Each way is a generator of (number, outcome) in the order in which cells finish. A cell whose worker
died is yielded as `Lost`: that is the machine's fault, not the experiment's, and the caller asks
again.
"""

import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import torch

from fairpg_lite._extras import require
from fairpg_lite._provenance import versions
from fairpg_lite._records import Cell, plain

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
    if scheduler is not None:
        require("distributed", "cluster")
        from fairpg_lite._cluster import on_cluster

        with on_cluster(scheduler, [cell for _, cell in cells], patience) as (submit, watch):
            yield from gather(submit, cells, watch=watch)
    elif n_jobs == 1:
        for number, cell in cells:
            yield number, compute(cell, torch.get_default_dtype())
    else:
        with _processes(n_jobs) as (submit, workers):
            yield from gather(submit, cells, at_once=2 * workers)


def gather(
    submit: Callable[..., Future],
    cells: Sequence[Numbered],
    at_once: int = sys.maxsize,
    watch: Callable[[], None] = lambda: None,
) -> Outcomes:
    """All ``cells``, so many at once, on any executor; ``watch`` is called while nothing comes."""
    waiting, numbers = iter(cells), dict[Future, int]()
    done: SimpleQueue[Future] = SimpleQueue()
    while True:
        try:
            for number, cell in islice(waiting, at_once - len(numbers)):
                future = submit(compute, cell, torch.get_default_dtype())
                numbers[future] = number
                future.add_done_callback(done.put)
        except BrokenExecutor:  # what it was given before says why
            waiting = iter(())
        if not numbers:
            return
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


@contextmanager
def _processes(n_jobs: int) -> Iterator[tuple[Callable[..., Future], int]]:
    """How to submit to processes of this machine, and their number; killed after an error.

    They are kept for the next sweep otherwise: a worker takes seconds to import torch.
    """
    require("joblib", "experiments")
    from joblib.externals import loky

    workers = loky.cpu_count() if n_jobs < 0 else n_jobs
    # A terminal sends Ctrl-C to all of a group; this process alone answers it.
    deaf = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    pool = loky.get_reusable_executor(workers, timeout=300, env=_ONE_THREAD, **deaf)
    given: list[Future] = []

    def submit(*job: Any) -> Future:
        given.append(pool.submit(*job))
        return given[-1]

    try:
        yield submit, workers
    except BaseException:  # Ctrl-C, or the caller has closed this generator
        # Killed, loky's thread looks for work that is handed in and not yet taken, and fails with
        # a traceback of its own; `at_once` is less than its queue holds, so it takes all soon.
        while not all(future.running() or future.done() for future in given):
            time.sleep(0.01)
        pool.shutdown(wait=True, kill_workers=True)
        raise


def compute(cell: Cell, dtype: torch.dtype) -> dict[str, Any]:
    """Run one cell: its result, or the error it ended with, beside versions and seconds.

    ``dtype`` is torch's default number format in the process that asked.
    """
    with _ONE_AT_A_TIME:
        start = time.perf_counter()
        outcome: dict[str, Any]
        try:
            with same_world(cell.seed, dtype):
                result = cell.experiment(cell.lam, cell.seed)
            if not isinstance(result, dict):
                raise TypeError(f"{cell.experiment.name} returned {result!r}; return a dictionary.")
            outcome = {"status": "done", "result": plain("result", result)}
        except (Exception, SystemExit) as error:
            # The way to the error from this function on, without this machine's directories.
            frames = traceback.extract_tb(error.__traceback__)[1:]
            way = [f"{Path(f.filename).name}:{f.lineno} in {f.name}: {f.line}" for f in frames]
            told = {"type": type(error).__name__, "message": str(error), "traceback": way}
            outcome = {"status": "failed", "error": told}
        seconds = round(time.perf_counter() - start, 6)
    return {**outcome, "versions": versions(), "seconds": seconds}


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
