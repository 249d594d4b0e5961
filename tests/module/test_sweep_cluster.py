"""The sweep on a real Dask cluster: two worker processes, one of which is killed on the way."""

import importlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sweep_experiments as experiments
import torch
from sweep_experiments import Careless, Deadly, Failing, Plain, Waiting

from fairpg_lite import TrainConfig, __version__, synthetic
from fairpg_lite.sweeps import (
    FairPGRank,
    Splits,
    grid,
    load_cells,
    run_cells,
    running,
    sweep,
)

distributed = pytest.importorskip("distributed")
from fairpg_lite.sweeps import cluster as cluster_module  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
START = 300  # seconds a worker may take to start


@pytest.fixture(scope="module")
def cluster():
    """One thread each, any free port; a killed worker is started again by its nanny."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
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
    cluster.wait_for_workers(2, timeout=START)
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
    cluster.wait_for_workers(2, timeout=START)
    before = {worker.pid for worker in cluster.scheduler.workers.values()}
    written, lost = [], []
    write, compute_all = running.write_record, running.compute_all

    def counted(path, cell):
        written.append(path)
        write(path, cell)

    def watched(*args):
        error = compute_all(*args)
        lost.extend([] if error is None else [error])
        return error

    monkeypatch.setattr(running, "write_record", counted)
    monkeypatch.setattr(running, "compute_all", watched)
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", allowed)
    flag.touch()
    out = tmp_path / "cluster"
    there = on(cluster, cells, out)
    (died,) = tmp_path.glob("flag.*")  # who renames it dies, and nobody else can
    # The dead one was struck off before its cells went elsewhere; the other one never died.
    after = {worker.pid for worker in cluster.scheduler.workers.values()}
    assert len(before) == 2
    assert before - after == {int(died.suffix[1:])}
    assert sorted(written) == sorted(cell.path(out) for cell in cells)
    assert timeless(there) == timeless(serial)
    assert timeless(load_cells(out)) == timeless(load_cells(tmp_path / "serial"))
    assert len([p for p in out.rglob("*") if p.is_file()]) == len(cells)
    # Where Dask gave up, that was no failure of the experiment.
    assert {type(error).__name__ for error in lost} <= {"KilledWorker"}
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
    write, written = running.write_record, []

    def interrupted(path, cell):
        write(path, cell)
        written.append(path)
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(running, "write_record", interrupted)
    gone = Gone(cluster.scheduler)
    with pytest.raises(KeyboardInterrupt):
        on(cluster, grid(Plain(pause=0.05), [0], range(500)), tmp_path)
    assert len(load_cells(tmp_path)) == 3
    assert gone.client.wait(timeout=START)
    assert len(cluster.scheduler.tasks) == 0  # what was queued is forgotten


class Gone(distributed.SchedulerPlugin):
    """Sets ``client`` when the scheduler is done with one that has left."""

    def __init__(self, scheduler):
        self.client = threading.Event()
        scheduler.add_plugin(self, name="gone")

    def remove_client(self, scheduler, client):
        self.client.set()


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1:{port}"])
def test_nobody_answers(tmp_path, monkeypatch, address):
    """Neither an address that is none, nor a free port."""
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = address.format(port=free.getsockname()[1])
        with pytest.raises(ConnectionError, match=f"no Dask scheduler answers at '{address}'"):
            sweep(Plain(), [0], [0], tmp_path, scheduler=address, progress=False)


# --- workers that are not what they should be ---


@pytest.fixture
def scheduler():
    """A scheduler in a process of its own, and a way to start workers with a PYTHONPATH."""
    processes = []

    def start(*words, path=""):
        env = {**os.environ, "PYTHONPATH": path, "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        processes.append(subprocess.Popen([sys.executable, "-P", *words], env=env, **pipes))
        return processes[-1]

    address = start("-c", SCHEDULER).stdout.readline().strip()  # its first word: it is there

    def worker(path):
        """Started, and known to the scheduler."""
        words = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", str(len(processes)))
        process = start("-m", "distributed.cli.dask_worker", address, *words, path=path)
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(len(processes) - 1, timeout=START)
        return process

    yield address, worker, processes
    for process in processes:
        process.kill()
        process.communicate()


SCHEDULER = """
import asyncio, distributed
async def main():
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""


def older_package(folder):
    """This package as its predecessor; returns the folder that holds it."""
    shutil.copytree(ROOT / "fairpg_lite", folder / "fairpg_lite")
    (folder / "fairpg_lite" / "_version.py").write_text('__version__ = "0.0.1"\n')
    return str(folder)


def test_workers_get_the_experiment_with_the_job_and_an_older_package_is_refused(
    scheduler, tmp_path
):
    """The first worker has the package and not the experiment; the second an older package."""
    address, worker, _ = scheduler
    worker(str(ROOT))
    cells = grid(Plain(), [0, 0.1], range(2))
    there = run_cells(cells, tmp_path / "there", scheduler=address, progress=False)
    assert timeless(there) == timeless(run_cells(cells, tmp_path / "here", progress=False))
    worker(older_package(tmp_path / "old"))
    with pytest.raises(ValueError, match=r"other versions .* fairpg_lite is '0\.0\.1' there and"):
        run_cells(cells, tmp_path / "mixed", scheduler=address, progress=False)
    assert load_cells(tmp_path / "mixed") == []


