"""The tools for whoever works on the repository: what they count and find."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import sizes

ROOT = Path(__file__).resolve().parent.parent
WORDS = "tests look at the built pages in a browser and were left out"


def test_sizes_of_a_small_tree(tmp_path, monkeypatch, capsys):
    files = {
        "tests/test_import.py": 'RINGS = {1: "policy", 2: "data compiled*", 3: "cli"}\n',
        "fairpg_lite/__init__.py": "x\n" * 3,
        "fairpg_lite/policy.py": "x\n" * 301,
        "fairpg_lite/data/letor.py": "x\n\n" * 5,
        "fairpg_lite/compiled_epoch.py": "x\n",
        "fairpg_lite/cli/__init__.py": "",
        "book/experiments/plots.py": "x\n" * 7,
        "book/coursework/checker/a.py": "x\n" * 2,
        "tools/a.py": "x\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = list(sizes.count(tmp_path).values())
    assert found == [301, 11, 0, 3, 315, 5, 1, 9, 324, 1, 1]
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    monkeypatch.setattr(sizes, "count", lambda: dict.fromkeys(sizes.LIMITS, 0))
    assert sizes.main() == 0
    assert "fairpg_lite/policy.py has 301 lines" in capsys.readouterr().out


def test_every_limit_is_of_something_that_is_counted():
    assert set(sizes.LIMITS) <= set(sizes.count())


def last_line(path, *files):
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(run, cwd=ROOT, env={"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_the_last_line_says_that_there_was_no_browser(tmp_path):
    """With a PATH that has no Chromium; and not a word where nothing was left out."""
    said = last_line(str(tmp_path), "tests/test_browser_checks.py")
    assert WORDS in said
    assert said.split()[0].isdigit()
    assert WORDS not in last_line(str(tmp_path), "tests/test_math_punctuation.py")
