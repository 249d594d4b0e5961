"""`help()` is enough: what a public name takes and returns, an example, and where to read on."""

import ast
import dataclasses
import inspect
import re
import textwrap
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import fairpg_lite

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = {name: getattr(fairpg_lite, name) for name in fairpg_lite.__all__ if name[0] != "_"}
PUBLIC |= {name: getattr(fairpg_lite, name) for name in ("FairRanker", "disparity_score")}
SECTION = r"^ *{}:\n((?:(?: {{4,}}.*)?\n)+)"
MENTION = re.compile(r"\bchapters?\s+(A?\d+(?:(?:, | and | to )A?\d+)*)", re.I)
LABEL = re.compile(r"\beq-\w\d-[a-z]+(?:-[a-z]+)*")


def section(docstring, title):
    """The lines below ``Args:`` or ``Returns:``, or nothing."""
    found = re.search(SECTION.format(title), f"{docstring}\n", re.M)
    return found[1] if found else ""


def arguments(thing):
    """What the caller gives by name or place; a class's are those of its ``__init__``."""
    if getattr(thing, "_is_protocol", False):
        return []
    parameters = inspect.signature(thing).parameters.values()
    return [p.name.lstrip("*") for p in parameters if p.name != "self"]


def documented_fields(kind):
    """The fields of a dataclass, its parents' included, that a docstring of their own follows."""
    documented = set()
    for ancestor in kind.__mro__[:-1]:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(ancestor))).body
        for field, text in pairwise(definition.body):
            is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and is_text:
                documented.add(field.target.id)
    return documented


def complaints(thing):
    """What the docstring lacks, in words."""
    docstring = inspect.getdoc(thing) or ""
    named = section(docstring, "Args")
    missing = [name for name in arguments(thing) if not re.search(rf"^ *{name}\b", named, re.M)]
    if dataclasses.is_dataclass(thing):
        missing = sorted(set(missing) - documented_fields(thing))
    if missing:
        yield f"Args says nothing of {', '.join(missing)}"
    if inspect.isfunction(thing):
        returns = inspect.signature(thing).return_annotation
        if returns not in (None, "None") and not section(docstring, "Returns"):
            yield "no Returns"
    if ">>> " not in docstring:
        yield "no example (>>>)"


@pytest.mark.parametrize("name", PUBLIC)
def test_help_is_enough(name):
    found = "; ".join(complaints(PUBLIC[name]))
    assert not found, f"{name}: {found}"


# --- the way to the book ---


@cache
def chapters():
    """The text of each chapter and appendix, by its number: 5, A1."""
    texts = [*(ROOT / "book").glob("[0-9][0-9]_*.md"), *(ROOT / "book").glob("A[0-9]_*.md")]
    return {p.name.split("_")[0].lstrip("0"): p.read_text(encoding="utf-8") for p in texts}


def docstrings(tree, prefix=""):
    """(name, docstring) of every function and class of a file, methods by Class.method."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{prefix}{node.name}"
            yield name, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                yield from docstrings(node, f"{name}.")


def wrong_ways(name, docstring, book):
    """Chapters that a docstring names and that do not mention the thing; labels without a place."""
    word = name.rpartition(".")[2]
    for mention in MENTION.findall(docstring):
        for number in re.findall(r"A?\d+", mention):
            if number not in book:
                yield f"{name} names chapter {number}, which is not there"
            elif not re.search(rf"(?<![\w]){word}\b", book[number]):
                yield f"{name} names chapter {number}, which does not mention it"
    for label in LABEL.findall(docstring):
        if not any(f"({label})" in text for text in book.values()):
            yield f"{name} names {label}, which no chapter has"


def test_a_docstring_names_only_chapters_that_mention_its_function():
    wrong = []
    for path in sorted((ROOT / "fairpg_lite").rglob("*.py")):
        for name, docstring in docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            found = wrong_ways(name, docstring, chapters())
            wrong += [f"{path.relative_to(ROOT)}: {problem}" for problem in found]
    assert not wrong, "\n".join(["", *wrong])


# --- both checks can fail ---


def complete(size: int, scale: float = 1.0) -> float:
    """A number.

    Args:
        size: How large.
        scale: By what factor.

    Returns:
        The product.

    >>> complete(2)
    2.0
    """
    return size * scale


def test_a_complete_docstring_passes_and_a_part_that_is_missing_is_named():
    assert list(complaints(complete)) == []
    for part, complaint in (
        ("        scale: By what factor.\n", "Args says nothing of scale"),
        ("    Returns:\n        The product.\n", "no Returns"),
        (">>> complete(2)\n", "no example (>>>)"),
    ):
        shorter = type(complete)(complete.__code__, {}, "shorter", complete.__defaults__)
        shorter.__annotations__ = complete.__annotations__
        shorter.__doc__ = complete.__doc__.replace(part, "")
        assert shorter.__doc__ != complete.__doc__
        assert list(complaints(shorter)) == [complaint]


@pytest.mark.parametrize(
    ("docstring", "complaint"),
    [
        ("Gain, chapter 2, eq-02-there.", None),
        ("Gain (chapters 2 and 9).", "does not mention it"),
        ("Gain (chapter 31).", "is not there"),
        ("Gain (eq-02-gone).", "no chapter has"),
    ],
)
def test_a_wrong_way_is_seen(docstring, complaint):
    book = {"2": "So `gain` is\n\n$$\nx\n$$ (eq-02-there)\n", "9": "Again."}
    found = list(wrong_ways("relevance.gain", docstring, book))
    assert (found == []) if complaint is None else (complaint in found[0])
