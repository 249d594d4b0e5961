"""Figure 2 on the open MSLR sample, all its queries split anew in every repetition (chapter 11).

A repetition trains on 32 of the 84 queries, chooses the epoch by 10 and judges by 42. The linear
model is run with the text's entropy weight, 1, and with the authors', 0. The results have what a
comparison at equal D_ind needs.
"""

from experiments.problems import RankingData
from experiments.rankers import COLUMNS, describe_data, pg_rank
from fairpg_lite.sweeps import Cell, grid

__all__ = ["COLUMNS", "describe_data", "plan"]

LAMS = (0.0, 3.0, 5.0, 10.0, 100.0)
QUICK_LAMS = (0.0, 10.0)
REPETITIONS = 20


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """The cells of the linear model over lambda; 20 splits by default."""
    runs = range(seeds or (2 if quick else REPETITIONS))
    lams = QUICK_LAMS if quick else LAMS
    problem = RankingData("mslr-splits", share=0.5 if quick else 1.0)
    cells = []
    for entropy in (0.0, 1.0):
        experiment = pg_rank(
            problem,
            "linear",
            entropy=entropy,
            epochs=3 if quick else 200,
            lr=1e-3,
            patience=50,
            compiled="auto" if quick else True,
            forms=True,
        )
        cells += grid(experiment, lams, runs)
    return cells
