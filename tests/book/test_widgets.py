"""Sliders and the figure style: self-contained, repeatable, usable without sight or mouse."""

import importlib
import io
import re
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from explorables.sliders import frames, live, short_svg
from fairpg_lite.figures import PALETTE, style, use_style
from tools.run_chapters import ROOT, palette_png


def draw(value):
    plt.bar([0, 1], [value, 1])
    return f"two bars, the first {value} high"


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, name):
        return [attrs for tag, attrs in self.found if tag == name]


def test_one_picture_per_value_and_only_the_start_is_shown():
    shown = frames([0.1, 0.25, 3], draw, "height", start=1, caption="See <this>.")
    text = shown._repr_html_()
    page = Tags(text)
    images = page.of("img")
    assert [i["data-value"] for i in images] == ["0.1", "0.25", "3"]
    assert [i["alt"] for i in images] == [draw(v) for v in (0.1, 0.25, 3)]
    assert ["hidden" in i for i in images] == [True, False, True]
    assert len({i["src"] for i in images}) == 3
    (slider,) = page.of("input")
    assert (slider["type"], slider["min"], slider["max"], slider["value"]) == (
        "range",
        "0",
        "2",
        "1",
    )
    assert slider["aria-valuetext"] == "0.25"
    assert ">0.25</output>" in text
    assert "See &lt;this&gt;." in text
    plt.close("all")


def test_the_html_needs_nothing_else_on_the_page():
    page = Tags(frames([1, 2], draw, 'a <b> & "c"')._repr_html_())
    assert not page.of("script")
    assert not page.of("link")
    assert all(i["src"].startswith("data:image/svg+xml;base64,") for i in page.of("img"))
    # No ids at all: sliders find their own parts, so any number of them can share a page.
    assert not [attrs for _, attrs in page.found if "id" in attrs or "for" in attrs]
    # The input stands inside its label, which names it to a screen reader.
    names = [tag for tag, _ in page.found]
    assert names.index("label") < names.index("span") < names.index("input")


