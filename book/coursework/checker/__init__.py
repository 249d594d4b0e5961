"""The checker of the coursework: it says what is wrong, and never what is right.

`check("task1a", my_function)` in book/coursework/assignment.ipynb runs a student's function on
random and odd inputs, compares it with the package by another way, names the mistake if it is a
known one together with the input that shows it, and returns the points.
"""

import textwrap
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Generator

from checker import disparities, learning, policies
from checker.examine import WORDS, Ask, Blank, Wrong
from checker.given import BLANK, LAMBDAS, Documents, asks, attempt, course_data, settings
from fairpg_lite.data import RankingDataset

__all__ = ["LAMBDAS", "TASKS", "attempt", "begin", "check", "score", "settings", "three_documents"]

Examiner = Callable[[Sequence[Ask], Generator], object]
WIDTH = 68  # what a page of the book shows without scrolling


class Task(NamedTuple):
    """One question; ``answers`` is 1 for a function, or how many numbers it takes."""

    examine: Examiner
    title: str
    points: int
    chapter: int
    topic: str
    says: dict[str, str]
    answers: int = 1


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

_ledger = SimpleNamespace(seed=0, points={})  # the seed of all numbers, and what has been earned


def begin(seed: int) -> RankingDataset:
    """Start afresh: no points, and all data and inputs drawn with ``seed``; returns the data.

    >>> begin(seed=0)
    RankingDataset(60 queries, 600 documents, 2 features, groups 0/1)
    """
    _ledger.seed, _ledger.points = int(seed), {}
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
    _ledger.points[task], said = examined(task, asks(answers), _ledger.seed)
    print(said)
    return _ledger.points[task] or 0


def examined(task: str, answers: Sequence[Ask], seed: int) -> tuple[int | None, str]:
    """The points for the answers to a task (None for a blank), and what to print."""
    asked = TASKS[task]
    head = f"{task:<7} {asked.title}"
    try:
        asked.examine(answers, torch.Generator().manual_seed(seed))
    except Blank:
        return None, f"{head}: {BLANK} ({asked.points} points)"
    except Wrong as wrong:
        points = int(wrong.share * asked.points)
        topics = " and ".join(wrong.read or (asked.topic,))
        said = [*str(wrong).splitlines(), f"To read: chapter {asked.chapter}, on {topics}."]
        told = [textwrap.indent(textwrap.fill(line, WIDTH - 2), "  ") for line in said]
        return points, "\n".join([f"{head}: {points} of {asked.points} points", *told])
    return asked.points, f"{head}: {asked.points} of {asked.points} points"


def score() -> int:
    """Print the points of every task so far, and return their sum."""
    for name, task in TASKS.items():
        got = _ledger.points.get(name)
        print(f"{name:<7} {task.title:<28} {'-' if got is None else got:>3} of {task.points:>3}")
    total = sum(points or 0 for points in _ledger.points.values())
    print(f"{'':<7} {'total':<28} {total:>3} of {sum(t.points for t in TASKS.values()):>3}")
    print("The written answers A, B and C are marked by a person.")
    return total
