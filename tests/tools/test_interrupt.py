"""The tool that stops commands at random moments: what it finds, and a small attack with it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="tools.interrupt looks for processes in /proc"
)

# Programs that write a file and, called for the first time, wait until they are stopped.
WAIT = """
import os, pathlib, subprocess, sys, time
file = pathlib.Path("file")
def wait():
    if "whole" not in os.getcwd():
        time.sleep(600)
"""
PROGRAMS = {
    # Writes anew what is not whole.
    "careful": """
if not file.exists() or file.read_text() != "whole":
    is_first = not pathlib.Path("../seen").exists()
    pathlib.Path("../seen").touch()
    file.write_text("")
    if is_first:
        wait()
    file.write_text("whole")
""",
    # Trusts a file that is there.
    "trusting": """
if not file.exists():
    file.write_text("half")
    wait()
    file.write_text("whole")
""",
    # Takes Ctrl-C for the end of its work.
    "pleased": """
try:
    if not file.exists():
        file.write_text("half")
        wait()
    file.write_text("whole")
except KeyboardInterrupt:
    pass
""",
    # Leaves a worker behind.
    "fertile": """
if not file.exists():
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(8)"])
    file.write_text("whole")
    wait()
    worker.kill()
    worker.wait()
""",
}
DRIVER = """
import dataclasses, json, pathlib, sys
from tools import interrupt
here = pathlib.Path(sys.argv[1])
sys.path.append(str(here))
trials = []
for program, signal in json.loads(sys.argv[2]):
    task = interrupt.Task(program, (program,))
    whole = interrupt.undisturbed(task, here / f"{program}-whole")
    moment = interrupt.Moment("file", 0.5)
    folder = here / f"{program}-{signal}" / "folder"
    trials.append(interrupt.interrupt(task, whole, signal, moment, folder, gone_after=4.0))
print(json.dumps([dataclasses.asdict(trial) for trial in trials]))
"""
CASES = [
    ("careful", "SIGKILL"),
    ("careful", "SIGINT"),
    ("trusting", "SIGKILL"),
    ("pleased", "SIGINT"),
    ("fertile", "SIGTERM"),
]


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    """Each program stopped after its first file, by a process of its own: it forks."""
    folder = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        (folder / f"{name}.py").write_text(WAIT + text)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, folder, json.dumps(CASES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {(trial["task"], trial["signal"]): trial for trial in found}


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["SIGKILL", "SIGINT"])
def test_a_program_that_mends_its_file_has_no_fault(trials, signal):
    trial = trials["careful", signal]
    assert trial["was_running"]
    assert trial["code_again"] == 0
    assert not trial["differing"]
    assert not trial["fault"]


@pytest.mark.slow
def test_a_file_that_is_half_written_and_trusted_is_found(trials):
    trial = trials["trusting", "SIGKILL"]
    assert trial["code"] == -9
    assert trial["differing"] == ["file"]


@pytest.mark.slow
def test_a_program_that_takes_an_interruption_for_success_is_found(trials):
    trial = trials["pleased", "SIGINT"]
    assert trial["code"] == 0
    assert not trial["differing"]  # the second call would mend it, if anyone gave it
    assert trial["fault"]


@pytest.mark.slow
def test_a_worker_that_is_left_behind_is_found(trials):
    trial = trials["fertile", "SIGTERM"]
    assert trial["code"] == -15
    assert not trial["differing"]
    assert trial["gone"] > 4.0
    assert trial["fault"]


@pytest.mark.thorough
@pytest.mark.slow
def test_killed_commands_called_again(tmp_path):
    """`make interrupt` with two commands and one signal.

    A worker that nobody ends waits 300 seconds for work, so 120 tell it from one that does end.
    """
    words = ["--tasks", "sweep, 2 jobs", "audit", "--out", str(tmp_path / "out")]
    words += ["--rounds", "1", "--signals", "SIGKILL", "--gone-after", "120"]
    done = subprocess.run(
        [sys.executable, "-m", "tools.interrupt", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
