"""What runs beside a student's code, in the notebook and in `checker.sandbox`.

Nothing here knows an answer: when a class is graded, this is all that a submission finds in
`checker`. The first half is what the notebook is given besides `check`, the second calls a
student's function and says in words why it has no answer.
"""

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor

import fairpg_lite
from fairpg_lite import RankingDataset, TrainConfig, fit, synthetic

#: What an untouched blank raises: `raise NotImplementedError("not answered yet")`.
BLANK = "not answered yet"
#: The weights of fairness that task 7 tries.
LAMBDAS = (0.0, 2.0, 5.0, 10.0, 15.0, 25.0, 40.0)
#: Where the module's own code lies.
MODULE = str(Path(fairpg_lite.__file__).parent)


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
    """A value in float64, a fault in words, or a blank; the gradient if asked for, and its time.

    ``module_calls`` are the functions of fairpg_lite that the student's code called, if the terms
    of the call asked for them.
    """

    value: Tensor | None = None
    fault: str = ""
    blank: bool = False
    slope: Tensor | None = None
    seconds: float = 0.0
    module_calls: tuple[str, ...] = ()


class Terms(NamedTuple):
    """The terms of one call of a student's function.

    ``no_fit`` makes `fit` raise, ``watch`` notes which functions of the module are called, and with
    ``upstream (…)`` the gradient by the first input is carried back from it.
    """

    no_fit: bool = False
    watch: bool = False
    upstream: Tensor | None = None


class ModuleCalls:
    """Notes, inside ``with``, the functions of fairpg_lite that code from elsewhere calls."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __enter__(self) -> "ModuleCalls":
        self._before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(MODULE):
            return
        caller = frame.f_back
        while caller is not None and caller.f_code is not call.__code__:
            if caller.f_code.co_filename.startswith(MODULE):
                return  # the module at work for itself
            caller = caller.f_back
        if frame.f_code.co_qualname not in self.names:
            self.names.append(frame.f_code.co_qualname)


def call(function: Any, inputs: dict[str, Any], terms: Terms = Terms()) -> Answer:  # noqa: B008
    """``function(*inputs)`` on copies, on these terms."""
    if function is Ellipsis:
        return Answer(blank=True)
    if not callable(function):
        told = f"Expected a function, got {function!r:.60}. Give its name without parentheses."
        return Answer(fault=told)
    copies = [x.clone() if isinstance(x, Tensor) else x for x in inputs.values()]
    if terms.upstream is not None:
        copies[0].requires_grad_()
    module_calls = ModuleCalls()
    fit_code = fit.__code__
    start = time.process_time()
    try:
        if terms.no_fit:  # whoever calls `fit`, by whatever name, runs `_refuse`
            fit.__code__ = _refuse.__code__
        with torch.enable_grad():
            if terms.watch:
                with module_calls:
                    result = function(*copies)
            else:
                result = function(*copies)
    except (Exception, SystemExit) as error:  # whatever a student's code may raise
        if isinstance(error, NotImplementedError) and error.args in ((), (BLANK,)):
            return Answer(blank=True)
        frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is our own call
        where = next((f" in the line `{f.line}`" for f in frames if f.line), "")
        return Answer(fault=f"The code stops with {type(error).__name__}: {error}{where}.")
    finally:
        fit.__code__ = fit_code
    seconds = time.process_time() - start
    for (name, given), copy in zip(inputs.items(), copies, strict=True):
        if isinstance(given, Tensor) and not _unchanged(given, copy.detach()):
            told = f"The function changes its input `{name}` in place; whoever calls it still needs"
            return Answer(fault=f"{told} the old values. Work on a copy: `{name}.clone()`.")
    slope = None
    shape = result.shape if isinstance(result, Tensor) and result.requires_grad else None
    if terms.upstream is not None and terms.upstream.shape == shape:
        upstream = terms.upstream.to(result)
        (slope,) = torch.autograd.grad(result, copies[0], upstream, allow_unused=True)
    answer = as_answer(result)
    return replace(answer, slope=slope, seconds=seconds, module_calls=tuple(module_calls.names))


def _unchanged(before: Tensor, after: Tensor) -> bool:
    """Whether all numbers are the same, and NaN where NaN was."""
    return before.shape == after.shape and bool(
        ((before == after) | (before.isnan() & after.isnan())).all()
    )


def _refuse(*arguments: Any, **options: Any) -> None:
    raise PermissionError("The function calls `fit`, which it is asked to replace.")


def asks(answers: Sequence[Any]) -> list[Callable[..., Answer]]:
    """How to ask for the answers to a task: one is a function, several are numbers."""
    return [partial(call if len(answers) == 1 else as_answer, answer) for answer in answers]


def as_answer(given: Any, *unused: Any) -> Answer:
    """What a function returned, or what was typed, as float64."""
    if given is Ellipsis:
        return Answer(blank=True)
    if given is None:
        return Answer(fault="The function returns None: is the `return` missing?")
    try:
        value = _tensor(given)
    except (TypeError, ValueError, RuntimeError):
        return Answer(fault=f"Returned a {type(given).__name__}; expected numbers in a tensor.")
    return Answer(value.detach().to(torch.float64).clone())


def _tensor(given: Any) -> Tensor:
    if isinstance(given, list | tuple) and any(isinstance(x, Tensor | list | tuple) for x in given):
        return torch.stack([_tensor(x) for x in given])
    return torch.as_tensor(given, dtype=None if hasattr(given, "dtype") else torch.float64)
