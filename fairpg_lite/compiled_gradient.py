"""What `fairpg_lite.compiled` runs: one query's gradient by its scores, and epochs of updates.

Plain loops over ragged arrays, compiled at the first call and kept in Numba's cache, which say
what `fairpg_lite.objective` says; tests/test_compiled.py holds the two together. Scores and all
that follows from them are float64.
"""

import math

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz"}  # what is not finite stays so
compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
# Past this point exp(-y) is zero for any purpose (see `run_race`).
_LATEST = -0.7 * math.log(np.finfo(np.float64).tiny)
# Scores spread wider than this go through logarithms: exp() of the lowest would vanish.
_WIDE = 500.0
# Up to here it is quicker to count for each document those before it than to sort.
_SHORT = 200


@compiled
def ranks(keys, rank):
    """Position of each document when the keys ascend; ties by index."""
    n = len(keys)
    if n > _SHORT:
        order = np.argsort(keys, kind="mergesort")
        for k in range(n):
            rank[order[k]] = k
        return
    for i in range(n):
        count = 0
        for j in range(n):
            count += (keys[j] < keys[i]) | ((keys[j] == keys[i]) & (j < i))
        rank[i] = count


@compiled
def log_softmax(values):
    """Log-probabilities ``(n,)`` of Softmax(values)."""
    shifted = values - values.max()
    return shifted - math.log(np.exp(shifted).sum())


@compiled
def entropy(scores, gamma, slope):
    """Entropy of Softmax(scores); adds gamma times its slope, -p (log p + H)."""
    log_p = log_softmax(scores)
    p = np.exp(log_p)
    value = -(p * log_p).sum()
    if gamma > 0:
        slope -= gamma * p * (log_p + value)
    return value


@compiled
def individual(exposure, merit, slope):
    """D_ind; its derivative by exposure goes into ``slope``, which is zero so far."""
    n = len(exposure)
    bar = np.where(merit > 0, merit, np.inf)
    ratio = exposure / bar
    value, pairs = 0.0, 0.0
    for i in range(n):
        if merit[i] > 0:
            ahead = 0.0
            for j in range(n):
                pair = 1.0 if merit[i] >= bar[j] else 0.0
                active = pair if ratio[i] > ratio[j] else 0.0
                pairs += pair
                value += active * (ratio[i] - ratio[j])
                ahead += active
                slope[j] -= active
            slope[i] += ahead
    pairs = max(pairs, 1.0)
    slope /= pairs * bar
    return value / pairs


@compiled
def grouped(exposure, merit, groups, problem, slope):
    """D_group or the gap, in the same way."""
    n_groups, two_sided = problem.n_groups, problem.disparity == 3
    total, up = np.bincount(groups, merit, n_groups), np.zeros(n_groups)
    size = np.bincount(groups, np.ones(len(groups)), n_groups)
    present = (total > 0).sum()
    if present < 2:
        return problem.undefined
    ratio = np.bincount(groups, exposure, n_groups) / np.where(total > 0, total, 1.0)
    pairs = present * (present - 1) / 2
    value = 0.0
    for g in range(n_groups):
        for h in range(n_groups):
            merits = two_sided or total[g] / size[g] >= total[h] / size[h]
            if total[g] > 0 and total[h] > 0 and merits and ratio[g] > ratio[h]:
                value += ratio[g] - ratio[h]
                up[g] += 1.0
                up[h] -= 1.0
    for i in range(len(exposure)):
        if total[groups[i]] > 0:
            slope[i] = up[groups[i]] / (pairs * total[groups[i]])
    return value / pairs


@compiled
def add_score_function(scores, rank, coefficient, out):
    """Add sum over s of coefficient_s grad log pi(r_s), for rankings given by their ranks."""
    samples, n = rank.shape
    highest = scores.max()
    wide = highest - scores.min() > _WIDE
    weight, placed, remaining = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        weight[i] = scores[i] - highest if wide else math.exp(scores[i] - highest)
    for s in range(samples):
        for i in range(n):
            placed[rank[s, i]] = weight[i]
        left = -np.inf if wide else 0.0
        for k in range(n - 1, -1, -1):
            left = np.logaddexp(left, placed[k]) if wide else left + placed[k]
            remaining[k] = left
        # Chance of being picked, added up over the draws that a document was in.
        picked = -np.inf if wide else 0.0
        for k in range(n):
            if wide:
                picked = np.logaddexp(picked, -remaining[k])
                placed[k] = math.exp(placed[k] + picked)
            else:
                picked += 1.0 / remaining[k]
                placed[k] *= picked
        for i in range(n):
            out[i] += coefficient[s] * (1.0 - placed[rank[s, i]])


@compiled
def log_weights(scores, widest):
    """Log-weights ``(n,)`` of a race, wide gaps narrowed."""
    if scores.max() - scores.min() <= widest:
        return log_softmax(scores)
    order = np.argsort(-scores)
    narrowed = np.zeros(len(scores))
    for k in range(1, len(scores)):
        gap = scores[order[k - 1]] - scores[order[k]]
        narrowed[order[k]] = narrowed[order[k - 1]] - min(gap, widest)
    return log_softmax(narrowed)


