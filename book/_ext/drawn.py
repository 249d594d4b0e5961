"""A drawing of matplotlib as a part of the page: its letters in the page's font, colours by name.

`drawn(svg, alt, name)` is what book/_ext/figures.py puts in the place of a picture. The markup is
that of the drawing with four changes.

- Letters are text of the page's own font. Matplotlib puts every letter of a formula at a place of
  its own, measured in another font; here the letters of a formula follow each other.
- The house colours are CSS variables (book/_static/drawn.css), so that the dark theme has colours
  of its own. What is drawn on a map keeps the colours of the light theme, as the map itself does.
- Panels that stand side by side are drawings of their own, which a phone shows below each other. A
  panel that shares the left one's axis gets a copy of its numbers, which only a phone shows.
- Names inside a drawing (`name` before each) are unique on the page, and curves have no more points
  than can be seen.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
#: The colours of fairpg_lite's style and their names in drawn.css.
COLOURS = {
    "#000000": "ink",
    "#ffffff": "ground",
    "#3a3f45": "edge",
    "#e3e5e8": "grid",
    "#0072b2": "blue",
    "#d55e00": "orange",
    "#009e73": "green",
    "#cc79a7": "pink",
    "#56b4e9": "sky",
    "#e69f00": "amber",
    "#5f6670": "grey",
    "#bfe3d5": "mint",
}
#: The three widths of a figure: the class, the widest drawing that has it (pt), its width (px).
WIDTHS = (("small", 330.0, 384.0), ("medium", 420.0, 544.0), ("column", 1e9, 704.0))
LETTER = 14.5  # px of an ordinary letter (10.5 pt in matplotlib's drawing) on a wide page
PHONE, PHONE_LETTER, PHONE_SMALLEST = 340.0, 12.0, 11.2  # the narrowest column that we promise, px
ORDINARY = 10.5
CHARACTER = 0.6  # the width of a letter of DejaVu Sans, in its size, about
NARROW = 40.0  # pt: narrower axes are a colour bar and stay with their neighbour
CROWDED = 1.1  # letters so much larger on a phone need room
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?")


@dataclass(frozen=True)
class Box:
    """Where something is, in points."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.top <= y <= self.bottom


@dataclass
class Panel:
    """What is drawn between two vertical cuts."""

    left: float
    right: float
    axes: list[ET.Element] = field(default_factory=list)
    copies: list[tuple[ET.Element, float]] = field(default_factory=list)  # axes, how far to move
    room: float = 0.0  # pt, left of the panel on a phone: for the copies


def drawn(svg: str, alt: str, name: str, more: str = "") -> str:
    """Markup of a drawing.

    Args:
        svg: What matplotlib's SVG backend wrote.
        alt: What is to be seen, for those who cannot see it.
        name: Starts the ids inside, unique on the page.
        more: Further attributes of the outer element.

    Returns:
        One `<div class="drawn" role="img">` with an `<svg>` for each panel.
    """
    root = ET.fromstring(re.sub(r"<!DOCTYPE.*?>", "", svg, count=1, flags=re.S))
    width, height = (float(x) for x in root.attrib["viewBox"].split()[2:])
    figure = next(group for group in root if group.get("id", "").startswith("figure"))
    writer = Writer(name, set(re.findall(r"#([\w.-]+)", svg)))
    shared = "".join(writer.markup(group) for group in root.iter(f"{SVG}defs") if group in root)
    axes = [group for group in figure if group.get("id", "").startswith("axes")]
    others = [group for group in figure if group not in axes][1:]  # the first is the white ground
    panels = split(axes, width)
    if len(panels) > 1 and not all(is_legend(group) for group in others):
        panels = [Panel(0.0, width, axes)]
    legends = others if len(panels) > 1 else []
    if len(panels) == 1:
        panels[0].axes += others
    top, bottom, rows = cut_legends(legends, axes, height)
    kind, _, shown = next(entry for entry in WIDTHS if width <= entry[1])
    pieces = [
        panel_markup(panel, writer, (top, bottom), shown / width, shared if index == 0 else "")
        for index, panel in enumerate(panels)
    ]
    above = "".join(legend_markup(group, writer) for group, first in rows if first)
    below = "".join(legend_markup(group, writer) for group, first in rows if not first)
    body = "".join(pieces)
    body = f'{above}<div class="panels">{body}</div>{below}'
    return (
        f'<div class="drawn drawn-{kind}" style="--ratio:{width / height:.3f}" role="img" '
        f'aria-label="{html.escape(alt)}"{more}>'
        f"{body}</div>"
    )


