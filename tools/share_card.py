"""The picture that stands for the book where its address is shared: `python -m tools.share_card`.

It writes book/_static/card.png, 1200 by 630 pixels: chapter 1's ten people as the sorted list shows
them, with the numbers of the module.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import torch

from fairpg_lite import PlackettLuce, position_bias
from fairpg_lite.figures import PALETTE

CARD = Path(__file__).resolve().parents[1] / "book" / "_static" / "card.png"


def draw() -> plt.Figure:
    """The picture as a figure."""
    merit = torch.tensor([0.89] * 5 + [0.88] * 5, dtype=torch.float64)
    exposure = PlackettLuce(merit / 0.001).exposure()
    less = 100 * (1 - exposure[5:].mean() / exposure[:5].mean()).item()
    bias = position_bias(10, dtype=torch.float64).tolist()
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    words = [
        (0.86, "A ranking decides who is seen", 34, "bold"),
        (0.70, "Ten people apply.", 23, "normal"),
        (0.62, "The women’s scores are 1 % lower.", 23, "normal"),
        (0.49, f"They get {less:.0f} % less attention.", 25, "bold"),
        (0.14, "Fairness of exposure\nin learning to rank", 20, "normal"),
    ]
    for height, text, size, weight in words:
        figure.text(0.06, height, text, fontsize=size, fontweight=weight, color="#1C2127")
    axes = figure.add_axes((0.60, 0.10, 0.35, 0.68))
    colours = [PALETTE["blue"]] * 5 + [PALETTE["orange"]] * 5
    axes.barh(range(10, 0, -1), bias, color=colours, height=0.72)
    axes.axis("off")
    return figure


def main() -> None:
    """Write the picture."""
    draw().savefig(CARD, metadata={"Software": None})


if __name__ == "__main__":
    main()
