r"""How unfairly exposure is allocated (chapter 5; equations (3) and (4) of the paper).

Each disparity is a plain function of exposure, merit and groups, so its policy gradient comes for
free from whichever exposure it is given. One value per query; averaging is the caller's line.
"""

import inspect
import math
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._memory import pieces


class Disparity(Protocol):
    """A disparity, ours or yours: how far exposure is from what is due, lower is fairer.

    A function that has an argument ``position_bias`` is told the one that the exposure was made
    with, ``(n,)``; one with an argument ``undefined`` is told what to answer for a query that has
    no answer; one with an argument ``columns`` is given the named columns of the data, each
    ``(…, n)``. One with an argument ``document_ids`` is not given sums when queries are pooled by
    item, see `fairpg_lite.pooling`.
    """

    def __call__(
        self,
        exposure: Tensor,
        merit: Tensor,
        groups: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """One value for each query.

        Args:
            exposure: ``(…, n)``, the expected position bias of each document.
            merit: ``(…, n)``, zero or more.
            groups: ``(…, n)``, integer labels; None if the data have none.
            mask: ``(…, n)``, True for a real document; None: all are real.

        Returns:
            ``(…)``, differentiable in the exposure; NaN for a query that has no answer.
        """
        ...


def disparity_of(
    function: Disparity,
    exposure: Tensor,
    merit: Tensor,
    *,
    groups: Tensor | None,
    mask: Tensor | None,
    position_bias: Tensor | None,
    undefined: float | None = None,
    document_ids: Tensor | None = None,
    queries: Tensor | None = None,
    columns: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """Call a disparity with what it has arguments for, and look at its answer.

    Args:
        function: Ours or yours.
        exposure: ``(…, n)``.
        merit: ``(…, n)``.
        groups: ``(…, n)`` or None.
        mask: ``(…, n)`` or None.
        position_bias: ``(n,)``, or None for 1/log2(1+j).
        undefined: The answer for a query without one; None is the function's own.
        document_ids: ``(n,)``, equal for the same item, in a pool of queries; None elsewhere.
        queries: ``(n,)``, the query of each document of a pool; None elsewhere.
        columns: The named columns of the data, each ``(…, n)``; None if there are none.

    Returns:
        ``(…)``.
    """
    options: dict[str, Any] = {}
    if document_ids is not None and takes(function, "document_ids"):
        options["document_ids"] = document_ids
    if queries is not None and takes(function, "queries"):
        options["queries"] = queries
    if takes(function, "position_bias"):
        options["position_bias"] = position_bias
    if takes(function, "columns"):
        options["columns"] = {} if columns is None else columns
    if undefined is not None and takes(function, "undefined"):
        options["undefined"] = undefined
    value = function(exposure, merit, groups=groups, mask=mask, **options)
    name = getattr(function, "__name__", "the disparity")
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} returned {_check.kind_of(value)}; return a tensor.")
    if value.shape != exposure.shape[:-1]:
        raise ValueError(
            f"{name} returned shape {tuple(value.shape)} for exposure {tuple(exposure.shape)}; "
            f"return one value for each query, {tuple(exposure.shape[:-1])}."
        )
    return value


def takes(function: Callable[..., object], argument: str) -> bool:
    """Whether ``function`` has an argument of this name."""
    if isinstance(function, Hashable):
        return argument in _remembered_arguments(function)
    return argument in _arguments(function)


def _arguments(function: Callable[..., object]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # written in C: no signature to read
        return frozenset()


# Asked for at every update of a training, where reading a signature would be noticed.
_remembered_arguments = lru_cache(maxsize=256)(_arguments)


def individual_disparity(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    undefined: float = 0.0,
) -> Tensor:
    r"""D_ind, equation (3): by how much documents of higher merit are over-exposed.

    :math:`\frac{1}{|H|} \sum_{(i,j) \in H} \max(0, v_i/M_i - v_j/M_j)` over the pairs
    :math:`H = \{(i,j): M_i \ge M_j > 0\}`, pairs (i, i) counted. Documents without merit take no
    part. Chapter 5, eq-05-dind.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query in which no document has merit.

    Returns:
        ``(…)``.

    >>> individual_disparity(torch.tensor([1.0, 0.5]), torch.tensor([1.0, 1.0]))
    tensor(0.1250)
    """
    merit = checked_merit("individual_disparity", exposure, merit, mask)
    # Without merit, an infinite bar: the ratio is 0, and nobody has at least that merit.
    bar = merit.masked_fill(merit <= 0, math.inf)
    excess, pairs = Hinge.apply(exposure / bar, merit, bar)
    return torch.where(pairs > 0, excess / pairs.clamp(min=1.0), undefined)


def group_disparity(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    undefined: float = 0.0,
) -> Tensor:
    r"""D_group, equation (4): by how much the group of higher merit is over-exposed.

    :math:`\max(0, v(G_i)/M_{G_i} - v(G_j)/M_{G_j})` with :math:`M_{G_i} \ge M_{G_j}`, v(G) and M_G
    means over the group. On a tie in merit the larger value counts. More than two groups: the mean
    over all pairs. A group that is absent or has no merit forms no pair. Chapter 5, eq-05-dgroup.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: ``(…, n)``, integer labels.
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query without a pair of groups.

    Returns:
        ``(…)``.

    >>> v, m = torch.tensor([1.0, 0.6, 0.5]), torch.tensor([1.0, 1.0, 1.0])
    >>> group_disparity(v, m, torch.tensor([0, 0, 1]))
    tensor(0.3000)
    """
    merit = checked_merit("group_disparity", exposure, merit, mask)
    groups = checked_groups("group_disparity", groups, exposure)
    ratio, mean_merit = group_ratios(exposure, merit, groups, mask)
    return _hinge_over_pairs(ratio, mean_merit, mean_merit > 0, undefined)


def group_gap(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    undefined: float = 0.0,
) -> Tensor:
    r"""The two-sided gap: D_group without its direction, whichever group is ahead.

    :math:`|v(G_i)/M_{G_i} - v(G_j)/M_{G_j}|`. More than two groups: the mean over all pairs.
    Chapter 12.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: ``(…, n)``, integer labels.
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query without a pair of groups.

    Returns:
        ``(…)``.

    >>> v, m = torch.tensor([0.5, 1.0]), torch.tensor([1.0, 0.5])
    >>> group_gap(v, m, torch.tensor([0, 1])), group_disparity(v, m, torch.tensor([0, 1]))
    (tensor(1.5000), tensor(0.))
    """
    merit = checked_merit("group_gap", exposure, merit, mask)
    groups = checked_groups("group_gap", groups, exposure)
    total_merit, total_exposure = group_sums(groups, mask, merit, exposure)
    return mean_over_pairs(total_exposure, total_merit, undefined)


def group_ratios(
    exposure: Tensor, merit: Tensor, groups: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Mean exposure over mean merit, and mean merit, of each group.

    The group sizes cancel in mean over mean, so the ratio is one of sums.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: ``(…, n)``, integer labels, of which there are G in all.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        Ratio and mean merit, each ``(…, G)``. A group that is absent from a query or has no merit
        there gets merit 0 and ratio 0.

    >>> ratio, merit = group_ratios(torch.tensor([1.0, 0.5]), torch.ones(2), torch.tensor([0, 1]))
    >>> ratio
    tensor([1.0000, 0.5000])
    """
    is_real = torch.ones_like(exposure)
    size, total_merit, total_exposure = group_sums(groups, mask, is_real, merit, exposure)
    has_merit = total_merit > 0
    ratio = torch.where(has_merit, total_exposure / torch.where(has_merit, total_merit, 1.0), 0.0)
    return ratio, total_merit / size.clamp(min=1.0)


def group_sums(groups: Tensor, mask: Tensor | None, *values: Tensor) -> list[Tensor]:
    """The sum of each of ``values (…, n)`` over each group, without padding.

    Args:
        groups: ``(…, n)``, integer labels, of which there are G in all.
        mask: ``(…, n)``, True for a real document; None: all are real.
        values: Each ``(…, n)``.

    Returns:
        For each of the values ``(…, G)``, groups by rising label.

    >>> group_sums(torch.tensor([0, 1, 1]), None, torch.tensor([1.0, 2.0, 3.0]))
    [tensor([1., 5.])]
    """
    if groups.numel() and groups.min() >= 0 and groups.max() < 16:  # small labels: as they are
        index = groups.long()
        count = int(groups.max()) + 1
    else:
        labels, index = torch.unique(groups, return_inverse=True)
        count = max(1, len(labels))
    dtype = values[-1].dtype
    sums = []
    for value in values:
        real_value = value.to(dtype) if mask is None else value.to(dtype) * mask.to(dtype)
        zeros = real_value.new_zeros((*real_value.shape[:-1], count))
        sums.append(zeros.scatter_add(-1, index, real_value))
    return sums


class Hinge(torch.autograd.Function):
    """Sum over pairs with merit_i >= bar_j of max(0, ratio_i - ratio_j), and their number ``(…)``.

    The slope in ratio_i is the number of pairs in which i is ahead less that in which it is behind;
    written out because autograd would keep m x m tables, which exist here a few rows at a time.
    """

    @staticmethod
    def forward(ctx: Any, ratio: Tensor, merit: Tensor, bar: Tensor) -> tuple[Tensor, Tensor]:
        """Value and number of pairs; the slope is worked out on the way."""
        value = torch.zeros_like(ratio[..., 0])
        count = torch.zeros_like(ratio[..., 0])
        slope = torch.zeros_like(ratio)
        for rows in pieces(ratio.shape[-1], ratio.numel()):
            # Compared into numbers, not booleans: what follows multiplies with it.
            pairs = ratio.new_empty((*ratio[..., rows].shape, ratio.shape[-1]))
            torch.ge(merit[..., rows, None], bar.unsqueeze(-2), out=pairs)
            excess = (ratio[..., rows, None] - ratio.unsqueeze(-2)).mul_(pairs).relu_()
            value += excess.sum((-1, -2))
            count += pairs.sum((-1, -2))
            if ctx.needs_input_grad[0]:
                is_ahead = excess.sign_()
                slope[..., rows] += is_ahead.sum(-1)
                slope -= is_ahead.sum(-2)
        ctx.save_for_backward(slope)
        ctx.mark_non_differentiable(count)
        return value, count

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        """The slope times what comes from above."""
        (slope,) = ctx.saved_tensors
        return upstream.unsqueeze(-1) * slope, None, None


def mean_over_pairs(total: Tensor, weight: Tensor, undefined: float) -> Tensor:
    """Mean over pairs of groups of the absolute difference of total over weight.

    Args:
        total: ``(…, G)``, a sum of each group.
        weight: ``(…, G)``, what it is divided by; a group without weight forms no pair.
        undefined: The answer where there is no pair.

    Returns:
        ``(…)``.
    """
    present = weight > 0
    ratio = torch.where(present, total / torch.where(present, weight, 1.0), 0.0)
    # As if all merits tied: then the larger of the two directions counts.
    return _hinge_over_pairs(ratio, present.to(ratio.dtype), present, undefined)


def _hinge_over_pairs(ratio: Tensor, level: Tensor, present: Tensor, undefined: float) -> Tensor:
    """Mean of max(0, ratio_a - ratio_b) over pairs of present groups with level_a >= level_b."""
    excess, _ = Hinge.apply(ratio, level, level.masked_fill(~present, math.inf))
    count = present.sum(-1)
    pairs = count * (count - 1) / 2
    return torch.where(pairs > 0, excess / pairs.clamp(min=1.0), undefined).to(ratio.dtype)


def checked_groups(where: str, groups: Tensor | None, exposure: Tensor) -> Tensor:
    """The groups, integer labels of the shape of ``exposure``; anything else is refused."""
    if groups is None:
        raise TypeError(f"{where}: groups is None; give an integer label for each document.")
    if not isinstance(groups, Tensor) or groups.is_floating_point():
        raise TypeError(f"{where}: groups is {_check.kind_of(groups)}; give integer labels.")
    _check.same_shape(where, "groups", groups, "exposure", exposure.shape)
    return groups


def checked_merit(where: str, exposure: Tensor, merit: Tensor, mask: Tensor | None) -> Tensor:
    """The merit, zero for padding, of inputs that were looked at."""
    _check.floating(where, "merit", merit)
    _check.same_shape(where, "merit", merit, "exposure", exposure.shape)
    if mask is not None:
        _check.same_shape(where, "mask", mask, "exposure", exposure.shape)
    _check.finite(where, "merit", merit, mask, least=0.0)
    return merit if mask is None else torch.where(mask, merit, 0.0)
