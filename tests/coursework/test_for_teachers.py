"""What teachers hand out and upload: nothing of the solution in it, and it works where it lands."""

import json
import os
import re
import subprocess
import sys
import zipfile

import nbformat
import pytest
from class_of_students import make_class

from checker import TASKS
from checker.grade import Result
from tools import for_teachers as tool
from tools import make_coursework
from tools.gradescope_run import as_gradescope

RAW = re.compile(r"\{[\w:-]+\}`|^(:::|```)\{|^\(\w[\w-]*\)=", re.M)


def texts(notebook, kind):
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


@pytest.mark.parametrize("week", [None, 1, 2, 3, 4])
def test_the_notebook_reads_well_in_plain_jupyter(week):
    notebook = nbformat.reads(tool.student_notebook(week), as_version=4)
    nbformat.validate(notebook)
    text = "\n".join(texts(notebook, "markdown"))
    assert not RAW.search(text), RAW.search(text)
    assert "For teachers" not in text
    assert r"\newcommand{\Dind}" in text
    for source in texts(notebook, "code"):
        compile(source, "cell", "exec")
        assert "SOLUTION" not in source
    expected = list(TASKS) if week is None else [t for t in TASKS if int(t[4]) in tool.WEEKS[week]]
    asked = re.findall(r'check\("(\w+)", (?!first)', "\n".join(texts(notebook, "code")))
    assert asked == expected


def test_the_weeks_share_out_all_tasks():
    assert sorted(n for tasks in tool.WEEKS.values() for n in tasks) == list(range(1, 9))


@pytest.mark.parametrize("week", [2, 3, 4])
def test_a_later_week_needs_nothing_of_an_earlier_one(week):
    """Every name that a cell uses at its top level has been defined above it."""
    source = "\n".join(texts(nbformat.reads(tool.student_notebook(week), as_version=4), "code"))
    source = re.sub(r"^# .*$", "", source, flags=re.M)
    for name in ("example", "sample_rankings"):
        if re.search(rf"\b{name}\b", source):
            first = re.search(rf"\b{name}\b", source).start()
            assert re.match(rf"{name} = |{name}\(scores, samples, generator\):", source[first:])


@pytest.mark.slow
def test_the_hand_out_holds_no_solution_and_imports_where_it_is_unpacked(tmp_path):
    made = tool.handout(tmp_path / "a.zip")
    with zipfile.ZipFile(made) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "there")
    assert not [n for n in names if "solution" in n or n.endswith(("grade.py", "sandbox.py"))]
    assert {"assignment.ipynb", "README.md", "checker/__init__.py"} <= set(names)
    regions = make_coursework.REGION.finditer(make_coursework.SOLUTION.read_text())
    lines = {x.strip() for m in regions for x in m[2].splitlines() if len(x.strip()) > 24}
    student = nbformat.read(tmp_path / "there" / "assignment.ipynb", as_version=4)
    assert lines
    assert not [x for x in lines if x in "\n".join(texts(student, "code"))]
    code = "import checker, fairpg_lite; print(checker.__file__, fairpg_lite.__file__)"
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "there",
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count(str(tmp_path / "there")) == 2
    again = tool.handout(tmp_path / "b.zip")
    assert again.read_bytes() == made.read_bytes()


def test_links_come_from_the_repository_s_address_or_not_at_all(monkeypatch):
    monkeypatch.setenv("FAIRPG_REPOSITORY_URL", "")
    assert "colab" not in tool.student_notebook().lower()
    monkeypatch.setenv("FAIRPG_REPOSITORY_URL", "https://github.com/owner/name")
    first = nbformat.reads(tool.student_notebook(), as_version=4).cells[0].source
    path = "book/coursework/assignment.ipynb"
    assert f"/v2/gh/owner/name/main?labpath={path})" in first
    assert f"/github/owner/name/blob/main/{path})" in first
    assert (tool.ROOT / path).exists()


