r"""Fair rankings from estimates, without learning a policy (chapters 9 and 12).

Post-processing (Singh & Joachims, KDD 2018) takes *estimated* relevance as it is and solves

.. math:: \max_P\; u^\top P v - \lambda \xi \quad\text{over doubly stochastic } P

where :math:`\xi` is the disparity of the exposure :math:`P v` on that estimate: a sum of hinges,
each linear in exposure, so the optimum is found exactly. P says how often each document stands at
each position, not in which rankings; it is a mixture of permutation matrices. Needs
``pip install "fairpg-lite[experiments]"``.
"""

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._extras import require
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import group_ratios
from fairpg_lite.exposure import position_bias
from fairpg_lite.relevance import Gain, exponential_gain

__all__ = ["fair_ranking_lp", "group_rows", "post_process"]


class FairnessRows(NamedTuple):
    """``rows (k, n)`` of coefficients on exposure; the disparity sums their positive values."""

    rows: Tensor

    def disparity(self, exposure: Tensor) -> Tensor:
        """The disparity ``(…)`` of ``exposure (…, n)`` that the programme charges for."""
        return (exposure @ self.rows.mT).relu().sum(-1)


def group_rows(relevance: Tensor, groups: Tensor, *, scaling: str = "definition") -> FairnessRows:
    """Rows for D_group, equation (4), of documents with ``relevance (n,)`` and ``groups (n,)``.

    For each pair of groups: exposure per unit of merit of the group with the higher mean merit
    minus that of the other; both directions where merits tie. An estimated relevance below zero
    counts as no merit, and a group without merit forms no pair. ``scaling="authors"`` is that of
    the published notebooks: the *sum* of exposures over the *mean* merit, with raw relevance as
    merit and the sum of a group's merit raised to 0.01 if smaller. Chapters 5 and 9, eq-05-dgroup.
    """
    relevance, n = relevance.double(), len(relevance)
    labels, index = torch.unique(groups, return_inverse=True)
    if scaling == "authors":
        member = torch.nn.functional.one_hot(index, len(labels)).T.double()
        mean = (member @ relevance).clamp(min=0.01) / member.sum(-1)
        per_merit = member / mean.unsqueeze(-1)
    elif scaling == "definition":
        # Linear in exposure, so the unit vectors give its coefficients: one ratio, one formula.
        unit, merit = torch.eye(n, dtype=torch.float64), relevance.clamp(min=0.0)
        ratio, means = group_ratios(unit, merit.expand(n, n), index.expand(n, n))
        per_merit, mean = ratio.T, means[0]
    else:
        raise ValueError(f"group_rows: scaling is {scaling!r}; give 'definition' or 'authors'.")
    pairs = [(a, b) for a, b in combinations(range(len(labels)), 2) if mean[a] > 0 and mean[b] > 0]
    ahead = [
        per_merit[high] - per_merit[low]
        for pair in pairs
        for high, low in (pair, pair[::-1])
        if mean[high] >= mean[low]
    ]
    return FairnessRows(torch.stack(ahead) / len(pairs) if ahead else per_merit[:0])


def fair_ranking_lp(
    relevance: Tensor,
    groups: Tensor,
    lam: float,
    *,
    scaling: str = "definition",
    gain: Gain = exponential_gain,
) -> Tensor:
    """The best doubly stochastic matrix ``(n, n)``, row = document, column = position.

    ``lam`` is the price of a unit of D_group on this ``relevance (n,)``, which may be estimated,
    hence negative: at 0 the documents are sorted (ties by index), at ``math.inf`` no disparity is
    allowed, which is an error where it cannot be. The published notebooks are ``scaling="authors",
    gain=linear_gain``. Chapter 9; appendix B.3 of the paper.

    >>> relevance, groups = torch.tensor([1.0, 1.0, 0.875]), torch.tensor([0, 0, 1])
    >>> P = fair_ranking_lp(relevance, groups, math.inf)
    >>> exposure = P @ position_bias(3, dtype=torch.float64)
    >>> round((exposure[2] / exposure[:2].mean()).item(), 6)
    0.875
    """
    _check.finite("fair_ranking_lp", "relevance", relevance)
    if relevance.ndim != 1 or groups.shape != relevance.shape or not lam >= 0:
        found = f"relevance {tuple(relevance.shape)}, groups {tuple(groups.shape)}, lam is {lam}"
        raise ValueError(f"fair_ranking_lp: {found}; give one query, (n,), and lam of 0 or more.")
    rows = group_rows(relevance, groups, scaling=scaling)
    utility, n = gain(relevance.double()), len(relevance)
    bias = position_bias(n, dtype=torch.float64)
    best = torch.zeros(n, n, dtype=torch.float64)
    best[utility.argsort(descending=True, stable=True), torch.arange(n)] = 1.0
    if lam == 0 or rows.disparity(best @ bias) == 0:  # sorting is optimal: no programme is needed
        return best
    return torch.from_numpy(_solve(utility.numpy(), bias.numpy(), rows.rows.numpy(), lam))


