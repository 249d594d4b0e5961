"""Every planted bug must turn its named test red; the sound code must leave it green."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mutants import MUTANTS
from plants import PLANTS

from fairpg_lite import group_disparity

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run_on_copy():
    """A function of a folder and tests: runs these against the package that stands there."""
    command = [sys.executable, str(ROOT / "tests" / "module" / "mutant_process.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd="/", **pipes) as process:

        def run(folder: Path, *tests: str, plant: str | None = None) -> tuple[int, str]:
            tests = [f"tests/module/{test}" for test in tests]
            asked = {"folder": str(folder), "tests": tests, "plant": plant}
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            return answer["code"], answer["output"]

        yield run
        process.stdin.close()


@pytest.fixture
def copy(tmp_path):
    for name in ("fairpg_lite", "tests", "book/experiments"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("_data", "__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("mutant", MUTANTS, ids=[m[0] for m in MUTANTS])
def test_planted_bug_is_caught(mutant, copy, run_on_copy):
    name, file, right, wrong, test = mutant
    source = copy / "fairpg_lite" / file
    text = source.read_text()
    assert text.count(right) == 1, f"{name}: {file} no longer holds the text to break, exactly once"
    source.write_text(text.replace(right, wrong))
    assert_caught(name, test, copy, *run_on_copy(copy, test))


@pytest.mark.parametrize("name", PLANTS)
def test_wrong_function_is_caught(name, run_on_copy):
    """The package as it is, with one function replaced in memory."""
    test = PLANTS[name][1]
    assert_caught(name, test, ROOT, *run_on_copy(ROOT, test, plant=name))


def assert_caught(name: str, test: str, folder: Path, code: int, output: str) -> None:
    # 1 = tests ran and failed; anything else (no test found, import error) proves nothing.
    assert code == 1, f"{name} was not caught by {test}:\n{output[-1500:]}"
    assert "ImportError" not in output
    assert str(folder) in output or "AssertionError" in output or "E  " in output


def test_the_copy_itself_is_what_runs_and_passes(copy, run_on_copy):
    """Without a mutation the named tests pass on the copy: it is the mutation that is caught.

    The tests that a planted function must turn red need no such proof: they run on this checkout,
    where the suite runs them as they are.
    """
    probe = copy / "tests" / "module" / "test_probe.py"
    probe.write_text(
        "import fairpg_lite\n"
        f"def test_copy():\n    assert fairpg_lite.__file__.startswith({str(copy)!r})\n"
    )
    code, output = run_on_copy(copy, "test_probe.py", *sorted({m[4] for m in MUTANTS}))
    assert code == 0, output[-2000:]


def test_masked_members_are_not_paid():
    """Padding may carry the label of a real group."""
    exposure = torch.tensor([1.0, 0.5, 0.9], dtype=torch.float64)
    merit, groups = torch.ones(3, dtype=torch.float64), torch.tensor([0, 1, 1])
    mask = torch.tensor([True, True, False])
    assert group_disparity(exposure, merit, groups, mask) == 0.5
