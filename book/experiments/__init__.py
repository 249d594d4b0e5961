"""The paper's experiments, one module each, run by ``python -m experiments`` (chapters 9 to 13).

Each of the modules in `REPRODUCTIONS` has ``plan(seeds=, quick=)``, all cells of all methods;
``describe_data(cells)``, the sentence that names the data; and ``COLUMNS``, what its summary shows.
"""

import importlib
from types import ModuleType

REPRODUCTIONS = (
    "synthetic",
    "german",
    "yahoo",
    "mslr",
    "mslr-splits",
    "rich-get-richer",
    "from-clicks",
)


def reproduction(name: str) -> ModuleType:
    """The module of one reproduction, imported when it is asked for."""
    return importlib.import_module(f"experiments.{name.replace('-', '_')}")
