"""NDCG at equal disparity: what methods can do when each may choose its lambda and draw lots."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.cells import Cells, MissingCellsError, of_experiment
from experiments.claims.intervals import mean
from experiments.claims.quantities import Point, values
from experiments.claims.verdicts import Estimate, Quantity
from experiments.mixtures import heated, lottery


class Curve(NamedTuple):
    """What a method can do: its policies at some lambdas, each in a lottery or heated."""

    experiment: str
    """Its stored name."""
    prefix: str = ""
    """"sorted_" takes its most probable ranking."""
    above: float = -1.0
    """Lambdas above this,"""
    upto: float = math.inf
    """and at most this."""
    heated: bool = False
    """Whether its scores are divided by temperatures, instead of a lottery."""


def lead(mine: Curve, theirs: Curve, uniform: str, part: float | None = 0.5) -> Quantity:
    """NDCG of one curve minus that of another at equal D_group.

    Args:
        mine: The curve that leads if the number is above 0.
        theirs: The other.
        uniform: The stored name of the uniform policy on the same data, for the lotteries.
        part: At this part of the first experiment's D_group at its first lambda. None: at the
            lowest that the other reaches without random lists.

    Returns:
        The quantity; its interval is over paired seeds.
    """

    def measure(cells: Cells) -> Estimate:
        start = values(cells, Point(mine.experiment, f"{mine.prefix}d_group", "first"))
        my_lines = lines(cells, mine, uniform)
        their_lines = lines(cells, theirs, uniform)
        leads = []
        for seed in sorted(start.keys() & my_lines.keys() & their_lines.keys()):
            if part is None:
                budget = min(d_group[0] for _, d_group in their_lines[seed])
            else:
                budget = part * start[seed]
            leads.append(best(my_lines[seed], budget) - best(their_lines[seed], budget))
        if not leads:
            raise MissingCellsError(
                f"no seed has {mine.experiment}, {theirs.experiment} and {uniform}"
            )
        return mean(leads, f"{len(leads)} paired seeds")

    return measure


def lines(cells: Cells, curve: Curve, uniform: str) -> dict[int, list[np.ndarray]]:
    """For each seed the lines of a curve, NDCG and D_group ``(2, steps)`` each."""
    uniform_ndcg = values(cells, Point(uniform, "ndcg"))
    stored_once = len(uniform_ndcg) == 1  # as on fixed queries
    lines_of: dict[int, list[np.ndarray]] = {}
    for cell in of_experiment(cells, curve.experiment):
        if not curve.above < cell["lam"] <= curve.upto:
            continue
        seed = cell["seed"]
        if stored_once:
            (even,) = uniform_ndcg.values()
        elif seed in uniform_ndcg:
            even = uniform_ndcg[seed]
        else:
            continue
        if curve.heated:
            line = heated(cell["result"])
        else:
            line = lottery(cell["result"], even, curve.prefix)
        lines_of.setdefault(seed, []).append(line)
    return lines_of


def best(lines: Sequence[np.ndarray], budget: float) -> float:
    """The highest NDCG of some lines at a D_group of at most ``budget``."""
    return max(float(np.interp(budget, d_group[::-1], ndcg[::-1])) for ndcg, d_group in lines)
