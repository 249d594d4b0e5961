"""Measurements on stored cells, each with a 95 % interval (chapter 13).

A measurement is a function of the cells. Where two settings are compared the runs are paired by
seed, because a seed fixes the data and the start: the difference has a smaller spread than either
number. Where a result lists its test queries, the interval covers their choice as well.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from experiments.claims.verdicts import Estimate
from experiments.mixtures import heated, lottery
from experiments.summary import Cells, MissingCellsError, by_seed, over_seeds

Measure = Callable[[Cells], Estimate]
#: A number of a result: its name, or a function of the result.
Figure = str | Callable[[Mapping[str, Any]], float]
BySeed = dict[int, float]
DRAWS = 4000


class Point(NamedTuple):
    """A number of a stored method at one lambda: a value, "first", "last", "lowest" (above 0)."""

    method: str
    figure: Figure
    at: float | str = 0.0


def chosen(cells: Cells, method: str) -> list[Mapping[str, Any]]:
    """The finished cells of a stored method."""
    found = [c for c in cells if c["method"] == method and c["status"] == "done"]
    if not found:
        raise MissingCellsError(f"no cells of {method}")
    return found


def lambdas(cells: Cells, method: str) -> list[float]:
    return sorted({cell["lam"] for cell in chosen(cells, method)})


def at_point(cells: Cells, point: Point) -> dict[int, Mapping[str, Any]]:
    """The results of a point by seed."""
    lam = point.at
    if lam == "lowest":
        above = [lam for lam in lambdas(cells, point.method) if lam > 0]
        lam = min(above, key=lambda lam: np.mean([*values(cells, point._replace(at=lam)).values()]))
    elif isinstance(lam, str):
        lam = lambdas(cells, point.method)[{"first": 0, "last": -1}[lam]]
    return by_seed(cells, point.method, lam)


def values(cells: Cells, point: Point) -> BySeed:
    """The number by seed."""
    figure, found = point.figure, at_point(cells, point)
    return {seed: figure(r) if callable(figure) else r[figure] for seed, r in found.items()}


def pairs(first: BySeed, second: BySeed) -> tuple[np.ndarray, np.ndarray]:
    """The values of the seeds that both have; where nothing is drawn one run stands for all."""
    if len(second) == 1:
        second = dict.fromkeys(first, *second.values())
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        raise MissingCellsError("no seed has both settings")
    return np.array([first[s] for s in seeds]), np.array([second[s] for s in seeds])


def per_query(cells: Cells, point: Point) -> np.ndarray | None:
    """The listed values ``(runs, queries)`` of a point, None where the cells do not list them."""
    lists = [r.get(f"{point.figure}_per_query") for r in at_point(cells, point).values()]
    return None if None in lists else np.array(lists, float)


def angle(result: Mapping[str, Any]) -> float:
    """Direction of (theta1, theta2) in degrees: 45 is theta1 = theta2, 0 ignores x2."""
    return math.degrees(math.atan2(result["theta2"], result["theta1"]))


def length(result: Mapping[str, Any]) -> float:
    """Length of theta: the shorter, the more random is the policy."""
    return math.hypot(result["theta1"], result["theta2"])


def opposite(result: Mapping[str, Any]) -> float:
    """The part of the gap that D_group does not count: the group with less merit is ahead."""
    return float(result["group_gap"] - result["d_group"])


# Measurements


def measurement(function: Callable[..., Estimate]) -> Callable[..., Measure]:
    """What is written as ``level(cells, point)`` is called as ``level(point)(cells)``."""
    return lambda *args, **how: lambda cells: function(cells, *args, **how)


@measurement
def level(cells: Cells, point: Point) -> Estimate:
    """The mean over seeds."""
    return mean(list(values(cells, point).values()))


@measurement
def minus(cells: Cells, first: Point, second: Point, ratio: bool = False) -> Estimate:
    """One number minus another, or with ``ratio`` as a share of it."""
    listed = per_query(cells, first), per_query(cells, second)
    if listed[0] is not None and listed[1] is not None:
        return crossed(listed[0], listed[1], np.divide if ratio else np.subtract)
    a, b = pairs(values(cells, first), values(cells, second))
    return quotient(a, b) if ratio else mean(a - b, f"{len(a)} paired seeds")


def ahead(method: str, other: str, figure: str, at: float = 0.0) -> Measure:
    """A figure of one method minus that of another."""
    return minus(Point(method, figure, at), Point(other, figure, at))


def change(method: str, figure: Figure, start: Any = "first", end: Any = "last") -> Measure:
    """How much a number grows from one lambda to another."""
    return minus(Point(method, figure, end), Point(method, figure, start))


def remaining(method: str, figure: Figure, end: Any = "last") -> Measure:
    """What is left of a number at a lambda, as a share of what it was at the first."""
    return minus(Point(method, figure, end), Point(method, figure, "first"), ratio=True)


@measurement
def extreme(cells: Cells, point: Point, pick: Callable[..., float] = min) -> Estimate:
    """The lowest or highest of all seeds: a fact about the runs, with nothing left to estimate."""
    found = values(cells, point).values()
    top = pick(found)
    return Estimate(top, top, top, f"{pick.__name__} of {len(found)} seeds")


@measurement
def run_spread(cells: Cells, method: str, figure: str) -> Estimate:
    """The standard deviation over runs at the worst lambda, as a share of what lambda moves."""
    points = [Point(method, figure, lam) for lam in lambdas(cells, method)]
    found = [list(values(cells, point).values()) for point in points]
    if min(map(len, found)) < 2:
        raise MissingCellsError(f"{method} has one seed at some lambda")
    means = [float(np.mean(v)) for v in found]
    return spread(max(found, key=np.std), max(means) - min(means))


@measurement
def overlap(cells: Cells, method: str, figure: str, relative: bool = False) -> Estimate:
    """Test minus training where they differ most; ``relative`` to training at the first lambda."""
    start = values(cells, Point(method, f"train_{figure}", "first"))
    unit = float(np.mean(list(start.values()))) if relative else 1.0
    gaps = []
    for lam in lambdas(cells, method):
        parts = (values(cells, Point(method, f"{p}_{figure}", lam)) for p in ("test", "train"))
        test, train = pairs(*parts)
        gaps.append((test - train) / unit)
    worst = max(gaps, key=lambda gap: abs(np.mean(gap)))
    return mean(worst, f"{len(worst)} paired seeds, worst λ")


# At equal disparity


class Curve(NamedTuple):
    """What a method can do: its policies for the lambdas in ``(above, upto]``, each in a lottery
    or ``heated``; ``prefix`` "sorted_" takes its most probable ranking.
    """

    method: str
    prefix: str = ""
    above: float = -1.0
    upto: float = math.inf
    heated: bool = False


def lines(cells: Cells, curve: Curve, uniform: str) -> dict[int, list[np.ndarray]]:
    """For each seed the lines of a curve, NDCG and D_group ``(2, steps)`` each."""
    even = values(cells, Point(uniform, "ndcg"))
    alone = next(iter(even.values())) if len(even) == 1 else None  # fixed queries: stored once
    found: dict[int, list[np.ndarray]] = {}
    for cell in chosen(cells, curve.method):
        random, result = even.get(cell["seed"], alone), cell["result"]
        if random is None or not curve.above < cell["lam"] <= curve.upto:
            continue
        line = heated(result) if curve.heated else lottery(result, random, curve.prefix)
        found.setdefault(cell["seed"], []).append(line)
    return found


def best(found: Sequence[np.ndarray], most: float) -> float:
    """The highest NDCG of some lines at a disparity of at most ``most``."""
    return max(float(np.interp(most, d[::-1], ndcg[::-1])) for ndcg, d in found)


@measurement
def lead(
    cells: Cells, mine: Curve, theirs: Curve, uniform: str, part: float | None = 0.5
) -> Estimate:
    """NDCG of one curve minus that of another, both at a part of the first method's D_group at
    lambda 0, or with ``part=None`` at the lowest that the other reaches without random lists.
    """
    start = values(cells, Point(mine.method, f"{mine.prefix}d_group", "first"))
    own, other = lines(cells, mine, uniform), lines(cells, theirs, uniform)
    found = []
    for seed in sorted(start.keys() & own.keys() & other.keys()):
        lowest = min(d[0] for _, d in other[seed])
        most = lowest if part is None else part * start[seed]
        found.append(best(own[seed], most) - best(other[seed], most))
    if not found:
        raise MissingCellsError(f"no seed has {mine.method}, {theirs.method} and {uniform}")
    return mean(found, f"{len(found)} paired seeds")


# Intervals


def mean(numbers: Sequence[float] | np.ndarray, over: str = "") -> Estimate:
    """The mean with Student's interval; no interval for one value."""
    centre, _, half = over_seeds(numbers)
    return Estimate(centre, centre - half, centre + half, over or f"{len(numbers)} seeds")


