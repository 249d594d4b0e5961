"""Running a sweep's cells, in this process, in several, or on a Dask cluster (chapter 18).

Every finished run is a JSON file of its own, written by the process that asked for it, so a sweep
can be killed at any moment and run again: only what is missing is computed.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from fairpg_lite import _check
from fairpg_lite._extras import progress_bar, require
from fairpg_lite._files import probe, write_whole
from fairpg_lite.sweeps.cells import Cell, Experiment, grid
from fairpg_lite.sweeps.computing import Outcome, compute
from fairpg_lite.sweeps.records import Record, description, stored_record, write_record
from fairpg_lite.sweeps.settings import first_difference
from fairpg_lite.sweeps.tables import read_table

#: Rounds without a single finished cell before a sweep gives its workers up.
ATTEMPTS = 3
# What is to be computed, by label, and what takes each outcome.
Pending = dict[str, Cell]
Store = Callable[[str, Outcome], None]
Submit = Callable[..., "Future[Outcome]"]

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def sweep(
    experiment: Experiment,
    lams: Iterable[float],
    seeds: Iterable[int],
    out: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    timeout: float = 300.0,
    overwrite: bool = False,
    progress: bool = True,
) -> list[Record]:
    """Run an experiment at every lambda with every seed (chapter 18, eq-18-makespan).

    Args:
        experiment: What is run at each: a frozen dataclass that is called with lambda and seed.
        lams: Weights of the disparity.
        seeds: Whole numbers.
        out: As in `run_cells`.
        jobs: As in `run_cells`.
        scheduler: As in `run_cells`.
        timeout: As in `run_cells`.
        overwrite: As in `run_cells`.
        progress: As in `run_cells`.

    Returns:
        The records of all runs, lambda by lambda, as from `run_cells`.

    >>> import tempfile
    >>> from fairpg_lite import TrainConfig, synthetic
    >>> from fairpg_lite.sweeps import FairPGRank, Splits
    >>> data = synthetic(4, seed=0)
    >>> experiment = FairPGRank(Splits(data, data), TrainConfig(epochs=1))
    >>> with tempfile.TemporaryDirectory() as out:
    ...     records = sweep(experiment, [0, 5], range(2), out, progress=False)
    >>> [(record["lam"], record["seed"], record["status"]) for record in records[:2]]
    [(0.0, 0, 'done'), (0.0, 1, 'done')]
    """
    return run_cells(
        grid(experiment, lams, seeds),
        out,
        jobs=jobs,
        scheduler=scheduler,
        timeout=timeout,
        overwrite=overwrite,
        progress=progress,
    )


def run_cells(
    cells: Iterable[Cell],
    out: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    timeout: float = 300.0,
    overwrite: bool = False,
    progress: bool = True,
) -> list[Record]:
    """Run the cells that have no result in ``out`` yet, and return the records of all.

    The numbers are the same in one process, in several, and on a cluster. A cell that fails is
    stored with its error, announced by a RuntimeWarning, and tried again by the next call; a worker
    that dies costs nothing but time. A file that was cut off counts as missing. Ctrl-C stops at
    once and keeps what is finished.

    Args:
        cells: The runs; `grid` makes them.
        out: The directory of the results, a file for each run. What is there is not computed again;
            what was made there with other settings is an error.
        jobs: Processes on this machine.
        scheduler: Address of a Dask cluster to use instead, ``tcp://host:8786``. Its workers must
            have this process's versions; code of the experiment that is not installed is sent.
        timeout: Seconds that the cluster may be without a worker before the sweep gives up.
        overwrite: Compute everything anew.
        progress: Show a progress bar.

    Returns:
        The records in the order of the cells. Each has "experiment", "lam", "seed", "config" (the
        settings), "status" ("done" or "failed"), "result" or "error", "seconds", "commit" and
        "versions".

    >>> import tempfile
    >>> from fairpg_lite import TrainConfig, synthetic
    >>> from fairpg_lite.sweeps import FairPGRank, Splits
    >>> data = synthetic(4, seed=0)
    >>> cell = Cell(FairPGRank(Splits(data, data), TrainConfig(epochs=1)), lam=5.0, seed=0)
    >>> with tempfile.TemporaryDirectory() as out:
    ...     (record,) = run_cells([cell], out, progress=False)
    >>> sorted(record["result"])
    ['d_group', 'k', 'ndcg']
    """
    cells = list(cells)
    records = run_and_store(
        cells,
        Path(out),
        jobs=jobs,
        scheduler=scheduler,
        timeout=timeout,
        overwrite=overwrite,
        progress=progress,
    )
    failed = [record for record in records if record["status"] == "failed"]
    if failed:
        error = failed[0]["error"]
        path = cells[records.index(failed[0])].path(out)
        warnings.warn(
            f"sweep: {len(failed)} of {len(cells)} cells failed; the first is {path}: "
            f"{error['type']}: {error['message']}. A repeated sweep tries them again.",
            RuntimeWarning,
            stacklevel=2,
        )
    return records


def run_and_store(
    cells: Sequence[Cell],
    out: Path,
    *,
    jobs: int,
    scheduler: str | None,
    timeout: float,
    overwrite: bool,
    progress: bool,
) -> list[Record]:
    """The records of all cells in their order, after running those that are not stored yet."""
    _demand_different(cells)
    if not _check.is_whole(jobs) or jobs < 1:
        raise ValueError(f"sweep: jobs is {jobs!r}; give a whole number of processes, 1 or more.")
    if not timeout >= 0:
        raise ValueError(f"sweep: timeout is {timeout}; give seconds, zero or more.")
    records: dict[str, Record] = {}
    if not overwrite:
        records = _stored_records(cells, out)
    pending = {cell.label: cell for cell in cells if cell.label not in records}
    for folder in {cell.path(out).parent for cell in pending.values()}:
        probe(folder)  # before hours are spent
    with progress_bar("sweep", len(cells), "cell", progress) as bar:
        bar.update(len(records))

        def store(label: str, outcome: Outcome) -> None:
            cell = pending.pop(label)
            # Another sweep on the same directory may have been faster.
            record = None if overwrite else stored_record(cell, out, {})
            if record is None:
                record = description(cell) | outcome.record
                for name, content in outcome.files.items():
                    write_whole(cell.models(out) / name, content)
                write_record(cell.path(out), record)
            records[label] = record
            bar.update(1)

        _compute_until_done(pending, store, jobs, scheduler, timeout)
    return [records[cell.label] for cell in cells]


def _demand_different(cells: Sequence[Cell]) -> None:
    """Refuse no cells at all, and cells that would share a file."""
    if not cells:
        raise ValueError("sweep: there are no cells to run; give at least one lambda and one seed.")
    by_label: dict[str, Cell] = {}
    settings: dict[str, Record] = {}
    for cell in cells:
        name = cell.experiment.name
        difference = first_difference(settings.setdefault(name, cell.config), cell.config)
        if difference:
            raise ValueError(
                f"sweep: two experiments called {name!r} have different settings: {difference}; "
                "give them different names."
            )
        if cell.label in by_label:
            raise ValueError(
                f"sweep: {name} at lam={cell.lam:g} and seed={cell.seed} is given twice; drop one."
            )
        by_label[cell.label] = cell


def _stored_records(cells: Sequence[Cell], out: Path) -> dict[str, Record]:
    """The records of the cells that are done, by label."""
    table = read_table(out)
    records = {}
    for cell in cells:
        record = stored_record(cell, out, table)
        if record is not None:
            records[cell.label] = record
    return records


def _compute_until_done(
    pending: Pending, store: Store, jobs: int, scheduler: str | None, timeout: float
) -> None:
    """Compute until nothing is pending: cells that are lost with a worker are handed out again."""
    fruitless = 0
    while pending:
        before = len(pending)
        error = compute_all(pending, store, jobs, scheduler, timeout)
        fruitless = fruitless + 1 if len(pending) == before else 0
        if fruitless == ATTEMPTS:
            raise RuntimeError(
                f"sweep: {len(pending)} cells could not be run, their workers died {ATTEMPTS} "
                f"times ({type(error).__name__}: {error}), the first is {next(iter(pending))}. Is "
                "there memory enough, and can a worker import the experiment? The rest is stored."
            )
        if pending:  # a cell that kills its worker takes its neighbours along: others go first
            first = next(iter(pending))
            pending[first] = pending.pop(first)


def compute_all(
    pending: Pending, store: Store, jobs: int, scheduler: str | None, timeout: float
) -> BaseException | None:
    """Compute each cell once and store its outcome as soon as it is there.

    Returns the last error that is not the experiment's, if any: a worker died, and its cells are
    still pending.
    """
    if scheduler is not None:
        return _on_cluster(pending, store, scheduler, timeout)
    if jobs > 1:
        return _in_processes(pending, store, jobs)
    for label, cell in list(pending.items()):
        store(label, compute(cell, torch.get_default_dtype()))
    return None


def _on_cluster(
    pending: Pending, store: Store, scheduler: str, timeout: float
) -> BaseException | None:
    """Compute on the workers of a Dask cluster."""
    require("distributed", "cluster")  # before the import of what needs it
    from fairpg_lite.sweeps.cluster import connected

    with connected(scheduler, list(pending.values()), timeout) as cluster:

        def store_if_alike(label: str, outcome: Outcome) -> None:
            cluster.demand_versions("a worker that has joined", outcome.record["versions"])
            store(label, outcome)

        return _gather(pending, store_if_alike, cluster.submit, sys.maxsize, cluster.await_worker)


def _in_processes(pending: Pending, store: Store, jobs: int) -> BaseException | None:
    """Compute in processes of this machine, which are kept for the next sweep."""
    require("joblib", "experiments")
    from joblib.externals import loky

    pool = loky.get_reusable_executor(
        jobs,
        timeout=300,
        env=_ONE_THREAD,
        initializer=begin_worker,
        initargs=(os.getpid(),),
    )
    submitted: list[Future[Outcome]] = []

    # Ctrl-C interrupts the main thread only, so what another thread submits is always in the list.
    with futures.ThreadPoolExecutor(1) as submitting:

        def submit(*job: Any) -> "Future[Outcome]":
            submitting.submit(lambda: submitted.append(pool.submit(*job))).result()
            return submitted[-1]

        try:
            return _gather(pending, store, submit, at_once=2 * jobs)
        except BaseException:  # Ctrl-C, or a full disk
            # Killed, loky's thread looks for work that is submitted and not yet taken, and fails
            # with a traceback of its own; its queue holds more than `at_once`, so it takes all.
            submitting.shutdown(wait=True)
            while not all(future.running() or future.done() for future in submitted):
                time.sleep(0.01)
            pool.shutdown(wait=True, kill_workers=True)
            raise


def _worker_initializer() -> Callable[[int], None]:
    """What a new worker does first: see to it that it ends with the process that started it.

    A function within a function, as joblib sends such a one by its code. One of this module is sent
    by its name, which the worker looks up by importing PyTorch: seconds, in which the worker of a
    process that is killed would not notice.
    """

    def begin_worker(parent: int) -> None:
        """Leave Ctrl-C to the process that started this one, and end when that has ended.

        A terminal sends Ctrl-C to all of a group, and the parent alone answers it. A parent that is
        killed cannot end its workers; they would train on, and then wait for more. (Linux can end a
        process with its parent, but takes the end of the thread that started it for that.)

        Args:
            parent: The number of the process that started this one.
        """
        import os
        import signal
        import threading
        import time

        def end_after_parent() -> None:
            while os.getppid() == parent:
                time.sleep(0.5)
            os._exit(1)

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if os.name == "posix":  # elsewhere a process keeps the number of a parent that is gone
            threading.Thread(target=end_after_parent, daemon=True).start()

    return begin_worker


# One for all sweeps: joblib keeps its workers only for calls with the same initializer.
begin_worker = _worker_initializer()


def _gather(
    pending: Pending,
    store: Store,
    submit: Submit,
    at_once: int,
    while_waiting: Callable[[], None] | None = None,
) -> BaseException | None:
    """Submit what is pending, so many cells at once, and store what comes back."""
    waiting = iter(list(pending.items()))
    labels: dict[Future[Outcome], str] = {}
    last_error: BaseException | None = None
    while True:
        try:
            for label, cell in islice(waiting, at_once - len(labels)):
                labels[submit(compute, cell, torch.get_default_dtype())] = label
        except futures.BrokenExecutor:  # what was submitted before says why
            waiting = iter(())
        if not labels:
            return last_error
        done, _ = futures.wait(labels, timeout=1, return_when=futures.FIRST_COMPLETED)
        if not done and while_waiting is not None:
            while_waiting()
        for future in done:
            label = labels.pop(future)
            error = futures.CancelledError() if future.cancelled() else future.exception()
            if error is None:
                store(label, future.result())
            else:  # an experiment's errors are in the outcome: this is its worker's
                last_error = error
