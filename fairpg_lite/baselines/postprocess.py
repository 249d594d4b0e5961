r"""Post-processing by linear programming (Singh & Joachims, KDD 2018; chapters 9 and 12).

.. math:: \max_P\; u^\top P v - \lambda \xi \quad\text{over doubly stochastic } P

where :math:`\xi` is the disparity of the exposure :math:`P v` on *estimated* relevance. Utility,
exposure and the constraint are linear in P, so the optimum is found exactly.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._extras import require
from fairpg_lite.baselines.constraints import FairnessRows, group_rows, individual_rows
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

    ``relevance (n,)`` may be estimated, hence negative: such a document has negative worth
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
    where = "fair_ranking_lp"
    _check_query(where, relevance, lam)
    if not isinstance(groups, Tensor) or groups.is_floating_point():
        kind = groups.dtype if isinstance(groups, Tensor) else type(groups).__name__
        raise TypeError(f"{where}: groups is {kind}; give an integer tensor of group labels.")
    _check.same_shape(where, "groups", groups, "relevance", relevance.shape)
    rows = group_rows(relevance, groups, scaling=scaling, merit=merit, two_sided=two_sided)
    return _best_matrix(where, gain(relevance.double()), rows, lam, position_bias)


def individually_fair_ranking_lp(
    relevance: Tensor,
    lam: float,
    *,
    gain: Gain = exponential_gain,
    merit: str | Merit = "identity",
    two_sided: bool = False,
    position_bias: Tensor | None = None,
) -> Tensor:
    """As `fair_ranking_lp` with D_ind in place of D_group: the matrix ``(n, n)``.

    Documents without positive merit take no part in the constraint.

    Chapter 11.
    """
    where = "individually_fair_ranking_lp"
    _check_query(where, relevance, lam)
    rows = individual_rows(relevance, merit=merit, two_sided=two_sided)
    return _best_matrix(where, gain(relevance.double()), rows, lam, position_bias)


def post_process(
    dataset: RankingDataset,
    estimate: Callable[[Tensor], Tensor] | Tensor,
    lam: float,
    *,
    fairness: str = "group",
    **options: Any,
) -> list[Tensor]:
    """One matrix ``(n, n)`` for each query of ``dataset``, ready for `evaluate`.

    ``estimate`` is a model of relevance, features ``(n, d)`` to ``(n,)`` (the paper's is
    `linear_regression`), or the estimates themselves, ``(N,)`` for all documents in order.
    ``fairness`` is "group" or "individual"; ``options`` go to the programme.

    Chapter 9; appendix B.3 of the paper.
    """
    if fairness not in ("group", "individual"):
        raise ValueError(f"post_process: fairness is {fairness!r}; choose 'group' or 'individual'.")
    if fairness == "group" and dataset.groups is None:
        raise ValueError(
            "post_process: the dataset has no groups; give it some with dataset.replace(groups=…) "
            "or pass fairness='individual'."
        )
    with torch.no_grad():
        values = estimate if isinstance(estimate, Tensor) else estimate(dataset.features)
    _check.same_shape("post_process", "estimate", values, "relevance", dataset.relevance.shape)
    matrices = []
    for query, guess in zip(dataset, values.split(dataset.lengths.tolist()), strict=True):
        if fairness == "individual":
            matrices.append(individually_fair_ranking_lp(guess, lam, **options))
        else:
            assert query.groups is not None
            matrices.append(fair_ranking_lp(guess, query.groups, lam, **options))
    return matrices


def _check_query(where: str, relevance: Tensor, lam: float) -> None:
    _check.floating(where, "relevance", relevance)
    if relevance.ndim != 1:
        raise ValueError(
            f"{where}: relevance has shape {tuple(relevance.shape)}; give one query, (n,). "
            "post_process takes a whole dataset."
        )
    _check.finite(where, "relevance", relevance)
    if not lam >= 0:
        raise ValueError(
            f"{where}: lam is {lam}; it must not be negative (math.inf: no disparity)."
        )


def _best_matrix(
    where: str, worth: Tensor, fairness: FairnessRows, lam: float, bias: Tensor | None
) -> Tensor:
    n = len(worth)
    if bias is None:
        bias = make_bias(n, dtype=torch.float64)
    check_bias(where, bias, n)
    bias = bias[:n].double().cpu()
    best = _sorted_matrix(worth, bias)
    # Without a constraint, or where sorting meets it, sorting is optimal: no programme is needed.
    if lam == 0 or len(fairness.rows) == 0 or fairness.disparity(best @ bias) == 0:
        return best
    return torch.from_numpy(_solve(where, worth.numpy(), bias.numpy(), fairness, lam))


def _sorted_matrix(worth: Tensor, bias: Tensor) -> Tensor:
    """The permutation matrix with the most valuable documents where most users look."""
    matrix = torch.zeros(len(worth), len(worth), dtype=torch.float64)
    documents = worth.argsort(descending=True, stable=True)
    matrix[documents, bias.argsort(descending=True, stable=True)] = 1.0
    return matrix


@lru_cache(maxsize=128)
def _structure(n: int, below: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the column of each P[i, j] has entries: sum of row i, sum of column j, ``below`` rows.

    Index arrays of a sparse ``(2n + below, n * n)`` matrix by columns: the same for all queries of
    n documents, so they are made once.
    """
    document, position = np.divmod(np.arange(n * n), n)
    rest = np.broadcast_to(2 * n + np.arange(below), (n * n, below))
    indices = np.column_stack([document, n + position, rest]).astype(np.int32).ravel()
    return indices, np.arange(n * n + 1, dtype=np.int32) * (2 + below)