def quotient(above: np.ndarray, below: np.ndarray) -> Estimate:
    """r = a / b of the means of paired values; its error is that of the mean of (aᵢ - r bᵢ) / b."""
    r = above.mean() / below.mean()
    return mean(r + (above - r * below) / below.mean(), f"{len(above)} paired seeds")


def spread(numbers: Sequence[float], unit: float) -> Estimate:
    """The standard deviation in units of ``unit``, its interval from the chi-squared law."""
    n, deviation = len(numbers), float(np.std(numbers, ddof=1)) / unit
    low, high = (deviation * math.sqrt((n - 1) / chi2.ppf(q, n - 1)) for q in (0.975, 0.025))
    return Estimate(deviation, low, high, f"{n} seeds")


def crossed(first: np.ndarray, second: np.ndarray, statistic: Callable[..., Any]) -> Estimate:
    """``statistic(mean first, mean second)`` of two ``(runs, queries)`` tables with equal queries.

    A bootstrap draws queries anew, the same for both, and runs, paired if both have as many.
    """
    rng = np.random.default_rng(0)
    (runs, queries), other = first.shape, len(second)

    def draw(count: int) -> np.ndarray:
        """How often each of ``count`` things is drawn, as shares: ``(DRAWS, count)``."""
        return rng.multinomial(count, np.full(count, 1 / count), DRAWS) / count

    columns, rows = draw(queries), draw(runs)
    rows_2 = rows if other == runs else draw(other)
    means = [((r @ table) * columns).sum(1) for r, table in ((rows, first), (rows_2, second))]
    low, high = np.quantile(statistic(*means), [0.025, 0.975])
    value = float(statistic(first.mean(), second.mean()))
    over = f"{queries} queries × {runs} seeds, bootstrap"
    return Estimate(value, float(low), float(high), over)
