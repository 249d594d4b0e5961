"""Compare a student's answers with the right ones, and say in words what is wrong with them.

The right answers come from the package, by another way than the one the student is asked for. A
*slip* is a mistake that people make: where a wrong answer is the slip's on every input, the slip's
sentence in `tasks.toml` is what the student reads.
"""

import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from checker.calls import Answer, Remote, call, numbers, shown_by

WORDS = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8"))
EDGES = "Right on ordinary inputs, but not at the edges. "
NARROW = " Your answer is in {}: keep to double precision, as the notebook's first cell does."


def say(task: str, name: str, **values: Any) -> str:
    """A sentence of `tasks.toml`, with the values filled in."""
    return str(WORDS[task]["says"][name]).format(**values)


class Finding(NamedTuple):
    """The share of a task's points, what to tell the student (empty if all is right), and the
    topics of the chapter to read where they are not the task's own.
    """

    share: float
    message: str = ""
    read: tuple[str, ...] = ()


class Blank(Exception):  # noqa: N818 - no error: a question that is still open
    """The question has not been answered yet."""


class Wrong(Exception):  # noqa: N818 - a finding on its way up, not a failure of ours
    """Something about an answer that is wrong before its value can be looked at."""


class Case(NamedTuple):
    """One input: ``edge`` says what is odd about it, ``read`` what to read in the task's chapter if
    not the task's topic, and ``tolerance`` how much rounding it forces upon single precision.
    """

    inputs: tuple[Any, ...]
    edge: str = ""
    read: tuple[str, ...] = ()
    tolerance: float | None = None


class Seen(NamedTuple):
    """A case, the student's answer to it, and the right one."""

    case: Case
    value: Tensor
    right: Tensor


@dataclass(frozen=True)
class Close:
    """How close is right: relative to the largest number of an answer, and absolutely.

    Single precision passes, rounding of a few parts in a million; a wrong formula does not.
    """

    relative: float = 2e-5
    absolute: float = 2e-6

    def same(self, one: Tensor, other: Tensor, looser: float | None = None) -> bool:
        """Equal shapes and values; what is not finite has no value to compare."""
        if one.shape != other.shape:
            return False
        if not (torch.isfinite(one).all() and torch.isfinite(other).all()):
            return bool((torch.isfinite(one) == torch.isfinite(other)).all())
        size = max((float(x.abs().max()) for x in (one, other) if x.numel()), default=0.0)
        allowed = self.absolute + (looser or self.relative) * size
        return bool(((one - other).abs() <= allowed).all())


@dataclass(frozen=True)
class Question:
    """A function to write: its arguments, the right one, the inputs to try, and the slips.

    A slip's name is that of its sentence. ``clue`` may add a sentence to an answer that fits no
    slip; ``forbid`` names a function that must not be called.
    """

    task: str
    arguments: str
    right: Callable[..., Tensor]
    inputs: Callable[[Generator], Sequence[Case]]
    slips: Mapping[str, Callable[..., Any]]
    close: Close = Close()
    clue: Callable[[Case, Tensor], str] | None = None
    forbid: str = ""

    def __call__(self, answers: tuple[Any, ...], generator: Generator) -> Finding:
        return self.compare(answers[0], self.inputs(generator))

    def named(self, case: Case) -> dict[str, Any]:
        return dict(zip(self.arguments.split(), case.inputs, strict=False))

    def compare(self, function: Any, cases: Sequence[Case]) -> Finding:
        """Full points where every case is right, half where only edge cases are wrong."""
        seen: list[Seen] = []
        failed: list[Seen] = []
        narrow = ""
        for case in sorted(cases, key=lambda case: bool(case.edge)):
            if case.edge and failed:
                break
            share, preface = (0.5, EDGES) if case.edge else (0.0, "")
            try:
                value, dtype = answer_of(function, self.named(case), self.forbid)
            except Wrong as wrong:
                at = f" The edge here: {case.edge}." if case.edge else ""
                return Finding(share, f"{preface}{wrong}{at}", case.read)
            narrow = narrow or (NARROW.format(dtype) if dtype in ("float32", "float16") else "")
            new = Seen(case, value, torch.as_tensor(self.right(*case.inputs)).double())
            right = self.close.same(value, new.right, case.tolerance)
            if case.edge and not right:  # one edge at a time: the slips there are independent
                told = self.diagnosis([*(s for s in seen if not s.case.edge), new], [new])
                return Finding(share, preface + told + narrow, case.read)
            seen.append(new)
            failed += [] if right else [new]
        return Finding(0.0, self.diagnosis(seen, failed) + narrow) if failed else Finding(1.0)

    def diagnosis(self, seen: list[Seen], failed: list[Seen]) -> str:
        """The slip that explains everything seen, or else what can be said in general."""
        case, answer, right = failed[0]
        evidence = f"{shown_by(self.named(case))} Your answer: {numbers(answer)}."
        if case.edge:
            evidence += f" The edge here: {case.edge}."
        for name, wrong in self.slips.items():
            if all(
                self.close.same(torch.as_tensor(wrong(*c.inputs)).double(), value, c.tolerance)
                for c, value, _ in seen
            ):
                return f"{say(self.task, name)} {evidence}"
        if answer.shape != right.shape:
            wanted = tuple(right.shape)
            return f"The answer has shape {tuple(answer.shape)}; wanted is {wanted}. {evidence}"
        if not torch.isfinite(answer).all():
            cause = "" if case.edge else " A division by zero, or exp of a large number?"
            return f"The answer is not finite.{cause} {evidence}"
        more = constant_factor(failed) or (self.clue(case, answer) if self.clue else "")
        return " ".join(["That is not the right value.", *([more] if more else []), evidence])


def constant_factor(failed: list[Seen]) -> str:
    """A sentence if all wrong answers are the same multiple of the right ones."""
    every = torch.cat(
        [(a / r)[r.abs() > 1e-9].flatten() for _, a, r in failed if a.shape == r.shape]
    )
    # Two numbers can have a ratio by chance.
    if len(every) < 3 or not torch.isfinite(every).all() or (every - every[0]).abs().max() > 1e-4:
        return ""
    if not every.any():
        return "Your answer is always 0."
    return f"Every wrong answer is {float(every[0]):.4g} times the right one: look for a factor."


def ask(function: Any, inputs: dict[str, Any], forbid: str, upstream: Tensor | None) -> Answer:
    asked = function.ask if isinstance(function, Remote) else lambda *given: call(function, *given)
    return asked(inputs, forbid, upstream)


def settled(answer: Answer) -> Tensor:
    """The value of an answer; Blank if there is none, Wrong if it is unusable."""
    if answer.blank:
        raise Blank
    if answer.value is None:
        raise Wrong(answer.fault)
    return answer.value


def answer_of(function: Any, inputs: dict[str, Any], forbid: str = "") -> tuple[Tensor, str]:
    """The student's answer as a float64 tensor, and the dtype that it came in."""
    answer = ask(function, inputs, forbid, None)
    return settled(answer), answer.dtype


def slope_of(function: Any, inputs: dict[str, Any], upstream: Tensor) -> Tensor | None:
    """The gradient of ``(upstream * answer).sum()`` by the first input; None if there is none."""
    answer = ask(function, inputs, "", upstream)
    settled(answer)
    return answer.slope


def seconds(function: Any) -> float:
    """Processor time that the process of this function has used: the same on a busy machine."""
    return function.cpu() if isinstance(function, Remote) else time.process_time()
