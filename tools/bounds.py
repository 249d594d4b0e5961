"""Both ends of the versions that pyproject.toml allows, as words for pip: `make test-oldest`.

`python -m tools.bounds oldest` prints the lowest version of each dependency of the module and of
its tests, `newest` the names alone, of which pip takes the latest. Only what the module's tests
need: the book has its own, in requirements.lock.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("experiments", "fast", "cluster", "plots")
#: Of the extras `book` and `test`, what tests/module and conftest.py need.
FOR_TESTS = (
    "jupytext",
    "nbclient",
    "pytest",
    "pytest-xdist",
    "nbval",
    "hypothesis",
    "pytrec-eval-terrier",
    "ir_measures",
    "playwright",
    "axe-playwright-python",
    "pypdf",
)
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)>=(?P<lowest>[0-9.]+)")


def requirements() -> dict[str, str]:
    """The lowest version of each package, by its name.

    >>> requirements()["torch"].count(".") >= 1
    True
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = list(project["dependencies"])
    for extra in EXTRAS:
        lines += extras[extra]
    lowest = {}
    for line in [*lines, *extras["book"], *extras["test"]]:
        match = _REQUIREMENT.match(line)
        if match is not None and (line in lines or match["name"] in FOR_TESTS):
            lowest[match["name"]] = match["lowest"]
    return lowest


def words(end: str) -> list[str]:
    """What pip is to install, torch first.

    Args:
        end: "oldest" or "newest".

    Returns:
        ``name==version`` of each package, or its name.

    >>> words("newest")[0]
    'torch'
    """
    if end == "newest":
        return list(requirements())
    if end == "oldest":
        return [f"{name}=={lowest}" for name, lowest in requirements().items()]
    raise SystemExit(f"tools.bounds: {end!r} is no end; say oldest or newest.")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(" ".join(words(sys.argv[1])))
