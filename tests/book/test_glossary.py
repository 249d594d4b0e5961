"""A link to a term of the glossary has its definition at hand, by mouse, keyboard and tap.

That every term exists and is defined once is what the build checks.
"""

import re

import pytest

CHAPTER = "01_ten_candidates.html"


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


def test_every_page_links_to_the_index(built_book):
    for page in (built_book / "book").rglob("*.html"):
        link = re.search(r'<a [^>]*href="([^"]*genindex\.html)"', page.read_text(encoding="utf-8"))
        assert link, page
        assert (page.parent / link[1]).resolve() == (built_book / "genindex.html").resolve()
