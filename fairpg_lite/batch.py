"""A batch of queries, padded to one length: what a scorer is given at once."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Batch(NamedTuple):
    """B queries padded to n documents.

    Padding has features 0, relevance 0, group 0, document id 0 and 0 in every column, which only
    ``mask`` tells from real ones. The tensors may be views of the dataset: do not write into them.
    """

    features: Tensor
    """``(B, n, d)``."""
    relevance: Tensor
    """``(B, n)``."""
    groups: Tensor | None
    """``(B, n)``, or None if the dataset has none."""
    mask: Tensor
    """``(B, n)``, True for a real document."""
    queries: Tensor
    """``(B,)``, the index of each query in the dataset."""
    document_ids: Tensor | None = None
    """``(B, n)``, equal for the same item in several queries; None if the dataset has none."""
    columns: Mapping[str, Tensor] | None = None
    """Named values ``(B, n)`` of the documents, such as a merit that is no function of relevance;
    None if the dataset has none."""
    query_weights: Tensor | None = None
    """``(B,)``, how much each query counts in a mean; None if all count alike."""


class Queries(Protocol):
    """What objective and evaluation need to know of a data set; `RankingDataset` is one."""

    @property
    def features(self) -> Tensor:
        """``(N, d)``, the documents of all queries, one after the other."""
        ...

    @property
    def relevance(self) -> Tensor:
        """``(N,)``."""
        ...

    @property
    def groups(self) -> Tensor | None:
        """``(N,)``, integer labels, or None."""
        ...

    @property
    def document_ids(self) -> Tensor | None:
        """``(N,)``, whole numbers, equal for the same item in several queries; or None."""
        ...

    @property
    def lengths(self) -> Tensor:
        """``(Q,)``, documents of each query."""
        ...

    @property
    def offsets(self) -> Tensor:
        """``(Q + 1,)``; query i owns the rows ``offsets[i]:offsets[i + 1]``."""
        ...

    def __len__(self) -> int:
        """The number of queries."""
        ...

    def batches(
        self,
        size: int = 1,
        shuffle: bool = False,
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype | None = None,
        reuse: bool = False,
    ) -> Iterable[Batch]:
        """The queries in padded batches of ``size``."""
        ...
