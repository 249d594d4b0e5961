"""What teachers hand out and upload: nothing of the solution in it, and it works where it lands."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from class_of_students import make_class

from checker import TASKS, tasks_of
from checker.collect import read_seeds
from checker.grade import Result
from tools import for_teachers as tool
from tools import gradescope_run, make_coursework
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
    code = "\n".join(texts(notebook, "code"))
    assert re.findall(r'\bcheck\("(\w+)", ', code) == tasks_of(week)
    assert "eq-0" not in text
    assert "book/coursework" not in text
    assert ("Eight tasks" in text) == (week is None)
    if week is not None:
        assert f"begin(seed=SEED, week={week})" in code
        assert f"{sum(TASKS[task].points for task in tasks_of(week))} points" in text


def test_the_equations_have_the_numbers_that_the_book_prints(built_book):
    """The handout says (3.1) where the page has (3.1)."""
    labels = set(re.findall(r"\{eq\}`([^`]*)`", make_coursework.SOLUTION.read_text()))
    assert labels
    for label in labels:
        (chapter,) = (tool.ROOT / "book").glob(f"{label.split('-')[1]}_*.md")
        page = (built_book / "book" / f"{chapter.stem}.html").read_text()
        place = page.index(f'id="equation-{label}"')
        number = re.search(r'<span class="eqno">(\([\w.]+\))', page[place:])[1]
        assert number == tool.equation(label)


def test_a_seed_of_one_s_own_changes_the_notebook_and_nothing_else():
    usual = tool.student_notebook()
    other = tool.student_notebook(seed=77)
    assert usual.replace("SEED = 2026", "SEED = 77") == other != usual


def test_every_student_can_have_other_numbers(tmp_path):
    (tmp_path / "students.csv").write_text("student;mail\nAda;a@b\nBo/../x;b@c\n")
    table = tool.handouts(tmp_path / "out", tmp_path / "students.csv", week=1, seed=3)
    seeds = read_seeds(table)
    assert list(seeds) == ["Ada", "Bo/../x"]
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(made) == 3
    with zipfile.ZipFile(tmp_path / "out" / "Ada.zip") as archive:
        assert f"SEED = {seeds['Ada']} " in archive.read("week_1.ipynb").decode()


@pytest.mark.parametrize("text", ["", "name;mail\nAda;x\n", "Ada\nAda\n"])
def test_a_wrong_list_of_students_is_explained(tmp_path, text, capsys):
    (tmp_path / "students.csv").write_text(text)
    options = ["--students", str(tmp_path / "students.csv"), "--out", str(tmp_path)]
    with pytest.raises(SystemExit):
        tool.main(["handout", *options])
    assert "students.csv: " in capsys.readouterr().err


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
    assert not [n for n in names if "solution" in n]
    assert not [n for n in names if n.startswith("checker/") and Path(n).name in tool.GRADING]
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
    assert "python3.11" in (tmp_path / "source" / "setup.sh").read_text()
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


def test_gradescope_grades_a_week_and_says_what_it_did_not_find(tmp_path):
    with zipfile.ZipFile(tool.gradescope(tmp_path / "a.zip", week=2)) as archive:
        assert archive.read("run_autograder").decode().rstrip().endswith(" 2")
    (tmp_path / "empty").mkdir()
    gradescope_run.main(str(tmp_path / "empty"), str(tmp_path / "results.json"), "2")
    told = json.loads((tmp_path / "results.json").read_text())
    assert [test["name"].split(":")[0] for test in told["tests"]] == tasks_of(2)
    assert "Nothing was graded: grade: nothing in" in told["output"]


def test_gradescope_s_format_has_a_test_per_task():
    full = {name: task.points for name, task in TASKS.items()}
    told = as_gradescope(Result("a", points=full, messages=dict.fromkeys(full, "fine")))
    assert set(told) == {"tests", "output", "stdout_visibility"}
    assert {frozenset(test) for test in told["tests"]} == {
        frozenset(["name", "score", "max_score", "output", "output_format"])
    }


def plan():
    """The rows of the plan: week, chapters, tasks and points."""
    text = (tool.ROOT / "book" / "for_teachers.md").read_text()
    row = re.compile(r"^\| (\d) \| ([\d, ]+) \| \d+ \| (\d+) \| (\d), (\d) \| (\d+) \|", re.M)
    found = []
    for week, chapters, reading, first, second, points in row.findall(text):
        numbers = [int(chapter) for chapter in chapters.split(", ")]
        tasks = (int(first), int(second))
        found.append((int(week), numbers, tasks, int(points), int(reading)))
    return found


def test_the_weeks_of_the_teachers_page_are_those_of_the_tool():
    assert {week: tasks for week, _, tasks, _, _ in plan()} == tool.WEEKS
    for week, _, _, points, _ in plan():
        assert sum(TASKS[task].points for task in tasks_of(week)) == points
    text = (tool.ROOT / "book" / "for_teachers.md").read_text()
    outcomes = re.findall(r"^\| (\d) \| [^|]+ \| ([1-4]) \|$", text, re.M)
    assert {int(task): int(week) for task, week in outcomes} == {
        task: week for week, tasks in tool.WEEKS.items() for task in tasks
    }


def test_a_task_s_chapter_is_taught_before_it_is_due():
    taught = set()
    for week, chapters, *_ in plan():
        taught |= set(chapters)
        for task in tasks_of(week):
            assert TASKS[task].chapter in taught, task
        cells = "\n".join(cell.source for cell in tool.parts(week) if cell.cell_type == "markdown")
        named = {int(number) for number in re.findall(r"\{doc\}`chapter (\d+)", cells)}
        assert named <= taught, week


def weeks_in_words():
    """What the page says under each week's heading, by week."""
    text = (tool.ROOT / "book" / "for_teachers.md").read_text()
    parts = re.split(r"^\*\*Week (\d)\. [^\n]*\*\*$", text, flags=re.M)
    return {int(week): part for week, part in zip(parts[1::2], parts[2::2], strict=True)}