def is_legend(group: ET.Element) -> bool:
    return group.get("id", "").startswith("legend")


def numbers(text: str) -> list[float]:
    return [float(x) for x in NUMBER.findall(text)]


def axes_box(axes: ET.Element) -> Box:
    """The frame of some axes: their first patch."""
    for child in axes:
        path = child.find(f"{SVG}path")
        if child.get("id", "").startswith("patch") and path is not None:
            places = numbers(path.attrib["d"])
            xs, ys = places[::2], places[1::2]
            return Box(min(xs), min(ys), max(xs), max(ys))
    return Box(0.0, 0.0, 0.0, 0.0)


def left_edge(axes: ET.Element, box: Box) -> float:
    """The left end of what belongs to the axes: names and numbers of the vertical axis."""
    edge = box.left
    for group in axes.iter(f"{SVG}g"):
        if group.get("id", "").startswith("text"):
            for label in labels(group):
                if label.x < box.left and box.top - 30 < label.y < box.bottom + 12:
                    edge = min(edge, label.left())
    return edge


def split(axes: list[ET.Element], width: float) -> list[Panel]:
    """Panels of axes that stand side by side; one panel where a phone has room for the whole."""
    boxes = {group: axes_box(group) for group in axes}
    if width < 300:
        return [Panel(0.0, width, axes)]
    columns: list[list[ET.Element]] = []
    for group in sorted(axes, key=lambda group: boxes[group].left):
        reach = max((boxes[a].right for a in columns[-1]), default=0.0) if columns else 0.0
        if columns and (boxes[group].left < reach or boxes[group].width < NARROW):
            columns[-1].append(group)
        else:
            columns.append([group])
    if len(columns) < 2:
        return [Panel(0.0, width, axes)]
    cuts = [0.0]
    for before, column in itertools.pairwise(columns):
        end = max(boxes[group].right for group in before)
        start = min(left_edge(group, boxes[group]) for group in column)
        cuts.append(max((end + start) / 2, start - 6))
    cuts.append(width)
    panels = [
        Panel(left, right, sorted(column, key=axes.index))
        for left, right, column in zip(cuts, cuts[1:], columns, strict=False)
    ]
    for panel in panels[1:]:
        panel.room = 0.0
        for group in panel.axes:
            source = shared_axis(group, boxes, panels[0].axes)
            if source is not None:
                first = boxes[source]
                shift = boxes[group].left - first.left
                panel.room = max(panel.room, first.left - left_edge(source, first) + 2)
                panel.copies.append((source, shift))
    return panels


def shared_axis(
    group: ET.Element, boxes: dict[ET.Element, Box], candidates: list[ET.Element]
) -> ET.Element | None:
    """The axes whose vertical axis `group` shares: as high, and it alone has numbers."""
    if has_numbers(group):
        return None
    box = boxes[group]
    for other in candidates:
        level = abs(boxes[other].top - box.top) + abs(boxes[other].bottom - box.bottom) < 1
        if level and has_numbers(other):
            return other
    return None


def has_numbers(axes: ET.Element) -> bool:
    return any(
        next(tick.iter(f"{SVG}text"), None) is not None
        for tick in axes.iter(f"{SVG}g")
        if tick.get("id", "").startswith("ytick")
    )


