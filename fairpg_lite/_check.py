"""Errors that say what was wrong, where, and how to mend it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

# How many `trusted` blocks this thread is in: two that overlap may end in any order.
_trusting: ContextVar[int] = ContextVar("_trusting", default=0)
# What a stream of random numbers can begin with; a training begins two of them with each seed.
SEED_LIMIT = 2**61


@contextmanager
def trusted() -> Iterator[None]:
    """Skip the checks of values: for a loop over data that was checked before it began."""
    _trusting.set(_trusting.get() + 1)
    try:
        yield
    finally:
        _trusting.set(_trusting.get() - 1)


def is_whole(value: object) -> bool:
    """Whether ``value`` can count things: an integer of any library, but neither 10.0 nor True."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def seed(where: str, value: Any) -> int:
    """``value`` itself, if a stream of random numbers can begin with it."""
    if not (is_whole(value) and 0 <= value < SEED_LIMIT):
        raise ValueError(f"{where} is {value!r}; give a whole number from 0 up to below 2**61.")
    return int(value)


def kind_of(value: object) -> str:
    """What an error calls a value of the wrong kind."""
    return str(value.dtype) if isinstance(value, Tensor) else f"a {type(value).__name__}"


def floating(where: str, name: str, value: Tensor) -> None:
    """Refuse all but real floating-point tensors with a document on the last axis."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        remedy = f"give a tensor of numbers, torch.as_tensor({name}).double()"
        raise TypeError(f"{where}: {name} is {kind_of(value)}; {remedy}.")
    if value.ndim == 0 or value.shape[-1] == 0:
        found = f"{name} has shape {tuple(value.shape)}"
        raise ValueError(f"{where}: {found}; the last axis must hold at least one document.")


def finite(
    where: str, name: str, value: Tensor, mask: Tensor | None = None, least: float = -math.inf
) -> None:
    """Refuse NaN, infinity and numbers below ``least``, but not in padding (``mask`` False)."""
    if _trusting.get():
        return
    bad = ~torch.isfinite(value) | (value < least)
    bad = bad if mask is None else bad & mask
    if bad.any():
        rule = "finite" if least == -math.inf else "finite and not negative"
        found = f"{name}{bad.nonzero()[0].tolist()} is {value[bad][0].item()}"
        raise ValueError(f"{where}: {found}; it must be {rule}.")


def same_shape(where: str, name: str, value: Tensor, other: str, shape: torch.Size) -> None:
    """One entry of ``value`` for each document."""
    if value.shape != shape:
        found = f"{name} has shape {tuple(value.shape)}, {other} has {tuple(shape)}"
        raise ValueError(f"{where}: {found}; give one entry of {name} per document.")


def real_documents(where: str, mask: Tensor | None, scores: Tensor) -> None:
    """A mask must be boolean, fit the scores, and leave every query at least one document."""
    if mask is None or _trusting.get():
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(f"{where}: mask is {kind_of(mask)}; give a boolean tensor.")
    same_shape(where, "mask", mask, "scores", scores.shape)
    empty = ~mask.any(-1)
    if empty.any():
        found = f"mask{empty.nonzero()[0].tolist()} is False everywhere"
        raise ValueError(f"{where}: {found}; drop empty queries.")


def permutations(
    where: str, rankings: Tensor, shape: torch.Size, mask: Tensor | None = None
) -> None:
    """Rankings ``(S, …, n)`` of documents ``(…, n)`` list each of them once, padding last."""
    if _trusting.get():
        return
    if not isinstance(rankings, Tensor) or rankings.dtype != torch.int64:
        raise TypeError(f"{where}: rankings is {kind_of(rankings)}; give indices, torch.int64.")
    if rankings.shape[-len(shape) :] != shape:
        found = f"rankings has shape {tuple(rankings.shape)} for documents {tuple(shape)}"
        raise ValueError(f"{where}: {found}; list them all, and only add sample axes in front.")
    wrong = (rankings.sort(-1).values != torch.arange(shape[-1], device=rankings.device)).any(-1)
    if wrong.any():
        found = f"rankings{wrong.nonzero()[0].tolist()} = {rankings[wrong][0].tolist()}"
        raise ValueError(f"{where}: {found} is not a permutation; list every document once.")
    if mask is not None:
        real = mask.expand(rankings.shape).gather(-1, rankings)
        early = (real[..., 1:] & ~real[..., :-1]).any(-1)
        if early.any():
            found = f"rankings{early.nonzero()[0].tolist()} places padding before a real document"
            raise ValueError(f"{where}: {found}; padding must come last.")


def not_transformed(where: str) -> None:
    """Refuse `torch.func`, which a gradient written out by hand does not serve."""
    if torch._C._are_functorch_transforms_active():
        found = f"{where} has a gradient of its own, which torch.func (grad, vmap, …) cannot use"
        raise RuntimeError(f"{found}; call backward() or torch.autograd.grad.")


def differentiable_once(what: str) -> None:
    """Refuse a second derivative, in a ``backward`` whose own one autograd would take for zero."""
    if torch.is_grad_enabled():  # there, only if create_graph asks for it
        found = f"{what} can be differentiated once, and create_graph=True asks for more"
        raise RuntimeError(f"{found}; difference its gradient instead.")
