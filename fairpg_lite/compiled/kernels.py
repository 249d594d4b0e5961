"""One query's objective and its gradient by the scores, for `fairpg_lite.compiled.loops`.

Plain loops over ragged arrays in float64, which say what `fairpg_lite.objective` says, compiled at
the first call and cached. A loop that adds up writes nothing else: where it might write on what it
reads the compiler looks at the addresses first, and adds in another order if they are close.
"""

import math

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz"}  # what is not finite stays so
compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
# Past this point exp(-y) is zero for any purpose (see `run_race`).
_LATEST = -0.7 * math.log(np.finfo(np.float64).tiny)
# For `exp_minus`: the coefficients of exp's series, 1/13! first, and the powers 2**-k.
_LOG2, _SERIES = math.log(2.0), tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
_HALVES = np.ldexp(1.0, -np.arange(1023))
# Scores spread wider than this go through logarithms: exp() of the lowest would vanish.
_WIDE = 500.0


@compiled
def log_softmax(values):
    shifted = values - values.max()
    return shifted - math.log(np.exp(shifted).sum())


@compiled
def exp_minus(y):
    """exp(-y) for 0 <= y <= _LATEST, in a form that compilers turn into vector instructions.

    With k the nearest whole number to y / log 2 it is 2**-k times the series of exp, which is
    needed within ±log(2) / 2 only and has there reached rounding after fourteen terms. The relative
    error is y times rounding, so that of exp(-y) or y exp(-y) itself is less than one's.
    """
    k = np.floor(y / _LOG2 + 0.5)
    rest, series = k * _LOG2 - y, _SERIES[0]
    for coefficient in _SERIES[1:]:
        series = series * rest + coefficient
    return series * _HALVES[np.int32(k)]


@compiled
def rank_of(i, keys):
    """How many of the keys come before the i-th; for so many documents quicker than sorting."""
    ahead = 0
    for j in range(len(keys)):
        ahead += (keys[j] < keys[i]) | ((keys[j] == keys[i]) & (j < i))
    return ahead


@compiled
def falling(scores):
    """The documents by score, highest first."""
    order, keys = np.empty(len(scores), np.int64), -scores
    for i in range(len(scores)):
        order[rank_of(i, keys)] = i
    return order


@compiled
def entropy(scores, gamma, slope):
    """Entropy of Softmax(scores); adds gamma times its slope, -p (log p + H)."""
    log_p = log_softmax(scores)
    p = np.exp(log_p)
    value = -(p * log_p).sum()
    slope -= gamma * p * (log_p + value)
    return value


@compiled
def hinge(exposure, merit, mean, slope):
    """What those who merit no less (by ``mean``) get too much, over all pairs; and how many."""
    bar, ratio, value, pairs = np.full(len(merit), np.inf), np.zeros(len(merit)), 0.0, 0.0
    for i in range(len(merit)):
        if merit[i] > 0:
            bar[i], ratio[i] = mean[i], exposure[i] / merit[i]
    for i in range(len(exposure)):
        if merit[i] > 0:
            ahead = 0.0
            for j in range(len(exposure)):
                pair = 1.0 if mean[i] >= bar[j] else 0.0
                active = pair if ratio[i] > ratio[j] else 0.0
                pairs += pair
                value += active * (ratio[i] - ratio[j])
                ahead += active
            slope[i] += ahead
            for j in range(len(exposure)):
                slope[j] -= 1.0 if (mean[i] >= bar[j]) & (ratio[i] > ratio[j]) else 0.0
    for i in range(len(merit)):
        slope[i] = slope[i] / merit[i] if merit[i] > 0 else 0.0
    return value, pairs


@compiled
def gains(exposure, problem, q):
    """Utility, disparity, and the slope of U - lam * D by exposure ``(n,)``."""
    rows = slice(problem.offsets[q], problem.offsets[q + 1])
    weight, merit, groups = problem.weight[rows], problem.merit[rows], problem.groups[rows]
    disparity, pairs, slope = 0.0, 1.0, np.zeros(len(exposure))
    if problem.disparity == 1:
        disparity, pairs = hinge(exposure, merit, merit, slope)
    elif problem.disparity > 1:
        total, received = np.zeros(problem.n_groups), np.zeros(problem.n_groups)
        size, by_group = np.zeros(problem.n_groups), np.zeros(problem.n_groups)
        for i, group in enumerate(groups):
            total[group] += merit[i]
            received[group] += exposure[i]
            size[group] += 1.0
        present, mean = 0, np.ones(len(total))  # as all are worth the same, both directions count
        for group in range(len(total)):
            present += total[group] > 0
            if problem.disparity == 2:
                mean[group] = total[group] / max(size[group], 1.0)
        disparity, _ = hinge(received, total, mean, by_group)
        disparity = disparity if present > 1 else 0.0
        pairs = present * (present - 1) / 2
        for i, group in enumerate(groups):
            slope[i] = by_group[group]
    pairs = max(pairs, 1.0)
    utility = problem.constant[q] + (weight * exposure).sum()
    return utility, disparity / pairs, weight - problem.lam / pairs * slope


