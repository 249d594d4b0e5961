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
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._extras import require
from fairpg_lite.batch import Queries
from fairpg_lite.disparity import group_ratios
from fairpg_lite.exposure import position_bias
from fairpg_lite.policy import DoublyStochastic
from fairpg_lite.relevance import Gain, exponential_gain

__all__ = ["FairnessRows", "fair_ranking_lp", "group_rows", "post_process"]


class FairnessRows(NamedTuple):
    """``rows (k, n)`` of coefficients on exposure; the disparity sums their positive values."""

    rows: Tensor

    def disparity(self, exposure: Tensor) -> Tensor:
        """The disparity ``(…)`` of ``exposure (…, n)`` that the programme charges for."""
        return (exposure @ self.rows.mT).relu().sum(-1)


def group_rows(relevance: Tensor, groups: Tensor, *, scaling: str = "definition") -> FairnessRows:
    """Rows for D_group, equation (4) (eq-05-dgroup).

    For each pair of groups: exposure per unit of merit of the group with the higher mean merit
    minus that of the other; both directions where merits tie. An estimated relevance below zero
    counts as no merit, and a group without merit forms no pair.

    Args:
        relevance: ``(n,)``, may be estimated.
        groups: ``(n,)``, integer labels.
        scaling: "definition" is equation (4). "authors" is that of the published notebooks: the
            *sum* of exposures over the *mean* merit, with raw relevance as merit and the sum of a
            group's merit raised to 0.01 if smaller.

    Returns:
        The rows, one for each hinge of the disparity.
    """
    relevance = relevance.double()
    labels, index = torch.unique(groups, return_inverse=True)
    if scaling == "authors":
        per_merit, mean_merit = _authors_ratios(relevance, index, len(labels))
    elif scaling == "definition":
        per_merit, mean_merit = _ratios(relevance, index)
    else:
        raise ValueError(f"group_rows: scaling is {scaling!r}; give 'definition' or 'authors'.")
    with_merit = [group for group in range(len(labels)) if mean_merit[group] > 0]
    pairs = list(combinations(with_merit, 2))
    rows = []
    for first, second in pairs:
        for high, low in ((first, second), (second, first)):
            if mean_merit[high] >= mean_merit[low]:
                rows.append((per_merit[high] - per_merit[low]) / len(pairs))
    return FairnessRows(torch.stack(rows) if rows else per_merit[:0])


