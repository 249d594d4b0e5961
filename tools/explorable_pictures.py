"""The pictures that stand in for the explorables where scripts are off, in print and in the PDF.

`python -m tools.explorable_pictures` writes book/explorables/*.svg from the module's numbers. They
are drawn by hand, not by matplotlib, so that a file changes only when a number or the drawing does.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from fairpg_lite import PlackettLuce, group_disparity, individual_disparity, position_bias
from fairpg_lite.metrics import expected_ndcg

FOLDER = Path(__file__).resolve().parents[1] / "book" / "explorables"
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
INK, SOFT, LINE = "#1C2127", "#555D66", "#C9CDD2"
STRIPES = (
    '<defs><pattern id="s" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#D55E00"/>'
    '<path d="M0 0V6" stroke="#fff" stroke-opacity=".45" stroke-width="4"/></pattern></defs>'
)


def number(value: float, digits: int = 2) -> str:
    """As the book writes it.

    >>> number(0.631), number(1.0)
    ('.63', '1.00')
    """
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def text(x: float, y: float, words: str, *, size: int = 14, fill: str = INK, more: str = "") -> str:
    body = html.escape(words, quote=False)
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}"{more}>{body}</text>'


def svg(width: int, height: int, parts: Iterable[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


MIDDLE = ' text-anchor="middle"'
BOLD = ' font-weight="bold"'


def bars(values: list[float], floor: float, scale: float, opacity: float = 1.0) -> list[str]:
    fills = [BLUE] * 5 + ["url(#s)"] * 5
    return [
        f'<rect x="{24 + 60 * i}" y="{floor - scale * v:.1f}" width="42" height="{scale * v:.1f}" '
        f'rx="3" fill="{fill}" opacity="{opacity}"/>'
        + text(45 + 60 * i, floor + 16, number(v), size=13, fill=SOFT, more=MIDDLE)
        for i, (v, fill) in enumerate(zip(values, fills, strict=True))
    ]


def candidates() -> str:
    """Chapter 1's ten candidates at temperature .001, as explorable A begins."""
    merit = torch.tensor([0.89] * 5 + [0.88] * 5, dtype=torch.float64)
    groups = torch.tensor([0] * 5 + [1] * 5)
    exposure = PlackettLuce(merit / 0.001).exposure()
    share = position_bias(10, dtype=torch.float64).sum() * merit / merit.sum()
    men, women = exposure[:5].mean().item(), exposure[5:].mean().item()
    less = 100 * (merit[5:].mean() / merit[:5].mean()).item()
    numbers = (
        f"D_group {number(group_disparity(exposure, merit, groups).item(), 3)}    "
        f"NDCG {number(expected_ndcg(exposure, merit).item(), 3)}    "
        f"a man gets {number(men, 3)}    a woman gets {number(women, 3)}"
    )
    # In lines that end well before the edge: a printer's letters may be wider than ours.
    headline = (
        f"The women have {less:.1f} % of the men’s merit",
        f"and get {100 * women / men:.1f} % of their exposure.",
    )
    merit_floor, floor, scale = 176, 350, 150
    marks = [
        f'<path d="M{19 + 60 * i} {floor - scale * s:.1f}h52" stroke="{INK}" stroke-width="3"/>'
        for i, s in enumerate(share.tolist())
    ]
    letters = [
        text(45 + 60 * i, 212, name, size=15, more=MIDDLE + BOLD)
        for i, name in enumerate("ABCDEFGHIJ")
    ]
    lines = [
        f'<path d="M14 {y}H626" stroke="{SOFT}" stroke-width="1.5"/>' for y in (merit_floor, floor)
    ]
    parts = [
        STRIPES,
        text(16, 22, headline[0], size=17),
        text(16, 43, headline[1], size=17),
        text(16, 68, "Merit", more=BOLD),
        *bars(merit.tolist(), merit_floor, 105, 0.5),
        *letters,
        text(16, 246, "Exposure", more=BOLD),
        text(104, 246, "of the sorted list; black lines: in proportion to merit", fill=SOFT),
        *bars(exposure.tolist(), floor, scale),
        *lines,
        *marks,
        text(16, 400, numbers, more=' xml:space="preserve"'),
    ]
    return svg(640, 418, parts)


LISTS = ["123", "213", "231", "321", "312", "132"]
SCALE = 300  # pixels for one unit of exposure
AXES = torch.tensor([[0.0, 1.0], [3**0.5 / 2, -0.5], [-(3**0.5) / 2, -0.5]], dtype=torch.float64)


