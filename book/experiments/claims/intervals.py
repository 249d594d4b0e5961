"""95 % intervals for a mean, a ratio, a spread, and for runs crossed with queries (chapter 13)."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from experiments.claims.verdicts import Estimate
from fairpg_lite._extras import require

DRAWS = 4000


def mean(values: Sequence[float], over: str = "") -> Estimate:
    """The mean with Student's interval; no interval for one value.

    >>> found = mean([1.0, 2.0, 3.0])
    >>> round(found.low, 3), found.value, round(found.high, 3), found.over
    (-0.484, 2.0, 4.484, '3 seeds')
    """
    array = np.asarray(values, float)
    half = _student(len(array)) * _error(array)
    return Estimate(
        float(array.mean()), float(array.mean() - half), float(array.mean() + half),
        over or f"{len(array)} seeds",
    )  # fmt: skip


def ratio(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """mean(above) / mean(below) of paired values, its interval by linearisation.

    The error of r = a/b is that of the mean of (a_i - r b_i) / b, again with Student's t.
    """
    a, b = np.asarray(above, float), np.asarray(below, float)
    r = a.mean() / b.mean()
    half = _student(len(a)) * _error((a - r * b) / b.mean())
    return Estimate(float(r), float(r - half), float(r + half), f"{len(a)} paired seeds")


def spread(values: Sequence[float], unit: float) -> Estimate:
    """The standard deviation in units of ``unit``, its interval from the chi-squared law."""
    array = np.asarray(values, float)
    n = len(array)
    if n < 2:
        raise ValueError(f"spread: {n} values have no spread; give two or more.")
    deviation = float(array.std(ddof=1)) / unit
    chi2 = require("scipy.stats", "experiments").chi2
    low, high = (deviation * math.sqrt((n - 1) / chi2.ppf(q, n - 1)) for q in (0.975, 0.025))
    return Estimate(deviation, low, high, f"{n} seeds")


def crossed(
    first: np.ndarray, second: np.ndarray, statistic: Callable[[float, float], float]
) -> Estimate:
    """``statistic(mean first, mean second)`` of two ``(runs, queries)`` tables with equal queries.

    The interval is a bootstrap that draws queries anew, the same for both, and runs anew. So it
    covers the choice of test queries, which an interval over seeds leaves out. Runs are paired if
    both tables have as many.
    """
    rng = np.random.default_rng(0)
    (runs, queries), other = first.shape, len(second)

    def draw(count: int) -> np.ndarray:
        """How often each of ``count`` things is drawn, as shares: ``(DRAWS, count)``."""
        return rng.multinomial(count, np.full(count, 1 / count), DRAWS) / count

    columns, rows = draw(queries), draw(runs)
    rows_2 = rows if other == runs else draw(other)
    means = [((r @ table) * columns).sum(1) for r, table in ((rows, first), (rows_2, second))]
    drawn = [statistic(a, b) for a, b in zip(*means, strict=True)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    value = statistic(float(first.mean()), float(second.mean()))
    over = f"{queries} queries × {runs} seeds, bootstrap"
    return Estimate(value, float(low), float(high), over)


def _error(array: np.ndarray) -> float:
    return float(array.std(ddof=1)) / math.sqrt(len(array)) if len(array) > 1 else math.nan


def _student(n: int) -> float:
    if n < 2:
        return math.nan
    return float(require("scipy.stats", "experiments").t.ppf(0.975, n - 1))
