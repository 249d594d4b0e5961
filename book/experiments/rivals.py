"""The stored comparison of ways to a gradient: errors for time, and courses of training.

Chapter 8 and appendix A2 read it; ``python -m benchmarks.rivals.errors``, ``.training`` and
``.prices`` made it.
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

STORED = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
EXACT = "exact"
#: What `fairpg_lite.objective.Objective` integrates to while it trains.
TOLERANCE = 1e-5


@cache
def stored(name: str) -> dict[str, Any]:
    """A result file with all that it says of its origin; rows of a table have their keys again."""
    content: dict[str, Any] = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    if "columns" in content:
        content["rows"] = [
            dict(zip(content["columns"], row, strict=True)) for row in content["rows"]
        ]
    return content


# --- Errors for time ---------------------------------------------------------------------------


class Point(NamedTuple):
    """One setting of a way: lists per query, or the tolerance of the exact gradient."""

    setting: float
    error: float
    """Relative error of the gradient."""
    microseconds: float
    """Processor time of one thread per query."""


@cache
def points(objective: str, n: int, spread: float, way: str) -> tuple[Point, ...]:
    """All settings of a way that were timed, quickest first.

    Args:
        objective: "NDCG", "NDCG@10", "NDCG - 10 D_ind" or "NDCG - 10 D_group".
        n: Documents of a query, 10, 24, 100 or 1000.
        spread: How far the scores lie apart, 0, 1, 3, 10 or 20.
        way: Its name in `benchmarks.rivals.ways`, or "exact".

    Returns:
        Empty if this was not measured.
    """
    place = (objective, n, spread, way)
    found = [
        Point(row["setting"], row["error"], row["microseconds"])
        for row in stored("rivals_errors")["rows"]
        if (row["objective"], row["n"], row["spread"], row["way"]) == place
        and row["microseconds"] is not None
    ]
    return tuple(sorted(found, key=lambda point: point.microseconds))


@cache
def sampled_ways(objective: str, n: int) -> tuple[str, ...]:
    """The names of all ways that draw lists and were measured for an objective and a length."""
    rows = stored("rivals_errors")["rows"]
    names = [row["way"] for row in rows if (row["objective"], row["n"]) == (objective, n)]
    return tuple(name for name in dict.fromkeys(names) if name != EXACT)


def error_of(objective: str, n: int, spread: float, way: str, setting: float) -> float:
    """The relative error of one setting."""
    (error,) = (
        row["error"]
        for row in stored("rivals_errors")["rows"]
        if (row["objective"], row["n"], row["spread"], row["way"], row["setting"])
        == (objective, n, spread, way, setting)
    )
    return float(error)


def exact_point(objective: str, n: int, spread: float, tolerance: float = TOLERANCE) -> Point:
    """The exact gradient at a tolerance, by default that of training."""
    (found,) = (
        point for point in points(objective, n, spread, EXACT) if point.setting == tolerance
    )
    return found


def error_at(course: tuple[Point, ...], microseconds: float) -> float:
    """The error of a way that is given a time, between settings on straight lines of logarithms.

    A way whose quickest setting takes longer gets that one all the same; one that could take more
    lists than were tried gets the error of the last, which falls on like one over the root of time.

    Args:
        course: What `points` returns.
        microseconds: The time per query.

    Returns:
        The relative error.
    """
    times = np.log([point.microseconds for point in course])
    errors = np.log([point.error for point in course])
    beyond = max(0.0, math.log(microseconds) - times[-1])
    return float(np.exp(np.interp(math.log(microseconds), times, errors) - 0.5 * beyond))


def lists_in(course: tuple[Point, ...], microseconds: float) -> float:
    """How many lists a way can take in a time, between settings on straight lines of logarithms.

    Args:
        course: What `points` returns.
        microseconds: The time per query.

    Returns:
        At least the fewest that were timed; beyond the most, in proportion to the time.
    """
    times = np.log([point.microseconds for point in course])
    lists = np.log([point.setting for point in course])
    beyond = max(0.0, math.log(microseconds) - times[-1])
    return float(np.exp(np.interp(math.log(microseconds), times, lists) + beyond))


def leads(objective: str, n: int, spread: float, tolerance: float = TOLERANCE) -> dict[str, float]:
    """How many times the error of the exact gradient each sampled way has in the same time.

    Args:
        objective: As for `points`.
        n: Documents of a query.
        spread: How far the scores lie apart.
        tolerance: That of the exact gradient, 1e-3, 1e-5 or 1e-7.

    Returns:
        By way, the smallest first.
    """
    exact = exact_point(objective, n, spread, tolerance)
    found = {}
    for way in sampled_ways(objective, n):
        course = points(objective, n, spread, way)
        if course:
            found[way] = error_at(course, exact.microseconds) / exact.error
    return dict(sorted(found.items(), key=lambda item: item[1]))


# --- Training ----------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """A mean over seeds with its 95 % interval, Student's t."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


