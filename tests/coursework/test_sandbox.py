"""Attempts to leave the sandbox: nothing is read, nothing is written, and there is a row.

Each attempt is a cell of a submission that says what it achieved by the error it ends with, which
the grader puts into the notes. Where bubblewrap does not work all of this is skipped, and the
reason is printed.
"""

import csv
import json
import os
import socket
import threading
from pathlib import Path

import pytest
from class_of_students import cells, solutions

from checker import bubblewrap
from checker.__main__ import main
from checker.bubblewrap import Sandbox, find_sandbox, seccomp_filter
from checker.grade import mark

SANDBOX = find_sandbox()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SANDBOX, reason=f"no sandbox to leave: {SANDBOX.reason}"),
]
SECRET = "the-other-student-s-answer"
QUICK = ["task3a"]

# What every attempt may use; `report` ends the cell.
TOOLS = """
import ctypes, glob, os, pathlib, socket, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def report(text):
    raise RuntimeError("ATTEMPT " + str(text))

def read(*places):
    found = []
    for place in places:
        for path in glob.glob(place, recursive=True) or [place]:
            try:
                found.append(pathlib.Path(path).read_bytes()[:2000])
            except Exception:
                pass
    return b"".join(found)

def command(*words):
    try:
        return subprocess.run(words, capture_output=True).returncode
    except OSError:
        return -1

def call(function, *arguments):
    return getattr(libc, function)(*arguments)
"""
#: Attempts to read: what each finds, in a report.
READS = {
    "others": "report(read(SUBMISSIONS + '/**'))",
    "solution": "report(read(SOLUTION, SOLUTION + '.ipynb'))",
    "home": "report(read(HOME + '/*', os.path.expanduser('~') + '/.*'))",
    "grades": "report(read(OUT + '/**', OUT + '/.results/*'))",
    "shared memory": "report(read('/dev/shm/fairpg_*'))",
    "the checker": "report(read(CHECKER + '/*.py', '/sandbox/checker/*.toml'))",
    "by the parent": """
report(read("/proc/1/root" + HOME + "/*", "/proc/1/cwd/*", "/proc/*/environ"))""",
    "umount": """
for path in (SUBMISSIONS, SOLUTION, HOME, "/tmp", "/sandbox", "/"):
    command("umount", path)
    call("umount2", path.encode(), 2)
report(read(SUBMISSIONS + "/**", SOLUTION, HOME + "/*"))""",
    "new root": """
call("unshare", 0x10000000)
call("unshare", 0x10000000 | 0x00020000)
call("chroot", b"/proc/1/root")
call("mount", b"/", b"/tmp", b"", 4096, None)
report(read(SUBMISSIONS + "/**", SOLUTION, HOME + "/*", "/tmp" + HOME + "/*"))""",
    "sockets": """
found = b""
for family, address in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_UNIX, DOOR)):
    try:
        line = socket.socket(family)
        line.settimeout(2)
        line.connect(address)
        found += line.recv(100)
    except OSError:
        pass
report(found)""",
    "ptrace": """
found = []
for pid in (os.getppid(), 1, GRADER):
    found.append(call("ptrace", 16, pid, None, None))
    try:
        found.append(len(pathlib.Path(f"/proc/{pid}/mem").read_bytes()))
    except OSError:
        found.append(-1)
report(b"" if set(found) == {-1} else SECRET_WORD.encode())""",
}
#: Attempts to write; the paths are looked at afterwards.
WRITES = {
    "remount": """
command("mount", "-o", "remount,rw,bind", "/")
call("mount", None, b"/", None, 32 | 4096, None)
for folder in (OUT, HOME, SUBMISSIONS, "/", "/usr", "/sandbox"):
    try:
        pathlib.Path(folder, "written").write_text("x")
        if folder not in (OUT, HOME, SUBMISSIONS):
            report("wrote to " + folder)
    except OSError:
        pass
report("")""",
    "the package": """
import fairpg_lite, torch
for folder in (pathlib.Path(fairpg_lite.__file__).parent, pathlib.Path(torch.__file__).parent):
    try:
        (folder / "written").write_text("x")
        report("wrote to " + str(folder))
    except OSError:
        pass
report("")""",
    "shared memory": "pathlib.Path('/dev/shm/fairpg_written').write_text('x')\nreport('')",
    "signals": """
for pid in (os.getppid(), 1, GRADER, -1):
    try:
        os.kill(pid, 9)
    except OSError:
        pass
report("")""",
    "links": """
os.symlink(HOME, "/tmp/home")
os.symlink(OUT + "/grades.csv", "/tmp/grades")
for path in ("/tmp/home/written", "/tmp/grades"):
    try:
        pathlib.Path(path).write_text("x")
    except OSError:
        pass
report("")""",
    "capabilities": """
status = pathlib.Path("/proc/self/status").read_text()
lines = dict(line.split(":", 1) for line in status.splitlines())
held = [lines[name].strip() for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")]
report("" if set(held) == {"0" * 16} and lines["NoNewPrivs"].strip() == "1" else held)""",
}
FORK_BOMB = """
made = 0
for _ in range(2000):
    try:
        if os.fork() == 0:
            while True:
                os.fork()
        made += 1
    except OSError:
        pass
report(made)"""
FILL_THE_DISK = """
written, block = 0, b"x" * 2**20
for folder in ("/tmp", "/dev/shm", "/var/tmp", "/dev"):
    for number in range(4):
        try:
            with open(f"{folder}/full{number}", "wb") as file:
                while written < 4000:
                    file.write(block)
                    written += 1
        except OSError:
            pass
report(written)"""


