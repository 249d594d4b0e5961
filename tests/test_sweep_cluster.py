"""The sweep on a real Dask cluster: two worker processes, one of which is killed on the way."""

import importlib
import socket
import time

import pytest
import sweep_experiments as experiments
import torch
from sweep_experiments import Careless, Deadly, Failing, Plain

from fairpg_lite import grid, load_cells, run_cells, sweep
from fairpg_lite._workers import Lost

distributed = pytest.importorskip("distributed")
sweep_module = importlib.import_module("fairpg_lite.sweep")


@pytest.fixture(scope="module")
def cluster():
    """One thread each, no dashboard; a killed worker is started again by its nanny."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def timeless(cells):
    """Cells without what may differ: time, and what was drawn from Python's own global stream.

    A Dask worker's other threads draw from `random` too, in the midst of a cell; those of torch and
    NumPy they leave alone.
    """
    stripped = []
    for cell in cells:
        kept = {key: value for key, value in cell.items() if key != "seconds"}
        if "result" in kept:
            kept["result"] = {k: v for k, v in kept["result"].items() if k != "python"}
        stripped.append(kept)
    return stripped


def on(cluster, cells, out):
    cluster.wait_for_workers(2)
    return run_cells(cells, out, scheduler=cluster.scheduler_address, progress=False)


def test_the_cluster_gives_the_numbers_of_one_process(cluster, tmp_path):
    cells = grid(Plain(), [0, 0.1, 25], range(3)) + grid(Careless(), [0.5, 3], range(3))
    here = run_cells(cells, tmp_path / "here", progress=False)
    experiments.calls.clear()
    there = on(cluster, cells, tmp_path / "there")
    assert experiments.calls == []  # nothing ran in this process
    assert timeless(there) == timeless(here)
    assert len(load_cells(tmp_path / "there")) == len(cells)


@pytest.mark.parametrize("allowed", [3, 0], ids=["dask tries again", "dask gives up at once"])
def test_a_worker_is_killed_during_the_sweep(cluster, tmp_path, monkeypatch, allowed):
    """kill -9 in the middle of a cell: every cell ends exactly once, with the serial numbers."""
    flag = tmp_path / "flag"
    cells = grid(Deadly(str(flag)), [0, 0.1, 25], range(4)) + grid(Careless(), [0.5, 3], range(3))
    serial = run_cells(cells, tmp_path / "serial", progress=False)  # no flag yet: nobody dies
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
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", allowed)
    before = {worker.pid for worker in cluster.scheduler.workers.values()}
    flag.touch()
    out = tmp_path / "cluster"
    there = on(cluster, cells, out)
    assert not flag.exists()
    assert len(before & {worker.pid for worker in cluster.scheduler.workers.values()}) == 1
    assert sorted(written) == sorted(cell.path(out) for cell in cells)
    assert timeless(there) == timeless(serial)
    assert timeless(load_cells(out)) == timeless(load_cells(tmp_path / "serial"))
    assert len([p for p in out.rglob("*") if p.is_file()]) == len(cells)
    # Where Dask gave up, that was no failure of the experiment.
    assert all("KilledWorker" in got.reason for got in lost)
    assert len(lost) >= (allowed == 0)


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
