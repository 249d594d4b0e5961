"""`python -m checker grade SUBMISSIONS/ --out grades.csv --feedback feedback/`: mark a class."""

import argparse
import csv
import sys
import time
from pathlib import Path

from checker.grade import Rules, grade, jail


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m checker", description="Mark a class.")
    command = parser.add_subparsers(required=True).add_parser("grade", help="grade a folder")
    command.add_argument("submissions", type=Path, help="NAME.ipynb, or a folder NAME, for each")
    command.add_argument("--out", type=Path, default=Path("grades.csv"), help="the table to write")
    command.add_argument("--feedback", type=Path, default=Path("feedback"), help="a page for each")
    command.add_argument(
        "--timeout", type=float, default=60.0, help="processor seconds per cell and task"
    )
    command.add_argument("--memory", type=float, default=6.0, help="gigabytes per submission")
    command.add_argument("--jobs", type=int, default=2, help="submissions at the same time")
    command.add_argument("--seed", type=int, default=1, help="of the inputs that functions get")
    command.add_argument("--seeds", type=Path, help="CSV of student,seed where you set them")
    given = parser.parse_args(arguments)
    seeds = {}
    if given.seeds:
        with given.seeds.open(encoding="utf-8", newline="") as file:
            seeds = {row["student"]: int(row["seed"]) for row in csv.DictReader(file)}
    hide = tuple(str(path.resolve()) for path in (given.submissions, given.feedback))
    given.feedback.mkdir(parents=True, exist_ok=True)
    shut = (
        "no network, other processes or files to write"
        if jail(hide)
        else ("sockets blocked in Python only; for more than that grade in a container")
    )
    print(f"Each submission in its own process: {shut}.", file=sys.stderr)
    start = time.monotonic()
    rules = Rules(given.timeout, given.memory, given.seed, hide)
    try:
        results = grade(
            given.submissions, given.out, given.feedback, rules, jobs=given.jobs, seeds=seeds
        )
    except FileNotFoundError as error:
        parser.error(str(error))
    print(f"{len(results)} submissions in {time.monotonic() - start:.0f} s: {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
