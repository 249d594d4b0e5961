"""Sweeps: a method at every lambda and seed, on one machine or many (chapter 15).

Every finished cell is a JSON file of its own, written by the process that calls `sweep`, so it can
be killed at any moment and run again: only what is missing is computed.
"""

import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairpg_lite import _check
from fairpg_lite._extras import progress_bar, require
from fairpg_lite._files import clear_leftovers, probe
from fairpg_lite.sweeps import records as _records
from fairpg_lite.sweeps.records import Cell, Record, collect, finished, grid, load_cells, write_cell

__all__ = ["Cell", "as_table", "collect", "grid", "load_cells", "run_cells", "sweep"]

# Rounds without a single finished cell before a sweep gives its workers up.
ATTEMPTS = 3
# A Dask worker may have several threads, and all that `same_world` sets belongs to the process.
_ONE_AT_A_TIME = threading.RLock()
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# What is to be computed, by the file it will be stored in, and what takes each outcome.
Pending = dict[Path, Cell]
Store = Callable[[Path, Record], None]


def sweep(
    experiment: Any, lambdas: Iterable[float], seeds: Iterable[int], out: str | Path, **how: Any
) -> list[Record]:
    """`run_cells` for every lambda with every seed (chapter 15, eq-15-makespan)."""
    return run_cells(grid(experiment, lambdas, seeds), out, **how)


def run_cells(
    cells: Iterable[Cell],
    out: str | Path,
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    patience: float = 300.0,
    force: bool = False,
    progress: bool = True,
) -> list[Record]:
    """Compute what is missing of ``cells`` below ``out``; all of them, in the order given.

    The numbers are the same on one process, on several (``n_jobs``) and on the Dask cluster at
    ``scheduler`` (``tcp://host:8786``). Its workers must have the versions of this process; code
    that is not installed is sent to them; without one for ``patience`` seconds the sweep gives up.
    A cell that fails is stored with its error and tried again by the next call; a worker that dies
    costs nothing but time. A file that was cut off counts as missing; one made with other settings
    is an error, unless ``force`` computes everything anew. Ctrl-C keeps what is finished.
    Chapter 15.
    """
    cells, out = list(cells), Path(out)
    if not cells or not _check.is_whole(n_jobs) or n_jobs < 1 or not patience >= 0:
        said = f"sweep: {len(cells)} cells, patience={patience} and n_jobs={n_jobs!r}"
        raise ValueError(f"{said}; give a lambda and a seed, seconds, and processes from 1 on.")
    # A cell's description refuses what cannot be stored.
    counted = Counter(_records.key(cell.about) for cell in cells)
    if twice := [cell.path("") for cell in cells if counted[_records.key(cell.about)] > 1]:
        remedy = "drop one, or give the experiments different names"
        raise ValueError(f"sweep: two cells would be stored as {twice[0]}; {remedy}.")
    table = {} if force else _records.read_table(out)
    found = {} if force else {cell.path(out): finished(cell, out, table) for cell in cells}
    stored = {path: record for path, record in found.items() if record is not None}
    for path in stored:
        clear_leftovers(path)  # of a sweep that was killed
    pending = {cell.path(out): cell for cell in cells if cell.path(out) not in stored}
    for folder in {path.parent for path in pending}:
        probe(folder)  # before hours are spent
    # Workers run this code to the letter, or they are refused: its commit is theirs.
    commit = _records.commit() if pending else ""
    with progress_bar("sweep", len(cells), "cell", progress) as bar:
        bar.update(len(stored))

        def store(path: Path, outcome: Record) -> None:
            cell = pending.pop(path)
            # Another sweep on the same directory may have been faster.
            theirs = None if force else finished(cell, out, {})
            stored[path] = theirs or {**cell.about, **outcome, "commit": commit}
            if theirs is None:
                write_cell(path, stored[path])
            bar.update(1)

        _persist(pending, store, n_jobs, scheduler, patience)
    records = {cell.path(out): stored[cell.path(out)] for cell in cells}
    if failed := {path: r["error"] for path, r in records.items() if r["status"] == "failed"}:
        first, error = next(iter(failed.items()))
        said = f"sweep: {len(failed)} of {len(cells)} cells failed; the first is {first}: "
        said += f"{error['type']}: {error['message']}. A repeated sweep tries them again."
        warnings.warn(said, RuntimeWarning, stacklevel=2)
    return [*records.values()]


def as_table(cells: Iterable[Record]) -> Any:
    """Finished cells as a pandas table: columns method, lam, seed, then the results, NDCG first."""
    rows = [{n: c[n] for n in ("experiment", "lam", "seed")} | c["result"] for c in cells]
    table = require("pandas", "experiments").DataFrame(rows)
    return table[sorted(table.columns, key=lambda n: n not in ("experiment", "lam", "seed", "ndcg"))]


