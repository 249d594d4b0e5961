"""Move what a chapter computes from by one part in 10^12; tools/fragile.py runs it in the kernel.

Moved are the numbers that a chapter writes down or draws (torch.tensor, torch.rand, torch.randn
called by the chapter itself), the features of every RankingDataset, and the initial weights of the
module's scorers. Whole numbers stay: they are labels, grades and counts. In float32, which has no
twelve digits, the last bit is moved. Equal numbers stay equal, because the move depends on the
number alone; so a tie that a chapter means remains one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

PART = 1e-12


def moved(x: Tensor) -> Tensor:
    """`x` with every number moved by up to `PART` of itself, or by the last bit of its format."""
    if not torch.is_floating_point(x):
        return x
    part = max(PART, torch.finfo(x.dtype).eps)
    with torch.no_grad():
        way = torch.cos(1e3 * x.double())  # some up, some down, the same for the same number
        new = (x.double() * (1 + part * way)).to(x.dtype)
        return torch.where(x == x.round(), x, new).requires_grad_(x.requires_grad)


def _of_the_chapter(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`make`, whose result is moved if the chapter itself asked for it."""

    @functools.wraps(make)
    def wrapper(*args: Any, **kwargs: Any) -> Tensor:
        made = make(*args, **kwargs)
        return moved(made) if sys._getframe(1).f_globals.get("__name__") == "__main__" else made

    return wrapper


def install() -> None:
    """Wrap what is moved; a second time changes nothing."""
    if hasattr(torch.tensor, "__wrapped__"):
        return
    from fairpg_lite import LinearScorer, MLPScorer
    from fairpg_lite.data import RankingDataset

    for name in ("tensor", "rand", "randn"):
        setattr(torch, name, _of_the_chapter(getattr(torch, name)))

    def moves_features(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def wrapper(self: Any, features: Any, *args: Any, **kwargs: Any) -> None:
            given = moved(features) if isinstance(features, Tensor) else features
            init(self, given, *args, **kwargs)

        return wrapper

    def moves_weights(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            with torch.no_grad():
                for weights in self.parameters():
                    weights.copy_(moved(weights))

        return wrapper

    RankingDataset.__init__ = moves_features(RankingDataset.__init__)  # type: ignore[method-assign]
    for scorer in (LinearScorer, MLPScorer):
        scorer.__init__ = moves_weights(scorer.__init__)  # type: ignore[method-assign]