@pytest.mark.slow
def test_two_processes_make_the_same_bytes():
    program = (
        "import hashlib, matplotlib.pyplot as plt\n"
        "from explorables.sliders import frames\n"
        "def draw(v):\n    plt.plot([0, v], label='x'); plt.legend(); return 'a line that rises'\n"
        "print(hashlib.sha256(frames([1, 2], draw, 'v')._repr_html_().encode()).hexdigest())"
    )
    run = [sys.executable, "-c", program]
    first, second = (
        subprocess.run(run, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first == second
    assert len(first.strip()) == 64


def test_frames_are_small_and_carry_no_stamp():
    for svg in frames([1, 2, 3], draw, "v").pictures:
        assert len(svg) < 12_000
        assert not re.search(rb"<metadata|\d{4}-\d\d-\d\d|[Mm]atplotlib v", svg)


def test_a_short_svg_has_its_places_to_a_hundredth_of_a_point():
    raw = io.StringIO()
    with style():
        figure, ax = plt.subplots()
        ax.plot([0, 1 / 3, 1], [1, 1 / 7, 2])
        ax.set_title("a line of length $\\ell_i$")
        figure.savefig(raw, format="svg")
        plt.close(figure)
    number = re.compile(r"-?\d+(?:\.\d+)?")
    before = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", raw.getvalue(), flags=re.S)
    after = short_svg(raw.getvalue())
    assert len(after) < len(before)
    assert after.count("DejaVu Sans") == after.count("Verdana") == before.count("DejaVu Sans")
    after = after.replace("'DejaVu Sans', Verdana, sans-serif", "'DejaVu Sans'")
    assert number.sub("", before).split() == number.sub("", after).split()
    pairs = list(zip(number.findall(before), number.findall(after), strict=True))
    assert max(abs(float(a) - float(b)) for a, b in pairs) < 0.01


def test_frames_leave_the_callers_figures_and_style_alone():
    figure = plt.figure()
    before = matplotlib.rcParams["axes.spines.top"]
    frames([1, 2], draw, "v")
    assert plt.get_fignums() == [figure.number]
    assert matplotlib.rcParams["axes.spines.top"] == before
    plt.close("all")


def test_a_figure_made_by_draw_itself_is_used():
    def own(value):
        _, ax = plt.subplots(figsize=(2, 1))
        ax.plot([0, value])
        return "a small line chart"

    assert b'width="144pt" height="72pt"' in frames([1], own, "v").pictures[0]
    assert plt.get_fignums() == []


def test_frames_want_words():
    with pytest.raises(TypeError, match=r"draw\(1\) returned None; return the alt text"):
        frames([1], lambda v: None, "v")
    assert plt.get_fignums() == []


def test_live_calls_draw_with_the_slider_value(monkeypatch):
    import ipywidgets

    seen = []

    def interact(function, **ranges):
        seen.append((function(temperature=0.5), ranges))

    monkeypatch.setattr(ipywidgets, "interact", interact)
    drawn = []
    live(lambda temperature: drawn.append(temperature) or "alt text", temperature=(0.1, 1.0))
    assert drawn == [0.5]
    assert seen == [(None, {"temperature": (0.1, 1.0)})]  # None: no alt text under the picture


@pytest.mark.parametrize(
    ("missing", "call"),
    [
        ("matplotlib.pyplot", lambda: frames([1], draw, "v")),
        ("matplotlib.pyplot", style),
        ("matplotlib.pyplot", use_style),
        ("ipywidgets", lambda: live(draw)),
        ("PIL.Image", lambda: palette_png(b"")),
    ],
)
def test_a_missing_library_names_the_extra(monkeypatch, missing, call):
    monkeypatch.setitem(sys.modules, missing, None)  # what `import` makes of an absent package
    with pytest.raises(ImportError, match=r'pip install "fairpg-lite\[plots\]"'):
        call()


def test_importing_the_modules_draws_in_no_plotting_library():
    program = (
        "import sys, explorables.sliders, fairpg_lite.figures\n"
        "print(sorted({'matplotlib', 'ipywidgets', 'PIL'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def linear(colour):
    """sRGB to linear light."""
    c = np.array(matplotlib.colors.to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def test_the_two_leading_colours_stand_out_from_the_ground():
    first, second, *_ = PALETTE.values()
    for colour in (first, second):
        luminance = linear(colour) @ [0.2126, 0.7152, 0.0722]
        assert 1.05 / (luminance + 0.05) >= 3  # WCAG: graphics against white


# Viénot, Brettel and Mollon (1999): linear RGB as seen without red or without green cones, and for
# each a pair of colours that such a reader cannot tell apart.
BLIND = {
    "protan": ([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]], 0.1506),
    "deutan": ([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]], 0.2656),
}


@pytest.mark.parametrize("kind", BLIND)
def test_the_first_six_colours_differ_without_red_or_green_cones(kind):
    matrix, green = np.array(BLIND[kind][0]), BLIND[kind][1]
    seen = [matrix @ linear(colour) for colour in list(PALETTE.values())[:6]]
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
    confused = np.linalg.norm(matrix @ [0.5, 0.1, 0] - matrix @ [0.1, green, 0])
    assert confused < 0.02
    assert min(gaps) > 5 * confused


def test_style_ends_with_its_block_and_use_style_stays():
    with matplotlib.rc_context():
        before = matplotlib.rcParams["legend.frameon"]
        with style():
            assert matplotlib.rcParams["legend.frameon"] is False
        assert matplotlib.rcParams["legend.frameon"] == before
        use_style()
        assert matplotlib.rcParams["legend.frameon"] is False
        assert matplotlib.rcParams["figure.facecolor"] == "white"


def test_palette_png_keeps_the_picture_and_drops_the_rest():
    ramp = np.zeros((20, 30, 4), dtype=np.uint8)
    ramp[..., 0] = np.arange(30) * 8
    ramp[..., 3] = 255
    ramp[:5, :, 3] = 0  # transparent becomes white
    raw = io.BytesIO()
    Image.fromarray(ramp).save(raw, format="PNG")
    with Image.open(io.BytesIO(palette_png(raw.getvalue()))) as small:
        assert small.mode == "P"
        assert small.info == {}
        pixels = np.asarray(small.convert("RGB"), dtype=int)
    assert (pixels[:5] == 255).all()
    assert abs(pixels[5:, :, 0] - ramp[5:, :, 0].astype(int)).max() <= 4


sys.path.append(str(ROOT / "book" / "_ext"))
drawn = importlib.import_module("drawn")
figures_extension = importlib.import_module("figures")


def svg_of(figure):
    raw = io.StringIO()
    figure.savefig(raw, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return short_svg(raw.getvalue())


def two_panels():
    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), sharey=True)
        left.plot([0, 1, 2], [3, 1, 2], marker="o", color=PALETTE["blue"], label="a line")
        left.set(xlabel="D_group", ylabel="height", title="left")
        right.bar([0, 1], [2, 3], color=PALETTE["orange"], hatch="//", edgecolor="white")
        right.set(xlabel="$x_1$", title="right")
        left.legend()
        return svg_of(figure)


def test_panels_side_by_side_are_drawings_of_their_own():
    page = Tags(drawn.drawn(two_panels(), 'two "panels"', "f1"))
    assert [box["aria-label"] for box in page.of("div") if "role" in box] == ['two "panels"']
    first, second = page.of("svg")
    boxes = [[float(x) for x in one["viewbox"].split()] for one in (first, second)]
    assert boxes[0][0] + boxes[0][2] == pytest.approx(boxes[1][0], abs=0.2)
    # The right one has no numbers of its own; a phone gets a copy of the left one's.
    assert second["class"] == "shares-axis"
    copies = [text for text in page.of("text") if text.get("class") == "phone"]
    assert len(copies) >= 4


def test_a_drawing_has_its_words_and_no_colours_or_fonts_of_its_own():
    text = drawn.drawn(two_panels(), "alt", "f1")
    words = re.sub(r"<[^>]*>", "", text)
    for word in ("left", "right", "height", "a line", "Dgroup", "x1"):
        assert word in words
    assert not re.search("DejaVu|#0072b2|#d55e00|#000000|#ffffff", text, flags=re.I)
    assert "var(--fig-blue)" in text
    assert "var(--fig-orange)" in text


def test_names_inside_drawings_are_unique_and_lead_somewhere():
    text = "".join(drawn.drawn(two_panels(), "alt", name) for name in ("f1", "f2"))
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids)) > 4
    assert set(re.findall(r'(?:href="|url\()#([\w-]+)', text)) <= set(ids)