@compiled
def sampled(scores, noise, problem, q, slope):
    """Utility and disparity of query q on S rankings; their gradient is added to ``slope``."""
    samples, n = noise.shape
    rank, exposure, reward = np.empty((samples, n), np.int64), np.zeros(n), np.zeros(samples)
    keys, placed, remaining = np.empty(n), np.empty(n), np.empty(n)
    for s in range(samples):
        for i in range(n):
            keys[i] = noise[s, i] - scores[i]
        for i in range(n):
            rank[s, i] = rank_of(i, keys)
            exposure[i] += problem.bias[rank[s, i]]
    exposure /= samples
    utility, disparity, pull = gains(exposure, problem, q)
    for s in range(samples):
        for i in range(n):
            reward[s] += pull[i] * problem.bias[rank[s, i]]
    if problem.baseline > 0:
        reward -= reward.sum() / samples
    reward /= samples - 1 if problem.baseline == 2 else samples
    wide = scores.max() - scores.min() > _WIDE
    weight = scores - scores.max() if wide else np.exp(scores - scores.max())
    for s in range(samples):
        for i in range(n):
            placed[rank[s, i]] = weight[i]
        left = picked = -np.inf if wide else 0.0
        for k in range(n - 1, -1, -1):
            left = np.logaddexp(left, placed[k]) if wide else left + placed[k]
            remaining[k] = left
        # Chance of being picked, added up over the draws that a document was in.
        for k in range(n):
            picked = np.logaddexp(picked, -remaining[k]) if wide else picked + 1.0 / remaining[k]
            placed[k] = math.exp(placed[k] + picked) if wide else placed[k] * picked
        for i in range(n):
            slope[i] += reward[s] * (1.0 - placed[rank[s, i]])
    return utility, disparity


@compiled
def log_weights(scores, widest, log_w):
    """Fills in the log-weights ``(n,)`` of a race, wide gaps narrowed; returns the least."""
    narrowed = scores.copy()
    if scores.max() - scores.min() > widest:
        order = falling(scores)
        narrowed[order[0]] = 0.0
        for k in range(1, len(scores)):
            gap = scores[order[k - 1]] - scores[order[k]]
            narrowed[order[k]] = narrowed[order[k - 1]] - min(gap, widest)
    for i, value in enumerate(log_softmax(narrowed)):
        log_w[i] = value
    return log_w.min()


@compiled
def exact(scores, log_w, lowest, longest, problem, times, q, slope):
    """As `sampled`, by the race; all is done as for the batch's longest list, lightest document."""
    looks = math.ceil((times.log_reach - lowest - times.first) / times.step[longest]) + 1
    n, widest = len(scores), times.widest[longest]
    run, exposure = race(log_w, max(2, looks), longest, times), np.zeros(n)
    for density, arrival in zip(run[0], run[2]):  # noqa: B905 - Numba knows no strict
        exposure += density * arrival
    utility, disparity, pull = gains(exposure, problem, q)
    by_log_w = race_slope(pull, times.z[times.at[longest] : times.at[longest + 1]], run)
    by_log_w -= np.exp(log_w) * by_log_w.sum()
    if scores.max() - scores.min() <= widest:
        slope += by_log_w
        return utility, disparity
    order, below = falling(scores), 0.0
    for k in range(n - 1, 0, -1):  # across a narrowed gap nothing moves
        below += by_log_w[order[k]]
        if scores[order[k - 1]] - scores[order[k]] <= widest:
            slope[order[k]] += below
            slope[order[k - 1]] -= below
    return utility, disparity


@compiled
def race(log_w, looks, longest, times):
    """A race at all its times: what `fairpg_lite.exact.Race` holds, and is kept for the slope.

    Density, ``y = w t`` and arrival ``(looks, n)``, one over the factors ``(looks, M, n)``, and
    their product with coefficient and weight ``(looks, M)``.
    """
    n, step, here = len(log_w), times.step[longest], slice(times.at[longest], times.at[longest + 1])
    z, a = times.z[here], times.a[here]
    density, y, arrival = np.zeros((looks, n)), np.empty((looks, n)), np.empty((looks, n))
    inverse, scale = np.empty((looks, len(z), n), z.dtype), np.empty((looks, len(z)), z.dtype)
    near, w, waiting = log_w.min() > -_WIDE, np.exp(log_w), np.empty(n)
    for q in range(looks):
        x = times.first + step * q
        decay = math.exp(-x)
        if near:
            t = math.exp(x - decay)
            for j in range(n):
                y[q, j] = min(w[j] * t, _LATEST)
        else:
            for j in range(n):
                y[q, j] = min(math.exp(log_w[j] + x - decay), _LATEST)
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
    return density, y, arrival, inverse, scale


@compiled
def race_slope(pull, z, run):
    """The slope ``(n,)`` of pull @ exposure by the log-weights (eq-08-backward)."""
    density, y, arrival, inverse, scale = run
    n, slope = len(pull), np.zeros(len(pull))
    own, lead = np.empty(n), np.empty(n)
    for q in range(len(y)):
        for j in range(n):
            own[j] = arrival[q, j] * pull[j]
            lead[j] = 0.0
        for m in range(len(z)):
            everyone = 0.0 * z[m]
            for j in range(n):
                everyone += inverse[q, m, j] * own[j]
            factor = (1.0 - z[m]) * scale[q, m]
            for j in range(n):
                others = everyone - inverse[q, m, j] * own[j]
                lead[j] += (factor * others * inverse[q, m, j]).real
        for j in range(n):
            slope[j] += (1.0 - y[q, j]) * own[j] * density[q, j] - lead[j] * arrival[q, j]
    return slope
