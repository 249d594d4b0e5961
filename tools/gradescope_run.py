"""Grade one submission as Gradescope wants it: `python gradescope_run.py SUBMISSION results.json`.

`python -m tools.for_teachers gradescope` packs this file with the checker and the module.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from checker import TASKS
from checker.__main__ import submissions
from checker.grade import Result, mark


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
        for task in TASKS
    ]
    return {"tests": tests, "output": "\n".join(result.notes), "stdout_visibility": "hidden"}


def main(submission: str, results: str) -> int:
    try:
        found = list(submissions(Path(submission)).values())
        told = as_gradescope(mark("submission", found[0], timeout=120.0))
    except FileNotFoundError as error:
        told = {"score": 0, "output": str(error)}
    target = Path(results)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
