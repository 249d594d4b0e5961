"""The words for pip at both ends of the versions."""

import tomllib
from pathlib import Path

import pytest

from tools.bounds import EXTRAS, words

ROOT = Path(__file__).resolve().parents[2]


def test_the_oldest_are_the_bounds_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = list(project["dependencies"])
    for extra in EXTRAS:
        named += project["optional-dependencies"][extra]
    bounds = {line.replace(">=", "==") for line in named if ">=" in line}
    assert bounds <= set(words("oldest"))
    assert words("newest") == [word.partition("==")[0] for word in words("oldest")]


def test_another_end_is_refused():
    with pytest.raises(SystemExit, match="oldest or newest"):
        words("middle")
