"""What a check measures on stored cells, each with a 95 % interval (chapter 13).

A `Quantity` is a function of the cells; the functions here make one. Where two settings are
compared the runs are paired by seed, because a seed fixes the data and the start: the difference
has a smaller spread than either number. Where a result lists its test queries and these are the
same for all runs (chapter 10), the interval covers their choice by a bootstrap.

    >>> def cell(lam, seed):
    ...     result = {"d_group": 4.0 - lam}
    ...     return {"experiment": "m", "lam": lam, "seed": seed, "status": "done", "result": result}
    >>> cells = [cell(0.0, 0), cell(0.0, 1), cell(3.0, 0), cell(3.0, 1)]
    >>> remaining("m", "d_group", 3.0)(cells).value
    0.25
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments.cells import Cells, MissingCellsError, Result, by_seed, lams_of, shared_by
from experiments.claims.intervals import crossed, mean, quotient
from experiments.claims.verdicts import Estimate, Quantity
from experiments.protocol import choose_elsewhere

#: A number of a result: its name, or a function of the result.
Figure = str | Callable[[Result], float]
#: A lambda, or which of an experiment's: "first" or "last".
Lam = float | str


class Point(NamedTuple):
    """A number of a stored experiment at one lambda."""

    experiment: str
    figure: Figure
    lam: Lam = 0.0


# Figures


def angle(result: Result) -> float:
    """Direction of (theta1, theta2) in degrees: 45 is theta1 = theta2, 0 ignores x2."""
    return math.degrees(math.atan2(result["theta2"], result["theta1"]))


def length(result: Result) -> float:
    """Length of theta: the shorter, the more random is the policy."""
    return math.hypot(result["theta1"], result["theta2"])


def opposite(result: Result) -> float:
    """The part of the gap that D_group does not count: the group with less merit is ahead."""
    return float(result["group_gap"] - result["d_group"])


def all_gone(result: Result) -> float:
    """1 if no query has disparity on the estimates, else 0."""
    return float(result["unfair_on_estimates"] == 0)


# Quantities


def level(point: Point) -> Quantity:
    """The mean over repetitions."""

    def measure(cells: Cells) -> Estimate:
        numbers = list(values(cells, point).values())
        return mean(numbers, shared=shared_by(cells, point.experiment))

    return measure


def difference(first: Point, second: Point) -> Quantity:
    """One number minus another."""

    def measure(cells: Cells) -> Estimate:
        first_queries = per_query(cells, first)
        second_queries = per_query(cells, second)
        if first_queries is not None and second_queries is not None:
            return crossed(first_queries, second_queries, np.subtract)
        a, b = pairs(values(cells, first), values(cells, second))
        shared = shared_by(cells, first.experiment)
        return mean(a - b, f"{len(a)} paired repetitions", shared=shared)

    return measure


def share(first: Point, second: Point) -> Quantity:
    """One number as a share of another."""

    def measure(cells: Cells) -> Estimate:
        first_queries = per_query(cells, first)
        second_queries = per_query(cells, second)
        if first_queries is not None and second_queries is not None:
            return crossed(first_queries, second_queries, np.divide)
        a, b = pairs(values(cells, first), values(cells, second))
        return quotient(a, b, shared=shared_by(cells, first.experiment))

    return measure


def ahead(experiment: str, other: str, figure: str, lam: float = 0.0) -> Quantity:
    """A figure of one experiment minus that of another, at the same lambda."""
    return difference(Point(experiment, figure, lam), Point(other, figure, lam))


def change(experiment: str, figure: Figure, start: Lam = "first", end: Lam = "last") -> Quantity:
    """How much a number grows from one lambda to another."""
    return difference(Point(experiment, figure, end), Point(experiment, figure, start))


def remaining(experiment: str, figure: Figure, end: Lam = "last") -> Quantity:
    """What is left of a number at a lambda, as a share of what it was at the first."""
    return share(Point(experiment, figure, end), Point(experiment, figure, "first"))


def lowest_remaining(experiment: str, figure: str) -> Quantity:
    """What is left of a number at the lambda above 0 that is best in the other repetitions."""

    def measure(cells: Cells) -> Estimate:
        start = values(cells, Point(experiment, figure, "first"))
        by_lam = []
        for lam in lams_of(cells, experiment):
            if lam > 0:
                by_lam.append(values(cells, Point(experiment, figure, lam)))
        seeds = sorted(set(start).intersection(*by_lam))
        if len(seeds) < 2:
            raise MissingCellsError(f"{experiment} has fewer than two repetitions")
        table = np.array([[row[seed] for row in by_lam] for seed in seeds])
        lowest = -choose_elsewhere(-table)
        first = np.array([start[seed] for seed in seeds])
        return quotient(lowest, first, shared=shared_by(cells, experiment))

    return measure


def removed(point: Point, random_lists: Point, least: Point) -> Quantity:
    """How much of what any ranking can remove is removed, on the way from random lists.

    The mean of (random - point) over that of (random - least).
    """

    def measure(cells: Cells) -> Estimate:
        whole = values(cells, random_lists)
        mine, even = pairs(values(cells, point), whole)
        best, even_again = pairs(values(cells, least), whole)
        return quotient(even - mine, even_again - best)

    return measure


def run_distance(experiment: str, figure: str) -> Quantity:
    """How far a run is from the mean of the other runs at the lambda where it is farthest, as a
    share of what lambda moves.
    """

    def measure(cells: Cells) -> Estimate:
        runs = []
        for lam in lams_of(cells, experiment):
            by_run = values(cells, Point(experiment, figure, lam))
            runs.append([by_run[seed] for seed in sorted(by_run)])
        table = np.array(runs)
        count = table.shape[1]
        if count < 3:
            raise MissingCellsError(f"{experiment} has fewer than three runs")
        others = (table.sum(axis=1, keepdims=True) - table) / (count - 1)
        moved = np.ptp(table.mean(axis=1))
        farthest = np.abs(table - others).max(axis=0) / moved
        return mean(farthest, f"{count} runs")

    return measure


def overlap(experiment: str, figure: str, relative: bool = False) -> Quantity:
    """Test minus training where they differ most; ``relative`` to training at the first lambda."""
    test_figure = f"test_{figure}"
    train_figure = f"train_{figure}"

    def measure(cells: Cells) -> Estimate:
        unit = 1.0
        if relative:
            start = values(cells, Point(experiment, train_figure, "first"))
            unit = float(np.mean(list(start.values())))
        gaps = []
        for lam in lams_of(cells, experiment):
            test, train = pairs(
                values(cells, Point(experiment, test_figure, lam)),
                values(cells, Point(experiment, train_figure, lam)),
            )
            gaps.append((test - train) / unit)
        worst = max(gaps, key=lambda gap: abs(np.mean(gap)))
        shared = shared_by(cells, experiment)
        return mean(worst, f"{len(worst)} paired repetitions, worst λ", shared=shared)

    return measure


# Reading the cells


def values(cells: Cells, point: Point) -> dict[int, float]:
    """The number of a point by seed."""
    figure = point.figure
    numbers = {}
    for seed, result in results_at(cells, point).items():
        numbers[seed] = figure(result) if callable(figure) else result[figure]
    return numbers


def results_at(cells: Cells, point: Point) -> dict[int, Result]:
    """The results of a point by seed."""
    return by_seed(cells, point.experiment, _lam(cells, point))


def _lam(cells: Cells, point: Point) -> float:
    """The lambda that a point names."""
    if not isinstance(point.lam, str):
        return point.lam
    lams = lams_of(cells, point.experiment)
    if point.lam == "first":
        return lams[0]
    if point.lam == "last":
        return lams[-1]
    raise ValueError(f"Point: lam is {point.lam!r}; give a number, 'first' or 'last'.")


def pairs(first: dict[int, float], second: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """The values of the seeds that both have; where nothing is drawn one run stands for all."""
    if len(second) == 1:
        (only,) = second.values()
        second = dict.fromkeys(first, only)
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        raise MissingCellsError("no seed has both settings")
    return np.array([first[seed] for seed in seeds]), np.array([second[seed] for seed in seeds])


def per_query(cells: Cells, point: Point) -> np.ndarray | None:
    """The listed values ``(runs, queries)`` of a point, None where the cells do not list them."""
    lists = []
    for result in results_at(cells, point).values():
        if f"{point.figure}_per_query" not in result:
            return None
        lists.append(result[f"{point.figure}_per_query"])
    return np.array(lists, float)
