"""The built pages in a real browser: formulas drawn, nothing too wide, sliders move, no network.

Every page is opened once from the file system and looked at four times: wide and narrow, light and
dark. Needs Debian's chromium or any Chromium on the PATH; `.ci/run` installs it where it can.
"""

import shutil
from pathlib import Path

import pytest

from tools.check_chapters import ROOT, files_in

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, NARROW = 1280, 390

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason=f"no browser: none of {', '.join(NAMES)} is on the PATH"
)


def pages():
    import yaml

    return sorted(files_in(yaml.safe_load((ROOT / "_toc.yml").read_text())))


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """One open page, with everything it complained about and everything it asked the web for."""

    def __init__(self, browser, file):
        self.context = browser.new_context(viewport={"width": WIDE, "height": 900})
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.context.route("**/*", self._route)
        self.page.goto(Path(file).as_uri())
        self.page.wait_for_function("!window.MathJax || MathJax.startup?.promise !== undefined")
        self.page.evaluate("window.MathJax && MathJax.startup.promise")

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _route(self, route):
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def look(self, width, scheme):
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        # Ask until the theme has followed, and the transition of its colours has ended.
        self.page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
        self.page.add_style_tag(content="* { transition: none !important }")


@pytest.fixture
def visit(browser):
    visits = []

    def open_page(file):
        visits.append(Visit(browser, file))
        return visits[-1]

    yield open_page
    for opened in visits:
        opened.context.close()


RAW_TEX = r"""() => {
  const walker = document.createTreeWalker(document.querySelector('article') || document.body, 4);
  const found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest('pre, code, script, style, mjx-container')) continue;
    const tex = /\\\(|\\\[|\$\$|\\(frac|sum|mathbf|mathcal|E\b|begin)/;
    if (tex.test(node.data)) found.push(node.data);
  }
  return found;
}"""
UNDRAWN = """() => [...document.querySelectorAll('.math')]
  .filter(e => !e.querySelector('mjx-container svg')).map(e => e.textContent.slice(0, 80))"""
TEX_ERRORS = """() => [...document.querySelectorAll(
  '[data-mjx-error], mjx-merror, [data-mml-node="merror"]')]
  .map(e => e.textContent || e.dataset.mjxError)"""
TOO_WIDE = """() => document.documentElement.scrollWidth - window.innerWidth"""
# On a wide page nothing should have to be scrolled sideways: formulas, code and output all fit.
SCROLLS = """() => [...document.querySelectorAll('article div.math, article pre')]
  .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 2
    && !e.closest('details')).map(e => e.textContent.slice(0, 80))"""
UNFOLD = """() => document.querySelectorAll('.toggle-hidden')
  .forEach(e => e.classList.remove('toggle-hidden', 'admonition-hidden'))"""
# WCAG contrast of prose against the nearest painted ground.
FAINT = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const lum = c => { const f = x => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;
    return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
  const ground = e => { for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > .9) return c; }
    return [255, 255, 255]; };
  const pick = 'article p, article li, article td, article th, article h1, article h2,'
    + 'article figcaption, article figure.frames span, article figure.frames output, article dd';
  return [...document.querySelectorAll(pick)].filter(e => e.offsetParent && e.textContent.trim())
    .map(e => { const a = lum(parse(getComputedStyle(e).color)), b = lum(ground(e));
      return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.textContent.slice(0, 60)]; })
    .filter(([ratio]) => ratio < 4.5);
}"""


@pytest.mark.parametrize("name", pages())
def test_page(visit, built_book, name):
    opened = visit(built_book / f"{name}.html")
    page = opened.page
    page.evaluate(UNFOLD)
    assert page.evaluate(UNDRAWN) == []
    assert page.evaluate(RAW_TEX) == []
    assert page.evaluate(TEX_ERRORS) == []
    if not name.endswith("/api"):  # signatures and doctests there are as long as they are
        assert page.evaluate(SCROLLS) == []
    for width in (WIDE, NARROW):
        for scheme in ("light", "dark"):
            opened.look(width, scheme)
            assert page.evaluate(TOO_WIDE) <= 0, f"{width} px, {scheme}"
            assert page.evaluate(FAINT) == [], f"{width} px, {scheme}"
    assert opened.complaints == []
    assert opened.requests == []


def shown(figure):
    visible = figure.locator("img:not([hidden])")
    assert visible.count() == 1
    assert visible.is_visible()
    return visible.get_attribute("alt"), visible.get_attribute("data-value")


def with_sliders(built_book):
    return [n for n in pages() if 'class="frames"' in (built_book / f"{n}.html").read_text()]


def test_sliders_move_by_keyboard_and_each_on_its_own(visit, built_book):
    names = with_sliders(built_book)
    assert names, "chapter 1 has a slider"
    for name in names:
        page = visit(built_book / f"{name}.html").page
        figures = page.locator("figure.frames").all()
        start = [shown(figure) for figure in figures]
        for index, figure in enumerate(figures):
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
            last = figure.locator("img").last
            assert shown(figure) == (last.get_attribute("alt"), last.get_attribute("data-value"))
            others = [shown(f) for k, f in enumerate(figures) if k > index]
            assert others == start[index + 1 :]


def test_solutions_open(visit, built_book):
    page = visit(built_book / "book" / "01_ten_candidates.html").page
    solution = page.locator(".solution.dropdown").first
    code = solution.locator("div.cell_input").first
    assert not code.is_visible()
    solution.locator(".admonition-title").click()
    code.wait_for(state="visible")


def test_the_first_page_leads_to_the_book(visit, built_book):
    page = visit(built_book / "index.html").page
    page.wait_for_url("**/book/intro.html")
    assert page.locator("article h1").inner_text().startswith("Fairness of exposure")


# The checks above must be able to fail.
def spoilt(tmp_path, body, head=""):
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html data-theme='light'><meta charset='utf-8'>"
        f"{head}<body style='background:#fff'><article>{body}</article></body></html>"
    )
    return page


@pytest.mark.parametrize(
    ("check", "body"),
    [
        (RAW_TEX, r"<p>Then \(x\) is small.</p>"),
        (RAW_TEX, r"<p>\frac{1}{2}</p>"),
        (UNDRAWN, r'<span class="math">\(x\)</span>'),
        (TEX_ERRORS, '<span data-mjx-error="undefined control sequence"></span>'),
        (SCROLLS, f"<pre style='overflow:auto;width:300px'>{'x' * 200}</pre>"),
        (FAINT, "<p style='color:#aaa'>grey</p>"),
    ],
)
def test_a_planted_flaw_is_seen(visit, tmp_path, check, body):
    assert visit(spoilt(tmp_path, body)).page.evaluate(check) != []


def test_a_planted_wide_block_is_seen(visit, tmp_path):
    page = visit(spoilt(tmp_path, "<div style='width:3000px'>wide</div>")).page
    assert page.evaluate(TOO_WIDE) > 0


def test_a_planted_request_is_seen(visit, tmp_path):
    opened = visit(spoilt(tmp_path, "", "<script src='https://example.org/x.js'></script>"))
    assert opened.requests == ["https://example.org/x.js"]
    assert opened.complaints
