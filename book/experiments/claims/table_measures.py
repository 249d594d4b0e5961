"""Measurements for Table 1 and Figure 2, where a result may list its test queries (chapter 13)."""

import numpy as np

from experiments.claims import intervals
from experiments.claims.measures import (
    At,
    Measure,
    chosen,
    difference,
    lambda_at,
    pairs,
    values,
)
from experiments.claims.verdicts import Cells, Estimate, MissingCellsError


def per_query(cells: Cells, method: str, at: At, figure: str) -> np.ndarray | None:
    """The listed values ``(runs, queries)`` of one figure, None where the cells do not list it."""
    lam = lambda_at(cells, method, at)
    found = [cell for cell in chosen(cells, method) if cell["lam"] == lam]
    lists = [cell["result"].get(f"{figure}_per_query") for cell in found]
    if not found or any(entry is None for entry in lists):
        return None
    return np.array(lists, float)


def ahead(method: str, other: str, figure: str, at: At = 0.0) -> Measure:
    """A figure of one method minus that of another, at one lambda.

    Over queries and runs where the queries are listed; over seeds otherwise. A method in which
    nothing is drawn has one run, which stands for all.
    """

    def measure(cells: Cells) -> Estimate:
        first, second = (per_query(cells, m, at, figure) for m in (method, other))
        if first is not None and second is not None:
            return intervals.crossed(first, second, lambda a, b: a - b)
        mine, theirs = (values(cells, m, at, figure) for m in (method, other))
        if len(theirs) == 1:
            theirs = dict.fromkeys(mine, next(iter(theirs.values())))
        return difference(*pairs(mine, theirs))

    return measure


def moved(method: str, figure: str) -> Measure:
    """A figure at the last lambda minus the same at the first."""

    def measure(cells: Cells) -> Estimate:
        last, first = (per_query(cells, method, at, figure) for at in ("last", "first"))
        if last is not None and first is not None:
            return intervals.crossed(last, first, lambda a, b: a - b)
        return difference(
            *pairs(values(cells, method, "last", figure), values(cells, method, "first", figure))
        )

    return measure


def left_over(method: str, figure: str) -> Measure:
    """A figure at the last lambda as a share of the first's."""

    def measure(cells: Cells) -> Estimate:
        last, first = (per_query(cells, method, at, figure) for at in ("last", "first"))
        if last is not None and first is not None:
            return intervals.crossed(last, first, lambda a, b: a / b)
        return intervals.ratio(
            *pairs(values(cells, method, "last", figure), values(cells, method, "first", figure))
        )

    return measure


def overlap(method: str, figure: str, relative: bool = False) -> Measure:
    """Test minus training at the lambda where they differ most, over seeds.

    ``relative``: as a share of the training value at the first lambda.
    """

    def measure(cells: Cells) -> Estimate:
        lambdas = sorted({cell["lam"] for cell in chosen(cells, method)})
        unit = 1.0
        if relative:
            start = values(cells, method, "first", f"train_{figure}")
            unit = float(np.mean(list(start.values())))
            if unit == 0.0:
                raise MissingCellsError(f"{figure} of {method} is 0 from the start")
        gaps = []
        for lam in lambdas:
            test, train = (values(cells, method, lam, f"{p}_{figure}") for p in ("test", "train"))
            gaps.append([(a - b) / unit for a, b in zip(*pairs(test, train), strict=True)])
        worst = max(gaps, key=lambda gap: abs(np.mean(gap)))
        return intervals.mean(worst, f"{len(worst)} paired seeds, worst λ")

    return measure