@compiled
def race(log_w, first, step, looks, z, a, pull, exposure, slope):
    """Add to ``exposure``; and to ``slope`` the derivative by log_w of sum of pull times exposure.

    Chapter 8, eq-08-backward. An empty ``pull`` leaves the slope alone.
    """
    n = len(log_w)
    y, waiting, arrival = np.empty(n), np.empty(n), np.empty(n)
    inverse, density, lead = np.empty(n, z.dtype), np.empty(n), np.empty(n)
    near, w = log_w.min() > -_WIDE, np.exp(log_w)
    for q in range(looks):
        x = first + step * q
        decay = math.exp(-x)
        t = math.exp(x - decay) if near else 0.0
        for j in range(n):
            y[j] = min(w[j] * t if near else math.exp(log_w[j] + x - decay), _LATEST)
            waiting[j] = math.exp(-y[j])
            arrival[j] = y[j] * waiting[j]
            density[j] = lead[j] = 0.0
        for m in range(len(z)):
            product = a[m] * (step * (1.0 + decay))
            for j in range(n):
                factor = z[m] + (1.0 - z[m]) * waiting[j]
                product *= factor
                inverse[j] = 1.0 / factor
            for j in range(n):
                density[j] += (inverse[j] * product).real
            if len(pull) == n:
                everyone = 0.0 * product
                for j in range(n):
                    everyone += inverse[j] * (arrival[j] * pull[j])
                scale = (1.0 - z[m]) * product
                for j in range(n):
                    others = everyone - inverse[j] * (arrival[j] * pull[j])
                    lead[j] += (scale * others * inverse[j]).real
        for j in range(n):
            exposure[j] += density[j] * arrival[j]
        if len(pull) == n:
            for j in range(n):
                slope[j] += ((1.0 - y[j]) * pull[j] * density[j] - lead[j]) * arrival[j]


@compiled
def exact(scores, log_w, lowest, longest, problem, times, q, slope):
    """Utility and disparity of query q, ``slope`` getting their gradient by the scores.

    Everything is done as for the batch's longest query and lightest document.
    """
    step, here = times.step[longest], slice(times.at[longest], times.at[longest + 1])
    z, a = times.z[here], times.a[here]
    looks = max(2, math.ceil((times.log_reach - lowest - times.first) / step) + 1)
    n = len(scores)
    exposure, again, by_log_w = np.zeros(n), np.zeros(n), np.zeros(n)
    # Without a disparity the slope by exposure is known beforehand, and one race will do.
    pull = problem.weight[problem.offsets[q] : problem.offsets[q + 1]]
    known = pull if problem.lam == 0 else pull[:0]
    race(log_w, times.first, step, looks, z, a, known, exposure, by_log_w)
    utility, disparity, pull = gains(exposure, problem, q)
    if problem.lam > 0:
        race(log_w, times.first, step, looks, z, a, pull, again, by_log_w)
    # Back through `log_weights`.
    by_log_w -= np.exp(log_w) * by_log_w.sum()
    if scores.max() - scores.min() <= times.widest[longest]:
        slope += by_log_w
        return utility, disparity
    order, below = np.argsort(-scores), 0.0
    for k in range(n - 1, 0, -1):
        below += by_log_w[order[k]]
        if scores[order[k - 1]] - scores[order[k]] <= times.widest[longest]:
            slope[order[k]] += below
            slope[order[k - 1]] -= below
    return utility, disparity


@compiled
def sampled(scores, noise, problem, q, slope):
    """The same by the log-derivative estimator; ``noise (S, n)`` is reversed Gumbel noise."""
    samples, n = noise.shape
    rank, keys = np.empty((samples, n), np.int64), np.empty(n)
    exposure, reward = np.zeros(n), np.zeros(samples)
    for s in range(samples):
        for i in range(n):
            keys[i] = noise[s, i] - scores[i]
        ranks(keys, rank[s])
        for i in range(n):
            exposure[i] += problem.bias[rank[s, i]]
    exposure /= samples
    utility, disparity, pull = gains(exposure, problem, q)
    for s in range(samples):
        for i in range(n):
            reward[s] += pull[i] * problem.bias[rank[s, i]]
    if problem.baseline > 0:
        reward -= reward.sum() / samples
    reward /= samples - 1 if problem.baseline == 2 else samples
    add_score_function(scores, rank, reward, slope)
    return utility, disparity


@compiled
def gains(exposure, problem, q):
    """Utility, disparity, and the slope of U - lam * D by exposure ``(n,)``."""
    rows = slice(problem.offsets[q], problem.offsets[q + 1])
    weight, merit, groups = problem.weight[rows], problem.merit[rows], problem.groups[rows]
    disparity, slope = 0.0, np.zeros(len(exposure))
    if problem.disparity == 1:
        disparity = individual(exposure, merit, slope)
    elif problem.disparity > 1:
        disparity = grouped(exposure, merit, groups, problem, slope)
    utility = problem.constant[q] + (weight * exposure).sum()
    return utility, disparity, weight - problem.lam * slope
