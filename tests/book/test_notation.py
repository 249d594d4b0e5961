"""The notation page gives every letter one meaning, and no chapter gives it a second one."""

import pytest

from tools.check_chapters import ROOT, problems
from tools.letters import definitions, listed, second_meanings, twice
from tools.run_chapters import chapters

NOTATION = ROOT / "book" / "notation.md"
ROWS = listed(NOTATION.read_text(encoding="utf-8"))
PAGES = [text for text in chapters() if text.parent.name == "book" and text.name[0] in "01A"]


def test_the_page_gives_no_letter_two_meanings_in_one_chapter():
    assert len(ROWS) > 60
    assert list(twice(ROWS)) == []


@pytest.mark.parametrize("letter", ["G", "H", "U", "s", "M", "r", "S", r"\gamma", r"\lambda", "F"])
def test_a_letter_that_once_had_two_meanings_has_one(letter):
    assert len({meaning for known, meaning, _ in ROWS if known == letter}) == 1


@pytest.mark.parametrize("text", PAGES, ids=lambda path: path.stem)
def test_a_chapter_defines_no_letter_anew(text):
    assert list(second_meanings(text, NOTATION)) == []


@pytest.mark.parametrize(
    ("source", "letters"),
    [
        ("Let $G_i(z)$ be the generating function.", {"G"}),
        ("We write $\\hat U$ for the mean, where $H$ is the entropy.", {"U", "H"}),
        ("Let $\\alpha_j$ and $\\beta_j$ be two functions.", {r"\alpha", r"\beta"}),
        ("$$\ns_i = \\sum_j x_j ,\n$$ (eq-14-share)", {"s"}),
        ("$$\n\\begin{aligned}\nM &= 3, \\\\\ny &\\le 2\n\\end{aligned}\n$$", {"M"}),
        ("$$\n\\|g\\|^2 + 1 = \\E[z] = 3\n$$ and $\\lambda = 5$, let us go on.", set()),
    ],
)
def test_definitions_are_found(source, letters):
    assert definitions(source) == letters


def test_a_second_meaning_is_reported(tmp_path):
    page = tmp_path / "14_beyond.md"
    page.write_text("# Title\n\nLet $G_i(z)$ be a generating function and $y$ its value.\n")
    (fault,) = second_meanings(page, NOTATION)
    assert "$G$" in fault
    assert "the groups" in fault
    rows = [("G", "the groups", frozenset({"1", "5"})), ("G", "a function", frozenset({"5"}))]
    assert len(list(twice(rows))) == 1


def test_the_chapters_rules_ask_for_it(tmp_path):
    text = next(path for path in PAGES if path.name.startswith("08"))
    copy = tmp_path / "book" / text.name
    copy.parent.mkdir()
    (tmp_path / "_toc.yml").write_text("root: book/08_variance\n")
    copy.with_suffix(".ipynb").write_bytes(text.with_suffix(".ipynb").read_bytes())
    copy.write_text(text.read_text(encoding="utf-8") + "\nLet $G$ be a generating function.\n")
    assert any(
        "defines $G$, which means: the groups" in fault for fault in problems(copy, tmp_path)
    )
