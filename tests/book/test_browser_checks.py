"""The checks of tests/book/test_browser.py must be able to fail: a planted flaw for each."""

import browser as ask
import pytest

BOX = "<div class='toggle-hidden' id='box'>A solution</div>"
SVG = "<div class='drawn'><svg viewBox='0 0 100 20' width='100' height='20'>{}</svg></div>"
LONG = f"<pre style='overflow:auto;width:300px'>{'x' * 200}</pre>"


def spoilt(tmp_path, body, head=""):
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html lang='en' data-theme='light'><meta charset='utf-8'>"
        f"<title>A page</title>{head}<body style='background:#fff'><article>{body}</article>"
    )
    return page


@pytest.mark.parametrize(
    ("check", "body"),
    [
        (ask.RAW_TEX, r"<p>Then \(x\) is small.</p>"),
        (ask.RAW_TEX, r"<p>\frac{1}{2}</p>"),
        (ask.UNDRAWN, r'<span class="math">\(x\)</span>'),
        (ask.TEX_ERRORS, '<span data-mjx-error="undefined control sequence"></span>'),
        (ask.SCROLLS, LONG),
        (ask.FOLDED, BOX),
        (ask.SMALL_LETTERS, SVG.format("<text y='9' style='font-size:8px'>a</text>")),
        (ask.CUT_FIGURES, SVG.format("<text x='9999' y='9'>a</text>")),
        (ask.SMALL_CODE, "<pre style='font-size:12px'>a = 1</pre>"),
        (ask.FAINT, "<p style='color:#aaa'>grey</p>"),
    ],
)
def test_a_planted_flaw_is_seen(window, tmp_path, check, body):
    assert window.open(spoilt(tmp_path, body)).page.evaluate(check) != []
    assert window.open(spoilt(tmp_path, "<p>All is well.</p>")).page.evaluate(check) == []


def test_a_planted_wide_block_is_seen(window, tmp_path):
    page = window.open(spoilt(tmp_path, "<div style='width:3000px'>wide</div>")).page
    assert page.evaluate(ask.TOO_WIDE) > 0


def test_a_planted_jump_is_seen(chrome, tmp_path):
    body = "<div style='height:1px' id='top'></div>" + "<p>words</p>" * 9
    page = chrome.new_page()
    page.add_init_script(ask.WATCH_SHIFTS)
    page.goto(spoilt(tmp_path, body).as_uri())
    assert page.evaluate(ask.SHIFTS) == []
    page.evaluate("document.querySelector('#top').style.height = '300px'")
    assert sum(size for size, _ in page.evaluate(ask.SHIFTS)) > 0.05
    page.close()


def test_a_planted_request_is_seen(window, tmp_path):
    head = "<script src='https://example.org/x.js'></script>"
    window.open(spoilt(tmp_path, "", head))
    assert window.requests == ["https://example.org/x.js"]
    assert window.complaints


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("image-alt", "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"),
        ("label", "<input type='range'>"),
        ("color-contrast", "<p style='color:#999'>pale</p>"),
        # The second piece of code of a kind is taken out, the first is looked at.
        (
            "color-contrast",
            "<div class='highlight'><pre><span class='k' style='color:#bbb'>if</span>"
            "<span class='k'>or</span></pre></div>",
        ),
        # The first of a kind stands for the others: not for another colour, size or ground.
        ("color-contrast", "<p>dark</p><p>dark</p><p style='color:#999'>pale</p>"),
        ("color-contrast", "<p>dark</p><div style='background:#444'><p>dark on dark</p></div>"),
        (
            "color-contrast",
            "<p style='color:#888;font-size:32px'>large</p><p style='color:#888'>small</p>",
        ),
        ("color-contrast", "<p>dark</p><div style='opacity:.4'><p>pale</p></div>"),
        ("color-contrast", "<p hidden style='color:#999'>no</p><p style='color:#999'>pale</p>"),
        ("aria-required-children", "<div role='list'><a href='#x'>x</a></div>"),
    ],
)
def test_axe_sees_a_planted_barrier(window, tmp_path, rule, body):
    page = window.open(spoilt(tmp_path, f"<main><h1>A page</h1>{body}</main>")).page
    found = ask.accessibility(page, ask.axe_script())
    assert [(f["rule"], f["impact"] in ask.SEVERE) for f in found] == [(rule, True)]
    assert window.complaints == []


def test_where_the_mouse_was_left_makes_no_difference(window, tmp_path):
    body = "<style>p:hover { color: #999 }</style><main><h1>A page</h1><p>words</p></main>"
    page = window.open(spoilt(tmp_path, body)).page
    page.locator("p").hover()
    assert ask.accessibility(page, ask.axe_script(), only_contrast=True) == []
