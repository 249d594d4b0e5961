"""What a pass of ``fit`` over the data costs in queries, documents, features and samples.

python -m benchmarks.catalogue [--small]

One of the four is varied at a time, around 1,000 queries of 24 documents with 136 features and
S = 10; batches of 64, sampled and exact, and one query per update, by compiled epochs; the sampled
batches by autograd, too, and one query per update by autograd up to 1,000 queries. Times are CPU
seconds. Chapter 18 reads the file and works out what a million queries would cost. ``--small``
stores nothing.
"""

import sys
import time
from collections.abc import Callable

import torch

from benchmarks import _timing
from fairpg_lite import LinearScorer, RankingDataset, TrainConfig
from fairpg_lite.training.run import Run

COMMAND = "python -m benchmarks.catalogue"
BASE = {"queries": 1000, "documents": 24, "features": 136, "samples": 10}
VARIED = {
    "queries": (250, 500, 1000, 2000, 4000),
    "documents": (6, 12, 24, 48, 96),
    "features": (17, 68, 136, 272, 700),
    "samples": (2, 5, 10, 25, 50),
}
#: The gradient's method, queries per update, and whether Numba compiles the epoch.
WAYS = {
    "sample 64": ("sample", 64, True),
    "exact 64": ("exact", 64, True),
    "sample 1": ("sample", 1, True),
    "sample 64, autograd": ("sample", 64, False),
    "sample 1, autograd": ("sample", 1, False),
}
#: So slow that it is measured only where queries vary, and for no more than those of `BASE`.
SLOW = "sample 1, autograd"
ROUNDS = 3


def dataset(queries: int, documents: int, features: int) -> RankingDataset:
    """Random numbers in the right shape: the cost does not look at their values."""
    g = torch.Generator().manual_seed(0)
    count = queries * documents
    return RankingDataset(
        features=torch.rand(count, features, generator=g),
        relevance=torch.randint(0, 5, (count,), generator=g).float(),
        offsets=torch.arange(0, count + 1, documents),
    )


def epoch(way: str, samples: int, **shape: int) -> Callable[[], None]:
    """One pass of Fair-PG-Rank with D_ind and a linear scorer."""
    method, size, is_compiled = WAYS[way]
    config = TrainConfig(
        lam=1.0,
        disparity="d_ind",
        method=method,
        batch_size=size,
        samples=samples,
        lr=1e-5,
        compiled=is_compiled,
    )
    data = dataset(**shape)
    scorer = LinearScorer(data.n_features, generator=torch.Generator().manual_seed(0))
    return Run(scorer, data, config).epoch


def measure(small: bool) -> dict[str, dict[str, dict[str, float]]]:
    """CPU seconds of a pass: what is varied, then its value, then the way."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for name, values in VARIED.items():
        table[name] = {}
        for value in values[:2] if small else values:
            shape = {**BASE, name: value}
            if small:
                shape["queries"] = min(shape["queries"], 64)
            is_slow_measured = name == "queries" and value <= BASE["queries"]
            ways = [way for way in WAYS if way != SLOW or is_slow_measured]
            work = {way: epoch(way, **shape) for way in ways}
            rounds = 1 if small else ROUNDS
            table[name][str(value)] = _timing.interleaved(work, rounds, time.process_time)
            base = table[name][str(values[0])]
            ratios = [f"{way} {table[name][str(value)][way] / base[way]:6.2f}" for way in ways]
            print(f"{name} {value:>5}, times the first: " + ", ".join(ratios), flush=True)
    return table


def main(small: bool = False) -> None:
    """Measure, print ratios and store."""
    torch.set_num_threads(1)
    table = measure(small)
    if not small:
        _timing.store("catalogue", COMMAND, base=BASE, clock="CPU", seconds=table)


if __name__ == "__main__":
    main(small="--small" in sys.argv[1:])
