"""Sums over the queries in which the same item occurs."""

import torch
from torch import Tensor


def sums_by_item(
    document_ids: Tensor, mask: Tensor | None, *values: Tensor
) -> tuple[list[Tensor], Tensor | None]:
    """The sum of each of ``values (…, N)`` over the documents that are the same item.

    Args:
        document_ids: ``(N,)``, whole numbers, of which there are I different ones.
        mask: ``(…, N)``, True for a document that counts; None: all do.
        values: Each ``(…, N)``.

    Returns:
        For each of the values ``(…, I)``, items by rising id; and a mask ``(…, I)``, True for an
        item of which any document counts, None if ``mask`` is None.

    >>> sums, _ = sums_by_item(torch.tensor([7, 3, 7]), None, torch.tensor([1.0, 2.0, 4.0]))
    >>> sums
    [tensor([2., 5.])]
    """
    ids, index = torch.unique(document_ids, return_inverse=True)
    sums = []
    for value in values:
        counted = value if mask is None else torch.where(mask, value, 0.0)
        zeros = counted.new_zeros((*counted.shape[:-1], len(ids)))
        sums.append(zeros.index_add(-1, index, counted))
    if mask is None:
        return sums, None
    occurrences = torch.zeros((*mask.shape[:-1], len(ids)), dtype=torch.int64, device=mask.device)
    return sums, occurrences.index_add(-1, index, mask.long()) > 0