def test_nbgrader_marks_every_task_and_every_written_answer(tmp_path):
    folder = tool.nbgrader(tmp_path)
    notebook = nbformat.read(folder / "fairpg.ipynb", as_version=4)
    marks = [c.metadata["nbgrader"] for c in notebook.cells if "nbgrader" in c.metadata]
    ids = [mark["grade_id"] for mark in marks]
    assert len(set(ids)) == len(ids)
    points = {mark["grade_id"]: mark["points"] for mark in marks if mark["grade"]}
    written = {f"written-{x}": 4 for x in "ABC"}
    assert points == {name: task.points for name, task in TASKS.items()} | written
    by_id = {
        c.metadata["nbgrader"]["grade_id"]: c for c in notebook.cells if "nbgrader" in c.metadata
    }
    for task in TASKS:
        assert by_id[task].source.startswith(f'check("{task}", ')  # its value is the points
        assert by_id[task].metadata["nbgrader"]["locked"]
        answer = by_id[f"{task}-answer"]
        assert make_coursework.BEGIN in answer.source
        assert answer.metadata["nbgrader"]["solution"]
    assert not any("Marking notes" in source for source in texts(notebook, "markdown"))


@pytest.mark.slow
def test_gradescope_gets_its_results_from_the_zip_alone(tmp_path):
    """The autograder unpacked somewhere, run as Gradescope runs it, on one submission."""
    with zipfile.ZipFile(tool.gradescope(tmp_path / "autograder.zip")) as archive:
        archive.extractall(tmp_path / "source")
        modes = {i.filename: i.external_attr >> 16 for i in archive.infolist()}
    assert modes["run_autograder"] == modes["setup.sh"] == 0o755
    pinned = (tmp_path / "source" / "requirements.txt").read_text()
    assert [line.split("==")[0] for line in pinned.split()] == ["matplotlib", "numpy", "torch"]
    only = {"task3a", "task4a"}
    (name,) = rows = make_class(tmp_path / "submission", ["by_hand"], only=only)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    places = {"SOURCE": "source", "SUBMISSION": "submission", "RESULTS": "results/results.json"}
    environment |= {key: str(tmp_path / place) for key, place in places.items()}
    subprocess.run(
        ["bash", str(tmp_path / "source" / "run_autograder")],
        env={**environment, "PYTHON": sys.executable},
        check=True,
    )
    told = json.loads((tmp_path / "results" / "results.json").read_text())
    scores = {test["name"].split(":")[0]: test["score"] for test in told["tests"]}
    assert scores == rows[name]
    assert sum(test["max_score"] for test in told["tests"]) == 100


def test_gradescope_s_format_has_a_test_per_task():
    full = {name: task.points for name, task in TASKS.items()}
    told = as_gradescope(Result("a", points=full, messages=dict.fromkeys(full, "fine")))
    assert set(told) == {"tests", "output", "stdout_visibility"}
    assert {frozenset(test) for test in told["tests"]} == {
        frozenset(["name", "score", "max_score", "output", "output_format"])
    }


def test_the_weeks_of_the_teachers_page_are_those_of_the_tool():
    text = (tool.ROOT / "book" / "for_teachers.md").read_text()
    rows = re.findall(r"^\| (\d) \| chapters [^|]+\| (\d), (\d) \| (\d+) \|", text, re.M)
    assert {int(week): (int(a), int(b)) for week, a, b, _ in rows} == tool.WEEKS
    for week, _, _, points in rows:
        mine = [t.points for name, t in TASKS.items() if int(name[4]) in tool.WEEKS[int(week)]]
        assert sum(mine) == int(points)
    outcomes = re.findall(r"^\| (\d) \| [^|]+ \| ([12]) \| ([1-4]) \|$", text, re.M)
    assert {int(t): int(four) for t, _, four in outcomes} == {
        task: week for week, tasks in tool.WEEKS.items() for task in tasks
    }
    assert all((int(four) + 1) // 2 == int(two) for _, two, four in outcomes)
