"""`python -m checker grade SUBMISSIONS/ --out grades.csv --feedback feedback/`: mark a class."""

import argparse
import csv
import io
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import torch

from checker import TASKS
from checker.grade import Result, digest, jail, mark
from fairpg_lite._files import write_whole


def submissions(folder: Path) -> dict[str, Path]:
    """The notebook of each student: ``NAME.ipynb``, or the one in the folder ``NAME``."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.ipynb")):
        parts = path.relative_to(folder).parts
        name = path.stem if len(parts) == 1 else parts[0]
        hidden = any(part.startswith(".") for part in parts)
        if not hidden and (name not in found or path.stem == "assignment"):
            found[name] = path
    if not found:
        raise FileNotFoundError(
            f"grade: no notebook in {folder}; put there NAME.ipynb, or a folder NAME for each "
            "student with a notebook inside."
        )
    return found


def page(result: Result) -> str:
    """What a student is told: the points, and the checker's words."""
    seed = "none" if result.seed is None else result.seed
    head = f"{result.student}: {result.total} of {sum(t.points for t in TASKS.values())} points"
    told = f"Seed of the notebook: {seed}. The written answers A, B and C are marked by a person."
    return "\n\n".join([head, told, *result.notes, *filter(None, result.messages.values())]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m checker", description="Mark a class.")
    command = parser.add_subparsers(required=True).add_parser("grade", help="grade a folder")
    command.add_argument("submissions", type=Path, help="NAME.ipynb, or a folder NAME, for each")
    command.add_argument("--out", type=Path, default=Path("grades.csv"), help="the table to write")
    command.add_argument("--feedback", type=Path, default=Path("feedback"), help="a page for each")
    command.add_argument("--timeout", type=float, default=60.0, help="seconds per cell and task")
    command.add_argument("--jobs", type=int, default=2, help="submissions at the same time")
    command.add_argument("--seeds", type=Path, help="CSV of student,seed where you set them")
    given = parser.parse_args(arguments)
    seeds = {}
    if given.seeds:
        with given.seeds.open(encoding="utf-8", newline="") as file:
            seeds = {row["student"]: int(row["seed"]) for row in csv.DictReader(file)}
    try:
        found = submissions(given.submissions)
    except FileNotFoundError as error:
        parser.error(str(error))
    given.feedback.mkdir(parents=True, exist_ok=True)
    hide = tuple(str(path.resolve()) for path in (given.submissions, given.feedback))
    blocked = "sockets blocked in Python only; for more than that grade in a container"
    shut = "no network, other processes or files to write" if jail(hide) else blocked
    print(f"Each submission in its own process: {shut}.", file=sys.stderr)
    torch.set_num_threads(1)
    start = time.monotonic()

    def graded(name: str) -> Result:
        """The result of one student; from its file where an earlier run has left it there."""
        notebook, seed, timeout = found[name], seeds.get(name), given.timeout
        record = given.feedback / ".results" / f"{name}.json"
        with suppress(OSError, ValueError, TypeError):
            result = Result(**json.loads(record.read_text("utf-8")))
            if result.digest == digest(notebook, seed, timeout):
                return result
        result = mark(name, notebook, seed, timeout, hide)
        write_whole(given.feedback / f"{name}.txt", page(result))
        write_whole(record, json.dumps(asdict(result)))
        print(f"{name}: {result.total}", file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(graded, found))
    rows = [[r.student, *(r.points[task] for task in TASKS), r.total] for r in results]
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([["student", *TASKS, "total"], *rows])
    write_whole(given.out, table.getvalue())
    print(f"{len(results)} submissions in {time.monotonic() - start:.0f} s: {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
