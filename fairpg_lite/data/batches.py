"""Padded batches of queries, with a mask."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairpg_lite.batch import Batch

if TYPE_CHECKING:
    from fairpg_lite.data.dataset import RankingDataset

# Queries are sorted by length inside pools of this many batches: long enough that padding almost
# vanishes, short enough that a shuffled order stays random.
POOL_BATCHES = 50


class Batches:
    """What `RankingDataset.batches` returns: iterate over it once per epoch.

    The order, all of it drawn from `generator`: with `shuffle` a random permutation of the
    queries (without: the dataset's order); then, with `bucket` and size > 1, a stable sort by
    length inside pools of 50 batches, so that queries of like length share a batch; then, with
    `shuffle`, a random permutation of the batches. Every iteration draws anew; a query occurs
    once in each. `batch.queries` says which queries a batch holds.

    One query at a time (size 1) gives views and a mask of True: nothing is copied. With `reuse`
    the padded features of all batches share one piece of memory: a batch is good until the next
    one is drawn, and no time goes into fresh memory.

    Chapter 7.
    """

    def __init__(
        self,
        dataset: "RankingDataset",
        size: int,
        shuffle: bool,
        generator: torch.Generator | None,
        *,
        bucket: bool,
        dtype: torch.dtype | None,
        reuse: bool = False,
    ):
        if size < 1:
            raise ValueError(f"RankingDataset.batches: size is {size}; give 1 or more.")
        self.dataset, self.size, self.shuffle = dataset, size, shuffle
        self.generator, self.bucket, self.dtype = generator, bucket, dtype
        self.reuse = reuse
        self._room: Tensor | None = None

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.size)

    def _order(self) -> list[Tensor]:
        """The queries of each batch."""
        n = len(self.dataset)
        order = torch.randperm(n, generator=self.generator) if self.shuffle else torch.arange(n)
        if self.bucket and self.size > 1:
            pools = order.split(self.size * POOL_BATCHES)
            lengths = self.dataset.lengths
            order = torch.cat(
                [pool[lengths[pool].argsort(stable=True)] for pool in pools] or [order]
            )
        batches = list(order.split(self.size)) if n else []
        if self.shuffle and self.size > 1:
            batches = [batches[k] for k in torch.randperm(len(batches), generator=self.generator)]
        return batches

    def __iter__(self) -> Iterator[Batch]:
        dataset = self.dataset
        longest = int(dataset.lengths.max()) if len(dataset) else 0
        # One row of True serves every mask without padding.
        real = torch.ones(1, longest, dtype=torch.bool, device=dataset.features.device)
        if self.size == 1:
            yield from self._singles(real)
            return
        for queries in self._order():
            yield self._batch(queries, real)

    def _singles(self, real: Tensor) -> Iterator[Batch]:
        """One query at a time, in one slice of each array: training spends its life here."""
        ds, dtype = self.dataset, self.dtype
        features, relevance = ds.features[None], ds.relevance[None]
        groups = None if ds.groups is None else ds.groups[None]
        order = self._order()
        for queries, i in zip(order, torch.cat(order).tolist() if order else [], strict=True):
            rows = slice(ds._bounds[i], ds._bounds[i + 1])
            x, y = features[:, rows], relevance[:, rows]
            if dtype is not None:
                x, y = x.to(dtype), y.to(dtype)
            member = None if groups is None else groups[:, rows]
            yield Batch(x, y, member, real[:, : rows.stop - rows.start], queries)

    def _batch(self, queries: Tensor, real: Tensor) -> Batch:
        starts, lengths = self.dataset.offsets[queries], self.dataset.lengths[queries]
        n, count = int(lengths.max()), len(queries)
        even = int(lengths.min()) == n
        if even and bool((starts.diff() == n).all()):  # neighbours of equal length: a block
            first = int(starts[0])
            rows = slice(first, first + count * n)
            return Batch(*self._views(rows, count, n), real[:, :n].expand(count, n), queries)
        place, lengths = torch.arange(n, device=starts.device), lengths.unsqueeze(-1)
        mask = place < lengths
        # Padding points at the query's last document, and is set to zero afterwards.
        index = (starts.unsqueeze(-1) + torch.minimum(place, lengths - 1)).flatten()
        padding = None if even else (~mask).flatten().nonzero().squeeze(-1)
        features, relevance, groups = (
            None
            if values is None
            else self._gather(values, index, padding).unflatten(0, (count, n))
            for values in (self.dataset.features, self.dataset.relevance, self.dataset.groups)
        )
        assert features is not None
        assert relevance is not None
        return Batch(features, relevance, groups, mask, queries)

    def _gather(self, values: Tensor, index: Tensor, padding: Tensor | None) -> Tensor:
        """Rows ``index`` of ``values``, those named by ``padding`` zero."""
        out = None
        if self.reuse and values.ndim == 2:
            needed = len(index) * values.shape[1]
            if self._room is None or len(self._room) < needed:
                self._room = values.new_empty(needed)
            out = self._room[:needed].view(len(index), values.shape[1])
        rows = torch.index_select(values, 0, index, out=out)
        if padding is not None:
            rows.index_fill_(0, padding, 0)
        return rows.to(self.dtype or values.dtype) if values.is_floating_point() else rows

    def _views(self, rows: slice, count: int, n: int) -> tuple[Tensor, Tensor, Tensor | None]:
        ds, dtype = self.dataset, self.dtype or self.dataset.features.dtype
        groups = None if ds.groups is None else ds.groups[rows].reshape(count, n)
        features = ds.features[rows].reshape(count, n, ds.n_features).to(dtype)
        return features, ds.relevance[rows].reshape(count, n).to(dtype), groups
