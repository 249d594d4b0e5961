"""Slides: every slide fits, keys turn them, formulas are drawn, no network."""

import browser as ask
import pytest
import yaml
from bs4 import BeautifulSoup

from tools import built_page
from tools.make_slides import PLAN, make_slides, slides_of

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


def open_slides(window, file):
    window.open(file)
    window.page.set_viewport_size({"width": 1280, "height": 720})
    return window.page


def test_every_chapter_of_the_plan_has_slides(slides):
    assert [f"book/{file.stem}" for file in slides] == list(CHAPTERS)


def read(file):
    return BeautifulSoup(file.read_text(), "html.parser")


def test_every_slide_shows_or_says_something_and_has_notes(slides):
    for file in slides:
        for slide in read(file).select(".slide"):
            body = slide.select_one(".body")
            assert body.get_text().strip() or body.select("img, svg") or slide.select("ul")
            assert len(slide.select_one(".notes").get_text().split()) >= 5


def test_a_slide_shows_what_the_chapter_shows(slides, built_book):
    for file in slides:
        page = read(built_book / "book" / f"{file.stem}.html")
        for extra in page.select("[role=tooltip]"):  # a term's definition, on hover
            extra.decompose()
        built_page.formulas_as_tex(page)
        words = " ".join(page.get_text().split())
        here = read(file)
        titles = [h.get_text() for h in here.select("h2")]
        assert words.count(titles[0]) >= 1
        shown = here.select(".slide")
        for place, word in ((0, "Question."), (-1, "Takeaway.")):
            said = " ".join(shown[place].select_one(".body").get_text().split())
            assert said.startswith(word)
            assert said in words
        assert not any("Takeaway." in slide.get_text() for slide in shown[:-1])
        for output in here.select("pre"):
            assert " ".join(output.get_text().split()) in words
        assert not here.select("a[href^='#'], [hidden]:not(.drawn):not(.notes)")


PAGE = """<html><head></head><body><article class="bd-article"><section id="a"><h1>A</h1>
<p>One thing first. Then more.</p><blockquote><p>Question. Why?</p><p>Takeaway. So.</p></blockquote>
<section id="b"><h2>B</h2><p>Words of <span>B<span role="tooltip">A letter.</span></span>,
several of them. And then, with x,</p>
<div class="math" id="equation-x">x</div>
<details><div class="math" id="equation-y">y</div></details></section>
<section id="exercises"><h2>Exercises</h2><div class="math" id="z">z</div></section>
<section id="three-things-to-remember"><h2>Three things to remember</h2>
<ul><li>R</li></ul></section>
</section></article></body></html>"""


@pytest.fixture
def article():
    return BeautifulSoup(PAGE, "html.parser").select_one("article")


DRAWN = """<html><body><article><section id="a"><h1>A</h1>
<blockquote><p>Question. Why?</p><p>Takeaway. So.</p></blockquote>
<section id="b"><h2>B</h2><p>Every word before a formula says what it is for. Then</p>
<div class="math" id="equation-x">\\[\\begin{split}x,\\\\ y \\,,\\end{split}\\]</div>
<figure class="explorable"><div class="drawn" style="--ratio:2">
<svg viewBox="0 0 2 1"><defs><path id="p"></path></defs></svg></div>
<figcaption><p>All lists at once. Drag <button class="xp-word">the policy</button>.</p></figcaption>
</figure><p>The dots lie on one line. So they do.</p></section></section></article></body></html>"""


def test_a_figure_drawn_in_the_page_stands_still_and_a_formula_has_its_words(tmp_path):
    (tmp_path / "page.html").write_text(DRAWN)
    _, article = built_page.read("page", tmp_path)
    made = slides_of(article, {}, "page", tmp_path / "page.html", [])
    shown = BeautifulSoup(made, "html.parser")
    formula, picture = shown.select(".slide")[1:3]
    assert "says what it is for. Then" in formula.get_text()
    assert formula.select_one("div.math").get_text().endswith(r"y \end{split}\]")
    assert picture.select_one("svg #p")  # what the drawing refers to
    assert picture.select_one("figcaption").get_text() == "All lists at once."
    assert picture.select_one(".notes").get_text().startswith("The dots lie on one line.")


def titles(text):
    return [h.get_text() for h in BeautifulSoup(text, "html.parser").select("h2")]


def test_a_deck_follows_its_chapter_and_leaves_folded_things_and_exercises_out(article, tmp_path):
    lost = []
    made = slides_of(article, {"ask": "Q?", "open": "Say hello."}, "a", tmp_path / "a.html", lost)
    remember = "Three things to remember"
    assert titles(made) == ["A", "Before we begin", "B", remember, "The takeaway"]
    assert "A letter." not in made
    notes = BeautifulSoup(made, "html.parser").select(".notes")[2].get_text()
    assert notes == "Words of B, several of them."
    assert ">y<" not in made
    assert ">z<" not in made
    assert "Say hello." in made
    assert "Words of B" in made
    assert lost == []


def test_what_the_chapter_lost_is_reported_and_gets_its_automatic_slide(article, tmp_path):
    lost = []
    plan = {
        "slides": [
            {"section": "b", "show": ["#equation-gone"], "say": ["A word"]},
            {"section": "c", "show": []},
        ]
    }
    made = slides_of(article, plan, "a", tmp_path / "a.html", lost)
    assert len(lost) == 2
    assert "'#equation-gone'" in lost[1]
    assert titles(made) == ["A", "B", "Three things to remember", "The takeaway"]
    assert "A word" in made
    plan = {"slides": [{"section": "b", "title": "Mine", "show": ["#equation-y"]}]}
    assert titles(slides_of(article, plan, "a", tmp_path / "a.html", []))[1] == "Mine"


@pytest.mark.parametrize("index", range(len(CHAPTERS)))
def test_keys_turn_the_slides_and_everything_fits(window, slides, index):
    page = open_slides(window, slides[index])
    count = page.locator(".slide").count()
    assert count >= 6
    assert page.evaluate(ask.UNDRAWN) == []
    assert page.evaluate(ask.RAW_TEX) == []
    assert page.evaluate(ask.TEX_ERRORS) == []
    assert page.evaluate(ask.EQUATIONS) >= 1
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
    notes = page.locator(".slide.now .notes")
    assert not notes.is_visible()
    page.keyboard.press("n")
    assert notes.is_visible()
    page.keyboard.press("n")
    page.locator("#next").click()
    assert page.locator("#counter").inner_text() == f"2 of {count}"
    assert window.complaints == []
    assert window.requests == []


def test_axe_finds_no_barrier_on_any_slide(window, slides):
    page = open_slides(window, slides[0])
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for index in (0, 1, 4):
            page.evaluate("index => show(index)", index)
            found = ask.accessibility(page, ask.axe_script())
            assert [f for f in found if f["impact"] in ask.SEVERE] == []


def test_a_slide_that_is_too_full_is_seen(window, slides, tmp_path):
    (tmp_path / "mathjax.js").write_bytes((slides[0].parent / "mathjax.js").read_bytes())
    file = tmp_path / "full.html"
    text = slides[0].read_text()
    file.write_text(
        text.replace('<div class="body">', '<div class="body">' + "<p>line</p>" * 400, 1)
    )
    assert open_slides(window, file).evaluate(OUTSIDE) != []
