"""Padded batches of queries, with a mask."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from fairpg_lite.scorers import Batch

# Queries are sorted by length inside pools of this many batches: long enough that padding almost
# vanishes, short enough that a shuffled order stays random.
POOL_BATCHES = 50


@dataclass(eq=False)
class Batches:
    """What `RankingDataset.batches` returns: iterate over it once per epoch.

    The order is drawn anew each time, from `generator`: with `shuffle` a random permutation of the
    queries; then, for size > 1, a stable sort by length inside pools of 50 batches, so that queries
    of like length share a batch; then, with `shuffle`, a random permutation of the batches.

    Neighbours of one length (size 1, say) are views. With `reuse` the padded features of all
    batches share one piece of memory: a batch is good until the next one is drawn.

    Chapter 7.
    """

    features: Tensor
    relevance: Tensor
    groups: Tensor | None
    bounds: Sequence[int]
    size: int
    shuffle: bool
    generator: torch.Generator | None
    dtype: torch.dtype | None
    reuse: bool

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"RankingDataset.batches: size is {self.size}; give 1 or more.")
        self._room: Tensor | None = None

    def __len__(self) -> int:
        return -(-(len(self.bounds) - 1) // self.size)

    def _order(self) -> list[Tensor]:
        """The queries of each batch, on the CPU, so that no batch waits for another device."""
        n = len(self.bounds) - 1
        order = torch.randperm(n, generator=self.generator) if self.shuffle else torch.arange(n)
        if self.size > 1 and n:
            lengths = torch.tensor(self.bounds).diff()
            pools = order.split(self.size * POOL_BATCHES)
            order = torch.cat([pool[lengths[pool].argsort(stable=True)] for pool in pools])
        batches = list(order.split(self.size)) if n else []
        if self.shuffle and self.size > 1:
            batches = [batches[k] for k in torch.randperm(len(batches), generator=self.generator)]
        return batches

    def __iter__(self) -> Iterator[Batch]:
        longest = max((end - start for start, end in pairwise(self.bounds)), default=0)
        # One row of True serves every mask without padding.
        real = torch.ones(1, longest, dtype=torch.bool, device=self.features.device)
        return (self._batch(queries, real) for queries in self._order())

    def _batch(self, queries: Tensor, real: Tensor) -> Batch:
        bounds, places = self.bounds, queries.tolist()
        starts, ends = [bounds[i] for i in places], [bounds[i + 1] for i in places]
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        n = max(lengths)
        even = lengths.count(n) == len(lengths)
        if even and starts[1:] == ends[:-1]:  # neighbours of one length
            mask = real[:, :n].expand(len(places), n)
            return self._padded(lambda values: values[starts[0] : ends[-1]], mask, queries)
        place, length = torch.arange(n), torch.tensor(lengths).unsqueeze(-1)
        mask, device = place < length, self.features.device
        # Padding points at the query's last document, and is set to zero afterwards.
        index = torch.tensor(starts).unsqueeze(-1) + torch.minimum(place, length - 1)
        rows, padding = index.flatten().to(device), (~mask).flatten().nonzero()[:, 0].to(device)
        return self._padded(lambda x: self._gather(x, rows, padding), mask.to(device), queries)

    def _padded(self, take: Callable[[Tensor], Tensor], mask: Tensor, queries: Tensor) -> Batch:
        """The batch of the rows that `take` chooses of each array."""
        features, relevance, groups = (
            values if values is None else take(values).unflatten(0, mask.shape)
            for values in (self.features, self.relevance, self.groups)
        )
        assert features is not None
        assert relevance is not None
        if self.dtype is not None:
            features, relevance = features.to(self.dtype), relevance.to(self.dtype)
        return Batch(features, relevance, groups, mask, queries)

    def _gather(self, values: Tensor, index: Tensor, padding: Tensor) -> Tensor:
        """Rows `index` of `values`, those named by `padding` zero."""
        out, needed = None, len(index) * math.prod(values.shape[1:])
        if self.reuse and values.ndim == 2:
            if self._room is None or len(self._room) < needed:
                self._room = values.new_empty(needed)
            out = self._room[:needed].view(len(index), values.shape[1])
        rows = torch.index_select(values, 0, index, out=out)
        return rows.index_fill_(0, padding, 0) if len(padding) else rows