def notebook(*sources):
    made = [{"cell_type": "code", "source": text} for text in sources]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A class with a secret in every place that is none of a submission's business."""
    folder = tmp_path_factory.mktemp("attacks")
    (folder / "submissions" / "ada").mkdir(parents=True)
    (folder / "submissions" / "ada" / "assignment.ipynb").write_text(SECRET)
    (folder / "submissions" / "bo.ipynb").write_text(SECRET)
    (folder / "out" / ".results").mkdir(parents=True)
    (folder / "out" / "grades.csv").write_text(SECRET)
    (folder / "out" / ".results" / "bo.json").write_text(SECRET)
    (folder / "home").mkdir()
    (folder / "home" / "secret.txt").write_text(SECRET)
    shared = Path(f"/dev/shm/fairpg_secret_{os.getpid()}")
    shared.write_text(SECRET)
    doors = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)]
    door = str(folder / "door")
    doors[1].bind(door)
    doors[1].listen()
    for one in doors:
        threading.Thread(target=answer_everybody, args=(one,), daemon=True).start()
    names = {
        "SUBMISSIONS": str(folder / "submissions"),
        "OUT": str(folder / "out"),
        "HOME": str(folder / "home"),
        "SOLUTION": str(bubblewrap.HERE.parent / "solution.md"),
        "CHECKER": str(bubblewrap.HERE),
        "PORT": doors[0].getsockname()[1],
        "DOOR": door,
        "GRADER": os.getpid(),
        "SECRET_WORD": SECRET,
    }
    yield folder, "\n".join(f"{name} = {value!r}" for name, value in names.items())
    shared.unlink(missing_ok=True)
    Path("/dev/shm/fairpg_written").unlink(missing_ok=True)
    for one in doors:
        one.close()


def answer_everybody(door):
    while True:
        try:
            line, _ = door.accept()
        except OSError:
            return
        line.sendall(SECRET.encode())
        line.close()


def attempts(place, sources, sandbox, tmp_path, timeout=20.0):
    """The reports of the cells, one for each, and the result of a submission that holds them."""
    _, names = place
    path = tmp_path / "attacker.ipynb"
    right = cells(7, solutions(), set(QUICK))
    path.write_text(notebook(names + TOOLS, *sources, *right))
    result = mark("attacker", path, sandbox, tasks=QUICK, timeout=timeout)
    reports = {}
    for note in result.notes:
        cell, _, text = note.partition(" ends with RuntimeError: ATTEMPT ")
        if text or "ATTEMPT" in note:
            reports[int(cell.removeprefix("Cell "))] = text
    return [reports.get(2 + k) for k in range(len(sources))], result


NOTHING = "b''"


