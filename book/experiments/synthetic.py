"""The paper's synthetic experiment (Section 4.2, Figure 1; chapter 9).

100 queries of ten to train and 100 others to test, drawn by the seed like the start and the
rankings. Adam at .1, halved after each of 5 epochs, is the authors' schedule: the paper names none.
The text decides: relevance clipped at 5, weights started in ±.001. The authors' clip at 4 and their
start in ±.707 stand beside.
"""

from typing import Any

from experiments.cells import Cells
from experiments.methods import (
    Deltr,
    Fixed,
    Ideal,
    PostProcessing,
    PublishedDeltr,
    Uniform,
    fair_pg_rank,
    few,
)
from experiments.problems import SyntheticData
from experiments.protocol import BESIDE_REPETITIONS, REPETITIONS
from experiments.summary import MAIN_COLUMNS as COLUMNS
from fairpg_lite.sweeps import Cell, grid

__all__ = ["COLUMNS", "describe_data", "plan"]

#: Eight of the authors' eleven.
LAMS = (0.0, 1.0, 3.0, 5.0, 8.0, 10.0, 15.0, 25.0)
#: With the exact gradient also where the optimum jumps; this variant is compared with nobody.
EXACT_LAMS = (0.0, 1.0, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0, 17.0, 18.0, 20.0, 25.0)
#: The authors' range is [0, 6]; by the definition the programme needs more to do all it can.
PROGRAMME_LAMS = {
    "definition": (0.0, 0.5, 1.0, 2.0, 4.0, 10.0, 100.0, 1000.0),
    "authors": (0.0, 0.5, 0.95, 1.5, 2.0, 3.0, 4.0, 6.0),
}
DELTR_LAMS = (0.0, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """All cells; 40 repetitions by default, 20 for what stands beside."""
    thin = few if quick else tuple
    n_seeds = seeds or (2 if quick else REPETITIONS)
    deciding = range(n_seeds)
    beside = range(min(n_seeds, BESIDE_REPETITIONS))
    epochs = 2 if quick else 5
    # Each run is short; together they are worth compiling for.
    compiled: str | bool = "auto" if quick else True
    n_queries = 12 if quick else 100
    text = SyntheticData(n_queries=n_queries)
    wide = SyntheticData(n_queries=n_queries, start=0.707)
    clipped = SyntheticData(4.0, n_queries=n_queries)
    deltr_lams = thin(DELTR_LAMS)

    sampled: dict[str, Any] = {"epochs": epochs, "compiled": compiled}
    cells = grid(fair_pg_rank(text, **sampled), thin(LAMS), deciding)
    cells += grid(Uniform(text), [0.0], deciding)
    for use in (0.0, 0.25, 1.0):
        cells += grid(Fixed(text, use), [0.0], deciding)
    cells += grid(Ideal(text, "relevance"), [0.0], deciding)
    cells += grid(Ideal(text, "group"), [0.0], deciding)
    for scaling, lams in PROGRAMME_LAMS.items():
        cells += grid(PostProcessing(text, scaling), thin(lams), deciding)
    cells += grid(PublishedDeltr(text, "sgd"), deltr_lams, deciding)
    cells += grid(PublishedDeltr(text, "adam"), deltr_lams, deciding)
    # What stands beside: the authors' start and clip, an intercept, DELTR's optimum.
    cells += grid(fair_pg_rank(wide, **sampled), thin(LAMS), beside)
    cells += grid(fair_pg_rank(clipped, **sampled), thin(LAMS), beside)
    cells += grid(Uniform(clipped), [0.0], beside)
    cells += grid(fair_pg_rank(text, "exact", **sampled), thin(EXACT_LAMS), beside)
    cells += grid(Deltr(text, "two-sided"), deltr_lams, beside)
    cells += grid(Deltr(text, "one-sided"), deltr_lams, beside)
    with_intercept = PostProcessing(text, intercept=True)
    cells += grid(with_intercept, thin(PROGRAMME_LAMS["definition"]), beside)
    return cells


def describe_data(cells: Cells) -> str:
    """The sentence that names the data."""
    return (
        "Synthetic data after the paper's Section 4.2, drawn by fairpg_lite.synthetic: queries of "
        "10 documents, one of two features hidden for the minority; 100 to train and 100 others to "
        "test; the seed draws both."
    )
