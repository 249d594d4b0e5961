"""The pictures that stand in for the explorables where scripts are off, in print and in the PDF.

`python -m tools.explorable_pictures` writes book/explorables/*.svg from the module's numbers. They
are drawn by hand, not by matplotlib, so that a file changes only when a number or the drawing does.
"""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import (
    LinearScorer,
    PlackettLuce,
    TrainConfig,
    fit,
    group_disparity,
    individual_disparity,
    position_bias,
    synthetic,
)
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


def ranked_list() -> str:
    """Chapter 1's ten candidates as the sorted list shows them."""
    bias = position_bias(10, dtype=torch.float64).tolist()
    merit = torch.tensor([0.89] * 5 + [0.88] * 5, dtype=torch.float64)
    exposure = PlackettLuce(merit / 0.001).exposure()
    less = 100 * (1 - exposure[5:].mean() / exposure[:5].mean()).item()
    parts = [
        STRIPES,
        text(16, 24, "The women’s scores are 1 % lower.", size=17),
        text(16, 46, f"They get {less:.0f} % less attention than the men.", size=17, more=BOLD),
    ]
    for j, (value, name) in enumerate(zip(bias, "ABCDEFGHIJ", strict=True)):
        y = 66 + 27 * j
        who = "man, .89" if j < 5 else "woman, .88"
        fill = BLUE if j < 5 else "url(#s)"
        parts += [
            text(36, y + 15, str(j + 1), fill=SOFT, more=' text-anchor="end"'),
            text(50, y + 15, name, more=BOLD),
            text(74, y + 15, who, size=13),
            f'<rect x="170" y="{y + 3}" width="{400 * value:.1f}" height="16" rx="3" '
            f'fill="{fill}"/>',
            text(178 + 400 * value, y + 15, number(value), size=13, fill=SOFT),
        ]
    return svg(640, 348, parts)


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


RAMP = [(246, 243, 235), (214, 190, 205), (158, 118, 172), (88, 64, 132), (34, 24, 70)]


def colour(value: float) -> str:
    """The map's colour for a number from 0 (light) to 1 (dark), as train.js has it."""
    place = min(0.9999, max(0.0, value)) * (len(RAMP) - 1)
    k = int(place)
    mixed = [a + (place - k) * (b - a) for a, b in zip(RAMP[k], RAMP[k + 1], strict=True)]
    return "#" + "".join(f"{round(c):02x}" for c in mixed)


def stored_map() -> tuple[np.ndarray, float, float]:
    """D_group over the two weights [second, first] as the page has it, and the map's two ends."""
    source = (FOLDER / "train_data.js").read_text(encoding="utf-8")
    data = json.loads(source[source.index("{") : source.rindex("}") + 1])["map"]
    stored = np.frombuffer(base64.b64decode(data["dGroup"]), dtype="<u2")
    values = stored.reshape(data["points"], data["points"]) / 65535 * data["scales"][1]
    return values, data["low"], data["high"]


def epochs_of(lam: float) -> list[list[float]]:
    """The weights at the start and after each of five epochs of Fair-PG-Rank."""
    data = synthetic(dtype=torch.float64)
    path = [[0.0, 0.0]]
    for epochs in range(1, 6):
        scorer = LinearScorer(2, dtype=torch.float64)
        torch.nn.init.zeros_(scorer.linear.weight)
        config = TrainConfig(
            lam=lam, method="exact", lr=0.1, lr_decay=0.5, epochs=epochs, tolerance=1e-10
        )
        fit(scorer, data, config, progress=False)
        path.append(scorer.linear.weight[0].tolist())
    return path


def train() -> str:
    """D_group over the two weights, and four trainings epoch by epoch."""
    values, low, high = stored_map()
    side, left, top = 340, 20, 30
    values = values[::2, ::2]
    cell = side / len(values)

    def place(weights: list[float]) -> tuple[float, float]:
        scale = side / (high - low)
        return left + scale * (weights[0] - low), top + side - scale * (weights[1] - low)

    squares = []
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            x, y = left + cell * column, top + side - cell * (row + 1)
            squares.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell + 0.3:.1f}" '
                f'height="{cell + 0.3:.1f}" fill="{colour(value / values.max())}"/>'
            )
    lines, said = [], []
    for k, lam in enumerate((0, 5, 10, 25)):
        path = epochs_of(float(lam))
        points = " ".join("{:.1f},{:.1f}".format(*place(w)) for w in path)
        x, y = place(path[-1])
        for stroke, width in (("#fff", 5), ("#111", 2)):
            lines.append(
                f'<polyline points="{points}" fill="none" stroke="{stroke}" '
                f'stroke-width="{width}" stroke-linejoin="round"/>'
            )
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="#111" stroke="#fff"/>')
        lines.append(
            text(x + 9, y + 5, f"{lam}", more=BOLD + ' paint-order="stroke" stroke="#fff"')
        )
        ends = " and ".join(number(w, 1) for w in path[-1])
        said.append(text(390, 130 + 24 * k, f"price {lam}: weights {ends}"))
    parts = [
        text(left, 20, "D_group over the weights of features 1 (right) and 2 (up)"),
        *squares,
        *lines,
        text(390, 60, "Fair-PG-Rank at four prices", size=17),
        text(390, 84, "five epochs each, from 0 and 0", size=13, fill=SOFT),
        *said,
        text(390, 250, "light: little D_group", size=13, fill=SOFT),
        text(390, 268, f"darkest: {number(values.max(), 3)}", size=13, fill=SOFT),
    ]
    return svg(640, 390, parts)


