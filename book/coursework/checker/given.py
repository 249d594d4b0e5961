"""What runs beside a student's code, in the notebook and in `checker.sandbox`.

Nothing here knows an answer: when a class is graded, this is all that a submission finds in
`checker`. The first half is what the notebook is given besides `check`, the second calls a
student's function and says in words why it has no answer.
"""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset, synthetic
from fairpg_lite.train import fit

#: What an untouched blank raises: `raise NotImplementedError("not answered yet")`.
BLANK = "not answered yet"
#: The weights of fairness that task 7 tries.
LAMBDAS = (0.0, 2.0, 5.0, 10.0, 15.0, 25.0, 40.0)


class Documents(NamedTuple):
    """A few documents of one query: ``exposure (n,)``, ``merit (n,)``, ``groups (n,)``."""

    exposure: Tensor
    merit: Tensor
    groups: Tensor


def generator_in(state: Tensor) -> torch.Generator:
    """A stream of random numbers where another one stands."""
    return torch.Generator().set_state(state)


def course_data(seed: int) -> RankingDataset:
    """The documents that the coursework ranks: the paper's synthetic data, drawn with ``seed``."""
    return synthetic(n_queries=60, n_docs=10, seed=seed, dtype=torch.float64)


def settings(lam: float) -> TrainConfig:
    """How task 7 trains: exact exposure, so that equal code gives equal figures."""
    return TrainConfig(lam=lam, method="exact", lr=0.1, epochs=10, batch_size=10)


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)``, or None with a word where the blank has not been filled yet.

    >>> attempt(max, 2, 3)
    3
    """
    try:
        return function(*arguments)
    except NotImplementedError as error:
        if error.args and error.args != (BLANK,):
            raise
        print(f"{getattr(function, '__name__', 'this')}: {BLANK}")
        return None


def position_of_document_0(ranking: Any) -> float:
    return 1.0 + [int(d) for d in ranking].index(0)


# --- a student's function, and its answers --------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """A value in float64, a fault in words, or a blank; the gradient if asked for, and its time."""

    value: Tensor | None = None
    fault: str = ""
    blank: bool = False
    slope: Tensor | None = None
    seconds: float = 0.0


def call(
    function: Any, inputs: dict[str, Any], no_fit: bool = False, upstream: Tensor | None = None
) -> Answer:
    """``function(*inputs)`` on copies; with ``upstream`` also its gradient by the first input."""
    if function is Ellipsis:
        return Answer(blank=True)
    if not callable(function):
        told = f"Expected a function, got {function!r:.60}. Give its name without parentheses."
        return Answer(fault=told)
    copies = [x.clone() if isinstance(x, Tensor) else x for x in inputs.values()]
    if upstream is not None:
        copies[0].requires_grad_()
    start = time.process_time()
    try:
        with torch.enable_grad(), _without_fit() if no_fit else nullcontext():
            result = function(*copies)
    except (Exception, SystemExit) as error:  # whatever a student's code may raise
        if isinstance(error, NotImplementedError) and error.args in ((), (BLANK,)):
            return Answer(blank=True)
        return Answer(fault=_broken(error, inputs))
    seconds = time.process_time() - start
    for (name, given), copy in zip(inputs.items(), copies, strict=True):
        if isinstance(given, Tensor) and not torch.equal(given, copy.detach()):
            told = (
                f"The function changes its input `{name}` in place; whoever calls it still needs "
                f"the old values. Work on a copy: `{name}.clone()`."
            )
            return Answer(fault=f"{told} {shown_by(inputs)}")
    answer, slope = as_answer(result, inputs), None
    shape = result.shape if isinstance(result, Tensor) and result.requires_grad else None
    if upstream is not None and upstream.shape == shape:
        (slope,) = torch.autograd.grad(result, copies[0], upstream.to(result), allow_unused=True)
    return Answer(answer.value, answer.fault, answer.blank, slope, seconds)


def _refuse(*arguments: Any, **options: Any) -> None:
    raise PermissionError("The function calls `fit`, which it is asked to replace.")


@contextmanager
def _without_fit() -> Iterator[None]:
    """Whoever calls `fit` by whatever name runs `_refuse`."""
    code, fit.__code__ = fit.__code__, _refuse.__code__
    try:
        yield
    finally:
        fit.__code__ = code


def asks(answers: Sequence[Any]) -> list[Callable[..., Answer]]:
    """How to ask for the answers to a task: one is a function, several are numbers."""
    return [partial(call if len(answers) == 1 else as_answer, answer) for answer in answers]


def as_answer(given: Any, inputs: dict[str, Any], *unused: Any) -> Answer:
    """What a function returned, or what was typed, as float64."""
    if given is Ellipsis:
        return Answer(blank=True)
    if given is None:
        told = "The function returns None: is the `return` missing?"
        return Answer(fault=f"{told} {shown_by(inputs)}")
    try:
        value = _tensor(given)
    except (TypeError, ValueError, RuntimeError):
        told = f"Returned a {type(given).__name__}; expected numbers in a tensor."
        return Answer(fault=f"{told} {shown_by(inputs)}")
    return Answer(value.detach().to(torch.float64).clone())


def _tensor(given: Any) -> Tensor:
    if isinstance(given, list | tuple) and any(isinstance(x, Tensor | list | tuple) for x in given):
        return torch.stack([_tensor(x) for x in given])
    return torch.as_tensor(given, dtype=None if hasattr(given, "dtype") else torch.float64)


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


def _broken(error: BaseException, inputs: dict[str, Any]) -> str:
    """An exception inside the student's code: what, in which line, on which input."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is our own call
    line = next((f.line for f in frames if f.line), "")
    where = f" in the line `{line}`" if line else ""
    return f"The code stops with {type(error).__name__}: {error}{where}. {shown_by(inputs)}"
