"""One run of a sweep, how it is stored, and what made it (chapter 15).

While a sweep runs, each finished cell is a JSON file, there whole or not at all. Collected, it is a
row of ``table.csv``, every measure as JSON with all its digits; ``table.json`` beside it has the
settings of every method, and the commit and the versions that made the rows.
"""

import csv
import dataclasses
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib import metadata
from itertools import product
from numbers import Real
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch

from fairpg_lite import _check
from fairpg_lite._files import write_whole
from fairpg_lite._version import __version__

FORMAT = 1
TABLE, SIDECAR = "table.csv", "table.json"
Record = dict[str, Any]
Key = tuple[str, float, int]
_ABOUT = ("lam", "seed", "seconds")
# A directory name on every system; no separator, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]*")


@dataclass(frozen=True)
class Cell:
    """One run, ``experiment(lam, seed)``, which returns a dictionary (chapter 15).

    An experiment is one method on one data set: a frozen dataclass whose fields are its
    configuration, with a ``name`` that is stored with its results.
    """

    experiment: Any
    lam: float
    seed: int

    def __post_init__(self) -> None:
        name, lam = getattr(self.experiment, "name", ""), self.lam
        if not dataclasses.is_dataclass(self.experiment) or not _NAME.fullmatch(name or ""):
            raise TypeError(
                f"Cell: experiment is {self.experiment!r}; give a frozen dataclass, whose fields "
                "are stored, with a name for a directory: letters, digits and any of ._+=-"
            )
        if isinstance(lam, bool) or not isinstance(lam, Real) or not 0 <= lam < math.inf:
            raise ValueError(f"Cell: lam is {lam!r}; give a finite number, zero or more.")
        object.__setattr__(self, "lam", float(lam) + 0.0)  # -0.0 is 0.0 and has its file name
        object.__setattr__(self, "seed", _check.seed("Cell: seed", self.seed))

    @cached_property
    def config(self) -> Record:
        """The experiment's class and fields, as they are stored; refuses what cannot be."""
        return plain(self.experiment.name, _settings(self.experiment))

    @property
    def about(self) -> Record:
        """What is stored beside the outcome to say which run it is of."""
        known = {"experiment": self.experiment.name, "lam": self.lam, "seed": self.seed}
        return {"format": FORMAT, **known, "config": self.config}

    def path(self, out: str | Path) -> Path:
        """Where this cell is stored below ``out``; different cells never share a file."""
        lam = repr(self.lam).removesuffix(".0")
        return Path(out) / self.experiment.name / f"lam={lam}_seed={self.seed}.json"


def grid(experiment: Any, lambdas: Iterable[float], seeds: Iterable[int]) -> list[Cell]:
    """Every lambda with every seed, lambda by lambda (chapter 15)."""
    return [Cell(experiment, lam, seed) for lam, seed in product(lambdas, seeds)]


def plain(where: str, values: Record) -> Record:
    """``values`` as JSON gives them back, every digit; refuses what it cannot hold, NaN too."""
    stored = {}
    for name, value in values.items():
        try:
            stored[f"{name}"] = json.loads(json.dumps(value, allow_nan=False, default=_described))
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{where}[{name!r}] cannot be stored ({error}); give finite numbers, strings, "
                "lists and dictionaries, or None (a function: one with a name of its own)."
            ) from error
    return stored


def _described(value: Any) -> Any:
    """What JSON has no word for."""
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "fingerprint"):  # a dataset: known by its content
        return {"class": type(value).__name__, "fingerprint": value.fingerprint()}
    if isinstance(value, FunctionType) and "<" not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _settings(value)
    raise TypeError(f"a {type(value).__name__}")


def _settings(value: Any) -> Record:
    """Class and fields, without those that make no difference (``field(compare=False)``)."""
    fields = [field.name for field in dataclasses.fields(value) if field.compare]
    return {"class": type(value).__name__, **{name: getattr(value, name) for name in fields}}


def key(record: Record) -> Key:
    return record["experiment"], record["lam"], record["seed"]


def read_cell(path: Path) -> Record | None:
    """The cell stored at ``path``; None if there is none, or one that was cut off or damaged."""
    try:
        cell = json.loads(path.read_text("utf-8"))
        outcome = {"done": "result", "failed": "error"}[cell["status"]]
        whole = {*cell} >= {"format", "experiment", "config", "lam", "seed", "seconds", outcome}
    except (FileNotFoundError, NotADirectoryError, ValueError, LookupError, TypeError):
        return None
    return _of_this_format(path, cell) if whole else None


def _of_this_format(path: Path, stored: Record) -> Record:
    if stored["format"] != FORMAT:
        raise ValueError(
            f"sweep: {path} is another version's: format is {stored['format']!r} there, {FORMAT} "
            "here; read it with that one, choose another `out`, or force=True to compute it anew."
        )
    return stored


def write_cell(path: Path, cell: Record) -> None:
    write_whole(path, json.dumps(cell, indent=1, sort_keys=True, allow_nan=False) + "\n")


def finished(cell: Cell, out: Path, table: dict[Key, Record]) -> Record | None:
    """What is stored of ``cell`` if it is done; an error if it was made with other settings."""
    path, here = cell.path(out), cell.about
    stored = read_cell(path) or table.get(key(here))
    if stored is None:
        return None
    if other := _difference({name: stored[name] for name in here}, here):
        raise ValueError(
            f"sweep: {path} was made with other settings: {other.removeprefix('config.')}; choose "
            "another `out`, or force=True to compute it anew."
        )
    return stored if stored["status"] == "done" else None


