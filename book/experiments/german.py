"""The paper's German Credit experiment (Section 4.3, Figure 3; chapter 12).

The settings are the paper's, and the 10 epochs those of the authors' stored log. So are the data as
far as the file allows, because the published figures are of that run; "text" follows the paper's
words. All seeds share the queries, as in the paper; in "redrawn" cells each seed draws its own.
"""

from functools import partial

from experiments.cells import Cells
from experiments.methods import Uniform, fair_pg_rank, few, rivals
from experiments.problems import GermanData
from experiments.summary import MAIN_COLUMNS as COLUMNS
from fairpg_lite.sweeps import Cell, grid

__all__ = ["COLUMNS", "describe_data", "plan"]

#: The text's range is [0, 25]; the authors' notebook went on to 50 and 100.
LAMS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 25.0)
BEYOND = (50.0, 100.0)
#: The authors' range is [0, .2]; by the definition the programme needs more to do all it can.
PROGRAMME_LAMS = (0.0, 0.02, 0.05, 0.1, 0.2, 1.0, 10.0)
FEW_PROGRAMME_LAMS = (0.0, 0.05, 0.2, 10.0)
DELTR_LAMS = (0.0, 1.0, 1e2, 1e4, 1e6)
FEW_DELTR_LAMS = (0.0, 1e2, 1e6)


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """All cells, longest first; 20 seeds by default, at most 10 or 5 for the variants.

    On fixed queries post-processing and DELTR run once: hardly anything in them is drawn.
    """
    thin = few if quick else tuple
    n_seeds = seeds or (2 if quick else 20)
    five = range(min(5, n_seeds))
    ten = range(min(10, n_seeds))
    data = partial(GermanData, n_train=30, n_test=12) if quick else GermanData
    fixed = data()
    redrawn = data(redrawn=True)
    age = data(group="age")
    text = data(attributes=20, ratio="exact", split="random", redrawn=True)
    fair = partial(
        fair_pg_rank,
        samples=25,
        epochs=2 if quick else 10,
        lr=1e-3,
        lr_decay=1.0,
        compiled="auto" if quick else True,
    )
    cells = grid(fair(fixed), thin(LAMS + BEYOND), range(n_seeds))
    cells += grid(fair(redrawn), thin(LAMS), ten)
    cells += grid(fair(age), thin(LAMS), five)
    cells += grid(fair(text), thin(LAMS), five)
    cells += grid(Uniform(text), [0.0], five)
    all_lams = dict.fromkeys(("definition", "authors"), thin(PROGRAMME_LAMS))
    few_lams = dict.fromkeys(("definition", "authors"), thin(FEW_PROGRAMME_LAMS))
    cells += rivals(fixed, all_lams, thin(DELTR_LAMS), range(1), on_train=True)
    cells += rivals(age, few_lams, thin(FEW_DELTR_LAMS), range(1))
    cells += rivals(redrawn, few_lams, thin(FEW_DELTR_LAMS), ten)
    return cells


def describe_data(cells: Cells) -> str:
    """The sentence that names the data."""
    return (
        "German Credit (Statlog; Hofmann 1994, doi 10.24432/C5NC77, CC BY 4.0) as ranking queries "
        "of 10 persons drawn by fairpg_lite.german_credit; groups by sex as recorded, which is "
        "disputed (Groemping 2019), and by age."
    )
