"""The explorables: their numbers against the module, and everything a reader can do with them.

A page with each is built by Sphinx from the directive alone and opened from the file system in a
real browser; tests/book/test_browser.py sees the ones of the built book.
"""

import base64
import functools
import importlib
import json
import math
import re
import shutil
import subprocess
import sys

import browser as ask
import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from sphinx.application import Sphinx
from sphinx.errors import SphinxWarning
from sphinx.util.docutils import docutils_namespace

import fairpg_lite as fpg
from fairpg_lite.nodes import discount_nodes
from tools import explorable_data, explorable_pictures
from tools.check_chapters import ROOT
from tools.explorable_pictures import FOLDER, PICTURES

sys.path.append(str(ROOT / "book" / "_ext"))
extension = importlib.import_module("explorable")

BIAS = fpg.position_bias(10, dtype=torch.float64)
GROUPS = torch.tensor([0] * 5 + [1] * 5)
# A page's own randomness, the same on each run.
SEEDED = """() => { let a = 7; Math.random = () => { a = (a + 0x6D2B79F5) | 0;
  let t = Math.imul(a ^ (a >>> 15), 1 | a); t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296; } }"""


#: A button of each figure that changes what it shows.
PRESS = {
    "candidates": "Draw a list",
    "list": "Another list",
    "hexagon": "Draw a list",
    "train": "Train",
    "race": "Run 100",
    "pull": "Draw a hundred",
}


def build(folder, pages):
    """The folder of the built pages; `pages` are texts by name."""
    source = folder / "source"
    shutil.copytree(FOLDER, source / "book" / "explorables")
    for name, body in pages.items():
        (source / f"{name}.md").write_text(body, encoding="utf-8")
    settings = {
        "extensions": ["myst_parser", "explorable"],
        "html_theme": "sphinx_book_theme",
        "html_context": {"default_mode": "auto"},
        "html_copy_source": False,
    }
    places = (source, None, folder / "html", folder / "tree", "html")
    with docutils_namespace():
        app = Sphinx(*places, settings, None, warningiserror=True)
        app.build()
    if app.statuscode:
        raise RuntimeError("Sphinx complained")
    return folder / "html"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    texts = {name: f"# One\n\n```{{explorable}} {name}\n```\n" for name in extension.KINDS}
    texts["index"] = "# None\n\n```{toctree}\n" + "\n".join(texts) + "\n```\n"
    return build(tmp_path_factory.mktemp("explorables"), texts)


@pytest.fixture
def visit(chrome):
    """A function that opens a page in a window of its own; nothing may be wrong at the end."""
    opened = []

    def open_page(file, **settings):
        settings.setdefault("viewport", {"width": ask.WIDE, "height": 1200})
        window = ask.Visit(chrome, **settings)
        opened.append(window)
        window.page.add_init_script(f"({SEEDED})()")
        window.page.goto(file.as_uri())
        return window.page

    yield open_page
    for window in opened:
        assert window.complaints == []
        assert window.requests == []
        window.context.close()


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def read(page, selector, attribute="data-value"):
    """The attribute as a number, of every element that fits."""
    script = "([s, a]) => [...document.querySelectorAll(s)].map(e => +e.getAttribute(a))"
    return page.evaluate(script, [selector, attribute])


def merits(page):
    return read(page, ".xp-knob", "aria-valuenow")


def shown(page):
    """D_group, NDCG, what a man and what a woman gets, as the page has them, unrounded."""
    return read(page, ".xp-tile output")


def bars(page, kind="bar"):
    return read(page, f".xp-cols:not(.xp-merits) .xp-{kind}")


def expected(merit, temperature):
    """The same four numbers and the bars from the module."""
    merit = tensor(merit)
    exposure = fpg.PlackettLuce(merit / temperature).exposure()
    numbers = [
        fpg.group_disparity(exposure, merit, GROUPS),
        fpg.expected_ndcg(exposure, merit),
        exposure[:5].mean(),
        exposure[5:].mean(),
    ]
    return [float(x) for x in numbers], exposure.tolist()


def temperature(page):
    return 10 ** float(page.locator("#xp-heat").input_value())


def assert_the_page_is_right(page):
    numbers, exposure = expected(merits(page), temperature(page))
    assert shown(page) == pytest.approx(numbers, abs=1e-6)
    assert bars(page) == pytest.approx(exposure, abs=1e-6)


def random_cases():
    generator = torch.Generator().manual_seed(3)
    for k, n in enumerate([1, 1, 2, 3, 5, 7, 9, 10, 10, 10, 16, 17, 30, 64] * 4):
        scores = torch.randn(n, generator=generator, dtype=torch.float64)
        scores *= [0.01, 1.0, 8.0, 90.0, 3000.0][k % 5]
        if k % 4 == 3:
            scores = scores.round()  # ties
        yield scores


def test_exposure_and_its_gradient_are_the_modules(pages, visit):
    page = visit(pages / "candidates.html")
    generator = torch.Generator().manual_seed(5)
    script = """([s, p]) => { const run = fairpg.race(s);
      return [run.exposures, run.gradient(p), fairpg.exposure(s)]; }"""
    for scores in random_cases():
        pull = torch.rand(len(scores), generator=generator, dtype=torch.float64)
        scores.requires_grad_()
        exact = fpg.PlackettLuce(scores).exposure()
        (slope,) = torch.autograd.grad(exact @ pull, scores)
        found = page.evaluate(script, [scores.tolist(), pull.tolist()])
        assert found[0] == pytest.approx(exact.tolist(), abs=1e-8)
        assert found[1] == pytest.approx(slope.tolist(), abs=1e-8)
        assert found[2] == found[0]


def test_the_nodes_are_the_modules(pages, visit):
    page = visit(pages / "candidates.html")
    for found in page.evaluate("fairpg.POWER_SUMS"):
        z, a = discount_nodes(found["upTo"], None, 1e-10, torch.float64)
        order = z.argsort(descending=True)
        assert found["z"] == pytest.approx(z[order].tolist(), abs=1e-9)
        assert found["a"] == pytest.approx(a[order].tolist(), abs=1e-9)


