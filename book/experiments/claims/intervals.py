"""Numbers with a 95 % interval: of a mean, a ratio, a spread, and of tables of queries."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import chi2

from experiments.claims.verdicts import Estimate
from experiments.summary import over_seeds

#: Bootstrap samples.
DRAWS = 4000


def mean(numbers: Sequence[float] | np.ndarray, over: str = "") -> Estimate:
    """The mean with Student's interval; no interval for one value.

    Args:
        numbers: ``(n,)``, one for each seed.
        over: What the interval is over; by default, so many seeds.

    Returns:
        The mean and its interval.
    """
    centre, _, half = over_seeds(numbers)
    return Estimate(centre, centre - half, centre + half, over or f"{len(numbers)} seeds")


def quotient(above: np.ndarray, below: np.ndarray) -> Estimate:
    """The ratio r = a / b of the means of paired values ``(n,)``.

    Its error is that of the mean of (aᵢ - r bᵢ) / b.
    """
    ratio = above.mean() / below.mean()
    residuals = (above - ratio * below) / below.mean()
    return mean(ratio + residuals, f"{len(above)} paired seeds")


def spread(numbers: Sequence[float], unit: float) -> Estimate:
    """The standard deviation in units of ``unit``, its interval from the chi-squared law."""
    n = len(numbers)
    deviation = float(np.std(numbers, ddof=1)) / unit
    low = deviation * math.sqrt((n - 1) / chi2.ppf(0.975, n - 1))
    high = deviation * math.sqrt((n - 1) / chi2.ppf(0.025, n - 1))
    return Estimate(deviation, low, high, f"{n} seeds")


def crossed(
    first: np.ndarray, second: np.ndarray, statistic: Callable[..., np.ndarray]
) -> Estimate:
    """A statistic of two means, over queries and runs.

    A bootstrap draws queries anew, the same for both tables, and runs, paired if both have as many.
    (`scipy.stats.bootstrap` resamples along one axis.)

    Args:
        first: ``(runs, queries)``.
        second: ``(runs, queries)``, of the same queries, perhaps of another number of runs.
        statistic: Of the first mean and the second, such as `numpy.subtract`.

    Returns:
        The statistic of the two means, and its percentile interval.
    """
    rng = np.random.default_rng(0)
    n_runs, n_queries = first.shape
    query_shares = _drawn_shares(rng, n_queries)
    first_shares = _drawn_shares(rng, n_runs)
    second_shares = first_shares if len(second) == n_runs else _drawn_shares(rng, len(second))
    first_means = ((first_shares @ first) * query_shares).sum(1)
    second_means = ((second_shares @ second) * query_shares).sum(1)
    low, high = np.quantile(statistic(first_means, second_means), [0.025, 0.975])
    return Estimate(
        float(statistic(first.mean(), second.mean())),
        float(low),
        float(high),
        f"{n_queries} queries × {n_runs} seeds, bootstrap",
    )


def _drawn_shares(rng: np.random.Generator, count: int) -> np.ndarray:
    """How often each of ``count`` things is drawn, as shares: ``(DRAWS, count)``."""
    return rng.multinomial(count, np.full(count, 1 / count), DRAWS) / count
