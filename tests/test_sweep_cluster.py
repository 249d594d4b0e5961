"""The sweep on a real Dask cluster: two worker processes, one of which is killed on the way."""

import importlib
import os
import signal
import socket
import threading
import time

import pytest
import sweep_experiments as experiments
import torch
from sweep_experiments import Careless, Failing, Plain

from fairpg_lite import grid, load_cells, run_cells, sweep
from fairpg_lite._workers import Lost

distributed = pytest.importorskip("distributed")
sweep_module = importlib.import_module("fairpg_lite.sweep")
CELLS = grid(Plain(pause=0.15), [0, 0.1, 25], range(4)) + grid(Careless(), [0.5, 3], range(3))


@pytest.fixture(scope="module")
def cluster():
    """One thread each, no dashboard; a killed worker is started again by its nanny."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    return run_cells(CELLS, tmp_path_factory.mktemp("serial"), progress=False)


def timeless(cells):
    return [{key: value for key, value in cell.items() if key != "seconds"} for cell in cells]


def on(cluster, cells, out):
    return run_cells(cells, out, scheduler=cluster.scheduler_address, progress=False)


def test_the_cluster_gives_the_numbers_of_one_process(cluster, serial, tmp_path):
    experiments.calls.clear()
    cells = on(cluster, CELLS, tmp_path)
    assert timeless(cells) == timeless(serial)
    assert len(load_cells(tmp_path)) == len(CELLS)
    assert experiments.calls == []  # nothing ran here


def kill_a_busy_worker(cluster, out, killed):
    """Once three cells are stored, kill -9 a worker that has cells to compute."""
    while len(list(out.rglob("*.json"))) < 3:
        time.sleep(0.02)
    while not killed:
        for worker in list(cluster.scheduler.workers.values()):
            if worker.processing:
                os.kill(worker.pid, signal.SIGKILL)
                killed.append(worker.pid)
                break


@pytest.mark.parametrize("allowed", [3, 0], ids=["dask tries again", "dask gives up at once"])
def test_a_worker_is_killed_during_the_sweep(cluster, serial, tmp_path, monkeypatch, allowed):
    """Every cell ends exactly once, with the numbers of the serial run."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", allowed)
    written, lost = [], []
    write, outcomes = sweep_module.write_cell, sweep_module.outcomes

    def counted(path, cell):
        written.append(path)
        write(path, cell)

    def watched(*args):
        for got in outcomes(*args):
            lost.extend([got] if isinstance(got, Lost) else [])
            yield got

    monkeypatch.setattr(sweep_module, "write_cell", counted)
    monkeypatch.setattr(sweep_module, "outcomes", watched)
    killed = []
    killer = threading.Thread(target=kill_a_busy_worker, args=(cluster, tmp_path, killed))
    killer.start()
    cells = on(cluster, CELLS, tmp_path)
    killer.join()
    assert len(killed) == 1
    assert sorted(written) == sorted(cell.path(tmp_path) for cell in CELLS)
    assert timeless(cells) == timeless(serial)
    assert timeless(load_cells(tmp_path)) == timeless(
        sorted(serial, key=lambda c: (c["method"], c["lam"], c["seed"]))
    )
    if allowed == 0:  # Dask did give up, and that is no failure of the experiment
        assert lost
        assert all("KilledWorker" in got.reason for got in lost)
    assert len(list(tmp_path.rglob("*.*"))) == len(CELLS)


def test_a_failing_cell_fails_there_as_here(cluster, tmp_path):
    with pytest.warns(RuntimeWarning, match="2 of 6 cells failed"):
        there = on(cluster, grid(Failing(), [0, 1], range(3)), tmp_path / "there")
    with pytest.warns(RuntimeWarning, match="2 of 6 cells failed"):
        here = sweep(Failing(), [0, 1], range(3), tmp_path / "here", progress=False)
    assert timeless(there) == timeless(here)


def test_the_number_format_of_the_caller_holds_there(cluster, tmp_path):
    torch.set_default_dtype(torch.float64)
    try:
        cells = on(cluster, grid(Careless(), [1], range(2)), tmp_path / "there")
        here = run_cells(grid(Careless(), [1], range(2)), tmp_path / "here", progress=False)
    finally:
        torch.set_default_dtype(torch.float32)
    assert cells[0]["result"]["dtype"] == "torch.float64"
    assert timeless(cells) == timeless(here)


def test_ctrl_c_leaves_finished_cells_and_an_idle_cluster(cluster, tmp_path, monkeypatch):
    write, written = sweep_module.write_cell, []

    def interrupted(path, cell):
        write(path, cell)
        written.append(path)
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(sweep_module, "write_cell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        on(cluster, grid(Plain(pause=0.05), [0], range(500)), tmp_path)
    assert len(load_cells(tmp_path)) == 3
    deadline = time.monotonic() + 60
    while cluster.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(cluster.scheduler.tasks) == 0  # what was queued is forgotten


def test_nobody_answers(tmp_path, monkeypatch):
    monkeypatch.setattr("fairpg_lite._dask.PATIENCE", 1)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(ConnectionError, match=f"no Dask scheduler answers at '{address}'"):
        sweep(Plain(), [0], [0], tmp_path, scheduler=address, progress=False)
