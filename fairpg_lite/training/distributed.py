"""Processes that train together, each on its own shard of the queries.

Everything here also serves a process that trains alone.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, distributed

from fairpg_lite.batch import Batch


def process_count() -> int:
    """How many processes train together; 1 without `torch.distributed`."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    return 1


def process_rank() -> int:
    """Which of them this process is, counted from 0."""
    if process_count() > 1:
        return distributed.get_rank()
    return 0


def sum_over_processes(values: Tensor) -> Tensor:
    """``values``, of any shape, in which each entry becomes its sum over all processes."""
    if process_count() > 1:
        distributed.all_reduce(values)
    return values


def weighted_batches(batches: Iterable[Batch]) -> Iterator[tuple[Batch, float]]:
    """The batches of an epoch, each with the weight that its queries have in the loss.

    An update goes along the mean over the queries of all processes' batches. Because
    `DistributedDataParallel` takes the mean over processes, a query's weight is the number of
    processes divided by the number of queries in all their batches. A process that has no batch
    left repeats its last one with weight 0, because the others wait for its gradient.
    """
    remaining = iter(batches)
    last_batch = None
    while True:
        batch = next(remaining, None)
        n_queries = 0 if batch is None else len(batch.queries)
        n_queries_of_all = int(sum_over_processes(torch.tensor([n_queries])))
        if n_queries_of_all == 0:
            return
        if batch is not None:
            last_batch = batch
            yield batch, process_count() / n_queries_of_all
        elif last_batch is not None:
            yield last_batch, 0.0
