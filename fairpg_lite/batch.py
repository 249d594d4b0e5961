"""A batch of queries, padded to one length: what a scorer is given at once."""

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """B queries padded to n documents (chapter 7).

    features (B, n, d), relevance (B, n), groups (B, n) or None, mask (B, n) with True for a real
    document, queries (B,): the index of each query in the dataset. Padding has features 0,
    relevance 0 and group 0. The tensors may be views of the dataset: do not write into them.
    """

    features: Tensor
    relevance: Tensor
    groups: Tensor | None
    mask: Tensor
    queries: Tensor
