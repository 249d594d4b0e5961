"""The words for pip at both ends of the versions."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

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


def test_every_locked_release_runs_on_the_oldest_python_that_is_promised():
    """Python 3.11.0: some releases ask for a later 3.11, and some systems have an earlier one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lowest = project["requires-python"].removeprefix(">=") + ".0"
    locked = []
    for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines():
        if "==" in line and not line.startswith("#"):
            locked.append(line.partition("==")[0])
    refused = {}
    for name in locked:
        wanted = metadata.metadata(name).get("Requires-Python")
        if wanted is not None and not SpecifierSet(wanted).contains(lowest):
            refused[name] = wanted
    assert refused == {}
