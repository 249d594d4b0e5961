"""Mark a class: `python -m checker grade SUBMISSIONS/ --out grades/`, or `make grade`."""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from checker import WEEKS, report, tasks_of
from checker.bubblewrap import Sandbox, find_sandbox
from checker.collect import Submission, read_seeds, submissions
from checker.grade import MEMORY, Result, digest, mark, ungraded
from checker.names import as_file_name, as_text
from fairpg_lite._files import write_whole

ASSIGNMENT = Path(__file__).resolve().parents[1] / "assignment.md"


@dataclass(frozen=True)
class Grading:
    """How a class is graded: what was asked for on the command line."""

    out: Path
    sandbox: Sandbox
    week: int | None
    timeout: float
    seeds: dict[str, int]

    @property
    def tasks(self) -> list[str]:
        return tasks_of(self.week)

    def notebook(self, student: str, path: Path) -> Result:
        """The result of one notebook; from its file where an earlier run has left it there."""
        seed = self.seeds.get(student)
        record = self.out / ".results" / f"{as_file_name(f'{student}-{path.name}')}.json"
        with suppress(OSError, ValueError, TypeError):
            result = Result(**json.loads(record.read_text("utf-8")))
            if result.digest == digest(path, seed, self.timeout, self.tasks):
                return result
        result = mark(
            student, path, self.sandbox, tasks=self.tasks, seed=seed, timeout=self.timeout
        )
        write_whole(record, json.dumps(asdict(result)))
        return result

    def submission(self, found: Submission) -> Result:
        """The result of one student, the best of several notebooks; it is said which."""
        if not found.notebooks:
            result = ungraded(found.student, found.reason, self.tasks)
        else:
            results = [self.notebook(found.student, path) for path in found.notebooks]
            result = max(results, key=lambda one: (not one.reason, one.total))
            if len(results) > 1:
                pairs = zip(found.notebooks, results, strict=True)
                listed = ", ".join(f"{as_text(path.name)}: {one.total}" for path, one in pairs)
                result.notes.insert(0, f"{len(results)} notebooks: {listed}. The best counts.")
        page = self.out / "feedback" / f"{as_file_name(found.student)}.txt"
        write_whole(page, report.student_page(result))
        told = f"{result.total} of {result.out_of}"
        if result.reason:
            told = f"NOT GRADED, {result.reason}"
        print(f"{as_text(found.student)}: {told}", file=sys.stderr, flush=True)
        return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m checker", description="Mark a class.")
    command = parser.add_subparsers(required=True).add_parser("grade", help="grade a folder")
    command.add_argument("submissions", type=Path, help="NAME.ipynb, or a folder NAME, for each")
    command.add_argument(
        "--out", type=Path, default=Path("grades"), help="a folder for the results"
    )
    command.add_argument("--week", type=int, choices=sorted(WEEKS), help="one of four assignments")
    command.add_argument("--timeout", type=float, default=60.0, help="seconds per cell and task")
    command.add_argument("--jobs", type=int, default=2, help="submissions at the same time")
    command.add_argument("--seeds", type=Path, help="a table of student and seed, if you set them")
    command.add_argument(
        "--no-sandbox",
        action="store_true",
        help="run the submissions with your own rights: only for a class that you trust",
    )
    return parser


def _sandbox(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Sandbox:
    """The sandbox, or none if that was asked for; without either nothing is graded."""
    if options.no_sandbox:
        return Sandbox(reason="--no-sandbox")
    ours = (options.submissions, options.out)
    sandbox = find_sandbox(tuple(str(path.resolve()) for path in ours))
    if not sandbox:
        parser.error(
            f"grade: there is no sandbox: {sandbox.reason}. Submissions are programs; without a "
            "sandbox they run with your rights. Install bubblewrap on a Linux machine that allows "
            "user namespaces, or, for a class that you trust, add --no-sandbox."
        )
    return sandbox


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        found = submissions(options.submissions)
        seeds = read_seeds(options.seeds) if options.seeds else {}
    except (OSError, ValueError) as error:
        parser.error(str(error))
    sandbox = _sandbox(options, parser)
    (options.out / "feedback").mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    start = time.monotonic()
    grading = Grading(options.out, sandbox, options.week, options.timeout, seeds)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(grading.submission, found))
    sentence = sandbox.in_force(MEMORY, options.timeout)
    _write(grading, found, results, sentence)
    unused = sorted(set(seeds) - {one.student for one in found})
    if unused:
        print(f"Seeds of nobody here: {', '.join(map(as_text, unused))}.", file=sys.stderr)
    lost = sum(1 for result in results if result.reason)
    print(
        f"{len(results)} submissions in {time.monotonic() - start:.0f} s, {lost} not graded: "
        f"{options.out / 'grades.csv'}, and class.html, written.html and feedback{os.sep} beside it"
    )
    print(sentence)
    return 0


def _write(grading: Grading, found: list[Submission], results: list[Result], sentence: str) -> None:
    """The tables and pages for the teacher."""
    remarks = dict[str, str]()
    for one, result in zip(found, results, strict=True):
        remarks[one.student] = "; ".join([*one.remarks, *result.notes])
    write_whole(grading.out / "grades.csv", report.grades(results, remarks))
    write_whole(grading.out / "class.html", report.class_page(results, sentence, grading.week))
    known = set[str]()
    if ASSIGNMENT.exists():
        known = report.given_lines(ASSIGNMENT.read_text(encoding="utf-8"))
    answers = dict[str, dict[str, str]]()
    for one in found:
        mine = dict[str, str]()
        for path in one.notebooks:
            with suppress(OSError, ValueError):
                for name, text in report.written_answers(path, grading.week, known).items():
                    mine[name] = "\n\n".join(filter(None, [mine.get(name, ""), text]))
        answers[one.student] = mine
    write_whole(grading.out / "written.csv", report.written_table(answers, grading.week))
    write_whole(grading.out / "written.html", report.written_page(answers, grading.week))


if __name__ == "__main__":
    sys.exit(main())
