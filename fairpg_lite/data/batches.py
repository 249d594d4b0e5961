"""Padded batches of queries, with a mask."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fairpg_lite.batch import Batch

# Queries are sorted by length inside pools of this many batches: long enough that padding almost
# vanishes, short enough that a shuffled order stays random.
POOL_BATCHES = 50


@dataclass(eq=False)
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

    features: Tensor
    relevance: Tensor
    groups: Tensor | None
    bounds: Sequence[int]
    size: int
    shuffle: bool
    generator: torch.Generator | None
    bucket: bool
    dtype: torch.dtype | None
    reuse: bool

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"RankingDataset.batches: size is {self.size}; give 1 or more.")
        self._room: Tensor | None = None
        # Which rows to take is decided on the CPU, so that no batch waits for another device.
        self._offsets = torch.tensor(self.bounds)
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
        order = self._order()
        longest = int(self._lengths.max()) if order else 0
        # One row of True serves every mask without padding.
        real = torch.ones(1, longest, dtype=torch.bool, device=self.features.device)
        if self.size > 1:
            yield from (self._batch(queries, real) for queries in order)
            return
        places = torch.cat(order).tolist() if order else []
        for queries, i in zip(order, places, strict=True):  # training spends its life here
            yield self._views(queries, self.bounds[i], self.bounds[i + 1], real)

    def _views(self, queries: Tensor, start: int, end: int, real: Tensor) -> Batch:
        """Neighbours of one length, the rows from `start` to `end`, in one slice of each array."""
        count = len(queries)
        shape = (count, (end - start) // count)
        groups = None if self.groups is None else self.groups[start:end].unflatten(0, shape)
        features, relevance = self.features[start:end], self.relevance[start:end]
        if self.dtype is not None:
            features, relevance = features.to(self.dtype), relevance.to(self.dtype)
        features, relevance = features.unflatten(0, shape), relevance.unflatten(0, shape)
        return Batch(features, relevance, groups, real[:, : shape[1]].expand(shape), queries)

    def _batch(self, queries: Tensor, real: Tensor) -> Batch:
        starts, lengths = self._offsets[queries], self._lengths[queries]
        n, even = int(lengths.max()), bool((lengths == lengths[0]).all())
        if even and bool((starts.diff() == n).all()):
            return self._views(queries, int(starts[0]), int(starts[-1]) + n, real)
        device, place, lengths = self.features.device, torch.arange(n), lengths.unsqueeze(-1)
        mask = place < lengths
        # Padding points at the query's last document, and is set to zero afterwards.
        index = (starts.unsqueeze(-1) + torch.minimum(place, lengths - 1)).flatten().to(device)
        padding = None if even else (~mask).flatten().nonzero().squeeze(-1).to(device)
        features, relevance, groups = (
            None if values is None else self._gather(values, index, padding).unflatten(0, (-1, n))
            for values in (self.features, self.relevance, self.groups)
        )
        assert features is not None
        assert relevance is not None
        return Batch(features, relevance, groups, mask.to(device), queries)

    def _gather(self, values: Tensor, index: Tensor, padding: Tensor | None) -> Tensor:
        """Rows `index` of `values`, those named by `padding` zero."""
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