def _few_rows(rows: np.ndarray, slack: np.ndarray, bias: np.ndarray) -> Any:
    """Sums and a handful of fairness rows ``(k, n)``: a sparse ``(2n + k, n * n + slacks)``."""
    k, n = rows.shape
    data = np.ones((n * n, 2 + k))
    data[:, 2:] = (rows.T[:, None, :] * bias[None, :, None]).reshape(n * n, k)
    indices, pointers = _structure(n, k)
    # The columns of the slacks: -1 in each of their rows.
    data, indices = (
        np.append(data, -np.ones(len(slack))),
        np.append(indices, 2 * n + slack.argsort()),
    )
    pointers = np.append(pointers, pointers[-1] + np.bincount(slack).cumsum())
    csc = require("scipy.sparse", "experiments").csc_matrix
    return csc((data, indices, pointers), shape=(2 * n + k, len(pointers) - 1))


def _many_rows(rows: np.ndarray, slack: np.ndarray, bias: np.ndarray) -> Any:
    """The same with n more variables, v = P bias, which make each of many rows short.

    ``(2n + n + k, n * n + n + slacks)``: sums, the definition of v, fairness.
    """
    sparse = require("scipy.sparse", "experiments")
    n, none = len(bias), np.zeros(0, dtype=np.int64)
    sums = _few_rows(np.zeros((0, n)), none, bias)
    exposure = sparse.kron(sparse.identity(n), bias[None])
    charge = (-np.ones(len(slack)), (np.arange(len(slack)), slack))
    lines = [[sums, None], [exposure, -sparse.identity(n)], [None, sparse.csr_matrix(rows)]]
    if len(slack):
        lines = [[*line, None] for line in lines]
        lines[2][2] = sparse.csr_matrix(charge)
    return sparse.bmat(lines, format="csc")


def _solve(
    where: str, worth: np.ndarray, bias: np.ndarray, fairness: FairnessRows, lam: float
) -> np.ndarray:
    """Variables: the matrix row by row, the exposure (only if rows are many), the slacks."""
    optimize = require("scipy.optimize", "experiments")
    n, rows, slack = len(worth), fairness.rows.numpy(), fairness.slack.numpy()
    # Rows of entries up to one, whatever the unit of merit; a slack is rescaled with its rows.
    scale = np.zeros(len(fairness.weight))
    np.maximum.at(scale, slack, np.abs(rows).max(1))
    rows, price = rows / scale[slack, None], lam * fairness.weight.numpy() * scale
    if math.isinf(lam):
        slack, price = slack[:0], price[:0]
    left = (_few_rows if len(rows) <= n else _many_rows)(rows, slack, bias)
    cost = np.zeros(left.shape[1])
    cost[: n * n] = -np.outer(worth, bias).ravel()
    cost[len(cost) - len(price) :] = price
    # P <= 1 follows from the sums; told so, the dual simplex needs half the steps.
    highest = np.full(len(cost), np.inf)
    highest[: n * n] = 1.0
    most = np.zeros(left.shape[0])
    most[: 2 * n] = 1.0
    least = most.copy()
    least[len(least) - len(rows) :] = -np.inf
    # `milp` without integers is SciPy's leanest way to HiGHS: one matrix, handed on as it is.
    result = optimize.milp(
        cost,
        bounds=optimize.Bounds(0.0, highest),
        constraints=optimize.LinearConstraint(left, least, most),
    )
    return _doubly_stochastic(where, result, n, lam)


def _doubly_stochastic(where: str, result: Any, n: int, lam: float) -> np.ndarray:
    """The solution without the solver's rounding, or an error that says what happened."""
    if result.status == 2:
        raise InfeasibleError(
            f"{where}: no policy over {n} documents meets the constraint with lam={lam}; "
            "pass a finite lam, which charges for the disparity that cannot be avoided."
        )
    if result.x is None or not result.success:
        raise RuntimeError(f"{where}: HiGHS gave no optimum for {n} documents: {result.message}")
    matrix = np.clip(result.x[: n * n].reshape(n, n), 0.0, 1.0)
    error = max(abs(matrix.sum(axis) - 1.0).max() for axis in (0, 1))
    if error > 1e-6:
        raise RuntimeError(f"{where}: the sums of HiGHS' solution are off by {error:.1e}.")
    for _ in range(20 if error > 1e-14 else 0):
        matrix /= matrix.sum(1, keepdims=True)
        matrix /= matrix.sum(0, keepdims=True)
    return matrix
