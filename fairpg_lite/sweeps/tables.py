"""A finished sweep as one table, ``table.csv``, and what explains it, ``table.json``.

A row is a run, every measure as JSON with all its digits; ``table.json`` has the settings of every
experiment, and the commit and the versions that made the rows.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpg_lite._extras import require
from fairpg_lite._files import locked, write_whole
from fairpg_lite.sweeps.records import FORMAT, Key, Record, demand_format, key_of, read_record

if TYPE_CHECKING:
    import pandas as pd

TABLE = "table.csv"
SIDECAR = "table.json"
# Columns that stand before and after the measures; a measure cannot have their names.
_FIRST = ("experiment", "lam", "seed")
_LAST = ("seconds", "made")


def load_cells(path: str | Path) -> list[Record]:
    """The finished runs of a sweep, from files and table (chapter 18).

    Args:
        path: The ``out`` of a sweep.

    Returns:
        Records by experiment, lambda and seed. Each has "experiment", "lam", "seed", "config" (the
        settings), "result", "seconds", "commit" and "versions". Runs that failed are left out.

    >>> import tempfile
    >>> from fairpg_lite import TrainConfig, synthetic
    >>> from fairpg_lite.sweeps import FairPGRank, Splits, sweep
    >>> data = synthetic(4, seed=0)
    >>> experiment = FairPGRank(Splits(data, data), TrainConfig(epochs=1))
    >>> with tempfile.TemporaryDirectory() as out:
    ...     records = sweep(experiment, [0, 5], [0], out, progress=False)
    ...     load_cells(out) == records
    True
    """
    folder = Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"load_cells: {folder} is not a directory; give a sweep's `out`.")
    # Files first: `collect` writes the table before it removes them.
    from_files = {key_of(record): record for record in _done_files(folder).values()}
    records = read_table(folder) | from_files
    return sorted(records.values(), key=key_of)


def as_table(records: Iterable[Record]) -> "pd.DataFrame":
    """Finished runs as a pandas table.

    Args:
        records: What `run_cells` or `load_cells` returned, all of them done.

    Returns:
        A row for each run, with the columns experiment, lam, seed, then the results, NDCG first.

    >>> record = {"experiment": "mine", "lam": 0.0, "seed": 0, "result": {"d": 0.1, "ndcg": 0.9}}
    >>> list(as_table([record]).columns)
    ['experiment', 'lam', 'seed', 'ndcg', 'd']
    """
    rows = []
    for record in records:
        about = {name: record[name] for name in _FIRST}
        rows.append(about | record["result"])
    table: pd.DataFrame = require("pandas", "experiments").DataFrame(rows)
    first = (*_FIRST, "ndcg")
    return table[sorted(table.columns, key=lambda name: name not in first)]


def collect(out: str | Path, *, about: Mapping[str, Any] | None = None) -> Path:
    """Make one table of a sweep's finished runs and remove their files.

    `load_cells` and `run_cells` take a collected sweep like any other. Runs that failed stay files.

    Args:
        out: The directory of the sweep.
        about: What else ``table.json`` is to say, such as the command that was given.

    Returns:
        The path of ``table.csv``.

    >>> import tempfile
    >>> from fairpg_lite import TrainConfig, synthetic
    >>> from fairpg_lite.sweeps import FairPGRank, Splits, sweep
    >>> data = synthetic(4, seed=0)
    >>> experiment = FairPGRank(Splits(data, data), TrainConfig(epochs=1))
    >>> with tempfile.TemporaryDirectory() as out:
    ...     records = sweep(experiment, [0, 5], [0], out, progress=False)
    ...     len(collect(out).read_text().splitlines())
    3
    """
    folder = Path(out)
    with locked(folder):  # two that collect at once would lose what one of them wrote
        files = _done_files(folder)
        records = {key_of(record): record for record in files.values()}
        # A table has one setting for each experiment: rows of another were overwritten since.
        settings = {record["experiment"]: record["config"] for record in records.values()}
        for key, row in read_table(folder).items():
            if settings.get(row["experiment"], row["config"]) == row["config"]:
                records.setdefault(key, row)
        write_table(folder, list(records.values()), about or {})
        for path in files:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # not empty: a failed run, or another sweep's
                path.parent.rmdir()
    return folder / TABLE


def read_table(out: Path) -> dict[Key, Record]:
    """The finished runs in the table of ``out``; nothing if it has none."""
    sidecar = _read_sidecar(out)
    if not sidecar or not (out / TABLE).exists():
        return {}
    records = {}
    for row in csv.DictReader(io.StringIO((out / TABLE).read_text("utf-8"))):
        record = _record_of(row, sidecar)
        records[key_of(record)] = record
    return records


def write_table(out: Path, records: Sequence[Record], about: Mapping[str, Any]) -> None:
    """Write the table of all ``records`` and, before it, the sidecar that explains it."""
    records = sorted(records, key=key_of)
    # Killed between the two, the old table must still read rightly: its origins keep their numbers.
    made = list(_read_sidecar(out).get("made", []))
    rows = []
    for record in records:
        origin = {"commit": record.get("commit", "unknown"), "versions": record.get("versions", {})}
        if origin not in made:
            made.append(origin)
        rows.append(_row_of(record, made.index(origin)))
    text = io.StringIO()
    columns = [*_FIRST, *_measures_of(records), *_LAST]
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    sidecar = {
        "format": FORMAT,
        **about,
        "runs": len(records),
        "seconds": round(sum(record["seconds"] for record in records), 3),
        "made": made,
        "experiments": {record["experiment"]: record["config"] for record in records},
    }
    write_whole(out / SIDECAR, json.dumps(sidecar, indent=1, allow_nan=False) + "\n")
    write_whole(out / TABLE, text.getvalue())


def _row_of(record: Record, made: int) -> dict[str, str]:
    """The columns of a run, each as JSON but for the experiment's name."""
    values = {"lam": record["lam"], "seed": record["seed"], **record["result"]}
    values |= {"seconds": record["seconds"], "made": made}
    row = {"experiment": record["experiment"]}
    for name, value in values.items():
        # No blanks after commas: a table of long lists is a tenth smaller.
        row[name] = json.dumps(value, separators=(",", ":"))
    return row