def test_measures_are_the_modules(pages, visit):
    page = visit(pages / "candidates.html")
    generator = torch.Generator().manual_seed(4)
    for k in range(80):
        n = 1 + k % 10
        merit = torch.rand(n, generator=generator, dtype=torch.float64)
        if k % 3:
            merit = (3 * merit).round()  # ties, and documents without merit
        exposure = torch.rand(n, generator=generator, dtype=torch.float64)
        groups = torch.randint(0, 2 + k % 2, (n,), generator=generator)
        found = page.evaluate(
            "([v, m, g]) => [fairpg.groupDisparity(v, m, g), fairpg.individualDisparity(v, m),"
            " fairpg.ndcg(v, m)]",
            [exposure.tolist(), merit.tolist(), groups.tolist()],
        )
        exact = [
            fpg.group_disparity(exposure, merit, groups),
            fpg.individual_disparity(exposure, merit),
            fpg.expected_ndcg(exposure, merit),
        ]
        assert found == pytest.approx([float(x) for x in exact], abs=1e-9)


def test_wrong_input_is_refused(pages, visit):
    page = visit(pages / "candidates.html")
    refused = "s => { try { return fairpg.exposure(s); } catch (e) { return e.message; } }"
    for scores in [], [1, None], [0] * 65:
        assert "give 1 to 64, all finite" in page.evaluate(refused, scores)


def test_a_program_can_import_the_mathematics():
    """By `import` in Node, the one that Playwright brings."""
    from playwright._impl._driver import compute_driver_executable

    node = compute_driver_executable()[0]
    file = (FOLDER / "exposure.js").as_uri()
    program = f'import {{ exposure }} from "{file}"; console.log(JSON.stringify(exposure([0, 1])))'
    run = [node, "--input-type=module", "--eval", program]
    out = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    exact = fpg.PlackettLuce(tensor([0, 1])).exposure().tolist()
    assert json.loads(out) == pytest.approx(exact, abs=1e-8)


def scripts_of(pages, name):
    text = (pages / f"{name}.html").read_text()
    return re.findall(r'src="_static/explorables/(\w+\.js)', text)


@pytest.mark.parametrize("name", extension.KINDS)
def test_it_is_small(pages, name):
    folder = pages / "_static" / "explorables"
    assert sum((folder / script).stat().st_size for script in scripts_of(pages, name)) < 60_000


def test_only_pages_with_an_explorable_load_it(pages):
    assert "explorables/" not in (pages / "index.html").read_text()
    for name in extension.KINDS:
        first = [*extension.SHARED, *extension.FIRST.get(name, ())]
        assert scripts_of(pages, name) == [*first, f"{name}.js"]


def test_an_unknown_name_stops_the_build(tmp_path):
    with pytest.raises(SphinxWarning, match="there is no 'nothing'"):
        build(tmp_path, {"index": "# One\n\n```{explorable} nothing\n```\n"})


def test_the_caption_can_be_ones_own(tmp_path):
    html = build(tmp_path, {"index": "# One\n\n```{explorable} candidates\nTry *this*.\n```\n"})
    found = re.search("<figcaption>(.*?)</figcaption>", (html / "index.html").read_text(), re.S)
    assert found[1].strip() == "<p>Try <em>this</em>.</p>"


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_what_the_tool_makes(name):
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == PICTURES[name]()


@pytest.mark.parametrize("name", PICTURES)
def test_without_scripts_and_on_paper_there_is_the_picture(pages, visit, name):
    assert set(PICTURES) == set(extension.KINDS)
    live = visit(pages / f"{name}.html")
    picture = live.locator("figure.explorable .xp-room > img")
    assert not picture.is_visible()
    live.emulate_media(media="print")
    assert picture.is_visible()
    assert not live.locator(".xp-box").is_visible()


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_has_words_where_scripts_are_off(pages, chrome, name):
    context = chrome.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((pages / f"{name}.html").as_uri())
    picture = page.locator(f"figure.explorable#explore-{name} .xp-room > img")
    assert picture.is_visible()
    assert picture.get_attribute("alt") == extension.KINDS[name].alt
    assert page.locator("figcaption").inner_text() == extension.KINDS[name].caption
    context.close()


def test_it_begins_with_chapter_1(pages, visit):
    page = visit(pages / "candidates.html")
    assert merits(page) == [0.89] * 5 + [0.88] * 5
    assert page.locator(".xp-headline").inner_text() == (
        "The women have 98.9 % of the men’s merit and get 54.1 % of their exposure."
    )
    assert page.locator(".xp-tile output").all_inner_texts() == [".300", "1.000", ".590", ".319"]
    assert_the_page_is_right(page)


def test_the_alt_text_has_the_numbers_of_the_picture():
    assert "NDCG 1.000, D_ind .063" in PICTURES["hexagon"]()
    assert "NDCG .979, D_ind .000" in PICTURES["hexagon"]()
    assert all(x in extension.KINDS["hexagon"].alt for x in ("1.000", ".063", ".979"))
    alt = extension.KINDS["candidates"].alt
    numbers, _ = expected([0.89] * 5 + [0.88] * 5, 0.001)
    share = BIAS.sum() * tensor([0.89, 0.88]) / (5 * 1.77)
    for x in (0.89, 0.88):
        assert f"{x:.2f}"[1:] in alt
    for x in [*numbers[2:], *share.tolist()]:
        assert f"{x:.3f}"[1:] in alt


def test_temperature(pages, visit):
    page = visit(pages / "candidates.html")
    slider = page.get_by_label("temperature")
    slider.focus()
    before = shown(page)
    for key in ("ArrowRight", "PageUp", "End"):
        page.keyboard.press(key)
        assert_the_page_is_right(page)
        assert shown(page)[0] < before[0]
        before = shown(page)
    assert temperature(page) == 10
    assert page.locator(".xp-heat output").inner_text() == "10.00"
    assert slider.get_attribute("aria-valuetext") == "10.00"


KEYS = [("ArrowUp", 0.89), ("ArrowDown", 0.88), ("PageUp", 0.98), ("PageUp", 1.0), ("Home", 0.0)]
KEYS += [("PageDown", 0.0), ("ArrowUp", 0.01), ("End", 1.0)]


# A change is spoken a moment after the last key, so that a screen reader is not flooded.
SPOKEN = "words => document.querySelector('[aria-live=polite]').textContent.includes(words)"


