r"""Exact exposure of the first k places: the race until k have arrived.

If only k places are paid, document i's exposure needs the chance that m others are ahead of it for
m < k only. At time t, document j has arrived with probability :math:`p_j = 1 - q_j`,
:math:`q_j = e^{-w_j t}`, so with :math:`[z^m]` the coefficient of :math:`z^m`

.. math:: v_\pi(d_i) = \int_0^\infty w_i q_i \sum_{m < k} v_{m + 1}
          [z^m] \prod_{j \ne i} (q_j + p_j z)\, dt ,

where all products are polynomials cut off at degree k. They are made in a tree: two documents,
four, eight and so on. On the way back down, each knot is told what its outside contributes, so
that no factor is ever divided out; every number is a sum of products of probabilities, and nothing
cancels. The integral is a trapezoid sum that ends when more than k have arrived for certain.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairpg_lite._check import differentiable_once
from fairpg_lite._memory import pieces
from fairpg_lite.nodes import first_times, log_weights, reachable

#: With more places than this, nodes on a circle are quicker.
MOST_PLACES = 64
# Cells up to which a table of all products is quicker than adding them one by one.
_SMALL = 50_000
# Logarithm of the y past which exp(-y) is zero for any purpose, in float32 too.
_LATEST = math.log(60.0)


def is_short(places: int, n: int) -> bool:
    """Whether ``places`` paid positions of ``n`` are so few that this way is the quicker one."""
    return 3 * places < n and places <= MOST_PLACES


def first_places_exposure(
    scores: Tensor,
    bias: Tensor,
    mask: Tensor | None,
    tolerance: float,
    passing: Tensor | None = None,
) -> Tensor:
    """Exposure of a Plackett-Luce policy if only the first k positions are paid.

    Args:
        scores: ``(…, n)``.
        bias: ``(k,)``, the position bias of the first k positions.
        mask: ``(…, n)``, True for a real document; None: all are real.
        tolerance: Order of the error; no finer than the number format allows.
        passing: ``(…, n)``, the share of readers who read on after a document; None: all do.

    Returns:
        ``(…, n)``; without ``passing`` it has an exact gradient in the scores.
    """
    if scores.numel() == 0:  # no query
        return scores.clone()
    tolerance = reachable(tolerance, scores.dtype)
    log_w = log_weights(scores, mask, tolerance)
    log_t, weight = first_times(log_w, len(bias), tolerance)
    exposure: Tensor = FirstPlaces.apply(  # type: ignore[no-untyped-call]
        log_w, bias.to(scores), log_t, weight, passing
    )
    return exposure


class Start(NamedTuple):
    """Documents at the looks of a piece, X looks of all queries altogether."""

    y: Tensor
    """Weight times time ``(n, X)``."""
    arrival: Tensor
    """Arrival density per unit of log-time, times the weight of the look ``(n, X)``."""
    factors: Tensor
    """The polynomial q + p z of each document, ``(1 or 2, n, X)``."""


class FirstPlaces(torch.autograd.Function):
    """`first_places_exposure` of log-weights ``(…, n)`` at log-times ``(Q,)``.

    ``weight (Q, B)`` is that of each look for each of the B queries.
    """

    @staticmethod
    def forward(
        ctx: Any,
        log_w: Tensor,
        bias: Tensor,
        log_t: Tensor,
        weight: Tensor,
        passing: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(log_w, bias, log_t, weight)
        flat = _documents_first(log_w)
        n = len(flat)
        passing = None if passing is None else _documents_first(passing)
        total = torch.zeros_like(flat)
        looks = pieces(len(log_t), flat.numel() * len(bias))
        for look in looks:
            start = _start(flat, log_t[look], weight[look], len(bias), passing)
            products = _upward(start.factors, len(bias))
            outside = _downward(products, bias)
            total += _by_query(start.arrival * outside[0][0, :n], flat.shape[1])
        keeps_tree = len(looks) == 1 and ctx.needs_input_grad[0]
        ctx.tree = (start, products, outside) if keeps_tree else None
        return total.transpose(0, 1).reshape(log_w.shape)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        differentiable_once("exact exposure")
        log_w, bias, log_t, weight = ctx.saved_tensors
        k = len(bias)
        flat = _documents_first(log_w)
        n = len(flat)
        pull = _documents_first(upstream)
        grad = torch.zeros_like(flat)
        for look in pieces(len(log_t), flat.numel() * k):
            if ctx.tree is None:
                start = _start(flat, log_t[look], weight[look], k, None)
                products = _upward(start.factors, k)
                outside = _downward(products, bias)
            else:
                start, products, outside = ctx.tree
            looks = start.y.shape[1] // flat.shape[1]
            pulled = start.arrival * pull.repeat(1, looks)
            # Moving log w_j changes j's own arrival density, and its lead over each of the others.
            direct = pulled * outside[0][0, :n] * (1.0 - start.y)
            others = _outside_pulled(products, outside, _upward_pulled(products, pulled, k))
            lead = -others[0, :n] if k == 1 else others[1, :n] - others[0, :n]
            waiting = start.factors[0]
            grad += _by_query(direct + start.y * waiting * lead, flat.shape[1])
        return grad.transpose(0, 1).reshape(log_w.shape), None, None, None, None


def _start(log_w: Tensor, log_t: Tensor, weight: Tensor, k: int, passing: Tensor | None) -> Start:
    """The documents ``log_w (n, B)`` at some looks."""
    y = (log_w.unsqueeze(1) + log_t.unsqueeze(-1)).clamp_(max=_LATEST).exp_().flatten(1)
    waiting = torch.exp(-y)
    arrived = 1.0 - waiting
    if passing is not None:
        arrived = arrived * passing.repeat(1, len(log_t))
    arrival = y * waiting * weight.flatten()
    factors = torch.stack([waiting, arrived][:k])
    return Start(y, arrival, factors)


def _upward(factors: Tensor, k: int) -> list[Tensor]:
    """The products of 1, 2, 4, ... documents, each ``(coefficients, knots, X)``, the root last.

    A knot of the first half is multiplied with one of the second half. Where a level has an odd
    number of knots, a one is put behind them.
    """
    levels = [factors]
    while levels[-1].shape[1] > 1:
        level = levels[-1]
        if level.shape[1] % 2 == 1:
            one = torch.zeros_like(level[:, :1])
            one[0] = 1.0
            level = torch.cat([level, one], dim=1)
            levels[-1] = level
        half = level.shape[1] // 2
        levels.append(product(level[:, :half], level[:, half:], k))
    return levels


def _downward(levels: list[Tensor], bias: Tensor) -> list[Tensor]:
    """What the rest of the race makes of each power of z at each knot, in the shape of `_upward`.

    At the root z^m is worth ``bias[m]``; at a child it is worth what it makes of its sibling's
    coefficients at the parent.
    """
    root = levels[-1]
    outside = [bias[: len(root), None, None].expand_as(root)]
    for level in reversed(levels[:-1]):
        parents = outside[-1][:, : level.shape[1] // 2].unsqueeze(1)
        worth = correlation(parents, _siblings(level), len(level))
        outside.append(worth.flatten(1, 2))
    return outside[::-1]


def _upward_pulled(levels: list[Tensor], pulled: Tensor, k: int) -> list[Tensor]:
    """The derivative of the products of `_upward` by a number that is added to all factors.

    Document j's factor gets ``pulled[j]`` times that number. The root is left out.
    """
    slopes = []
    slope = pulled.unsqueeze(0)
    for level in levels[:-1]:
        if slope.shape[1] < level.shape[1]:
            slope = torch.cat([slope, torch.zeros_like(slope[:, :1])], dim=1)
        slopes.append(slope)
        slope = product(_pairs(slope), _siblings(level), k).sum(1)
    return slopes


def _outside_pulled(levels: list[Tensor], outside: list[Tensor], slopes: list[Tensor]) -> Tensor:
    """The derivative of `_downward` by the number of `_upward_pulled`, at the documents."""
    found = torch.zeros_like(levels[-1])
    for depth in range(len(levels) - 2, -1, -1):
        level = levels[depth]
        half = level.shape[1] // 2
        parents = outside[depth + 1][:, :half].unsqueeze(1)
        worth = correlation(parents, _siblings(slopes[depth]), len(level))
        worth += correlation(found[:, :half].unsqueeze(1), _siblings(level), len(level))
        found = worth.flatten(1, 2)
    return found


def _pairs(level: Tensor) -> Tensor:
    """``(d, 2 knots, X)`` as ``(d, 2, knots, X)``: the two that are multiplied stand on axis 1."""
    return level.reshape(len(level), 2, -1, level.shape[-1])


def _siblings(level: Tensor) -> Tensor:
    """`_pairs` with the two exchanged."""
    return _pairs(level).flip(1)


def product(first: Tensor, second: Tensor, k: int) -> Tensor:
    """The first k coefficients of products of polynomials.

    Args:
        first: ``(a, …)``, coefficients on the first axis.
        second: ``(b, …)``.
        k: How many coefficients to keep.

    Returns:
        ``(min(k, a + b - 1), …)``.

    >>> z_plus_1 = torch.tensor([1.0, 1.0])
    >>> product(z_plus_1, z_plus_1, 3)
    tensor([1., 2., 1.])
    """
    short, long = (first, second) if len(first) <= len(second) else (second, first)
    size = min(k, len(short) + len(long) - 1)
    if size * short.numel() <= _SMALL:
        windows = _windows(long, len(short) - 1, size, len(short))
        return (windows * short.flip(0)).sum(1)
    out = long.new_zeros(size, *long.shape[1:])
    for power in range(min(len(short), size)):
        width = min(len(long), size - power)
        out[power : power + width].addcmul_(short[power], long[:width])
    return out


def correlation(worth: Tensor, factor: Tensor, size: int) -> Tensor:
    r"""What each power of z is worth before it is multiplied by a factor.

    .. math:: \mathrm{out}_m = \sum_l \mathrm{worth}_{m + l}\, \mathrm{factor}_l

    Args:
        worth: ``(a, …)``, of the powers after the multiplication.
        factor: ``(b, …)``, coefficients.
        size: How many powers to find.

    Returns:
        ``(size, …)``.

    >>> worth = torch.tensor([1.0, 0.5, 0.0])
    >>> correlation(worth, torch.tensor([0.2, 0.8]), 2)
    tensor([0.6000, 0.1000])
    """
    terms = min(len(factor), len(worth))
    if size * factor.numel() <= _SMALL:
        windows = _windows(worth, 0, size, terms)
        return (windows * factor[:terms]).sum(1)
    out = factor.new_zeros(size, *factor.shape[1:])
    for power in range(terms):
        width = min(size, len(worth) - power)
        out[:width].addcmul_(worth[power : power + width], factor[power])
    return out


def _windows(values: Tensor, zeros: int, count: int, width: int) -> Tensor:
    """Windows ``(count, width, …)`` of neighbours on the first axis, with zeros before and behind.

    The first window has so many ``zeros`` before the first value.
    """
    behind = max(0, count + width - 1 - zeros - len(values))
    nothing = (0, 0) * (values.ndim - 1)
    padded = torch.nn.functional.pad(values, (*nothing, zeros, behind))
    return padded.unfold(0, width, 1)[:count].movedim(-1, 1)


def _by_query(cells: Tensor, queries: int) -> Tensor:
    """The sum over looks ``(n, B)`` of cells ``(n, X)``."""
    return cells.reshape(len(cells), -1, queries).sum(1)


def _documents_first(values: Tensor) -> Tensor:
    """``(…, n)`` to ``(n, B)``, all leading axes in one."""
    return values.reshape(-1, values.shape[-1]).transpose(0, 1).contiguous()
