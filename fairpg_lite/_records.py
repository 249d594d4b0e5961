"""Stored cells: one JSON file each while a sweep runs, one table when it is collected (chapter 15).

A cell's file is there whole or not at all. ``table.csv`` has a row for every finished run: method,
lambda, seed, every measure with all its digits, seconds; lists stand in it as JSON. ``table.json``
beside it names the settings of every method, the commit and the versions that made the rows.
"""

import csv
import io
import json
from pathlib import Path
from typing import Any

from fairpg_lite._cells import Cell
from fairpg_lite._files import write_whole

FORMAT = 1
TABLE, SIDECAR = "table.csv", "table.json"
Record = dict[str, Any]
Key = tuple[str, float, int]
_ABOUT = ("lam", "seed", "seconds")
_LONG = (str, list, dict)


def key(record: Record) -> Key:
    return record["method"], record["lam"], record["seed"]


def read_cell(path: Path) -> Record | None:
    """The cell stored at ``path``; None if there is none, or one that was cut off or damaged."""
    try:
        cell = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not isinstance(cell, dict) or "format" not in cell:
        return None
    _check_format(cell, path)
    needed = {"done": "result", "failed": "error"}.get(cell.get("status", ""))
    whole = {"method", "config", "lam", "seed", "seconds"} <= cell.keys()
    return cell if whole and isinstance(cell.get(needed), dict) else None


def _check_format(stored: Record, path: Path) -> None:
    if stored["format"] != FORMAT:
        raise ValueError(
            f"sweep: {path} has format {stored['format']!r}, this version writes {FORMAT}; "
            "choose another `out`, or force=True to compute it anew."
        )


def write_cell(path: Path, cell: Record) -> None:
    """Write whole or not at all: readers see the old file or the new one, never a part."""
    _write(path, json.dumps(cell, indent=1, sort_keys=True, allow_nan=False) + "\n")


def probe(path: Path) -> None:
    """See that ``path`` can be written, before hours are spent on what goes there."""
    _write(path.with_name(".probe"), "").unlink(missing_ok=True)


def _write(path: Path, text: str) -> Path:
    try:
        return write_whole(path, text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(
            error.errno or 0,
            f"sweep: cannot write into {path.parent} ({reason}); what was finished before is kept. "
            "Choose another `out`, or make room there, and run again.",
        ) from error


def finished(cell: Cell, out: Path, table: dict[Key, Record]) -> Record | None:
    """What is stored of ``cell`` if it is done; an error if it was made with other settings."""
    path = cell.path(out)
    asked = {"method": cell.experiment.name, "lam": cell.lam, "seed": cell.seed}
    stored = read_cell(path) or table.get(key(asked))
    if stored is None:
        return None
    absent = dict.fromkeys(stored["config"], "absent")
    for name, value in (asked | absent | cell.config).items():
        theirs = (stored if name in asked else stored["config"]).get(name, "absent")
        if theirs != value:
            if name == "config" and isinstance(theirs, dict) and isinstance(value, dict):
                pairs = {k: (theirs.get(k), value.get(k)) for k in {**theirs, **value}}
                name, (theirs, value) = next((k, p) for k, p in pairs.items() if p[0] != p[1])
            raise ValueError(
                f"sweep: {path} was made with other settings: {name} is {theirs!r} there and "
                f"{value!r} here; choose another `out`, or force=True to compute it anew."
            )
    return stored if stored["status"] == "done" else None


def read_table(out: Path) -> dict[Key, Record]:
    """The finished cells in the table of ``out``; nothing if it has none."""
    about = _old(out)
    if not about or not (out / TABLE).exists():
        return {}
    _check_format(about, out / SIDECAR)
    records = {}
    for row in csv.DictReader(io.StringIO((out / TABLE).read_text("utf-8"))):
        method, made = row.pop("method"), about["made"][int(row.pop("made"))]
        result = {name: json.loads(text) for name, text in row.items() if text}
        record = {"format": FORMAT, "method": method, "config": about["methods"][method], **made}
        record |= {name: result.pop(name) for name in _ABOUT}
        records[key(record)] = {**record, "status": "done", "result": result}
    return records


def write_table(out: Path, records: list[Record], **about: Any) -> None:
    """Write the table of all ``records`` and, before it, the sidecar that explains it."""
    # Killed between the two, the old table must still read rightly: its origins keep their numbers.
    made = _old(out).get("made", [])
    for record in records:
        origin = _origin(record)
        made += [origin] if origin not in made else []
        for name in record["result"]:
            if name in (*_ABOUT, "method", "made") or not name.isprintable():
                raise ValueError(f"collect: a measure is called {name!r}; rename it.")
    records = sorted(records, key=key)
    long = {n for r in records for n, value in r["result"].items() if isinstance(value, _LONG)}
    measures = {name for record in records for name in record["result"]}
    # Numbers first, then texts and lists.
    names = ["method", "lam", "seed", *sorted(measures, key=lambda n: (n in long, n))]
    text = io.StringIO()
    table = csv.DictWriter(text, [*names, "seconds", "made"], lineterminator="\n")
    table.writeheader()
    for record in records:
        row = {name: record[name] for name in _ABOUT} | record["result"]
        row["made"] = made.index(_origin(record))
        told = {name: json.dumps(value, allow_nan=False) for name, value in row.items()}
        table.writerow({"method": record["method"], **told})
    seconds = round(sum(record["seconds"] for record in records), 3)
    methods = {record["method"]: record["config"] for record in records}
    sidecar = {"format": FORMAT, **about, "runs": len(records), "seconds": seconds}
    sidecar |= {"made": made, "methods": methods}
    _write(out / SIDECAR, json.dumps(sidecar, indent=1, allow_nan=False) + "\n")
    _write(out / TABLE, text.getvalue())


def _origin(record: Record) -> Record:
    return {"commit": record.get("commit", "unknown"), "versions": record.get("versions", {})}


def _old(out: Path) -> Record:
    try:
        return json.loads((out / SIDECAR).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
