"""From a matrix of probabilities to rankings that can be shown (Birkhoff 1946, von Neumann 1953).

A doubly stochastic matrix says how often each document stands at each position, not in which
rankings. It is a mixture of permutation matrices: draw one of them for each user (chapter 9).
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._extras import require

# A matrix whose sums are off by more is not doubly stochastic; below, it is rounding.
_TOLERANCE = 1e-6
# What may be left over of the probability, and what counts as zero in an entry.
_REST, _ZERO = 1e-10, 1e-14


class Mixture(NamedTuple):
    """``weights (T,)`` that sum to one and ``rankings (T, n)``: the document at each position.

    Chapter 9.
    """

    weights: Tensor
    rankings: Tensor

    def matrix(self) -> Tensor:
        """The probabilities ``(n, n)``, row = document, column = position, of the mixture."""
        shown = torch.nn.functional.one_hot(self.rankings).to(self.weights.dtype)
        return torch.einsum("t,tjd->dj", self.weights, shown)


def birkhoff(P: Tensor) -> Mixture:
    """Rankings and weights whose mixture has the position probabilities ``P (n, n)``, to 1e-9.

    Each step takes the ranking whose entries have the largest product and subtracts as much of it
    as the matrix holds. That empties an entry, so at most (n-1)**2 + 1 rankings are needed, and the
    first few carry most of the probability. Sums that are off by up to 1e-6 (a float32 matrix) are
    taken for rounding and evened out first.

    Chapter 9.

    >>> mixture = birkhoff(torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    >>> mixture.weights.tolist(), mixture.rankings.tolist()
    ([0.75, 0.25], [[0, 1], [1, 0]])
    """
    assign = require("scipy.optimize", "experiments").linear_sum_assignment
    _check.floating("birkhoff", "P", P)
    _check.finite("birkhoff", "P", P)
    rest = balanced("birkhoff", P.detach().cpu().double().numpy())
    positions, most = np.arange(len(rest)), (len(rest) - 1) ** 2 + 1
    weights: list[float] = []
    rankings: list[np.ndarray] = []
    while 1.0 - sum(weights) > _REST and len(weights) < most:
        # An empty entry costs more than any ranking without one gains.
        logarithm = np.log(rest, out=np.full_like(rest, -1e4), where=rest > _ZERO)
        _, documents = assign(logarithm.T, maximize=True)
        weight = float(rest[documents, positions].min())
        if weight <= _ZERO:
            break
        rest[documents, positions] -= weight
        weights.append(weight)
        rankings.append(documents)
    if 1.0 - sum(weights) > 10 * _REST:
        raise RuntimeError(
            f"birkhoff: {1.0 - sum(weights):.1e} of the probability of a matrix of shape "
            f"{tuple(P.shape)} was not decomposed; do its rows and columns sum to one?"
        )
    total = torch.tensor(weights, dtype=torch.float64)
    return Mixture(total / total.sum(), torch.from_numpy(np.stack(rankings)))


def sample_rankings(P: Tensor, S: int, generator: torch.Generator | None = None) -> Tensor:
    """``S`` rankings ``(S, n)`` drawn from a policy with the position probabilities ``P (n, n)``.

    Chapter 9.

    >>> sample_rankings(torch.eye(3), 2).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    if S < 1:
        raise ValueError(f"sample_rankings: S is {S}; draw at least one ranking.")
    mixture = birkhoff(P)
    drawn = torch.multinomial(mixture.weights, S, replacement=True, generator=generator)
    return mixture.rankings[drawn]


def balanced(where: str, matrix: np.ndarray) -> np.ndarray:
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
