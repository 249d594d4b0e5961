"""A sweep on a real Dask cluster, beside one process and joblib's two: start, speed, a loss.

python -m benchmarks.cluster [--small]

The scheduler and two workers are processes of their own, started by the `dask` command. Measured
are the start, the same sweep on workers that run (each way in turn), and a sweep during which one
worker is killed for good, as when a machine goes down. Chapter 18 draws the stored file.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import distributed
import torch

from benchmarks import _timing
from benchmarks.sweep import authors_schedule, stop_workers
from fairpg_lite.sweeps import Cell, grid, run_cells

COMMAND = "python -m benchmarks.cluster"
SCHEDULER = "dask scheduler --port 0 --dashboard-address :0 --scheduler-file cluster.json"
WORKER = "dask worker --nthreads 1 --dashboard-address :0 --scheduler-file cluster.json"
WORKERS = 2
ROUNDS = 2
STORED = 4  # a worker is killed when so many cells are stored
Records = list[dict[str, Any]]


def run(
    cells: list[Cell],
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    kill: Callable[[], object] | None = None,
) -> Records:
    """The cells from an empty directory; ``kill`` is called as soon as STORED are stored."""
    with tempfile.TemporaryDirectory() as out:
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.01):
                if kill and len(list(Path(out).rglob("lam=*.json"))) >= STORED:
                    kill()
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            return run_cells(cells, out, jobs=jobs, scheduler=scheduler, progress=False)
        finally:
            over.set()
            watcher.join()


def start(command: str, folder: str) -> subprocess.Popen:
    """A `dask` command as a group of processes, so that a worker and its nanny die together."""
    program, *words = shlex.split(command)
    return subprocess.Popen(
        [str(Path(sys.executable).with_name(program)), *words],
        cwd=folder,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_workers(folder: str) -> str:
    """The scheduler's address, as soon as all workers have joined."""
    with distributed.Client(
        scheduler_file=str(Path(folder) / "cluster.json"), set_as_default=False, timeout=300
    ) as client:
        client.wait_for_workers(WORKERS, timeout=300)
        return client.scheduler.address


@contextmanager
def cluster() -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A scheduler and two workers, each started by its command; their address and the workers."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [start(SCHEDULER, folder)]
        try:
            workers = [start(WORKER, folder) for _ in range(WORKERS)]
            processes += workers
            yield wait_for_workers(folder), workers
        finally:
            for process in reversed(processes):
                end(process)


def kill_one_of_loky() -> None:
    from joblib.externals.loky import reusable_executor

    # The one that runs: asking for an executor with other settings would replace it.
    os.kill(next(iter(reusable_executor._executor._processes)), signal.SIGKILL)


def measure(cells: list[Cell], rounds: int) -> dict[str, Any]:
    """Seconds of each way: the start, the first sweep, later ones, and one with a loss."""
    records: dict[str, Records] = {}

    def timed(name: str, **options: Any) -> float:
        def work() -> None:
            records[name] = run(cells, **options)

        return _timing.seconds(work)

    stop_workers()
    spent: dict[str, dict[str, float]] = {"one process": {}, "joblib": {}, "dask": {}}
    spent["joblib"]["first sweep"] = timed("joblib first", jobs=WORKERS)
    cold = time.perf_counter()
    with cluster() as (address, workers):
        spent["dask"]["start"] = time.perf_counter() - cold
        spent["dask"]["first sweep"] = timed("dask first", scheduler=address)
        ways: dict[str, dict[str, Any]] = {
            "one process": {"jobs": 1},
            "joblib": {"jobs": WORKERS},
            "dask": {"scheduler": address},
        }
        later = _timing.interleaved(
            {name: partial(timed, name, **options) for name, options in ways.items()}, rounds
        )
        for name, seconds in later.items():
            spent[name]["later sweep"] = seconds
        spent["joblib"]["worker killed"] = timed(
            "joblib killed", jobs=WORKERS, kill=kill_one_of_loky
        )
        spent["dask"]["worker killed"] = timed(
            "dask killed", scheduler=address, kill=partial(end, workers[0])
        )
        lost = [worker.poll() is not None for worker in workers]
    results = {}
    for name, stored in records.items():
        results[name] = [record["result"] for record in stored]
    return {
        "cells": len(cells),
        "seconds": spent,
        "workers lost": sum(lost),
        "same numbers": all(result == results["one process"] for result in results.values()),
    }


def main(small: bool = False) -> None:
    """Measure, print and store; ``--small`` stores nothing."""
    torch.set_num_threads(1)
    epochs = 1 if small else 10
    cells = grid(authors_schedule(epochs), (0, 1, 5, 25), range(2 if small else 4))
    load = os.getloadavg()[0]
    measured = measure(cells, 1 if small else ROUNDS)
    print(json.dumps(measured, indent=1), flush=True)
    if not small:
        _timing.store(
            "cluster",
            COMMAND,
            dask=distributed.__version__,
            commands=[SCHEDULER, *[WORKER] * WORKERS],
            cores=os.cpu_count(),
            load=round(load, 1),
            epochs=epochs,
            **measured,
        )


if __name__ == "__main__":
    main(small="--small" in sys.argv[1:])
