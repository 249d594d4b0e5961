"""A doubly stochastic matrix as a lottery over rankings (Birkhoff 1946, von Neumann 1953).

Every such matrix is a weighted mean of permutation matrices. They are found one after the other: a
ranking that uses positive entries only gets the least of those entries as its weight, which makes
at least one entry zero, and the rest is decomposed in the same way. A matrix of n documents needs
at most (n - 1)**2 + 1 rankings (Marcus and Ree 1959).
"""

import numpy as np

# Entries up to this size are rounding, left behind by the subtractions.
_ROUNDING = 1e-14


def decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rankings and weights whose weighted mean is ``matrix``.

    Args:
        matrix: ``(n, n)`` [document, position], rows and columns summing to one.

    Returns:
        The weights ``(L,)``, summing to one, and the rankings ``(L, n)``, the document at each
        position. No ranking uses an entry that is zero.

    >>> weights, rankings = decompose(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> weights.tolist(), rankings.tolist()
    ([0.75, 0.25], [[0, 1], [1, 0]])
    """
    left = np.array(matrix, dtype=np.float64)
    n = len(left)
    documents = np.arange(n)
    assignment = Assignment(left > _ROUNDING)
    weights: list[float] = []
    rankings: list[np.ndarray] = []
    while assignment.complete():
        position_of = assignment.position_of()
        entries = left[documents, position_of]
        weight = float(entries.min())
        weights.append(weight)
        rankings.append(position_of.argsort())
        left[documents, position_of] = entries - weight
        used_up = documents[entries - weight <= _ROUNDING]
        for document in used_up.tolist():
            left[document, position_of[document]] = 0.0
            assignment.forbid(document, int(position_of[document]))
    total = sum(weights)
    if abs(total - 1.0) > 1e-6:
        raise ValueError(
            f"decompose: rankings were found for {total:.9f} of the matrix; "
            "its rows and columns must sum to one."
        )
    return np.array(weights) / total, np.stack(rankings)


class Assignment:
    """Documents on positions, each at most once, along allowed pairs; kept while pairs go away.

    Sets of positions are the bits of integers, so that a search over n documents takes n steps of
    a machine word each, and a pair that goes away costs one search.
    """

    def __init__(self, allowed: np.ndarray):
        n = len(allowed)
        self._allowed = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in allowed]
        self._position_of = [-1] * n
        self._document_at = [-1] * n
        self._free_positions = (1 << n) - 1
        self._free_documents = set(range(n))

    def complete(self) -> bool:
        """Give every document a position; False if the allowed pairs do not suffice."""
        for document in sorted(self._free_documents):
            if not self._place(document):
                return False
            self._free_documents.discard(document)
        return True

    def position_of(self) -> np.ndarray:
        """The position of each document ``(n,)``."""
        return np.array(self._position_of)

    def forbid(self, document: int, position: int) -> None:
        """Take away the pair of a document and the position that it has."""
        self._allowed[document] &= ~(1 << position)
        self._position_of[document] = -1
        self._document_at[position] = -1
        self._free_positions |= 1 << position
        self._free_documents.add(document)

    def _place(self, document: int) -> bool:
        """Find a free position for a document, moving others along an alternating path."""
        seen = 0
        reached_from: dict[int, int] = {}
        queue = [document]
        for mover in queue:
            reachable = self._allowed[mover] & ~seen
            free = reachable & self._free_positions
            if free:
                position = _lowest_bit(free)
                self._free_positions &= ~(1 << position)
                self._move_along(reached_from, mover, position)
                return True
            seen |= reachable
            while reachable:
                position = _lowest_bit(reachable)
                reachable &= reachable - 1
                reached_from[position] = mover
                queue.append(self._document_at[position])
        return False

    def _move_along(self, reached_from: dict[int, int], mover: int, position: int) -> None:
        """Put ``mover`` on ``position``, whoever reached mover's old position there, and so on."""
        while True:
            left_behind = self._position_of[mover]
            self._position_of[mover] = position
            self._document_at[position] = mover
            if left_behind < 0:
                return
            position = left_behind
            mover = reached_from[left_behind]


def _lowest_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
