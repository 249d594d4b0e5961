"""Cells in this process, on processes of this machine, or on a Dask cluster (chapter 15).

Each way yields (number, outcome) in the order in which cells finish. An error in place of an
outcome is not the experiment's: its worker died, and the caller asks again.
"""

import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairpg_lite._extras import require
from fairpg_lite._records import Cell, Record, plain, versions

# A Dask worker may have several threads, and all that `same_world` sets belongs to the process.
_ONE_AT_A_TIME = threading.RLock()
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
Outcomes = Generator[tuple[int, Record | BaseException], None, None]


def outcomes(
    cells: Sequence[tuple[int, Cell]], n_jobs: int, scheduler: str | None, patience: float
) -> Outcomes:
    """Compute ``cells``; each outcome with its number as soon as it is there."""
    if scheduler is not None:
        require("distributed", "cluster")
        from fairpg_lite._cluster import on_cluster

        with on_cluster(scheduler, [cell for _, cell in cells], patience) as (submit, watch):
            yield from _gather(submit, cells, watch=watch)
    elif n_jobs == 1:
        for number, cell in cells:
            yield number, compute(cell, torch.get_default_dtype())
    else:
        yield from _in_processes(cells, n_jobs)


def _in_processes(cells: Sequence[tuple[int, Cell]], n_jobs: int) -> Outcomes:
    """On processes of this machine, which are kept for the next sweep unless there is an error."""
    require("joblib", "experiments")
    from joblib.externals import loky

    # A terminal sends Ctrl-C to all of a group; this process alone answers it.
    deaf = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    pool = loky.get_reusable_executor(n_jobs, timeout=300, env=_ONE_THREAD, **deaf)
    given: list[Future] = []

    def submit(*job: Any) -> Future:
        given.append(pool.submit(*job))
        return given[-1]

    # Ctrl-C interrupts the main thread only, so what another hands in is always known here.
    with futures.ThreadPoolExecutor(1) as hand:
        try:
            yield from _gather(lambda *job: hand.submit(submit, *job).result(), cells, 2 * n_jobs)
        except BaseException:  # Ctrl-C, or the caller has closed this generator
            # Killed, loky's thread looks for work that is handed in and not yet taken, and fails
            # with a traceback of its own; its queue holds more than `at_once`, so it takes all.
            hand.shutdown(wait=True)
            while not all(future.running() or future.done() for future in given):
                time.sleep(0.01)
            pool.shutdown(wait=True, kill_workers=True)
            raise


def _gather(
    submit: Callable[..., Future],
    cells: Sequence[tuple[int, Cell]],
    at_once: int = sys.maxsize,
    watch: Callable[[], None] = lambda: None,
) -> Outcomes:
    """All ``cells``, so many at once, on any executor; ``watch`` is called while nothing comes."""
    waiting, given = iter(cells), dict[Future, int]()
    while True:
        try:
            for number, cell in islice(waiting, at_once - len(given)):
                given[submit(compute, cell, torch.get_default_dtype())] = number
        except futures.BrokenExecutor:  # what it was given before says why
            waiting = iter(())
        if not given:
            return
        done, _ = futures.wait(given, timeout=1, return_when=futures.FIRST_COMPLETED)
        if not done:
            watch()
        for future in done:
            # An experiment's errors are in the outcome: this is its worker's, or of the way there.
            error = futures.CancelledError() if future.cancelled() else future.exception()
            yield given.pop(future), error or future.result()


def compute(cell: Cell, dtype: torch.dtype) -> Record:
    """Run one cell, in the caller's number format: its result, or the error it ended with."""
    with _ONE_AT_A_TIME:
        start = time.perf_counter()
        try:
            with same_world(cell.seed, dtype):
                result = cell.experiment(cell.lam, cell.seed)
            if not isinstance(result, dict):
                raise TypeError(f"{cell.experiment.name} returned {result!r}; return a dictionary.")
            outcome: Record = {"status": "done", "result": plain("result", result)}
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
    streams are for the experiment that forgets to pass a generator. All is put back afterwards.
    """
    threads, default = torch.get_num_threads(), torch.get_default_dtype()
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
            torch.set_num_threads(threads)
            torch.set_default_dtype(default)
            random.setstate(streams[0])
            np.random.set_state(streams[1])  # noqa: NPY002
