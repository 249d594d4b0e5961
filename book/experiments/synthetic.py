"""The paper's synthetic experiment (Section 4.2, Figure 1; chapter 9).

100 queries of ten, trained and judged on the same ones as in the authors' run; a seed draws the
data, the start and the rankings. Adam at .1, halved after each of 5 epochs, is the authors'
schedule: the paper names none. Everything with the text's clip at 5 and with the authors' at 4.
"""

from experiments.cells import Cells
from experiments.methods import Fixed, fair_pg_rank, few, rivals
from experiments.problems import SyntheticData
from experiments.summary import MAIN_COLUMNS as COLUMNS
from fairpg_lite.sweeps import Cell, grid

__all__ = ["COLUMNS", "describe_data", "plan"]

#: The authors' seven, and between 10 and 25, where the optimum jumps, five more.
LAMS = (0.0, 1.0, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0, 17.0, 18.0, 20.0, 25.0)
#: The authors' range is [0, 6]; by the definition the programme needs more to do all it can.
PROGRAMME_LAMS = {
    "definition": (0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 10.0, 100.0, 1000.0),
    "authors": (0.0, 0.5, 0.95, 2.0, 4.0, 6.0),
}
DELTR_LAMS = (0.0, 1.0, 1e2, 1e4, 1e6)
CLIPS = (5.0, 4.0)


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """All cells, longest first; 20 seeds by default."""
    thin = few if quick else tuple
    runs = range(seeds or (2 if quick else 20))
    epochs = 2 if quick else 5
    # Each run is short; together they are worth compiling for.
    compiled: str | bool = "auto" if quick else True
    problems = [SyntheticData(clip, n_queries=12 if quick else 100) for clip in CLIPS]
    exact = fair_pg_rank(problems[0], "exact", epochs=epochs, compiled=compiled)
    cells = grid(exact, thin(LAMS), runs)
    for problem in problems:
        sampled = fair_pg_rank(problem, epochs=epochs, compiled=compiled)
        cells += grid(sampled, thin(LAMS), runs)
        programme_lams = {scaling: thin(lams) for scaling, lams in PROGRAMME_LAMS.items()}
        cells += rivals(problem, programme_lams, thin(DELTR_LAMS), runs)
        cells += grid(Fixed(problem, use=0.0), [0.0], runs)
        cells += grid(Fixed(problem, use=0.25), [0.0], runs)
    return cells


def describe_data(cells: Cells) -> str:
    """The sentence that names the data."""
    return (
        "Synthetic data after the paper's Section 4.2, drawn by fairpg_lite.synthetic: queries of "
        "10 documents, one of two features hidden for the minority; trained and judged on the same "
        "queries; the seed draws them."
    )
