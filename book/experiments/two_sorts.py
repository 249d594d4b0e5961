r"""The linear programme with one hinge, solved by sorting (chapters 9 and 12).

A policy enters :math:`u^\top P v - \lambda\, \max(0, a^\top P v)` through its exposure
:math:`e = P v` alone, and the hinge is the largest of :math:`\mu\, a^\top e` over
:math:`0 \le \mu \le \lambda`. For a given :math:`\mu` the best exposure is that of the documents
sorted by :math:`u - \mu a`. As :math:`\mu` grows, :math:`a^\top e` falls in steps. If it is still
positive at :math:`\lambda`, that sort is the optimum. Otherwise it is the mixture of the two sorts
on either side of the step at which it passes 0. It is the optimum that
`fairpg_lite.post_processing.fair_ranking_lp` finds, in a tenth of the time.
"""

import numpy as np
import torch
from torch import Tensor

from fairpg_lite.data import RankingDataset
from fairpg_lite.exposure import position_bias
from fairpg_lite.post_processing import group_rows
from fairpg_lite.relevance import Gain


def programme_exposure(
    dataset: RankingDataset, estimate: Tensor, lam: float, *, scaling: str, gain: Gain
) -> Tensor:
    """The exposure that the programme gives to all documents.

    Args:
        dataset: Queries with two groups, all of the same length n.
        estimate: ``(N,)``, a relevance for all documents in order.
        lam: The price of a unit of D_group on that estimate.
        scaling: That of `fairpg_lite.post_processing.group_rows`.
        gain: What a relevance adds.

    Returns:
        ``(Q, n)``, in double precision.
    """
    assert dataset.groups is not None
    lengths = dataset.lengths.tolist()
    bias = position_bias(lengths[0], dtype=torch.float64).numpy()
    exposures = []
    for guess, groups in zip(estimate.split(lengths), dataset.groups.split(lengths), strict=True):
        rows = group_rows(guess, groups, scaling=scaling).rows.numpy()
        utility = gain(guess.double()).numpy()
        exposures.append(_one_query(utility, rows, lam, bias))
    return torch.from_numpy(np.stack(exposures))


def _one_query(utility: np.ndarray, rows: np.ndarray, lam: float, bias: np.ndarray) -> np.ndarray:
    """The exposure ``(n,)`` of one query; two rows are the two sides of a tie in merit."""
    first = _sorted_exposure(utility, bias)
    if len(rows) == 0:
        return first
    row = rows[0]
    ahead = float(row @ first)
    if lam == 0 or ahead == 0 or (ahead < 0 and len(rows) == 1):
        return first
    if ahead < 0:
        row = -row
    last = _sorted_exposure(utility - lam * row, bias)
    if row @ last >= 0:
        return last
    before, after = _around_the_step(utility, row, lam, bias)
    above = float(row @ before)
    below = float(row @ after)
    part = above / (above - below)
    return np.asarray((1 - part) * before + part * after)


def _around_the_step(
    utility: np.ndarray, row: np.ndarray, lam: float, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The exposures just before and just after ``row @ exposure`` passes 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = np.subtract.outer(utility, utility) / np.subtract.outer(row, row)
    inside = crossings[np.isfinite(crossings) & (crossings > 0) & (crossings < lam)]
    edges = np.concatenate([[0.0], np.unique(inside), [lam]])
    prices = (edges[:-1] + edges[1:]) / 2
    low = 0
    high = len(prices) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if row @ _sorted_exposure(utility - prices[middle] * row, bias) > 0:
            low = middle
        else:
            high = middle
    before = _sorted_exposure(utility - prices[low] * row, bias)
    after = _sorted_exposure(utility - prices[high] * row, bias)
    return before, after


def _sorted_exposure(scores: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The exposure of the documents sorted by score, ties by index."""
    exposure = np.empty_like(bias)
    exposure[np.argsort(-scores, kind="stable")] = bias
    return exposure
