"""A class is graded: one row per student, whatever the student's notebook does."""

import json
import pickle
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from class_of_students import DRIP, FULL, KINDS, make_class, mismatches

from checker import grade
from checker.__main__ import main, page, submissions
from checker.grade import Result, mark

pytestmark = pytest.mark.slow

HANGS = """    with open("/proc/self/comm", "w") as name:
        name.write("hanging")
    while True:
        pass"""
QUICK = {"task3a", "task4a"}  # tasks that take no time to examine


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A small class, graded once by the command."""
    folder = tmp_path_factory.mktemp("class")
    kinds = "right by_hand neighbour hanging_function exits dies stack forger reader writer garbage"
    kinds += " nester other_seed long_seed"
    rows = make_class(folder / "submissions", kinds.split(), only=QUICK)
    assert command(folder) == 0
    return folder, rows


def command(folder):
    paths = ["--out", str(folder / "grades.csv"), "--feedback", str(folder / "feedback")]
    return main(["grade", str(folder / "submissions"), *paths, "--timeout", "5", "--jobs", "2"])


def test_the_table_row_by_row(graded):
    folder, rows = graded
    assert mismatches(folder / "grades.csv", rows) == []
    head = (folder / "grades.csv").read_text().splitlines()[0]
    assert head == ",".join(["student", *FULL, "total"])


def test_a_wrong_row_would_be_seen(graded):
    folder, rows = graded
    assert mismatches(folder / "grades.csv", {**rows, "nobody": rows["000_right"]}) != []
    for name in rows:
        changed = {**rows[name], "task3a": rows[name]["task3a"] + 1}
        assert mismatches(folder / "grades.csv", {**rows, name: changed}) != []


def test_everybody_has_a_page_that_says_why(graded):
    folder, rows = graded
    pages = {name: (folder / "feedback" / f"{name}.txt").read_text() for name in rows}
    words = {
        "003_hanging_function": "took longer than 5 seconds",
        "004_exits": "ends with SystemExit",
        "005_dies": "the process ended",
        "007_forger": "the process sent something that is no answer",
        "010_garbage": "This is no notebook",
        "002_neighbour": "on individual disparity",
    }
    for name, said in words.items():
        assert said in " ".join(pages[name].split())
    assert pages["000_right"].startswith("000_right: 12 of 100 points")


def test_a_second_run_goes_on_where_the_first_one_ended(graded):
    folder, rows = graded
    (folder / "grades.csv").unlink()  # killed before the table was written, and a result with it
    done = {name: folder / "feedback" / ".results" / f"{name}.json" for name in rows}
    first, second = done["000_right"], done["001_by_hand"]
    first.write_text(first.read_text()[:40])
    changed = json.loads(second.read_text()) | {"digest": "of another notebook"}
    second.write_text(json.dumps(changed))
    before = {name: path.stat().st_mtime_ns for name, path in done.items()}
    assert command(folder) == 0
    again = {name for name, path in done.items() if path.stat().st_mtime_ns != before[name]}
    assert again == {"000_right", "001_by_hand"}
    assert mismatches(folder / "grades.csv", rows) == []


def test_without_namespaces_sockets_are_blocked_and_processes_still_separate(tmp_path, monkeypatch):
    monkeypatch.setattr(grade, "jail", lambda hide: ())
    rows = make_class(tmp_path / "submissions", ["caller", "dies"], only=QUICK)
    for name, row in rows.items():
        result = mark(name, tmp_path / "submissions" / f"{name}.ipynb", timeout=20)
        assert result.points == row, result.notes


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_a_grader_that_is_killed_takes_its_submissions_along(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, "hanging", ({"task3a": HANGS}, [], {"task3a": 0}))
    make_class(tmp_path / "submissions", ["hanging"], only=QUICK)
    words = ["grade", tmp_path / "submissions", "--out", tmp_path / "grades.csv"]
    call = [sys.executable, "-m", "checker", *words, "--feedback", tmp_path / "pages"]
    folder = Path(grade.__file__).parents[1]
    with subprocess.Popen([*call, "--timeout", "500"], cwd=folder) as grader:
        while "hanging" not in map(process_name, below := sandboxes(grader.pid)):
            assert grader.poll() is None
            time.sleep(0.05)
        grader.kill()
    while any(Path(f"/proc/{pid}").exists() for pid in below):
        time.sleep(0.05)


def sandboxes(pid):
    """The processes below ``pid`` that run a submission."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                line = Path(f"/proc/{child}/cmdline").read_bytes()
                found += [child] * (b"sandbox.py" in line) + sandboxes(child)
    return found


def process_name(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def marked(folder, kind, only, **rules):
    """One student's result, and the row that was expected."""
    ((name, row),) = make_class(folder, [kind], only=only).items()
    return mark(name, folder / f"{name}.ipynb", **rules), row


def test_a_drop_of_an_answer_now_and_then_gains_no_time(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, "dripper", ({"task3a": DRIP}, [], {"task3a": 0}))
    monkeypatch.setattr(grade, "CLOCK", 2)
    result, row = marked(tmp_path, "dripper", QUICK, timeout=2)
    assert result.points == row
    assert "sampling: stopped, it took longer than 2 seconds" in result.messages["task3a"]


def test_no_clock_of_its_own_hides_an_enumeration(tmp_path):
    result, row = marked(tmp_path, "clock", {"task3b"}, timeout=60)
    assert result.points == row
    assert "all n! rankings" in " ".join(result.messages["task3b"].split())


def test_a_seed_that_was_set_is_the_one_that_counts(tmp_path):
    rows = make_class(tmp_path / "submissions", ["by_hand"], only=QUICK, first_seed=70)
    (name,) = rows
    path = tmp_path / "submissions" / f"{name}.ipynb"
    result = mark(name, path, seed=71, timeout=20)
    assert result.points["task4a"] == 0
    assert result.points["task3a"] == 6
    assert "71 was set" in result.notes[-1]


def test_questions_cost_no_reference():
    """PyTorch's way to pickle a generator cost one to None; after ninety students none was left."""
    stream, rounds = torch.Generator().manual_seed(3), 1000
    before = sys.getrefcount(None)
    for _ in range(rounds):
        question = pickle.dumps({"generator": stream, "scores": torch.ones(2)})
    # Others in this process take and leave some meanwhile; that way it was one for each question.
    assert abs(sys.getrefcount(None) - before) < rounds / 2
    theirs = pickle.loads(question)["generator"]
    assert torch.equal(torch.rand(5, generator=theirs), torch.rand(5, generator=stream))


def test_an_empty_folder_is_said_to_be_one(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["grade", str(tmp_path), "--out", str(tmp_path / "g.csv")])
    assert "no notebook in" in capsys.readouterr().err


def test_names_come_from_files_or_folders(tmp_path):
    for path in ("bo.ipynb", "ada/notes.ipynb", "ada/assignment.ipynb", "ada/.x/assignment.ipynb"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("{}")
    found = submissions(tmp_path)
    assert {name: path.name for name, path in found.items()} == {
        "ada": "assignment.ipynb",
        "bo": "bo.ipynb",
    }


def test_a_page_has_the_points_and_every_message():
    result = Result("Ada", points=dict(FULL), messages={task: f"on {task}" for task in FULL})
    assert page(result).startswith("Ada: 100 of 100 points\n")
    assert all(f"on {task}" in page(result) for task in FULL)


def test_every_kind_of_student_is_described():
    for change, first, differ in KINDS.values():
        assert set(differ) <= set(FULL)
        assert isinstance(change, str | dict)
        assert all(isinstance(cell, str) for cell in first)