def longest_upright(axes: list[ET.Element]) -> float:
    """The length of the longest word that stands upright below some axes, in points."""
    lengths = [
        label.width()
        for group in axes
        for tick in group.iter(f"{SVG}g")
        if tick.get("id", "").startswith("xtick")
        for inner in tick
        for label in labels(inner)
        if abs(label.turn) > 80
    ]
    return max(lengths, default=0.0)


def has_name_above(axes: ET.Element) -> bool:
    """Whether the horizontal axis has its name above, as colour bars do."""
    frame = axes_box(axes)
    return any(
        label.y < frame.top and abs(label.turn) < 45
        for axis in axes
        if axis.get("id", "").startswith("matplotlib")
        for group in axis
        for label in labels(group)
    )


def cut_legends(
    legends: list[ET.Element], axes: list[ET.Element], height: float
) -> tuple[float, float, list[tuple[ET.Element, bool]]]:
    """The panels' top and bottom without the figure's legends, and whether each stands above."""
    top, bottom = 0.0, height
    rows = []
    for legend in legends:
        ys = [label.y for group in legend for label in labels(group)]
        above = bool(axes) and max(ys) < min(axes_box(group).top for group in axes)
        if above:
            top = max(top, max(ys) + 4)
        else:
            bottom = min(bottom, min(ys) - 12)
        rows.append((legend, above))
    return top, bottom, rows


@dataclass
class Label:
    """One line of letters."""

    x: float
    y: float
    anchor: str
    size: float
    pieces: list[tuple[str, str]]  # (kind, words): plain, italic, sub, sup
    turn: float = 0.0
    look: str = ""  # the rest of its style
    natural: float | None = None  # a formula's width in matplotlib's own font

    @property
    def words(self) -> str:
        return "".join(words for _, words in self.pieces)

    def width(self) -> float:
        return len(self.words) * self.size * CHARACTER

    def left(self) -> float:
        if abs(self.turn) > 45:
            return self.x - self.size
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        return self.x - share * self.width()


