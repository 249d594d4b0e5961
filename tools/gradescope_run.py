"""Grade one submission as Gradescope wants it: `gradescope_run.py SUBMISSION results.json [WEEK]`.

`python -m tools.for_teachers gradescope` packs this file with the checker and the module.
Gradescope runs every submission in a container of its own; where bubblewrap works inside, that is
used as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from checker import TASKS, tasks_of
from checker.bubblewrap import find_sandbox
from checker.collect import submissions
from checker.grade import Result, mark, ungraded


def as_gradescope(result: Result) -> dict[str, Any]:
    """Gradescope's format: a test per task with its score and words, and notes for all."""
    tests = [
        {
            "name": f"{task}: {TASKS[task].title}",
            "score": result.points[task],
            "max_score": TASKS[task].points,
            "output": result.messages[task],
            "output_format": "text",
        }
        for task in result.points
    ]
    notes = [f"Nothing was graded: {result.reason}."] if result.reason else result.notes
    return {"tests": tests, "output": "\n".join(notes), "stdout_visibility": "hidden"}


def graded(submission: Path, tasks: list[str]) -> Result:
    """The result of what was handed in: the best of the notebooks there."""
    try:
        found = submissions(submission)
    except FileNotFoundError as error:
        return ungraded("submission", str(error), tasks)
    notebooks = [path for one in found for path in one.notebooks]
    if not notebooks:
        reasons = "; ".join(f"{one.student}: {one.reason}" for one in found)
        return ungraded("submission", reasons, tasks)
    sandbox = find_sandbox((str(submission.resolve()),))
    results = [mark("submission", path, sandbox, tasks=tasks, timeout=120.0) for path in notebooks]
    best = max(results, key=lambda result: (not result.reason, result.total))
    if len(results) > 1:
        listed = ", ".join(path.name for path in notebooks)
        best.notes.insert(0, f"{len(results)} notebooks: {listed}. The best counts.")
    return best


def main(submission: str, results: str, week: str = "") -> int:
    tasks = tasks_of(int(week) if week else None)
    target = Path(results)
    target.parent.mkdir(parents=True, exist_ok=True)
    told = as_gradescope(graded(Path(submission), tasks))
    target.write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
