"""Padded batches of queries, with a mask."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from fairpg_lite.batch import Batch

# Queries are sorted by length inside pools of this many batches: long enough that padding almost
# vanishes, short enough that a shuffled order stays random.
POOL_BATCHES = 50


class Batches:
    """What `RankingDataset.batches` returns: iterate over it once per epoch.

    The order, all of it drawn from `generator`: with `shuffle` a random permutation of the
    queries (without: the dataset's order); then, with `bucket` and size > 1, a stable sort by
    length inside pools of 50 batches, so that queries of like length share a batch; then, with
    `shuffle`, a random permutation of the batches. Every iteration draws anew; a query occurs
    once in each. `batch.queries` says, on the CPU, which queries a batch holds.

    One query at a time (size 1) gives views and a mask of True: nothing is copied. With `reuse`
    the padded features of all batches share one piece of memory: a batch is good until the next
    one is drawn, and no time goes into fresh memory.

    Chapter 7.
    """

    def __init__(
        self,
        features: Tensor,
        relevance: Tensor,
        groups: Tensor | None,
        bounds: Sequence[int],
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
        self.features, self.relevance, self.groups = features, relevance, groups
        self.bounds, self.size, self.shuffle, self.generator = bounds, size, shuffle, generator
        self.bucket, self.dtype, self.reuse = bucket, dtype, reuse
        self._room: Tensor | None = None
        # Which rows to take is decided on the CPU, so that no batch waits for another device.
        self._offsets = torch.tensor(bounds)
        self._lengths = self._offsets.diff()

    def __len__(self) -> int:
        return -(-len(self._lengths) // self.size)

    def _order(self) -> list[Tensor]:
        """The queries of each batch."""
        n = len(self._lengths)
        order = torch.randperm(n, generator=self.generator) if self.shuffle else torch.arange(n)
        if self.bucket and self.size > 1:
            pools = order.split(self.size * POOL_BATCHES)
            sorted_pools = [pool[self._lengths[pool].argsort(stable=True)] for pool in pools]
            order = torch.cat(sorted_pools or [order])
        batches = list(order.split(self.size)) if n else []
        if self.shuffle and self.size > 1:
            batches = [batches[k] for k in torch.randperm(len(batches), generator=self.generator)]
        return batches

    def __iter__(self) -> Iterator[Batch]:
        longest = int(self._lengths.max()) if len(self._lengths) else 0
        # One row of True serves every mask without padding.
        real = torch.ones(1, longest, dtype=torch.bool, device=self.features.device)
        if self.size == 1:
            yield from self._singles(real)
            return
        for queries in self._order():
            yield self._batch(queries, real)

    def _singles(self, real: Tensor) -> Iterator[Batch]:
        """One query at a time, in one slice of each array: training spends its life here."""
        dtype, bounds = self.dtype, self.bounds
        features, relevance = self.features[None], self.relevance[None]
        groups = None if self.groups is None else self.groups[None]
        order = self._order()
        for queries, i in zip(order, torch.cat(order).tolist() if order else [], strict=True):
            rows = slice(bounds[i], bounds[i + 1])
            x, y = features[:, rows], relevance[:, rows]
            if dtype is not None:
                x, y = x.to(dtype), y.to(dtype)
            member = None if groups is None else groups[:, rows]
            yield Batch(x, y, member, real[:, : rows.stop - rows.start], queries)

    def _batch(self, queries: Tensor, real: Tensor) -> Batch:
        starts, lengths = self._offsets[queries], self._lengths[queries]
        n, count = int(lengths.max()), len(queries)
        even = int(lengths.min()) == n
        if even and bool((starts.diff() == n).all()):  # neighbours of equal length: a block
            first = int(starts[0])
            rows = slice(first, first + count * n)
            return Batch(*self._views(rows, count, n), real[:, :n].expand(count, n), queries)
        device = self.features.device
        place, lengths = torch.arange(n), lengths.unsqueeze(-1)
        mask = place < lengths
        # Padding points at the query's last document, and is set to zero afterwards.
        index = (starts.unsqueeze(-1) + torch.minimum(place, lengths - 1)).flatten().to(device)
        padding = None if even else (~mask).flatten().nonzero().squeeze(-1).to(device)
        features, relevance, groups = (
            None
            if values is None
            else self._gather(values, index, padding).unflatten(0, (count, n))
            for values in (self.features, self.relevance, self.groups)
        )
        assert features is not None
        assert relevance is not None
        return Batch(features, relevance, groups, mask.to(device), queries)

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
        dtype = self.dtype or self.features.dtype
        groups = None if self.groups is None else self.groups[rows].reshape(count, n)
        features = self.features[rows].reshape(count, n, self.features.shape[1]).to(dtype)
        return features, self.relevance[rows].reshape(count, n).to(dtype), groups
