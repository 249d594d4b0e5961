"""The built pages in a real browser: formulas drawn, nothing too wide, sliders move, no network.

Every page is opened once from the file system and looked at four times: wide and narrow, light and
dark. Every solution is unfolded, every slider moved by mouse and keyboard, and axe-core looks for
what would keep somebody from reading. Needs Debian's chromium or any Chromium on the PATH;
`.ci/run` installs it where it can. What was seen is written to _build/browser-report.md.
"""

import functools
import http.server
import re
import threading

import browser as ask
import pytest
import yaml

from tools.check_chapters import ROOT, files_in

MADE_BY_SPHINX = ["genindex", "py-modindex", "prf-prf", "search"]
PAGES = sorted(files_in(yaml.safe_load((ROOT / "_toc.yml").read_text()))) + MADE_BY_SPHINX
HEAD = "| page | views | formulas | unfolded | sliders | axe: severe | axe: lesser |"


class Report:
    """What the browser saw, as a Markdown table with one line per page."""

    def __init__(self):
        self.rows, self.lines, self.lesser = {}, [], {}

    def add(self, name, formulas, unfolded, sliders, found):
        severe = [f for f in found if f["impact"] in ask.SEVERE]
        for finding in found:
            self.lesser.setdefault((finding["impact"], finding["rule"]), set()).add(name)
        self.rows[name] = [len(ask.VIEWS), formulas, unfolded, sliders, len(severe)]
        self.rows[name].append(len(found) - len(severe))

    def text(self):
        table = [HEAD, "|---" * 7 + "|"]
        table += [f"| {n} | " + " | ".join(map(str, row)) + " |" for n, row in self.rows.items()]
        total = [sum(column) for column in zip(*self.rows.values(), strict=True)]
        table.append(f"| {len(self.rows)} pages | " + " | ".join(map(str, total)) + " |")
        rules = [
            f"- {impact}: {rule} on {len(names)} pages"
            for (impact, rule), names in sorted(self.lesser.items())
        ]
        rest = ["", "What axe-core found:", "", *(rules or ["- nothing"]), ""]
        return "\n".join(["# The book in a browser", "", *table, "", *self.lines, *rest])


@pytest.fixture(scope="module")
def report(built_book):
    report = Report()
    yield report
    if report.rows:
        (built_book.parent / "browser-report.md").write_text(report.text())


@pytest.fixture(scope="module")
def axe():
    return ask.axe_script()


def unfold(page):
    """Open every folded box by a click on its title, the first by keyboard; how many there were."""
    boxes = page.locator("article .toggle-hidden").all()
    titles = [page.locator(f"#{box.get_attribute('id')} > .admonition-title") for box in boxes]
    for index, title in enumerate(titles):
        if index == 0:
            title.locator("button").focus()
            page.keyboard.press("Enter")
        else:
            title.click()
    assert page.evaluate(ask.FOLDED) == []
    return len(boxes)


def shown(figure):
    visible = figure.locator(".drawn:not([hidden])")
    assert visible.count() == 1
    assert visible.is_visible()
    return words_of(visible)


def words_of(picture):
    return picture.get_attribute("aria-label"), picture.get_attribute("data-value")


def move_by_keyboard(page, figure):
    slider = figure.locator("input[type=range]")
    assert slider.evaluate("e => e.labels.length") == 1
    slider.focus()
    page.keyboard.press("Home")
    first = shown(figure)
    page.keyboard.press("ArrowRight")
    second = shown(figure)
    assert second != first
    assert figure.locator("output").inner_text() == second[1]
    assert slider.get_attribute("aria-valuetext") == second[1]
    page.keyboard.press("End")
    assert shown(figure) == words_of(figure.locator(".drawn").last)


def move_by_mouse(page, figure):
    """Drag the knob from the right end, where the keyboard left it, to the left end."""
    slider = figure.locator("input[type=range]")
    slider.scroll_into_view_if_needed()
    box, before = slider.bounding_box(), shown(figure)
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 8, height)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, height)
    half = shown(figure)
    page.mouse.move(box["x"] + 2, height)
    page.mouse.up()
    assert shown(figure) == words_of(figure.locator(".drawn").first)
    assert len({before, half, shown(figure)}) == min(3, figure.locator(".drawn").count())


def move_sliders(page):
    figures = page.locator("figure.frames").all()
    start = [shown(figure) for figure in figures]
    for index, figure in enumerate(figures):
        move_by_keyboard(page, figure)
        move_by_mouse(page, figure)
        assert [shown(f) for f in figures[index + 1 :]] == start[index + 1 :]  # each on its own
    return len(figures)


