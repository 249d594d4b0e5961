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
        n = self.rankings.shape[-1]
        rebuilt = self.weights.new_zeros(n, n)
        position = torch.arange(n).expand_as(self.rankings)
        weight = self.weights.unsqueeze(-1).expand(self.rankings.shape)
        return rebuilt.index_put((self.rankings, position), weight, accumulate=True)


def birkhoff(P: Tensor) -> Mixture:
    """Rankings and weights whose mixture has the position probabilities ``P (n, n)``, to 1e-9.

    At most (n-1)**2 + 1 rankings: each step takes away as much of one ranking as the matrix
    holds, which empties an entry. Large weights come first, so that a few rankings carry most of
    the probability: a step looks among entries above a threshold that halves when none is left.
    Sums that are off by up to 1e-6 (a float32 matrix) are taken for rounding and evened out first.

    Chapter 9.

    >>> mixture = birkhoff(torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    >>> mixture.weights.tolist(), mixture.rankings.tolist()
    ([0.75, 0.25], [[0, 1], [1, 0]])
    """
    rest = _balanced(P)
    n = len(rest)
    weights: list[float] = []
    rankings: list[np.ndarray] = []
    left, threshold = 1.0, 0.5
    positions = np.arange(n)
    while left > _REST and len(weights) < (n - 1) ** 2 + 1:
        documents, threshold = _ranking_within(rest, threshold)
        if documents is None:
            break
        weight = rest[documents, positions].min()
        rest[documents, positions] -= weight
        weights.append(float(weight))
        rankings.append(documents)
        left -= float(weight)
    if left > 10 * _REST:
        raise RuntimeError(
            f"birkhoff: {left:.1e} of the probability of a matrix of shape {tuple(P.shape)} was "
            "not decomposed; are its rows and columns sums of probabilities that add up to one?"
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


def _balanced(P: Tensor) -> np.ndarray:
    """A float64 copy whose rows and columns sum to one to the last digits."""
    _check.floating("birkhoff", "P", P)
    if P.ndim != 2 or P.shape[0] != P.shape[1]:
        raise ValueError(f"birkhoff: P has shape {tuple(P.shape)}; give one square matrix (n, n).")
    _check.finite("birkhoff", "P", P)
    matrix = P.detach().cpu().double().numpy()
    off = max(abs(matrix.sum(axis) - 1.0).max() for axis in (0, 1))
    if off > _TOLERANCE or matrix.min() < -_TOLERANCE:
        raise ValueError(
            f"birkhoff: P of shape {tuple(P.shape)} has sums off by {off:.1e} and smallest entry "
            f"{matrix.min():.1e}; give a doubly stochastic matrix (rows and columns sum to one)."
        )
    matrix = np.where(matrix < _ZERO, 0.0, matrix)
    for _ in range(20):
        matrix /= matrix.sum(1, keepdims=True)
        matrix /= matrix.sum(0, keepdims=True)
    return matrix


def _ranking_within(rest: np.ndarray, threshold: float) -> tuple[np.ndarray | None, float]:
    """A document for each position with all entries at or above the threshold, lowered if need be.

    None if all that is left is rounding.
    """
    graph = require("scipy.sparse.csgraph", "experiments")
    sparse = require("scipy.sparse", "experiments")
    while threshold > _ZERO:
        documents = graph.maximum_bipartite_matching(
            sparse.csr_matrix(rest >= threshold), perm_type="row"
        )
        if (documents >= 0).all():
            return documents.astype(np.int64), threshold
        threshold /= 2.0
    return None, threshold
