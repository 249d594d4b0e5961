"""Whoever looks a public name up finds the chapter and the equation, and the other way round.

Each docstring names a chapter, and what defines the thing by its label: `chapter 5, eq-05-dind`.
"""

import inspect
import re
from functools import cache
from pathlib import Path

import jupytext
import pytest

import fairpg_lite
import fairpg_lite.data
import fairpg_lite.post_processing
from experiments import learners
from fairpg_lite import PlackettLuce

BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTERS = range(1, 16)
MODULES = (fairpg_lite, fairpg_lite.data, fairpg_lite.post_processing, learners)
NUMBERS = r"\d+(?:(?:, | and | to )\d+)*"
LABEL = r"eq-\d\d-[a-z]+(?:-[a-z]+)*"
MENTION = re.compile(rf"\bchapters?\s+({NUMBERS})", re.I)


def public(module):
    """The names that a package passes on."""
    return getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and not inspect.ismodule(value)
    ]


def described():
    """Every public class and function, and what a policy can do, by name."""
    exported = {name: getattr(module, name) for module in MODULES for name in public(module)}
    own = {f"PlackettLuce.{name}": x for name, x in vars(PlackettLuce).items() if name[0] != "_"}
    # A number or a table has its type's docstring, not one of its own.
    return {
        name: x for name, x in {**exported, **own}.items() if callable(x) or isinstance(x, property)
    }


def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def chapters_named(docstring):
    """The numbers of all chapters that a docstring names; the ends of a range stand for it."""
    return [n for mention in MENTION.findall(docstring or "") for n in numbers(mention)]


def page(number, book=BOOK):
    """The text of a chapter, or None while it is to come."""
    found = sorted(book.glob(f"{number:02}_*.md"))
    return found[0].read_text(encoding="utf-8") if found else None


def to_come():
    """What the paper map says about chapters without a page (tests/test_paper_map.py checks it)."""
    rows = re.findall(r"^\| (\d+) \| – \| to come \|$", (BOOK / "paper_map.md").read_text(), re.M)
    return {int(number) for number in rows}


def problem(docstring, book=BOOK):
    """What is wrong with the words that lead to the book, or None."""
    if not chapters_named(docstring):
        return "names no chapter"
    for number in chapters_named(docstring):
        if number not in CHAPTERS:
            return f"names chapter {number}, and there are {CHAPTERS[-1]}"
        if page(number, book) is None and number not in to_come():
            return f"names chapter {number}, which has no page"
    for label in re.findall(LABEL, docstring):
        number = int(label[3:5])
        if number not in chapters_named(docstring):
            return f"names {label} and not chapter {number}"
        if f"$$ ({label})\n" not in (page(number, book) or ""):
            return f"names {label}, which chapter {number} does not have"
    return None


@cache
def code_of(text):
    cells = jupytext.reads(text, "md:myst").cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def shown(text, name):
    """Whether the code of a chapter uses this name of the module."""
    short = name.split(".")[-1]
    # A function comes as fpg.name or by import; a method or property behind a dot.
    pattern = rf"\.{short}\b" if "." in name else rf"\b(?:fpg\.|import [\w, ]*){short}\b"
    return re.search(pattern, code_of(text)) is not None


def links_to(text, name):
    return re.search(rf"\{{py:\w+\}}`[^`]*\b{re.escape(name)}[`>]", text) is not None


PUBLIC = described()


def test_only_data_is_exempt():
    """A constant has no docstring of its own."""
    listed = {name for module in MODULES for name in public(module)}
    assert not listed - set(PUBLIC)
    assert {"PlackettLuce.sample", "PlackettLuce.mode", "PlackettLuce.exposure"} <= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_docstring_leads_to_its_chapter_and_equation(name):
    assert problem(PUBLIC[name].__doc__) is None


@pytest.mark.parametrize("name", PUBLIC)
def test_a_chapter_that_shows_its_function_links_to_it(name):
    """The chapters that the docstring names, as far as they show the thing in their code."""
    silent = []
    for number in chapters_named(PUBLIC[name].__doc__):
        text = page(number)
        if text and shown(text, name) and not links_to(text, name):
            silent.append(number)
    assert not silent, f"chapters {silent} use {name} and do not link to it: {{py:func}}`...`"


def test_most_of_what_is_defined_by_an_equation_says_so():
    """The labels are not decoration: the heart of the module has them."""
    heart = ["dcg", "ndcg", "err", "expected_ndcg", "individual_disparity", "group_disparity"]
    heart += ["position_bias", "ranking_exposure", "fit", "PlackettLuce"]
    heart += [f"PlackettLuce.{x}" for x in ("sample", "log_prob", "entropy", "expect", "exposure")]
    assert not [name for name in heart if not re.search(LABEL, PUBLIC[name].__doc__)]


@pytest.mark.parametrize(
    ("docstring", "named"),
    [
        ("D_ind. Chapter 5, equation (3).", [5]),
        ("One evaluator.\n\n    Chapters 9 to 13.", [9, 13]),
        ("Metrics (chapters 2, 6 and 7), 12 of them.", [2, 6, 7]),
        ("See the chapters on 3 policies; equation 4.", []),
        (None, []),
    ],
)
def test_how_chapters_are_read(docstring, named):
    assert chapters_named(docstring) == named


@pytest.mark.parametrize(
    ("docstring", "complaint"),
    [
        (None, "no chapter"),
        ("A gain.", "no chapter"),
        ("A gain (chapter 2, eq-02-there).", None),
        ("A gain (chapter 2).\n\n    Chapter 31.", "chapter 31"),
        ("A gain.\n\n    Chapter 16.", "chapter 16"),
        ("A gain.\n\n    Chapters 1 and 31.", "chapter 31"),
        ("A gain.\n\n    Chapter 0.", "chapter 0"),
        ("A gain.\n\n    Chapter 4.", "no page"),
        ("A gain.\n\n    Chapter 1, eq-01-other.", "does not have"),
        ("A gain.\n\n    Chapter 1, eq-02-there.", "not chapter 2"),
        ("A gain.\n\n    Chapter 1, eq-01-there.", None),
        ("A gain.\n\n    Chapters 1 and 2, eq-01-there, eq-02-there; and so on.", None),
    ],
)
def test_a_wrong_docstring_is_caught(docstring, complaint, tmp_path):
    """Beside a book of two chapters and the real map."""
    for number in (1, 2):
        (tmp_path / f"0{number}_name.md").write_text(f"$$\nx\n$$ (eq-0{number}-there)\n")
    found = problem(docstring, tmp_path)
    assert (found is None) if complaint is None else (complaint in found)


@pytest.mark.parametrize(
    ("text", "is_shown", "is_linked"),
    [
        ("```{code-cell} ipython3\nfpg.dcg(r, rel)\n```\n", True, False),
        ("See {py:func}`~fairpg_lite.metrics.dcg`.\n", False, True),
        ("```{code-cell} ipython3\nfpg.ideal_dcg(rel)\n```\n", False, False),
        ("See {py:func}`~fairpg_lite.metrics.ideal_dcg`, and fpg.dcg too.\n", False, False),
    ],
)
def test_how_use_and_links_are_told(text, is_shown, is_linked):
    head = "---\njupytext:\n  text_representation:\n    format_name: myst\n---\n\n"
    assert shown(head + text, "dcg") == is_shown
    assert links_to(text, "dcg") == is_linked
