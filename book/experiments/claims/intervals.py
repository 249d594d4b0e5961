"""Numbers with a 95 % interval over repetitions: of a mean, and of a ratio of means."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from experiments.claims.verdicts import Estimate
from experiments.protocol import standard_error


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
