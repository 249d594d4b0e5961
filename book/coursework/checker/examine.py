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

from checker.given import BLANK, Answer, Terms

WORDS = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8"))
EDGES = "Right on ordinary inputs, but not at the edges. "
CANNOT_TELL = "we cannot tell which"
UNKNOWN = f"It is none of the slips that we know, so {CANNOT_TELL} it is."
#: A student's function, here or in another process: it is given the inputs by name, and the terms.
Ask = Callable[..., Answer]
#: Wrong answers by the name of their sentence.
Slips = Mapping[str, Callable[..., Any]]
Inputs = tuple[Any, ...]
#: Ordinary inputs, and odd ones by what is odd about them: the edges.
Cases = tuple[Sequence[Inputs], Mapping[str, Inputs]]


class Blank(Exception):  # noqa: N818 - no error: a question that is still open
    """The question has not been answered yet."""


class Wrong(Exception):  # noqa: N818 - a finding on its way up, not a failure of ours
    """What to tell a student, the share of the points left, topics to read if not the task's."""

    def __init__(self, message: str, share: float = 0.0, read: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.share, self.read = share, read


class Seen(NamedTuple):
    """An input, the student's answer to it, the right one, how close is right, and the time."""

    inputs: Inputs
    value: Tensor
    right: Tensor
    close: tuple[float, float]
    seconds: float


@dataclass(frozen=True)
class Question:
    """A function to write: its arguments, the right one, the inputs to try, and the slips.

    ``relative`` (to the largest number) and ``absolute`` are how close is right: single precision
    passes. ``clue`` may add a sentence where no slip fits; ``topics`` are what to read after an
    edge, if not the task's; ``no_fit`` forbids `fit`. Where ``own_lines`` is given, the student's
    code may call nothing of the module but `position_bias` and what is named there.
    """

    task: str
    arguments: str
    right: Callable[..., Any]
    inputs: Callable[[Generator], Cases] = lambda generator: ((), {})
    slips: Slips = field(default_factory=dict)
    relative: float = 2e-5
    at_edges: float = 2e-5  # relative as well; more where far scores cost single precision digits
    absolute: float = 2e-6
    clue: Callable[[Seen], str] = lambda seen: ""
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    no_fit: bool = False
    own_lines: tuple[str, ...] | None = None

    def __call__(self, answers: Sequence[Ask], generator: Generator) -> None:
        self.compare(answers[0], *self.inputs(generator))

    def compare(self, ask: Ask, ordinary: Sequence[Inputs], odd: Mapping[str, Inputs]) -> float:
        """Wrong where an answer is, for half of the points at odd inputs; the seconds of others."""
        if self.own_lines is not None and ordinary:
            _, answer = answered(ask, self.named(ordinary[0]), Terms(self.no_fit, watch=True))
            require_own_lines(answer, self.own_lines)
        seen = [self._look(ask, inputs, self.relative) for inputs in ordinary]
        self._judge(seen, seen)
        for edge, inputs in odd.items():
            try:  # one edge at a time: the slips there are independent
                new = self._look(ask, inputs, self.at_edges)
                self._judge([*seen, new], [new])
            except Wrong as wrong:
                told = f"{EDGES}{wrong} The edge here: {edge}."
                raise Wrong(told, 0.5, self.topics.get(edge, ())) from None
        return sum(one.seconds for one in seen)

    def named(self, inputs: Inputs) -> dict[str, Any]:
        return dict(zip(self.arguments.split(), inputs, strict=False))

    def _look(self, ask: Ask, inputs: Inputs, relative: float) -> Seen:
        value, answer = answered(ask, self.named(inputs), Terms(self.no_fit))
        right = torch.as_tensor(self.right(*inputs)).double()
        return Seen(inputs, value, right, (relative, self.absolute), answer.seconds)

    def _judge(self, seen: list[Seen], new: list[Seen]) -> None:
        """Wrong if one of the new ones is, with the first of them as evidence."""
        failed = [x for x in new if not same(x.value, x.right, *x.close)]
        if failed:
            told = self._diagnosis(seen, failed)
            shown = shown_by(self.named(failed[0].inputs))
            raise Wrong(f"{told} {shown} Your answer: {numbers(failed[0].value)}.")

    def _diagnosis(self, seen: list[Seen], failed: list[Seen]) -> str:
        """The slip that explains everything seen, or else what can be said in general."""
        named = self._slips_like(seen)
        if named:
            return one_of(named)
        answer, right = failed[0].value, failed[0].right
        if answer.shape != right.shape:
            return f"The answer has shape {tuple(answer.shape)}; wanted is {tuple(right.shape)}."
        if not torch.isfinite(answer).all():
            return "The answer is not finite. A division by zero, or exp of a large number?"
        more = about_zeros(seen, failed) or constant_factor(failed) or self.clue(failed[0])
        return f"That is not the right value. {more or UNKNOWN}"

    def _slips_like(self, seen: list[Seen]) -> list[str]:
        """The sentences of all slips that give everything seen."""
        named = list[str]()
        for name, wrong in self.slips.items():
            if all(same(wrong(*x.inputs), x.value, *x.close) for x in seen):
                sentence = say(self.task, name)
                if sentence not in named:
                    named.append(sentence)
        return named


def one_of(sentences: list[str]) -> str:
    """What to say when one slip, or any of several, explains an answer."""
    if len(sentences) == 1:
        return sentences[0]
    if len(sentences) > 3:
        return f"That is not the right value. Several slips lead to it, and {CANNOT_TELL}."
    listed = " ".join(f"({k}) {sentence}" for k, sentence in enumerate(sentences, 1))
    return f"One of these slips was made, and {CANNOT_TELL}: {listed}"


def require_own_lines(answer: Answer, allowed: tuple[str, ...] = ()) -> None:
    """Wrong if the module was called for what the task asks the student to write."""
    names = [name for name in answer.module_calls if name not in ("position_bias", *allowed)]
    if names:
        called = ", ".join(f"`{name.removesuffix('.__init__')}`" for name in names)
        raise Wrong(
            f"The function calls {called} of fairpg_lite. This task asks for lines of your own: "
            "write it without the module, which you may use to compare."
        )


def say(task: str, name: str, **values: Any) -> str:
    """A sentence of `tasks.toml`, with the values filled in."""
    return str(WORDS[task]["says"][name]).format(**values)


def require(task: str, holds: Any, name: str, **values: Any) -> None:
    """Wrong, in words of `tasks.toml` and shown by the tensors among the values, if not."""
    if not holds:
        inputs = {key: x for key, x in values.items() if isinstance(x, Tensor)}
        raise Wrong(say(task, name, shown=shown_by(inputs), **values))


def same(answer: Any, other: Tensor, relative: float, absolute: float) -> bool:
    """Equal shapes and values; what is not finite has no value to compare."""
    one = torch.as_tensor(answer).double()
    if one.shape != other.shape:
        return False
    if not (torch.isfinite(one).all() and torch.isfinite(other).all()):
        return bool((torch.isfinite(one) == torch.isfinite(other)).all())
    size = max((float(x.abs().max()) for x in (one, other) if x.numel()), default=0.0)
    return bool(((one - other).abs() <= absolute + relative * size).all())


def about_zeros(seen: list[Seen], failed: list[Seen]) -> str:
    """A sentence if the answer is 0 wherever it is wrong."""
    if len(seen) == 1 or any(x.value.any() for x in failed):
        return ""
    if not any(x.value.any() for x in seen):
        return "Your answer is 0 on every input."
    return f"Your answer is 0 on {len(failed)} of {len(seen)} inputs where it should not be."


def constant_factor(failed: list[Seen]) -> str:
    """A sentence if all wrong answers are the same multiple of the right ones."""
    pairs = [(x.value, x.right) for x in failed if x.value.shape == x.right.shape]
    every = torch.cat([(a / r)[r.abs() > 1e-9].flatten() for a, r in pairs])
    # Two numbers can have a ratio by chance.
    if len(every) < 3 or not torch.isfinite(every).all() or (every - every[0]).abs().max() > 1e-4:
        return ""
    return f"Every wrong answer is {float(every[0]):.4g} times the right one: look for a factor."


def answered(ask: Ask, inputs: dict[str, Any], terms: Terms | None = None) -> tuple[Tensor, Answer]:
    """The answer and its value; Blank if there is none, Wrong if it is unusable."""
    answer = ask(inputs, terms or Terms())
    if answer.blank:
        raise Blank
    if answer.value is None:
        raise Wrong(f"{answer.fault} {shown_by(inputs)}")
    return answer.value, answer


def shown_by(inputs: dict[str, Any]) -> str:
    parts = ", ".join(f"{name} = {numbers(x)}" for name, x in inputs.items())
    return f"Shown by {parts}." if parts else ""


def numbers(value: Any) -> str:
    """A value as a student would write it; large ones by their shape."""
    if isinstance(value, Tensor):
        if value.numel() > 24:
            return f"<tensor of shape {tuple(value.shape)}>"
        rounded = value if not value.is_floating_point() else (value * 1e4).round() / 1e4
        return str(rounded.tolist())
    if isinstance(value, torch.Generator):
        return f"torch.Generator().manual_seed({value.initial_seed()})"
    return getattr(value, "__name__", None) or repr(value)


class Part(NamedTuple):
    """One of several numbers that a task asks for, with the question and its input."""

    name: str
    ask: Ask
    question: Question
    inputs: Inputs


def typed(*parts: Part) -> None:
    """Judge numbers that were typed by hand, each for an equal share of the points."""
    said, read = list[str](), list[str]()
    blanks = 0
    for part in parts:
        try:
            part.question.compare(part.ask, [part.inputs], {})
        except Blank:
            blanks += 1
            said.append(f"{part.name}: {BLANK}.")
        except Wrong as wrong:
            swapped = _mistaken_for(part, parts)
            if swapped and UNKNOWN not in str(wrong):
                swapped = f"{wrong} Or, as {CANNOT_TELL}: {swapped}"
            said.append(f"{part.name}: {swapped or wrong}")
            read.append(WORDS[part.question.task]["topic"])
    if blanks == len(parts):
        raise Blank
    if said:
        raise Wrong("\n".join(said), 1 - len(said) / len(parts), tuple(dict.fromkeys(read)))


def _mistaken_for(part: Part, parts: Sequence[Part]) -> str:
    """A sentence if the number is the right answer to another part; it names no right one."""
    value = part.ask({}, Terms()).value
    for other in parts:
        question = other.question
        right = torch.as_tensor(question.right(*other.inputs)).double()
        if other is part or value is None or not right.any():
            continue
        if same(value, right, question.relative, question.absolute):
            return f"This is the value of {other.name}; are the two swapped?"
    return ""