def estimate(values: NDArray[np.float64]) -> Estimate:
    """Mean and interval of one value per seed.

    Args:
        values: ``(seeds,)``.

    Returns:
        The mean and its 95 % interval.
    """
    mean = float(values.mean())
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
    return Estimate(mean, mean - half, mean + half)


class Course(NamedTuple):
    """The training of one way at its best rate, one row per seed, one column per look."""

    rate: float
    value: NDArray[np.float64]
    """U - lambda D on test queries."""
    seconds: NDArray[np.float64]
    """Processor time of the updates so far."""
    untuned: NDArray[np.float64]
    """The last value at the rate that nobody chose; empty where it was not tried."""


@cache
def courses(data: str, model: str, fair: bool) -> dict[tuple[str, int], Course]:
    """All trainings of one model, by way and lists per query.

    Args:
        data: "stand-in" or "German Credit".
        model: "linear" or "network".
        fair: Whether the objective has a disparity.

    Returns:
        In the order of the benchmark.
    """
    found = {}
    for cell in stored("rivals_training")["cells"]:
        if (cell["data"], cell["model"], cell["lam"] > 0) == (data, model, fair):
            runs = cell["courses"]
            utility = np.array([run["utility"] for run in runs])
            disparity = np.array([run["disparity"] for run in runs])
            seconds = np.array([run["seconds"] for run in runs])
            value = utility - cell["lam"] * disparity
            course = Course(cell["rate"], value, seconds, np.array(cell["untuned"]))
            found[cell["way"], cell["samples"]] = course
    return found


def target(all_courses: dict[tuple[str, int], Course], share: float = 0.99) -> float:
    """The value that has so large a share of the best way's whole gain, in the means over seeds."""
    start = next(iter(all_courses.values())).value[:, 0].mean()
    best = max(course.value[:, -1].mean() for course in all_courses.values())
    return float(start + share * (best - start))


def seconds_to(course: Course, value: float) -> float:
    """Seconds until the mean over seeds reaches a value, infinite if it does not.

    Args:
        course: A training.
        value: What is to be reached.

    Returns:
        Between two looks by a straight line.
    """
    means = course.value.mean(0)
    spent = np.median(course.seconds, axis=0)
    for k in range(1, len(means)):
        if means[k] >= value:
            share = (value - means[k - 1]) / (means[k] - means[k - 1])
            return float(spent[k - 1] + max(share, 0.0) * (spent[k] - spent[k - 1]))
    return math.inf


def gain(
    data: str, model: str, fair: bool, way: tuple[str, int], over: tuple[str, int]
) -> Estimate:
    """How much higher the last value of one way is than that of another, each at its best rate.

    Args:
        data: As for `courses`.
        model: As for `courses`.
        fair: As for `courses`.
        way: Name and lists per query.
        over: The other one.

    Returns:
        The mean difference over seeds, with its interval; the seeds are paired.
    """
    found = courses(data, model, fair)
    return estimate(found[way].value[:, -1] - found[over].value[:, -1])


def gain_of_tuning(data: str, model: str, fair: bool, way: tuple[str, int]) -> Estimate:
    """How much higher the last value is at the chosen rate than at the one that nobody chose."""
    found = courses(data, model, fair)[way]
    return estimate(found.value[:, -1] - found.untuned)
