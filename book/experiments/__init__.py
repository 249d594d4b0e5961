"""The paper's experiments, one module each, run by ``python -m experiments`` (chapters 9 to 13).

Each module has ``plan(seeds=, quick=)``, all cells of all methods, and ``DATA``, one sentence that
names the data, or a function of the cells.
"""

import importlib
from types import ModuleType

REPRODUCTIONS = ("synthetic", "german", "yahoo", "mslr")


def reproduction(name: str) -> ModuleType:
    """The module of one reproduction, imported when it is asked for."""
    return importlib.import_module(f"experiments.{name}")
