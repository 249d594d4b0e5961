"""Three documents: the plane of their exposures and its hexagon of lists (chapters 3, 5 and 7).

The total exposure is the same for every policy, so the exposures of three documents lie in a plane.
More for document 1 points up, for 2 down to the right, for 3 down to the left, everywhere.
"""

import itertools
from typing import Any

import torch
from torch import Tensor

from fairpg_lite import position_bias
from fairpg_lite.figures import PALETTE

LISTS = torch.tensor(list(itertools.permutations(range(3))))
AXES = torch.tensor([[0.0, 1.0], [3**0.5 / 2, -0.5], [-(3**0.5) / 2, -0.5]], dtype=torch.float64)


def corners() -> Tensor:
    """Exposure that each of the six lists hands out ``(6, 3)``."""
    return position_bias(3, dtype=torch.float64)[LISTS.argsort(-1)]


def flat(exposure: Tensor) -> Tensor:
    """Exposures ``(..., 3)`` as points of the plane ``(..., 2)``."""
    return exposure.double() @ AXES


def draw_hexagon(ax: Any, notes: list[str] | None = None, spread: float = 1.5) -> None:
    """The outline of the hexagon and the names of its corners.

    Args:
        ax: Matplotlib axes to draw on.
        notes: A line below the name of each corner, in the order of `LISTS`.
        spread: How far out a name stands, as a multiple of its corner's distance.
    """
    points = flat(corners())
    around = torch.atan2(points[:, 1], points[:, 0]).argsort()
    ax.fill(*points[around].T, facecolor="none", edgecolor=PALETTE["grey"], lw=1)
    for index, (ranking, point) in enumerate(zip(LISTS, points, strict=True)):
        name = "".join(str(document + 1) for document in ranking.tolist())
        if notes:
            name += f"\n{notes[index]}"
        ax.text(*(spread * point), name, ha="center", va="center", fontsize=9)
    ax.set(aspect="equal", xlim=(-0.75, 0.75), ylim=(-0.65, 0.86))
    ax.set_axis_off()
