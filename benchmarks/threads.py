"""What a second thread does for `fit`: on an idle machine, and beside an endless loop.

python -m benchmarks.threads
"""

import os
from collections.abc import Callable
from unittest.mock import patch

import torch

from benchmarks import _timing
from fairpg_lite import LinearScorer, MLPScorer, RankingDataset, TrainConfig, fit
from fairpg_lite.compiled import epochs
from fairpg_lite.training import loop as train

COMMAND = "python -m benchmarks.threads"
#: (scorer, queries per update, documents per query, features); the last two compiled
PROBLEMS = (
    ("linear", 1, 10, 2),
    ("linear", 1, 120, 136),
    ("linear", 1, 120, 700),
    ("neural", 1, 120, 700),
    ("linear", 64, 24, 136),
    ("neural", 64, 24, 136),
    ("neural", 64, 120, 136),
    ("neural", 64, 120, 700),
    ("linear", 512, 24, 700),
    ("neural", 512, 24, 700),
)
ROUNDS = 3
#: What `fit` decides, and what it would cost never or always to share the work.
WAYS = {"fit": epochs.SHARED, "one thread": float("inf"), "all threads": 0.0}


def problem(kind: str, batch: int, n: int, d: int, shared: float) -> Callable[[], None]:
    """An epoch of a few updates, with a limit of one's own for the threads."""
    g = torch.Generator().manual_seed(0)
    queries = max(3 * batch, 30)
    data = RankingDataset(
        torch.randn(queries * n, d, generator=g),
        torch.randint(0, 5, (queries * n,), generator=g).float(),
        torch.arange(queries + 1) * n,
    )
    config = TrainConfig(disparity=None, batch_size=batch, epochs=1, compiled=batch > 64)

    def run() -> None:
        scorer = LinearScorer(d) if kind == "linear" else MLPScorer(d)
        with patch.object(train, "SHARED", shared), patch.object(epochs, "SHARED", shared):
            fit(scorer, data, config, progress=False)

    return run


def main() -> None:
    """Print, for every problem, how many times as long as one thread the two others take."""
    torch.set_num_threads(os.cpu_count() or 1)
    table = {}
    for loops in (0, 1):
        print(f"{loops} busy loops beside it; times one thread's:")
        with _timing.busy(loops):
            for kind, batch, n, d in PROBLEMS:
                work = {way: problem(kind, batch, n, d, shared) for way, shared in WAYS.items()}
                spent = _timing.interleaved(work, ROUNDS)
                name = f"{kind}, {batch} x {n} documents, {d} features"
                ratios = {way: spent[way] / spent["one thread"] for way in ("fit", "all threads")}
                table[f"{name}, {loops} loops"] = {"seconds": spent, **ratios}
                print(f"  {name:<42} fit {ratios['fit']:5.2f}   all {ratios['all threads']:5.2f}")
    _timing.store("threads", COMMAND, table=table)


if __name__ == "__main__":
    main()
