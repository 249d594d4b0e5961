"""Errors that say what was wrong, where, and how to mend it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import torch
from torch import Tensor

# How many `trusted` blocks this thread or task is in. A count, because two that overlap (two
# generators, say) need not end in the order in which they began.
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


def floating(where: str, name: str, value: Tensor) -> Tensor:
    """``value`` itself, if it is a real floating-point tensor with at least one axis."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{where}: {name} is a {type(value).__name__}; give a torch tensor, "
            f"e.g. torch.tensor({name}, dtype=torch.float64)."
        )
    if not value.is_floating_point():
        raise TypeError(
            f"{where}: {name} has dtype {value.dtype}; "
            f"give float32 or float64, e.g. {name}.double()."
        )
    if value.ndim == 0 or value.shape[-1] == 0:
        raise ValueError(
            f"{where}: {name} has shape {tuple(value.shape)}; "
            "the last axis must hold at least one document."
        )
    return value


def finite(where: str, name: str, value: Tensor, mask: Tensor | None = None) -> None:
    """Refuse NaN and infinity, but not in padding (``mask`` False)."""
    if not _trusting.get():
        _refuse_first(where, name, value, ~torch.isfinite(value), mask, "it must be finite")


def non_negative(where: str, name: str, value: Tensor, mask: Tensor | None = None) -> None:
    """Refuse numbers below zero as well."""
    finite(where, name, value, mask)
    if not _trusting.get():
        _refuse_first(where, name, value, value < 0, mask, "it must not be negative")


def _refuse_first(
    where: str, name: str, value: Tensor, bad: Tensor, mask: Tensor | None, rule: str
) -> None:
    bad = bad if mask is None else bad & mask
    if bad.any():
        first = torch.nonzero(bad)[0].tolist()
        found = value[tuple(first)].item()
        raise ValueError(f"{where}: {name}{first} is {found}; {rule}.")


def representable(where: str, name: str, value: Tensor, relevance: Tensor) -> None:
    """A function of a finite relevance may still be too large for the number format."""
    if _trusting.get():
        return
    bad = ~torch.isfinite(value)
    if bad.any():
        raise ValueError(
            f"{where}: {name} of relevance {relevance[bad][0].item()} is {value[bad][0].item()} in "
            f"{value.dtype}; give grades on a smaller scale, another gain, or float64."
        )


def same_shape(where: str, name: str, value: Tensor, other: str, shape: torch.Size) -> None:
    """One entry of ``value`` for each document."""
    if value.shape != shape:
        raise ValueError(
            f"{where}: {name} has shape {tuple(value.shape)}, {other} has {tuple(shape)}; "
            f"give one entry of {name} per document."
        )


def real_documents(where: str, mask: Tensor, scores: Tensor) -> None:
    """A mask must be boolean, fit the scores, and leave every query at least one document."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(
            f"{where}: mask is {kind}; give a boolean tensor, True for a real document."
        )
    same_shape(where, "mask", mask, "scores", scores.shape)
    empty = ~mask.any(-1)
    if empty.any():
        raise ValueError(
            f"{where}: mask{torch.nonzero(empty)[0].tolist()} is False everywhere; a query needs "
            "at least one document. Drop empty queries before batching."
        )


def permutations(
    where: str, rankings: Tensor, shape: torch.Size, mask: Tensor | None = None
) -> None:
    """Rankings ``(S, …, n)`` of documents ``(…, n)`` list each of them once, padding last."""
    if _trusting.get():
        return
    if not isinstance(rankings, Tensor) or rankings.dtype != torch.int64:
        kind = rankings.dtype if isinstance(rankings, Tensor) else type(rankings).__name__
        raise TypeError(f"{where}: rankings is {kind}; give an int64 tensor of document indices.")
    n = shape[-1]
    if rankings.shape[-len(shape) :] != shape:
        raise ValueError(
            f"{where}: rankings has shape {tuple(rankings.shape)} for documents {tuple(shape)}; "
            f"the last axis must list the {n} in ranked order, and rankings may only add sample "
            "axes in front."
        )
    wrong = (rankings.sort(-1).values != torch.arange(n, device=rankings.device)).any(-1)
    if wrong.any():
        first = torch.nonzero(wrong)[0].tolist()
        raise ValueError(
            f"{where}: rankings{first} = {rankings[tuple(first)].tolist()} is not a permutation of "
            f"0..{n - 1}; every document must stand at exactly one position."
        )
    if mask is None:
        return
    real = mask.expand(rankings.shape).gather(-1, rankings)
    misplaced = (real[..., 1:] & ~real[..., :-1]).any(-1)
    if misplaced.any():
        raise ValueError(
            f"{where}: rankings{torch.nonzero(misplaced)[0].tolist()} places padding before a real "
            "document; padding must come last."
        )


def not_transformed(where: str) -> None:
    """Refuse `torch.func` (grad, hessian, vmap, …) where a gradient is written out by hand."""
    if torch._C._are_functorch_transforms_active():
        raise RuntimeError(
            f"{where} has a gradient of its own, which torch.func (grad, hessian, vmap, …) cannot "
            "use; call backward() or torch.autograd.grad, and difference that for more."
        )


class _NotTwice(torch.autograd.Function):
    """A gradient as it is, that says so when somebody differentiates it."""

    @staticmethod
    def forward(ctx: Any, what: str, gradient: Tensor, *sources: Tensor) -> Tensor:
        ctx.what = what
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> None:
        raise RuntimeError(
            f"{ctx.what} can be differentiated once, and this asks for a second derivative; "
            "differentiate its gradient by finite differences instead."
        )


def differentiable_once(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For a ``backward`` whose own derivative is unknown: an error instead of a silent zero.

    PyTorch's ``once_differentiable`` raises only if the incoming gradient has a history; that of
    ``torch.autograd.functional.hessian`` has none. The first gradient returned is guarded.
    """

    def decorate(backward: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(backward)
        def guarded(ctx: Any, *upstream: Tensor) -> Any:
            with torch.no_grad():
                first, *rest = backward(ctx, *upstream)
            if torch.is_grad_enabled():
                sources = [t for t in (*upstream, *ctx.saved_tensors) if t.requires_grad]
                first = _NotTwice.apply(what, first, *sources)
            return first, *rest

        return guarded

    return decorate