def _persist(pending: Pending, store: Store, *how: Any) -> None:
    """Compute until nothing is ``pending``: cells lost with a worker are handed out again."""
    fruitless = 0
    while pending:
        before = len(pending)
        error = compute_all(pending, store, *how)
        fruitless = fruitless + 1 if len(pending) == before else 0
        if fruitless == ATTEMPTS:
            raise RuntimeError(
                f"sweep: {len(pending)} cells could not be run, their workers died {ATTEMPTS} "
                f"times ({type(error).__name__}: {error}), the first is {next(iter(pending))}. Is "
                "there memory enough, and can a worker import the experiment? The rest is stored."
            )
        # A cell that kills its worker takes its neighbours along: let others go first.
        for path in [*pending][:1]:
            pending[path] = pending.pop(path)


def compute_all(
    pending: Pending, store: Store, n_jobs: int, scheduler: str | None, patience: float
) -> BaseException | None:
    """Compute each cell once and `store` its outcome as soon as it is there.

    In this process, on processes of this machine, or on a Dask cluster. Returns the last error that
    is not the experiment's: a worker died, and its cells are still ``pending``.
    """
    if scheduler is not None:
        require("distributed", "cluster")
        from fairpg_lite.sweeps.cluster import on_cluster

        with on_cluster(scheduler, pending.values(), patience) as (submit, watch):
            return _gather(pending, store, submit, sys.maxsize, watch)
    if n_jobs > 1:
        return _in_processes(pending, store, n_jobs)
    for path, cell in [*pending.items()]:
        store(path, compute(cell, torch.get_default_dtype()))
    return None


def _in_processes(pending: Pending, store: Store, n_jobs: int) -> BaseException | None:
    """On processes of this machine, which are kept for the next sweep unless there is an error."""
    require("joblib", "experiments")
    from joblib.externals import loky

    # A terminal sends Ctrl-C to all of a group; this process alone answers it.
    deaf = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    pool = loky.get_reusable_executor(n_jobs, timeout=300, env=_ONE_THREAD, **deaf)
    given: list[Future] = []

    # Ctrl-C interrupts the main thread only, so what another hands in is always known here.
    with futures.ThreadPoolExecutor(1) as hand:

        def submit(*job: Any) -> Future:
            hand.submit(lambda: given.append(pool.submit(*job))).result()
            return given[-1]

        try:
            return _gather(pending, store, submit, 2 * n_jobs)
        except BaseException:  # Ctrl-C, or a full disk
            # Killed, loky's thread looks for work that is handed in and not yet taken, and fails
            # with a traceback of its own; its queue holds more than `at_once`, so it takes all.
            hand.shutdown(wait=True)
            while not all(future.running() or future.done() for future in given):
                time.sleep(0.01)
            pool.shutdown(wait=True, kill_workers=True)
            raise


def _gather(
    pending: Pending, store: Store, submit: Callable[..., Future], at_once: int, watch: Any = None
) -> BaseException | None:
    """All that is ``pending``, so many at once, on any executor; ``watch`` while nothing comes."""
    waiting, given, last = iter([*pending.items()]), dict[Future, Path](), None
    while True:
        try:
            for path, cell in islice(waiting, at_once - len(given)):
                given[submit(compute, cell, torch.get_default_dtype())] = path
        except futures.BrokenExecutor:  # what it was given before says why
            waiting = iter(())
        if not given:
            return last
        done, _ = futures.wait(given, timeout=1, return_when=futures.FIRST_COMPLETED)
        if watch and not done:
            watch()
        for future in done:
            # An experiment's errors are in the outcome: this is its worker's, or of the way there.
            error = futures.CancelledError() if future.cancelled() else future.exception()
            path, last = given.pop(future), error or last
            if error is None:
                store(path, future.result())


def compute(cell: Cell, dtype: torch.dtype) -> Record:
    """Run one cell, in the caller's number format: its result, or the error it ended with."""
    with _ONE_AT_A_TIME:
        start = time.perf_counter()
        try:
            with same_world(cell.seed, dtype):
                result = cell.experiment(cell.lam, cell.seed)
            if not isinstance(result, dict):
                raise TypeError(f"{cell.experiment.name} returned {result!r}; return a dictionary.")
            outcome: Record = {"status": "done", "result": _records.plain("result", result)}
        except (Exception, SystemExit) as error:
            # The way to the error from this function on, without this machine's directories.
            frames = traceback.extract_tb(error.__traceback__)[1:]
            way = [f"{Path(f.filename).name}:{f.lineno} in {f.name}: {f.line}" for f in frames]
            told = {"type": type(error).__name__, "message": str(error), "traceback": way}
            outcome = {"status": "failed", "error": told}
        seconds = round(time.perf_counter() - start, 6)
    return {**outcome, "versions": _records.versions(), "seconds": seconds}


@contextmanager
def same_world(seed: int, dtype: torch.dtype) -> Iterator[None]:
    """The same surroundings in every process: one thread, one number format, seeded streams.

    The number of threads changes the order of sums and hence the last digits. The global random
    streams are for the experiment that forgets to pass a generator. All is put back afterwards.
    """
    with torch.random.fork_rng(devices=[]), ExitStack() as afterwards:
        afterwards.callback(torch.set_num_threads, torch.get_num_threads())
        afterwards.callback(torch.set_default_dtype, torch.get_default_dtype())
        afterwards.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        afterwards.callback(random.setstate, random.getstate())
        torch.set_num_threads(1)
        torch.set_default_dtype(dtype)
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        yield
