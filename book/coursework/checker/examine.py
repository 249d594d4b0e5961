"""Run a student's function on inputs, and say in words what is wrong with its answers.

The right answers come from the package, by another way than the one the student is asked for. A
*slip* is a mistake that people make, with the answer it leads to: where a wrong answer agrees with
a slip on every input, the slip's sentence is what the student reads. Used by the coursework, which
asks for what chapters 3 to 7 derive.
"""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

#: What an untouched blank raises: `raise NotImplementedError("not answered yet")`.
BLANK = "not answered yet"

EDGES = "Right on ordinary inputs, but not at the edges. "


class Finding(NamedTuple):
    """The share of a task's points, what to tell the student (empty if all is right), and the
    headings of the chapter to read where they are not the task's own.
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
    """One input by the names of its arguments, and the right answer; ``edge`` says what is odd,
    and ``read`` under which heading of the task's chapter, if it is another than the task's.
    """

    inputs: dict[str, Any]
    expected: Tensor
    edge: str = ""
    read: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slip:
    """What to say to whoever gives the answers that ``answer(*inputs)`` gives."""

    says: str
    answer: Callable[..., Any]


def compare(
    function: Any,
    cases: Sequence[Case],
    slips: Sequence[Slip] = (),
    *,
    tolerance: float = 1e-5,
    clue: Callable[[Case, Tensor], str] | None = None,
) -> Finding:
    """Full points where every case is right, half where only edge cases are wrong.

    ``clue(case, answer)`` may add a sentence to a wrong answer that fits no slip.
    """
    seen: list[tuple[Case, Tensor]] = []
    failed: list[tuple[Case, Tensor]] = []
    for case in sorted(cases, key=lambda case: bool(case.edge)):
        if case.edge and failed:
            break
        share, preface = (0.5, EDGES) if case.edge else (0.0, "")
        try:
            answer = answer_of(function, case.inputs)
        except Wrong as wrong:
            at = f" The edge here: {case.edge}." if case.edge else ""
            return Finding(share, f"{preface}{wrong}{at}", case.read)
        pair = (case, answer)
        right = same(answer, case.expected, tolerance)
        if case.edge and not right:  # one edge at a time: the slips there are independent
            plain = [p for p in seen if not p[0].edge]
            told = diagnosis([*plain, pair], [pair], slips, tolerance, clue)
            return Finding(share, preface + told, case.read)
        seen.append(pair)
        failed += [] if right else [pair]
    if failed:
        return Finding(0.0, diagnosis(seen, failed, slips, tolerance, clue))
    return Finding(1.0)


def answer_of(function: Any, inputs: dict[str, Any]) -> Tensor:
    """The student's answer as a float64 tensor; Blank if there is none, Wrong if it is unusable."""
    if function is Ellipsis:
        raise Blank
    if not callable(function):
        raise Wrong(
            f"Expected a function, got {function!r:.60}. Give its name without parentheses."
        )
    copies = [x.clone() if isinstance(x, Tensor) else x for x in inputs.values()]
    try:
        answer = function(*copies)
    except NotImplementedError as error:
        if not error.args or error.args == (BLANK,):
            raise Blank from None
        raise Wrong(_broken(error, inputs)) from None
    except Exception as error:  # whatever a student's code may raise
        raise Wrong(_broken(error, inputs)) from None
    for (name, given), copy in zip(inputs.items(), copies, strict=True):
        if isinstance(given, Tensor) and not torch.equal(given, copy.detach()):
            raise Wrong(
                f"The function changes its input `{name}` in place; whoever calls it still needs "
                f"the old values. Work on a copy: `{name}.clone()`. {shown_by(inputs)}"
            )
    return as_tensor(answer, inputs)


def as_tensor(answer: Any, inputs: dict[str, Any]) -> Tensor:
    if answer is Ellipsis:
        raise Blank
    if answer is None:
        raise Wrong(f"The function returns None: is the `return` missing? {shown_by(inputs)}")
    try:
        return torch.as_tensor(answer, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError):
        kind = type(answer).__name__
        raise Wrong(
            f"Returned a {kind}; expected numbers in a tensor. {shown_by(inputs)}"
        ) from None


def same(one: Tensor, other: Tensor, tolerance: float) -> bool:
    """Equal shapes and, up to the tolerance, values; what is not finite has no value to compare."""
    if one.shape != other.shape:
        return False
    if not (torch.isfinite(one).all() and torch.isfinite(other).all()):
        return bool((torch.isfinite(one) == torch.isfinite(other)).all())
    return torch.allclose(one, other.to(one), rtol=tolerance, atol=tolerance)


def diagnosis(
    seen: list[tuple[Case, Tensor]],
    failed: list[tuple[Case, Tensor]],
    slips: Sequence[Slip],
    tolerance: float,
    clue: Callable[[Case, Tensor], str] | None,
) -> str:
    """The slip that explains everything seen, or else what can be said in general."""
    case, answer = failed[0]
    evidence = f"{shown_by(case.inputs)} Your answer: {numbers(answer)}."
    if case.edge:
        evidence += f" The edge here: {case.edge}."
    for slip in slips:
        if all(
            same(torch.as_tensor(slip.answer(*c.inputs.values())), a, tolerance) for c, a in seen
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


def shown_by(inputs: dict[str, Any]) -> str:
    return "Shown by " + ", ".join(f"{name} = {numbers(x)}" for name, x in inputs.items()) + "."


def numbers(value: Any) -> str:
    """A value as a student would write it; large ones by their shape."""
    if isinstance(value, Tensor):
        if value.numel() > 24:
            return f"<tensor of shape {tuple(value.shape)}>"
        rounded = value if not value.is_floating_point() else (value * 1e4).round() / 1e4
        return str(rounded.tolist())
    return getattr(value, "__name__", None) or repr(value)


def _broken(error: Exception, inputs: dict[str, Any]) -> str:
    """An exception inside the student's code: what, in which line, on which input."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is our own call
    line = next((f.line for f in frames if f.line), "")
    where = f" in the line `{line}`" if line else ""
    return f"The code stops with {type(error).__name__}: {error}{where}. {shown_by(inputs)}"
