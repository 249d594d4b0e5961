"""A sweep of real trainings, to be interrupted: run by test_sweep_interrupted.py.

python sweep_interrupted.py tradeoff|run_cells JOBS FOLDER

Prints a line as soon as the first run is stored.
"""

import sys
from pathlib import Path

from fairpg_lite import TrainConfig, synthetic, tradeoff
from fairpg_lite.sweeps import FairPGRank, Splits, grid, run_cells, running

LAMS = [0.0, 20.0]
SEEDS = 2


def announce_the_first() -> None:
    write = running.write_record
    stored = []

    def announcing(path: Path, record: running.Record) -> None:
        write(path, record)
        stored.append(path)
        if len(stored) == 1:
            print("the first is stored", flush=True)

    running.write_record = announcing


def main(function: str, jobs: int, out: Path) -> None:
    announce_the_first()
    train = synthetic(30, seed=0)
    test = synthetic(6, seed=1)
    # By autograd, a second or so for each run.
    config = TrainConfig(epochs=25, lr=0.1, compiled=False)
    if function == "tradeoff":
        tradeoff(train, test, LAMS, SEEDS, out=out, config=config, jobs=jobs, progress=False)
    else:
        cells = grid(FairPGRank(Splits(train, test), config), LAMS, range(SEEDS))
        run_cells(cells, out, jobs=jobs, progress=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
