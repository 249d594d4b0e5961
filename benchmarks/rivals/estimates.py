"""The gradient of one query, or of many in turn, by each way; the objective is the package's.

Not cached on disk: Numba would not notice a change in the other files that these kernels call.
"""

import numpy as np
from numba import njit

from benchmarks.rivals.kernels import (
    gradient,
    gradient_by_definition,
    lists_of,
    mean_exposure,
)
from fairpg_lite.compiled.kernels.exact import exact_terms, fill_log_weights, race, time_count
from fairpg_lite.compiled.kernels.objective import objective

#: The lowest log-weight that drawn lists tell apart from lower ones.
FARTHEST = -600.0


@njit(error_model="numpy")
def exact_exposure(scores, times):
    """Exact exposure ``(n,)``, without its gradient."""
    n = len(scores)
    log_w = np.empty(n)
    lowest = fill_log_weights(scores, times.widest_gap[n], log_w)
    run = race(log_w, time_count(lowest, n, times), n, times)
    exposure = np.zeros(n)
    for density, arrival in zip(run.density, run.arrival):  # noqa: B905 - Numba knows no strict
        exposure += density * arrival
    return exposure


@njit(error_model="numpy")
def sampled_gradient(scores, waits, way, problem, times, q):
    """Gradient ``(n,)`` of query q's objective, from ``waits (S, n)`` that are Exp(1).

    ``way`` is what `codes` makes of a way.
    """
    kind, baseline, places, centred, exact_charges, by_definition = way
    n = len(scores)
    bias = problem.position_bias
    # A weight of zero would divide by itself; whoever is so far behind comes last anyway.
    weight = np.exp(np.maximum(scores - scores.max(), FARTHEST))
    lists = lists_of(weight, waits, min(places, n))
    exposure = exact_exposure(scores, times) if exact_charges else mean_exposure(lists, bias, n)
    pull = objective(exposure, problem, q)[2]
    if centred:
        pull = pull - pull.mean()
    if by_definition:
        return gradient_by_definition(weight, lists, pull, bias, kind, baseline)
    return gradient(weight, lists, pull, bias, kind, baseline)


@njit(error_model="numpy")
def exact_gradient(scores, problem, times, q):
    """The same without drawing, by the package's compiled race."""
    n = len(scores)
    log_w = np.empty(n)
    slope = np.zeros(n)
    lowest = fill_log_weights(scores, times.widest_gap[n], log_w)
    exact_terms(scores, log_w, lowest, n, problem, times, q, slope)
    return slope


@njit(error_model="numpy")
def sampled_gradients(scores, waits, way, problem, times):
    """Gradients ``(B, n)`` of all queries; ``waits`` is ``(B, S, n)``."""
    slopes = np.empty_like(scores)
    for q in range(len(scores)):
        slopes[q] = sampled_gradient(scores[q], waits[q], way, problem, times, q)
    return slopes


@njit(error_model="numpy")
def exact_gradients(scores, problem, times):
    """Gradients ``(B, n)`` of all queries, without drawing."""
    slopes = np.empty_like(scores)
    for q in range(len(scores)):
        slopes[q] = exact_gradient(scores[q], problem, times, q)
    return slopes


def codes(way, bias):
    """A `Way` as kernels take it, for a position bias ``(n,)``."""
    places = int(np.flatnonzero(bias).max()) + 1 if way.first_places else len(bias)
    return (
        way.kind,
        way.baseline,
        places,
        way.centred,
        way.exact_charges,
        way.by_definition,
    )