def _solve(utility: np.ndarray, bias: np.ndarray, rows: np.ndarray, lam: float) -> np.ndarray:
    """The programme in the entries of P, row by row, and one slack for each hinge."""
    optimize, sparse = (require(f"scipy.{part}", "experiments") for part in ("optimize", "sparse"))
    n, scale = len(utility), np.abs(rows).max(1)
    # Rows of entries up to one, whatever the unit of merit; a slack is rescaled with its row.
    fair = sparse.kron(rows / scale[:, None], bias[None])
    price = np.zeros(0) if math.isinf(lam) else lam * scale
    # The sums of P's rows and of its columns are one; then fairness, less its slack.
    eye, ones, none = sparse.identity(n), np.ones((1, n)), sparse.csr_matrix((n, len(price)))
    blocks = [(sparse.kron(eye, ones), none), (sparse.kron(ones, eye), none)]
    left = sparse.bmat([*blocks, (fair, -sparse.eye(len(rows), len(price)))], format="csc")
    most = np.append(np.ones(2 * n), np.zeros(len(rows)))
    least = np.append(np.ones(2 * n), np.full(len(rows), -np.inf))
    # P <= 1 follows from the sums; told so, the dual simplex needs half the steps.
    highest = np.append(np.ones(n * n), np.full(len(price), np.inf))
    # `milp` without integers is SciPy's leanest way to HiGHS: one matrix, handed on as it is.
    result = optimize.milp(
        np.append(-np.outer(utility, bias), price),
        bounds=optimize.Bounds(0.0, highest),
        constraints=optimize.LinearConstraint(left, least, most),
    )
    if not result.success:
        found = f"no optimum for {n} documents with lam={lam} ({result.message})"
        raise ValueError(f"fair_ranking_lp: {found}; a finite lam charges for what must remain.")
    matrix = result.x[: n * n].reshape(n, n).clip(0.0, 1.0)
    if not np.allclose([matrix.sum(0), matrix.sum(1)], 1.0, atol=1e-5):
        raise ValueError(f"fair_ranking_lp: the solver's sums are not one at lam={lam}; change it.")
    matrix[matrix < 1e-14] = 0.0
    for _ in range(20):  # the solver's rounding: rows and columns sum to one to the last digits
        matrix /= matrix.sum(1, keepdims=True)
        matrix /= matrix.sum(0, keepdims=True)
    return matrix


def post_process(
    dataset: RankingDataset, estimate: Tensor, lam: float, **options: Any
) -> list[Tensor]:
    """One matrix ``(n, n)`` of `fair_ranking_lp` for each query of ``dataset``, for `evaluate`.

    ``estimate (N,)`` is a relevance for all documents in order; the paper's is by least squares.
    Chapter 9; appendix B.3 of the paper.
    """
    if dataset.groups is None:
        raise ValueError("post_process: the dataset has no groups; dataset.replace(groups=…).")
    _check.same_shape("post_process", "estimate", estimate, "relevance", dataset.relevance.shape)
    lengths = dataset.lengths.tolist()
    queries = zip(estimate.split(lengths), dataset.groups.split(lengths), strict=True)
    return [fair_ranking_lp(guess, groups, lam, **options) for guess, groups in queries]
