"""Softmax, exponential and ranks."""

import math

import numpy as np

from fairpg_lite.compiled.kernels.kernel import kernel

#: Past this point exp(-y) is zero for any purpose (as in `fairpg_lite.exact.run_race`).
LATEST = -0.7 * math.log(np.finfo(np.float64).tiny)
#: Scores spread wider than this go through logarithms: exp() of the lowest would vanish.
WIDE = 500.0

# For `exp_minus`: the coefficients of exp's series, 1/13! first, and the powers 2**-k.
_SERIES = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
_POWERS = np.ldexp(1.0, -np.arange(1023))
_LOG2 = math.log(2.0)


@kernel
def log_softmax(values):
    """Logarithm of Softmax(values), ``(n,)``."""
    shifted = values - values.max()
    return shifted - math.log(np.exp(shifted).sum())


@kernel
def exp_minus(y):
    """exp(-y) for 0 <= y <= LATEST, in a form that compilers turn into vector instructions.

    With k the nearest whole number to y / log 2 it is 2**-k times the series of exp, which is
    needed within ±log(2) / 2 only and has there reached rounding after fourteen terms. The relative
    error is y times rounding, so exp(-y) and y exp(-y) are wrong by less than rounding.
    """
    k = np.floor(y / _LOG2 + 0.5)
    remainder = k * _LOG2 - y
    series = _SERIES[0]
    for coefficient in _SERIES[1:]:
        series = series * remainder + coefficient
    return series * _POWERS[np.int32(k)]


@kernel
def rank_of(i, keys):
    """The number of keys before the i-th in ascending order, ties by index.

    For the few documents of a query, counting is faster than sorting.
    """
    ahead = 0
    for j in range(len(keys)):
        ahead += (keys[j] < keys[i]) | ((keys[j] == keys[i]) & (j < i))
    return ahead


@kernel
def by_score(scores):
    """The documents ``(n,)`` in descending order of their scores, ties by index."""
    order = np.empty(len(scores), np.int64)
    keys = -scores
    for i in range(len(scores)):
        order[rank_of(i, keys)] = i
    return order
