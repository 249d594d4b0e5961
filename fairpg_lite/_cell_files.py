"""A finished cell is one JSON file, there whole or not at all (chapter 15)."""

import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairpg_lite._cells import Cell

FORMAT = 1


def read_cell(path: Path) -> dict[str, Any] | None:
    """The cell stored at ``path``; None if there is none, or one that was cut off or damaged."""
    try:
        cell = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not isinstance(cell, dict) or "format" not in cell:
        return None
    if cell["format"] != FORMAT:
        raise ValueError(
            f"sweep: {path} has format {cell['format']!r}, this version writes {FORMAT}; "
            "choose another `out`, or force=True to compute it anew."
        )
    needed = {"done": "result", "failed": "error"}.get(cell.get("status", ""))
    whole = {"method", "config", "lam", "seed", "seconds"} <= cell.keys()
    return cell if whole and isinstance(cell.get(needed), dict) else None


def finished(cell: Cell, out: Path) -> dict[str, Any] | None:
    """What is stored of ``cell`` if it is done; an error if it was made with other settings."""
    path = cell.path(out)
    stored = read_cell(path)
    if stored is None:
        return None
    asked = {"method": cell.experiment.name, "lam": cell.lam, "seed": cell.seed}
    for name, value in (asked | cell.config).items():
        theirs = stored if name in asked else stored["config"]
        if name not in theirs or theirs[name] != value:
            raise ValueError(_other(path, name, theirs.get(name, "absent"), value))
    for name in stored["config"].keys() - cell.config.keys():
        raise ValueError(_other(path, name, stored["config"][name], "absent"))
    return stored if stored["status"] == "done" else None


def _other(path: Path, name: str, stored: Any, asked: Any) -> str:
    return (
        f"sweep: {path} was made with other settings: {name} is {stored!r} there and {asked!r} "
        "here; choose another `out`, or force=True to compute it anew."
    )


def write_cell(path: Path, cell: dict[str, Any]) -> None:
    """Write whole or not at all: readers see the old file or the new one, never a part."""
    text = json.dumps(cell, indent=1, sort_keys=True, allow_nan=False) + "\n"
    try:
        _place(path, text)
    except OSError as error:
        raise _cannot(path.parent, error) from error
    clear_traces([path])


def probe(path: Path) -> None:
    """See that ``path`` can be written, before hours are spent on what goes there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _temporary(path, "{}").unlink(missing_ok=True)
    except OSError as error:
        raise _cannot(path.parent, error) from error


def clear_traces(paths: Iterable[Path]) -> None:
    """Remove the temporary files that killed sweeps left beside these finished cells.

    Only those of finished cells: another sweep may be writing one of the others this moment. If
    it is writing one of these, it notices and writes again.
    """
    by_folder: dict[Path, set[str]] = {}
    for path in paths:
        by_folder.setdefault(path.parent, set()).add(path.name)
    for folder, names in by_folder.items():
        for trace in folder.glob(".*.tmp"):
            if trace.name[1:].rsplit(".", 2)[0] in names:
                with suppress(OSError):  # a read-only directory can still be read
                    trace.unlink()


def _place(path: Path, text: str) -> None:
    for last in (False, False, True):
        temporary = _temporary(path, text)
        try:
            os.replace(temporary, path)
            return
        except FileNotFoundError:  # another sweep finished this cell and cleared up
            if last:
                raise
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _temporary(path: Path, text: str) -> Path:
    """A file of its own beside ``path``: two sweeps must not write into each other's."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # the rename must not reach the disk before the content
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return temporary


def _cannot(folder: Path, error: OSError) -> OSError:
    reason = error.strerror or str(error)
    return OSError(
        error.errno or 0,
        f"sweep: cannot write into {folder} ({reason}); what was finished before is kept. Choose "
        "another `out`, or make room there, and run again.",
    )
