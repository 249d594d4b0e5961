"""Rows that come in any order, gathered by query."""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np


class Gathered(NamedTuple):
    """The queries `ids`, in the order in which they first occur, and where their rows are.

    `rows (N,)` lists the rows query by query, each query's in their first order; query i owns
    `rows[offsets[i]:offsets[i + 1]]`.
    """

    ids: list[Hashable]
    rows: np.ndarray
    offsets: np.ndarray


def gather(query_of_row: Iterable[Hashable]) -> Gathered:
    """Return the rows of each query, given the query of each row.

    >>> gather(["b", "a", "b"])
    Gathered(ids=['b', 'a'], rows=array([0, 2, 1]), offsets=array([0, 2, 3]))
    """
    number_of: dict[Hashable, int] = {}
    numbers = np.array([number_of.setdefault(query, len(number_of)) for query in query_of_row])
    rows = np.argsort(numbers, kind="stable")
    ends = np.bincount(numbers).cumsum()
    return Gathered(list(number_of), rows, np.concatenate([[0], ends]))
