"""Cells on this process, on processes of this machine, or on a Dask cluster (chapter 15).

Each way is a generator of (index, outcome) in the order in which cells finish. A cell whose worker
died is not yielded, or yielded as `Lost`: that is the machine's fault, not the experiment's, and
the caller asks again.
"""

from collections.abc import Generator, Sequence
from contextlib import suppress
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


Outcomes = Generator[tuple[int, dict[str, Any]] | Lost, None, None]


def outcomes(cells: Sequence[Numbered], n_jobs: int, scheduler: str | None) -> Outcomes:
    """Compute ``cells``; each outcome with its number as soon as it is there."""
    dtype = torch.get_default_dtype()
    if scheduler is not None:
        yield from _on_cluster(cells, dtype, scheduler)
    elif n_jobs == 1:
        for number, cell in cells:
            yield number, compute(cell, dtype)
    else:
        yield from _on_processes(cells, dtype, n_jobs)


def numbered(number: int, cell: Cell, dtype: torch.dtype) -> tuple[int, dict[str, Any]]:
    return number, compute(cell, dtype)


def _parallel(cells: Sequence[Numbered], dtype: torch.dtype, **how: Any) -> Generator:
    """joblib over ``cells``, one to a task, each result as soon as it is there."""
    joblib = require("joblib", "experiments")
    parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, **how)
    return _drain(parallel(joblib.delayed(numbered)(i, cell, dtype) for i, cell in cells))


class _Stop(BaseException):
    """Thrown into joblib's generator; closing it would do the same with a warning."""


def _drain(results: Generator) -> Generator:
    """The results one by one; whatever ends the sweep ends its workers at once."""
    try:
        for result in results:  # noqa: UP028 (`yield from` would close `results` itself)
            yield result
    finally:
        with suppress(_Stop):
            results.throw(_Stop())


def _on_processes(cells: Sequence[Numbered], dtype: torch.dtype, n_jobs: int) -> Outcomes:
    results = _parallel(cells, dtype, n_jobs=n_jobs, backend="loky")
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        yield from results
    except BrokenProcessPool as error:
        yield Lost(f"{type(error).__name__}: {error}")


def _on_cluster(cells: Sequence[Numbered], dtype: torch.dtype, scheduler: str) -> Outcomes:
    require("joblib", "experiments")
    require("distributed", "cluster")
    from fairpg_lite._dask import backend, connected

    with connected(scheduler) as client:
        # All at once: a worker that joins later must find work waiting.
        yield from _parallel(cells, dtype, backend=backend(client), n_jobs=-1, pre_dispatch="all")
