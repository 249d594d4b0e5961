"""Sweeps: a method at every lambda and seed, on one machine or many (chapter 15)."""

from fairpg_lite.sweeps.curve import Training, tradeoff
from fairpg_lite.sweeps.records import Cell, collect, grid, load_cells
from fairpg_lite.sweeps.running import as_table, run_cells, sweep

__all__ = [
    "Cell",
    "Training",
    "as_table",
    "collect",
    "grid",
    "load_cells",
    "run_cells",
    "sweep",
    "tradeoff",
]
