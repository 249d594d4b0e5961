r"""How evenly exposure is spread over documents: inequality and welfare.

What a document gets is its exposure per merit, :math:`x_i = v_i / M_i`, or its impact,
:math:`v_i M_i`, the clicks it can expect. Documents without merit take no part.
"""

import torch
from torch import Tensor

from fairpg_lite.disparity import checked_merit
from fairpg_lite.items import sums_by_item


def gini_exposure(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    undefined: float = 0.0,
) -> Tensor:
    r"""The Gini coefficient of exposure per merit, from 0 (all alike) to below 1.

    :math:`\sum_{i,j} |x_i - x_j| / (2 m^2 \bar x)` over the m documents with merit,
    :math:`x_i = v_i / M_i`.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query in which no document has merit, or none of them exposure.

    Returns:
        ``(…)``.

    >>> gini_exposure(torch.tensor([1.0, 0.0]), torch.ones(2))
    tensor(0.5000)
    """
    merit = checked_merit("gini_exposure", exposure, merit, mask)
    has_merit = merit > 0
    ratio = torch.where(has_merit, exposure / torch.where(has_merit, merit, 1.0), torch.inf)
    rising, _ = ratio.sort(-1)
    is_counted = rising < torch.inf
    rising = torch.where(is_counted, rising, 0.0)
    count = is_counted.sum(-1, keepdim=True)
    rank = torch.arange(1, rising.shape[-1] + 1, dtype=rising.dtype, device=rising.device)
    # In rising order x_(r) is larger than r - 1 others and smaller than m - r.
    weighted = ((2.0 * rank - count - 1.0) * rising).sum(-1)
    scale = count.squeeze(-1) * rising.sum(-1)
    return torch.where(scale > 0, weighted / torch.where(scale > 0, scale, 1.0), undefined)


def attention_inequity(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    undefined: float = 0.0,
) -> Tensor:
    r"""Inequity of attention: how far the shares of exposure are from the shares of merit.

    :math:`\sum_i \left| v_i / \sum_j v_j - M_i / \sum_j M_j \right|`, from 0 to 2. With
    ``pooled="item"`` exposure and merit are sums over the queries of each item: the amortised
    inequity of attention, after Biega et al. (2018). The sums are made into shares, not the
    exposure and merit of each query, so a query with more merit weighs more.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query in which no document has merit, or none exposure.

    Returns:
        ``(…)``.

    >>> attention_inequity(torch.tensor([1.0, 1.0]), torch.tensor([3.0, 1.0]))
    tensor(0.5000)
    """
    merit = checked_merit("attention_inequity", exposure, merit, mask)
    real_exposure = exposure if mask is None else torch.where(mask, exposure, 0.0)
    total_exposure = real_exposure.sum(-1, keepdim=True)
    total_merit = merit.sum(-1, keepdim=True)
    is_defined = (total_exposure > 0) & (total_merit > 0)
    attention = real_exposure / torch.where(is_defined, total_exposure, 1.0)
    due = merit / torch.where(is_defined, total_merit, 1.0)
    distance = (attention - due).abs().sum(-1)
    return torch.where(is_defined.squeeze(-1), distance, undefined)


def nash_welfare_loss(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    document_ids: Tensor | None = None,
    undefined: float = 0.0,
) -> Tensor:
    r"""Minus the mean log of impact: Nash social welfare over documents, as a loss.

    :math:`-\frac1m \sum_i \log(v_i M_i)` over the m documents with merit (Saito and Joachims 2022
    maximise the sum over items, whose impact is over many queries: ``pooled="item"``). A document
    without exposure makes it infinite.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        document_ids: ``(n,)``, equal for the same item in several queries, whose impacts are added;
            None: each document is an item.
        undefined: The answer for a query in which no document has merit.

    Returns:
        ``(…)``.

    >>> nash_welfare_loss(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.0]))
    tensor(-0.)
    """
    merit = checked_merit("nash_welfare_loss", exposure, merit, mask)
    impact = exposure * merit
    if document_ids is not None:
        (impact, merit), _ = sums_by_item(document_ids, mask, impact, merit)
    has_merit = merit > 0
    impact = torch.where(has_merit, impact, 1.0)
    count = has_merit.sum(-1)
    mean = impact.log().sum(-1) / count.clamp(min=1)
    return torch.where(count > 0, -mean, undefined)


def gini_welfare_loss(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    document_ids: Tensor | None = None,
    undefined: float = 0.0,
) -> Tensor:
    r"""Minus the generalised Gini welfare of impact over documents, as a loss.

    :math:`-\sum_r w_r y_{(r)}` with the impacts :math:`y = v M` in rising order and weights
    :math:`w_r = (2(m - r) + 1) / m^2`, which favour those who get least (Do and Usunier 2022 with
    these weights; it is the mean impact times one less its Gini coefficient).

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        document_ids: ``(n,)``, equal for the same item in several queries, whose impacts are added;
            None: each document is an item.
        undefined: The answer for a query in which no document has merit.

    Returns:
        ``(…)``.

    >>> gini_welfare_loss(torch.tensor([1.0, 0.0]), torch.ones(2))
    tensor(-0.2500)
    """
    merit = checked_merit("gini_welfare_loss", exposure, merit, mask)
    impact = exposure * merit
    if document_ids is not None:
        (impact, merit), _ = sums_by_item(document_ids, mask, impact, merit)
    has_merit = merit > 0
    rising, _ = torch.where(has_merit, impact, torch.inf).sort(-1)
    is_counted = rising < torch.inf
    rising = torch.where(is_counted, rising, 0.0)
    count = is_counted.sum(-1, keepdim=True)
    rank = torch.arange(1, rising.shape[-1] + 1, dtype=rising.dtype, device=rising.device)
    weights = (2.0 * (count - rank) + 1.0) / count.clamp(min=1) ** 2
    welfare = (weights * rising).sum(-1)
    return torch.where(count.squeeze(-1) > 0, -welfare, undefined)
