"""Compare a student's answers with the right ones, and say in words what is wrong with them.

The right answers come from the package, by another way than the one the student is asked for. A
*slip* is a mistake that people make, with the answer it leads to: where a wrong answer agrees with
a slip on every input, the slip's sentence is what the student reads. Used by the coursework, which
asks for what chapters 3 to 7 derive.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from checker.calls import Answer, Remote, call, numbers, shown_by

EDGES = "Right on ordinary inputs, but not at the edges. "
NARROW = " Your answer is in {}: keep to double precision, as the notebook's first cell does."


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


@dataclass(frozen=True)
class Case:
    """One input by the names of its arguments, and the right answer.

    ``edge`` says what is odd about it, ``read`` what to read in the task's chapter, if it is
    another than the task's, and ``tolerance`` how much rounding it forces upon single precision.
    """

    inputs: dict[str, Any]
    expected: Tensor
    edge: str = ""
    read: tuple[str, ...] = ()
    tolerance: float | None = None


@dataclass(frozen=True)
class Slip:
    """What to say to whoever gives the answers that ``answer(*inputs)`` gives."""

    says: str
    answer: Callable[..., Any]


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


def compare(
    function: Any,
    cases: Sequence[Case],
    slips: Sequence[Slip] = (),
    *,
    close: Close = Close(),  # noqa: B008 - frozen
    clue: Callable[[Case, Tensor], str] | None = None,
    forbid: str = "",
) -> Finding:
    """Full points where every case is right, half where only edge cases are wrong.

    ``clue(case, answer)`` may add a sentence to a wrong answer that fits no slip.
    """
    seen: list[tuple[Case, Tensor]] = []
    failed: list[tuple[Case, Tensor]] = []
    narrow = ""
    for case in sorted(cases, key=lambda case: bool(case.edge)):
        if case.edge and failed:
            break
        share, preface = (0.5, EDGES) if case.edge else (0.0, "")
        try:
            value, dtype = answer_of(function, case.inputs, forbid)
        except Wrong as wrong:
            at = f" The edge here: {case.edge}." if case.edge else ""
            return Finding(share, f"{preface}{wrong}{at}", case.read)
        narrow = narrow or (NARROW.format(dtype) if dtype in ("float32", "float16") else "")
        pair = (case, value)
        right = close.same(value, case.expected.double(), case.tolerance)
        if case.edge and not right:  # one edge at a time: the slips there are independent
            plain = [p for p in seen if not p[0].edge]
            told = diagnosis([*plain, pair], [pair], slips, close, clue)
            return Finding(share, preface + told + narrow, case.read)
        seen.append(pair)
        failed += [] if right else [pair]
    if failed:
        return Finding(0.0, diagnosis(seen, failed, slips, close, clue) + narrow)
    return Finding(1.0)


def ask(function: Any, inputs: dict[str, Any], forbid: str, upstream: Tensor | None) -> Answer:
    if isinstance(function, Remote):
        return function.ask(inputs, forbid, upstream)
    return call(function, inputs, forbid, upstream)


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


def diagnosis(
    seen: list[tuple[Case, Tensor]],
    failed: list[tuple[Case, Tensor]],
    slips: Sequence[Slip],
    close: Close,
    clue: Callable[[Case, Tensor], str] | None,
) -> str:
    """The slip that explains everything seen, or else what can be said in general."""
    case, answer = failed[0]
    evidence = f"{shown_by(case.inputs)} Your answer: {numbers(answer)}."
    if case.edge:
        evidence += f" The edge here: {case.edge}."
    for slip in slips:
        if all(
            close.same(torch.as_tensor(slip.answer(*c.inputs.values())).double(), a, c.tolerance)
            for c, a in seen
        ):
            return f"{slip.says} {evidence}"
    if answer.shape != case.expected.shape:
        wanted = tuple(case.expected.shape)
        return f"The answer has shape {tuple(answer.shape)}; wanted is {wanted}. {evidence}"
    if not torch.isfinite(answer).all():
        cause = "" if case.edge else " A division by zero, or exp of a large number?"
        return f"The answer is not finite.{cause} {evidence}"
    more = constant_factor(failed) or (clue(case, answer) if clue else "")
    return " ".join(["That is not the right value.", *([more] if more else []), evidence])


def constant_factor(failed: list[tuple[Case, Tensor]]) -> str:
    """A sentence if all wrong answers are the same multiple of the right ones."""
    ratios = [
        (a / c.expected)[c.expected.abs() > 1e-9] for c, a in failed if a.shape == c.expected.shape
    ]
    every = torch.cat([r.flatten() for r in ratios]) if ratios else torch.zeros(0)
    # Two numbers can have a ratio by chance.
    if len(every) < 3 or not torch.isfinite(every).all() or (every - every[0]).abs().max() > 1e-4:
        return ""
    if not every.any():
        return "Your answer is always 0."
    return f"Every wrong answer is {float(every[0]):.4g} times the right one: look for a factor."
