r"""Reward-to-go: each draw of a ranking answers for what is paid from its place on.

The paper multiplies the whole reward of a ranking with the slope of its whole log-probability. But
the documents above a place were chosen before the draw at that place, so what they are paid says
nothing about it. With :math:`g_i` the slope of an objective by the exposure of document i,

.. math:: \nabla \approx \frac1S \sum_s \sum_k (G_k - b_k)\, \nabla \log p_k , \qquad
          G_k = \sum_{j \ge k} g_{r(j)} v_j ,

where :math:`p_k` is the probability of the draw at place k: document i's exposure pulls on the
draws up to its own place only. The estimate has the same expectation, and in most cases less
variance.
"""

from typing import Any

import torch
from torch import Tensor

from fairpg_lite._check import differentiable_once

#: What may be subtracted from a reward-to-go; `PlackettLuce.sampled_exposure` says what each means.
BASELINES = ("mean", "loo", "uniform", None)


def reward_to_go_exposure(
    steps: Tensor,
    mean: Tensor,
    lists: Tensor,
    bias: Tensor,
    mask: Tensor | None,
    baseline: str | None,
) -> Tensor:
    """The mean exposure of drawn lists, whose gradient is that of reward-to-go.

    `PlackettLuce.sampled_exposure` is the way to it.

    Args:
        steps: ``(S, …, k)``, the log-probability of each draw, through which the gradient goes.
        mean: ``(…, n)``, the mean exposure.
        lists: ``(S, …, k)``, the documents at the first k places.
        bias: ``(k,)`` or longer, the position bias.
        mask: ``(…, n)``, True for a real document; None: all are real.
        baseline: One of `BASELINES`.

    Returns:
        ``mean``, with a gradient.
    """
    exposure: Tensor = RewardToGo.apply(  # type: ignore[no-untyped-call]
        steps, mean, lists, bias, mask, baseline
    )
    return exposure


class RewardToGo(torch.autograd.Function):
    """`reward_to_go_exposure` as autograd wants it."""

    @staticmethod
    def forward(
        ctx: Any,
        steps: Tensor,
        mean: Tensor,
        lists: Tensor,
        bias: Tensor,
        mask: Tensor | None,
        baseline: str | None,
    ) -> Tensor:
        ctx.lists = lists
        ctx.bias = bias
        ctx.mask = mask
        ctx.baseline = baseline
        return mean.clone()

    @staticmethod
    def backward(ctx: Any, pull: Tensor) -> tuple[Tensor | None, ...]:
        differentiable_once("a mean over sampled rankings")
        weights = draw_weights(pull, ctx.lists, ctx.bias, ctx.mask, ctx.baseline)
        return weights / len(ctx.lists), None, None, None, None, None


def draw_weights(
    pull: Tensor, lists: Tensor, bias: Tensor, mask: Tensor | None, baseline: str | None
) -> Tensor:
    """Reward-to-go less baseline, for each draw of each list.

    Args:
        pull: ``(…, n)``, the slope of the objective by exposure.
        lists: ``(S, …, k)``, the documents at the first k places.
        bias: ``(k,)`` or longer, the position bias.
        mask: ``(…, n)``, True for a real document; None: all are real.
        baseline: One of `BASELINES`.

    Returns:
        ``(S, …, k)``. At the places of padding, where nothing is drawn, the values mean nothing.
    """
    samples = len(lists)
    if mask is not None:
        pull = torch.where(mask, pull, 0.0)
    bias = bias[: lists.shape[-1]]
    placed = pull.expand(*lists.shape[:-1], pull.shape[-1]).gather(-1, lists)
    to_go = _sum_from_here_on(placed * bias)
    if baseline == "uniform":
        return to_go - _shuffled(pull, placed, bias, mask)
    if baseline is not None:
        to_go = to_go - to_go.mean(0)
    if baseline == "loo":  # as in `PlackettLuce.expect`
        to_go = to_go * (samples / (samples - 1))
    return to_go


def _shuffled(pull: Tensor, placed: Tensor, bias: Tensor, mask: Tensor | None) -> Tensor:
    """What the documents left at each draw ``(S, …, k)`` would earn in random order."""
    place = torch.arange(len(bias), device=bias.device)
    documents = pull.shape[-1] if mask is None else mask.sum(-1, keepdim=True)
    left = documents - place
    bias = torch.where(left > 0, bias, 0.0)  # nobody stands at the places of padding
    not_shown = pull.sum(-1) - placed.sum(-1)
    pull_left = _sum_from_here_on(placed) + not_shown.unsqueeze(-1)
    return pull_left / left.clamp(min=1) * _sum_from_here_on(bias)


def _sum_from_here_on(values: Tensor) -> Tensor:
    """The sum of each value and all that follow it on the last axis."""
    return values.flip(-1).cumsum(-1).flip(-1)