def pixel(exposure: Tensor) -> tuple[float, float]:
    """Where a triple stands: document 1 pulls up, 2 to the lower right, 3 to the lower left."""
    x, y = (exposure @ AXES).tolist()
    return 180 + SCALE * x, 175 - SCALE * y


def best_lottery(corners: Tensor, merit: Tensor, lam: float) -> Tensor:
    """The exposure that maximises NDCG - lam D_ind over all lotteries, by a linear programme.

    Its variables are the lists' probabilities and one excess for each pair of D_ind.
    """
    from scipy.optimize import linprog

    n = len(merit)
    pairs = [(i, j) for i in range(n) for j in range(n) if merit[i] >= merit[j]]
    excess = torch.stack([corners[:, i] / merit[i] - corners[:, j] / merit[j] for i, j in pairs])
    cost = torch.cat(
        [-expected_ndcg(corners, merit.expand_as(corners)), torch.full((len(pairs),), lam)]
    )
    cost[len(corners) :] /= len(pairs)
    upper = torch.cat([excess, -torch.eye(len(pairs), dtype=excess.dtype)], 1)
    once = torch.cat([torch.ones(len(corners)), torch.zeros(len(pairs))])[None]
    below, total = upper.numpy(), once.numpy()
    found = linprog(cost.numpy(), below, [0.0] * len(pairs), total, [1.0])
    return torch.tensor(found.x[: len(corners)], dtype=corners.dtype) @ corners


def field(bias: Tensor, merit: Tensor, most: float) -> Iterable[str]:
    """Dots all over the hexagon: green where D_ind is 0, else as large as it is."""
    for row, y in enumerate(range(34, 300, 12)):
        for x in range(30 + 6 * (row % 2), 330, 12):
            place = torch.tensor([(x - 180) / SCALE, (175 - y) / SCALE], dtype=merit.dtype)
            v = bias.mean() + 2 / 3 * AXES @ place
            if (v.sort(descending=True).values.cumsum(0) > bias.cumsum(0) + 1e-9).any():
                continue
            d = individual_disparity(v, merit).item()
            radius, fill = (5 * (d / most) ** 0.5, LINE) if d > 1e-9 else (4.5, "#9AD6C3")
            yield f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{fill}"/>'


def hexagon() -> str:
    """Three documents with merits 1, .8, .6: all lotteries, and the frontier of D_ind."""
    merit = torch.tensor([1.0, 0.8, 0.6], dtype=torch.float64)
    bias = position_bias(3, dtype=torch.float64)
    corners = torch.stack([bias[[name.index(d) for d in "123"]] for name in LISTS])
    points = " ".join("{:.1f},{:.1f}".format(*pixel(c)) for c in corners)
    disparity = individual_disparity(corners, merit.expand_as(corners))
    names = []
    for name, corner in zip(LISTS, corners, strict=True):
        (x, y), (dx, dy) = pixel(corner), (corner @ AXES).tolist()
        names.append(text(x + 55 * dx, y - 45 * dy + 5, name, more=MIDDLE + BOLD))
    frontier = [best_lottery(corners, merit, lam) for lam in (0.0, 0.33, 1.0)]
    line = " ".join("{:.1f},{:.1f}".format(*pixel(v)) for v in frontier)
    said = []
    for y, title, v in (
        (150, "Sorted list", frontier[0]),
        (226, "Best with D_ind 0", frontier[-1]),
    ):
        d, u = individual_disparity(v, merit).item(), expected_ndcg(v, merit).item()
        said.append(text(400, y, title, more=BOLD))
        said.append(text(400, y + 20, f"NDCG {number(u, 3)}, D_ind {number(d, 3)}"))
        exposure = ", ".join(number(e, 3) for e in v.tolist())
        said.append(text(400, y + 40, f"exposure {exposure}", fill=SOFT))
    ends = [pixel(frontier[0]), pixel(frontier[-1])]
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{INK}"/>' for x, y in ends]
    parts = [
        *field(bias, merit, disparity.max().item()),
        f'<polygon points="{points}" fill="none" stroke="{SOFT}" stroke-width="1.5"/>',
        f'<polyline points="{line}" fill="none" stroke="#A8437F" stroke-width="5"/>',
        *dots,
        *names,
        text(400, 50, "Merits 1, .8 and .6", size=17),
        text(400, 74, "green: D_ind is 0", size=12, fill=SOFT),
        text(400, 91, "grey: the larger, the more", size=12, fill=SOFT),
        text(400, 108, "line: the frontier", size=12, fill=SOFT),
        *said,
    ]
    return svg(640, 310, parts)


PICTURES = {"candidates": candidates, "hexagon": hexagon}


def main() -> None:
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
