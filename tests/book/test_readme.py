"""README.md's code runs, prints the numbers that are shown there, and its links lead somewhere."""

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
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")


def section(heading):
    return TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def blocks(heading, kind):
    """The code blocks of one kind in a section."""
    return re.findall(rf"```{kind}\n(.*?)```", section(heading), flags=re.DOTALL)


def numbers(text):
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def assert_same_numbers(printed, shown):
    """As many numbers in the same order; another processor may change the third digit or so."""
    assert numbers(printed) == pytest.approx(numbers(shown), rel=0.01, abs=3e-4), printed


def run_python(code, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_ten_lines(tmp_path):
    (code,) = blocks("Ten lines", "python")
    (shown,) = blocks("Ten lines", "text")
    assert_same_numbers(run_python(code, tmp_path), shown)


@pytest.mark.slow
def test_the_command_line(tmp_path):
    """In a fresh directory, by a shell that finds this checkout's `fairpg-lite` and this Python."""
    (code,) = blocks("Command line", "bash")
    (shown,) = blocks("Command line", "text")
    programs = tmp_path / "bin"
    work = tmp_path / "work"
    programs.mkdir()
    work.mkdir()
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
    assert_same_numbers(result.stdout, shown)
    made = {p.name for p in (work / "sweep").iterdir()}
    assert {"table.csv", "tradeoff.png", "tradeoff.svg", "models"} <= made


@pytest.mark.slow
def test_the_sweep_from_python_is_that_of_the_command_line(tmp_path):
    code, _ = blocks("From Python, and from another ranker", "python")
    (shown,) = blocks("Command line", "text")
    run_python(code, tmp_path)
    assert (tmp_path / "tradeoff.png").stat().st_size > 1000
    rows = list(csv.DictReader((tmp_path / "sweep" / "table.csv").read_text().splitlines()))
    for line in shown.splitlines()[-4:]:
        lam, ndcg, d_group = map(float, line.split())
        runs = [row for row in rows if float(row["lam"]) == lam]
        means = [statistics.mean(float(row[name]) for row in runs) for name in ("ndcg", "d_group")]
        assert means == pytest.approx([ndcg, d_group], rel=0.01, abs=3e-4)


@pytest.mark.slow
def test_lightgbms_scores(tmp_path):
    _, code = blocks("From Python, and from another ranker", "python")
    (shown,) = blocks("From Python, and from another ranker", "text")
    assert_same_numbers(run_python(code, tmp_path), shown)


def test_the_comparison_sees_another_number():
    assert_same_numbers("lambda 25: NDCG 0.8694, D_group 0.0013", "lambda 25: NDCG 0.869, 0.0013")
    for other in ("NDCG 0.85, 0.0013", "NDCG 0.869, 0.0023", "NDCG 0.869"):
        with pytest.raises(AssertionError):
            assert_same_numbers(other, "NDCG 0.869, 0.0013")


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


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z-]+)", TEXT))))
def test_a_command_of_the_makefile_is_there(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists(), target
