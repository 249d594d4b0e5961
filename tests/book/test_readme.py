"""Every command, code block, link and figure of README.md works as written."""

import csv
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from fairpg_lite import position_bias

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()


def blocks(text):
    return re.findall(r"```(\w+)\n(.*?)```", text, flags=re.DOTALL)


BLOCKS = blocks(TEXT)
SECTIONS = {part.split("\n")[0]: part for part in TEXT.split("\n## ")}
COMMAND_LINE = SECTIONS.pop("Command line")
FROM_PYTHON = SECTIONS.pop("From Python, and from another ranker")
REST = [block for part in SECTIONS.values() for block in blocks(part)]
COMMANDS = [line for kind, body in REST if kind == "bash" for line in body.splitlines() if line]


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_every_block_is_of_a_kind_that_is_run():
    assert {kind for kind, _ in BLOCKS} == {"bash", "python", "text"}
    assert COMMANDS == ["make book", "make test", ".venv/bin/python -m pytest --nbval book/"]


def test_make_book(built_book):
    """The fixture runs `make book`, once per test run."""
    assert (built_book / "index.html").exists()


@pytest.mark.slow
def test_make_test():
    """`make test` for real, narrowed to one short file so that it does not run itself for ever.

    What runs this test has just checked the style: that it comes first is read off.
    """
    short = ["TESTS=tests/book/test_math_punctuation.py", "PYTEST_ARGS=-q -p no:cacheprovider"]
    ready = [f"VENV={sys.prefix}", "-o", "setup", "-o", f"{sys.prefix}/.installed"]
    plan = run("make", "-n", "test", *short, *ready).stdout
    programs = ["ruff check", "ruff format --check", "codespell", "mypy", "pytest"]
    places = [plan.index(f"/{name}" if name != "pytest" else "-m pytest") for name in programs]
    assert places == sorted(places)
    result = run("make", "test", *short, *ready, "-o", "style")
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    assert re.search(r"\d+ passed", result.stdout)


@pytest.mark.slow
def test_chapters_alone():
    """The command collects every cell of every chapter; `make test` runs them in this same run."""
    result = run(sys.executable, "-m", "pytest", "--nbval", "book/", "--collect-only", "-q")
    chapters = sorted(p.name for p in (ROOT / "book").glob("[0-9]*.ipynb"))
    assert result.returncode == 0, result.stdout[-2000:]
    assert chapters
    assert all(name in result.stdout for name in chapters)


@pytest.mark.slow
def test_ten_lines_print_what_the_readme_says():
    (code,) = [body for kind, body in REST if kind == "python"]
    (shown,) = [body for kind, body in REST if kind == "text"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    result = run(sys.executable, "-c", code)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout == shown


@pytest.mark.slow
def test_the_command_line_prints_what_the_readme_says(tmp_path):
    """In a fresh directory, by a shell that finds this checkout's `fairpg-lite` and this Python."""
    (code,) = [body for kind, body in blocks(COMMAND_LINE) if kind == "bash"]
    (shown,) = [body for kind, body in blocks(COMMAND_LINE) if kind == "text"]
    programs, work = tmp_path / "bin", tmp_path / "work"
    for folder in (programs, work):
        folder.mkdir()
    for name, call in {"python": "", "fairpg-lite": " -m fairpg_lite"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{call} "$@"\n')
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", code],
        cwd=work,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout == shown
    assert sorted(p.name for p in work.iterdir()) == ["model", "sweep", "test.txt", "train.txt"]
    made = {p.name for p in (work / "sweep").iterdir()}
    assert {"table.csv", "tradeoff.png", "tradeoff.svg", "models"} <= made


@pytest.mark.slow
def test_the_sweep_from_python_is_that_of_the_command_line(tmp_path):
    (code, _), ((_, shown),) = (
        [b for b in blocks(part) if b[0] == kind]
        for part, kind in ((FROM_PYTHON, "python"), (COMMAND_LINE, "text"))
    )
    assert sum(bool(line) for line in code[1].splitlines()) <= 5
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "tradeoff.png").stat().st_size > 1000
    rows = list(csv.DictReader((tmp_path / "sweep" / "table.csv").read_text().splitlines()))
    for line in shown.splitlines()[-4:]:
        lam, *means = line.split()
        runs = [row for row in rows if float(row["lam"]) == float(lam)]
        assert len(runs) == 3
        for name, mean in zip(("ndcg", "d_group"), means, strict=True):
            assert statistics.mean(float(row[name]) for row in runs) == pytest.approx(
                float(mean), abs=5.1e-5
            )


@pytest.mark.slow
def test_lightgbms_scores_print_what_the_readme_says():
    _, code = [body for kind, body in blocks(FROM_PYTHON) if kind == "python"]
    (shown,) = [body for kind, body in blocks(FROM_PYTHON) if kind == "text"]
    result = run(sys.executable, "-c", code)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout == shown


def test_the_figures_in_the_text_are_computed():
    v = position_bias(10)
    loss = 1 - float(v[5:].sum() / v[:5].sum())
    (said,) = re.findall(r"\*\*(\d+) per cent lower\*\*", TEXT)
    assert round(100 * loss) == int(said)
    assert float(v[0] / v[9]) > 3


STORED = re.findall(r"^\| \[([\w-]+)\]\(results/.*\| ([\d,]+) \| \d+ \|$", TEXT, flags=re.M)


@pytest.mark.parametrize(("name", "runs"), STORED)
def test_the_stored_results_are_as_many_as_said(name, runs):
    about = json.loads((ROOT / "results" / name / "table.json").read_text())
    assert f"{about['runs']:,}" == runs


def test_all_parts_and_commands_are_named():
    assert {name for name, _ in STORED} >= {"synthetic", "german", "mslr"}
    chapters = {p.name for p in (ROOT / "book").glob("[01]*.md")}
    assert all(f"(book/{name})" in TEXT for name in chapters)
    assert all(f"`{name}`" in TEXT for name in ("fit", "evaluate", "rank", "sweep"))


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists(), target
