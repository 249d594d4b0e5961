r"""Post-processing by linear programming (Singh & Joachims, KDD 2018; chapters 9 and 12).

.. math:: \max_P\; u^\top P v - \lambda \xi \quad\text{over doubly stochastic } P

where :math:`\xi` is the disparity of the exposure :math:`P v` on *estimated* relevance: a sum of
hinges, each linear in exposure, so the optimum is found exactly. P says how often each document
stands at each position, not in which rankings; it is a mixture of permutation matrices.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._extras import require
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import group_ratios
from fairpg_lite.exposure import check_bias
from fairpg_lite.exposure import position_bias as make_bias
from fairpg_lite.relevance import Gain, Merit, exponential_gain, merit_of

SCALINGS = ("definition", "authors")


class InfeasibleError(ValueError):
    """No ranking policy meets the hard constraint.

    Chapter 9.
    """


class FairnessRows(NamedTuple):
    """``rows (k, n)`` of coefficients on exposure; the disparity sums their positive values.

    Chapter 9.
    """

    rows: Tensor

    def disparity(self, exposure: Tensor) -> Tensor:
        """The disparity ``(…)`` of ``exposure (…, n)`` that the programme charges for."""
        return (exposure @ self.rows.mT).relu().sum(-1)


def group_rows(
    relevance: Tensor,
    groups: Tensor,
    *,
    scaling: str = "definition",
    merit: str | Merit = "identity",
    two_sided: bool = False,
) -> FairnessRows:
    """Rows for D_group, equation (4), of documents with ``relevance (n,)`` and ``groups (n,)``.

    For each pair of groups: exposure per unit of merit of the group with the higher mean merit
    minus that of the other; both directions where merits tie or with ``two_sided``. An estimated
    relevance below zero counts as no merit, and a group without merit forms no pair.
    ``scaling="authors"`` is that of the published notebooks: the *sum* of exposures over the *mean*
    merit, with raw relevance as merit and the sum of a group's merit raised to 0.01 if smaller.

    Chapters 5 and 9, eq-05-dgroup.
    """
    if scaling not in SCALINGS:
        raise ValueError(f"group_rows: scaling is {scaling!r}; choose one of {SCALINGS}.")
    relevance, n = relevance.double(), len(relevance)
    labels, index = torch.unique(groups, return_inverse=True)
    if scaling == "authors":
        member = torch.nn.functional.one_hot(index, len(labels)).T.double()
        mean = (member @ relevance).clamp(min=0.01) / member.sum(-1)
        per_merit = member / mean.unsqueeze(-1)
    else:
        deserved = merit_of(relevance.clamp(min=0.0), merit)
        _check.non_negative("group_rows", "merit", deserved)
        # Linear in exposure, so the unit vectors give its coefficients: one ratio, one formula.
        unit = torch.eye(n, dtype=torch.float64)
        ratio, means = group_ratios(unit, deserved.expand(n, n), index.expand(n, n))
        per_merit, mean = ratio.T, means[0]
    pairs = [(a, b) for a, b in combinations(range(len(labels)), 2) if mean[a] > 0 and mean[b] > 0]
    ahead = [
        per_merit[high] - per_merit[low]
        for pair in pairs
        for high, low in (pair, pair[::-1])
        if two_sided or mean[high] >= mean[low]
    ]
    return FairnessRows(torch.stack(ahead) / len(pairs) if ahead else per_merit[:0])


def fair_ranking_lp(
    relevance: Tensor,
    groups: Tensor,
    lam: float,
    *,
    gain: Gain = exponential_gain,
    position_bias: Tensor | None = None,
    **fairness: Any,
) -> Tensor:
    """The best doubly stochastic matrix ``(n, n)``, row = document, column = position.

    ``lam`` is the price of a unit of D_group on this ``relevance (n,)``, which may be estimated,
    hence negative: at 0 the documents are sorted (ties by index), at ``math.inf`` no disparity is
    allowed, and `InfeasibleError` is raised where that cannot be. ``fairness`` are options of
    `group_rows`; with ``two_sided=True`` neither group may be ahead, the equality of Singh &
    Joachims (2018). The published notebooks are ``scaling="authors", gain=linear_gain``.

    Chapter 9; appendix B.3 of the paper.

    >>> relevance, groups = torch.tensor([1.0, 1.0, 0.875]), torch.tensor([0, 0, 1])
    >>> exposure = fair_ranking_lp(relevance, groups, math.inf) @ make_bias(3, dtype=torch.float64)
    >>> round((exposure[2] / exposure[:2].mean()).item(), 6)
    0.875
    """
    _check.floating("fair_ranking_lp", "relevance", relevance)
    _check.finite("fair_ranking_lp", "relevance", relevance)
    _check.same_shape("fair_ranking_lp", "groups", groups, "relevance", relevance.shape)
    if relevance.ndim != 1 or groups.is_floating_point():
        raise ValueError(
            f"fair_ranking_lp: relevance has shape {tuple(relevance.shape)}, groups is "
            f"{groups.dtype}; give one query, (n,), with integer labels. post_process takes a "
            "whole dataset."
        )
    if not lam >= 0:
        raise ValueError(
            f"fair_ranking_lp: lam is {lam}; it must not be negative (math.inf: no disparity)."
        )
    rows = group_rows(relevance, groups, **fairness)
    utility, n = gain(relevance.double()), len(relevance)
    bias = make_bias(n, dtype=torch.float64) if position_bias is None else position_bias
    check_bias("fair_ranking_lp", bias, n)
    bias = bias[:n].double().cpu()
    best = torch.zeros(n, n, dtype=torch.float64)
    # The most useful documents where most users look.
    order, places = (x.argsort(descending=True, stable=True) for x in (utility, bias))
    best[order, places] = 1.0
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
    if result.status == 2:
        raise InfeasibleError(
            f"fair_ranking_lp: no policy over {n} documents meets the constraint with lam={lam}; "
            "pass a finite lam, which charges for the disparity that cannot be avoided."
        )
    if not result.success:
        raise RuntimeError(
            f"fair_ranking_lp: HiGHS gave no optimum for {n} documents: {result.message}"
        )
    matrix = result.x[: n * n].reshape(n, n).clip(0.0, 1.0)
    matrix[matrix < 1e-14] = 0.0
    for _ in range(20):  # the solver's rounding: rows and columns sum to one to the last digits
        matrix /= matrix.sum(1, keepdims=True)
        matrix /= matrix.sum(0, keepdims=True)
    return matrix


def post_process(
    dataset: RankingDataset,
    estimate: Callable[[Tensor], Tensor] | Tensor,
    lam: float,
    **options: Any,
) -> list[Tensor]:
    """One matrix ``(n, n)`` of `fair_ranking_lp` for each query of ``dataset``, for `evaluate`.

    ``estimate`` is a model of relevance, features ``(n, d)`` to ``(n,)`` (the paper's is
    `linear_regression`), or the estimates themselves, ``(N,)`` for all documents in order.

    Chapter 9; appendix B.3 of the paper.
    """
    if dataset.groups is None:
        raise ValueError(
            "post_process: the dataset has no groups; give it some with dataset.replace(groups=…)."
        )
    with torch.no_grad():
        values = estimate if isinstance(estimate, Tensor) else estimate(dataset.features)
    _check.same_shape("post_process", "estimate", values, "relevance", dataset.relevance.shape)
    lengths = dataset.lengths.tolist()
    queries = zip(values.split(lengths), dataset.groups.split(lengths), strict=True)
    return [fair_ranking_lp(guess, groups, lam, **options) for guess, groups in queries]
