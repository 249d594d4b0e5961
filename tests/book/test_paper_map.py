"""book/paper_map.md names every numbered item of the paper, and only things that exist."""

import ast
import importlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import experiments
import fairpg_lite

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "paper_map.md").read_text(encoding="utf-8")
# Counted in the paper's source: six numbered equations, the last of them in Section 3.2.1.
NUMBERED = [
    *(f"Equation ({k})" for k in range(1, 7)),
    "Algorithm 1",
    "Table 1",
    *(f"Figure {k}" for k in range(1, 4)),
]
CHAPTERS = range(1, 16)


def table(page, heading):
    """The rows of the table under a heading, as lists of cells."""
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def importable(name):
    """Whether `module.Class.method` leads from fairpg_lite or the experiments to a callable."""
    first, *parts = name.split(".")
    root = first == "experiments"
    found, path = (experiments, first) if root else (fairpg_lite, "fairpg_lite")
    try:
        for part in parts if root else (first, *parts):
            path += f".{part}"
            # An attribute first: `fairpg_lite.evaluate` is a function and a module of that name.
            found = getattr(found, part, None) or importlib.import_module(path)
    except ModuleNotFoundError:
        return False
    return callable(found)


@cache
def defined_tests(file):
    path = ROOT / "tests" / file
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in found if name.startswith("test_"))


def item_problems(row):
    """What is wrong with one row of the tables of items."""
    item, _, chapter, functions, tests = row
    if not (names(functions) and names(tests)):
        yield f"{item} names no function or no test"
    for name in names(functions):
        if not importable(name):
            yield f"{item}: {name} cannot be imported"
    for name in names(tests):
        file, _, test = name.partition("::")
        if test not in defined_tests(file):
            yield f"{item}: there is no test {name}"
    number = re.fullmatch(r"\{chapter\}`(\d+)`", chapter)
    if not number or int(number[1]) not in CHAPTERS:
        yield f"{item}: {chapter!r} is no chapter; write {{chapter}}`7`"


def chapter_problems(rows, book):
    """A chapter is there and linked, or is marked as to come; a wrong mark is wrong too."""
    if [row[0] for row in rows] != [str(k) for k in CHAPTERS]:
        yield "the chapters are not 1 to 15, each once and in order"
    for number, file, state in ([*row, ""][:3] for row in rows):  # all there: no third column
        there = sorted(path.stem for path in book.glob(f"{int(number):02}_*.md"))
        if state not in ("", "to come"):
            yield f"chapter {number} is {state!r}; leave the state empty or write 'to come'"
        elif state == "to come" and there:
            yield f"chapter {number} has come: name its file, {there[0]}, and drop 'to come'"
        elif not state and [file] != [f"{{doc}}`{name}`" for name in there]:
            yield f"chapter {number} is {file}, but book/ has {there}; link it: {{doc}}`...`"


def problems(page, book=ROOT / "book"):
    """Everything that is wrong with the map."""
    numbered = table(page, "Numbered items")
    count = Counter(row[0] for row in numbered)
    found = [f"{item} is there {count[item]} times" for item in NUMBERED if count[item] != 1]
    found += [f"{item} is no numbered item of the paper" for item in count if item not in NUMBERED]
    for row in numbered + table(page, "What the paper states without a number"):
        found += item_problems(row)
    return found + list(chapter_problems(table(page, "Chapters"), book))


def test_the_map_is_complete_and_leads_somewhere():
    assert problems(PAGE) == []


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("| Equation (4) |", "| Equation (3) |", "Equation (4) is there 0 times"),
        ("| Figure 3 |", "| Figure 4 |", "Figure 4 is no numbered item"),
        ("| `fit` |", "| `fitt` |", "Algorithm 1: fitt cannot be imported"),
        ("PlackettLuce.log_prob", "PlackettLuce.logprob", "cannot be imported"),
        ("`objective.Terms", "`objectives.Terms", "cannot be imported"),
        ("::test_fit_is_algorithm_one", "::test_fit_is_algorithm_two", "there is no test"),
        ("`test_policy.py::", "`test_politics.py::", "there is no test"),
        ("`test_policy.py::test_entropy_of_the_softmax`", "none", "no function or no test"),
        ("Fair-PG-Rank | {chapter}`7` |", "Fair-PG-Rank | {chapter}`17` |", "is no chapter"),
        ("Fair-PG-Rank | {chapter}`7` |", "Fair-PG-Rank | 7 |", "'7' is no chapter"),
    ],
)
def test_a_wrong_item_is_caught(right, wrong, complaint):
    assert right in PAGE, "the plant did not take"
    found = problems(PAGE.replace(right, wrong))
    assert any(complaint in problem for problem in found), found


@pytest.mark.parametrize(
    ("number", "row", "complaint"),
    [
        (1, ["1", "{doc}`01_ten_people`", ""], "chapter 1 is {doc}`01_ten_people`"),
        (1, ["1", "`01_ten_candidates`", ""], "link it"),
        (1, ["1", "{doc}`01_ten_candidates`", "to come"], "chapter 1 has come"),
        (1, ["1", "{doc}`01_ten_candidates`", "soon"], "leave the state empty"),
        (9, ["9", "{doc}`09_synthetic`", ""], "chapter 9 is {doc}`09_synthetic`"),
        (15, ["16", "–", "to come"], "not 1 to 15"),
    ],
)
def test_a_wrong_chapter_is_caught(number, row, complaint, tmp_path):
    """Beside a book of one chapter, so that the plants stay what they are as ours grows."""
    (tmp_path / "01_ten_candidates.md").touch()
    rows = [
        ["1", "{doc}`01_ten_candidates`", ""],
        *([str(k), "–", "to come"] for k in range(2, 16)),
    ]
    assert list(chapter_problems(rows, tmp_path)) == []
    rows[number - 1] = row
    assert any(complaint in problem for problem in chapter_problems(rows, tmp_path))
