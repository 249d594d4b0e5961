"""Measurements on stored cells: functions that return a function of the cells (chapter 13).

Where two settings are compared the runs are paired by seed, because a seed fixes the data and the
start: the difference has a smaller spread than either number.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.claims import intervals
from experiments.claims.verdicts import Cells, Estimate, MissingCellsError

Measure = Callable[[Cells], Estimate]
#: A number of a result: its name, or a function of the result.
Figure = str | Callable[[Mapping[str, Any]], float]
#: A lambda: its value, or its place among those stored.
At = float | str
BySeed = dict[int, float]


def chosen(cells: Cells, method: str) -> list[Mapping[str, Any]]:
    """The finished cells of a stored method name."""
    found = [c for c in cells if c["method"] == method and c["status"] == "done"]
    if not found:
        raise MissingCellsError(f"no cells of {method}")
    return found


def lambda_at(cells: Cells, method: str, at: At) -> float:
    """The first, middle or last lambda of a method, or the number given."""
    if isinstance(at, float):
        return at
    lambdas = sorted({cell["lam"] for cell in chosen(cells, method)})
    return float(lambdas[{"first": 0, "middle": len(lambdas) // 2, "last": -1}[at]])


def values(cells: Cells, method: str, at: At, figure: Figure) -> BySeed:
    """One number of a method at one lambda, by seed."""
    lam = lambda_at(cells, method, at)
    found = [cell for cell in chosen(cells, method) if cell["lam"] == lam]
    if not found:
        raise MissingCellsError(f"no cells of {method} at λ = {lam:g}")
    return {cell["seed"]: read(cell["result"], figure) for cell in found}


def read(result: Mapping[str, Any], figure: Figure) -> float:
    if callable(figure):
        return figure(result)
    if figure not in result:
        raise MissingCellsError(f"no figure {figure} in the results")
    return float(result[figure])


def pairs(first: BySeed, second: BySeed) -> tuple[list[float], list[float]]:
    """The values of the seeds that both have."""
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        raise MissingCellsError("no seed has both settings")
    return [first[s] for s in seeds], [second[s] for s in seeds]


def angle(result: Mapping[str, Any]) -> float:
    """Direction of (theta1, theta2) in degrees: 45 is theta1 = theta2, 0 ignores x2."""
    return math.degrees(math.atan2(result["theta2"], result["theta1"]))


def length(result: Mapping[str, Any]) -> float:
    """Length of theta: the shorter, the more random is the policy."""
    return math.hypot(result["theta1"], result["theta2"])


def level(method: str, figure: Figure, at: At) -> Measure:
    """The mean of one number over seeds."""
    return lambda cells: intervals.mean(list(values(cells, method, at, figure).values()))


def largest(method: str, figure: str, at: At) -> Measure:
    """The largest of all seeds: a fact about the stored runs, with nothing left to estimate."""

    def measure(cells: Cells) -> Estimate:
        found = values(cells, method, at, figure)
        top = max(found.values())
        return Estimate(top, top, top, f"largest of {len(found)} seeds")

    return measure


def change(method: str, figure: Figure, start: At = "first", end: At = "last") -> Measure:
    """How much a number grows from one lambda to another, within each seed."""

    def measure(cells: Cells) -> Estimate:
        before, after = pairs(
            values(cells, method, start, figure), values(cells, method, end, figure)
        )
        return difference(after, before)

    return measure


def between(method: str, figure: Figure, other: Figure, at: At) -> Measure:
    """One number minus another of the same runs."""

    def measure(cells: Cells) -> Estimate:
        return difference(
            *pairs(values(cells, method, at, figure), values(cells, method, at, other))
        )

    return measure


def difference(first: Sequence[float], second: Sequence[float]) -> Estimate:
    found = [a - b for a, b in zip(first, second, strict=True)]
    return intervals.mean(found, f"{len(found)} paired seeds")


def remaining(method: str, figure: str, end: At = "last", start: At = "first") -> Measure:
    """What is left of a number at a lambda, as a share of what it was at another.

    ``end="lowest"`` takes the lambda with the lowest mean: the best a method can do.
    """

    def measure(cells: Cells) -> Estimate:
        at = lowest(cells, method, figure) if end == "lowest" else end
        after, before = pairs(
            values(cells, method, at, figure), values(cells, method, start, figure)
        )
        if sum(before) == 0.0:
            raise MissingCellsError(f"{figure} of {method} is 0 from the start")
        return intervals.ratio(after, before)

    return measure


def lowest(cells: Cells, method: str, figure: str) -> float:
    """The lambda at which the mean of a number over seeds is lowest."""
    lambdas = {cell["lam"] for cell in chosen(cells, method)}
    mean = {lam: np.mean(list(values(cells, method, lam, figure).values())) for lam in lambdas}
    return float(min(sorted(lambdas), key=lambda lam: mean[lam]))


def budget(points: Sequence[tuple[float, float]], most: float) -> float:
    """The best NDCG with a disparity of at most ``most``, from points (disparity, NDCG).

    Showing the lists of one policy or another by a coin gives every point between two points: NDCG
    is linear in exposure, and the disparity convex, so the chord is attained or surpassed.

    >>> budget([(0.0, 0.8), (0.2, 1.0)], 0.1)
    0.9
    """
    below = [(d, u) for d, u in points if d <= most]
    above = [(d, u) for d, u in points if d > most]
    if not below:
        raise MissingCellsError(f"no policy has a disparity of {most:.4g} or less")
    mixed = [u + (most - d) / (e - d) * (w - u) for d, u in below for e, w in above]
    return max([u for _, u in below] + mixed)


def curve_of(
    cells: Cells, method: str, seed: int, prefix: str = "", above: float = -1.0
) -> list[tuple[float, float]]:
    """The points (D_group, NDCG) of one seed, one for each lambda that is large enough."""
    return [
        (cell["result"][f"{prefix}d_group"], cell["result"][f"{prefix}ndcg"])
        for cell in chosen(cells, method)
        if cell["seed"] == seed and cell["lam"] > above
    ]


def advantage_over_chance(method: str, uniform: str, share: float = 0.5) -> Measure:
    """NDCG at a share of the first lambda's D_group, minus what random lists would have left.

    The other way to that disparity needs no learning: show the unfair policy's lists or, now and
    then, a list drawn at random. Its NDCG is read off the chord; the true mixture may have less
    disparity than the chord says, so the comparison favours the method. The method must get there
    with a lambda above zero: otherwise it could not lose.
    """

    def measure(cells: Cells) -> Estimate:
        start = values(cells, method, "first", "d_group")
        useful = values(cells, method, "first", "ndcg")
        chance = values(cells, uniform, 0.0, "ndcg")
        # On fixed queries the uniform policy is the same for all seeds and stored once.
        alone = next(iter(chance.values())) if len(chance) == 1 else math.nan
        found = []
        for seed in sorted(start):
            random = chance.get(seed, alone)
            points = [*curve_of(cells, method, seed, above=0.0), (0.0, random)]
            mixed = random + share * (useful[seed] - random)
            found.append(budget(points, share * start[seed]) - mixed)
        return intervals.mean(found)

    return measure


def lead(
    method: str, uniform: str, other: str, prefix: str = "", share: float | None = 0.5
) -> Measure:
    """NDCG of ``method`` minus that of ``other``, both at the same D_group.

    The disparity is a share of the first method's at its first lambda, or with ``share=None`` the
    lowest that the other one reaches. Either may choose its lambda and mix in random lists;
    ``prefix`` "sorted_" judges the other by its most probable ranking.
    """

    def measure(cells: Cells) -> Estimate:
        start = values(cells, method, "first", "d_group")
        chance = values(cells, uniform, 0.0, "ndcg")
        found = []
        for seed in sorted(start.keys() & chance.keys()):
            mine, theirs = curve_of(cells, method, seed), curve_of(cells, other, seed, prefix)
            if theirs:
                most = min(theirs)[0] if share is None else share * start[seed]
                random = (0.0, chance[seed])
                found.append(budget([*mine, random], most) - budget([*theirs, random], most))
        if not found:
            raise MissingCellsError(f"no seed has {method}, {other} and {uniform}")
        return intervals.mean(found, f"{len(found)} paired seeds")

    return measure


def wobble(method: str, figure: str) -> Measure:
    """The spread over runs at the worst lambda, as a share of what lambda moves."""

    def measure(cells: Cells) -> Estimate:
        lambdas = sorted({cell["lam"] for cell in chosen(cells, method)})
        found = [list(values(cells, method, lam, figure).values()) for lam in lambdas]
        if min(map(len, found)) < 2:
            raise MissingCellsError(f"{method} has one seed at some lambda")
        means = [float(np.mean(v)) for v in found]
        return intervals.spread(max(found, key=np.std), max(means) - min(means))

    return measure
