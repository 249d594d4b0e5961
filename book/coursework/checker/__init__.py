"""The checker of the coursework: it says what is wrong, and never what is right.

`check("task1a", my_function)` in book/coursework/assignment.ipynb runs a student's function on
random and odd inputs, compares it with the package by another way, names the mistake if it is a
known one together with the input that shows it, and returns the points.
"""

import textwrap
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "checker: this Python has no PyTorch. In a copy of the repository use `make grade "
        "CLASS=folder`, or .venv/bin/python; in the zip for students follow its README.md."
    ) from error
from torch import Generator

from checker import disparities, learning, policies
from checker.examine import WORDS, Ask, Blank, Wrong
from checker.given import BLANK, LAMBDAS, Documents, asks, attempt, course_data, settings
from fairpg_lite.data import RankingDataset

__all__ = [
    "LAMBDAS",
    "TASKS",
    "attempt",
    "begin",
    "check",
    "demonstrate",
    "score",
    "settings",
    "three_documents",
]

Examiner = Callable[[Sequence[Ask], Generator], object]
WIDTH = 68  # what a page of the book shows without scrolling


class Task(NamedTuple):
    """One question; ``names`` are what the notebook calls its function, or its numbers."""

    examine: Examiner
    names: list[str]
    title: str
    points: int
    chapter: int
    topic: str
    says: dict[str, str]

    @property
    def answers(self) -> int:
        """1 for a function, or how many numbers it takes."""
        return len(self.names)


_EXAMINERS: dict[str, Examiner] = {
    "task1a": policies.ranking_probability,
    "task1b": policies.expectation,
    "task2": policies.sampler,
    "task3a": policies.sampled_exposure,
    "task3b": policies.exact_exposure,
    "task4a": disparities.by_hand,
    "task4b": disparities.individual,
    "task4c": disparities.group,
    "task5": learning.gradient,
    "task6": learning.loop,
    "task7a": learning.sweep,
    "task7b": learning.reading,
    "task8": learning.own_disparity,
}
#: All tasks in the order of the notebook; their points sum to 100.
TASKS = {name: Task(examine, **WORDS[name]) for name, examine in _EXAMINERS.items()}

#: The tasks of each of four weekly assignments, by their numbers in the notebook.
WEEKS = {1: (1, 2), 2: (3, 4), 3: (5, 6), 4: (7, 8)}
#: The written answers, and the task that each belongs to.
WRITTEN = {"A": 3, "B": 7, "C": 8}

# The seed of all numbers, the week, and what has been earned.
_ledger = SimpleNamespace(seed=0, week=None, points={})


def tasks_of(week: int | None) -> list[str]:
    """The names of a week's tasks; of all tasks for None.

    >>> tasks_of(1)
    ['task1a', 'task1b', 'task2']
    """
    return [name for name in TASKS if week is None or int(name[4]) in WEEKS[week]]


def written_of(week: int | None) -> list[str]:
    """The written answers of a week; all of them for None.

    >>> written_of(4)
    ['B', 'C']
    """
    return [name for name, task in WRITTEN.items() if week is None or task in WEEKS[week]]


def begin(seed: int, week: int | None = None) -> RankingDataset:
    """Start afresh: no points, and all data and inputs drawn with ``seed``; returns the data.

    >>> begin(seed=0)
    RankingDataset(60 queries, 600 documents, 2 features, groups 0/1)
    """
    if week is not None and week not in WEEKS:
        raise ValueError(f"begin: there is no week {week!r}; choose one of {list(WEEKS)}.")
    _ledger.seed = int(seed)
    _ledger.week = week
    _ledger.points = {}
    return course_data(_ledger.seed)


def three_documents() -> Documents:
    """Exposure, merit and groups of the three documents of task 4a, ``(3,)`` each (chapter 5)."""
    return disparities.three_documents(_ledger.seed)


def check(task: str, *answers: Any) -> int:
    """Examine the answers to a task, print what was found, and return the points.

    >>> check("task1a", ...)
    task1a  probability of a ranking: not answered yet (8 points)
    0
    """
    if task not in TASKS:
        raise ValueError(f"check: there is no task {task!r}; choose one of {', '.join(TASKS)}.")
    wanted = TASKS[task].answers
    if len(answers) != wanted:
        raise ValueError(f"check: {task} takes {wanted} answer(s), {len(answers)} were given.")
    points, said = examined(task, asks(answers), _ledger.seed)
    _ledger.points[task] = points
    print(said)
    return points or 0


def demonstrate(task: str, answer: Any) -> None:
    """Print what `check` would say to an answer; it counts for nothing."""
    print(examined(task, asks([answer]), _ledger.seed)[1])


def examined(task: str, answers: Sequence[Ask], seed: int) -> tuple[int | None, str]:
    """The points for the answers to a task (None for a blank), and what to print."""
    asked = TASKS[task]
    head = f"{task:<7} {asked.title}"
    try:
        asked.examine(answers, torch.Generator().manual_seed(seed))
    except Blank:
        return None, f"{head}: {BLANK} ({asked.points} points)"
    except Wrong as wrong:
        points = int(wrong.share * asked.points + 1e-9)
        topics = " and ".join(wrong.read or (asked.topic,))
        said = [*str(wrong).splitlines(), f"To read: chapter {asked.chapter}, on {topics}."]
        told = [textwrap.indent(textwrap.fill(line, WIDTH - 2), "  ") for line in said]
        return points, "\n".join([f"{head}: {points} of {asked.points} points", *told])
    return asked.points, f"{head}: {asked.points} of {asked.points} points"


def score() -> int:
    """Print the points of every task so far, and return their sum."""
    names = tasks_of(_ledger.week)
    for name in names:
        task = TASKS[name]
        got = _ledger.points.get(name)
        print(f"{name:<7} {task.title:<28} {'-' if got is None else got:>3} of {task.points:>3}")
    total = sum(_ledger.points.get(name) or 0 for name in names)
    print(f"{'':<7} {'total':<28} {total:>3} of {sum(TASKS[n].points for n in names):>3}")
    written = written_of(_ledger.week)
    if written:
        plural = "answers" if len(written) > 1 else "answer"
        listed = ", ".join(written[:-1]) + (" and " if written[1:] else "") + written[-1]
        verb = "are" if len(written) > 1 else "is"
        print(f"The written {plural} {listed} {verb} marked by a person.")
    return total
