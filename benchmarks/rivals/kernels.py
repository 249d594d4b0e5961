"""Gradients from drawn lists: REINFORCE, reward-to-go and PL-Rank, each on the same lists.

The objective is differentiated by exposure first, which gives every document its ``pull``; then
``sum_i pull_i v(d_i)`` is what a list earns, ``earned[k] = bias[k] * pull[document at place k]`` of
it at place k. All ways estimate the gradient of the expectation of this sum by the scores. Draw k
picks one of the documents that are left, with probabilities ``p_k(d) = w_d / W_k``, and they
differ in what they multiply "picked minus expected" of a draw with:

- REINFORCE (Williams, 1992): with all that the list earns;
- reward-to-go: with what it earns from place k on, as earlier places are settled;
- PL-Rank (Oosterhuis, SIGIR 2021): with what it earns after place k, and what place k itself earns
  enters by its expectation, ``p_k(d) (bias_k pull_d - earned_k)``.

PL-Rank-1 is reward-to-go without a baseline. PL-Rank-3 (SIGIR 2022) has the values of PL-Rank-2 and
sums them up in another order. A baseline is taken for each place, from the same place of the
other lists; or it is what the documents that are left before the draw would earn on average if they
were placed at random (the package's ``baseline="uniform"``), which one list has by itself.
"""

import numpy as np
from numba import njit

# What a draw is multiplied with.
REINFORCE = 0
TO_GO = 1
PL_RANK = 2

# What is subtracted from it.
NONE = 0
MEAN = 1
LEAVE_ONE_OUT = 2
UNIFORM = 3  # what the documents that are left would earn in random order; not for REINFORCE

# Queries that are shorter than this are sorted by counting, longer ones by numpy's sort.
_SHORT = 40


@njit(error_model="numpy", cache=True)
def order_of(arrival, places):
    """The first ``places`` documents in the order of their times of arrival ``(n,)``."""
    n = len(arrival)
    if n < _SHORT:
        order = np.zeros(n, np.int64)
        for i in range(n):
            ahead = 0
            for j in range(n):
                ahead += (arrival[j] < arrival[i]) | ((arrival[j] == arrival[i]) & (j < i))
            order[ahead] = i
        return order[:places]
    if places == n:
        return np.argsort(arrival)
    last = np.partition(arrival, places - 1)[places - 1]
    first = np.flatnonzero(arrival <= last)
    return first[np.argsort(arrival[first])][:places]


@njit(error_model="numpy", cache=True)
def lists_of(weight, waits, places):
    """Lists ``(S, places)`` of documents with weights ``(n,)``; ``waits (S, n)`` are Exp(1)."""
    samples = len(waits)
    lists = np.empty((samples, places), np.int64)
    for s in range(samples):
        lists[s] = order_of(waits[s] / weight, places)
    return lists


@njit(error_model="numpy", cache=True)
def mean_exposure(lists, bias, n):
    """Exposure ``(n,)``, the mean over the lists."""
    exposure = np.zeros(n)
    for s in range(len(lists)):
        for k in range(lists.shape[1]):
            exposure[lists[s, k]] += bias[k]
    return exposure / len(lists)


@njit(error_model="numpy", cache=True)
def advantages(lists, pull, bias, kind, baseline):
    """What each draw is multiplied with ``(S, places)``."""
    samples, places = lists.shape
    result = np.empty((samples, places))
    for s in range(samples):
        to_come = 0.0
        for k in range(places - 1, -1, -1):
            earned = bias[k] * pull[lists[s, k]]
            result[s, k] = to_come if kind == PL_RANK else to_come + earned
            to_come += earned
        if kind == REINFORCE:
            for k in range(places):
                result[s, k] = to_come
    if baseline == UNIFORM:
        subtract_uniform(result, lists, pull, bias, kind)
    elif baseline != NONE:
        for k in range(places):
            mean = 0.0
            for s in range(samples):
                mean += result[s, k]
            mean /= samples
            for s in range(samples):
                result[s, k] -= mean
        if baseline == LEAVE_ONE_OUT:
            result *= samples / (samples - 1)
    return result


@njit(error_model="numpy", cache=True)
def subtract_uniform(by_draw, lists, pull, bias, kind):
    """Subtract what is left before each draw, placed at random, from ``by_draw (S, places)``."""
    samples, places = lists.shape
    n = len(pull)
    to_come = np.empty(places)  # position bias from place k on, or after it
    behind = 0.0
    for k in range(places - 1, -1, -1):
        to_come[k] = behind if kind == PL_RANK else behind + bias[k]
        behind += bias[k]
    total = pull.sum()
    for s in range(samples):
        left = total
        for k in range(places):
            by_draw[s, k] -= left / (n - k) * to_come[k]
            left -= pull[lists[s, k]]


@njit(error_model="numpy", cache=True)
def weight_left(weight, shown, left):
    """Fill in the weight that is left before each draw ``(places,)``, added up from behind."""
    waiting = weight.copy()
    for document in shown:
        waiting[document] = 0.0
    behind = waiting.sum()
    for k in range(len(shown) - 1, -1, -1):
        behind += weight[shown[k]]
        left[k] = behind


@njit(error_model="numpy", cache=True)
def gradient(weight, lists, pull, bias, kind, baseline):
    """The estimate ``(n,)`` from lists ``(S, places)``, in time proportional to S n.

    The chances of a document in the draws that it took part in are its weight times a sum over the
    first places, the same sum for all documents; so it is added up once.
    """
    samples, places = lists.shape
    n = len(weight)
    by_draw = advantages(lists, pull, bias, kind, baseline)
    slope = np.zeros(n)
    left = np.empty(places)
    is_shown = np.zeros(n, np.bool_)
    for s in range(samples):
        weight_left(weight, lists[s], left)
        pushed = 0.0  # sum of the multipliers over the weight left, up to this place
        paid = 0.0  # sum of the position bias over the weight left
        is_shown[:] = False
        for k in range(places):
            document = lists[s, k]
            is_shown[document] = True
            multiplier = by_draw[s, k]
            if kind == PL_RANK:
                multiplier += bias[k] * pull[document]
                paid += bias[k] / left[k]
            pushed += multiplier / left[k]
            expected = pushed - pull[document] * paid
            slope[document] += by_draw[s, k] - weight[document] * expected
        if places < n:
            for document in range(n):
                if not is_shown[document]:
                    slope[document] -= weight[document] * (pushed - pull[document] * paid)
    return slope / samples


@njit(error_model="numpy", cache=True)
def gradient_by_definition(weight, lists, pull, bias, kind, baseline):
    """The same ``(n,)`` as sums over documents and draws, in time proportional to S n places.

    So PL-Rank-1 (``TO_GO``) and PL-Rank-2 (``PL_RANK``) are written in the first paper.
    """
    samples, places = lists.shape
    n = len(weight)
    by_draw = advantages(lists, pull, bias, kind, baseline)
    slope = np.zeros(n)
    left = np.empty(places)
    is_left = np.ones(n, np.bool_)
    for s in range(samples):
        weight_left(weight, lists[s], left)
        is_left[:] = True
        for k in range(places):
            picked = lists[s, k]
            earned = bias[k] * pull[picked]
            for document in range(n):
                if is_left[document]:
                    chance = weight[document] / left[k]
                    slope[document] -= chance * by_draw[s, k]
                    if kind == PL_RANK:
                        slope[document] += chance * (bias[k] * pull[document] - earned)
            slope[picked] += by_draw[s, k]
            is_left[picked] = False
    return slope / samples