def _difference(there: Record, here: Record) -> str:
    """The first setting that differs, in words; nothing if none does."""
    for name in {**here, **there}:
        one, two = there.get(name, "absent"), here.get(name, "absent")
        if isinstance(one, dict) and isinstance(two, dict) and one != two:
            return f"{name}.{_difference(one, two)}"
        if one != two:
            return f"{name} is {one!r} there and {two!r} here"
    return ""


def read_table(out: Path) -> dict[Key, Record]:
    """The finished cells in the table of ``out``; nothing if it has none."""
    about, records = _sidecar(out), {}
    if not about or not (out / TABLE).exists():
        return {}
    for row in csv.DictReader(io.StringIO((out / TABLE).read_text("utf-8"))):
        name = row.pop("experiment")
        made = about["made"][int(row.pop("made"))]
        result = {name: json.loads(text) for name, text in row.items() if text}
        record = {"format": about["format"], "experiment": name, **made}
        record |= {name: result.pop(name) for name in _ABOUT}
        record["config"] = about["experiments"][name]
        records[key(record)] = {**record, "status": "done", "result": result}
    return records


def write_table(out: Path, records: list[Record], **about: Any) -> None:
    """Write the table of all ``records`` and, before it, the sidecar that explains it."""
    # Killed between the two, the old table must still read rightly: its origins keep their numbers.
    made, rows, measures = _sidecar(out).get("made", []), [], dict[str, bool]()
    records = sorted(records, key=key)
    for record in records:
        for name, value in record["result"].items():
            if name in (*_ABOUT, "experiment", "made") or not name.isprintable():
                raise ValueError(f"collect: a measure is called {name!r}; rename it.")
            measures[name] = measures.get(name, False) or isinstance(value, str | list | dict)
        origin = {"commit": record.get("commit", "unknown"), "versions": record.get("versions", {})}
        made += [origin] if origin not in made else []
        row = {n: record[n] for n in _ABOUT} | record["result"] | {"made": made.index(origin)}
        # No blanks after commas: a table of long lists is a tenth smaller.
        told = {name: json.dumps(value, separators=(",", ":")) for name, value in row.items()}
        rows.append({"experiment": record["experiment"], **told})
    # Numbers first, then texts and lists.
    names = sorted(measures, key=lambda name: (measures[name], name))
    text, columns = io.StringIO(), ["experiment", "lam", "seed", *names, "seconds", "made"]
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    seconds = round(sum(record["seconds"] for record in records), 3)
    sidecar = {"format": FORMAT, **about, "runs": len(records), "seconds": seconds, "made": made}
    sidecar["experiments"] = {r["experiment"]: r["config"] for r in records}
    write_whole(out / SIDECAR, json.dumps(sidecar, indent=1, allow_nan=False) + "\n")
    write_whole(out / TABLE, text.getvalue())


def _sidecar(out: Path) -> Record:
    try:
        return _of_this_format(out / SIDECAR, json.loads((out / SIDECAR).read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return {}


def load_cells(out: str | Path) -> list[Record]:
    """A sweep's finished cells, from files and table, by method, lambda and seed (chapter 15)."""
    out = Path(out)
    if not out.is_dir():
        raise FileNotFoundError(f"load_cells: {out} is not a directory; give a sweep's `out`.")
    # Files first: `collect` writes the table before it removes them.
    files = {key(cell): cell for cell in _files(out).values()}
    return sorted((read_table(out) | files).values(), key=key)


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
        settings = {cell["experiment"]: cell["config"] for cell in done.values()}
        old = read_table(out).items()
        rows = {k: r for k, r in old if settings.get(k[0], r["config"]) == r["config"]}
        write_table(out, list((rows | done).values()), **about)
        for path in found:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # a failed cell, or another sweep's: not empty
                path.parent.rmdir()
    finally:
        os.close(lock)
    return out / TABLE


def _files(out: Path) -> dict[Path, Record]:
    """The cells that are done, by their files."""
    found = {path: read_cell(path) for path in out.rglob("lam=*_seed=*.json")}
    return {path: cell for path, cell in found.items() if cell and cell["status"] == "done"}


@lru_cache
def versions() -> dict[str, str]:
    """Versions of Python, this package and the installed libraries that can change a result."""
    # torch itself knows its build (+cpu, +cu130); the package's metadata may not.
    found = {"python": sys.version.split()[0], "fairpg_lite": __version__}
    found["torch"] = str(torch.__version__)
    for name in ("numpy", "numba", "scipy", "scikit-learn", "lightgbm"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def commit() -> str:
    """Short hash of the checkout this package runs from, with "-dirty" if code was changed since.

    "unknown" where the package is installed: the repository around it says nothing about it.
    """
    where, silent = Path(__file__).parent, subprocess.DEVNULL
    git = partial(subprocess.check_output, cwd=where, stderr=silent, text=True)
    try:
        git(["git", "ls-files", "--error-unmatch", "--", __file__])
        changed = git(["git", "status", "--porcelain", "--untracked-files=no", "--", ":/*.py", "."])
        short = git(["git", "rev-parse", "--short", "HEAD"]).strip()
        return f"{short}-dirty" if changed else short
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository of ours
        return "unknown"