def _record_of(row: dict[str, str], sidecar: Record) -> Record:
    """The record that a row was made of."""
    experiment = row.pop("experiment")
    values = {name: json.loads(text) for name, text in row.items() if text}
    return {
        "format": sidecar["format"],
        "experiment": experiment,
        **sidecar["made"][values.pop("made")],
        "lam": values.pop("lam"),
        "seed": values.pop("seed"),
        "seconds": values.pop("seconds"),
        "config": sidecar["experiments"][experiment],
        "status": "done",
        "result": values,
    }


def _measures_of(records: Sequence[Record]) -> list[str]:
    """The names of all results: numbers first, then texts and lists."""
    is_long: dict[str, bool] = {}
    for record in records:
        for name, value in record["result"].items():
            _demand_column_name(name)
            is_long[name] = is_long.get(name, False) or isinstance(value, str | list | dict)
    return sorted(is_long, key=lambda name: (is_long[name], name))


def _demand_column_name(name: str) -> None:
    """Refuse a measure that a table could not tell from its other columns."""
    if name in (*_FIRST, *_LAST):
        raise ValueError(
            f"collect: a result is called {name!r}, which is the name of a column; rename it."
        )
    if not name.isprintable():
        raise ValueError(f"collect: a result is called {name!r}; rename it without line breaks.")


def _read_sidecar(out: Path) -> Record:
    """The sidecar of ``out``; nothing if there is none."""
    try:
        sidecar: Record = json.loads((out / SIDECAR).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    demand_format(out / SIDECAR, sidecar)
    return sidecar


def _done_files(out: Path) -> dict[Path, Record]:
    """The records of runs that are done, by their files."""
    files = {}
    for path in out.rglob("lam=*_seed=*.json"):
        record = read_record(path)
        if record is not None and record["status"] == "done":
            files[path] = record
    return files