def _ratios(relevance: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Exposure per unit of merit as coefficients ``(G, n)``, and mean merit ``(G,)``."""
    n = len(relevance)
    # Linear in exposure, so the unit vectors give its coefficients: one ratio, one formula.
    unit_exposures = torch.eye(n, dtype=torch.float64)
    merit = relevance.clamp(min=0.0)
    ratio, mean_merit = group_ratios(unit_exposures, merit.expand(n, n), index.expand(n, n))
    return ratio.T, mean_merit[0]


def _authors_ratios(relevance: Tensor, index: Tensor, n_groups: int) -> tuple[Tensor, Tensor]:
    """The same as the published notebooks have it."""
    member = torch.nn.functional.one_hot(index, n_groups).T.double()
    mean_merit = (member @ relevance).clamp(min=0.01) / member.sum(-1)
    return member / mean_merit.unsqueeze(-1), mean_merit


def fair_ranking_lp(
    relevance: Tensor,
    groups: Tensor,
    lam: float,
    *,
    scaling: str = "definition",
    gain: Gain = exponential_gain,
) -> Tensor:
    """The best doubly stochastic matrix of one query (chapter 9; appendix B.3 of the paper).

    Args:
        relevance: ``(n,)``, which may be estimated, hence negative.
        groups: ``(n,)``, integer labels.
        lam: The price of a unit of D_group on this relevance. At 0 the documents are sorted (ties
            by index); at ``math.inf`` no disparity is allowed, which is an error where it cannot
            be avoided.
        scaling: That of `group_rows`.
        gain: What a relevance adds. The published notebooks are ``scaling="authors",
            gain=linear_gain``.

    Returns:
        ``(n, n)`` [document, position], in double precision.

    >>> relevance, groups = torch.tensor([1.0, 1.0, 0.875]), torch.tensor([0, 0, 1])
    >>> P = fair_ranking_lp(relevance, groups, math.inf)
    >>> exposure = P @ position_bias(3, dtype=torch.float64)
    >>> round((exposure[2] / exposure[:2].mean()).item(), 6)
    0.875
    """
    if relevance.ndim != 1:
        raise ValueError(
            f"fair_ranking_lp: relevance has shape {tuple(relevance.shape)}; give one query, (n,)."
        )
    _check.finite("fair_ranking_lp", "relevance", relevance)
    _check.same_shape("fair_ranking_lp", "groups", groups, "relevance", relevance.shape)
    if not lam >= 0:
        raise ValueError(f"fair_ranking_lp: lam is {lam}; give zero or more, or math.inf.")
    rows = group_rows(relevance, groups, scaling=scaling)
    utility = gain(relevance.double())
    n = len(relevance)
    bias = position_bias(n, dtype=torch.float64)
    sorted_ranking = torch.zeros(n, n, dtype=torch.float64)
    sorted_ranking[utility.argsort(descending=True, stable=True), torch.arange(n)] = 1.0
    if lam == 0 or rows.disparity(sorted_ranking @ bias) == 0:  # sorting is optimal
        return sorted_ranking
    matrix = _solve(utility.numpy(), bias.numpy(), rows.rows.numpy(), lam)
    return torch.from_numpy(_rounded_to_sums_of_one(matrix))


def post_process(
    dataset: Queries,
    estimate: Tensor,
    lam: float,
    *,
    scaling: str = "definition",
    gain: Gain = exponential_gain,
) -> list[DoublyStochastic]:
    """The policy of `fair_ranking_lp` for each query (chapter 9; appendix B.3 of the paper).

    Args:
        dataset: Queries with groups.
        estimate: ``(N,)``, a relevance for all documents in order; the paper's is by least squares.
        lam: The price of a unit of D_group on that estimate.
        scaling: That of `group_rows`.
        gain: What a relevance adds.

    Returns:
        One policy for each query, for `evaluate`.
    """
    if dataset.groups is None:
        raise ValueError("post_process: the dataset has no groups; dataset.replace(groups=...).")
    _check.same_shape("post_process", "estimate", estimate, "relevance", dataset.relevance.shape)
    lengths = dataset.lengths.tolist()
    policies = []
    for guess, groups in zip(estimate.split(lengths), dataset.groups.split(lengths), strict=True):
        matrix = fair_ranking_lp(guess, groups, lam, scaling=scaling, gain=gain)
        policies.append(DoublyStochastic(matrix))
    return policies


def _solve(utility: np.ndarray, bias: np.ndarray, rows: np.ndarray, lam: float) -> np.ndarray:
    """The optimum ``(n, n)`` of the programme in the entries of P and one slack for each hinge."""
    optimize = require("scipy.optimize", "experiments")
    sparse = require("scipy.sparse", "experiments")
    n = len(utility)
    # Rows of entries up to one, whatever the unit of merit; a slack is rescaled with its row.
    scale = np.abs(rows).max(1)
    fairness = sparse.kron(rows / scale[:, None], bias[None])
    has_slack = math.isfinite(lam)
    price = lam * scale if has_slack else np.zeros(0)
    # The sums of P's rows and of its columns are one; then fairness, less its slack.
    identity = sparse.identity(n)
    ones = np.ones((1, n))
    no_slack = sparse.csr_matrix((n, len(price)))
    constraints = sparse.bmat(
        [
            (sparse.kron(identity, ones), no_slack),
            (sparse.kron(ones, identity), no_slack),
            (fairness, -sparse.eye(len(rows), len(price))),
        ],
        format="csc",
    )
    upper = np.append(np.ones(2 * n), np.zeros(len(rows)))
    lower = np.append(np.ones(2 * n), np.full(len(rows), -np.inf))
    # P <= 1 follows from the sums; told so, the dual simplex needs half the steps.
    largest = np.append(np.ones(n * n), np.full(len(price), np.inf))
    # `milp` without integers is SciPy's leanest way to HiGHS: one matrix, handed on as it is.
    result = optimize.milp(
        np.append(-np.outer(utility, bias), price),
        bounds=optimize.Bounds(0.0, largest),
        constraints=optimize.LinearConstraint(constraints, lower, upper),
    )
    if not result.success:
        raise ValueError(
            f"fair_ranking_lp: no optimum for {n} documents with lam={lam} ({result.message}); "
            "a finite lam charges for the disparity that cannot be avoided."
        )
    matrix: np.ndarray = result.x[: n * n].reshape(n, n).clip(0.0, 1.0)
    if not np.allclose([matrix.sum(0), matrix.sum(1)], 1.0, atol=1e-5):
        raise ValueError(
            f"fair_ranking_lp: the solver's rows and columns do not sum to one at lam={lam}; "
            "change lam a little."
        )
    return matrix


def _rounded_to_sums_of_one(matrix: np.ndarray) -> np.ndarray:
    """The matrix without the solver's rounding: sums of one to the last digits, tiny entries 0."""
    matrix = np.where(matrix < 1e-14, 0.0, matrix)
    for _ in range(20):
        matrix /= matrix.sum(1, keepdims=True)
        matrix /= matrix.sum(0, keepdims=True)
    return matrix
