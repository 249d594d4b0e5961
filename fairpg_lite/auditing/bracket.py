r"""Two ends that hold the disparity of a policy between them, from lists that it drew.

A disparity D is a convex function of exposure. Of a mean over S drawn lists it is too high on
average, :math:`E\,D(\bar v) \ge D(v_\pi)` (Jensen). Its tangent is too low: with the lists in two
halves A and B, D is nowhere below its tangent at A, and B is independent of A and has the mean
:math:`v_\pi`, so

.. math:: E\,[D(\bar v_A) + \nabla D(\bar v_A) \cdot (\bar v_B - \bar v_A)] \le D(v_\pi) .

For D_group between two groups the tangent is 1(gap of A > 0) times the gap of B: the sign comes
from one half of the lists, the size from the other. Chapter 16, eq-16-bracket.
"""

import math

import torch
from torch import Tensor

from fairpg_lite.disparity import Disparity, disparity_of

#: Ways to divide the lists into halves, each used in both directions; the lower end is their mean.
SPLITS = 10


def lower_end(
    function: Disparity,
    exposure_by_list: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    splits: int = SPLITS,
) -> Tensor:
    """The mean tangent of a disparity: on average at most the disparity of the policy.

    Chapter 16, eq-16-bracket. The value may be negative where the disparity is about 0.

    Args:
        function: A disparity that is convex in the exposure, such as `group_disparity`.
        exposure_by_list: ``(S, n)``, what each of S independent lists gave to each document.
        merit: ``(n,)``.
        groups: ``(n,)``, or None if the disparity needs none.
        mask: ``(n,)``, True for a real document; None: all are real.
        position_bias: ``(n,)``, or None for 1/log2(1+j).
        splits: In how many ways the lists are divided into halves.

    Returns:
        A number, 0 for a query without an answer.

    >>> from fairpg_lite import group_disparity
    >>> one_above_the_other = torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    >>> lower_end(group_disparity, one_above_the_other, torch.ones(2), torch.tensor([0, 1]))
    tensor(-0.5000)
    """
    count = len(exposure_by_list)
    if count < 2:
        raise ValueError(f"lower_end: there are {count} lists; halves need two at least.")
    first, second = _halves(exposure_by_list.detach(), splits)
    first.requires_grad_()
    shape = first.shape
    with torch.enable_grad():
        value = disparity_of(
            function,
            first,
            merit.expand(shape),
            groups=None if groups is None else groups.expand(shape),
            mask=None if mask is None else mask.expand(shape),
            position_bias=position_bias,
            undefined=0.0,
        )
        (slope,) = torch.autograd.grad(value.sum(), first)
    tangent = value.detach() + (slope * (second - first.detach())).sum(-1)
    return tangent.mean()


def lists_for_width(lists: float, width: float, wanted: float) -> int | None:
    r"""How many lists make a bracket as narrow as wanted.

    For means that are about normal, the bracket of D_group is
    :math:`\sigma/\sqrt S \cdot f(|gap| \sqrt S / \sigma)` wide on average, and f falls. So the
    width falls at least as fast as :math:`1/\sqrt S`, and
    :math:`S \cdot (width/wanted)^2` lists are enough.

    Args:
        lists: The number of lists S behind the bracket.
        width: How wide it is.
        wanted: How wide it may be.

    Returns:
        A number of lists, S if it is narrow enough already; None if nothing is wanted.

    >>> lists_for_width(50, width=0.02, wanted=0.01)
    200
    """
    if not wanted > 0.0:
        return None
    if width < 1e-12:  # rounding
        return math.ceil(lists)
    factor = max(1.0, width / wanted)
    return math.ceil(lists * factor**2 - 1e-9)


def _halves(exposure_by_list: Tensor, splits: int) -> tuple[Tensor, Tensor]:
    """Mean exposures ``(2 * splits, n)`` of halves of the lists, and of the other halves."""
    count = len(exposure_by_list)
    generator = torch.Generator().manual_seed(0)
    means_a = []
    means_b = []
    for _ in range(splits):
        order = torch.randperm(count, generator=generator)
        means_a.append(exposure_by_list[order[: count // 2]].mean(0))
        means_b.append(exposure_by_list[order[count // 2 :]].mean(0))
    first = torch.stack([*means_a, *means_b])
    second = torch.stack([*means_b, *means_a])
    return first, second
