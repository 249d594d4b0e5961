"""Utility and disparity of an exposure, and their slope by it; the entropy of the softmax."""

import numpy as np

from fairpg_lite.compiled.kernels.arguments import D_GROUP, D_IND, GROUP_GAP
from fairpg_lite.compiled.kernels.kernel import kernel
from fairpg_lite.compiled.kernels.numerics import log_softmax


@kernel
def objective(exposure, problem, q):
    """Utility and disparity of query q, and the slope of U - lam D by ``exposure (n,)``."""
    rows = slice(problem.offsets[q], problem.offsets[q + 1])
    weight = problem.weight[rows]
    merit = problem.merit[rows]
    groups = problem.groups[rows]
    excess = 0.0
    pairs = 1.0
    slope = np.zeros(len(exposure))
    if problem.disparity == D_IND:
        excess, pairs = hinge(exposure, merit, merit, slope)
    elif problem.disparity == D_GROUP:
        excess, pairs = group_hinge(exposure, merit, groups, problem.n_groups, False, slope)
    elif problem.disparity == GROUP_GAP:
        excess, pairs = group_hinge(exposure, merit, groups, problem.n_groups, True, slope)
    pairs = max(pairs, 1.0)
    utility = problem.constant[q] + (weight * exposure).sum()
    return utility, excess / pairs, weight - problem.lam * slope / pairs


@kernel
def hinge(exposure, merit, mean, slope):
    """The sum over pairs (i, j) of max(0, ratio_i - ratio_j), and the number of these pairs.

    The ratio is exposure per merit. A pair counts where merit_i and merit_j are positive and
    mean_i >= mean_j. The slope of the sum by ``exposure (n,)`` is added to ``slope (n,)``, which
    must come as zeros.
    """
    n = len(merit)
    ratio = np.zeros(n)
    bar = np.full(n, np.inf)  # nobody is paired with a j of no merit
    for i in range(n):
        if merit[i] > 0:
            ratio[i] = exposure[i] / merit[i]
            bar[i] = mean[i]
    total = 0.0
    pairs = 0.0
    for i in range(n):
        if merit[i] > 0:
            ahead = 0.0
            for j in range(n):
                pair = 1.0 if mean[i] >= bar[j] else 0.0
                active = pair if ratio[i] > ratio[j] else 0.0
                pairs += pair
                total += active * (ratio[i] - ratio[j])
                ahead += active
            slope[i] += ahead
            for j in range(n):
                slope[j] -= 1.0 if (mean[i] >= bar[j]) & (ratio[i] > ratio[j]) else 0.0
    for i in range(n):
        slope[i] = slope[i] / merit[i] if merit[i] > 0 else 0.0
    return total, pairs


@kernel
def group_hinge(exposure, merit, groups, n_groups, two_sided, slope):
    """`hinge` of the groups' exposure and merit, and the number of unordered pairs of groups.

    Groups without merit have no pairs. With ``two_sided`` both directions of a pair count, else
    only the excess of the group with the higher mean merit. The slope by ``exposure (n,)`` is
    written to ``slope (n,)``.
    """
    group_merit = np.zeros(n_groups)
    group_exposure = np.zeros(n_groups)
    group_size = np.zeros(n_groups)
    for i, group in enumerate(groups):
        group_merit[group] += merit[i]
        group_exposure[group] += exposure[i]
        group_size[group] += 1.0
    present = 0
    mean = np.ones(n_groups)  # equal means: either group of a pair may be the one ahead
    for group in range(n_groups):
        present += group_merit[group] > 0
        if not two_sided:
            mean[group] = group_merit[group] / max(group_size[group], 1.0)
    group_slope = np.zeros(n_groups)
    excess, _ = hinge(group_exposure, group_merit, mean, group_slope)
    for i, group in enumerate(groups):
        slope[i] = group_slope[group]
    if present < 2:
        excess = 0.0
    return excess, present * (present - 1) / 2


@kernel
def softmax_entropy(scores, gamma, slope):
    """Entropy H of p = Softmax(scores); adds gamma times its slope, -p (log p + H)."""
    log_p = log_softmax(scores)
    p = np.exp(log_p)
    entropy = -(p * log_p).sum()
    slope -= gamma * p * (log_p + entropy)
    return entropy
