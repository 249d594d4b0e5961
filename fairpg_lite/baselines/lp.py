r"""Post-processing by linear programming (Singh & Joachims, KDD 2018; chapters 9 and 12).

.. math:: \max_P\; u^\top P v - \lambda \xi \quad\text{over doubly stochastic } P

where :math:`\xi` is the disparity of the exposure :math:`P v` on *estimated* relevance: a weighted
sum of hinges, each linear in exposure. So utility, exposure and disparity are linear in P and the
hinges, and the optimum is found exactly. P says how often each document stands at each position,
not in which rankings; it is a mixture of permutation matrices (Birkhoff, von Neumann).
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
from fairpg_lite.disparity import Merit, group_ratios, merit_of
from fairpg_lite.exposure import check_bias
from fairpg_lite.exposure import position_bias as make_bias
from fairpg_lite.metrics import Gain, exponential_gain

SCALINGS = ("definition", "authors")
# A matrix whose sums are off by more is not doubly stochastic; below, it is rounding.
_TOLERANCE = 1e-6
# What may be left over of the probability, and what counts as zero in an entry.
_REST, _ZERO = 1e-10, 1e-14


class InfeasibleError(ValueError):
    """No ranking policy meets the hard constraint.

    Chapter 9.
    """


class FairnessRows(NamedTuple):
    """``rows (k, n)`` of coefficients on exposure, some of which share a slack variable.

    ``slack (k,)`` names the slack of each row and ``weight (m,)`` its share in the disparity:
    ``D = sum_s weight[s] * max(0, largest row of slack s times exposure)``.

    Chapter 9.
    """

    rows: Tensor
    slack: Tensor
    weight: Tensor

    def disparity(self, exposure: Tensor) -> Tensor:
        """The disparity ``(…)`` of ``exposure (…, n)`` that the programme charges for."""
        excess = (exposure @ self.rows.mT).relu()
        hinge = excess.new_zeros((*excess.shape[:-1], len(self.weight)))
        index = self.slack.expand(excess.shape)
        return hinge.scatter_reduce(-1, index, excess, "amax") @ self.weight


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

    ``scaling="authors"`` is what the published notebooks solve: the *sum* of exposures over the
    *mean* merit, i.e. the ratio times the size of the group, with raw relevance as merit and the
    sum of a group's merit raised to 0.01 where it is smaller.

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
        (slack, per_merit[high] - per_merit[low])
        for slack, (a, b) in enumerate(pairs)
        for high, low in ((a, b), (b, a))
        if two_sided or mean[high] >= mean[low]
    ]
    rows = torch.cat([per_merit.new_zeros(0, n), *(row.unsqueeze(0) for _, row in ahead)])
    slack = torch.tensor([slack for slack, _ in ahead], dtype=torch.int64)
    share = torch.full((len(pairs),), 1.0 / max(len(pairs), 1), dtype=torch.float64)
    return FairnessRows(rows, slack, share)


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

    A query without two groups of positive merit has no constraint and is sorted. The published
    notebooks are ``scaling="authors", gain=linear_gain``.

    Chapter 9; appendix B.3 of the paper.

    Args:
        relevance: ``(n,)``; may be estimated, hence negative: such a document has a negative gain
            2**rel - 1 but no merit below zero.
        groups: ``(n,)``, integer labels.
        lam: the price of a unit of D_group on this relevance: at 0 the documents are sorted (ties
            by index), at ``math.inf`` no disparity is allowed.
        gain: of a grade, in the utility.
        position_bias: ``(n,)``; v_j = 1/log2(1+j) by default.
        fairness: options of `group_rows`. With ``two_sided=True`` neither group may be ahead, so
            that ``lam=math.inf`` is the equality of Singh & Joachims (2018).

    Raises:
        InfeasibleError: nothing meets the hard constraint (the equality cannot always be met).

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
    # Without a constraint, or where sorting meets it, sorting is optimal: no programme is needed.
    if lam == 0 or len(rows.rows) == 0 or rows.disparity(best @ bias) == 0:
        return best
    return torch.from_numpy(_solve(utility.numpy(), bias.numpy(), rows, lam))


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
    optimize, sparse = (require(f"scipy.{part}", "experiments") for part in ("optimize", "sparse"))
    n, rows, slack = len(utility), fairness.rows.numpy(), fairness.slack.numpy()
    # Rows of entries up to one, whatever the unit of merit; a slack is rescaled with its rows.
    scale = np.zeros(len(fairness.weight))
    np.maximum.at(scale, slack, np.abs(rows).max(1))
    rows, price = rows / scale[slack, None], lam * fairness.weight.numpy() * scale
    if math.isinf(lam):
        slack, price = slack[:0], price[:0]
    # The sums of P's rows and of its columns are one; then fairness, less its slack.
    eye, ones, none = sparse.identity(n), np.ones((1, n)), sparse.csr_matrix((n, len(price)))
    shape = (len(rows), len(price))
    charge = sparse.csr_matrix((-np.ones(len(slack)), (np.arange(len(slack)), slack)), shape=shape)
    blocks = [(sparse.kron(eye, ones), none), (sparse.kron(ones, eye), none)]
    left = sparse.bmat([*blocks, (sparse.kron(rows, bias[None]), charge)], format="csc")
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
    if result.x is None or not result.success:
        raise RuntimeError(
            f"fair_ranking_lp: HiGHS gave no optimum for {n} documents: {result.message}"
        )
    return _balanced("fair_ranking_lp", np.clip(result.x[: n * n].reshape(n, n), 0.0, 1.0))


def birkhoff(P: Tensor) -> tuple[Tensor, Tensor]:
    """Weights ``(T,)`` and rankings ``(T, n)`` whose mixture has the probabilities ``P (n, n)``.

    Each step takes the ranking whose entries have the largest product and subtracts as much of it
    as the matrix holds. That empties an entry, so at most (n-1)**2 + 1 rankings are needed, and the
    first few carry most of the probability. To show a ranking, draw one by its weight:
    ``rankings[torch.multinomial(weights, 1)]``.

    Chapter 9.

    >>> weights, rankings = birkhoff(torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    >>> weights.tolist(), rankings.tolist()
    ([0.75, 0.25], [[0, 1], [1, 0]])
    """
    assign = require("scipy.optimize", "experiments").linear_sum_assignment
    _check.floating("birkhoff", "P", P)
    _check.finite("birkhoff", "P", P)
    rest = _balanced("birkhoff", P.detach().cpu().double().numpy())
    positions = np.arange(len(rest))
    taken: list[tuple[float, np.ndarray]] = []
    while 1.0 - sum(weight for weight, _ in taken) > _REST:
        # An empty entry costs more than any ranking without one gains.
        logarithm = np.log(rest, out=np.full_like(rest, -1e4), where=rest > _ZERO)
        documents = assign(logarithm.T, maximize=True)[1]
        weight = float(rest[documents, positions].min())
        if weight <= _ZERO:  # only rounding is left
            break
        rest[documents, positions] -= weight
        taken.append((weight, documents))
    weights = torch.tensor([weight for weight, _ in taken], dtype=torch.float64)
    if weights.sum() < 1.0 - 10 * _REST:
        raise RuntimeError(f"birkhoff: {1.0 - weights.sum():.1e} of P was not decomposed.")
    return weights / weights.sum(), torch.from_numpy(np.stack([ranking for _, ranking in taken]))


def _balanced(where: str, matrix: np.ndarray) -> np.ndarray:
    """A copy of ``matrix (n, n)`` whose rows and columns sum to one to the last digits."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{where}: P has shape {matrix.shape}; give one square matrix (n, n).")
    off = max(abs(matrix.sum(axis) - 1.0).max() for axis in (0, 1))
    if off > _TOLERANCE or matrix.min() < -_TOLERANCE:
        raise ValueError(
            f"{where}: P of shape {matrix.shape} has sums off by {off:.1e} and smallest entry "
            f"{matrix.min():.1e}; give a doubly stochastic matrix (rows and columns sum to one)."
        )
    matrix = np.where(matrix < _ZERO, 0.0, matrix)
    for _ in range(20):
        matrix /= matrix.sum(1, keepdims=True)
        matrix /= matrix.sum(0, keepdims=True)
    return matrix
