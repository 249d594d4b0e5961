"""Call a student's function, here or in another process, and say in words why it has no answer.

Nothing in this file knows a right answer: it is what runs beside the student's code when a class
is graded (`checker.sandbox`), and in the notebook.
"""

import base64
import importlib
import math
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

#: What an untouched blank raises: `raise NotImplementedError("not answered yet")`.
BLANK = "not answered yet"


@dataclass(frozen=True)
class Answer:
    """A value in float64 and the dtype it came in, or a fault in words, or a blank; ``slope`` is
    the gradient by the first input if it was asked for.
    """

    value: Tensor | None = None
    dtype: str = ""
    fault: str = ""
    blank: bool = False
    slope: Tensor | None = None

    def packed(self) -> dict[str, Any]:
        """As JSON can hold it: whoever reads it need not trust whoever wrote it."""
        numbers = {"value": _packed(self.value), "slope": _packed(self.slope)}
        return {**numbers, "dtype": self.dtype, "fault": self.fault, "blank": self.blank}

    @classmethod
    def unpacked(cls, given: dict[str, Any]) -> "Answer":
        value, slope = (_unpacked(given[key]) for key in ("value", "slope"))
        return cls(value, str(given["dtype"]), str(given["fault"]), bool(given["blank"]), slope)


@runtime_checkable
class Remote(Protocol):
    """A function that lives in another process."""

    def ask(self, inputs: dict[str, Any], forbid: str, upstream: Tensor | None) -> Answer: ...

    def cpu(self) -> float: ...


def _packed(value: Tensor | None) -> Any:
    if value is None:
        return None
    data = value.detach().double().contiguous().numpy().tobytes()
    return [list(value.shape), base64.b64encode(data).decode()]


def _unpacked(given: Any) -> Tensor | None:
    if given is None:
        return None
    shape, data = [int(n) for n in given[0]], bytearray(base64.b64decode(given[1]))
    if len(data) != 8 * math.prod(shape):
        raise ValueError("an answer whose size is not that of its shape")
    flat = torch.frombuffer(data, dtype=torch.float64) if data else torch.zeros(0).double()
    return flat.reshape(shape)


def call(
    function: Any, inputs: dict[str, Any], forbid: str = "", upstream: Tensor | None = None
) -> Answer:
    """``function(*inputs)`` on copies; with ``upstream`` also its gradient by the first input.

    ``forbid`` names a function, ``"fairpg_lite.train.fit"``, that must not be called on the way.
    """
    if function is Ellipsis:
        return Answer(blank=True)
    if not callable(function):
        told = f"Expected a function, got {function!r:.60}. Give its name without parentheses."
        return Answer(fault=told)
    copies = [x.clone() if isinstance(x, Tensor) else x for x in inputs.values()]
    if upstream is not None:
        copies[0].requires_grad_()
    called: list[str] = []
    try:
        with torch.enable_grad(), _watched(forbid, called):  # a backward pass may ask
            result = function(*copies)
    except NotImplementedError as error:
        if not error.args or error.args == (BLANK,):
            return Answer(blank=True)
        return Answer(fault=_broken(error, inputs))
    except (Exception, SystemExit) as error:  # whatever a student's code may raise
        return Answer(fault=_broken(error, inputs))
    if called:
        return Answer(fault=f"The function calls `{called[0]}`, which it is asked to replace.")
    for (name, given), copy in zip(inputs.items(), copies, strict=True):
        if isinstance(given, Tensor) and not torch.equal(given, copy.detach()):
            told = (
                f"The function changes its input `{name}` in place; whoever calls it still needs "
                f"the old values. Work on a copy: `{name}.clone()`. {shown_by(inputs)}"
            )
            return Answer(fault=told)
    answer = as_answer(result, inputs)
    if upstream is None or answer.value is None:
        return answer
    slope = None
    if isinstance(result, Tensor) and result.requires_grad:
        (slope,) = torch.autograd.grad(result, copies[0], upstream.to(result), allow_unused=True)
    return Answer(answer.value, answer.dtype, slope=slope)


@contextmanager
def _watched(forbid: str, called: list[str]) -> Iterator[None]:
    """Note in ``called`` whether the function of this name runs, whoever calls it."""
    if not forbid:
        yield
        return
    module, name = forbid.rsplit(".", 1)
    code = getattr(importlib.import_module(module), name).__code__

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code is code:
            called.append(name)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


def as_answer(given: Any, inputs: dict[str, Any]) -> Answer:
    if given is Ellipsis:
        return Answer(blank=True)
    if given is None:
        return Answer(
            fault=f"The function returns None: is the `return` missing? {shown_by(inputs)}"
        )
    try:
        value = _tensor(given)
    except (TypeError, ValueError, RuntimeError):
        kind = type(given).__name__
        return Answer(fault=f"Returned a {kind}; expected numbers in a tensor. {shown_by(inputs)}")
    return Answer(value.detach().to(torch.float64).clone(), str(value.dtype).removeprefix("torch."))


def _tensor(given: Any) -> Tensor:
    if isinstance(given, list | tuple) and any(isinstance(x, Tensor | list | tuple) for x in given):
        return torch.stack([_tensor(x) for x in given])
    return torch.as_tensor(given, dtype=None if hasattr(given, "dtype") else torch.float64)


def shown_by(inputs: dict[str, Any]) -> str:
    return "Shown by " + ", ".join(f"{name} = {numbers(x)}" for name, x in inputs.items()) + "."


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
