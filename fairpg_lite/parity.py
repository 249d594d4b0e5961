r"""Demands on groups beside the paper's: parity, clicks, and the share of attention.

Each is a disparity like those of `fairpg_lite.disparity`: a plain function of exposure, merit and
groups, one value per query, lower is fairer.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from fairpg_lite.disparity import checked_groups, checked_merit, group_sums, mean_over_pairs


def signed_gap(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    undefined: float = 0.0,
) -> Tensor:
    r"""Who is ahead, and by how much: exposure per merit of a group less that of the next.

    :math:`v(G_a)/M_{G_a} - v(G_b)/M_{G_b}` with a the smaller label. Zero is fair, a positive value
    favours the smaller label; training lowers it below zero, so it is for reports. More than two
    groups: the mean over all pairs.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: ``(…, n)``, integer labels.
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query without a pair of groups that have merit.

    Returns:
        ``(…)``.

    >>> v, m = torch.tensor([0.5, 1.0]), torch.tensor([1.0, 0.5])
    >>> signed_gap(v, m, torch.tensor([0, 1])), signed_gap(v, m, torch.tensor([1, 0]))
    (tensor(-1.5000), tensor(1.5000))
    """
    merit = checked_merit("signed_gap", exposure, merit, mask)
    groups = checked_groups("signed_gap", groups, exposure)
    sums = group_sums(groups, mask, exposure, merit)
    return _mean_signed_difference(sums[0], sums[1], undefined)


def exposure_parity(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    undefined: float = 0.0,
) -> Tensor:
    r"""Parity: the difference in mean exposure between groups, whatever their merit.

    :math:`|\bar v(G_a) - \bar v(G_b)|`, the demographic parity constraint of Singh and Joachims
    (2018, section 4.1) as a distance. More than two groups: the mean over all pairs.

    Args:
        exposure: ``(…, n)``.
        merit: Not looked at; every disparity takes it.
        groups: ``(…, n)``, integer labels.
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query with one group only.

    Returns:
        ``(…)``.

    >>> v = torch.tensor([1.0, 0.6, 0.5])
    >>> exposure_parity(v, torch.ones(3), torch.tensor([0, 0, 1]))
    tensor(0.3000)
    """
    groups = checked_groups("exposure_parity", groups, exposure)
    sums = group_sums(groups, mask, exposure, torch.ones_like(exposure))
    return mean_over_pairs(sums[0], sums[1], undefined)


def click_disparity(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    document_ids: Tensor | None = None,
    undefined: float = 0.0,
) -> Tensor:
    r"""Disparate impact: the difference in clicks per merit between groups.

    A document is clicked in proportion to exposure times merit, so a group's clicks per merit are
    :math:`\sum_{i \in G} v_i M_i / \sum_{i \in G} M_i`; the value is their absolute difference, the
    disparate impact constraint of Singh and Joachims (2018, section 4.3) as a distance. More than
    two groups: the mean over all pairs.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: ``(…, n)``, integer labels.
        mask: ``(…, n)``, True for a real document; None: all are real.
        document_ids: Not looked at. A function that has this argument is given the documents of a
            pool instead of sums, and clicks are products of exposure and merit in one query.
        undefined: The answer for a query without a pair of groups that have merit.

    Returns:
        ``(…)``.

    >>> v, m = torch.tensor([1.0, 0.5, 0.5]), torch.tensor([3.0, 1.0, 2.0])
    >>> click_disparity(v, m, torch.tensor([0, 0, 1]))
    tensor(0.3750)
    """
    merit = checked_merit("click_disparity", exposure, merit, mask)
    groups = checked_groups("click_disparity", groups, exposure)
    sums = group_sums(groups, mask, exposure * merit, merit)
    return mean_over_pairs(sums[0], sums[1], undefined)


def attention_weighted_rank_fairness(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    target: Sequence[float] | Tensor | None = None,
    undefined: float = 0.0,
) -> Tensor:
    r"""AWRF: how far the groups' shares of attention are from a target distribution.

    :math:`\frac12 \sum_g |\varepsilon_g - \hat p_g|` with
    :math:`\varepsilon_g = \sum_{i \in G_g} v_i / \sum_i v_i` (Sapiezynski et al. 2019). They leave
    the distance open; taken here is total variation, the share of attention that would have to
    change hands.

    Args:
        exposure: ``(…, n)``.
        merit: Not looked at; every disparity takes it.
        groups: ``(…, n)``, integer labels 0 to G - 1.
        mask: ``(…, n)``, True for a real document; None: all are real.
        target: ``(G,)``, the share that each group is due, summing to one; None is each group's
            share of the query's documents.
        undefined: The answer for a query without exposure.

    Returns:
        ``(…)``.

    >>> v = torch.tensor([1.0, 0.5, 0.5])
    >>> attention_weighted_rank_fairness(v, v, torch.tensor([0, 1, 1]), target=[0.25, 0.75])
    tensor(0.2500)
    """
    where = "attention_weighted_rank_fairness"
    groups = checked_groups(where, groups, exposure)
    attention, size = group_sums(groups, mask, exposure, torch.ones_like(exposure))
    total = attention.sum(-1, keepdim=True)
    due = size / size.sum(-1, keepdim=True)
    if target is not None:
        shares = torch.as_tensor(target, dtype=exposure.dtype, device=exposure.device)
        if shares.ndim != 1 or len(shares) < attention.shape[-1]:
            raise ValueError(
                f"{where}: target has shape {tuple(shares.shape)} for {attention.shape[-1]} "
                "groups; give one share for each."
            )
        if abs(float(shares.sum()) - 1.0) > 1e-6 or bool((shares < 0).any()):
            raise ValueError(f"{where}: target is {shares.tolist()}; give shares that sum to one.")
        missing = shares[attention.shape[-1] :].sum()
        due = shares[: attention.shape[-1]].expand_as(attention)
        # Groups that the data do not have get nothing of what they are due.
        distance = (attention / total.clamp(min=1e-300) - due).abs().sum(-1) + missing
    else:
        distance = (attention / total.clamp(min=1e-300) - due).abs().sum(-1)
    return torch.where(total.squeeze(-1) > 0, 0.5 * distance, undefined)


def _mean_signed_difference(total: Tensor, weight: Tensor, undefined: float) -> Tensor:
    """Mean over pairs a < b of groups with weight of total_a/weight_a - total_b/weight_b."""
    present = weight > 0
    ratio = torch.where(present, total / torch.where(present, weight, 1.0), 0.0)
    count = present.sum(-1)
    # Group number r of the m present ones stands first in m - 1 - r pairs and second in r.
    number = present.cumsum(-1) - 1
    sign = torch.where(present, count.unsqueeze(-1) - 1 - 2 * number, 0)
    pairs = count * (count - 1) / 2
    mean = (ratio * sign).sum(-1) / pairs.clamp(min=1.0)
    return torch.where(pairs > 0, mean, undefined).to(ratio.dtype)
