"""What a learner or a judge sees of a data set: a few queries, padded to one length, and a mask."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Batch(NamedTuple):
    """B queries padded to n documents.

    features (B, n, d), relevance (B, n), groups (B, n) or None, mask (B, n) with True for a real
    document, queries (B,): the index of each query in the dataset. Padding has features 0,
    relevance 0 and group 0. The tensors may be views of the dataset: do not write into them.

    Chapter 7.
    """

    features: Tensor
    relevance: Tensor
    groups: Tensor | None
    mask: Tensor
    queries: Tensor


class Queries(Protocol):
    """What is asked of a data set: ``relevance (N,)``, ``offsets (Q + 1,)`` and padded batches."""

    relevance: Tensor
    offsets: Tensor
    features: Tensor

    def __len__(self) -> int: ...

    def batches(
        self, size: int = ..., *, dtype: torch.dtype | None = ..., reuse: bool = ...
    ) -> Iterable[Batch]: ...