def test_a_merit_by_keyboard(pages, visit):
    page = visit(pages / "candidates.html")
    slider = page.get_by_role("slider", name="merit of F, a woman")
    slider.focus()
    for key, want in KEYS:
        page.keyboard.press(key)
        assert merits(page)[5] == pytest.approx(want)
        assert_the_page_is_right(page)
    assert re.fullmatch(r"1\.00, exposure 1\.000", slider.get_attribute("aria-valuetext"))
    page.wait_for_function(SPOKEN, arg=page.locator(".xp-headline").inner_text())
    assert "D group" in page.locator("[aria-live=polite]").inner_text()


def test_ten_merits_are_one_stop_of_the_tab_key(pages, visit):
    page = visit(pages / "candidates.html")
    assert page.locator(".xp-knob[tabindex='0']").count() == 1
    page.get_by_role("slider", name="merit of A, a man").focus()
    before = merits(page)
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused) == "merit of F, a woman"
    assert merits(page) == before
    page.keyboard.press("Tab")
    assert "merit of" not in page.evaluate(f"{focused} ?? ''")


def test_a_group_without_merit_is_divided_by_nothing(pages, visit):
    page = visit(pages / "candidates.html")
    for name in "ABCDE":
        page.get_by_role("slider", name=f"merit of {name}, a man").press("Home")
    words = page.locator(".xp-tile.xp-g0").inner_text()
    assert "÷" not in words
    assert "without merit" in words


def test_a_merit_by_mouse(pages, visit):
    page = visit(pages / "candidates.html")
    knob, track = page.locator(".xp-knob").nth(2), page.locator(".xp-merits .xp-track").nth(2)
    box, all_of_it = knob.bounding_box(), track.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + all_of_it["height"] / 2, steps=4)  # stays on its own candidate
    assert merits(page)[2] == pytest.approx(0.39, abs=0.015)
    assert_the_page_is_right(page)
    page.mouse.move(x, y + 500)
    page.mouse.up()
    page.mouse.move(x, y)
    assert merits(page) == [0.89, 0.89, 0, 0.89, 0.89, *[0.88] * 5]
    page.mouse.click(all_of_it["x"] + 5, all_of_it["y"] + all_of_it["height"] / 2)
    assert merits(page)[2] == pytest.approx(0.5, abs=0.02)
    assert_the_page_is_right(page)


def test_a_merit_by_touch(pages, visit):
    view = {"width": ask.NARROW, "height": 900}
    page = visit(pages / "candidates.html", viewport=view, has_touch=True, is_mobile=True)
    session = page.context.new_cdp_session(page)
    page.locator(".xp-merits").scroll_into_view_if_needed()

    def touch(kind, *points):
        points = [{"x": x, "y": y} for x, y in points]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    box = page.locator(".xp-knob").nth(9).bounding_box()
    height = page.locator(".xp-merits .xp-track").nth(9).bounding_box()["height"]
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = page.evaluate("scrollY")
    touch("touchStart", (x, y))
    for k in range(1, 6):
        touch("touchMove", (x, y + k * height / 10))
    touch("touchEnd")
    assert merits(page)[9] == pytest.approx(0.38, abs=0.015)
    assert page.evaluate("scrollY") == before
    assert_the_page_is_right(page)
    track = page.locator(".xp-merits .xp-track").nth(0).bounding_box()
    for _ in range(50):  # on a busy machine a tap right after a drag may count as part of it
        page.touchscreen.tap(track["x"] + 8, track["y"] + 0.75 * track["height"])
        page.wait_for_timeout(100)
        if merits(page)[0] < 0.5:
            break
    assert merits(page)[0] == pytest.approx(0.25, abs=0.02)
    assert_the_page_is_right(page)


def test_presets_and_reset(pages, visit):
    page = visit(pages / "candidates.html")
    page.get_by_role("button", name=".9 against .3").click()
    assert merits(page) == [0.9] * 5 + [0.3] * 5
    assert_the_page_is_right(page)
    assert shown(page)[0] == 0  # and yet a woman is far ahead
    assert "D_group is silent" in page.locator(".xp-remark").inner_text()
    assert page.locator(".xp-tile small").first.inner_text() == "0, but silent"
    page.get_by_role("button", name="One excellent candidate").click()
    assert merits(page) == [1.0] + [0.3] * 9
    assert_the_page_is_right(page)
    assert "no lottery can do that" in page.locator(".xp-remark").inner_text()
    page.get_by_role("slider", name="merit of A").press("Home")
    page.get_by_label("temperature").press("End")
    assert page.locator("[aria-pressed=true]").count() == 0
    page.get_by_role("button", name="Reset").click()
    assert merits(page) == [1.0] + [0.3] * 9
    assert temperature(page) == pytest.approx(0.1)
    page.get_by_role("button", name="The paper’s example").click()
    assert merits(page) == [0.89] * 5 + [0.88] * 5
    assert page.locator("[aria-pressed=true]").inner_text() == "The paper’s example"


def test_drawn_lists_approach_the_exact_bars(pages, visit):
    page = visit(pages / "candidates.html", reduced_motion="reduce")
    page.get_by_label("temperature").press("End")
    page.get_by_label("temperature").press("PageDown")
    page.get_by_role("button", name="Draw a list").click()
    chips = page.locator(".xp-list .xp-chip").all_inner_texts()
    assert sorted(chips) == list("ABCDEFGHIJ")
    place = [chips.index(name) for name in "ABCDEFGHIJ"]
    assert bars(page, "mean") == pytest.approx(BIAS[place].tolist())
    hundred, drawn = page.get_by_role("button", name="Draw a hundred"), 1
    off = []
    for _ in range(20):
        hundred.click()
        drawn += 100
        assert f"{drawn} drawn" in page.locator(".xp-tally").inner_text()
        means = tensor(bars(page, "mean"))
        assert float(means.sum()) == pytest.approx(float(BIAS.sum()))
        off.append(float((means - tensor(bars(page))).abs().max()))
    assert off[-1] < 5 * 0.5 / math.sqrt(drawn)
    assert off[-1] < off[0]
    page.get_by_label("temperature").press("ArrowLeft")  # another policy, other lists
    assert page.locator(".xp-tally").inner_text() == ""
    assert page.locator(".xp-mean:visible").count() == 1  # in the legend