def test_the_minutes_in_class_are_the_table_s():
    for week, chapters, *_ in plan():
        timed = re.findall(
            r"hapter (\d+) <[^>]*>`(?: as far as [\w-]+| in parts)? \((\d+)", weeks_in_words()[week]
        )
        assert [int(chapter) for chapter, _ in timed] == chapters
        quizzes = len(re.findall(r"quiz_[123]>", weeks_in_words()[week]))
        presented = 40 if week == 4 else 0
        assert sum(int(minutes) for _, minutes in timed) + 10 * quizzes + presented == 180


def test_a_quiz_comes_when_its_part_has_been_taught_or_presented():
    toc = (tool.ROOT / "_toc.yml").read_text()
    numbers = [[int(n) for n in re.findall(r"book/(\d+)_", part)] for part in toc.split("caption:")]
    parts = [chapters for chapters in numbers if chapters][:4]
    assert sorted(n for chapters in parts for n in chapters) == list(range(1, 19))
    done = set()
    for text in weeks_in_words().values():
        text = text.split("**In two weeks**")[0]
        done |= {int(n) for n in re.findall(r"hapter (\d+) <", text)}
        for quiz in re.findall(r"quiz_(\d)>", text):
            assert set(parts[int(quiz) - 1]) <= done, quiz


def test_the_minutes_of_reading_are_about_right():
    for _, chapters, _, _, reading in plan():
        words = 0
        for chapter in chapters:
            (path,) = (tool.ROOT / "book").glob(f"{chapter:02}_*.md")
            text = re.sub(r"^```\{code-cell\}.*?^```", "", path.read_text(), flags=re.S | re.M)
            words += len(re.findall(r"[A-Za-z]{2,}", text))
        assert 0.75 < words / 100 / reading < 1.33


def test_the_syllabus_has_the_plan():
    text = (tool.ROOT / "book" / "for_teachers.md").read_text()
    for week, chapters, tasks, points, _ in plan():
        listed = ", ".join(map(str, chapters))
        line = f"| {week} | chapters {listed} | tasks {tasks[0]} and {tasks[1]}"
        assert re.search(rf"{re.escape(line)}[^|]*\| {points}\b", text)
