"""Whoever looks a public name up in the code finds the chapter that derives it."""

import re

import pytest

import fairpg_lite

CHAPTERS = range(1, 16)
PUBLIC = [name for name in fairpg_lite.__all__ if callable(getattr(fairpg_lite, name))]
# "chapter 5", "Chapters 9 to 13", "chapters 10 and 11", "chapters 2, 6 and 7"
MENTION = re.compile(r"\bchapters?\s+(\d+(?:\s*(?:,|and|to)\s*\d+)*)", re.I)


def chapters_named(docstring):
    """The numbers of all chapters that a docstring names; the ends of a range stand for it."""
    mentions = MENTION.findall(docstring or "")
    return [int(number) for mention in mentions for number in re.findall(r"\d+", mention)]


def problem(docstring):
    named = chapters_named(docstring)
    if not named:
        return "names no chapter"
    wrong = [number for number in named if number not in CHAPTERS]
    return f"names chapter {wrong[0]}, and there are {CHAPTERS[-1]}" if wrong else None


def test_only_data_is_exempt():
    """A constant has no docstring of its own."""
    assert set(fairpg_lite.__all__) - set(PUBLIC) == {"MERITS", "__version__"}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_docstring_names_its_chapter(name):
    assert problem(getattr(fairpg_lite, name).__doc__) is None


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
    "docstring", [None, "A gain.", "Chapter 16.", "Chapters 9 to 31.", "Chapter 0."]
)
def test_a_wrong_docstring_is_caught(docstring):
    assert problem(docstring)
