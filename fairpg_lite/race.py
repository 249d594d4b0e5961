r"""The exponential race behind a Plackett-Luce ranking, integrated instead of sampled (chapter 4).

Document i arrives at time :math:`T_i \sim \mathrm{Exp}(w_i)`, :math:`w_i = e^{s_i}`, and the order
of arrival is a Plackett-Luce ranking. At time t the others have arrived independently, each with
probability :math:`1 - e^{-w_j t}`, so the number ahead of i is a sum of independent coins and

.. math:: G_i(z) = E[z^{\mathrm{rank}(i) - 1}]
          = \int_0^\infty w_i e^{-w_i t} \prod_{j \ne i} \bigl(z + (1 - z) e^{-w_j t}\bigr) dt .

Everything exact in this package is a weighted sum of :math:`G_i(z_m)` over a few nodes z_m.
"""

import math

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Elements of the largest temporary; longer grids are walked in pieces of this size.
_CHUNK = 4_000_000


def log_weights(scores: Tensor, mask: Tensor | None = None, tolerance: float = 1e-10) -> Tensor:
    """Scores ``(…, n)`` to log-weights ``(…, n)`` of a race whose weights sum to one.

    A gap between neighbouring scores so wide that an overtaking has probability below ``tolerance``
    is narrowed to the least such gap. Exposure does not notice, and scores of ±1e4 cost no more
    than scores of ±40. Padding gets ``-inf``: it never arrives.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    n = scores.shape[-1]
    widest = 3.0 - math.log(tolerance) + 2.0 * math.log(n)
    if n > 1 and float(_spread(scores)) > widest:
        ordered, order = scores.sort(dim=-1, descending=True)
        gaps = (ordered[..., :-1] - ordered[..., 1:]).nan_to_num(0.0).clamp(max=widest)
        depth = torch.nn.functional.pad(gaps.cumsum(-1), (1, 0))
        narrowed = torch.zeros_like(scores).scatter(-1, order, -depth)
        scores = narrowed if mask is None else narrowed.masked_fill(~mask, -math.inf)
    return scores.log_softmax(-1)


def _spread(scores: Tensor) -> Tensor:
    """Widest difference between two real documents of a query, over all queries (0-d)."""
    lowest = scores.detach().masked_fill(scores == -math.inf, math.inf).amin(-1)
    return (scores.detach().amax(-1) - lowest).amax()


def time_grid(log_w: Tensor, step: float, tolerance: float) -> tuple[Tensor, Tensor]:
    r"""Log-times and quadrature weights ``(Q,)`` of a trapezoid sum for :math:`\int f(t)\,dt/t`.

    With :math:`\log t = x - e^{-x}` the integrand dies doubly exponentially at both ends, where
    the trapezoid rule converges exponentially in 1/step. The ends are cut at ``tolerance``.
    """
    reach = -math.log(tolerance)
    lowest = log_w.detach().masked_fill(log_w == -math.inf, math.inf).amin()
    last = float(-lowest) + math.log(reach)
    # x - exp(-x) = -reach at the left end: two Newton steps from a close guess are plenty.
    first = -math.log(reach)
    for _ in range(4):
        first -= (first - math.exp(-first) + reach) / (1.0 + math.exp(-first))
    count = max(2, math.ceil((last - first) / step) + 1)
    x = first + step * torch.arange(count, dtype=torch.float64, device=log_w.device)
    decay = torch.exp(-x)
    return (x - decay).to(log_w.dtype), (step * (1.0 + decay)).to(log_w.dtype)


class RankGeneratingFunction(torch.autograd.Function):
    """``G_i(z_m)``: log_w ``(…, n)`` and nodes ``(M,)`` to ``(…, n, M)``.

    The gradient with respect to ``log_w`` is written out (chapter 8 derives it and the tests check
    it against ordinary autograd): it needs no logarithm and keeps nothing but ``log_w``.
    """

    @staticmethod
    def forward(ctx, log_w: Tensor, nodes: Tensor, log_t: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(log_w, nodes, log_t, weight)
        total = log_w.new_zeros((*log_w.shape, len(nodes)), dtype=nodes.dtype).transpose(-1, -2)
        for piece in _pieces(log_w, nodes, log_t):
            _, arrival, others, _ = _race(log_w, nodes, log_t[piece])
            density = weight[piece].unsqueeze(-1) * arrival
            total = total + (density.unsqueeze(-2) * others).sum(-3)
        return total.transpose(-1, -2)

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream: Tensor):  # type: ignore[override]
        log_w, nodes, log_t, weight = ctx.saved_tensors
        pull = upstream.conj().transpose(-1, -2).unsqueeze(-3)  # (…, 1, M, n)
        grad = torch.zeros_like(log_w)
        for piece in _pieces(log_w, nodes, log_t):
            y, arrival, others, slope = _race(log_w, nodes, log_t[piece])
            own = pull * others * (weight[piece].unsqueeze(-1) * arrival).unsqueeze(-2)
            # Moving log w_k changes k's own arrival density ...
            direct = own.sum(-2) * (1.0 - y)
            # ... and the chance that k is ahead of each of the others.
            indirect = ((own.sum(-1, keepdim=True) - own) * slope).sum(-2) * arrival
            both = direct - indirect
            grad = grad + (both.real if both.is_complex() else both).sum(-2)
        return grad, None, None, None


def _pieces(log_w: Tensor, nodes: Tensor, log_t: Tensor) -> list[slice]:
    """Slices of the time axis whose temporaries stay below ``_CHUNK`` elements."""
    size = max(1, _CHUNK // max(1, log_w.numel() * len(nodes)))
    return [slice(i, i + size) for i in range(0, len(log_t), size)]


def _race(log_w: Tensor, nodes: Tensor, log_t: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The race at times ``log_t (Q,)``.

    Returns ``y = w t`` and the arrival density per unit of log-time, both ``(…, Q, n)``; the
    product over the *other* documents ``(…, Q, M, n)``; and ``(1 - z) / g``, the relative slope
    of a factor ``g``, of the same shape.
    """
    # Past this point exp(-y) is zero anyway; without the clamp y * exp(-y) would be inf * 0.
    latest = math.log(-math.log(torch.finfo(log_w.dtype).tiny))
    log_y = (log_w.unsqueeze(-2) + log_t.unsqueeze(-1)).clamp(max=latest)
    y = log_y.exp()
    waiting = torch.exp(-y)
    z = nodes.unsqueeze(-1)
    factor = z + (1.0 - z) * waiting.unsqueeze(-2)
    inverse = factor.reciprocal()
    others = factor.prod(-1, keepdim=True) * inverse
    return y, y * waiting, others, (1.0 - z) * inverse
