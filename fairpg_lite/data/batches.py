"""Batches of the queries of a dataset, in a random order or its own."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fairpg_lite.batch import Batch

# Queries are sorted by length inside pools of this many batches: long enough that padding almost
# vanishes, short enough that a shuffled order stays random.
POOL_BATCHES = 50


@dataclass(eq=False, kw_only=True)
class Batches:
    """Batches of `size` queries: what `RankingDataset.batches` returns, which has its options.

    Iterate over it once for each epoch; the order is drawn anew each time, from `generator`.
    `len` is the number of batches. `features (N, d)`, `relevance (N,)`, and `groups (N,)`,
    `document_ids (N,)`, `columns` (each `(N,)`) and `query_weights (Q,)` or None, are those of a
    dataset whose query i owns the rows `bounds[i]:bounds[i + 1]`.
    """

    features: Tensor
    relevance: Tensor
    groups: Tensor | None
    document_ids: Tensor | None
    columns: Mapping[str, Tensor] | None
    query_weights: Tensor | None
    bounds: list[int]
    size: int
    shuffle: bool
    generator: torch.Generator | None
    dtype: torch.dtype | None
    reuse: bool

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"RankingDataset.batches: size is {self.size}; give 1 or more.")
        # With `reuse`, the memory that the padded features of all batches share.
        self._shared = self.features.new_empty(0)

    def __len__(self) -> int:
        n_queries = len(self.bounds) - 1
        return -(-n_queries // self.size)

    def order(self) -> tuple[Tensor, list[int]]:
        """Return the queries of an epoch `(Q,)`, on the CPU, and how many of them each batch takes.

        With `shuffle` they are a random permutation. For a size above 1 pools of 50 batches are
        sorted by length (a stable sort), and with `shuffle` the batches are then permuted.
        """
        n_queries = len(self.bounds) - 1
        if self.shuffle:
            order = torch.randperm(n_queries, generator=self.generator)
        else:
            order = torch.arange(n_queries)
        n_full, n_left = divmod(n_queries, self.size)
        sizes = [self.size] * n_full
        if n_left:
            sizes.append(n_left)
        if self.size == 1 or n_queries == 0:
            return order, sizes

        lengths = torch.tensor(self.bounds).diff()
        pools = torch.split(order, self.size * POOL_BATCHES)
        order = torch.cat([pool[lengths[pool].argsort(stable=True)] for pool in pools])
        if not self.shuffle:
            return order, sizes
        batches = torch.split(order, self.size)
        permutation = torch.randperm(len(batches), generator=self.generator).tolist()
        order = torch.cat([batches[k] for k in permutation])
        return order, [sizes[k] for k in permutation]

    def __iter__(self) -> Iterator[Batch]:
        order, sizes = self.order()
        return map(self._batch, torch.split(order, sizes))

    def _batch(self, queries: Tensor) -> Batch:
        """Return the batch of `queries (B,)`: views of neighbours of one length, or a copy."""
        numbers = queries.tolist()
        starts = [self.bounds[i] for i in numbers]
        ends = [self.bounds[i + 1] for i in numbers]
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        are_neighbours = starts[1:] == ends[:-1]
        if are_neighbours and min(lengths) == max(lengths):
            return self._view(queries, starts[0], ends[-1])
        return self._copy(queries, starts, lengths)

    def _view(self, queries: Tensor, start: int, end: int) -> Batch:
        """Return the batch of `queries` of one length, which own the rows `start:end`."""
        shape = (len(queries), (end - start) // len(queries))
        one_row = torch.ones(1, shape[1], dtype=torch.bool, device=self.features.device)
        return self._assembled(queries, one_row.expand(shape), lambda values: values[start:end])

    def _copy(self, queries: Tensor, starts: list[int], lengths: list[int]) -> Batch:
        """Return the batch of `queries`, copied and padded to the longest."""
        device = self.features.device
        place = torch.arange(max(lengths))
        length = torch.tensor(lengths).unsqueeze(-1)
        mask = place < length
        # Padding points at the query's last document, and is set to zero afterwards.
        row_of_place = torch.tensor(starts).unsqueeze(-1) + torch.minimum(place, length - 1)
        rows = row_of_place.flatten().to(device)
        padding = (~mask).flatten().nonzero()[:, 0].to(device)

        def take(values: Tensor) -> Tensor:
            out = self._room(len(rows)) if self.reuse and values is self.features else None
            return torch.index_select(values, 0, rows, out=out).index_fill_(0, padding, 0)

        return self._assembled(queries, mask.to(device), take)

    def _room(self, n_rows: int) -> Tensor:
        """Return the shared memory for `n_rows` rows of features, after it has grown if needed."""
        n_features = self.features.shape[1]
        n_values = n_rows * n_features
        if len(self._shared) < n_values:
            self._shared = self.features.new_empty(n_values)
        return self._shared[:n_values].view(n_rows, n_features)

    def _assembled(self, queries: Tensor, mask: Tensor, take: Callable[[Tensor], Tensor]) -> Batch:
        """Return the batch with `mask (B, n)` of the rows that `take` chooses of each array."""
        dtype = self.dtype or self.features.dtype
        features = torch.unflatten(take(self.features), 0, mask.shape).to(dtype)
        relevance = torch.unflatten(take(self.relevance), 0, mask.shape).to(dtype)
        groups = None
        if self.groups is not None:
            groups = torch.unflatten(take(self.groups), 0, mask.shape)
        document_ids = None
        if self.document_ids is not None:
            document_ids = torch.unflatten(take(self.document_ids), 0, mask.shape)
        columns = None
        if self.columns is not None:
            columns = {}
            for name, values in self.columns.items():
                column = torch.unflatten(take(values), 0, mask.shape)
                columns[name] = column.to(dtype) if column.is_floating_point() else column
        query_weights = None
        if self.query_weights is not None:
            query_weights = self.query_weights[queries.to(self.query_weights.device)].to(dtype)
        return Batch(
            features, relevance, groups, mask, queries, document_ids, columns, query_weights
        )
