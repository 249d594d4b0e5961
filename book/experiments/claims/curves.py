"""NDCG at equal disparity, on the terms of `experiments.protocol`, the same for every method."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.cells import Cells, MissingCellsError, Result, of_experiment, shared_by
from experiments.claims.intervals import mean
from experiments.claims.quantities import Point, values
from experiments.claims.verdicts import Estimate, Quantity
from experiments.mixtures import best_within, heated, lottery
from experiments.protocol import choose_elsewhere

#: The forms in which a model may be used; those that need scores are left out for a programme.
FORMS = ("policy", "sorted", "temperature")
#: What a form counts that cannot be brought to a disparity at all.
OUT_OF_REACH = -1000.0


class Curve(NamedTuple):
    """A method that may choose among its lambdas and forms."""

    experiment: str
    """Its stored name."""
    above: float = -1.0
    """Lambdas above this,"""
    upto: float = math.inf
    """and at most this."""
    forms: tuple[str, ...] = FORMS
    """The forms that it may choose from."""


def lead(
    mine: Curve,
    theirs: Curve,
    uniform: str,
    part: float = 0.5,
    reference: Point | None = None,
) -> Quantity:
    """NDCG of one method minus that of another at equal D_group.

    Args:
        mine: The method that leads if the number is above 0.
        theirs: The other.
        uniform: The stored name of the uniform policy on the same data, for the mixtures.
        part: At this part of the reference's D_group.
        reference: Whose D_group; None is the policy of the first method at lambda 0.

    Returns:
        The quantity; its interval is over paired repetitions.
    """
    start = reference or Point(mine.experiment, "d_group", 0.0)

    def measure(cells: Cells) -> Estimate:
        budgets = {}
        for seed, d_group in values(cells, start).items():
            budgets[seed] = part * d_group
        my_table = table_at(cells, mine, uniform, budgets)
        their_table = table_at(cells, theirs, uniform, budgets)
        seeds = sorted(my_table.keys() & their_table.keys())
        if len(seeds) < 2:
            raise MissingCellsError(
                f"fewer than two repetitions have {mine.experiment}, {theirs.experiment} "
                f"and {uniform}"
            )
        reached = []
        for table in (my_table, their_table):
            reached.append(choose_elsewhere(np.array([table[seed] for seed in seeds])))
        shared = shared_by(cells, mine.experiment)
        over = f"{len(seeds)} paired repetitions"
        return mean(reached[0] - reached[1], over, shared=shared)

    return measure


def table_at(
    cells: Cells, curve: Curve, uniform: str, budgets: dict[int, float]
) -> dict[int, list[float]]:
    """NDCG at each seed's budget, one number for each lambda and form, in the same order."""
    uniform_ndcg = values(cells, Point(uniform, "ndcg"))
    rows: dict[int, list[float]] = {}
    for cell in sorted(of_experiment(cells, curve.experiment), key=lambda cell: cell["lam"]):
        seed = cell["seed"]
        if not curve.above < cell["lam"] <= curve.upto:
            continue
        if seed not in uniform_ndcg or seed not in budgets:
            continue
        for form in curve.forms:
            line = line_of(cell["result"], form, uniform_ndcg[seed])
            if line is not None:
                reached = best_within(line, budgets[seed])
                rows.setdefault(seed, []).append(max(reached, OUT_OF_REACH))
    longest = max((len(row) for row in rows.values()), default=0)
    return {seed: row for seed, row in rows.items() if len(row) == longest}


def line_of(result: Result, form: str, uniform_ndcg: float) -> np.ndarray | None:
    """NDCG and D_group ``(2, steps)`` of a run in one form; None where it has no such form."""
    if form == "temperature":
        return heated(result) if "temperature_ndcg" in result else None
    prefix = "sorted_" if form == "sorted" else ""
    if f"{prefix}lottery_d_group" not in result:
        return None
    return lottery(result, uniform_ndcg, prefix)


def ndcg_at(cells: Cells, curve: Curve, uniform: str, budgets: dict[int, float]) -> np.ndarray:
    """What a method reaches ``(J,)`` at each seed's budget, its setting chosen elsewhere."""
    table = table_at(cells, curve, uniform, budgets)
    return choose_elsewhere(np.array([table[seed] for seed in sorted(table)]))


def choice(cells: Cells, curve: Curve, uniform: str, budgets: dict[int, float]) -> str:
    """The lambda and form with the highest mean over all repetitions, in words."""
    table = table_at(cells, curve, uniform, budgets)
    best = int(np.argmax(np.mean(list(table.values()), axis=0)))
    names: list[str] = []
    for lam, forms in _settings(cells, curve):
        names += [f"λ = {lam:g}, {form}" for form in forms]
    return names[best]


def _settings(cells: Cells, curve: Curve) -> Sequence[tuple[float, list[str]]]:
    """The lambdas of a curve and the forms that its runs have, in the order of `table_at`."""
    found: dict[float, list[str]] = {}
    for cell in sorted(of_experiment(cells, curve.experiment), key=lambda cell: cell["lam"]):
        if curve.above < cell["lam"] <= curve.upto:
            forms = [f for f in curve.forms if line_of(cell["result"], f, 0.0) is not None]
            found[cell["lam"]] = forms
    return list(found.items())
