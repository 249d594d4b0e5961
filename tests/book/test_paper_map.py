"""book/paper_map.md names every numbered item of the paper, and only things that exist."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "paper_map.md").read_text(encoding="utf-8")
# Counted in the paper's source: six numbered equations, the last of them in Section 3.2.1.
NUMBERED = [
    *(f"Equation ({k})" for k in range(1, 7)),
    "Algorithm 1",
    "Table 1",
    *(f"Figure {k}" for k in range(1, 4)),
]


def table(heading):
    """The rows of the table under a heading, as lists of cells."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


ROWS = table("Numbered items") + table("What the paper states without a number")


def names(column):
    """The names in a column of the tables: the fourth has functions, the fifth tests."""
    return sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[column])})


def find(name):
    """What `module.Class.method` names, from fairpg_lite or from the experiments."""
    parts = name.split(".")
    path = parts.pop(0) if parts[0] == "experiments" else "fairpg_lite"
    thing = importlib.import_module(path)
    for part in parts:
        path = f"{path}.{part}"
        if not hasattr(thing, part):
            importlib.import_module(path)
        thing = getattr(thing, part)
    return thing


@cache
def defined_tests(file):
    """The names of the tests in the file of that name below `tests/`."""
    (path,) = (ROOT / "tests").rglob(file)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_numbered_item_of_the_paper_has_its_row():
    assert [row[0] for row in table("Numbered items")] == NUMBERED


def test_every_row_names_a_function_and_a_test():
    assert not [row[0] for row in ROWS if not ("`" in row[3] and "`" in row[4])]


@pytest.mark.parametrize("name", names(3))
def test_a_function_can_be_imported(name):
    assert callable(find(name))


@pytest.mark.parametrize("name", names(4))
def test_a_test_is_there(name):
    file, _, test = name.partition("::")
    assert test in defined_tests(file)
