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
from fairpg_lite import TrainConfig, synthetic
from fairpg_lite.sweeps import Cell, FairPGRank, Splits, grid, run_cells

COMMAND = "python -m benchmarks.sweep"
LAMS = (0, 1, 5, 25)
SEEDS = range(4)
ROUNDS = 3


@dataclass(frozen=True)
class SyntheticQueries:
    """The synthetic data of section 4.2, drawn anew for every seed; trained and measured on."""

    def load(self, seed: int) -> Splits:
        """The queries of a seed."""
        data = synthetic(seed=seed)
        return Splits(data, data)


def authors_schedule(epochs: int) -> FairPGRank:
    """Fair-PG-Rank by the authors' schedule on the synthetic data, for a number of epochs."""
    return FairPGRank(
        SyntheticQueries(),
        TrainConfig(lr=0.1, lr_decay=0.5, epochs=epochs, samples=10),
        evaluate_options={"measures": ("ndcg", "d_group")},
        name="fair_pg_rank",
    )


def run(cells: list[Cell], jobs: int) -> list[dict[str, Any]]:
    """The records of the cells, from an empty directory."""
    with tempfile.TemporaryDirectory() as out:
        return run_cells(cells, out, jobs=jobs, progress=False)


def stop_workers() -> None:
    """End the processes that joblib keeps for the next sweep."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def measure(cells: list[Cell], rounds: int) -> dict[str, Any]:
    """Seconds on one and on two processes (medians), the cold start, and whether all agrees."""
    spent = _timing.interleaved({"1": partial(run, cells, 1), "2": partial(run, cells, 2)}, rounds)
    stop_workers()
    cold = _timing.seconds(partial(run, cells, 2))
    in_one = [record["result"] for record in run(cells, 1)]
    in_two = [record["result"] for record in run(cells, 2)]
    cost = sum(record["seconds"] for record in run(cells, 1))
    return {
        "cells": len(cells),
        "seconds": spent,
        "speed-up": spent["1"] / spent["2"],
        "cold start": cold - spent["2"],
        "overhead of one process per cell": (spent["1"] - cost) / len(cells),
        "same numbers": in_one == in_two,
    }


def main(small: bool = False) -> None:
    """Measure at cells of different length, print and store."""
    torch.set_num_threads(1)
    rows = []
    for epochs in (1,) if small else (1, 5, 10):
        cells = grid(authors_schedule(epochs), LAMS[:2] if small else LAMS, SEEDS)
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
