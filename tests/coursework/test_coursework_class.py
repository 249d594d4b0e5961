"""A class is graded: one row per student, whatever the student's notebook does."""

import csv
import html
import json
import pickle
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest
import torch
from class_of_students import DRIP, FULL, KINDS, make_class, mismatches

from checker import bubblewrap, grade, report, tasks_of
from checker.__main__ import main
from checker.bubblewrap import Sandbox, find_sandbox
from checker.collect import read_seeds, submissions
from checker.grade import Result, mark

pytestmark = pytest.mark.slow

HANGS = """    with open("/proc/self/comm", "w") as name:
        name.write("hanging")
    while True:
        pass"""
QUICK = {"task3a", "task4a"}  # tasks that take no time to examine
SANDBOX = find_sandbox()
# Where there is no bubblewrap these tests grade without a sandbox; test_sandbox.py is skipped.
OPENLY = [] if SANDBOX else ["--no-sandbox"]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A small class, graded once by the command."""
    folder = tmp_path_factory.mktemp("class")
    kinds = "right by_hand neighbour hanging_function exits dies stack forger nester garbage"
    kinds += " other_seed long_seed no_checks two_sided_by_hand py_file empty_folder link pipe huge"
    kinds += " folder_as_notebook two_notebooks formula tag newline latin_1"
    rows = make_class(folder / "submissions", kinds.split(), only=QUICK)
    assert command(folder) == 0
    return folder, rows


def command(folder):
    paths = [str(folder / "submissions"), "--out", str(folder / "out")]
    return main(["grade", *paths, "--timeout", "5", "--jobs", "2", *OPENLY])


def test_the_table_row_by_row(graded):
    folder, rows = graded
    assert mismatches(folder / "out" / "grades.csv", rows) == []
    head = (folder / "out" / "grades.csv").read_text().splitlines()[0]
    assert head == ",".join(["student", *FULL, "total", "out of", "graded", "remarks"])


def test_a_wrong_row_would_be_seen(graded):
    folder, rows = graded
    assert mismatches(folder / "out" / "grades.csv", {**rows, "nobody": rows["000_right"]}) != []
    for name in rows:
        changed = {**rows[name], "task3a": rows[name]["task3a"] + 1}
        assert mismatches(folder / "out" / "grades.csv", {**rows, name: changed}) != []


def test_what_was_not_graded_says_why(graded):
    folder, _ = graded
    with (folder / "out" / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    reasons = {
        "garbage": "it is no notebook",
        "py_file.py": "it is no notebook",
        "empty_folder": "no notebook in the folder",
        "link": "a link to another place",
        "pipe": "no ordinary file",
        "huge": "1024 MB",
        "folder_as_notebook": "a folder with the name of a notebook",
    }
    for kind, reason in reasons.items():
        (row,) = [row for name, row in rows.items() if name.endswith(kind)]
        assert row["graded"] == "no"
        assert reason in row["remarks"]
    (two,) = [row for name, row in rows.items() if name.endswith("two_notebooks")]
    assert "assignment-0.ipynb: 0, assignment-1.ipynb: 12. The best counts." in two["remarks"]
    (silent,) = [row for name, row in rows.items() if name.endswith("no_checks")]
    assert "task3a: its `check` was not run; `sampled_exposure` was graded" in silent["remarks"]


def test_names_are_text_in_every_table_and_page(graded):
    folder, _ = graded
    for path in (folder / "out").rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")  # whatever the bytes of a name were
            assert "<script>" not in text or path.suffix in (".txt", ".csv", ".json")
            assert not path.name.startswith(("-", "="))
    for name in ("grades", "written"):
        lines = (folder / "out" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if line.startswith(("=", "+", "-", "@"))]
        assert "\x1b" not in "".join(lines)
    page = (folder / "out" / "class.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "<script>" not in page


def test_the_class_page_counts_and_names_slips(graded):
    folder, rows = graded
    page = (folder / "out" / "class.html").read_text(encoding="utf-8")
    full = sum(row["task3a"] == FULL["task3a"] for row in rows.values())
    assert f"<td>3a exposure by sampling<td>{full}<td>" in page
    sentence = SANDBOX.in_force(grade.MEMORY, 5.0)
    assert html.escape(sentence) in page


def test_everybody_has_a_page_that_says_why(graded):
    folder, rows = graded
    names = [name for name in rows if re.fullmatch(r"\w+", name)]
    pages = {name: (folder / "out" / "feedback" / f"{name}.txt").read_text() for name in names}
    assert len(list((folder / "out" / "feedback").glob("*.txt"))) == len(rows)
    words = {
        "003_hanging_function": "took longer than 5 seconds",
        "004_exits": "ends with SystemExit",
        "005_dies": "the process ended",
        "007_forger": "the process sent something that is no answer",
        "009_garbage": "Nothing was graded: it is no notebook",
        "002_neighbour": "on individual disparity",
    }
    for name, said in words.items():
        assert said in " ".join(pages[name].split())
    assert pages["000_right"].startswith("000_right: 12 of 100 points")


def test_a_second_run_goes_on_where_the_first_one_ended(graded):
    folder, rows = graded
    # Killed before the table was written, and a result with it.
    (folder / "out" / "grades.csv").unlink()
    done = {path.name.split("-")[0]: path for path in (folder / "out" / ".results").iterdir()}
    first, second = done["000_right"], done["001_by_hand"]
    first.write_text(first.read_text()[:40])
    changed = json.loads(second.read_text()) | {"digest": "of another notebook"}
    second.write_text(json.dumps(changed))
    before = {name: path.stat().st_mtime_ns for name, path in done.items()}
    assert command(folder) == 0
    again = {name for name, path in done.items() if path.stat().st_mtime_ns != before[name]}
    assert again == {"000_right", "001_by_hand"}
    assert mismatches(folder / "out" / "grades.csv", rows) == []


def test_without_a_sandbox_sockets_are_blocked_and_processes_still_separate(tmp_path):
    rows = make_class(tmp_path / "submissions", ["caller", "dies"], only=QUICK)
    for name, row in rows.items():
        path = tmp_path / "submissions" / f"{name}.ipynb"
        result = mark(name, path, Sandbox(), timeout=20)
        assert result.points == row, result.notes


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_a_grader_that_is_killed_takes_its_submissions_along(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, "hanging", ({"task3a": HANGS}, [], {"task3a": 0}))
    make_class(tmp_path / "submissions", ["hanging"], only=QUICK)
    words = ["grade", tmp_path / "submissions", "--out", tmp_path / "out", *OPENLY]
    call = [sys.executable, "-m", "checker", *words]
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
    return mark(name, folder / f"{name}.ipynb", SANDBOX, **rules), row


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
    result = mark(name, path, SANDBOX, seed=71, timeout=20)
    assert result.points["task4a"] <= 2  # where two seeds share a D_group of 0
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


def test_a_week_is_graded_out_of_its_own_points(tmp_path):
    """A week's notebook as it is handed out, solved: all of the week's points, and no more."""
    tool = pytest.importorskip("tools.for_teachers")
    text = nbformat.writes(tool.solved_notebook(week=2))
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "ada.ipynb").write_text(text)
    paths = [str(tmp_path / "submissions"), "--out", str(tmp_path / "out"), "--week", "2"]
    assert main(["grade", *paths, "--timeout", "60", *OPENLY]) == 0
    with (tmp_path / "out" / "grades.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert [name for name in row if name.startswith("task")] == tasks_of(2)
    assert row["total"] == row["out of"] == "38"
    page = (tmp_path / "out" / "feedback" / "ada.txt").read_text()
    assert page.startswith("ada: 38 of 38 points")
    assert "not answered" not in page
    written = (tmp_path / "out" / "written.csv").read_text()
    assert "standard error" in written  # the solution's answer A


def test_without_a_sandbox_nothing_is_graded_unless_asked_for(tmp_path, capsys, monkeypatch):
    make_class(tmp_path / "submissions", ["garbage"], only=QUICK)
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: None)
    find_sandbox.cache_clear()
    call = ["grade", str(tmp_path / "submissions"), "--out", str(tmp_path / "out")]
    try:
        with pytest.raises(SystemExit) as stopped:
            main(call)
        assert stopped.value.code == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "there is no sandbox: bubblewrap is not installed" in told
        assert "--no-sandbox" in told
        assert not (tmp_path / "out").exists()
        assert main([*call, "--no-sandbox"]) == 0
        assert "There was NO sandbox" in capsys.readouterr().out
    finally:
        find_sandbox.cache_clear()


def test_an_empty_folder_is_said_to_be_one(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["grade", str(tmp_path), "--out", str(tmp_path / "out")])
    assert "nothing in" in capsys.readouterr().err


def test_names_come_from_files_or_folders(tmp_path):
    paths = ["bo.ipynb", "ada/notes.ipynb", "ada/assignment.ipynb", "ada/.x/assignment.ipynb"]
    for path in [*paths, "cy/a.py", ".hidden/x.ipynb", "dee.ipynb", "dee/x.ipynb"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("{}")
    found = {one.student: one for one in submissions(tmp_path)}
    assert sorted(found) == ["ada", "bo", "cy", "dee", "dee.ipynb"]
    assert [path.name for path in found["ada"].notebooks] == ["assignment.ipynb", "notes.ipynb"]
    assert found["cy"].reason == "there is no notebook in the folder"
    assert found["cy"].remarks == ["not graded: a.py"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_seeds_may_stand_between_any_marks(tmp_path, mark):
    (tmp_path / "seeds.csv").write_text(f"\ufeffStudent{mark}Seed\nada{mark}7\n", encoding="utf-8")
    assert read_seeds(tmp_path / "seeds.csv") == {"ada": 7}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,seed\nada,7\n", "must name the columns student and seed"),
        ("student,seed\nada,seven\n", "line 2: the seed is 'seven'"),
        ("", "must name the columns"),
    ],
)
def test_a_wrong_table_of_seeds_is_explained(tmp_path, text, words):
    (tmp_path / "seeds.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_seeds(tmp_path / "seeds.csv")


def test_a_page_has_the_points_and_every_message():
    result = Result("Ada", points=dict(FULL), messages={task: f"on {task}" for task in FULL})
    page = report.student_page(result)
    assert page.startswith("Ada: 100 of 100 points\n")
    assert all(f"on {task}" in page for task in FULL)


def test_every_kind_of_student_is_described():
    for change, first, differ in KINDS.values():
        assert set(differ) <= set(FULL)
        assert isinstance(change, str | dict)
        assert all(isinstance(cell, str) for cell in first)
