r"""Post-processing by linear programming (Singh & Joachims, KDD 2018; chapters 9 and 12).

.. math:: \max_P\; u^\top P v - \lambda \xi \quad\text{over doubly stochastic } P

where :math:`\xi` is the disparity of the exposure :math:`P v` on *estimated* relevance. Utility,
exposure and the constraint are linear in P, so the optimum is found exactly.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._extras import require
from fairpg_lite.baselines.birkhoff import balanced
from fairpg_lite.baselines.constraints import FairnessRows, group_rows
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import Merit
from fairpg_lite.exposure import check_bias
from fairpg_lite.exposure import position_bias as make_bias
from fairpg_lite.metrics import Gain, exponential_gain


class InfeasibleError(ValueError):
    """No ranking policy meets the hard constraint.

    Chapter 9.
    """


def fair_ranking_lp(
    relevance: Tensor,
    groups: Tensor,
    lam: float,
    *,
    scaling: str = "definition",
    gain: Gain = exponential_gain,
    merit: str | Merit = "identity",
    two_sided: bool = False,
    position_bias: Tensor | None = None,
) -> Tensor:
    """The best doubly stochastic matrix ``(n, n)``, row = document, column = position.

    ``relevance (n,)`` may be estimated, hence negative: such a document has a negative gain
    2**rel - 1 but no merit below zero. ``groups (n,)`` are integer labels. ``lam`` is the price of
    a unit of D_group on this relevance: at 0 the documents are sorted (ties by index), at
    ``math.inf`` no disparity is allowed. With ``two_sided`` neither group may be ahead, so that
    ``lam=math.inf`` is the equality of Singh & Joachims (2018), which can be infeasible: an
    `InfeasibleError`. A query without two groups of positive merit has no constraint and is sorted.

    The published notebooks are ``scaling="authors", gain=linear_gain``; see `group_rows`.

    Chapter 9; appendix B.3 of the paper.

    >>> relevance, groups = torch.tensor([1.0, 1.0, 0.5]), torch.tensor([0, 0, 1])
    >>> fair_ranking_lp(relevance, groups, lam=0.0)
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]], dtype=torch.float64)
    >>> relevance = torch.tensor([1.0, 1.0, 0.875])
    >>> exposure = fair_ranking_lp(relevance, groups, math.inf) @ make_bias(3, dtype=torch.float64)
    >>> round((exposure[2] / exposure[:2].mean()).item(), 6)
    0.875
    """
    _check.floating("fair_ranking_lp", "relevance", relevance)
    _check.finite("fair_ranking_lp", "relevance", relevance)
    if relevance.ndim != 1:
        raise ValueError(
            f"fair_ranking_lp: relevance has shape {tuple(relevance.shape)}; give one query, (n,). "
            "post_process takes a whole dataset."
        )
    if not isinstance(groups, Tensor) or groups.is_floating_point():
        kind = groups.dtype if isinstance(groups, Tensor) else type(groups).__name__
        raise TypeError(f"fair_ranking_lp: groups is {kind}; give an integer tensor of labels.")
    _check.same_shape("fair_ranking_lp", "groups", groups, "relevance", relevance.shape)
    if not lam >= 0:
        raise ValueError(
            f"fair_ranking_lp: lam is {lam}; it must not be negative (math.inf: no disparity)."
        )
    fairness = group_rows(relevance, groups, scaling=scaling, merit=merit, two_sided=two_sided)
    utility, n = gain(relevance.double()), len(relevance)
    bias = make_bias(n, dtype=torch.float64) if position_bias is None else position_bias
    check_bias("fair_ranking_lp", bias, n)
    bias = bias[:n].double().cpu()
    best = torch.zeros(n, n, dtype=torch.float64)
    # The most useful documents where most users look.
    order, places = (x.argsort(descending=True, stable=True) for x in (utility, bias))
    best[order, places] = 1.0
    # Without a constraint, or where sorting meets it, sorting is optimal: no programme is needed.
    if lam == 0 or len(fairness.rows) == 0 or fairness.disparity(best @ bias) == 0:
        return best
    return torch.from_numpy(_solve(utility.numpy(), bias.numpy(), fairness, lam))


def post_process(
    dataset: RankingDataset,
    estimate: Callable[[Tensor], Tensor] | Tensor,
    lam: float,
    **options: Any,
) -> list[Tensor]:
    """One matrix ``(n, n)`` for each query of ``dataset``, ready for `evaluate`.

    ``estimate`` is a model of relevance, features ``(n, d)`` to ``(n,)`` (the paper's is
    `linear_regression`), or the estimates themselves, ``(N,)`` for all documents in order.
    ``options`` go to `fair_ranking_lp`.

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


def _solve(utility: np.ndarray, bias: np.ndarray, fairness: FairnessRows, lam: float) -> np.ndarray:
    """The programme in the entries of P, row by row, and one slack for each hinge."""
    optimize = require("scipy.optimize", "experiments")
    n, rows, slack = len(utility), fairness.rows.numpy(), fairness.slack.numpy()
    # Rows of entries up to one, whatever the unit of merit; a slack is rescaled with its rows.
    scale = np.zeros(len(fairness.weight))
    np.maximum.at(scale, slack, np.abs(rows).max(1))
    rows, price = rows / scale[slack, None], lam * fairness.weight.numpy() * scale
    if math.isinf(lam):
        slack, price = slack[:0], price[:0]
    left = _left_side(rows, slack, len(price), bias)
    cost = np.append(-np.outer(utility, bias), price)
    # P <= 1 follows from the sums; told so, the dual simplex needs half the steps.
    highest = np.append(np.ones(n * n), np.full(len(price), np.inf))
    most = np.append(np.ones(2 * n), np.zeros(len(rows)))
    least = np.append(np.ones(2 * n), np.full(len(rows), -np.inf))
    # `milp` without integers is SciPy's leanest way to HiGHS: one matrix, handed on as it is.
    result = optimize.milp(
        cost,
        bounds=optimize.Bounds(0.0, highest),
        constraints=optimize.LinearConstraint(left, least, most),
    )
    if result.status == 2:
        raise InfeasibleError(
            f"fair_ranking_lp: no policy over {n} documents meets the constraint with lam={lam}; "
            "pass a finite lam, which charges for the disparity that cannot be avoided."
        )
    if result.x is None or not result.success:
        raise RuntimeError(
            f"fair_ranking_lp: HiGHS gave no optimum for {n} documents: {result.message}"
        )
    return balanced("fair_ranking_lp", np.clip(result.x[: n * n].reshape(n, n), 0.0, 1.0))


def _left_side(rows: np.ndarray, slack: np.ndarray, count: int, bias: np.ndarray) -> Any:
    """Sums of the rows and columns of P, then fairness: a sparse ``(2n + k, n * n + count)``."""
    sparse = require("scipy.sparse", "experiments")
    eye, ones = sparse.identity(len(bias)), np.ones((1, len(bias)))
    charge = sparse.csr_matrix(
        (-np.ones(len(slack)), (np.arange(len(slack)), slack)), shape=(len(rows), count)
    )
    fair = sparse.hstack([sparse.kron(rows, bias[None]), charge])
    sums = sparse.vstack([sparse.kron(eye, ones), sparse.kron(ones, eye)])
    sums.resize(len(bias) * 2, fair.shape[1])
    return sparse.vstack([sums, fair], format="csc")
