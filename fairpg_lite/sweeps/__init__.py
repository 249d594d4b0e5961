"""Sweeps: experiments at every lambda and seed, on one machine or many (chapter 18)."""

from fairpg_lite.sweeps.cells import Cell, Experiment, grid
from fairpg_lite.sweeps.curve import tradeoff
from fairpg_lite.sweeps.experiment import FairPGRank, Problem, Splits, Trained
from fairpg_lite.sweeps.running import run_cells, sweep
from fairpg_lite.sweeps.tables import as_table, collect, load_cells

__all__ = [
    "Cell",
    "Experiment",
    "FairPGRank",
    "Problem",
    "Splits",
    "Trained",
    "as_table",
    "collect",
    "grid",
    "load_cells",
    "run_cells",
    "sweep",
    "tradeoff",
]
