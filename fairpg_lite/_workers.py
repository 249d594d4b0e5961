"""Cells on this process, on processes of this machine, or on a Dask cluster (chapter 15).

Each way is a generator of (index, outcome) in the order in which cells finish. A cell whose worker
died is not yielded, or yielded as `Lost`: that is the machine's fault, not the experiment's, and
the caller asks again.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from fairpg_lite._cells import Cell
from fairpg_lite._compute import compute
from fairpg_lite._extras import require

Numbered = tuple[int, Cell]


@dataclass(frozen=True)
class Lost:
    """In place of an outcome: the worker went away with the cell, and this was said of it."""

    reason: str


def outcomes(
    cells: Sequence[Numbered], n_jobs: int, scheduler: str | None
) -> Iterator[tuple[int, dict[str, Any]] | Lost]:
    """Compute ``cells``; each outcome with its number as soon as it is there."""
    dtype = torch.get_default_dtype()
    if scheduler is not None:
        yield from _on_cluster(cells, dtype, scheduler)
    elif n_jobs == 1 or len(cells) == 1:
        for number, cell in cells:
            yield number, compute(cell, dtype)
    else:
        yield from _on_processes(cells, dtype, n_jobs)


def numbered(number: int, cell: Cell, dtype: torch.dtype) -> tuple[int, dict[str, Any]]:
    return number, compute(cell, dtype)


def _parallel(cells: Sequence[Numbered], dtype: torch.dtype, **how: Any) -> Generator:
    """One cell per task, all handed over at once: a worker that joins later finds work."""
    joblib = require("joblib", "experiments")
    parallel = joblib.Parallel(
        return_as="generator_unordered", batch_size=1, pre_dispatch="all", **how
    )
    return parallel(joblib.delayed(numbered)(number, cell, dtype) for number, cell in cells)


@contextmanager
def _stopping(results: Generator) -> Iterator[None]:
    """Whatever ends the sweep ends its workers at once, and without joblib's warning about it."""
    try:
        yield
    except BaseException as error:
        try:
            results.throw(error)
        except StopIteration:
            raise error from None
        raise


def _on_processes(
    cells: Sequence[Numbered], dtype: torch.dtype, n_jobs: int
) -> Iterator[tuple[int, dict[str, Any]] | Lost]:
    from joblib.externals.loky.process_executor import BrokenProcessPool

    results = _parallel(cells, dtype, n_jobs=n_jobs, backend="loky")
    with _stopping(results):
        try:
            yield from results
        except BrokenProcessPool as error:
            yield Lost(f"{type(error).__name__}: {error}")


def _on_cluster(
    cells: Sequence[Numbered], dtype: torch.dtype, scheduler: str
) -> Iterator[tuple[int, dict[str, Any]] | Lost]:
    require("distributed", "cluster")
    from fairpg_lite._dask import backend, connected

    with connected(scheduler) as client:
        results = _parallel(cells, dtype, n_jobs=-1, backend=backend(client))
        with _stopping(results):
            yield from results
