"""Batches of the queries of a dataset, in a random order or its own."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor

from fairpg_lite.batch import Batch

# Queries are sorted by length inside pools of this many batches: long enough that padding almost
# vanishes, short enough that a shuffled order stays random.
POOL_BATCHES = 50


@dataclass(eq=False)
class Batches:
    """What ``RankingDataset.batches`` returns: iterate over it once per epoch (chapter 7).

    The order is drawn anew each time, from ``generator``: with ``shuffle`` a random permutation of
    the queries; for size > 1 a stable sort by length inside pools of 50 batches; and with
    ``shuffle`` a random permutation of the batches. Neighbours of one length (size 1, say) are
    views. With ``reuse`` a batch is good until the next one is drawn: their padded features share
    one memory.
    """

    dataset: Any
    size: int = 1
    shuffle: bool = False
    generator: torch.Generator | None = None
    _: KW_ONLY
    dtype: torch.dtype | None = None
    reuse: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"RankingDataset.batches: size is {self.size}; give 1 or more.")
        self._room = self.dataset.features.new_empty(0)

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.size)

    def order(self) -> tuple[Tensor, list[int]]:
        """The queries of an epoch ``(Q,)``, on the CPU, and how many of them each batch takes."""
        n, size = len(self.dataset), self.size
        order = torch.randperm(n, generator=self.generator) if self.shuffle else torch.arange(n)
        sizes = [size] * (n // size) + [n % size] * (n % size > 0)
        if size > 1 and n:
            lengths = torch.tensor(self.dataset._bounds).diff()
            pools = order.split(size * POOL_BATCHES)
            order = torch.cat([pool[lengths[pool].argsort(stable=True)] for pool in pools])
            if self.shuffle:
                batches = order.split(size)
                chosen = torch.randperm(len(batches), generator=self.generator).tolist()
                order, sizes = torch.cat([batches[k] for k in chosen]), [sizes[k] for k in chosen]
        return order, sizes

    def __iter__(self) -> Iterator[Batch]:
        order, sizes = self.order()
        return map(self._batch, order.split(sizes))

    def _batch(self, queries: Tensor) -> Batch:
        bounds, device = self.dataset._bounds, self.dataset.features.device
        starts, ends = zip(*((bounds[i], bounds[i + 1]) for i in queries.tolist()), strict=True)
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        n = max(lengths)
        if min(lengths) == n and starts[1:] == ends[:-1]:  # neighbours of one length
            mask = torch.ones(1, n, dtype=torch.bool, device=device).expand(len(lengths), n)
            return self._padded(lambda values: values[starts[0] : ends[-1]], mask, queries)
        place, length = torch.arange(n), torch.tensor(lengths).unsqueeze(-1)
        mask = place < length
        # Padding points at the query's last document, and is set to zero afterwards.
        index = torch.tensor(starts).unsqueeze(-1) + torch.minimum(place, length - 1)
        rows, padding = index.flatten().to(device), (~mask).flatten().nonzero()[:, 0].to(device)

        def take(values: Tensor) -> Tensor:
            out, needed = None, len(rows) * values[:1].numel()
            if self.reuse and values is self.dataset.features:
                if len(self._room) < needed:
                    self._room = values.new_empty(needed)
                out = self._room[:needed].view(len(rows), -1)
            return torch.index_select(values, 0, rows, out=out).index_fill_(0, padding, 0)

        return self._padded(take, mask.to(device), queries)

    def _padded(self, take: Callable[[Tensor], Tensor], mask: Tensor, queries: Tensor) -> Batch:
        """The batch of the rows that ``take`` chooses of each array."""
        data, dtype = self.dataset, self.dtype or self.dataset.features.dtype
        features = take(data.features).unflatten(0, mask.shape).to(dtype)
        relevance = take(data.relevance).unflatten(0, mask.shape).to(dtype)
        groups = None if data.groups is None else take(data.groups).unflatten(0, mask.shape)
        return Batch(features, relevance, groups, mask, queries)
