"""The pictures that stand in for the explorables where scripts are off, in print and in the PDF.

`python -m tools.explorable_pictures` writes book/explorables/*.svg from the module's numbers. They
are drawn by hand, not by matplotlib, so that a file changes only when a number or the drawing does.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

import torch

from fairpg_lite import PlackettLuce, group_disparity, position_bias
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
    headline = (
        f"The women have {less:.1f} % of the men’s merit and get {100 * women / men:.1f} % "
        "of their exposure."
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
        text(16, 30, headline, size=17),
        text(16, 62, "Merit", more=BOLD),
        *bars(merit.tolist(), merit_floor, 105, 0.5),
        *letters,
        text(16, 246, "Exposure", more=BOLD),
        text(90, 246, "of the sorted list; black lines: in proportion to merit", fill=SOFT),
        *bars(exposure.tolist(), floor, scale),
        *lines,
        *marks,
        text(16, 400, numbers, more=' xml:space="preserve"'),
    ]
    return svg(640, 418, parts)


PICTURES = {"candidates": candidates}


def main() -> None:
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
