"""Table 1 and Figure 2 on the open MSLR sample, by `experiments.protocol` (chapter 11).

A repetition splits all 84 queries anew: 32 to train, 10 to validate, 42 to test. Figure 2 is run
with the text's entropy weight, 1, and with the authors', 0. The results have what a comparison at
equal D_ind needs. ``experiments.mslr`` keeps the test queries that the sample came with.
"""

from experiments.problems import RankingData
from experiments.rankers import COLUMNS, baselines, describe_data, pg_rank
from fairpg_lite.sweeps import Cell, grid

__all__ = ["COLUMNS", "describe_data", "plan"]

LAMS = (0.0, 3.0, 5.0, 10.0, 100.0)
QUICK_LAMS = (0.0, 10.0)
#: Splits of 84 queries share so many of them that more repetitions would hardly narrow an interval.
REPETITIONS = 6


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """The cells of both models over lambda, and of the three baselines; 6 splits by default."""
    runs = range(seeds or (2 if quick else REPETITIONS))
    lams = QUICK_LAMS if quick else LAMS
    problem = RankingData("mslr-splits", share=0.5 if quick else 1.0)
    cells = []
    for model in ("linear", "neural"):
        for entropy in (1.0, 0.0):
            experiment = pg_rank(
                problem,
                model,
                entropy=entropy,
                epochs=3 if quick else 200,
                lr=1e-3,
                patience=50,
                compiled="auto" if quick else True,
                forms=True,
            )
            cells += grid(experiment, lams, runs)
    return cells + baselines(problem, runs, quick=quick)