def properties(style: str) -> dict[str, str]:
    pairs = (part.partition(":") for part in style.split(";") if ":" in part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def labels(group: ET.Element) -> Iterator[Label]:
    """The lines of letters in a group that matplotlib calls text_...."""
    for text in group.findall(f"{SVG}text"):
        look = properties(text.attrib.get("style", ""))
        look.pop("font-family", None)
        place = numbers(text.attrib.get("transform", "rotate(0 0 0)"))
        if "x" in text.attrib:  # and rotate(angle x y)
            x, y, turn = float(text.attrib["x"]), float(text.attrib["y"]), place[0]
        else:  # translate(x y) rotate(angle)
            x, y, turn = place[0], place[1], (*place, 0.0)[2]
        yield Label(
            x,
            y,
            look.pop("text-anchor", "start"),
            float(look.pop("font-size", "10.5px").removesuffix("px")),
            typeset(text.text or ""),
            turn,
            ";".join(f"{key}:{value}" for key, value in look.items()),
        )
    for inner in group.findall(f"{SVG}g"):
        text = inner.find(f"{SVG}text")
        if text is not None and "translate" in inner.get("transform", ""):
            yield formula(inner, text)


def typeset(words: str) -> list[tuple[str, str]]:
    """Words, with the names of the disparities and powers as formulas write them.

    >>> typeset("mean D_group, rel^2")
    [('plain', 'mean D'), ('sub', 'group'), ('plain', ', rel'), ('sup', '2')]
    """
    pieces = re.split(r"(?<=\bD)_(group|ind)\b|(?<=rel)\^(2)", words)
    kinds = ("plain", "sub", "sup")
    return [(kinds[k % 3], piece) for k, piece in enumerate(pieces) if piece]


def formula(group: ET.Element, text: ET.Element) -> Label:
    """A label with letters of two sizes, which matplotlib places one by one."""
    place = numbers(group.attrib["transform"])
    letters = []
    for span in text.findall(f"{SVG}tspan"):
        look = properties(span.attrib.get("style", ""))
        size = float(look["font-size"].removesuffix("px"))
        for x, letter in zip(numbers(span.attrib["x"]), span.text or "", strict=False):
            y = numbers(span.attrib["y"])[0]
            letters.append((x, y, size, "font-style" in look, letter))
    letters.sort(key=lambda one: one[0])
    size = max(one[2] for one in letters)
    base = max((one[1] for one in letters if one[2] == size), default=0.0)
    pieces: list[tuple[str, str]] = []
    for _, y, own, slanted, letter in letters:
        small = own < 0.9 * size
        kind = ("sup" if y < base - 1 else "sub") if small else "italic" if slanted else "plain"
        if pieces and pieces[-1][0] == kind:
            pieces[-1] = (kind, pieces[-1][1] + letter)
        else:
            pieces.append((kind, letter))
    last = letters[-1]
    width = last[0] + CHARACTER * last[2]
    turn = place[2] if len(place) > 2 else 0.0
    outer = properties(group.attrib.get("style", ""))
    look = ";".join(f"{k}:{v}" for k, v in {**outer, **properties(text.get("style", ""))}.items())
    return Label(place[0], place[1] + base, "start", size, pieces, turn, look, width)


def anchored(label: Label, anchor: str) -> Label:
    """A formula that stands where it stood, whatever the width of its letters."""
    if label.natural is None or anchor == "start":
        return label
    share = {"middle": 0.5, "end": 1.0}[anchor] * label.natural
    if abs(label.turn) > 45:
        label.y -= share if label.turn < 0 else -share
    else:
        label.x += share
    label.anchor = anchor
    return label


class Writer:
    """Writes elements of one drawing: short numbers, colours by name, ids of its own."""

    def __init__(self, name: str, referred: set[str]) -> None:
        self.name = name
        self.ids: dict[str, str] = {}
        self.referred = referred
        self.apart = 0.0  # pt: how far names of axes move away, where a phone's letters are large
        self.drop = 0.0  # pt: how far more, below numbers or words that stand upright

    def id(self, old: str) -> str:
        return self.ids.setdefault(old, f"{self.name}-{len(self.ids)}")

    def markup(self, element: ET.Element, context: str = "", frame: Box | None = None) -> str:
        """An element with all that is in it."""
        kind = element.tag.removeprefix(SVG)
        if kind in ("style", "metadata"):
            return ""
        own = element.get("id", "")
        if kind == "g" and own.startswith("text"):
            return "".join(
                label_markup(self.placed(label, context, frame)) for label in labels(element)
            )
        if kind == "g" and own.startswith(("xtick", "ytick", "matplotlib.axis", "legend")):
            context = own
        attributes = self.attributes(element) + self.shared_style(element)
        inside = "".join(self.markup(child, context, frame) for child in element)
        if kind == "g" and not attributes:
            return inside
        if kind == "defs" and not inside:
            return ""
        if not inside:
            return f"<{kind}{attributes}/>"
        return f"<{kind}{attributes}>{inside}</{kind}>"

    def shared_style(self, element: ET.Element) -> str:
        """The style of many equal marks is said once, at the group that holds them."""
        marks = [child for child in element if child.tag == f"{SVG}use"]
        styles = {mark.get("style", "") for mark in marks}
        if len(marks) < 3 or len(marks) < len(element) or len(styles) > 1 or element.get("style"):
            return ""
        for mark in marks:
            mark.attrib.pop("style", None)
        return f' style="{html.escape(self.style(styles.pop()))}"'

    def placed(self, label: Label, context: str, frame: Box | None) -> Label:
        """A label where it stays clear of its neighbours, whatever its font and size."""
        label = anchored(label, anchor_of(context, label, frame))
        if frame is None:
            return label
        if context.startswith("matplotlib"):  # the name of an axis, beside its numbers
            if abs(label.turn) > 45:
                label.x += -self.apart if label.x < frame.left else self.apart
            elif label.y > frame.top:
                label.y += self.apart + self.drop
            else:
                label.y -= self.apart
        elif context.startswith("xtick") and abs(label.turn) > 80 and label.y > frame.bottom:
            label.y = frame.bottom + 6
            label.anchor = "end" if label.turn < 0 else "start"
        return label

    def attributes(self, element: ET.Element) -> str:
        made = []
        for key, value in element.attrib.items():
            key = "href" if key == LINK else key.rpartition("}")[2]
            if key == "id":
                if value not in self.referred:
                    continue
                value = self.id(value)
            elif key == "href" and value.startswith("#"):
                value = "#" + self.id(value[1:])
            elif key == "href":
                value = re.sub(r"\s", "", value)
            elif key == "d":
                value = thin_path(value)
            elif key == "style":
                value = self.style(value)
            elif key in ("fill", "stroke"):  # of a hatch: an attribute knows no variables
                key, value = "style", f"{key}:{coloured(value)}"
            elif key in ("x", "y", "width", "height") and element.tag != f"{SVG}image":
                value = short(float(value))
            value = re.sub(r"url\(#([\w.-]+)\)", lambda m: f"url(#{self.id(m[1])})", value)
            made.append(f' {key}="{html.escape(value)}"')
        return "".join(made)

    def style(self, style: str) -> str:
        return ";".join(f"{key}:{coloured(value)}" for key, value in properties(style).items())


def coloured(value: str) -> str:
    """A colour of the house by its name; others stay."""
    name = COLOURS.get(value.lower())
    return f"var(--fig-{name})" if name else value


def short(number: float) -> str:
    """A number to a tenth of a point.

    >>> short(12.0), short(0.26), short(-0.04)
    ('12', '.3', '0')
    """
    text = f"{number:.1f}".removesuffix(".0")
    text = re.sub(r"^(-?)0\.", r"\1.", text)
    return "0" if text in ("-0", "-", "") else text


def thin_path(path: str) -> str:
    """A path to a tenth of a point, without points that nobody can see.

    Of many points in the same half of a point along the way, the first, the highest, the lowest
    and the last stay.

    >>> thin_path("M 0.04 1 L 1 1.26 L 1 1.26 L 2.5 3 z ")
    'M0 1L1 1.3L2.5 3z'
    """
    parts = re.findall(r"([MLQCz])([^MLQCz]*)", path)
    out: list[str] = []
    run: list[tuple[float, float]] = []

    def flush() -> None:
        if run:
            points = thin(run)
            out.extend(f"L{short(x)} {short(y)}" for x, y in points)
            run.clear()

    for command, places in parts:
        values = numbers(places)
        if command == "L":
            run.append((values[0], values[1]))
            continue
        flush()
        out.append(command + " ".join(short(value) for value in values))
    flush()
    kept = [
        piece
        for k, piece in enumerate(out)
        if k == 0 or piece[1:] != out[k - 1][1:] or piece == "z"
    ]
    return "".join(kept)


def thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points of a line, at most four in each half of a point along x."""
    if len(points) < 200:
        return points
    kept: list[tuple[float, float]] = []
    column: list[tuple[float, float]] = []

    def close() -> None:
        if len(column) <= 4:
            kept.extend(column)
        else:
            extremes = {0, len(column) - 1}
            heights = [y for _, y in column]
            extremes |= {heights.index(min(heights)), heights.index(max(heights))}
            kept.extend(column[k] for k in sorted(extremes))
        column.clear()

    for point in points:
        if column and int(point[0] * 2) != int(column[-1][0] * 2):
            close()
        column.append(point)
    close()
    return kept


def anchor_of(context: str, label: Label, frame: Box | None) -> str:
    """How a formula is aligned: matplotlib only says where its first letter is."""
    if context.startswith("xtick") or context.startswith("matplotlib"):
        return "middle"
    if context.startswith("ytick"):
        right_hand = frame is not None and label.x > (frame.left + frame.right) / 2
        return "start" if right_hand else "end"
    return "start"


def label_markup(label: Label, extra: str = "") -> str:
    """A label as text of the page."""
    look = [f"--s:{label.size:g}"]
    for key, value in properties(label.look).items():
        look.append(f"{key}:{'var(--fig-paper)' if value == '#ffffff' else coloured(value)}")
    if label.anchor != "start":
        look.append(f"text-anchor:{label.anchor}")
    turn = f' transform="rotate({label.turn:g} {short(label.x)} {short(label.y)})"'
    body = letters_markup(label.pieces)
    return (
        f'<text x="{short(label.x)}" y="{short(label.y)}"{extra}'
        f'{turn if abs(label.turn) > 0.5 else ""} style="{html.escape(";".join(look))}">'
        f"{body}</text>"
    )


def letters_markup(pieces: Iterable[tuple[str, str]]) -> str:
    """Letters with those below and above the line. `dy` moves all that follows, so it is undone."""
    out = []
    level = 0.0
    for kind, words in pieces:
        wanted = {"sub": 0.25, "sup": -0.4}.get(kind, 0.0)
        size = 0.72 if kind in ("sub", "sup") else 1.0
        move = (wanted - level) / size
        level = wanted
        words = html.escape(words, quote=False)
        if kind == "plain" and not move:
            out.append(words)
            continue
        attributes = f' dy="{move:.3g}em"' if move else ""
        out.append(f'<tspan class="{kind}"{attributes}>{words}</tspan>')
    return "".join(out)


def map_box(axes: ET.Element) -> Box | None:
    """Where the axes have a map (a raster, or coloured areas), or None."""
    for child in axes:
        name = child.get("id", "")
        if name.startswith("image") or child.find(f"{SVG}image") is not None:
            return axes_box(axes)
        if name.startswith(("QuadMesh", "QuadContourSet")):
            paths = [path.attrib.get("d", "") for path in child.iter(f"{SVG}path")]
            places = [numbers(path) for path in paths]
            xs = [x for one in places for x in one[::2]]
            ys = [y for one in places for y in one[1::2]]
            if xs:
                return Box(min(xs), min(ys), max(xs), max(ys))
    return None


def axes_markup(axes: ET.Element, writer: Writer, crowded: bool) -> str:
    """Some axes; what lies on a map stands in a group of its own, with the map's colours.

    The legend of crowded axes is left to wide pages: a phone has it as words above.
    """
    frame = axes_box(axes)
    over = map_box(axes)
    out = []
    ground_seen = False
    for child in axes:
        name = child.get("id", "")
        if name.startswith("patch") and not ground_seen:
            ground_seen = True
            path = child.find(f"{SVG}path")
            if path is not None and "#ffffff" in path.get("style", ""):
                continue  # the page is the ground
        made = writer.markup(child, frame=frame)
        if over is not None and on_map(child, over):
            made = f'<g class="on-map">{made}</g>'
        if crowded and is_legend(child):
            made = f'<g class="desk">{made}</g>'
        out.append(made)
    return "".join(out)


def on_map(child: ET.Element, over: Box) -> bool:
    """Whether something is drawn on the map: all but axes, frames, and words outside of it."""
    name = child.get("id", "")
    if name.startswith("matplotlib"):
        return False
    if name.startswith("text"):
        return all(over.holds(label.x, label.y) for label in labels(child))
    path = child.find(f"{SVG}path")
    return not (path is not None and "#3a3f45" in path.get("style", ""))


def panel_markup(
    panel: Panel, writer: Writer, ends: tuple[float, float], scale: float, shared: str
) -> str:
    """One panel. `scale`: pixels per point on a wide page."""
    width = panel.right - panel.left
    top, bottom = ends
    phone_scale = min(PHONE / (width + panel.room), 4 / 3)
    letter = min(max(LETTER / (ORDINARY * scale), 0.9), 1.2)
    phone_letter = max(PHONE_LETTER / (ORDINARY * phone_scale), 1.0)
    crowded = phone_letter > CROWDED
    writer.apart = 7 * (phone_letter - 0.6) if crowded else 0.0
    writer.drop = 0.25 * longest_upright(panel.axes) if crowded else 0.0
    body = "".join(axes_markup(group, writer, crowded) for group in panel.axes)
    copies = []
    for source, shift in panel.copies:
        copies += copied_axis(source, shift)
    legends = [child for group in panel.axes for child in group if is_legend(child)]
    words = "".join(legend_markup(legend, writer, "phone") for legend in legends if crowded)
    left = panel.left - writer.apart
    width += writer.apart
    bottom += writer.apart + writer.drop
    named_above = crowded and any(has_name_above(group) for group in panel.axes)
    top -= writer.apart if named_above else 0.0
    look = (
        f"--w:{width:.0f};--k:{letter:.2f};--kp:{phone_letter:.2f};"
        f"--m:{PHONE_SMALLEST / phone_scale:.1f};flex-grow:{width:.0f}"
    )
    if panel.room:
        look += f";--room:{panel.room / (width + panel.room):.3f}"
        look += f";--whole:{width + panel.room:.0f}"
    room = ' class="shares-axis"' if panel.room else ""
    return (
        f'{words}<svg{room} viewBox="{short(left)} {short(top)} {short(width)} '
        f'{short(bottom - top)}" style="{look}" aria-hidden="true">'
        f"{shared}{body}{''.join(copies)}</svg>"
    )


def copied_axis(axes: ET.Element, shift: float) -> list[str]:
    """The numbers and the name of a vertical axis, moved: for a phone."""
    frame = axes_box(axes)
    out = []
    for axis in axes:
        if not axis.get("id", "").startswith("matplotlib"):
            continue
        for group in axis.iter(f"{SVG}g"):
            if not group.get("id", "").startswith("text"):
                continue
            for label in labels(group):
                if label.x < frame.left and frame.top - 8 < label.y < frame.bottom + 8:
                    anchor = "middle" if abs(label.turn) > 45 else "end"
                    label = anchored(label, anchor)
                    label.x += shift
                    out.append(label_markup(label, ' class="phone"'))
    return out


def legend_markup(legend: ET.Element, writer: Writer, where: str = "") -> str:
    """A legend as words of the page, which may break into lines; `where`: a class."""
    entries = []
    handle: list[ET.Element] = []
    for group in legend:
        found = list(labels(group)) if group.get("id", "").startswith("text") else []
        if not found:
            handle.append(group)
            continue
        drawing = "".join(writer.markup(one) for one in handle)
        places = handle_box(handle)
        handle = []
        if places is not None and drawing:
            middle = (places.top + places.bottom) / 2
            drawing = (
                f'<svg viewBox="{short(places.left - 2)} {short(middle - 6)} '
                f'{short(places.width + 4)} 12" width="{short((places.width + 4) * 1.25)}" '
                f'height="15" aria-hidden="true">{drawing}</svg>'
            )
        words = "".join(
            html.escape(words, quote=False)
            if kind in ("plain", "italic")
            else f"<{kind}>{html.escape(words, quote=False)}</{kind}>"
            for label in found
            for kind, words in label.pieces
        )
        entries.append(f"<span>{drawing}{words}</span>")
    kind = f"drawn-legend {where}".strip()
    return f'<div class="{kind}">{"".join(entries)}</div>'


def handle_box(groups: list[ET.Element]) -> Box | None:
    """Where the sign of a legend's entry is; the frame of the legend is no sign."""
    groups = groups[-1:] if groups else []
    places = [
        numbers(path.attrib["d"])
        for group in groups
        for path in group.iter(f"{SVG}path")
        if "id" not in path.attrib
    ]
    uses = [
        [float(use.attrib["x"]), float(use.attrib["y"])]
        for group in groups
        for use in group.iter(f"{SVG}use")
    ]
    places = [*places, *uses]
    xs = [x for one in places for x in one[::2]]
    ys = [y for one in places for y in one[1::2]]
    return Box(min(xs), min(ys), max(xs), max(ys)) if xs else None
