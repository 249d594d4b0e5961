"""What the browser tests share: an open page that remembers its complaints, and what to ask of it.

A page is asked by small JavaScript functions. Each returns what is wrong, so that a failing test
shows it; tests/book/test_browser_checks.py plants a flaw for each.
"""

import importlib.util
from pathlib import Path

import pytest

from tools.chromium import wait_for_formulas

WIDE, NARROW = 1280, 390
# In this order only one thing changes from one view to the next: a new width is a new layout.
VIEWS = [(WIDE, "light"), (NARROW, "light"), (NARROW, "dark"), (WIDE, "dark")]

needs_chromium = pytest.mark.browser  # conftest.py skips it where there is none


class Visit:
    """One window, with everything that its page complained about and asked the web for."""

    def __init__(self, browser, **settings):
        settings = {"viewport": {"width": WIDE, "height": 900}, **settings}
        self.context = browser.new_context(**settings)
        self.context.set_default_timeout(600_000)  # against hanging only
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.context.route("**/*", self._route)

    def open(self, file, query=""):
        self.complaints.clear()
        self.requests.clear()
        self.page.set_viewport_size({"width": WIDE, "height": 900})
        self.page.emulate_media(color_scheme="light")
        self.page.goto(Path(file).as_uri() + query)
        wait_for_formulas(self.page)
        # Colours are read right after a change of theme.
        self.page.add_style_tag(content="* { transition: none !important }")
        return self

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
        self.page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")


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
EQUATIONS = "() => document.querySelectorAll('.math').length"
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
# Letters of a figure in pixels of the page. Those below or above a line are part of a formula.
SMALL_LETTERS = """() => [...document.querySelectorAll('article .drawn svg[viewBox]')]
  .filter(svg => svg.getClientRects().length).flatMap(svg => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [...svg.querySelectorAll('text')].filter(e => e.getClientRects().length)
      .map(e => [parseFloat(getComputedStyle(e).fontSize) * scale, e.textContent])
      .filter(([size]) => size < 11); })"""
# What of a figure is beyond the edge of the window, and figures that would have to be scrolled.
CUT_FIGURES = """() => [...document.querySelectorAll('article .drawn, article .drawn text')]
  .filter(e => e.getClientRects().length).filter(e => {
    const box = e.getBoundingClientRect();
    return box.right > innerWidth || box.left < 0 || e.scrollWidth > e.clientWidth + 20
      && e.matches('div'); }).map(e => e.textContent.slice(0, 60))"""
SMALL_CODE = """() => [...document.querySelectorAll('article pre, article pre *')]
  .filter(e => parseFloat(getComputedStyle(e).fontSize) < 12.5)
  .map(e => e.textContent.slice(0, 60))"""
# What moved by itself while a page was loading, as Chromium counts it: [how much, what].
WATCH_SHIFTS = """window.shifts = []; new PerformanceObserver(list => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push([entry.value,
    entry.sources.map(s => s.node?.className ?? s.node?.nodeName)]);
}).observe({type: 'layout-shift', buffered: true});"""
SHIFTS = """async () => {
  await document.fonts.ready;
  for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame);
  await new Promise(done => setTimeout(done, 50)); // the observer is told after the frame
  return window.shifts;
}"""
FIGURE_BYTES = """() => [...document.querySelectorAll('.drawn, figure img')]
  .reduce((sum, e) => sum + new Blob([e.outerHTML]).size, 0)"""
FOLDED = """() => [...document.querySelectorAll('article .toggle-hidden')]
  .map(e => e.textContent.trim().slice(0, 60))"""
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
# axe-core looks at each element by itself, and a page of code and formulas has thousands of them.
# One piece of code of each kind stands for the others, which have the same colours; the strokes of
# a formula are a picture, whose words (MathML) stay, without the marks between them. The button
# that floats over the page after a scroll is put in its place: what lies under it would be a matter
# of where the page stands at this moment, not of the page.
THIN = """() => {
  document.head.insertAdjacentHTML('beforeend', `<style>#pst-back-to-top {
    display: block !important; position: static !important; transform: none !important }</style>`);
  window.scrollTo({top: 0, behavior: 'instant'});
  document.querySelectorAll('mjx-container svg > *').forEach(e => e.remove());
  document.querySelectorAll('mjx-container math').forEach(e => { e.textContent = e.textContent; });
  const seen = new Set();
  for (const span of document.querySelectorAll('pre span, .sig span')) {
    const box = span.closest('.highlight, .sig');
    if (!box || span.querySelector('a, button, img') || span.closest('a, button')) continue;
    const kind = [box.className, box.parentElement.className, span.className].join('|');
    if (seen.has(kind)) span.replaceWith(...span.childNodes); else seen.add(kind);
  }
  document.querySelectorAll('pre, .sig').forEach(e => e.normalize());
}"""
# Contrast takes axe-core longer than all its other rules. Text of the same colour, size and weight,
# in the same tag, on the same grounds, is as legible: the first of each kind is looked at.
AXE = """async onlyContrast => {
  const grounds = new Map([[document, '']]);
  const ground = e => {
    if (!grounds.has(e)) {
      const s = getComputedStyle(e), place = s.position === 'static' ? '' : s.position;
      const own = [s.backgroundColor, s.backgroundImage, s.opacity, s.filter, s.textShadow, place];
      const seen = own.join() !== 'rgba(0, 0, 0, 0),none,1,none,none,';
      grounds.set(e, ground(e.parentNode) + (seen ? own.join() + '|' : ''));
    }
    return grounds.get(e);
  };
  const name = e => e.tagName + '.' + e.className, kinds = new Map();
  for (const e of document.body.querySelectorAll('*')) {
    const words = [...e.childNodes].some(c => c.nodeType === 3 && c.data.trim());
    const s = getComputedStyle(e);
    if (!words || !e.getClientRects().length || s.visibility !== 'visible') continue;
    const look = [s.color, s.fontSize, s.fontWeight, name(e), name(e.parentNode), ground(e)];
    if (!kinds.has(look.join())) kinds.set(look.join(), e);
  }
  const options = {resultTypes: ['violations'], preload: false}, rule = 'color-contrast';
  // preload: over file:// axe may not read style sheets again, and would say so on the console.
  const found = [await axe.run({include: [...kinds.values()]}, {...options, runOnly: [rule]})];
  if (!onlyContrast)
    found.push(await axe.run(document, {...options, rules: {[rule]: {enabled: false}}}));
  return found.flatMap(r => r.violations).flatMap(v => v.nodes.map(n => ({rule: v.id,
    impact: v.impact, where: n.target.join(' '), html: n.html.slice(0, 120)})));
}"""
SEVERE = ("serious", "critical")


def weigh(loaded, response):
    """Note a response's address and its bytes, uncompressed as our server sends them."""
    loaded[response.url] = int(response.headers.get("content-length", 0))


def axe_script():
    """axe-core's source, as the package axe-playwright-python carries it."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        raise RuntimeError(
            "browser.axe_script: the package axe-playwright-python is missing; install it with "
            '`pip install "fairpg-lite[test]"`.'
        )
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def accessibility(page, script, only_contrast=False):
    """What axe-core finds on the page: dicts of rule, impact, where and html."""
    page.mouse.move(0, 0)  # what lies under it would have its colours of that moment
    if not page.evaluate("'axe' in window"):
        page.evaluate(THIN)
        page.evaluate(script)
    return page.evaluate(AXE, only_contrast)
