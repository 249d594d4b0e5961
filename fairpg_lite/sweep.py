"""Sweeps: a method at every lambda and seed, on one machine or many (chapter 15).

Every finished cell is a JSON file of its own, written by the process that calls `sweep`, so it can
be killed at any moment and run again: only what is missing is computed.
"""

import os
import warnings
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpg_lite import _check, _records
from fairpg_lite._extras import progress_bar, require
from fairpg_lite._files import clear_leftovers, probe
from fairpg_lite._records import Cell, Record, finished, grid, key, write_cell
from fairpg_lite._workers import outcomes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "as_table", "collect", "grid", "load_cells", "run_cells", "sweep"]

# Rounds without a single finished cell before a sweep gives its workers up.
ATTEMPTS = 3


def sweep(
    experiment: Any, lambdas: Iterable[float], seeds: Iterable[int], out: str | Path, **how: Any
) -> list[Record]:
    """`run_cells` for every lambda with every seed (chapter 15, eq-15-makespan)."""
    return run_cells(grid(experiment, lambdas, seeds), out, **how)


def run_cells(
    cells: Iterable[Cell],
    out: str | Path,
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    patience: float = 300.0,
    force: bool = False,
    progress: bool = True,
) -> list[Record]:
    """Compute what is missing of ``cells`` below ``out``; all of them, in the order given.

    The numbers are the same on one process, on several (``n_jobs``) and on the Dask cluster at
    ``scheduler`` (``tcp://host:8786``). Its workers must have the versions of this process; code
    that is not installed is sent to them; without one for ``patience`` seconds the sweep gives up.
    A cell that fails is stored with its error and tried again by the next call; a worker that dies
    costs nothing but time. A file that was cut off counts as missing; one made with other settings
    is an error, unless ``force`` computes everything anew. Ctrl-C keeps what is finished.
    Chapter 15.
    """
    cells, out = list(cells), Path(out)
    if not cells or not _check.is_whole(n_jobs) or n_jobs < 1 or not patience >= 0:
        said = f"sweep: {len(cells)} cells, patience={patience} and n_jobs={n_jobs!r}"
        raise ValueError(f"{said}; give a lambda and a seed, seconds, and processes from 1 on.")
    configs = [cell.config for cell in cells]  # what cannot be stored is refused here
    if twice := [path for path, n in Counter(cell.path("") for cell in cells).items() if n > 1]:
        remedy = "drop one, or give the experiments different names"
        raise ValueError(f"sweep: two cells would be stored as {twice[0]}; {remedy}.")
    table = {} if force else _records.read_table(out)
    found = {} if force else {i: finished(cell, out, table) for i, cell in enumerate(cells)}
    stored = {i: record for i, record in found.items() if record is not None}
    for i in stored:
        clear_leftovers(cells[i].path(out))  # of a sweep that was killed
    pending = [i for i in range(len(cells)) if i not in stored]
    for folder in {cells[i].path(out).parent for i in pending}:
        probe(folder)  # before hours are spent
    # Workers run this code to the letter, or they are refused: its commit is theirs.
    commit = _records.commit() if pending else ""
    with progress_bar("sweep", len(cells), "cell", progress) as bar:
        bar.update(len(stored))
        with closing(_persistent(cells, pending, n_jobs, scheduler, patience)) as results:
            for i, outcome in results:
                made = {"config": configs[i], **outcome, "commit": commit}
                # Another sweep on the same directory may have been faster.
                theirs = None if force else finished(cells[i], out, {})
                stored[i] = theirs or {"format": _records.FORMAT, **cells[i].about, **made}
                if theirs is None:
                    write_cell(cells[i].path(out), stored[i])
                bar.update(1)
    failed = [i for i in sorted(stored) if stored[i]["status"] == "failed"]
    if failed:
        first, error = cells[failed[0]].path(out), stored[failed[0]]["error"]
        said = f"sweep: {len(failed)} of {len(cells)} cells failed; the first is {first}: "
        said += f"{error['type']}: {error['message']}. A repeated sweep tries them again."
        warnings.warn(said, RuntimeWarning, stacklevel=2)
    return [stored[i] for i in range(len(cells))]


