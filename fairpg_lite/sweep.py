"""Sweeps: a method at every lambda and seed, on one machine or many (chapter 15).

Every finished cell is a JSON file of its own, so a sweep can be killed at any moment and run again:
only what is missing is computed. The process that calls `sweep` writes all files, as results come
in; the workers of a cluster need no common file system.
"""

import warnings
from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from fairpg_lite import _provenance
from fairpg_lite._cell_files import (
    FORMAT,
    clear_traces,
    finished,
    probe,
    read_cell,
    write_cell,
)
from fairpg_lite._cells import Cell, Experiment, grid
from fairpg_lite._progress import progress_bar
from fairpg_lite._workers import Lost, outcomes

__all__ = ["Cell", "grid", "load_cells", "run_cells", "sweep"]

ATTEMPTS = 3
"""Rounds without a single finished cell before a sweep gives its workers up."""


def sweep(
    experiment: Experiment,
    lambdas: Iterable[float],
    seeds: Iterable[int],
    out: str | Path,
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    force: bool = False,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Run ``experiment(lam, seed)`` for every lambda and seed; see `run_cells`.

    Chapter 15, eq-15-makespan.

    >>> import tempfile
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Power:
    ...     exponent: int = 2
    ...     name = "power"
    ...
    ...     def __call__(self, lam, seed):
    ...         return {"value": lam**self.exponent + seed}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     cells = sweep(Power(), [0, 0.5], range(2), out, progress=False)
    ...     again = sweep(Power(), [0, 0.5], range(2), out, progress=False)  # computes nothing
    >>> [cell["result"]["value"] for cell in cells]
    [0.0, 1.0, 0.25, 1.25]
    >>> again == cells
    True
    """
    return run_cells(
        grid(experiment, lambdas, seeds),
        out,
        n_jobs=n_jobs,
        scheduler=scheduler,
        force=force,
        progress=progress,
    )


def run_cells(
    cells: Iterable[Cell],
    out: str | Path,
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    force: bool = False,
    progress: bool = True,
    description: str = "sweep",
) -> list[dict[str, Any]]:
    """Compute what is missing of ``cells`` below ``out`` and return all, in the order given.

    ``n_jobs`` processes on this machine (-1: one per core), or a Dask cluster at ``scheduler``
    (``tcp://host:8786``; its size then decides, not ``n_jobs``). The numbers are the same in all
    three ways (unless the experiment draws from Python's global `random` on a cluster, where Dask
    draws from it too: give it a `random.Random` of its own). A cell that fails is stored with its
    error, warned of, and tried again by the next call; a worker that dies costs nothing but time. A
    file that was cut off counts as missing; one made with other settings is an error. ``force``
    computes everything anew.

    Ctrl-C keeps what is finished.

    Chapter 15.
    """
    cells, out = list(cells), Path(out)
    _check(cells, n_jobs)
    stored = {} if force else _stored(cells, out)
    pending = [i for i in range(len(cells)) if i not in stored]
    for path in {cells[i].path(out).parent: cells[i].path(out) for i in pending}.values():
        probe(path)
    commit = _provenance.commit([out]) if pending else ""
    with progress_bar(description, len(cells), "cell", progress) as bar:
        bar.update(len(stored))
        with closing(_persistent(cells, pending, n_jobs, scheduler)) as results:
            for number, outcome in results:
                stored[number] = _store(cells[number], out, {**outcome, "commit": commit}, force)
                bar.update(1)
    _warn_of_failures([stored[i] for i in range(len(cells))], cells, out)
    return [stored[i] for i in range(len(cells))]


def load_cells(out: str | Path, *, failed: bool = False) -> list[dict[str, Any]]:
    """Every finished cell below ``out``, sorted by method, lambda and seed.

    With ``failed`` also the cells that ended with an error; they have "error" for "result".

    Chapter 15.
    """
    if not Path(out).is_dir():
        raise FileNotFoundError(f"load_cells: {out} is not a directory; give a sweep's `out`.")
    found = [read_cell(path) for path in Path(out).rglob("lam=*_seed=*.json")]
    cells = [c for c in found if c is not None and (failed or c["status"] == "done")]
    return sorted(cells, key=lambda c: (c["method"], c["lam"], c["seed"]))


def _check(cells: list[Cell], n_jobs: int) -> None:
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"sweep: n_jobs is {n_jobs!r}; give 1 or more, or -1 for every core.")
    seen: dict[Path, dict[str, Any]] = {}
    for cell in cells:
        path, config = cell.path(""), cell.config  # what cannot be stored is refused here
        if path in seen:
            remedy = "drop one" if seen[path] == config else "give the experiments different names"
            raise ValueError(f"sweep: two cells would be stored as {path}; {remedy}.")
        seen[path] = config


def _stored(cells: list[Cell], out: Path) -> dict[int, dict[str, Any]]:
    """What an earlier sweep finished; the traces it left when it was killed are removed."""
    stored = {i: done for i, cell in enumerate(cells) if (done := finished(cell, out)) is not None}
    clear_traces(cells[i].path(out) for i in stored)
    return stored


def _persistent(
    cells: list[Cell], pending: list[int], n_jobs: int, scheduler: str | None
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Outcomes of all pending cells: those lost with a worker are handed out again."""
    fruitless, reason = 0, ""
    while pending:
        before = len(pending)
        with closing(outcomes([(i, cells[i]) for i in pending], n_jobs, scheduler)) as results:
            for got in results:
                if isinstance(got, Lost):
                    reason = got.reason
                    continue
                pending = [i for i in pending if i != got[0]]
                yield got
        fruitless = fruitless + 1 if len(pending) == before else 0
        if fruitless == ATTEMPTS:
            names = ", ".join(str(cells[i].path("")) for i in pending[:3])
            raise RuntimeError(
                f"sweep: {len(pending)} cells could not be run, their workers died {ATTEMPTS} "
                f"times ({reason}): {names}{' …' if len(pending) > 3 else ''}. Is there memory "
                "enough, and can a worker import the experiment? The rest is stored; run again."
            )
        # A cell that kills its worker takes its neighbours along: let others go first.
        pending = pending[1:] + pending[:1]


def _store(cell: Cell, out: Path, outcome: dict[str, Any], force: bool) -> dict[str, Any]:
    """Write a cell, unless another sweep on the same directory was faster."""
    theirs = None if force else finished(cell, out)
    if theirs is not None:
        return theirs
    about = {"method": cell.experiment.name, "lam": cell.lam, "seed": cell.seed}
    record = {"format": FORMAT, **about, "config": cell.config, **outcome}
    write_cell(cell.path(out), record)
    return record


def _warn_of_failures(records: list[dict[str, Any]], cells: list[Cell], out: Path) -> None:
    failed = [i for i, record in enumerate(records) if record["status"] == "failed"]
    if failed:
        error = records[failed[0]]["error"]
        warnings.warn(
            f"sweep: {len(failed)} of {len(cells)} cells failed; the first is "
            f"{cells[failed[0]].path(out)}: {error['type']}: {error['message']}. Its file has the "
            "traceback; a repeated sweep tries them again.",
            RuntimeWarning,
            stacklevel=3,
        )
