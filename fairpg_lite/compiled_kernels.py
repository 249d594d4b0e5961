"""One query's objective and its gradient by the scores, for `fairpg_lite.compiled_epoch`.

Plain loops over ragged arrays in float64, which say what `fairpg_lite.objective` says, compiled at
the first call and cached.
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


@compiled
def log_softmax(values):
    shifted = values - values.max()
    return shifted - math.log(np.exp(shifted).sum())


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
    bar, share = np.where(merit > 0, mean, np.inf), np.where(merit > 0, merit, np.inf)
    ratio = exposure / share
    value, pairs = 0.0, 0.0
    for i in range(len(exposure)):
        if merit[i] > 0:
            ahead = 0.0
            for j in range(len(exposure)):
                pair = 1.0 if mean[i] >= bar[j] else 0.0
                active = pair if ratio[i] > ratio[j] else 0.0
                pairs += pair
                value += active * (ratio[i] - ratio[j])
                ahead += active
                slope[j] -= active
            slope[i] += ahead
    slope /= share
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
        count = problem.n_groups
        total, by_group = np.bincount(groups, merit, count), np.zeros(count)
        mean = total / np.maximum(np.bincount(groups, np.ones(len(merit)), count), 1.0)
        if problem.disparity == 3:  # both directions count
            mean[:] = 1.0
        received, present = np.bincount(groups, exposure, count), (total > 0).sum()
        disparity, _ = hinge(received, total, mean, by_group)
        disparity = disparity if present > 1 else 0.0
        pairs, slope = present * (present - 1) / 2, by_group[groups]
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
        for i in range(n):  # for this many documents counting is quicker than sorting
            ahead = 0
            for j in range(n):
                ahead += (keys[j] < keys[i]) | ((keys[j] == keys[i]) & (j < i))
            rank[s, i] = ahead
            exposure[i] += problem.bias[ahead]
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
def log_weights(scores, widest):
    """Log-weights ``(n,)`` of a race, wide gaps narrowed."""
    if scores.max() - scores.min() <= widest:
        return log_softmax(scores)
    order, narrowed = np.argsort(-scores), np.zeros(len(scores))
    for k in range(1, len(scores)):
        gap = scores[order[k - 1]] - scores[order[k]]
        narrowed[order[k]] = narrowed[order[k - 1]] - min(gap, widest)
    return log_softmax(narrowed)


@compiled
def exact(scores, log_w, lowest, longest, problem, times, q, slope):
    """As `sampled`, by the race; all is done as for the batch's longest list, lightest document."""
    looks = math.ceil((times.log_reach - lowest - times.first) / times.step[longest]) + 1
    n, widest = len(scores), times.widest[longest]
    exposure, again, by_log_w = np.zeros(n), np.zeros(n), np.zeros(n)
    # Without a disparity the slope by exposure is known beforehand, and one race will do.
    pull = problem.weight[problem.offsets[q] : problem.offsets[q + 1]]
    pull = pull if problem.lam == 0 else pull[:0]
    race(log_w, max(2, looks), longest, times, pull, exposure, by_log_w)
    utility, disparity, pull = gains(exposure, problem, q)
    if problem.lam > 0:
        race(log_w, max(2, looks), longest, times, pull, again, by_log_w)
    by_log_w -= np.exp(log_w) * by_log_w.sum()
    if scores.max() - scores.min() <= widest:
        slope += by_log_w
        return utility, disparity
    order, below = np.argsort(-scores), 0.0
    for k in range(n - 1, 0, -1):  # across a narrowed gap nothing moves
        below += by_log_w[order[k]]
        if scores[order[k - 1]] - scores[order[k]] <= widest:
            slope[order[k]] += below
            slope[order[k - 1]] -= below
    return utility, disparity


@compiled
def race(log_w, looks, longest, times, pull, exposure, slope):
    """Add to ``exposure``, and to ``slope`` that of pull @ exposure, if any (eq-08-backward)."""
    n, step, here = len(log_w), times.step[longest], slice(times.at[longest], times.at[longest + 1])
    z, a = times.z[here], times.a[here]
    y, waiting, arrival = np.empty(n), np.empty(n), np.empty(n)
    inverse, density, lead = np.empty(n, z.dtype), np.empty(n), np.empty(n)
    near, w = log_w.min() > -_WIDE, np.exp(log_w)
    for q in range(looks):
        x = times.first + step * q
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
                everyone, scale = 0.0 * product, (1.0 - z[m]) * product
                for j in range(n):
                    everyone += inverse[j] * (arrival[j] * pull[j])
                for j in range(n):
                    others = everyone - inverse[j] * (arrival[j] * pull[j])
                    lead[j] += (scale * others * inverse[j]).real
        for j in range(n):
            exposure[j] += density[j] * arrival[j]
        if len(pull) == n:
            for j in range(n):
                slope[j] += ((1.0 - y[j]) * pull[j] * density[j] - lead[j]) * arrival[j]