def _persistent(
    cells: list[Cell], pending: list[int], n_jobs: int, scheduler: str | None, patience: float
) -> Generator[tuple[int, Record], None, None]:
    """Outcomes of all pending cells: those lost with a worker are handed out again."""
    fruitless, reason = 0, ""
    while pending:
        before = len(pending)
        waiting = [(i, cells[i]) for i in pending]
        with closing(outcomes(waiting, n_jobs, scheduler, patience)) as results:
            for number, outcome in results:
                if isinstance(outcome, BaseException):
                    reason = f"{type(outcome).__name__}: {outcome}"
                    continue
                pending = [i for i in pending if i != number]
                yield number, outcome
        fruitless = fruitless + 1 if len(pending) == before else 0
        if fruitless == ATTEMPTS:
            raise RuntimeError(
                f"sweep: {len(pending)} cells could not be run, their workers died {ATTEMPTS} "
                f"times ({reason}), the first is {cells[pending[0]].path('')}. Is there memory "
                "enough, and can a worker import the experiment? The rest is stored; run again."
            )
        # A cell that kills its worker takes its neighbours along: let others go first.
        pending = pending[1:] + pending[:1]


def load_cells(out: str | Path) -> list[Record]:
    """A sweep's finished cells, from files and table, by method, lambda and seed (chapter 15)."""
    out = Path(out)
    if not out.is_dir():
        raise FileNotFoundError(f"load_cells: {out} is not a directory; give a sweep's `out`.")
    # Files first: `collect` writes the table before it removes them.
    files = {key(cell): cell for cell in _files(out).values()}
    return sorted((_records.read_table(out) | files).values(), key=key)


def as_table(cells: Iterable[Record]) -> "pd.DataFrame":
    """Finished cells as a data frame: columns method, lam, seed, then the results, NDCG first."""
    rows = [{n: c[n] for n in ("method", "lam", "seed")} | c["result"] for c in cells]
    table = require("pandas", "experiments").DataFrame(rows)
    return table[sorted(table.columns, key=lambda n: n not in ("method", "lam", "seed", "ndcg"))]


def collect(out: str | Path, *, without: Iterable[str] = (), **about: Any) -> Path:
    """Make one table of a sweep's finished cells and remove their files; returns ``table.csv``.

    A row is a run, with all digits. ``table.json`` beside it has the settings, commit and versions
    that made them, and ``about`` (the command, say). Results named in ``without`` are left out;
    failed cells stay files. `load_cells` and `run_cells` take a collected sweep like any other.
    """
    import fcntl  # not on Windows, where the rest works

    out, without = Path(out), {*without}
    lock = os.open(out, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)  # two that collect at once would lose what one of them wrote
    try:
        found = _files(out)
        done = {key(cell): cell for cell in found.values()}
        for cell in done.values():
            cell["result"] = {n: v for n, v in cell["result"].items() if n not in without}
        # Rows with the settings of a sweep that was since forced to others are superseded.
        settings = {cell["method"]: cell["config"] for cell in done.values()}
        old = _records.read_table(out).items()
        rows = {k: r for k, r in old if settings.get(k[0], r["config"]) == r["config"]}
        _records.write_table(out, list((rows | done).values()), **about)
        for path in found:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # a failed cell, or another sweep's: not empty
                path.parent.rmdir()
    finally:
        os.close(lock)
    return out / _records.TABLE


def _files(out: Path) -> dict[Path, Record]:
    """The cells that are done, by their files."""
    found = {path: _records.read_cell(path) for path in out.rglob("lam=*_seed=*.json")}
    return {path: cell for path, cell in found.items() if cell and cell["status"] == "done"}
