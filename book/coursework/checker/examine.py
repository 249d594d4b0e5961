"""Compare a student's answers with the right ones, and say in words what is wrong with them.

The right answers come from the package, by another way than the one the student is asked for. A
*slip* is a mistake that people make: where a wrong answer is the slip's on every input, the slip's
sentence in `tasks.toml` is what the student reads.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from checker.given import Answer, numbers, shown_by

WORDS = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8"))
EDGES = "Right on ordinary inputs, but not at the edges. "
#: A student's function, here or in another process: it is given the inputs by name, whether `fit`
#: is forbidden, and perhaps a gradient to carry back.
Ask = Callable[..., Answer]
#: Wrong answers by the name of their sentence.
Slips = Mapping[str, Callable[..., Any]]


class Blank(Exception):  # noqa: N818 - no error: a question that is still open
    """The question has not been answered yet."""


class Wrong(Exception):  # noqa: N818 - a finding on its way up, not a failure of ours
    """What to tell a student, the share of the points left, topics to read if not the task's."""

    def __init__(self, message: str, share: float = 0.0, read: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.share, self.read = share, read


class Case(NamedTuple):
    """One input, what is odd about it, topics if not the task's, and what rounding it forces."""

    inputs: tuple[Any, ...]
    edge: str = ""
    read: tuple[str, ...] = ()
    tolerance: float | None = None


class Seen(NamedTuple):
    """A case, the student's answer to it with its value, and the right one."""

    case: Case
    answer: Answer
    value: Tensor
    right: Tensor


@dataclass(frozen=True)
class Question:
    """A function to write: its arguments, the right one, the inputs to try, and the slips.

    ``relative`` (to the largest number) and ``absolute`` are how close is right: single precision
    passes. ``clue`` may add a sentence where no slip fits; ``no_fit`` forbids `fit`.
    """

    task: str
    arguments: str
    right: Callable[..., Any]
    inputs: Callable[[Generator], Sequence[Case]] = lambda generator: ()
    slips: Slips = field(default_factory=dict)
    relative: float = 2e-5
    absolute: float = 2e-6
    clue: Callable[[Case, Tensor], str] | None = None
    no_fit: bool = False

    def __call__(self, answers: Sequence[Ask], generator: Generator) -> None:
        self.compare(answers[0], self.inputs(generator))

    def compare(self, ask: Ask, cases: Sequence[Case]) -> float:
        """Wrong where a case is, for half of the points at edges; the seconds that others took."""
        seen = [self._look(ask, case) for case in cases if not case.edge]
        if failed := [one for one in seen if not self._same(one.value, one.right, one.case)]:
            raise Wrong(self._diagnosis(seen, failed))
        for case in cases:
            if not case.edge:
                continue
            try:  # one edge at a time: the slips there are independent
                new = self._look(ask, case)
                if not self._same(new.value, new.right, case):
                    raise Wrong(self._diagnosis([*seen, new], [new]))
            except Wrong as wrong:
                told = f"{EDGES}{wrong} The edge here: {case.edge}."
                raise Wrong(told, 0.5, case.read) from None
        return sum(one.answer.seconds for one in seen)

    def named(self, case: Case) -> dict[str, Any]:
        return dict(zip(self.arguments.split(), case.inputs, strict=False))

    def _look(self, ask: Ask, case: Case) -> Seen:
        answer = ask(self.named(case), self.no_fit)
        value, right = value_of(answer), torch.as_tensor(self.right(*case.inputs))
        return Seen(case, answer, value, right.double())

    def _same(self, one: Any, other: Tensor, case: Case) -> bool:
        one = torch.as_tensor(one).double()
        return same(one, other, case.tolerance or self.relative, self.absolute)

    def _diagnosis(self, seen: list[Seen], failed: list[Seen]) -> str:
        """The slip that explains everything seen, or else what can be said in general."""
        case, _, answer, right = failed[0]
        evidence = f" {shown_by(self.named(case))} Your answer: {numbers(answer)}."
        for name, wrong in self.slips.items():
            if all(self._same(wrong(*x.case.inputs), x.value, x.case) for x in seen):
                return say(self.task, name) + evidence
        if answer.shape != right.shape:
            shapes = tuple(answer.shape), tuple(right.shape)
            return "The answer has shape {}; wanted is {}.".format(*shapes) + evidence
        if not torch.isfinite(answer).all():
            cause = "" if case.edge else " A division by zero, or exp of a large number?"
            return f"The answer is not finite.{cause}{evidence}"
        more = constant_factor(failed) or (self.clue(case, answer) if self.clue else "")
        return f"That is not the right value. {more}".rstrip() + evidence


def say(task: str, name: str, **values: Any) -> str:
    """A sentence of `tasks.toml`, with the values filled in."""
    return str(WORDS[task]["says"][name]).format(**values)


def require(task: str, holds: Any, name: str, **values: Any) -> None:
    """Wrong, in words of `tasks.toml` and shown by the tensors among the values, if not."""
    if not holds:
        inputs = {key: x for key, x in values.items() if isinstance(x, Tensor)}
        raise Wrong(say(task, name, shown=shown_by(inputs), **values))


def same(one: Tensor, other: Tensor, relative: float, absolute: float) -> bool:
    """Equal shapes and values; what is not finite has no value to compare."""
    if one.shape != other.shape:
        return False
    if not (torch.isfinite(one).all() and torch.isfinite(other).all()):
        return bool((torch.isfinite(one) == torch.isfinite(other)).all())
    size = max((float(x.abs().max()) for x in (one, other) if x.numel()), default=0.0)
    return bool(((one - other).abs() <= absolute + relative * size).all())


def constant_factor(failed: list[Seen]) -> str:
    """A sentence if all wrong answers are the same multiple of the right ones."""
    pairs = [(x.value, x.right) for x in failed if x.value.shape == x.right.shape]
    every = torch.cat([(a / r)[r.abs() > 1e-9].flatten() for a, r in pairs])
    # Two numbers can have a ratio by chance.
    if len(every) < 3 or not torch.isfinite(every).all() or (every - every[0]).abs().max() > 1e-4:
        return ""
    if not every.any():
        return "Your answer is always 0."
    return f"Every wrong answer is {float(every[0]):.4g} times the right one: look for a factor."


def value_of(answer: Answer) -> Tensor:
    """The value of an answer; Blank if there is none, Wrong if it is unusable."""
    if answer.blank:
        raise Blank
    if answer.value is None:
        raise Wrong(answer.fault)
    return answer.value


def typed(*parts: tuple[str, Ask, Question, tuple[Any, ...]]) -> None:
    """Numbers, each with a name, a question and its input; each an equal share of the points."""
    said, read = list[str](), list[str]()
    for name, ask, question, inputs in parts:
        try:
            question.compare(ask, [Case(inputs)])
        except Wrong as wrong:
            said.append(f"{name}: {wrong}")
            read.append(WORDS[question.task]["topic"])
    if said:
        raise Wrong("\n".join(said), 1 - len(said) / len(parts), tuple(dict.fromkeys(read)))
