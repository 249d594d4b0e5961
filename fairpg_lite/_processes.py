"""Training with few threads, and in several processes by ``torch.distributed`` (chapter 15)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from fairpg_lite.scorers import Batch

# An update of fewer numbers than this (documents times features) is not worth a second thread:
# threads wait for each other, and on a busy machine for twenty times as long as the work takes.
SHARED = 4_000_000


def world() -> int:
    """How many processes train together."""
    together = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if together else 1


def rank() -> int:
    """Which of them this one is, from 0."""
    return distributed.get_rank() if world() > 1 else 0


def together(scorer: nn.Module) -> nn.Module:
    """The scorer, begun in all processes from the first one's weights, gradients averaged."""
    return DistributedDataParallel(scorer) if world() > 1 else scorer


def total(values: Tensor) -> Tensor:
    """The sums over all processes, in place."""
    if world() > 1:
        distributed.all_reduce(values)
    return values


def shares(batches: Any) -> Iterator[tuple[Batch, float]]:
    """The batches of an epoch, and the weight of each query in the mean that its update takes.

    `DistributedDataParallel` takes the mean over processes, so for the mean over queries a weight
    is the number of processes by that of all their queries; a process that has no batch left
    repeats its last with weight 0, because the others wait for its gradient.
    """
    if world() == 1:
        yield from ((batch, 1.0 / len(batch.queries)) for batch in batches)
        return
    counts = torch.zeros(world(), dtype=torch.int64)
    counts[rank()] = len(batches)
    remaining = iter(batches)
    batch = next(remaining)
    for k in range(int(total(counts).max())):
        own = len(batch.queries) if k < len(batches) else 0
        queries = int(total(torch.tensor([own])))
        yield batch, world() / queries if own else 0.0
        batch = next(remaining, batch)


@contextmanager
def threads_for(work: float) -> Iterator[None]:
    """One thread for updates of so little work, and as many as before when it is done."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if work >= SHARED else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