def test_a_worker_of_another_version_that_joins_later_is_refused(scheduler, tmp_path, monkeypatch):
    """In the midst of a sweep: none of its numbers is stored."""
    address, worker, _ = scheduler
    worker(str(ROOT))
    write = running.write_record
    old = []

    def join(path, cell):
        write(path, cell)
        if not old:
            old.append(worker(older_package(tmp_path / "old")))
            (tmp_path / "flag").touch()

    monkeypatch.setattr(running, "write_record", join)
    cells = grid(Waiting(str(tmp_path / "flag")), [0], range(100))
    with pytest.raises(ValueError, match="runs other versions than this process"):
        run_cells(cells, tmp_path / "out", scheduler=address, progress=False)
    stored = load_cells(tmp_path / "out")
    assert 1 <= len(stored) < 100
    assert {cell["versions"]["fairpg_lite"] for cell in stored} == {__version__}


def test_a_worker_without_the_package_is_refused(scheduler, tmp_path):
    address, worker, _ = scheduler
    empty = tmp_path / "fairpg_lite"
    empty.mkdir()
    (empty / "__init__.py").write_text("raise ImportError('not here')\n")
    worker(str(tmp_path))
    with pytest.raises(ValueError, match=r"cannot import fairpg_lite \(.*not here"):
        sweep(Plain(), [0], [0], tmp_path / "out", scheduler=address, progress=False)


def test_a_cluster_without_workers_is_named_and_given_up(scheduler, tmp_path, monkeypatch):
    """None from the start; then one that is killed in the midst of its cells."""
    address, worker, _ = scheduler
    monkeypatch.setattr(cluster_module, "WARN_SECONDS", 0.2)
    lacks = f"cluster at {address} has no worker; start one with `dask worker {address}`"
    with (
        pytest.warns(RuntimeWarning, match=f"{lacks}.*Waiting for it, 0.5 s in all"),
        pytest.raises(ConnectionError, match=rf"{lacks}.*Given up after 0\.5 s"),
    ):
        sweep(Plain(), [0], [0], tmp_path, scheduler=address, progress=False, timeout=0.5)
    process = worker(str(ROOT))
    write = running.write_record

    def kill_after_two(path, cell):
        write(path, cell)
        if path.name == "lam=0_seed=1.json":
            process.kill()
            process.wait()

    monkeypatch.setattr(running, "write_record", kill_after_two)
    monkeypatch.setattr(cluster_module, "WARN_SECONDS", 1e9)
    cells = grid(Plain(pause=0.2), [0], range(30))
    with pytest.raises(ConnectionError, match=lacks):
        run_cells(cells, tmp_path, scheduler=address, progress=False, timeout=3)
    assert 2 <= len(load_cells(tmp_path)) < 30


def test_a_killed_scheduler_is_named_and_what_is_finished_stays(scheduler, tmp_path, monkeypatch):
    address, worker, processes = scheduler
    worker(str(ROOT))
    write = running.write_record

    def kill_scheduler(path, record):
        write(path, record)
        monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 2.0)  # from here on nobody will
        processes[0].kill()

    monkeypatch.setattr(running, "write_record", kill_scheduler)
    with pytest.raises(ConnectionError, match=r"no Dask scheduler answers.*What is finished is st"):
        sweep(Plain(pause=0.1), [0], range(50), tmp_path, scheduler=address, progress=False)
    assert 1 <= len(load_cells(tmp_path)) < 50


def test_a_changed_experiment_is_sent_again(cluster, tmp_path, monkeypatch):
    """A worker that has run an older version of its code does not run it again."""
    package = tmp_path / "path" / "sent_experiments"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(package.parent))
    for number in (1, 2):
        (package / "answers.py").write_text(f"def answer():\n    return {number}\n")
        (package / "asking.py").write_text(ASKING)
        importlib.invalidate_caches()
        for name in [n for n in sys.modules if n.startswith("sent_experiments")]:
            del sys.modules[name]
        asking = importlib.import_module("sent_experiments.asking")
        (record,) = on(cluster, grid(asking.Asking(), [0], [0]), tmp_path / str(number))
        assert record["result"] == {"answer": number}


ASKING = """
from dataclasses import dataclass
from sent_experiments.answers import answer

@dataclass(frozen=True)
class Asking:
    name = "asking"

    def __call__(self, lam, seed):
        return {"answer": answer()}
"""


def test_models_come_home(cluster, tmp_path):
    """A worker may have another disk: its model is written by the process that asked for it."""
    data = synthetic(6, seed=0)
    experiment = FairPGRank(Splits(data, data), TrainConfig(epochs=1))
    on(cluster, grid(experiment, [0, 5], [0]), tmp_path / "there")
    run_cells(grid(experiment, [0, 5], [0]), tmp_path / "here", progress=False)
    for lam in (0, 5):
        name = f"models/Fair-PG-Rank/lam={lam}_seed=0/model.json"
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
