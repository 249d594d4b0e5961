"""Utility and disparity of a query's drawn rankings, and their slope by the scores."""

import math

import numpy as np

from fairpg_lite.compiled.kernels.arguments import LEAVE_ONE_OUT, NO_BASELINE, UNIFORM
from fairpg_lite.compiled.kernels.kernel import kernel
from fairpg_lite.compiled.kernels.numerics import WIDE, rank_of
from fairpg_lite.compiled.kernels.objective import objective


@kernel
def sampled_terms(scores, noise, problem, q, slope):
    """Utility and disparity of query q on S drawn rankings; adds their gradient to ``slope (n,)``.

    ``noise (S, n)`` is Gumbel noise with its sign reversed, which turns ``scores (n,)`` into S
    rankings of the Plackett-Luce policy.
    """
    ranks = drawn_ranks(scores, noise)
    exposure = mean_exposure(ranks, problem.position_bias)
    utility, disparity, pull = objective(exposure, problem, q)
    places = min(problem.places, len(scores))
    if problem.reward_to_go:
        weights = rewards_to_go(ranks, pull, problem.position_bias, places, problem.baseline)
        add_gradient_of_draws(scores, ranks, weights, slope)
        return utility, disparity
    rewards = rewards_of(ranks, pull, problem.position_bias)
    subtract_baseline(rewards, problem.baseline)
    if places < len(scores):
        weights = np.repeat(rewards, places).reshape((len(rewards), places))
        add_gradient_of_draws(scores, ranks, weights, slope)
    else:
        add_policy_gradient(scores, ranks, rewards, slope)
    return utility, disparity


@kernel
def drawn_ranks(scores, noise):
    """Position, from 0, of each document in each ranking ``(S, n)``."""
    samples, n = noise.shape
    ranks = np.empty((samples, n), np.int64)
    keys = np.empty(n)
    for s in range(samples):
        for i in range(n):
            keys[i] = noise[s, i] - scores[i]
        for i in range(n):
            ranks[s, i] = rank_of(i, keys)
    return ranks


@kernel
def mean_exposure(ranks, position_bias):
    """Exposure ``(n,)``, the mean over the rankings."""
    samples, n = ranks.shape
    exposure = np.zeros(n)
    for s in range(samples):
        for i in range(n):
            exposure[i] += position_bias[ranks[s, i]]
    exposure /= samples
    return exposure


@kernel
def rewards_of(ranks, pull, position_bias):
    """What each ranking contributes to the objective ``(S,)``: the sum of pull times exposure."""
    samples, n = ranks.shape
    rewards = np.zeros(samples)
    for s in range(samples):
        for i in range(n):
            rewards[s] += pull[i] * position_bias[ranks[s, i]]
    return rewards


@kernel
def subtract_baseline(rewards, baseline):
    """Turn the rewards ``(S,)`` into the weights of the mean over rankings, less the baseline.

    Leave-one-out is the mean baseline times S / (S - 1).
    """
    samples = len(rewards)
    if baseline != NO_BASELINE:
        rewards -= rewards.sum() / samples
    rewards /= samples - 1 if baseline == LEAVE_ONE_OUT else samples


@kernel
def add_policy_gradient(scores, ranks, rewards, slope):
    """Add the sum over rankings of reward times the slope of log pi by the scores.

    The slope by a document's score is 1 minus its chances of being picked, added up over the draws
    that it took part in.
    """
    samples, n = ranks.shape
    wide = scores.max() - scores.min() > WIDE
    weight = scores - scores.max() if wide else np.exp(scores - scores.max())
    placed = np.empty(n)
    remaining = np.empty(n)
    for s in range(samples):
        for i in range(n):
            placed[ranks[s, i]] = weight[i]
        if wide:
            chances_from_logs(placed, remaining)
        else:
            chances_from_weights(placed, remaining)
        for i in range(n):
            slope[i] += rewards[s] * (1.0 - placed[ranks[s, i]])