def test_nothing_is_read(place, tmp_path):
    reports, result = attempts(place, READS.values(), SANDBOX, tmp_path)
    for name, said in zip(READS, reports, strict=True):
        assert said is not None, (name, result.notes)
        assert SECRET not in said, name
        if name != "by the parent":
            assert said == NOTHING, name
    assert result.points == {"task3a": 6}  # and what is right counts all the same


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/passwd", "/root/.ssh/*", "/var/log/*"])
def test_nothing_of_the_system_is_read(place, tmp_path, path):
    reports, _ = attempts(place, [f"report(read({path!r}))"], SANDBOX, tmp_path)
    assert reports == [NOTHING]


def test_without_a_sandbox_the_same_attempts_do_read(place, tmp_path):
    """Else the tests above would pass for the wrong reason."""
    chosen = ["others", "home", "grades", "shared memory"]
    reports, _ = attempts(place, [READS[name] for name in chosen], Sandbox(), tmp_path)
    assert all(SECRET in said for said in reports)


def test_nothing_is_written(place, tmp_path):
    folder, _ = place
    reports, result = attempts(place, WRITES.values(), SANDBOX, tmp_path)
    for name, said in zip(WRITES, reports, strict=True):
        assert said == "", (name, said, result.notes)
    assert not list(folder.rglob("written"))
    assert (folder / "out" / "grades.csv").read_text() == SECRET
    assert not Path("/dev/shm/fairpg_written").exists()
    assert result.points == {"task3a": 6}


def test_a_submission_is_one_process(place, tmp_path):
    reports, result = attempts(place, [FORK_BOMB], SANDBOX, tmp_path)
    assert reports == ["0"]
    assert result.points == {"task3a": 6}


def test_the_disk_is_a_small_one_in_memory(place, tmp_path):
    reports, result = attempts(place, [FILL_THE_DISK], SANDBOX, tmp_path)
    assert 0 < int(reports[0]) <= bubblewrap.MEGABYTES + 64
    assert result.points == {"task3a": 6}


@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    print('x' * 10000)",
        "import sys\nwhile True:\n    sys.stderr.write('x' * 10000)",
        "while True:\n    for n in os.listdir('/proc/self/fd'):\n        try:\n"
        "            os.write(int(n), b'x' * 10000)\n        except OSError:\n            pass",
    ],
)
def test_endless_output_ends(place, tmp_path, source):
    _, result = attempts(place, [source], SANDBOX, tmp_path, timeout=3.0)
    told = " ".join(result.notes)
    assert "took longer than 3 seconds" in told or "an answer is too large" in told
    assert result.points == {"task3a": 6}


def test_every_attacker_has_a_row_and_the_end_says_what_was_in_force(place, tmp_path, capsys):
    _, names = place
    folder = tmp_path / "submissions"
    folder.mkdir()
    (folder / "reader.ipynb").write_text(notebook(names + TOOLS, READS["others"]))
    (folder / "link.ipynb").symlink_to("/etc/shadow")
    (folder / "folder.ipynb").mkdir()
    (folder / "linked").symlink_to(folder)
    with (folder / "huge.ipynb").open("wb") as file:
        file.truncate(2**30)
    (folder / "long.ipynb").write_text(notebook("x = '" + "y" * 2 * 10**7 + "'"))
    call = ["grade", str(folder), "--out", str(tmp_path / "out"), "--week", "1"]
    assert main([*call, "--timeout", "10"]) == 0
    out = capsys.readouterr().out
    assert f"Each submission ran in {SANDBOX.version}" in out
    assert "no network, no capabilities" in out
    with (tmp_path / "out" / "grades.csv").open(newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert sorted(rows) == ["folder", "huge", "link", "linked", "long", "reader"]
    assert {name for name, row in rows.items() if row["graded"] == "yes"} == {"long", "reader"}
    assert SECRET not in (tmp_path / "out" / "feedback" / "reader.txt").read_text()


def test_what_lies_inside_python_s_own_folder_is_covered(tmp_path, monkeypatch):
    """A class that was unpacked beside the packages of Python is hidden all the same."""
    inside = tmp_path / "prefix" / "class"
    inside.mkdir(parents=True)
    (inside / "ada.ipynb").write_text(SECRET)
    folders = [*bubblewrap._python_folders(), tmp_path / "prefix"]
    monkeypatch.setattr(bubblewrap, "_python_folders", lambda: folders)
    find_sandbox.cache_clear()
    try:
        assert find_sandbox((str(inside),)).command
        seen = find_sandbox()  # nobody said that it is ours, so it is seen
        assert str(inside) not in seen.command
    finally:
        find_sandbox.cache_clear()


def test_the_filter_knows_the_usual_machines():
    for machine in ("x86_64", "aarch64"):
        program = seccomp_filter(machine)
        assert len(program) % 8 == 0
        assert len(program) > 8 * 40
    assert seccomp_filter("m68k") == b""