@pytest.mark.parametrize("name", PAGES)
def test_page(window, built_book, report, axe, name):
    file = built_book / f"{name}.html"
    page = window.open(file).page
    unfolded = unfold(page)
    assert page.evaluate(ask.UNDRAWN) == []
    assert page.evaluate(ask.RAW_TEX) == []
    assert page.evaluate(ask.TEX_ERRORS) == []
    if not name.endswith("/api"):  # signatures and doctests there are as long as they are
        assert page.evaluate(ask.SCROLLS) == []
    for width, scheme in ask.VIEWS:
        window.look(width, scheme)
        assert page.evaluate(ask.TOO_WIDE) <= 0, f"{width} px, {scheme}"
        if width == ask.WIDE:  # the colours are the same on a narrow page
            assert page.evaluate(ask.FAINT) == [], scheme
        elif scheme == "light":
            assert page.evaluate(ask.SMALL_LETTERS) == []
            assert page.evaluate(ask.CUT_FIGURES) == []
            assert page.evaluate(ask.SMALL_CODE) == []
    sliders, formulas = move_sliders(page), page.evaluate(ask.EQUATIONS)
    assert window.complaints == []
    assert window.requests == []
    found = ask.accessibility(page, axe, only_contrast=True)
    window.look(ask.WIDE, "light")
    found += ask.accessibility(page, axe)
    report.add(name, formulas, unfolded, sliders, found)
    assert [f for f in found if f["impact"] in ask.SEVERE] == []


def test_every_page_was_visited(built_book):
    """And the book has what the visit is about: a slider, folded solutions, formulas."""
    files = [p for p in built_book.rglob("*.html") if "_static" not in p.parts]
    built = {p.relative_to(built_book).with_suffix("").as_posix() for p in files}
    assert built == {*PAGES, "index"}
    text = (built_book / "book" / "03_plackett_luce.html").read_text()
    assert 'class="frames"' in text
    assert 'class="solution dropdown' in text
    assert 'class="math' in text


def test_the_scoreboard_of_the_first_page_leads_to_its_claims(window, built_book):
    """These links are HTML of our own, which Sphinx does not follow when it builds."""
    page = window.open(built_book / "book" / "intro.html").page
    links = page.locator(".scoreboard a").evaluate_all("all => all.map(a => a.href)")
    places = {link.partition("#")[2] for link in links}
    assert places
    board = window.open(built_book / "book" / "13_scoreboard.html").page
    assert [place for place in places if board.locator(f"#{place}").count() != 1] == []


def test_search_finds_exposure_without_a_server(window, built_book, report):
    page = window.open(built_book / "search.html", "?q=exposure").page
    page.locator("#search-results li").first.wait_for()
    page.locator("#search-results .search-summary").filter(has_text="found").wait_for()
    found = page.locator("#search-results li > a")
    assert any("04_exposure.html" in link.get_attribute("href") for link in found.all())
    assert window.complaints == []
    report.lines.append(f"- search for “exposure”: {found.count()} results")
    found.first.click()
    page.wait_for_url("**/book/**")
    assert "exposure" in page.locator("article").inner_text().lower()


def test_the_first_page_leads_to_the_book(window, built_book):
    window.page.goto((built_book / "index.html").as_uri())
    window.page.wait_for_url("**/book/intro.html")
    assert window.page.locator("article h1").inner_text().startswith("Fairness of exposure")


def test_the_first_page_can_be_moved(window, built_book):
    """Its explorable is alive in the built book; tests/book/test_explorables.py has the rest."""
    page = window.open(built_book / "book" / "intro.html").page
    figure = page.locator("figure.explorable#explore-list")
    before = figure.locator(".xp-headline").inner_text()
    figure.get_by_label("how much is left to chance").press("End")
    assert figure.locator(".xp-headline").inner_text() != before
    assert not figure.locator(".xp-room > img").is_visible()
    assert window.complaints == []
    assert window.requests == []


@pytest.mark.parametrize("words", ["exposure", "D_group"])
def test_search_puts_definition_and_chapters_before_the_code(window, built_book, words):
    page = window.open(built_book / "search.html", f"?q={words}").page
    page.locator("#search-results .search-summary").filter(has_text="found").wait_for()
    links = page.locator("#search-results li > a").evaluate_all("all => all.map(a => a.href)")
    assert "glossary.html#term-" in links[0]
    pages = [link.rpartition("/")[2].partition("#")[0] for link in links]
    chapters = [k for k, name in enumerate(pages) if name[0].isdigit()]
    functions = [k for k, name in enumerate(pages) if name == "api.html"]
    assert chapters[0] < min(functions, default=len(pages))


@pytest.mark.parametrize("words", ["plug-in bias", "leave-one-out", "custom disparity"])
def test_search_leads_to_the_words_of_the_glossary(window, built_book, words):
    page = window.open(built_book / "search.html", f"?q={words.replace(' ', '+')}").page
    page.locator("#search-results .search-summary").filter(has_text="found").wait_for()
    first = page.locator("#search-results li > a").first.get_attribute("href")
    assert f"glossary.html#term-{words.replace(' ', '-')}" in first