def test_a_hundred_takes_a_moment_unless_motion_is_unwelcome(pages, visit):
    page = visit(pages / "candidates.html", reduced_motion="no-preference")
    tally = "document.querySelector('.xp-tally').textContent"
    click = (
        "[...document.querySelectorAll('button')].find(b => /hundred/.test(b.textContent)).click()"
    )
    assert page.evaluate(f"{click}; {tally}").startswith("2 drawn")
    page.wait_for_function(f"{tally}.startsWith('100 drawn')")
    page = visit(pages / "candidates.html", reduced_motion="reduce")
    assert page.evaluate(f"{click}; {tally}").startswith("100 drawn")
    moving = "[...document.querySelectorAll('.xp-box *')].filter(e => getComputedStyle(e)"
    assert page.evaluate(f"{moving}.transitionDuration !== '0s').length") == 0


CORNERS = {
    name: [float(BIAS[name.index(d)]) for d in "123"]
    for name in ("123", "213", "231", "321", "312", "132")
}
THREE = torch.tensor([0, 0, 1])


def policy(page):
    return json.loads(page.locator(".xp-dot").get_attribute("data-value"))


def assert_the_hexagon_is_right(page):
    """The numbers of the tiles against the module; the lottery has the exposure that is shown."""
    exposure = tensor(policy(page))
    merit = tensor(
        page.evaluate("[...document.querySelectorAll('.xp-merit3 input')].map(e => +e.value)")
    )
    exact = [
        fpg.individual_disparity(exposure, merit),
        fpg.group_disparity(exposure, merit, THREE),
        fpg.expected_ndcg(exposure, merit),
    ]
    assert shown(page) == pytest.approx([float(x) for x in exact], abs=1e-6)
    chances = tensor(read(page, ".xp-disc"))
    assert float(chances.min()) >= 0
    assert float(chances.sum()) == pytest.approx(1)
    assert (chances @ tensor(list(CORNERS.values()))).tolist() == pytest.approx(
        exposure.tolist(), abs=1e-5
    )
    return exposure, merit


def best_value(merit, lam, measure):
    """max NDCG - lam D over all lotteries, by a linear programme over the six lists."""
    corners = tensor(list(CORNERS.values()))
    if measure == "ind":
        pairs = [(i, j) for i in range(3) for j in range(3) if merit[i] >= merit[j] > 0]
        excess = [corners[:, i] / merit[i] - corners[:, j] / merit[j] for i, j in pairs]
    else:
        ratio = [corners[:, :2].sum(1) / merit[:2].sum(), corners[:, 2] / merit[2]]
        ahead = int(merit[2] > merit[:2].mean())
        excess = [ratio[ahead] - ratio[1 - ahead]]
    size = len(excess)
    useful = fpg.expected_ndcg(corners, merit.expand_as(corners))
    cost = torch.cat([-useful, torch.full((size,), lam / size).double()])
    below = torch.cat([torch.stack(excess), -torch.eye(size).double()], 1).numpy()
    once = torch.cat([torch.ones(6), torch.zeros(size)])[None].numpy()
    found = linprog(cost.numpy(), below, [0.0] * size, once, [1.0])
    return -found.fun


SLIDE = """([k, v]) => { const e = document.querySelectorAll('.xp-box input')[k];
  e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }"""


def test_the_optimum_of_every_price_is_that_of_the_linear_programme(pages, visit):
    page = visit(pages / "hexagon.html", reduced_motion="reduce")
    generator = torch.Generator().manual_seed(5)
    for trial in range(6):
        for document in range(3):
            merit = round(float(torch.rand(1, generator=generator)), 1 if trial % 2 else 2)
            page.evaluate(SLIDE, [1 + document, max(0.01, merit)])
        for measure, name in ("ind", "individual"), ("group", "group"):
            page.get_by_role("button", name=name).click()
            for step in (0, 12, 30, 55, 100):
                page.evaluate(SLIDE, [0, step])
                _, merit = assert_the_hexagon_is_right(page)
                ind, group, ndcg = shown(page)
                lam = float(page.locator("#xp-price").get_attribute("data-price"))
                value = ndcg - lam * (ind if measure == "ind" else group)
                if measure == "group" and merit[2] == merit[:2].mean():
                    continue  # a tie: both directions count, and this programme has one
                assert value == pytest.approx(best_value(merit, lam, measure), abs=1e-7)


def test_the_hexagon_has_document_1_up_and_its_corners_named_by_their_lists(pages, visit):
    page = visit(pages / "hexagon.html")
    page.get_by_role("button", name="Whole hexagon").click()
    discs = list(zip(*(read(page, ".xp-disc", a) for a in ("cx", "cy")), strict=True))
    places = dict(zip(CORNERS, discs, strict=True))
    words = page.locator(".xp-stage text").all_text_contents()
    assert words[:6] == list(CORNERS)
    assert places["123"][1] == pytest.approx(places["132"][1])
    assert max(places["123"][1], places["132"][1]) < min(
        y for n, (_, y) in places.items() if n[0] > "1"
    )
    assert places["213"][0] == max(x for x, _ in discs)  # 2 to the right, 3 to the left
    assert places["312"][0] == min(x for x, _ in discs)


