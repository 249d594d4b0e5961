"""Stored cells: which of them are finished, and the results of one experiment by seed."""

from collections.abc import Iterable, Mapping
from typing import Any

from experiments.protocol import overlap

#: Records as `fairpg_lite.sweeps.load_cells` returns them.
Cells = Iterable[Mapping[str, Any]]
#: What one run found, by the name of the number.
Result = Mapping[str, Any]


class MissingCellsError(LookupError):
    """The cells that are asked for are not among those given."""


def completed(cells: Cells) -> list[dict[str, Any]]:
    """The cells that ended with a result."""
    return [dict(cell) for cell in cells if cell["status"] == "done"]


def of_experiment(cells: Cells, experiment: str) -> list[dict[str, Any]]:
    """The completed cells of one experiment, at least one, by its stored name."""
    chosen = completed(cell for cell in cells if cell["experiment"] == experiment)
    if not chosen:
        raise MissingCellsError(f"no cells of {experiment}")
    return chosen


def by_seed(cells: Cells, experiment: str, lam: float) -> dict[int, Result]:
    """The results of one experiment at one lambda.

    Args:
        cells: Stored cells.
        experiment: Its stored name.
        lam: One of the lambdas that were run.

    Returns:
        The result of each seed.
    """
    results = {}
    for cell in cells:
        if cell["experiment"] != experiment or cell["lam"] != lam:
            continue
        if cell["status"] == "done":
            results[cell["seed"]] = cell["result"]
    if not results:
        raise MissingCellsError(f"no cells of {experiment} at λ = {lam:g}")
    return results


def lams_of(cells: Cells, experiment: str) -> list[float]:
    """The lambdas at which an experiment was run, in order."""
    return sorted({cell["lam"] for cell in of_experiment(cells, experiment)})


def shared_by(cells: Cells, experiment: str) -> float:
    """How much the repetitions of an experiment share; see `experiments.protocol.overlap`."""
    for cell in cells:
        if cell["experiment"] == experiment:
            return overlap(cell.get("config", {}))
    return 0.0
