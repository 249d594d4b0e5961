"""Find what a class handed in: nobody's work is left out without a word.

A folder of submissions holds `NAME.ipynb`, or a folder `NAME`, for each student. Every entry gives
a row in the table; what cannot be graded gives a row with the reason.
"""

import csv
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

#: What operating systems and Jupyter leave behind.
LEFT_BEHIND = {"__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini"}


@dataclass
class Submission:
    """One row of the table: a student, the notebooks to grade, and what to say about the rest."""

    student: str
    notebooks: list[Path] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    reason: str = ""


def submissions(folder: Path) -> list[Submission]:
    """One entry for every file and folder that was handed in, by name.

    Raises:
        FileNotFoundError: there is no such folder, or nothing in it.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"grade: there is no folder {folder}.")
    entries = sorted(path for path in folder.iterdir() if not _left_behind(path))
    if not entries:
        raise FileNotFoundError(
            f"grade: nothing in {folder}; put there NAME.ipynb, or a folder NAME for each "
            "student with a notebook inside."
        )
    found = [_submission(path) for path in entries]
    taken = Counter(one.student for one in found)
    for path, one in zip(entries, found, strict=True):
        if taken[one.student] > 1:  # such as `ada.ipynb` beside a folder `ada`
            one.student = path.name
            one.remarks.append("somebody else here has the same name")
    return found


def _left_behind(path: Path) -> bool:
    return path.name.startswith(".") or path.name in LEFT_BEHIND


def _submission(path: Path) -> Submission:
    """What lies at ``path``, a file or a folder; links are not followed."""
    if path.is_symlink():
        return Submission(path.stem, reason="it is a link to another place, which is not followed")
    if path.is_dir() and path.suffix != ".ipynb":
        return _folder(path)
    if path.suffix != ".ipynb":
        return Submission(path.name, reason="it is no notebook (.ipynb); ask for that")
    if path.is_dir():
        return Submission(path.stem, reason="it is a folder with the name of a notebook")
    if not path.is_file():
        return Submission(path.stem, reason="it is no ordinary file")
    return Submission(path.stem, [path])


def _folder(folder: Path) -> Submission:
    """All notebooks below a folder, and a remark on each other file."""
    found = Submission(folder.name)
    others = list[str]()
    for place, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if not _left_behind(Path(name)))
        for name in [*below, *sorted(names)]:
            path = Path(place, name)
            inside = str(path.relative_to(folder))
            if path.is_symlink():
                others.append(f"{inside} (a link, not followed)")
            elif path.suffix == ".ipynb" and path.is_file():
                found.notebooks.append(path)
            elif name in names and not _left_behind(path):
                others.append(inside)
    if others:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        found.remarks.append(f"not graded: {', '.join(others[:5])}{more}")
    if not found.notebooks:
        found.reason = "there is no notebook in the folder"
    return found


def read_seeds(path: Path) -> dict[str, int]:
    """The seeds that were set, from a table with the columns ``student`` and ``seed``.

    Comma, semicolon or tab may stand between them.

    Raises:
        ValueError: a column is missing or a seed is no number, with the line.
    """
    text = path.read_text(encoding="utf-8-sig")
    head = text.splitlines()[0] if text.strip() else ""
    between = next((mark for mark in (";", "\t") if mark in head), ",")
    reader = csv.DictReader(text.splitlines(), delimiter=between)
    columns = [name.strip().lower() for name in reader.fieldnames or []]
    missing = {"student", "seed"} - set(columns)
    if missing:
        raise ValueError(
            f"{path}: the first line is {head!r}; it must name the columns student and seed."
        )
    seeds = dict[str, int]()
    for number, row in enumerate(reader, 2):
        cells = [value.strip() if isinstance(value, str) else "" for value in row.values()]
        line = dict(zip(columns, cells, strict=False))
        try:
            seeds[line["student"]] = int(line["seed"])
        except (ValueError, KeyError):
            raise ValueError(
                f"{path}, line {number}: the seed is {line.get('seed', '')!r}; give a whole number."
            ) from None
    return seeds
