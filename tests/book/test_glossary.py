"""The glossary's terms: chapters link to them, and each link has its definition at hand."""

import re

import pytest

from tools.check_chapters import ROOT
from tools.run_chapters import chapters

GLOSSARY = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
TERMS = re.findall(r"^(\S.*)\n {4}\S", GLOSSARY.split("```{glossary}")[1], re.M)
LINKED = [text for text in chapters() if text.name[0] == "0"]
CHAPTER = "01_ten_candidates.html"


def terms_used(page):
    """Targets of {term}`word` and {term}`words <word>`."""
    return re.findall(r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`", page)


def test_a_term_is_defined_once():
    assert TERMS
    assert len(TERMS) == len(set(TERMS))


def test_the_glossary_links_to_its_own_terms():
    assert set(terms_used(GLOSSARY.split("```{glossary}")[1])) <= set(TERMS)


@pytest.mark.parametrize("text", LINKED, ids=lambda path: path.stem)
def test_a_chapter_links_to_terms_that_are_there(text):
    used = terms_used(text.read_text(encoding="utf-8"))
    assert set(used) <= set(TERMS)


def test_every_link_to_a_term_has_its_definition(built_book):
    page = (built_book / "book" / CHAPTER).read_text(encoding="utf-8")
    links = re.findall(r'<a aria-describedby="([^"]+)"[^>]*href="glossary.html#term-', page)
    tips = re.findall(r'<span role="tooltip" id="([^"]+)"><span>(?=.{20})', page)
    assert links
    assert links == tips
    assert len(set(tips)) == len(tips)
    assert 'href="glossary.html#term-' not in re.sub(r"<a aria-describedby[^>]*>", "", page)


@pytest.mark.parametrize(
    ("width", "chapter"), [(1280, CHAPTER), (390, CHAPTER), (390, "04_exposure.html")]
)
def test_a_definition_shows_by_keyboard_and_mouse_and_closes(window, built_book, width, chapter):
    """Inside tables too: chapter 4 has a term there."""
    page = window.open(built_book / "book" / chapter).page
    page.set_viewport_size({"width": width, "height": 900})
    count = page.locator(".defined-term").count()
    assert count > 5
    for number in {*range(0, count, 4), count - 1}:
        term = page.locator(".defined-term").nth(number)
        tip = term.get_by_role("tooltip", include_hidden=True)
        assert not tip.is_visible()
        term.locator("a").first.focus()
        assert tip.is_visible()
        box = tip.bounding_box()
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        seen = "([x, y]) => document.elementFromPoint(x, y)?.closest('[role=tooltip]')?.id"
        assert page.evaluate(seen, middle) == tip.get_attribute("id")
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        page.keyboard.press("Escape")
        assert not tip.is_visible()
        page.evaluate("document.activeElement.blur()")
        term.hover()
        assert tip.is_visible()
        page.mouse.move(0, 0)
        assert not tip.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
