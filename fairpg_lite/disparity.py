r"""How unfairly exposure is allocated (chapter 5; equations (3) and (4) of the paper).

Both measures are plain functions of exposure and merit, so their policy gradient comes for free
from whichever exposure they are given. One value per query; averaging is the caller's line.
"""

import math
from typing import Any

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._memory import pieces


def _check_inputs(where: str, exposure: Tensor, merit: Tensor, mask: Tensor | None) -> Tensor:
    """Checks, then the merit with padding set to zero."""
    _check.floating(where, "merit", merit)
    _check.same_shape(where, "merit", merit, "exposure", exposure.shape)
    if mask is not None:
        _check.same_shape(where, "mask", mask, "exposure", exposure.shape)
    _check.finite(where, "merit", merit, mask, least=0.0)
    return merit if mask is None else torch.where(mask, merit, 0.0)


def individual_disparity(exposure: Tensor, merit: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""D_ind ``(…)``, equation (3): by how much documents of higher merit are over-exposed.

    :math:`\frac{1}{|H|} \sum_{(i,j) \in H} \max(0, v_i/M_i - v_j/M_j)` over the pairs
    :math:`H = \{(i,j): M_i \ge M_j > 0\}`, pairs (i, i) counted. Documents without merit take no
    part; a query with none of merit has disparity 0. ``exposure`` and ``merit`` are ``(…, n)``.
    Chapter 5, eq-05-dind.

    >>> individual_disparity(torch.tensor([1.0, 0.5]), torch.tensor([1.0, 1.0]))
    tensor(0.1250)
    """
    merit = _check_inputs("individual_disparity", exposure, merit, mask)
    # Without merit, an infinite bar: the ratio is 0, and nobody has at least that merit.
    bar = merit.masked_fill(merit <= 0, math.inf)
    excess, pairs = Hinge.apply(exposure / bar, merit, bar)
    return excess / pairs.clamp(min=1.0)


class Hinge(torch.autograd.Function):
    """Sum over pairs with merit_i >= bar_j of max(0, ratio_i - ratio_j), and their number ``(…)``.

    The slope in ratio_i is the number of pairs in which i is ahead less that in which it is behind;
    written out because autograd would keep m x m tables, which exist here a few rows at a time.
    """

    @staticmethod
    def forward(ctx: Any, ratio: Tensor, merit: Tensor, bar: Tensor) -> tuple[Tensor, Tensor]:
        value, count = torch.zeros_like(ratio[..., 0]), torch.zeros_like(ratio[..., 0])
        slope = torch.zeros_like(ratio)
        for rows in pieces(ratio.shape[-1], ratio.numel()):
            # Compared into numbers, not booleans: what follows multiplies with it.
            pairs = ratio.new_empty((*ratio[..., rows].shape, ratio.shape[-1]))
            torch.ge(merit[..., rows, None], bar.unsqueeze(-2), out=pairs)
            excess = (ratio[..., rows, None] - ratio.unsqueeze(-2)).mul_(pairs).relu_()
            value += excess.sum((-1, -2))
            count += pairs.sum((-1, -2))
            if ctx.needs_input_grad[0]:
                ahead = excess.sign_()
                slope[..., rows] += ahead.sum(-1)
                slope -= ahead.sum(-2)
        ctx.save_for_backward(slope)
        ctx.mark_non_differentiable(count)
        return value, count

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return upstream.unsqueeze(-1) * slope, None, None


def group_ratios(
    exposure: Tensor, merit: Tensor, groups: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Mean exposure over mean merit, and mean merit, of each group: two tensors ``(…, G)``.

    A group that is absent from a query or has no merit there gets merit 0 and ratio 0.
    The group sizes cancel in mean over mean, so the ratio is one of sums.
    """
    if groups.numel() and groups.min() >= 0 and groups.max() < 16:  # small already: as they are
        index, count = groups.long(), int(groups.max()) + 1
    else:
        labels, index = torch.unique(groups, return_inverse=True)
        count = max(1, len(labels))
    empty = exposure.new_zeros((*exposure.shape[:-1], count))
    real = torch.ones_like(exposure) if mask is None else mask.to(exposure.dtype)
    size = empty.scatter_add(-1, index, real)
    total_merit = empty.scatter_add(-1, index, merit.to(exposure.dtype) * real)
    paid = empty.scatter_add(-1, index, exposure * real)
    ratio = torch.where(total_merit > 0, paid / torch.where(total_merit > 0, total_merit, 1.0), 0.0)
    return ratio, total_merit / size.clamp(min=1.0)


def group_disparity(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor,
    mask: Tensor | None = None,
    *,
    undefined: float = 0.0,
    two_sided: bool = False,
) -> Tensor:
    r"""D_group ``(…)``, equation (4): by how much the group of higher merit is over-exposed.

    :math:`\max(0, v(G_i)/M_{G_i} - v(G_j)/M_{G_j})` with :math:`M_{G_i} \ge M_{G_j}`, v(G) and M_G
    means over the group; ``groups (…, n)`` are integer labels. On a tie in merit the larger value
    counts. More than two groups: the mean over all pairs. A group that is absent or has no merit
    forms no pair; a query without a pair is ``undefined``. With ``two_sided`` it counts whichever
    group is ahead: the absolute difference of the ratios. Chapter 5, eq-05-dgroup.

    >>> v, m = torch.tensor([1.0, 0.6, 0.5]), torch.tensor([1.0, 1.0, 1.0])
    >>> group_disparity(v, m, torch.tensor([0, 0, 1]))
    tensor(0.3000)
    """
    where = "group_disparity"
    merit = _check_inputs(where, exposure, merit, mask)
    if not isinstance(groups, Tensor) or groups.is_floating_point():
        raise TypeError(f"{where}: groups is {_check.kind_of(groups)}; give integer labels.")
    _check.same_shape(where, "groups", groups, "exposure", exposure.shape)
    ratio, mean_merit = group_ratios(exposure, merit, groups, mask)
    present = mean_merit > 0
    level = present.to(ratio.dtype) if two_sided else mean_merit
    excess, _ = Hinge.apply(ratio, level, level.masked_fill(~present, math.inf))
    count = present.sum(-1)
    n_pairs = count * (count - 1) / 2
    return torch.where(n_pairs > 0, excess / n_pairs.clamp(min=1.0), undefined).to(exposure.dtype)
