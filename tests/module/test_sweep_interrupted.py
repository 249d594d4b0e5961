"""Ctrl-C stops a sweep at once: a real SIGINT in the midst of a training, then the same call again.

No run that was half trained is stored, and what the second call ends with is, byte by byte, what an
undisturbed one leaves. A sweep that is killed leaves no worker behind.
"""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fairpg_lite.sweeps import load_cells

HERE = Path(__file__).parent
# The time that a run took is the one thing that may differ.
SECONDS = [
    re.compile(r'(?m)^ "seconds": [^,]*,$'),  # in a record and in table.json
    re.compile(r"(?m),[0-9.]+(?=,0$)"),  # the last column but one of table.csv
]


def start(function, jobs, out):
    return subprocess.Popen(
        [sys.executable, "-W", "error", HERE / "sweep_interrupted.py", function, str(jobs), out],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def undisturbed(function, jobs, out):
    run = start(function, jobs, out)
    _, stderr = run.communicate(timeout=300)
    assert run.returncode == 0, stderr


def interrupted(function, jobs, out):
    """SIGINT to the whole group, as a terminal sends it, while the second run is being trained."""
    run = start(function, jobs, out)
    try:
        assert run.stdout.readline() == "the first is stored\n", run.stderr.read()
        time.sleep(0.3)
        os.killpg(run.pid, signal.SIGINT)
        # The pipes end when the last process that holds them ends, so this waits for the workers.
        _, stderr = run.communicate(timeout=300)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    return stderr


def contents(folder):
    """Every file below a folder by its name, without the seconds."""
    texts = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            text = path.read_text()
            for pattern in SECONDS:
                text = pattern.sub("", text)
            texts[path.relative_to(folder).as_posix()] = text
    return texts


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an undisturbed call leaves, in one process."""
    folder = tmp_path_factory.mktemp("whole")
    for function in ("tradeoff", "run_cells"):
        undisturbed(function, 1, folder / function)
    return {function: contents(folder / function) for function in ("tradeoff", "run_cells")}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("function", ["tradeoff", "run_cells"])
def test_interrupted_and_called_again(whole, tmp_path, function, jobs):
    stderr = interrupted(function, jobs, tmp_path)
    assert stderr.startswith("Traceback"), stderr
    assert stderr.endswith("\nKeyboardInterrupt\n"), stderr
    assert "Exception in thread" not in stderr, stderr
    stored = load_cells(tmp_path)
    assert 1 <= len(stored) < 4
    models = list(tmp_path.rglob("model.json"))
    assert len(models) == len(stored)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2 * len(stored)
    undisturbed(function, jobs, tmp_path)
    assert contents(tmp_path) == whole[function]


# Before anything else is imported: in a worker PyTorch takes a minute to import.
SLOW_IMPORT = """
import importlib.abc, pathlib, sys, time

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch" and any("loky" in word for word in sys.orig_argv):
            pathlib.Path({here!r}, "importing").touch()
            time.sleep(60)

sys.meta_path.insert(0, Slow())
"""


def has_ended(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"  # ended, and nobody has asked how


def workers_of(pid):
    """The processes that a process has started."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(number) for path in children for number in path.read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_worker_that_is_still_importing_ends_with_its_parent(tmp_path):
    """On a busy machine PyTorch alone takes longer than the ten seconds of a killed sweep."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT.format(here=str(tmp_path)))
    places = os.pathsep.join([str(tmp_path), *(p for p in sys.path if p)])
    run = subprocess.Popen(
        [sys.executable, HERE / "sweep_interrupted.py", "run_cells", "2", tmp_path / "out"],
        env={**os.environ, "PYTHONPATH": places},
        start_new_session=True,
    )
    try:
        while not (tmp_path / "importing").exists():
            assert run.poll() is None
            time.sleep(0.05)
        workers = workers_of(run.pid)
        assert workers
        run.kill()
        run.wait()
        limit = time.monotonic() + 10
        while not all(has_ended(pid) for pid in workers):
            assert time.monotonic() < limit, "a worker outlives its parent"
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
