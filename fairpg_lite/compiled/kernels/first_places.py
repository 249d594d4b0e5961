"""Utility and disparity of a query of which only the first few positions are paid.

`fairpg_lite.first_places` says what is computed. Its tree is a chain here: the documents before
one, and those after it.
"""

import math

import numpy as np

from fairpg_lite.compiled.kernels.kernel import kernel
from fairpg_lite.compiled.kernels.numerics import exp_minus
from fairpg_lite.compiled.kernels.objective import objective

#: Past this point exp(-y) is zero for any purpose (as in `fairpg_lite.first_places`).
LATEST = 60.0


@kernel
def first_places_terms(log_w, problem, times, q):
    """Utility, disparity and their slope by the log-weights ``(n,)`` of query q."""
    n = len(log_w)
    k = len(times.first_bias)
    count = look_count(log_w, times)
    y = np.empty(n)
    waiting = np.empty(n)
    later = np.zeros((n + 1, k + 1))
    exposure = np.zeros(n)
    for look in range(count):
        weight = fill_look(look, log_w, times, y, waiting)
        fill_later(waiting, times.first_bias, later)
        add_exposure(weight, y, waiting, later, exposure)
    utility, disparity, pull = objective(exposure, problem, q)
    pulled = np.empty(n)
    later_pulled = np.zeros((n + 1, k + 1))
    slope = np.zeros(n)
    for look in range(count):
        weight = fill_look(look, log_w, times, y, waiting)
        fill_later(waiting, times.first_bias, later)
        for j in range(n):
            pulled[j] = weight * pull[j] * y[j] * waiting[j]
        fill_later_pulled(waiting, pulled, later, later_pulled)
        add_slope(y, waiting, pulled, later, later_pulled, slope)
    return utility, disparity, slope


@kernel
def look_count(log_w, times):
    """The number of looks until enough have arrived, or all; as `first_times` in nodes.py."""
    last = times.arrival - log_w.min()
    count = max(2, math.ceil((last - times.first) / times.first_step) + 1)
    low = 2
    while low < count:
        middle = (low + count) // 2
        x = times.first + times.first_step * (middle - 1)
        log_t = x - math.exp(-x)
        arrived = 0.0
        for j in range(len(log_w)):
            arrived += -math.expm1(-math.exp(log_w[j] + log_t))
        if arrived >= times.enough:
            count = middle
        else:
            low = middle + 1
    return count


@kernel
def fill_look(look, log_w, times, y, waiting):
    """Fill in weight times time and exp(-y) at a look; returns the look's weight."""
    x = times.first + times.first_step * look
    decay = math.exp(-x)
    for j in range(len(log_w)):
        y[j] = min(math.exp(log_w[j] + x - decay), LATEST)
    for j in range(len(log_w)):
        waiting[j] = exp_minus(y[j])
    return times.first_step * (1.0 + decay)


@kernel
def fill_later(waiting, bias, later):
    """What m documents ahead are worth, given all documents from j on: ``later[j, m]``.

    The last column, k documents ahead, is worth nothing and stays zero.
    """
    n = len(waiting)
    k = len(bias)
    for m in range(k):
        later[n, m] = bias[m]
    for j in range(n - 1, -1, -1):
        q = waiting[j]
        p = 1.0 - q
        for m in range(k):
            later[j, m] = q * later[j + 1, m] + p * later[j + 1, m + 1]


@kernel
def add_exposure(weight, y, waiting, later, exposure):
    """Add a look's exposure ``(n,)``: chances before a document times worth after it."""
    k = later.shape[1] - 1
    before = np.zeros(k)
    before[0] = 1.0
    for j in range(len(waiting)):
        worth = 0.0
        for m in range(k):
            worth += before[m] * later[j + 1, m]
        exposure[j] += weight * y[j] * waiting[j] * worth
        multiply(before, waiting[j])


@kernel
def multiply(chances, q):
    """Put one more document, which waits with probability q, among those before."""
    p = 1.0 - q
    for m in range(len(chances) - 1, 0, -1):
        chances[m] = q * chances[m] + p * chances[m - 1]
    chances[0] *= q


@kernel
def fill_later_pulled(waiting, pulled, later, later_pulled):
    """The derivative of `fill_later` by a number that enters each factor times ``pulled``."""
    n = len(waiting)
    k = later.shape[1] - 1
    for m in range(k):
        later_pulled[n, m] = 0.0
    for j in range(n - 1, -1, -1):
        q = waiting[j]
        p = 1.0 - q
        g = pulled[j]
        for m in range(k):
            later_pulled[j, m] = (
                q * later_pulled[j + 1, m] + p * later_pulled[j + 1, m + 1] + g * later[j + 1, m]
            )


@kernel
def add_slope(y, waiting, pulled, later, later_pulled, slope):
    """Add a look's slope by the log-weights ``(n,)``."""
    n = len(waiting)
    k = later.shape[1] - 1
    before = np.zeros(k)
    before[0] = 1.0
    before_pulled = np.zeros(k)
    for j in range(n):
        own = 0.0
        others = 0.0
        for m in range(k):
            own += before[m] * later[j + 1, m]
            # One document more ahead, less none more.
            others += before[m] * (later_pulled[j + 1, m + 1] - later_pulled[j + 1, m])
            others += before_pulled[m] * (later[j + 1, m + 1] - later[j + 1, m])
        slope[j] += (1.0 - y[j]) * pulled[j] * own + y[j] * waiting[j] * others
        multiply(before_pulled, waiting[j])
        for m in range(k):
            before_pulled[m] += pulled[j] * before[m]
        multiply(before, waiting[j])
