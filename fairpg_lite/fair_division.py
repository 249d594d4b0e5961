r"""Rankings as a division of attention among items (Saito and Joachims 2022).

What an item gets is its impact, the clicks it can expect: its merit times its exposure, averaged
over the queries. What item i would get in the places of item j is

.. math:: y_{i \to j} = \frac1Q \sum_q M_{q,i} \, v_{q,j}

and its own impact is :math:`y_{i \to i}`. An item that is no candidate in a query has neither merit
nor exposure there. So nobody envies j for queries in which he is no candidate himself, and in the
queries of i without j the places of j are worth nothing.

Both demands below are disparities. Of one query they compare its documents; the demands of the
authors are over many queries, ``pooled="item"``.
"""

import torch
from torch import Tensor

from fairpg_lite.disparity import checked_merit
from fairpg_lite.items import sums_by_item


def envy(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    document_ids: Tensor | None = None,
    queries: Tensor | None = None,
) -> Tensor:
    r"""How much more impact items would have in the places of the one they envy most.

    :math:`\frac1I \sum_i \max_j (y_{i \to j} - y_{i \to i})` over all I items, which is never
    negative as j may be i; the mean of the largest envy that the authors report.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        document_ids: ``(n,)``, equal for the same item in several queries; None: each document is
            an item, and all are of one query.
        queries: ``(n,)``, the query of each document, equal numbers for the same; None: all are of
            one query.

    Returns:
        ``(…)``, zero where nobody has merit.

    >>> v, m = torch.tensor([1.0, 0.5]), torch.tensor([1.0, 2.0])
    >>> envy(v, m)  # the second would have an impact of 2 instead of 1
    tensor(0.5000)
    >>> v, m = torch.tensor([1.0, 0.5, 0.5, 1.0]), torch.ones(4)
    >>> item, query = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    >>> envy(v, m, document_ids=item, queries=query)  # each is first once
    tensor(0.)
    """
    merit = checked_merit("envy", exposure, merit, mask)
    if document_ids is None:
        is_real = torch.ones_like(merit, dtype=torch.bool) if mask is None else mask
        most = torch.where(is_real, exposure, -torch.inf).amax(-1, keepdim=True)
        envy_of_each = torch.where(is_real, merit * (most - exposure), 0.0)
        return envy_of_each.sum(-1) / is_real.sum(-1).clamp(min=1)
    if queries is None:
        queries = torch.zeros_like(document_ids)
    ids, item = torch.unique(document_ids, return_inverse=True)
    left, right = _pairs_within_queries(queries)
    # Every pair of items that meet in a query has a number; the two may meet in several.
    pair_ids, pair = torch.unique(item[left] * len(ids) + item[right], return_inverse=True)
    envious = pair_ids // len(ids)
    envied = pair_ids % len(ids)
    real_exposure = exposure if mask is None else torch.where(mask, exposure, 0.0)
    impacts = merit[..., left] * real_exposure[..., right]
    zeros = impacts.new_zeros((*impacts.shape[:-1], len(pair_ids)))
    impact_of_pair = zeros.index_add(-1, pair, impacts)
    own_impact = impact_of_pair[..., envious == envied]  # every item meets itself
    excess = impact_of_pair - own_impact[..., envious]
    zeros = excess.new_zeros((*excess.shape[:-1], len(ids)))
    largest = zeros.scatter_reduce(-1, envious.expand_as(excess), excess, "amax")
    return _mean_over_items(largest, document_ids, mask) / len(queries.unique())


def dominance_shortfall(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    document_ids: Tensor | None = None,
    queries: Tensor | None = None,
) -> Tensor:
    r"""How far items fall below the impact that a ranking at random would give them.

    :math:`\frac1I \sum_i \max(0, u_i - y_{i \to i})` over all I items, where
    :math:`u_i = \frac1Q \sum_q M_{q,i} \bar v_q` is the impact under the policy that draws every
    ranking equally often; it exposes each of a query's documents to their mean exposure
    :math:`\bar v_q`. Zero is dominance over the uniform policy. The authors report the share of
    items that lose more than a tenth, which has no gradient; here counts how much they lose.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        document_ids: ``(n,)``, equal for the same item in several queries; None: each document is
            an item.
        queries: ``(n,)``, the query of each document, equal numbers for the same; None: all are of
            one query.

    Returns:
        ``(…)``, zero where nobody has merit.

    >>> v, m = torch.tensor([1.0, 0.5]), torch.tensor([1.0, 2.0])
    >>> dominance_shortfall(v, m)  # at random the second would have an impact of 1.5 instead of 1
    tensor(0.2500)
    """
    merit = checked_merit("dominance_shortfall", exposure, merit, mask)
    n = exposure.shape[-1]
    if document_ids is None:
        document_ids = torch.arange(n, device=exposure.device)
    if queries is None:
        queries = torch.zeros_like(document_ids)
    ones = torch.ones_like(exposure)
    (total, count), _ = sums_by_item(queries, mask, exposure, ones)
    uniform = total / count.clamp(min=1.0)
    query_numbers, query = torch.unique(queries, return_inverse=True)
    loss = merit * (uniform[..., query] - exposure)
    (loss_of_item,), _ = sums_by_item(document_ids, mask, loss)
    return _mean_over_items(loss_of_item.relu(), document_ids, mask) / len(query_numbers)


def _pairs_within_queries(queries: Tensor) -> tuple[Tensor, Tensor]:
    """The places of both documents of every ordered pair of one query, a document with itself too.

    ``queries (N,)`` says which query each document is of; each result is ``(P,)``.
    """
    order = queries.argsort(stable=True)
    _, lengths = torch.unique_consecutive(queries[order], return_counts=True)
    starts = lengths.cumsum(0) - lengths
    partners = lengths.repeat_interleave(lengths)
    first_partner = starts.repeat_interleave(lengths)
    left = torch.arange(len(queries), device=queries.device).repeat_interleave(partners)
    step = torch.arange(len(left), device=queries.device)
    first_step = partners.cumsum(0) - partners
    right = first_partner[left] + step - first_step[left]
    return order[left], order[right]


def _mean_over_items(values: Tensor, document_ids: Tensor, mask: Tensor | None) -> Tensor:
    """The mean ``(…)`` of ``values (…, I)`` over the items that have a real document."""
    if mask is None:
        return values.mean(-1)
    _, is_item = sums_by_item(document_ids, mask)
    assert is_item is not None
    return values.sum(-1) / is_item.sum(-1).clamp(min=1)
