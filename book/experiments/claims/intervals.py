"""Numbers with a 95 % interval: of a mean or a ratio over repetitions, and of tables of queries."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from experiments.claims.verdicts import Estimate
from experiments.protocol import standard_error

#: Bootstrap samples.
DRAWS = 4000


def mean(numbers: Sequence[float] | np.ndarray, over: str = "", *, shared: float = 0.0) -> Estimate:
    """The mean with Student's interval; no interval for one value.

    Args:
        numbers: ``(J,)``, one for each repetition.
        over: What the interval is over; by default, so many repetitions.
        shared: What `experiments.protocol.overlap` says of their data.

    Returns:
        The mean, its interval and its standard error.
    """
    values = np.asarray(numbers, float)
    count = len(values)
    centre = float(values.mean())
    error = standard_error(values, shared)
    freedom = count - 1
    half = math.nan
    if freedom > 0:
        half = float(stats.t.ppf(0.975, freedom)) * error
    words = over or f"{count} repetitions"
    return Estimate(centre, centre - half, centre + half, words, error, freedom)


def quotient(above: np.ndarray, below: np.ndarray, *, shared: float = 0.0) -> Estimate:
    """The ratio r = a / b of the means of paired values ``(J,)``.

    Its error is that of the mean of (aᵢ - r bᵢ) / b.
    """
    ratio = above.mean() / below.mean()
    residuals = (above - ratio * below) / below.mean()
    return mean(ratio + residuals, f"{len(above)} paired repetitions", shared=shared)


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
        The statistic of the two means, its percentile interval, and its bootstrap error.
    """
    rng = np.random.default_rng(0)
    n_runs, n_queries = first.shape
    query_shares = _drawn_shares(rng, n_queries)
    first_shares = _drawn_shares(rng, n_runs)
    second_shares = first_shares if len(second) == n_runs else _drawn_shares(rng, len(second))
    first_means = ((first_shares @ first) * query_shares).sum(1)
    second_means = ((second_shares @ second) * query_shares).sum(1)
    drawn = statistic(first_means, second_means)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(
        float(statistic(first.mean(), second.mean())),
        float(low),
        float(high),
        f"{n_queries} queries × {n_runs} seeds, bootstrap",
        error=float(drawn.std()),
        freedom=n_queries - 1,
    )


def _drawn_shares(rng: np.random.Generator, count: int) -> np.ndarray:
    """How often each of ``count`` things is drawn, as shares: ``(DRAWS, count)``."""
    return rng.multinomial(count, np.full(count, 1 / count), DRAWS) / count