def race() -> str:
    """Six runners: when each has arrived in half of all races, and its chance to be first."""
    scores = torch.tensor([1.6, 1.0, 0.5, 0.0, -0.4, -1.0], dtype=torch.float64)
    half = math.log(2) / scores.exp()
    first = scores.softmax(0)
    fastest, slowest, left, right = 0.004, 40.0, 60, 430
    parts = [
        text(20, 24, "Six documents run: where half of all races see them arrive", size=16),
        text(right + 30, 52, "first", size=13, fill=SOFT),
    ]
    for i, name in enumerate("ABCDEF"):
        y = 70 + 34 * i
        along = math.log(half[i] / fastest) / math.log(slowest / fastest)
        x = left + (right - left) * along
        parts += [
            text(24, y + 5, name, more=BOLD),
            f'<path d="M{left} {y}H{right}" stroke="{LINE}" stroke-width="2"/>',
            f'<circle cx="{x:.1f}" cy="{y}" r="9" fill="{BLUE}"/>',
            text(x + 15, y - 5, number(half[i].item()), size=12, fill=SOFT),
            text(right + 30, y + 5, number(first[i].item())),
        ]
    parts.append(text(left, 274, "early", size=13, fill=SOFT))
    parts.append(text(right - 26, 274, "late", size=13, fill=SOFT))
    return svg(640, 290, parts)


def pulls(scores: Tensor, worth: Tensor, rankings: Tensor, kind: str) -> Tensor:
    """The pull of each ranking ``(S, n)`` on the scores: what REINFORCE averages.

    "plain" multiplies the slope of a list's log-probability by its reward, "baseline" by its
    reward less the policy's mean, "togo" the slope of each choice by what is gained from its place
    on, less what could be expected there.
    """
    bias = position_bias(len(scores), dtype=scores.dtype)
    mean = float(PlackettLuce(scores).exposure() @ worth)

    def expected(left: tuple[int, ...], place: int) -> float:
        if not left:
            return 0.0
        chances = scores[list(left)].softmax(0).tolist()
        total = 0.0
        for chance, i in zip(chances, left, strict=True):
            others = tuple(j for j in left if j != i)
            total += chance * (float(worth[i] * bias[place]) + expected(others, place + 1))
        return total

    rows = []
    for ranking in rankings.tolist():
        moving = scores.clone().requires_grad_()
        gains = [float(worth[i] * bias[j]) for j, i in enumerate(ranking)]
        surrogate = torch.zeros((), dtype=scores.dtype)
        for place in range(len(ranking)):
            left = ranking[place:]
            if kind == "togo":
                reward = sum(gains[place:]) - expected(tuple(sorted(left)), place)
            else:
                reward = sum(gains) - (mean if kind == "baseline" else 0.0)
            surrogate = surrogate + reward * moving[left].log_softmax(0)[0]
        (slope,) = torch.autograd.grad(surrogate, moving)
        rows.append(slope)
    return torch.stack(rows)


PULL_SCORES = torch.tensor([0.6, 0.3, 0.0, -0.2, -0.5], dtype=torch.float64)
PULL_RELEVANCE = torch.tensor([1.0, 3.0, 0.0, 2.0, 0.0], dtype=torch.float64)
PULL_KINDS = {
    "plain": "the reward itself",
    "baseline": "minus a baseline",
    "togo": "reward-to-go",
}


def pull_worth() -> Tensor:
    """What a unit of exposure adds to the NDCG of the five documents."""
    eye = torch.eye(5, dtype=torch.float64)
    return expected_ndcg(eye, PULL_RELEVANCE.expand(5, 5))


def pull() -> str:
    """A hundred lists' pulls on documents B and D, by three estimators."""
    generator = torch.Generator().manual_seed(0)
    rankings = PlackettLuce(PULL_SCORES).sample((100,), generator=generator)
    scores = PULL_SCORES.clone().requires_grad_()
    worth = pull_worth()
    (exact,) = torch.autograd.grad(PlackettLuce(scores).exposure() @ worth, scores)
    parts = [text(20, 24, "A hundred drawn lists, each a pull on documents B and D", size=16)]
    for k, (kind, label) in enumerate(PULL_KINDS.items()):
        x, y = 110 + 210 * k, 150
        slopes = pulls(PULL_SCORES, worth, rankings, kind)
        error = (slopes - exact).square().sum(-1).mean().sqrt() / exact.norm()
        parts.append(
            f'<path d="M{x - 95} {y}H{x + 95}M{x} {y - 95}V{y + 95}" stroke="{LINE}" fill="none"/>'
        )
        for slope in slopes.tolist():
            parts.append(
                f'<circle cx="{x + 75 * slope[1]:.1f}" cy="{y - 75 * slope[3]:.1f}" r="3" '
                f'fill="{BLUE}" fill-opacity=".35"/>'
            )
        ex, ey = x + 75 * exact[1].item(), y - 75 * exact[3].item()
        parts.append(
            f'<path d="M{ex - 6:.1f} {ey - 6:.1f}l12 12m0 -12l-12 12" stroke="{ORANGE}" '
            'stroke-width="3.5"/>'
        )
        parts.append(text(x, 264, label, more=MIDDLE + BOLD))
        parts.append(
            text(x, 284, f"one list is off by {100 * error:.0f} %", size=13, fill=SOFT, more=MIDDLE)
        )
    return svg(640, 300, parts)


PICTURES = {
    "candidates": candidates,
    "list": ranked_list,
    "hexagon": hexagon,
    "train": train,
    "race": race,
    "pull": pull,
}


def main() -> None:
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