def test_a_summary_reads_like_the_page(window, built_book):
    """What search.js makes of a page: no tooltips, no TeX."""
    page = window.open(built_book / "search.html", "?q=nothing").page
    text = (built_book / "book" / "05_merit_and_disparity.html").read_text(encoding="utf-8")
    assert "tooltip" in text
    assert r"\mathcal" in text or r"\Dgroup" in text
    seen = page.evaluate("html => Search.htmlToText(html, '')", text)
    assert "D_group" in seen
    plain = page.evaluate(
        """html => { const d = new DOMParser().parseFromString(html, 'text/html');
        return d.querySelector('[role=tooltip]').textContent }""",
        text,
    )
    assert plain not in seen
    assert not [word for word in (r"\Dgroup", r"\mathcal", r"\(", r"\[") if word in seen]


def test_formulas_are_no_stops_of_the_tab_key(window, built_book):
    page = window.open(built_book / "book" / "04_exposure.html").page
    formulas = page.locator("mjx-container").count()
    assert formulas > 50
    assert page.locator("mjx-container[tabindex='0']").count() == 0
    # A screen reader still gets them, as MathML.
    assert page.locator("mjx-container mjx-assistive-mml math").count() == formulas


def test_a_figure_can_be_enlarged(window, built_book):
    page = window.open(built_book / "book" / "03_plackett_luce.html").page
    figure = page.locator("div.cell_output figure .drawn").first
    before = figure.bounding_box()["width"]
    figure.click()
    large = page.locator("dialog.enlarged .drawn")
    assert large.bounding_box()["width"] > 1.5 * before
    page.keyboard.press("Escape")
    large.wait_for(state="detached")
    figure.focus()
    page.keyboard.press("Enter")
    large.wait_for()
    page.keyboard.press("Escape")


def test_a_tap_on_a_term_shows_its_definition(window, built_book):
    phone = {"has_touch": True, "viewport": {"width": ask.NARROW, "height": 900}}
    visit = ask.Visit(window.context.browser, **phone)
    page = visit.open(built_book / "book" / "04_exposure.html").page
    term, address = page.locator("article .defined-term").first, page.url
    term.locator("a").tap()
    assert term.locator("[role=tooltip]").is_visible()
    assert page.url == address
    term.locator("a").tap()
    page.wait_for_url("**/glossary.html*")
    visit.context.close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Nothing: the test says what was wrong."""


@pytest.fixture(scope="module")
def served(built_book):
    """The address of the built book on a server of this machine."""
    handler = functools.partial(QuietHandler, directory=str(built_book))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_little_and_does_not_jump(served, chrome, name):
    """Bytes and shifts, desktop and phone, each in a window that has seen nothing before."""
    for width in (ask.WIDE, ask.NARROW):
        context = chrome.new_context(viewport={"width": width, "height": 850})
        context.add_init_script(ask.WATCH_SHIFTS)
        page = context.new_page()
        loaded = {}
        page.on("response", functools.partial(ask.weigh, loaded))
        page.goto(f"{served}/{name}.html")
        shifts = page.evaluate(ask.SHIFTS)
        assert sum(size for size, _ in shifts) < 0.05, (width, shifts)
        heavy = ("mathjax", "fa-solid", "fontawesome")
        heavy += () if name == "search" else ("searchindex",)
        assert [url for url in loaded if any(word in url for word in heavy)] == []
        if is_chapter(name):
            pictures = sum(size for url, size in loaded.items() if "/_images/" in url)
            beside = sum(loaded.values()) - pictures - page.evaluate(ask.FIGURE_BYTES)
            assert beside < 1_000_000, width
        context.close()


def is_chapter(name):
    return re.fullmatch(r"book/(\d\d|A\d)_\w+", name) is not None


def test_a_page_can_be_shared(built_book):
    page = (built_book / "book" / "04_exposure.html").read_text(encoding="utf-8")
    for name in ("description", "og:title", "og:description", "og:image"):
        assert re.search(rf'<meta (?:name|property)="{name}" content="[^"]+"', page), name
    assert (built_book / "_static" / "card.png").is_file()


def test_the_search_fits_a_phone_and_explains_a_word(window, built_book):
    page = window.open(built_book / "search.html", "?q=exposure").page
    page.locator("#search-results li").first.wait_for()
    window.look(ask.NARROW, "light")
    assert page.evaluate(ask.TOO_WIDE) <= 0
    glossary = (built_book / "book" / "glossary.html").read_text(encoding="utf-8")
    seen = page.evaluate("html => Search.htmlToText(html, '#term-exposure')", glossary)
    assert "attention" in seen.lower() or "position" in seen.lower()
    chapter = (built_book / "book" / "04_exposure.html").read_text(encoding="utf-8")
    prose = page.evaluate("html => Search.htmlToText(html, '')", chapter)
    assert "import torch" not in prose
    assert "Contents" not in prose
