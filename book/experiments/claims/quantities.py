"""What a check measures on stored cells, each with a 95 % interval (chapter 13).

A `Quantity` is a function of the cells; the functions here make one. Where two settings are
compared the runs are paired by seed, because a seed fixes the data and the start: the difference
has a smaller spread than either number. Where a result lists its test queries, the interval covers
their choice as well.

    >>> def cell(lam, seed):
    ...     result = {"d_group": 4.0 - lam}
    ...     return {"experiment": "m", "lam": lam, "seed": seed, "status": "done", "result": result}
    >>> cells = [cell(0.0, 0), cell(0.0, 1), cell(3.0, 0), cell(3.0, 1)]
    >>> remaining("m", "d_group", 3.0)(cells)
    Estimate(value=0.25, low=0.25, high=0.25, over='2 paired seeds')
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments.cells import Cells, MissingCellsError, Result, by_seed, lams_of
from experiments.claims.intervals import crossed, mean, quotient, spread
from experiments.claims.verdicts import Estimate, Quantity

#: A number of a result: its name, or a function of the result.
Figure = str | Callable[[Result], float]
#: A lambda, or which of an experiment's: "first", "last", or "lowest", the one above 0 at which the
#: mean of the figure is lowest.
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


# Quantities


def level(point: Point) -> Quantity:
    """The mean over seeds."""

    def measure(cells: Cells) -> Estimate:
        return mean(list(values(cells, point).values()))

    return measure


def difference(first: Point, second: Point) -> Quantity:
    """One number minus another."""

    def measure(cells: Cells) -> Estimate:
        first_queries = per_query(cells, first)
        second_queries = per_query(cells, second)
        if first_queries is not None and second_queries is not None:
            return crossed(first_queries, second_queries, np.subtract)
        a, b = pairs(values(cells, first), values(cells, second))
        return mean(a - b, f"{len(a)} paired seeds")

    return measure


def share(first: Point, second: Point) -> Quantity:
    """One number as a share of another."""

    def measure(cells: Cells) -> Estimate:
        first_queries = per_query(cells, first)
        second_queries = per_query(cells, second)
        if first_queries is not None and second_queries is not None:
            return crossed(first_queries, second_queries, np.divide)
        return quotient(*pairs(values(cells, first), values(cells, second)))

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


def lowest_seed(point: Point) -> Quantity:
    """The lowest of all seeds: a fact about the runs, with nothing left to estimate."""

    def measure(cells: Cells) -> Estimate:
        numbers = values(cells, point).values()
        lowest = min(numbers)
        return Estimate(lowest, lowest, lowest, f"min of {len(numbers)} seeds")

    return measure


def highest_seed(point: Point) -> Quantity:
    """The highest of all seeds."""

    def measure(cells: Cells) -> Estimate:
        numbers = values(cells, point).values()
        highest = max(numbers)
        return Estimate(highest, highest, highest, f"max of {len(numbers)} seeds")

    return measure


def run_spread(experiment: str, figure: str) -> Quantity:
    """The standard deviation over runs at the worst lambda, as a share of what lambda moves."""

    def measure(cells: Cells) -> Estimate:
        runs = []
        for lam in lams_of(cells, experiment):
            runs.append(list(values(cells, Point(experiment, figure, lam)).values()))
        if min(len(numbers) for numbers in runs) < 2:
            raise MissingCellsError(f"{experiment} has one seed at some lambda")
        means = [float(np.mean(numbers)) for numbers in runs]
        return spread(max(runs, key=np.std), max(means) - min(means))

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
        return mean(worst, f"{len(worst)} paired seeds, worst λ")

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
    if point.lam == "lowest":
        means = {}
        for lam in lams:
            if lam > 0:
                means[lam] = np.mean(list(values(cells, point._replace(lam=lam)).values()))
        return min(means, key=lambda lam: means[lam])
    raise ValueError(f"Point: lam is {point.lam!r}; give a number, 'first', 'last' or 'lowest'.")


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
