"""Errors that say what was wrong, where, and how to mend it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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


def is_trusted() -> bool:
    """Whether this thread is in a `trusted` block."""
    return _trusting.get() > 0


def is_whole(value: object) -> bool:
    """Whether ``value`` can count things: an integer of any library, but neither 10.0 nor True."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def seed(where: str, value: object) -> int:
    """``value`` as an int, if a stream of random numbers can begin with it."""
    number = int(value) if is_whole(value) else -1  # type: ignore[call-overload]
    if not 0 <= number < SEED_LIMIT:
        raise ValueError(f"{where} is {value!r}; give a whole number from 0 up to below 2**61.")
    return number


def kind_of(value: object) -> str:
    """What an error calls a value of the wrong kind."""
    return str(value.dtype) if isinstance(value, Tensor) else f"a {type(value).__name__}"


def floating(where: str, name: str, value: object) -> None:
    """Refuse all but real floating-point tensors with a document on the last axis."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        raise TypeError(
            f"{where}: {name} is {kind_of(value)}; give a tensor of numbers, "
            f"torch.as_tensor({name}).double()."
        )
    if value.ndim == 0 or value.shape[-1] == 0:
        raise ValueError(
            f"{where}: {name} has shape {tuple(value.shape)}; "
            "the last axis must hold at least one document."
        )


def finite(
    where: str, name: str, value: Tensor, mask: Tensor | None = None, least: float = -math.inf
) -> None:
    """Refuse NaN, infinity and numbers below ``least``, but not in padding (``mask`` False)."""
    if is_trusted():
        return
    bad = ~torch.isfinite(value) | (value < least)
    if mask is not None:
        bad = bad & mask
    if bad.any():
        index = bad.nonzero()[0].tolist()
        rule = "finite" if least == -math.inf else "finite and not negative"
        raise ValueError(f"{where}: {name}{index} is {value[bad][0].item()}; it must be {rule}.")


def same_shape(where: str, name: str, value: Tensor, other: str, shape: torch.Size) -> None:
    """Refuse all but one entry of ``value`` for each document."""
    if value.shape != shape:
        raise ValueError(
            f"{where}: {name} has shape {tuple(value.shape)}, {other} has {tuple(shape)}; "
            f"give one entry of {name} per document."
        )


def real_documents(where: str, mask: Tensor | None, scores: Tensor) -> None:
    """Refuse a mask that is not boolean, does not fit the scores, or leaves a query empty."""
    if mask is None or is_trusted():
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(f"{where}: mask is {kind_of(mask)}; give a boolean tensor.")
    same_shape(where, "mask", mask, "scores", scores.shape)
    empty = ~mask.any(-1)
    if empty.any():
        index = empty.nonzero()[0].tolist()
        raise ValueError(f"{where}: mask{index} is False everywhere; drop empty queries.")


def permutations(
    where: str, rankings: Tensor, shape: torch.Size, mask: Tensor | None = None
) -> None:
    """Refuse rankings ``(S, …, n)`` that do not list each document once, padding last."""
    if is_trusted():
        return
    if not isinstance(rankings, Tensor) or rankings.dtype != torch.int64:
        raise TypeError(f"{where}: rankings is {kind_of(rankings)}; give indices, torch.int64.")
    if rankings.shape[-len(shape) :] != shape:
        raise ValueError(
            f"{where}: rankings has shape {tuple(rankings.shape)} for documents {tuple(shape)}; "
            "list them all, and only add sample axes in front."
        )
    documents = torch.arange(shape[-1], device=rankings.device)
    wrong = (rankings.sort(-1).values != documents).any(-1)
    if wrong.any():
        index = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{where}: rankings{index} = {rankings[wrong][0].tolist()} is not a permutation; "
            "list every document once."
        )
    padding_last(where, rankings, mask)


def first_places(
    where: str, rankings: Tensor, shape: torch.Size, mask: Tensor | None = None
) -> None:
    """Refuse lists ``(S, …, k)`` of the first k of n documents that name one twice."""
    if is_trusted():
        return
    if not isinstance(rankings, Tensor) or rankings.dtype != torch.int64:
        raise TypeError(f"{where}: rankings is {kind_of(rankings)}; give indices, torch.int64.")
    k = rankings.shape[-1]
    if k > shape[-1]:
        raise ValueError(f"{where}: rankings lists {k} documents of {shape[-1]}; list fewer.")
    queries = shape[:-1]
    if rankings.shape[:-1][len(rankings.shape) - 1 - len(queries) :] != queries:
        raise ValueError(
            f"{where}: rankings has shape {tuple(rankings.shape)} for documents {tuple(shape)}; "
            "only add sample axes in front."
        )
    outside = (rankings < 0) | (rankings >= shape[-1])
    rising = rankings.sort(-1).values
    wrong = outside.any(-1) | (rising[..., 1:] == rising[..., :-1]).any(-1)
    if wrong.any():
        index = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{where}: rankings{index} = {rankings[wrong][0].tolist()} does not name {k} different "
            f"documents of {shape[-1]}."
        )
    padding_last(where, rankings, mask)


def padding_last(where: str, rankings: Tensor, mask: Tensor | None) -> None:
    """Refuse rankings ``(S, …, k)`` that place padding before a real document."""
    if mask is None:
        return
    is_real = mask.expand(*rankings.shape[:-1], mask.shape[-1]).gather(-1, rankings)
    too_early = (is_real[..., 1:] & ~is_real[..., :-1]).any(-1)
    if too_early.any():
        index = too_early.nonzero()[0].tolist()
        raise ValueError(
            f"{where}: rankings{index} places padding before a real document; "
            "padding must come last."
        )


def not_transformed(where: str) -> None:
    """Refuse `torch.func`, which a gradient written out by hand does not serve."""
    if torch._C._are_functorch_transforms_active():
        raise RuntimeError(
            f"{where} has a gradient of its own, which torch.func (grad, vmap, …) cannot use; "
            "call backward() or torch.autograd.grad."
        )


def differentiable_once(what: str) -> None:
    """Refuse a second derivative, in a ``backward`` whose own one autograd would take for zero."""
    if torch.is_grad_enabled():  # in a backward, only if create_graph asks for it
        raise RuntimeError(
            f"{what} can be differentiated once, and create_graph=True asks for more; "
            "difference its gradient instead."
        )
