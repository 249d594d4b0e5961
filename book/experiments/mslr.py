"""The protocol of Table 1 and Figure 2 on open data: 42 + 42 queries of MSLR-WEB10K.

Small, but real, and everyone may have them (chapters 10 and 11 say what differs from the paper). A
seed draws 10 of the 42 training queries for validation; they choose RankSVM's C, stop the trees,
and choose the epoch that is kept: 32 queries are soon learnt by heart. At large lambda it is often
the first, which hardly moved from the nearly uniform start; ``plots.kept_epoch(cell)`` tells.
"""

from experiments.problems import RankingData
from experiments.rankers import COLUMNS, baselines, describe_data, pg_rank
from fairpg_lite.sweeps import Cell, grid

__all__ = ["COLUMNS", "describe_data", "plan"]

LAMS = (0.0, 3.0, 10.0, 30.0, 100.0)
QUICK_LAMS = (0.0, 10.0)


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """The cells of both models over lambda, and of the three baselines; 20 seeds by default."""
    runs = range(seeds or (2 if quick else 20))
    lams = QUICK_LAMS if quick else LAMS
    problem = RankingData("mslr", share=0.5 if quick else 1.0)
    cells = []
    for model in ("neural", "linear"):
        for entropy, entropy_lams in ((0.0, lams), (1.0, (0.0,))):
            experiment = pg_rank(
                problem,
                model,
                entropy=entropy,
                epochs=3 if quick else 200,
                lr=1e-3,
                patience=50,
                compiled="auto" if quick else True,
                per_query=True,
            )
            cells += grid(experiment, entropy_lams, runs)
    return cells + baselines(problem, runs, quick=quick, per_query=True)
