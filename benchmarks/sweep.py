"""How much faster is a sweep on two processes than on one? Fair-PG-Rank on the synthetic data.

python -m benchmarks.sweep [--small]

The same grid of lambda and seeds, from an empty directory each time, on one process and on two, in
turn. The cold start of the two (importing torch in each) is measured on its own: a sweep pays for
it once, however long it is. ``--small`` shows in seconds that it works and stores nothing.
"""

import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from benchmarks import _timing
from fairpg_lite import (
    Cell,
    LinearScorer,
    TrainConfig,
    evaluate,
    fit,
    grid,
    run_cells,
    synthetic,
)

COMMAND = "python -m benchmarks.sweep"
LAMBDAS, SEEDS, ROUNDS = (0, 1, 5, 25), range(4), 3


@dataclass(frozen=True)
class SyntheticFairPGRank:
    """The authors' schedule on the synthetic data of section 4.2, for a number of epochs."""

    epochs: int = 5
    samples: int = 10
    name = "fair_pg_rank"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        data = synthetic(seed=seed)
        scorer = LinearScorer(2, generator=torch.Generator().manual_seed(seed))
        config = TrainConfig(
            lam=lam, lr=0.1, lr_decay=0.5, epochs=self.epochs, samples=self.samples, seed=seed
        )
        fit(scorer, data, config, progress=False)
        result = evaluate(scorer, data, samples=1)
        return {"ndcg": result.ndcg, "d_group": result.d_group}


def run(cells: list[Cell], n_jobs: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as out:
        return run_cells(cells, out, n_jobs=n_jobs, progress=False)


def stop_workers() -> None:
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def measure(cells: list[Cell], rounds: int) -> dict[str, Any]:
    """Seconds on one and on two processes (medians), the cold start, and whether all agrees."""
    spent = _timing.interleaved({"1": partial(run, cells, 1), "2": partial(run, cells, 2)}, rounds)
    stop_workers()
    cold = _timing.seconds(partial(run, cells, 2))
    one, two = ([cell["result"] for cell in run(cells, n)] for n in (1, 2))
    cost = sum(cell["seconds"] for cell in run(cells, 1))
    return {
        "cells": len(cells),
        "seconds": spent,
        "speed-up": spent["1"] / spent["2"],
        "cold start": cold - spent["2"],
        "overhead of one process per cell": (spent["1"] - cost) / len(cells),
        "same numbers": one == two,
    }


def main(small: bool = False) -> None:
    """Measure at cells of different length, print and store."""
    torch.set_num_threads(1)
    rows = []
    for epochs in (1,) if small else (1, 5, 10):
        experiment = SyntheticFairPGRank(epochs)
        cells = grid(experiment, LAMBDAS[:2] if small else LAMBDAS, SEEDS)
        row = {"epochs": epochs, **measure(cells, 1 if small else ROUNDS)}
        rows.append(row)
        print(
            f"{epochs:3} epochs, {row['cells']} cells: two processes {row['speed-up']:.2f} times "
            f"as fast as one; same numbers: {row['same numbers']}",
            flush=True,
        )
    if not small:
        _timing.store("sweep", COMMAND, rows=rows)


if __name__ == "__main__":
    main(small="--small" in sys.argv[1:])