def test_what_lies_on_a_map_keeps_the_maps_colours():
    with style():
        figure, ax = plt.subplots(figsize=(3, 3))
        ax.imshow([[0.0, 1.0], [2.0, 3.0]], cmap="Blues")
        ax.text(0, 0, "inside")
        ax.set(title="outside")
        text = drawn.drawn(svg_of(figure), "a map", "f1")
    assert re.search(r'<g class="on-map"><text[^>]*>inside', text)
    assert not re.search(r'<g class="on-map"><text[^>]*>outside', text)
    assert "data:image/png;base64," in text


def test_a_thinned_line_keeps_its_ends_and_extremes():
    way = np.random.default_rng(0).normal(size=5000)
    points = list(zip(np.linspace(0, 200, 5000), way, strict=True))
    kept = drawn.thin(points)
    assert len(kept) < 0.4 * len(points)
    assert [kept[0], kept[-1]] == [points[0], points[-1]]
    heights = [y for _, y in kept]
    assert [min(heights), max(heights)] == [way.min(), way.max()]
    assert kept == sorted(kept)


def test_the_frames_of_a_slider_become_drawings_that_it_finds():
    page = figures_extension.inlined(
        frames([1, 2], draw, "height", start=1)._repr_html_(),
        "book/01_x",
        lambda address: frames([1], draw, "v").pictures[0].decode(),
    )
    boxes = [box for box in Tags(page).of("div") if "data-value" in box]
    assert [box["data-value"] for box in boxes] == ["1", "2"]
    assert ["hidden" in box for box in boxes] == [True, False]
    assert "<img" not in page
    assert "querySelectorAll('.drawn')" in page
