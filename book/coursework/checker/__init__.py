"""The checker of the coursework: it says what is wrong, and never what is right.

In a notebook::

    from checker import begin, check, score

    data = begin(seed=2026)
    check("task1a", my_function)
    score()

`check` runs a student's function on random and odd inputs, compares it with the package by another
way, names the mistake if it is a known one together with the input that shows it, and returns the
points. An answer that is still blank is said to be so. The notebook is
``book/coursework/assignment.ipynb``; it asks for what chapters 3 to 7 derive.
"""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from torch import Generator

from checker import disparities, learning, own, policies
from checker.calls import BLANK
from checker.examine import WORDS, Blank, Finding, Wrong
from checker.given import LAMBDAS, Documents, attempt, course_data, settings
from fairpg_lite.data import RankingDataset

__all__ = ["LAMBDAS", "TASKS", "attempt", "begin", "check", "score", "settings", "three_documents"]

WIDTH = 68  # what a page of the book shows without scrolling
EXAMINERS: dict[str, Callable[[tuple[Any, ...], Generator], Finding]] = {
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
    "task8": own.own_disparity,
}


@dataclass(frozen=True)
class Task:
    """One question: its points, how many answers it takes, where to read, who examines it."""

    title: str
    points: int
    chapter: int
    topic: str
    examine: Callable[[tuple[Any, ...], Generator], Finding]
    answers: int = 1
    says: dict[str, str] = field(default_factory=dict)


#: All tasks in the order of the notebook; their points sum to 100.
TASKS = {name: Task(**WORDS[name], examine=examine) for name, examine in EXAMINERS.items()}

_ledger = SimpleNamespace(seed=0, points={})  # the seed of all numbers, and what has been earned


def begin(seed: int) -> RankingDataset:
    """Start afresh: no points, and all data and inputs drawn with ``seed``; returns the data.

    60 queries of 10 documents: the paper's synthetic data of chapter 7.

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
    asked = TASKS[task]
    if len(answers) != asked.answers:
        raise ValueError(
            f"check: {task} takes {asked.answers} answer(s), {len(answers)} were given."
        )
    points, lines = examined(task, answers, _ledger.seed)
    if BLANK in lines[0]:
        _ledger.points.pop(task, None)
    else:
        _ledger.points[task] = points
    print("\n".join(lines))
    return points


def examined(task: str, answers: tuple[Any, ...], seed: int) -> tuple[int, list[str]]:
    """The points for the answers to a task on inputs drawn with ``seed``, and what to print."""
    asked = TASKS[task]
    head = f"{task:<7} {asked.title}"
    try:
        found = asked.examine(answers, torch.Generator().manual_seed(seed))
    except Blank:
        return 0, [f"{head}: {BLANK} ({asked.points} points)"]
    except Wrong as wrong:
        found = Finding(0.0, str(wrong))
    points = int(found.share * asked.points)
    lines = [f"{head}: {points} of {asked.points} points"]
    if points < asked.points:
        topics = " and ".join(found.read or (asked.topic,))
        hint = f"To read: chapter {asked.chapter}, on {topics}."
        lines += [
            textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="  ")
            for line in [*found.message.splitlines(), hint]
        ]
    return points, lines


def score() -> int:
    """Print the points of every task so far, and return their sum."""
    for name, task in TASKS.items():
        got = f"{_ledger.points[name]:>3}" if name in _ledger.points else "  -"
        print(f"{name:<7} {task.title:<28} {got} of {task.points:>3}")
    total = sum(_ledger.points.values())
    print(f"{'':<7} {'total':<28} {total:>3} of {sum(t.points for t in TASKS.values()):>3}")
    print("The written answers A, B and C are marked by a person.")
    return total
