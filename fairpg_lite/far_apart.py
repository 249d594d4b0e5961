"""Races with scores far apart: at any time only a few documents are on their way.

A race of scores that spread over thousands has thousands of times at which it is looked at, but at
each of them most documents have arrived for certain, or cannot have arrived yet. Documents are
sorted by weight, and a stretch of looks is run with those in between only.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from fairpg_lite._memory import pieces

# Looks, and cells of all looks, from which on a race is cut into windows.
_MANY_LOOKS = 1000
_MANY_CELLS = 100_000_000
# Looks in one window.
_STRETCH = 64
# With y above the first, exp(-y) is below rounding; so is 1 - exp(-y) with y below the second.
_ARRIVED = math.log(45.0)
_WAITING = -45.0


class Rule(NamedTuple):
    """Nodes z and coefficients a ``(M,)``; log-times, and the weight of each look ``(Q,)``."""

    nodes: Tensor
    coefficients: Tensor
    log_t: Tensor
    weight: Tensor

    def pieces(self, cells_per_node: int) -> list["Rule"]:
        """The same rule a few looks at a time, so that a race of them fits into memory."""
        slices = pieces(len(self.log_t), cells_per_node * len(self.nodes))
        return [self.at(part) for part in slices]

    def at(self, looks: slice) -> "Rule":
        """The same rule at some of its looks."""
        return self._replace(log_t=self.log_t[looks], weight=self.weight[looks])


class Window(NamedTuple):
    """The documents that are on their way during a stretch of looks: W of n, for B queries."""

    rule: Rule
    """The looks of the stretch."""
    log_w: Tensor
    """Log-weights ``(W, B)``; -inf where a query has fewer documents on their way."""
    passing: Tensor | None
    """What a document ahead counts ``(W, B)``, or None."""
    ahead: Tensor
    """Product of the factors of those that have arrived before, ``(M, B)``."""
    documents: Tensor
    """Their numbers, ``(W, B)``."""

    def of(self, values: Tensor) -> Tensor:
        """The rows of ``values (n, …, B)`` that belong to the window, ``(W, …, B)``."""
        return values.gather(0, self._index(values))

    def add(self, values: Tensor, total: Tensor) -> None:
        """Add ``values (W, …, B)`` to the rows of ``total (n, …, B)`` that they belong to."""
        total.scatter_add_(0, self._index(values), values)

    def _index(self, values: Tensor) -> Tensor:
        """The documents' numbers, repeated along the axes in between."""
        middle = values.shape[1:-1]
        index = self.documents.view(len(self.documents), *(1 for _ in middle), -1)
        return index.expand(-1, *middle, -1)


def is_far_apart(log_w: Tensor, rule: Rule) -> bool:
    """Whether a race of ``log_w (n, B)`` has so many looks that windows pay."""
    looks = len(rule.log_t)
    return looks > _MANY_LOOKS and looks * log_w.numel() * len(rule.nodes) > _MANY_CELLS


def windows(log_w: Tensor, rule: Rule, passing: Tensor | None = None) -> Iterator[Window]:
    """The windows of a race, one stretch of looks after the other.

    Args:
        log_w: Log-weights, ``(n, B)``.
        rule: Nodes and looks.
        passing: What a document ahead counts, ``(n, B)``; None is 1.

    Returns:
        Windows that cover all looks. What is left out of them is below rounding.
    """
    ordered, order = log_w.sort(dim=0, descending=True)
    n = len(ordered)
    passed = torch.ones_like(ordered[:1])
    if passing is not None:
        passing = passing.gather(0, order)
        passed = torch.cat([passed, passing.cumprod(0)])
    for start in range(0, len(rule.log_t), _STRETCH):
        stretch = rule.at(slice(start, start + _STRETCH))
        arrived = (ordered + stretch.log_t[0] > _ARRIVED).sum(0)
        started = (ordered + stretch.log_t[-1] > _WAITING).sum(0)
        width = max(1, int((started - arrived).amax()))
        place = arrived + torch.arange(width, device=log_w.device).unsqueeze(-1)
        inside = place < started
        place = place.clamp(max=n - 1)
        ahead = rule.nodes.unsqueeze(-1) ** arrived
        if passing is not None:
            ahead = ahead * passed.gather(0, arrived.unsqueeze(0))
        yield Window(
            stretch,
            ordered.gather(0, place).masked_fill(~inside, -math.inf),
            None if passing is None else passing.gather(0, place),
            ahead,
            order.gather(0, place),
        )
