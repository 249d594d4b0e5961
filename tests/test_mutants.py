"""Every planted bug must turn its named test red; the sound code must leave it green."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mutants import MUTANTS

from fairpg_lite import group_disparity

ROOT = Path(__file__).resolve().parent.parent


def run_on_copy(folder: Path, test: str) -> subprocess.CompletedProcess:
    """Run one test against the package that stands in ``folder``."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        f"tests/{test}",
    ]
    path = os.pathsep.join([str(folder), str(folder / "tests")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    for name in ("fairpg_lite", "tests"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("_data", "__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("mutant", MUTANTS, ids=[m[0] for m in MUTANTS])
def test_planted_bug_is_caught(mutant, copy):
    name, file, right, wrong, test = mutant
    source = copy / "fairpg_lite" / file
    text = source.read_text()
    assert text.count(right) == 1, f"{name}: {file} no longer holds the text to break, exactly once"
    source.write_text(text.replace(right, wrong))
    result = run_on_copy(copy, test)
    # 1 = tests ran and failed; anything else (no test found, import error) proves nothing.
    assert result.returncode == 1, f"{name} was not caught by {test}:\n{result.stdout[-1500:]}"
    assert "ImportError" not in result.stdout
    assert str(copy) in result.stdout or "AssertionError" in result.stdout or "E  " in result.stdout


def test_the_copy_itself_is_what_runs_and_passes(copy):
    """Without a mutation the named tests pass on the copy: it is the mutation that is caught."""
    probe = copy / "tests" / "test_probe.py"
    probe.write_text(
        "import fairpg_lite\n"
        f"def test_copy():\n    assert fairpg_lite.__file__.startswith({str(copy)!r})\n"
    )
    names = sorted({m[4] for m in MUTANTS})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_probe.py",
    ]
    path = os.pathsep.join([str(copy), str(copy / "tests")])
    result = subprocess.run(
        [*command, *[f"tests/{name}" for name in names]],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-2000:]


def test_masked_members_are_not_paid():
    """Padding may carry the label of a real group."""
    exposure = torch.tensor([1.0, 0.5, 0.9], dtype=torch.float64)
    merit, groups = torch.ones(3, dtype=torch.float64), torch.tensor([0, 1, 1])
    mask = torch.tensor([True, True, False])
    assert group_disparity(exposure, merit, groups, mask) == 0.5
