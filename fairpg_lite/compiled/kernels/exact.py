"""Utility and disparity of a query's exact exposure, and their slope by the scores.

`fairpg_lite.exact` says what a race is. Autograd pads a batch to its longest query and integrates
all of it on the grid of its lightest document; so do these kernels, to find the same numbers.
"""

import math
from typing import NamedTuple

import numpy as np

from fairpg_lite.compiled.kernels.arguments import Floats
from fairpg_lite.compiled.kernels.first_places import first_places_terms
from fairpg_lite.compiled.kernels.kernel import kernel
from fairpg_lite.compiled.kernels.numerics import LATEST, WIDE, by_score, exp_minus, log_softmax
from fairpg_lite.compiled.kernels.objective import objective


@kernel
def fill_log_weights(scores, widest_gap, log_w):
    """Fill in the log-weights ``(n,)`` of a race, wide gaps narrowed; returns the least of them."""
    narrowed = scores.copy()
    if scores.max() - scores.min() > widest_gap:
        order = by_score(scores)
        narrowed[order[0]] = 0.0
        for k in range(1, len(scores)):
            gap = scores[order[k - 1]] - scores[order[k]]
            narrowed[order[k]] = narrowed[order[k - 1]] - min(gap, widest_gap)
    for i, value in enumerate(log_softmax(narrowed)):
        log_w[i] = value
    return log_w.min()


@kernel
def exact_terms(scores, log_w, lowest, longest, problem, times, q, slope):
    """Utility and disparity of query q by its race; adds their gradient to ``slope (n,)``.

    ``lowest`` is the log-weight of the batch's lightest document, ``longest`` the length of its
    longest query.
    """
    if times.node_starts[longest] == times.node_starts[longest + 1]:
        utility, disparity, by_log_w = first_places_terms(log_w, problem, times, q)
        add_slope_by_scores(scores, log_w, by_log_w, times.widest_gap[longest], slope)
        return utility, disparity
    run = race(log_w, time_count(lowest, longest, times), longest, times)
    exposure = np.zeros(len(scores))
    for density, arrival in zip(run.density, run.arrival):  # noqa: B905 - Numba knows no strict
        exposure += density * arrival
    utility, disparity, pull = objective(exposure, problem, q)
    nodes = times.nodes[times.node_starts[longest] : times.node_starts[longest + 1]]
    by_log_w = race_slope(pull, nodes, run)
    add_slope_by_scores(scores, log_w, by_log_w, times.widest_gap[longest], slope)
    return utility, disparity


@kernel
def time_count(lowest, longest, times):
    """The number of times of the grid, as `fairpg_lite.nodes.TimeGrid.count` has it."""
    last = times.arrival - lowest
    return max(2, math.ceil((last - times.first) / times.step[longest]) + 1)


@kernel
def add_slope_by_scores(scores, log_w, by_log_w, widest_gap, slope):
    """Add the slope by the scores, given that by the log-weights ``(n,)``, which is overwritten."""
    by_log_w -= np.exp(log_w) * by_log_w.sum()
    if scores.max() - scores.min() <= widest_gap:
        slope += by_log_w
        return
    order = by_score(scores)
    below = 0.0
    for k in range(len(scores) - 1, 0, -1):
        below += by_log_w[order[k]]
        # A score that moves across a narrowed gap changes nothing.
        if scores[order[k - 1]] - scores[order[k]] <= widest_gap:
            slope[order[k]] += below
            slope[order[k - 1]] -= below


class Race(NamedTuple):
    """A race at all its T times, as `fairpg_lite.exact.Race` holds it, for M nodes."""

    density: Floats
    """A document's gain of exposure per unit of its arrival, ``(T, n)``."""
    y: Floats
    """Weight times time, ``(T, n)``."""
    arrival: Floats
    """Arrival density per unit of log-time, ``(T, n)``."""
    inverse: Floats
    """One over the factor z + (1 - z) exp(-y) of each document, ``(T, M, n)``."""
    scale: Floats
    """Coefficient times quadrature weight times the product of the factors, ``(T, M)``."""


@kernel
def race(log_w, count, longest, times):
    """The race of documents with log-weights ``(n,)`` at the first ``count`` times of the grid."""
    n = len(log_w)
    step = times.step[longest]
    own_nodes = slice(times.node_starts[longest], times.node_starts[longest + 1])
    z = times.nodes[own_nodes]
    a = times.coefficients[own_nodes]
    density = np.zeros((count, n))
    y = np.empty((count, n))
    arrival = np.empty((count, n))
    inverse = np.empty((count, len(z), n), z.dtype)
    scale = np.empty((count, len(z)), z.dtype)
    near = log_w.min() > -WIDE
    w = np.exp(log_w)
    waiting = np.empty(n)
    for q in range(count):
        x = times.first + step * q
        decay = math.exp(-x)
        if near:
            t = math.exp(x - decay)
            for j in range(n):
                y[q, j] = min(w[j] * t, LATEST)
        else:
            for j in range(n):
                y[q, j] = min(math.exp(log_w[j] + x - decay), LATEST)
        for j in range(n):
            waiting[j] = exp_minus(y[q, j])
            arrival[q, j] = y[q, j] * waiting[j]
        for m in range(len(z)):
            product = a[m] * (step * (1.0 + decay))
            for j in range(n):
                product *= z[m] + (1.0 - z[m]) * waiting[j]
            scale[q, m] = product
            for j in range(n):
                inverse[q, m, j] = 1.0 / (z[m] + (1.0 - z[m]) * waiting[j])
                density[q, j] += (inverse[q, m, j] * product).real
    return Race(density, y, arrival, inverse, scale)


@kernel
def race_slope(pull, z, run):
    """The slope ``(n,)`` of the sum of pull times exposure by the log-weights (eq-08-backward)."""
    n = len(pull)
    slope = np.zeros(n)
    pulled = np.empty(n)
    lead = np.empty(n)
    for q in range(len(run.y)):
        for j in range(n):
            pulled[j] = run.arrival[q, j] * pull[j]
            lead[j] = 0.0
        for m in range(len(z)):
            everyone = 0.0 * z[m]
            for j in range(n):
                everyone += run.inverse[q, m, j] * pulled[j]
            factor = (1.0 - z[m]) * run.scale[q, m]
            for j in range(n):
                others = everyone - run.inverse[q, m, j] * pulled[j]
                lead[j] += (factor * others * run.inverse[q, m, j]).real
        for j in range(n):
            direct = (1.0 - run.y[q, j]) * pulled[j] * run.density[q, j]
            slope[j] += direct - lead[j] * run.arrival[q, j]
    return slope
