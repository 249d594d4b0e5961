r"""The log-probability of a ranking and its gradient, written out (chapters 3 and 6).

With the documents in ranked order, :math:`\log\pi = \sum_k (s_k - \log R_k)` where
:math:`R_k = \sum_{l \ge k} e^{s_l}` is what remains, and
:math:`\partial \log\pi / \partial s_l = 1 - \sum_{k \le l} e^{s_l} / R_k`: one, less the chance of
being picked at each draw that the document was still in. Two running sums give both.
"""

import math
from typing import Any

import torch
from torch import Tensor

from fairpg_lite._check import differentiable_once


def _in_order(scores: Tensor, rankings: Tensor, mask: Tensor | None) -> tuple[Tensor, bool]:
    """Scores by position ``(S, …, n)``, padding -inf; and whether plain exponentials are safe."""
    shifted = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    shifted = shifted - shifted.detach().amax(-1, keepdim=True)
    lowest = shifted.masked_fill(shifted == -math.inf, 0.0) if mask is not None else shifted
    least = 0.8 * math.log(torch.finfo(scores.dtype).tiny)
    safe = lowest.numel() == 0 or float(lowest.detach().amin()) > least
    return shifted.expand(rankings.shape).gather(-1, rankings), safe


def _suffix(running: Any, values: Tensor) -> Tensor:
    return running(values.flip(-1), -1).flip(-1)


def _real(values: Tensor, rankings: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return values
    return torch.where(mask.expand(rankings.shape).gather(-1, rankings), values, 0.0)


def log_steps(scores: Tensor, rankings: Tensor, mask: Tensor | None) -> Tensor:
    """Log-probability of each draw ``(S, …, n)``: score less log of what remains."""
    placed, safe = _in_order(scores, rankings, mask)
    if safe:
        remaining = _suffix(torch.cumsum, placed.exp()).log()
    else:
        remaining = _suffix(torch.logcumsumexp, placed)
    return _real(placed - remaining, rankings, mask)


def log_slopes(scores: Tensor, rankings: Tensor, mask: Tensor | None) -> Tensor:
    """Derivative of log pi by the score of the document at each position ``(S, …, n)``."""
    placed, safe = _in_order(scores, rankings, mask)
    if safe:
        weight = placed.exp()
        picked = weight * _suffix(torch.cumsum, weight).reciprocal().cumsum(-1)
    else:
        remaining = _suffix(torch.logcumsumexp, placed)
        picked = (placed + torch.logcumsumexp(-remaining, -1)).exp()
    return _real(1.0 - picked, rankings, mask)


class ScoreFunction(torch.autograd.Function):
    """``mean (…)`` or ``(…, n)`` of values of S rankings; backward, the score-function estimator.

    ``advantage``, with the samples in front, is each value less the baseline.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        mean: Tensor,
        advantage: Tensor,
        rankings: Tensor,
        mask: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(scores, advantage, rankings)
        ctx.mask = mask
        return mean.view_as(mean)

    @staticmethod
    @differentiable_once("a mean over sampled rankings")
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, advantage, rankings = ctx.saved_tensors
        coefficient = upstream * advantage
        if advantage.ndim == rankings.ndim:
            coefficient = coefficient.sum(-1)
        by_position = coefficient.unsqueeze(-1) * log_slopes(scores, rankings, ctx.mask)
        by_document = torch.zeros_like(by_position).scatter_(-1, rankings, by_position)
        return by_document.mean(0), upstream, None, None, None