@kernel
def chances_from_weights(placed, remaining):
    """Replace the weights ``(n,)`` of a ranking's documents by their summed chances of a pick.

    The chance in draw k is the weight over ``remaining[k]``, the sum of the weights from k on.
    """
    n = len(placed)
    left = 0.0
    for k in range(n - 1, -1, -1):
        left = left + placed[k]
        remaining[k] = left
    picked = 0.0
    for k in range(n):
        picked = picked + 1.0 / remaining[k]
        placed[k] = placed[k] * picked


@kernel
def chances_from_logs(placed, remaining):
    """`chances_from_weights` for the logarithms of weights that exp() would lose."""
    n = len(placed)
    left = -np.inf
    for k in range(n - 1, -1, -1):
        left = np.logaddexp(left, placed[k])
        remaining[k] = left
    picked = -np.inf
    for k in range(n):
        picked = np.logaddexp(picked, -remaining[k])
        placed[k] = math.exp(placed[k] + picked)


@kernel
def rewards_to_go(ranks, pull, position_bias, places, baseline):
    """The weight of each draw's slope ``(S, places)``: what is paid from its place on.

    `fairpg_lite.reward_to_go.draw_weights` over S, draw by draw.
    """
    samples, n = ranks.shape
    weights = np.empty((samples, places))
    placed = np.empty(n)
    for s in range(samples):
        for i in range(n):
            placed[ranks[s, i]] = pull[i]
        to_go = 0.0
        pull_left = 0.0
        bias_left = 0.0
        for k in range(n - 1, -1, -1):
            pull_left = pull_left + placed[k]
            bias_left = bias_left + position_bias[k]
            to_go = to_go + placed[k] * position_bias[k]
            if k < places:
                weights[s, k] = to_go
                if baseline == UNIFORM:  # in random order, all that are left are paid alike
                    weights[s, k] -= pull_left / (n - k) * bias_left
    if baseline == UNIFORM:
        weights /= samples
    else:
        for k in range(places):
            subtract_baseline(weights[:, k], baseline)
    return weights


@kernel
def add_gradient_of_draws(scores, ranks, weights, slope):
    """Add the sum over the draws of ``weights (S, places)`` times the slope of their logarithm.

    Later draws count nothing. A draw moves the document that it takes up, and all that are left, by
    their chances, down.
    """
    samples, n = ranks.shape
    places = weights.shape[1]
    wide = scores.max() - scores.min() > WIDE
    shifted = scores - scores.max()
    weight = np.exp(shifted)
    placed = np.empty(n)
    remaining = np.empty(n)
    lost = np.empty(n)
    for s in range(samples):
        for i in range(n):
            placed[ranks[s, i]] = shifted[i] if wide else weight[i]
        if wide:
            losses_from_logs(placed, remaining, weights[s], lost)
        else:
            losses_from_weights(placed, remaining, weights[s], lost)
        for i in range(n):
            if ranks[s, i] < places:
                slope[i] += weights[s, ranks[s, i]]
            slope[i] -= lost[ranks[s, i]]


@kernel
def losses_from_weights(placed, remaining, draws, lost):
    """Fill in, for the document at each place, its chances at each draw times the draw's weight.

    ``placed (n,)`` holds the weights of the documents, ``remaining (n,)`` is overwritten by their
    sums from a place on, and ``draws (places,)`` are the weights of the draws.
    """
    n = len(placed)
    left = 0.0
    for k in range(n - 1, -1, -1):
        left = left + placed[k]
        remaining[k] = left
    picked = 0.0
    for k in range(n):
        if k < len(draws):
            picked = picked + draws[k] / remaining[k]
        lost[k] = placed[k] * picked


@kernel
def losses_from_logs(placed, remaining, draws, lost):
    """`losses_from_weights` for the logarithms of weights that exp() would lose."""
    n = len(placed)
    left = -np.inf
    for k in range(n - 1, -1, -1):
        left = np.logaddexp(left, placed[k])
        remaining[k] = left
    gained = -np.inf  # logarithms of the sums of positive and of negative terms
    given = -np.inf
    for k in range(n):
        if k < len(draws) and draws[k] > 0:
            gained = np.logaddexp(gained, math.log(draws[k]) - remaining[k])
        elif k < len(draws) and draws[k] < 0:
            given = np.logaddexp(given, math.log(-draws[k]) - remaining[k])
        lost[k] = math.exp(placed[k] + gained) - math.exp(placed[k] + given)