def test_a_policy_by_mouse_keyboard_and_touch(pages, visit):
    view = {"width": ask.NARROW, "height": 1400}
    page = visit(pages / "hexagon.html", viewport=view, has_touch=True, reduced_motion="reduce")
    assert policy(page) == pytest.approx(CORNERS["123"])
    page.get_by_role("button", name="Whole hexagon").click()
    stage = page.locator(".xp-stage").bounding_box()
    middle = (stage["x"] + stage["width"] / 2, stage["y"] + stage["width"] * 160 / 360)
    box = page.locator(".xp-dot").bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(*middle, steps=3)
    assert policy(page) == pytest.approx([float(BIAS[:3].mean())] * 3, abs=0.005)
    assert_the_hexagon_is_right(page)
    assert "off the frontier" in page.locator(".xp-remark").inner_text()
    page.mouse.move(middle[0] + 900, middle[1] + 300)  # far outside: the nearest lottery
    page.mouse.up()
    assert (
        min(
            sum((a - b) ** 2 for a, b in zip(policy(page), CORNERS[name], strict=True))
            for name in ("213", "231")
        )
        < 1e-6
    )
    assert_the_hexagon_is_right(page)
    page.locator(".xp-dot").focus()
    before = policy(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    after = policy(page)
    assert after[0] > before[0]
    assert after[2] > before[2]
    assert_the_hexagon_is_right(page)
    assert f"document 1 gets {after[0]:.3f}".replace(" 0.", " .") in page.locator(
        ".xp-dot"
    ).get_attribute("aria-valuetext")
    page.touchscreen.tap(*middle)
    page.wait_for_function("JSON.parse(document.querySelector('.xp-dot').dataset.value)[1] < .72")
    session = page.context.new_cdp_session(page)
    for k, kind in enumerate(["touchStart", "touchMove", "touchMove", "touchEnd"]):
        points = [] if kind == "touchEnd" else [{"x": middle[0], "y": middle[1] - 25 * k}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert policy(page)[0] > 0.8
    assert page.evaluate("scrollY") == 0
    assert_the_hexagon_is_right(page)
    page.get_by_role("button", name="Reset").click()
    assert policy(page) == pytest.approx(CORNERS["123"])


def test_lists_drawn_from_a_policy_have_its_exposure(pages, visit):
    page = visit(pages / "hexagon.html", reduced_motion="reduce")
    page.get_by_role("button", name="Draw a list").click()
    assert page.locator(".xp-lists span").all_text_contents() == ["123"]  # at the corner
    page.evaluate(SLIDE, [0, 100])
    assert page.locator(".xp-lists:visible").count() == 0  # another policy
    for _ in range(15):
        page.get_by_role("button", name="Draw a hundred").click()
    assert "1500 drawn" in page.locator(".xp-tally").inner_text()
    found = json.loads(page.locator(".xp-ring").get_attribute("data-value"))
    assert found == pytest.approx(policy(page), abs=5 * 0.25 / math.sqrt(1500))
    page.wait_for_function(SPOKEN, arg="Last list: ")


def test_the_price_moves_the_policy_along_the_frontier(pages, visit):
    """With motion it travels, and every picture on the way is right."""
    page = visit(pages / "hexagon.html", reduced_motion="no-preference")
    page.evaluate(SLIDE, [0, 100])
    page.wait_for_function("document.querySelector('.xp-tile output').dataset.value < 1e-9")
    page.wait_for_function(
        "/no individual disparity/.test(document.querySelector('.xp-headline').textContent)"
    )
    v, merit = assert_the_hexagon_is_right(page)
    assert v.tolist() == pytest.approx((merit * BIAS[:3].sum() / merit.sum()).tolist(), abs=1e-9)
    page.get_by_label("price of disparity").press("Home")
    page.wait_for_function("document.querySelector('.xp-tile output').dataset.value > .06")


def test_the_price_does_something_everywhere(pages, visit):
    """Each step of the slider changes the price or, at one price, the lottery."""
    page = visit(pages / "hexagon.html", reduced_motion="reduce")
    seen = []
    for step in range(0, 101, 4):
        page.evaluate(SLIDE, [0, step])
        price = float(page.locator("#xp-price").get_attribute("data-price"))
        seen.append((round(price, 9), tuple(round(x, 9) for x in policy(page))))
    assert len(set(seen)) == len(seen)
    assert [price for price, _ in seen] == sorted(price for price, _ in seen)


def test_the_dot_says_that_it_drags_until_it_was_dragged(pages, visit):
    page = visit(pages / "hexagon.html", reduced_motion="reduce")
    assert page.locator(".xp-dot > span").is_visible()
    page.locator(".xp-dot").focus()
    page.keyboard.press("ArrowDown")
    assert not page.locator(".xp-dot > span").is_visible()


def test_the_zoom_shows_the_frontier_three_times_as_large(pages, visit):
    page = visit(pages / "hexagon.html")
    size = "e => { const b = e.getBoundingClientRect(); return Math.hypot(b.width, b.height) }"
    near = page.locator(".xp-stage .xp-frontier").evaluate(size)
    page.get_by_role("button", name="Whole hexagon").click()
    assert near > 2.5 * page.locator(".xp-stage .xp-frontier").evaluate(size)


SMALL = """() => [...document.querySelectorAll('.xp-box *')].filter(e => [...e.childNodes].some(
  c => c.nodeType === 3 && c.data.trim()) && e.getClientRects().length && !e.closest('.xp-voice'))
  .map(e => [e.closest('svg') ? parseFloat(getComputedStyle(e).fontSize)
    * e.closest('svg').getScreenCTM().a : parseFloat(getComputedStyle(e).fontSize),
    e.textContent.slice(0, 30)]).filter(([size]) => size < 11)"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [ask.WIDE, ask.NARROW, 320])
@pytest.mark.parametrize("name", PICTURES)
def test_it_fits_and_can_be_read(pages, visit, name, width, theme):
    page = visit(
        pages / f"{name}.html", color_scheme=theme, viewport={"width": width, "height": 900}
    )
    page.add_style_tag(content="* { transition: none !important }")
    page.get_by_role("button", name=PRESS[name], exact=True).click()
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.evaluate(ask.TOO_WIDE) <= 0
    assert page.evaluate(SMALL) == []
    if width == 320:  # the phone's page, narrower: colours and names are the same
        return
    found = ask.accessibility(page, ask.axe_script())
    assert [f for f in found if f["impact"] in ask.SEVERE and "xp-" in f["html"] + f["where"]] == []


# --- Ten people as a list, on the first page -----------------------------------------------------


def test_the_headline_of_the_list_is_the_modules(pages, visit):
    page = visit(pages / "list.html")
    slider = page.get_by_label("how much is left to chance")
    for key in ("Home", "PageUp", "ArrowRight", "End"):
        slider.press(key)
        merit = tensor([0.89] * 5 + [0.88] * 5)
        exposure = fpg.PlackettLuce(merit / 10 ** float(slider.input_value())).exposure()
        less = 100 * (1 - exposure[5:].mean() / exposure[:5].mean()).item()
        box = page.locator(".xp-box")
        assert float(box.get_attribute("data-less")) == pytest.approx(less, abs=1e-6)
        assert f"{less:.0f} % less" in page.locator(".xp-headline").inner_text()
        assert float(box.get_attribute("data-useful")) == pytest.approx(
            float(fpg.expected_ndcg(exposure, merit)), abs=1e-8
        )


def test_a_list_by_score_has_the_men_first_and_everybody_once(pages, visit):
    page = visit(pages / "list.html")
    names = page.locator(".xp-place .xp-chip").all_inner_texts()
    assert sorted(names[:5]) == list("ABCDE")
    assert sorted(names[5:]) == list("FGHIJ")
    widths = page.evaluate("[...document.querySelectorAll('.xp-seen')].map(e => e.style.width)")
    assert [float(w[:-1]) / 100 for w in widths] == pytest.approx(BIAS.tolist(), abs=1e-4)


# --- Train it yourself ---------------------------------------------------------------------------

PRICES = [0, 1, 2, 3, 5, 8, 10, 12, 15, 20, 25, 40]


@functools.cache
def trained(lam):
    """Weights, NDCG and D_group of the module's training at this price."""
    data = fpg.synthetic(dtype=torch.float64)
    scorer = fpg.LinearScorer(2, dtype=torch.float64)
    torch.nn.init.zeros_(scorer.linear.weight)
    settings = {"method": "exact", "lr": 0.1, "lr_decay": 0.5, "epochs": 5, "tolerance": 1e-10}
    fpg.fit(scorer, data, fpg.TrainConfig(lam=float(lam), **settings), progress=False)
    judged = fpg.evaluate(scorer, data, measures=("ndcg", "d_group"))
    return [*scorer.linear.weight[0].tolist(), judged.ndcg, judged.d_group]


# Nothing trains any more, and the picture that followed is drawn.
SETTLED = """async () => { const frame = () => new Promise(requestAnimationFrame);
  do { await frame(); await frame(); } while (document.querySelector('.xp-box').dataset.busy); }"""


def held(page):
    """Weights, NDCG and D_group of the point that the reader holds, when it has come to rest."""
    page.evaluate(SETTLED)
    found = page.evaluate("({...document.querySelector('.xp-box').dataset})")
    return [float(found[name]) for name in ("first", "second", "ndcg", "dGroup")]


def test_the_page_trains_as_the_module_does(pages, visit):
    page = visit(pages / "train.html")
    script = """lam => { const d = fairpg.trainData, q = fairpg.unpack(d);
      const w = fairpg.train(q, d.orders, {lam}).at(-1), j = fairpg.judge(q, w);
      return [...w, j.ndcg, j.dGroup]; }"""
    for lam in PRICES:
        assert page.evaluate(script, lam) == pytest.approx(trained(lam), abs=1e-9)


def test_a_training_in_parts_is_the_same_training(pages, visit):
    page = visit(pages / "train.html")
    script = """() => { const d = fairpg.trainData, q = fairpg.unpack(d), lam = 12;
      const made = fairpg.trainer(q, d.orders, {lam});
      let parts = 0;
      while (!made.advance(() => made.step % 7 === 0)) { parts++; fairpg.judge(q, [parts, 1]); }
      return [parts, [...made.path.slice(-2)], fairpg.train(q, d.orders, {lam}).at(-1)]; }"""
    parts, halted, whole = page.evaluate(script)
    assert parts > 50
    assert halted == whole


def test_the_stored_map_is_the_modules(pages, visit):
    page = visit(pages / "train.html")
    stored = page.evaluate("fairpg.trainData.map")
    data = fpg.synthetic(dtype=torch.float64)
    axis = torch.linspace(stored["low"], stored["high"], stored["points"], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for name, column, scale in zip(
        ("ndcg", "dGroup"), ("ndcg", "d_group"), stored["scales"], strict=True
    ):
        values = np.frombuffer(base64.b64decode(stored[name]), dtype="<u2") / 65535 * scale
        for k in torch.randint(0, len(values), (25,), generator=generator).tolist():
            second, first = axis[k // len(axis)], axis[k % len(axis)]
            scores = data.features @ torch.stack([first, second])
            exact = fpg.evaluate(scores, data, measures=(column,)).means[column]
            assert values[k] == pytest.approx(exact, abs=scale / 65535)


def test_the_stored_order_is_the_one_that_fit_takes(pages, visit):
    page = visit(pages / "train.html")
    generator = torch.Generator().manual_seed(0)
    batches = fpg.synthetic().batches(1, True, generator)
    expected_orders = [batches.order()[0].tolist() for _ in range(explorable_data.EPOCHS)]
    assert page.evaluate("fairpg.trainData.orders") == expected_orders


def test_a_list_has_the_slope_of_its_log_probability(pages, visit):
    page = visit(pages / "train.html")
    generator = torch.Generator().manual_seed(1)
    for n in (1, 2, 5, 10):
        scores = torch.randn(n, generator=generator, dtype=torch.float64, requires_grad=True)
        policy = fpg.PlackettLuce(scores)
        ranking = policy.sample(generator=generator)
        (slope,) = torch.autograd.grad(policy.log_prob(ranking), scores)
        found = page.evaluate(
            "([r, s]) => fairpg.scoreFunction(r, s)", [ranking.tolist(), scores.tolist()]
        )
        assert found == pytest.approx(slope.tolist(), abs=1e-9)


def test_the_price_trains_and_the_curve_grows(pages, visit):
    page = visit(pages / "train.html", reduced_motion="reduce")
    price = page.get_by_label("price")
    for key, lam in (("End", 40), ("Home", 0)):
        price.press(key)
        assert held(page) == pytest.approx(trained(lam), abs=1e-9)
    assert page.locator(".xp-chart .xp-run").count() == 2
    page.get_by_role("button", name="Clear").click()
    assert page.locator(".xp-chart .xp-run").count() == 0
    assert held(page)[:2] == [0, 0]


def test_training_walks_where_motion_is_welcome(pages, visit):
    page = visit(pages / "train.html", reduced_motion="no-preference")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("/^Trained at/.test(document.querySelector('.xp-remark').textContent)")
    assert held(page) == pytest.approx(trained(0), abs=1e-9)


def test_the_map_is_walked_by_keyboard_and_by_hand(pages, visit):
    page = visit(pages / "train.html", has_touch=True)
    dot = page.locator(".xp-dot")
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"):
        dot.press(key)
    assert held(page)[:2] == pytest.approx([0.1, 0.1])
    place = page.locator(".xp-map").bounding_box()
    page.touchscreen.tap(place["x"] + 0.5 * place["width"], place["y"] + 0.25 * place["height"])
    assert held(page)[:2] == pytest.approx([3, 5], abs=0.1)
    data = fpg.synthetic(dtype=torch.float64)
    judged = fpg.evaluate(data.features @ tensor(held(page)[:2]), data)
    assert held(page)[2:] == pytest.approx([judged.ndcg, judged.d_group], abs=1e-8)


def test_a_budget_finds_its_price(pages, visit):
    page = visit(pages / "train.html", reduced_motion="reduce")
    page.get_by_label("budget").press("Home")
    page.wait_for_function("/^Found/.test(document.querySelector('.xp-remark').textContent)")
    found = page.evaluate("({...document.querySelector('.xp-box').dataset})")
    script = """lam => { const d = fairpg.trainData, q = fairpg.unpack(d);
      return fairpg.judge(q, fairpg.train(q, d.orders, {lam}).at(-1)).dGroup; }"""
    assert page.evaluate(script, float(found["found"])) <= float(found["budget"]) == 0.002


def test_ten_sampled_trainings_scatter_as_the_modules_do(pages, visit):
    page = visit(pages / "train.html")
    page.get_by_role("button", name="Ten times").click()
    page.evaluate(SETTLED)
    assert page.locator(".xp-chart circle.xp-noisy").count() == 10
    assert page.locator(".xp-trails .xp-noisy").count() == 10
    script = """() => { const d = fairpg.trainData, q = fairpg.unpack(d);
      const once = () => fairpg.train(q, d.orders, {lam: 0, lists: 10}).at(-1);
      return Array.from({length: 10}, once); }"""
    ends = tensor(page.evaluate(script))
    assert len({tuple(end) for end in ends.tolist()}) == 10
    own = []
    for seed in range(10):
        scorer = fpg.LinearScorer(2, dtype=torch.float64)
        torch.nn.init.zeros_(scorer.linear.weight)
        config = fpg.TrainConfig(lr=0.1, lr_decay=0.5, epochs=5, seed=seed)
        fpg.fit(scorer, fpg.synthetic(dtype=torch.float64), config, progress=False)
        own.append(scorer.linear.weight[0].detach())
    own = torch.stack(own)
    error = (ends.var(0) / 10 + own.var(0) / 10).sqrt()
    assert ((ends.mean(0) - own.mean(0)).abs() < 5 * error).all()


def test_the_objective_has_two_hills_and_the_higher_one_changes(pages, visit):
    """From a price of 10 to one of 12; their heights are the module's."""
    page = visit(pages / "train.html", reduced_motion="reduce")
    page.get_by_role("button", name="U − λD").click()
    data = fpg.synthetic(dtype=torch.float64)
    best = {}
    for place, lam in ((6, 10), (7, 12)):
        page.evaluate(SLIDE, [0, place])
        page.evaluate(SETTLED)
        hills = json.loads(page.locator(".xp-box").get_attribute("data-hills"))
        assert len(hills) == page.locator(".xp-tops path").count() == 2
        for hill in hills:
            judged = fpg.evaluate(data.features @ tensor(hill["weights"]), data)
            assert hill["value"] == pytest.approx(judged.ndcg - lam * judged.d_group, abs=3e-5)
        best[lam] = hills[0]["weights"]
    assert best[10][0] > 5 > best[12][0]


def test_the_line_of_the_budget_can_be_dragged(pages, visit):
    page = visit(pages / "train.html", reduced_motion="reduce")
    grip = page.locator(".xp-grip").bounding_box()
    chart = page.locator(".xp-chart").bounding_box()
    x, y = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 0.2 * chart["width"], y, steps=4)
    page.mouse.up()
    page.evaluate(SETTLED)
    found = page.evaluate("({...document.querySelector('.xp-box').dataset})")
    assert 0.006 < float(found["budget"]) < 0.009
    assert float(found["dGroup"]) == pytest.approx(float(found["budget"]), abs=2e-4)
    assert page.get_by_label("budget").input_value() == found["budget"]


def test_a_swipe_over_the_map_scrolls_and_moves_nothing(pages, visit):
    view = {"width": ask.NARROW, "height": 700}
    page = visit(pages / "train.html", viewport=view, has_touch=True, is_mobile=True)
    page.locator(".xp-map").scroll_into_view_if_needed()
    box, before = page.locator(".xp-map").bounding_box(), page.evaluate("scrollY")
    session = page.context.new_cdp_session(page)
    x, y = box["x"] + 0.7 * box["width"], box["y"] + 0.6 * box["height"]
    for k, kind in enumerate(["touchStart", *["touchMove"] * 6, "touchEnd"]):
        points = [] if kind == "touchEnd" else [{"x": x, "y": y - 25 * k}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.wait_for_function("before => scrollY > before", arg=before)
    assert held(page)[:2] == [0, 0]


FOCUSED = "document.activeElement.textContent"


@pytest.mark.parametrize(
    ("name", "bar"),
    [("train", "What the map shows"), ("race", "Steps"), ("pull", "How a list pulls")],
)
def test_a_row_of_buttons_is_one_stop_of_the_tab_key(pages, visit, name, bar):
    page = visit(pages / f"{name}.html")
    row = page.get_by_role("toolbar", name=bar)
    labels = row.get_by_role("button").all_text_contents()
    assert row.locator("button[tabindex='0']").count() == 1
    row.locator("button").first.focus()
    for key, k in (("ArrowRight", 1), ("End", -1), ("ArrowRight", 0), ("ArrowLeft", -1)):
        page.keyboard.press(key)
        assert page.evaluate(FOCUSED) == labels[k]
    page.keyboard.press("Enter")
    assert row.locator("[aria-pressed=true]").text_content() == labels[-1]
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) not in labels


# --- Words that set a figure ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    text = "# One\n\n```{explorable} train\n```\n\nAt {explore}`ten <train?lam=10&train=1>`.\n"
    return build(tmp_path_factory.mktemp("words"), {"index": text})


def test_a_word_sets_the_figure(words, visit):
    page = visit(words / "index.html", reduced_motion="reduce")
    page.get_by_role("button", name="ten", exact=True).press("Enter")
    assert held(page) == pytest.approx(trained(10), abs=1e-9)


@pytest.mark.parametrize("role", ["ten <nothing?lam=10>", "ten"])
def test_a_word_for_no_figure_stops_the_build(tmp_path, role):
    with pytest.raises(SphinxWarning, match="explore: write"):
        build(tmp_path, {"index": f"# One\n\nAt {{explore}}`{role}`.\n"})


# --- The race, and one list pulls ----------------------------------------------------------------


def test_races_meet_softmax_and_the_sweep_meets_exact(pages, visit):
    page = visit(pages / "race.html", reduced_motion="reduce")
    page.get_by_role("button", name="2 A hundred races").click()
    for _ in range(9):
        page.get_by_role("button", name="Run 100").click()
    scores = tensor([1.6, 1.0, 0.5, 0.0, -0.4, -1.0])
    assert read(page, ".xp-count") == pytest.approx(scores.softmax(0).tolist(), abs=0.08)
    page.get_by_role("button", name="5 All times").click()
    exposure = fpg.PlackettLuce(scores).exposure().tolist()
    for runner, exact in zip("ABCDEF", exposure, strict=True):
        page.get_by_role("button", name=f"runner {runner}").click()
        assert float(page.locator(".xp-box").get_attribute("data-filled")) == pytest.approx(
            exact, abs=1e-4
        )
        assert float(page.locator(".xp-box").get_attribute("data-exact")) == pytest.approx(
            exact, abs=1e-8
        )


def test_the_race_can_be_run_by_keyboard(pages, visit):
    page = visit(pages / "race.html", reduced_motion="reduce")
    page.get_by_role("button", name="Run", exact=True).press("Enter")
    drawn = page.locator(".xp-list .xp-chip").all_text_contents()
    assert sorted(drawn) == list("ABCDEF")
    assert " ".join(drawn) in page.locator(".xp-headline").inner_text()
    page.get_by_role("button", name="4 Sit").press("Enter")
    page.get_by_label("time").press("Home")
    assert "attention of .99" in page.locator(".xp-headline").inner_text()


def test_runners_fall_into_the_list_as_they_arrive(pages, visit):
    page = visit(pages / "race.html", reduced_motion="no-preference")
    full = "[...document.querySelectorAll('.xp-list .xp-chip')].filter(e => e.textContent).length"
    page.evaluate(
        f"""() => {{ window.seen = new Set(); const look = () => {{
        window.seen.add({full}); requestAnimationFrame(look); }}; look(); }}"""
    )
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("document.querySelector('.xp-headline').textContent.includes('list is')")
    assert page.evaluate(full) == 6
    assert page.evaluate("window.seen.size") > 2


def test_on_the_other_clock_the_list_is_the_same(pages, visit):
    """And each runner stands where score plus noise is: its mark is the score."""
    page = visit(pages / "race.html", reduced_motion="reduce")
    page.get_by_role("button", name="Run", exact=True).click()
    before = page.locator(".xp-list .xp-chip").all_text_contents()
    page.get_by_role("button", name="3 The same").click()
    assert page.locator(".xp-list .xp-chip").all_text_contents() == before
    places = read(page, ".xp-runner", "cx")
    assert [list("ABCDEF")[i] for i in np.argsort(places)[::-1]] == before
    marks = np.array(read(page, ".xp-own", "x1"))
    scores = np.array([1.6, 1.0, 0.5, 0.0, -0.4, -1.0])
    assert np.corrcoef(marks, scores)[0, 1] == pytest.approx(1)


def test_the_coins_of_the_rivals_give_the_place(pages, visit):
    page = visit(pages / "race.html", reduced_motion="reduce")
    page.get_by_role("button", name="4 Sit").click()
    assert page.locator(".xp-coins:visible").count() == 5
    t = float(page.locator("#xp-moment").input_value())
    t = 0.004 * 10_000**t
    there = 1 - np.exp(-t * np.exp([1.6, 1.0, 0.0, -0.4, -1.0]))
    chance = np.ones(1)
    for p in there:
        chance = np.convolve(chance, [1 - p, p])
    script = (
        "[...document.querySelectorAll('.xp-six .xp-bar')].map(e => parseFloat(e.style.height))"
    )
    assert page.evaluate(script) == pytest.approx((100 * chance).tolist(), abs=1e-3)


@pytest.mark.parametrize("kind", explorable_pictures.PULL_KINDS)
def test_a_list_pulls_as_the_gradient_of_its_surrogate(pages, visit, kind):
    """The script adds up slopes; Python differentiates a surrogate."""
    page = visit(pages / "pull.html", reduced_motion="reduce")
    page.get_by_role("button", name=explorable_pictures.PULL_KINDS[kind], exact=True).click()
    scores, worth = explorable_pictures.PULL_SCORES, explorable_pictures.pull_worth()
    for _ in range(5):
        page.get_by_role("button", name="Draw a list").click()
        drawn = page.locator(".xp-list .xp-chip").all_text_contents()
        ranking = torch.tensor([["ABCDE".index(name) for name in drawn]])
        exact = explorable_pictures.pulls(scores, worth, ranking, kind)[0]
        found = json.loads(page.locator(".xp-box").get_attribute("data-last"))
        assert found == pytest.approx(exact.tolist(), abs=1e-9)


def test_the_centre_stays_while_the_cloud_shrinks(pages, visit):
    page = visit(pages / "pull.html", reduced_motion="reduce")
    moving = explorable_pictures.PULL_SCORES.clone().requires_grad_()
    worth = explorable_pictures.pull_worth()
    (exact,) = torch.autograd.grad(fpg.PlackettLuce(moving).exposure() @ worth, moving)
    spreads = []
    for _ in range(10):
        page.get_by_role("button", name="Draw a hundred").click()
    box = page.locator(".xp-box")
    for label in explorable_pictures.PULL_KINDS.values():
        page.get_by_role("button", name=label, exact=True).click()
        assert box.get_attribute("data-drawn") == "1000"  # the same lists, other pulls
        spread = float(box.get_attribute("data-spread"))
        spreads.append(spread)
        off = tensor(json.loads(box.get_attribute("data-mean"))) - exact
        assert off.norm() < 5 * spread * exact.norm() / math.sqrt(1000)
    assert spreads[0] > 2 * spreads[1] > 3 * spreads[2]
    page.get_by_role("button", name="exact", exact=True).click()
    assert float(box.get_attribute("data-spread")) == pytest.approx(0, abs=1e-12)
