"""The slides of two chapters: every slide fits, keys turn them, formulas are drawn, no network."""

import browser as ask
import pytest
import yaml
from bs4 import BeautifulSoup

from tools.check_html import problems
from tools.chromium import chromium
from tools.make_slides import PLAN, deck, make_slides

CHAPTERS = yaml.safe_load(PLAN.read_text())
# What reaches out of its slide, or into the line at its foot.
OUTSIDE = """() => {
  const slide = document.querySelector('.slide.now').getBoundingClientRect();
  const foot = document.querySelector('footer').getBoundingClientRect().top;
  return [...document.querySelectorAll('.slide.now *')].filter(e => !e.closest('svg'))
    .filter(e => !e.closest('mjx-assistive-mml')).filter(e => {
      const box = e.getBoundingClientRect();
      return box.width && (box.bottom > foot + 2 && !e.matches('.body')
        || box.right > slide.right + 1 || box.left < slide.left - 1 || box.top < slide.top - 1);
    }).map(e => e.tagName + ' ' + e.className + ' ' + e.textContent.slice(0, 40));
}"""


@pytest.fixture(scope="module")
def slides(built_book, tmp_path_factory):
    return make_slides(tmp_path_factory.mktemp("slides"), built_book)


@pytest.fixture(scope="module")
def window():
    with chromium() as browser:
        yield ask.Visit(browser)


def open_slides(window, file):
    window.open(file)
    window.page.set_viewport_size({"width": 1280, "height": 720})
    return window.page


def test_two_chapters_have_slides_that_load_nothing_from_the_web(slides):
    assert [file.stem for file in slides] == ["01_ten_candidates", "07_fair_pg_rank"]
    assert list(problems(slides[0].parent)) == []


def test_a_slide_shows_what_the_chapter_shows(slides, built_book):
    page = BeautifulSoup(
        (built_book / "book" / "01_ten_candidates.html").read_text(), "html.parser"
    )
    here = BeautifulSoup(slides[0].read_text(), "html.parser")
    assert [h.get_text() for h in here.select("h2")][:2] == [
        "Ten candidates",
        "Sorting hands out attention",
    ]
    results = page.select_one("#sorting-hands-out-attention > .cell .cell_output").get_text()
    assert results.strip() in here.get_text()
    assert len(here.select("figure.frames img")) == len(page.select("figure.frames img"))
    assert not here.select("a[href^='#'], [hidden]:not(img)")


def test_a_name_that_the_chapter_lost_is_an_error(built_book):
    plan = [{"section": "ten-candidates", "show": ["#equation-eq-gone"]}]
    with pytest.raises(ValueError, match="nothing in the built page is named '#equation-eq-gone'"):
        deck("book/01_ten_candidates", plan, built_book)


@ask.needs_chromium
@pytest.mark.parametrize("index", range(len(CHAPTERS)))
def test_keys_turn_the_slides_and_everything_fits(window, slides, index):
    page = open_slides(window, slides[index])
    count = len(list(CHAPTERS.values())[index])
    assert page.locator(".slide").count() == count
    assert page.evaluate(ask.UNDRAWN) == []
    assert page.evaluate(ask.RAW_TEX) == []
    assert page.evaluate(ask.TEX_ERRORS) == []
    assert page.evaluate(ask.EQUATIONS) >= 4
    titles = []
    for number in range(1, count + 1):
        assert page.locator("#counter").inner_text() == f"{number} of {count}"
        assert page.locator(".slide.now").count() == 1
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate(ask.TOO_WIDE) <= 0
        titles.append(page.locator(".slide.now h2").inner_text())
        page.keyboard.press("ArrowRight")
    assert len(set(titles)) == count
    assert page.locator("#counter").inner_text() == f"{count} of {count}"  # the last one stays
    assert page.url.endswith(f"#{count}")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#counter").inner_text() == f"{count - 1} of {count}"
    page.keyboard.press("Home")
    page.locator("#next").click()
    assert page.locator("#counter").inner_text() == f"2 of {count}"
    assert window.complaints == []
    assert window.requests == []


@ask.needs_chromium
def test_a_slider_on_a_slide_keeps_its_arrow_keys(window, slides):
    page = open_slides(window, slides[0])
    page.evaluate("show(6)")
    figure = page.locator(".slide.now figure.frames")
    before = figure.locator("img:not([hidden])").get_attribute("alt")
    figure.locator("input").focus()
    page.keyboard.press("ArrowRight")
    assert figure.locator("img:not([hidden])").get_attribute("alt") != before
    assert page.locator("#counter").inner_text().startswith("7 of")


@ask.needs_chromium
def test_axe_finds_no_barrier_on_any_slide(window, slides):
    page = open_slides(window, slides[0])
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for index in (0, 1, 6):
            page.evaluate("index => show(index)", index)
            found = ask.accessibility(page, ask.axe_script())
            assert [f for f in found if f["impact"] in ask.SEVERE] == []


@ask.needs_chromium
def test_a_slide_that_is_too_full_is_seen(window, slides, tmp_path):
    file = tmp_path / "full.html"
    text = slides[0].read_text().replace("<blockquote>", "<p>line</p>" * 60 + "<blockquote>", 1)
    file.write_text(text)
    (tmp_path / "mathjax.js").write_bytes((slides[0].parent / "mathjax.js").read_bytes())
    assert open_slides(window, file).evaluate(OUTSIDE) != []
