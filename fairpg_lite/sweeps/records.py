"""One run as a JSON file, there whole or not at all."""

import json
from pathlib import Path
from typing import Any

from fairpg_lite._files import write_whole
from fairpg_lite.sweeps.cells import Cell
from fairpg_lite.sweeps.settings import first_difference

#: Version of the files of records and tables.
FORMAT = 1
#: What is stored of a run: its cell, its result or its error, and where it comes from.
Record = dict[str, Any]
#: What tells the runs of one sweep apart: the experiment's name, lambda and seed.
Key = tuple[str, float, int]

_FIELDS = {"format", "experiment", "config", "lam", "seed", "status", "seconds"}
_OUTCOMES = {"done": "result", "failed": "error"}


def key_of(record: Record) -> Key:
    """What tells this record from the others of its sweep."""
    return record["experiment"], record["lam"], record["seed"]


def description(cell: Cell) -> Record:
    """The part of a record that says which run it is of."""
    return {
        "format": FORMAT,
        "experiment": cell.experiment.name,
        "lam": cell.lam,
        "seed": cell.seed,
        "config": cell.config,
    }


def read_record(path: Path) -> Record | None:
    """The record stored at ``path``; None if there is none, or one that was cut off or damaged."""
    try:
        record = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not isinstance(record, dict) or not record.keys() >= _FIELDS:
        return None
    if _OUTCOMES.get(record["status"]) not in record:
        return None
    demand_format(path, record)
    return record


def write_record(path: Path, record: Record) -> None:
    """Write a record, whole or not at all."""
    write_whole(path, json.dumps(record, indent=1, sort_keys=True, allow_nan=False) + "\n")


def stored_record(cell: Cell, out: Path, table: dict[Key, Record]) -> Record | None:
    """The record of a cell that is done, from its file or the table; None if there is none."""
    asked = description(cell)
    source = f"{cell.path(out)}"
    record = read_record(cell.path(out))
    if record is None:
        source = f"{cell.label} in {out}"
        record = table.get(key_of(asked))
    if record is None:
        return None
    difference = first_difference({name: record[name] for name in asked}, asked)
    if difference:
        raise ValueError(
            f"sweep: {source} was made with other settings: {difference.removeprefix('config.')}; "
            "choose another `out`, or overwrite=True to compute it anew."
        )
    return record if record["status"] == "done" else None


def demand_format(path: Path, stored: Record) -> None:
    """Refuse a file of another version."""
    if stored["format"] != FORMAT:
        raise ValueError(
            f"sweep: {path} is of another version: its format is {stored['format']!r}, not "
            f"{FORMAT}; read it with that version, choose another `out`, or overwrite=True to "
            "compute it anew."
        )
