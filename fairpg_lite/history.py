"""What a training run leaves behind: what happened, and a checkpoint to go on from (chapter 7)."""

import functools
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn

from fairpg_lite._files import write_whole
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset

FORMAT = 3


@dataclass
class History:
    """One entry per epoch in each list; returned by ``fit``.

    ``utility`` and ``disparity`` are means over the training queries as seen during the epoch
    (sampled if the training sampled); ``valid_utility`` and ``valid_disparity`` are exact, on the
    validation set, after the epoch.

    Chapter 7.
    """

    config: dict[str, Any] = field(default_factory=dict)
    utility: list[float] = field(default_factory=list)
    disparity: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    valid_utility: list[float] = field(default_factory=list)
    valid_disparity: list[float] = field(default_factory=list)
    stopped: str = ""
    """Why training ended: "epochs", "patience" or "interrupted"."""
    kept: int = 0
    """The epoch, counted from 1, whose weights the scorer holds; 0 before the first."""
    compiled: bool = False
    """Whether the compiled way trained, and not autograd; the numbers are the same."""

    def __len__(self) -> int:
        return len(self.utility)

    def __repr__(self) -> str:
        if not self.utility:
            return "History(no epochs)"
        kept = self.kept or len(self)
        of = "" if kept == len(self) else f", of which {kept} is kept"
        measures = ", ".join(f"{k.replace('_', ' ')} {v:.5f}" for k, v in self.at(kept).items())
        why = self.stopped or "nothing yet"
        return f"History({len(self)} epochs{of}: {measures}, stopped by {why})"

    def append(self, **values: float) -> None:
        """Add a value to each of the named lists."""
        for name, value in values.items():
            getattr(self, name).append(value)

    def at(self, epoch: int) -> dict[str, float]:
        """Utility and disparity of an epoch, counted from 1, on training and validation queries."""
        names = ("utility", "disparity", "valid_utility", "valid_disparity")
        return {name: getattr(self, name)[epoch - 1] for name in names if getattr(self, name)}

    def summary(self) -> dict[str, Any]:
        """The training in few numbers; without times, so that equal runs give equal files."""
        kept = self.kept or len(self)
        summary: dict[str, Any] = {"epochs": len(self), "stopped": self.stopped, "kept": kept}
        ends = {"first": 1, "kept": kept, "last": len(self)} if kept else {}
        for end, epoch in ends.items():
            for name, value in self.at(epoch).items():
                summary.setdefault(name, {})[end] = value
        return summary

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON."""
        return asdict(self)


@contextmanager
def refusing(what: str, remedy: str) -> Iterator[None]:
    """Reading what a stranger may have written: whatever fails is one error that says so."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{what} is damaged: {why}; {remedy}.") from error


def belongs_to(
    scorer: nn.Module, dataset: RankingDataset, valid: RankingDataset | None, config: TrainConfig
) -> dict[str, Any]:
    """What a checkpoint can be continued with: this data, these settings, a scorer like this."""
    shapes = {name: [str(v.dtype), *v.shape] for name, v in scorer.state_dict().items()}
    run = {
        "training data": dataset.fingerprint(),
        "validation data": None if valid is None else valid.fingerprint(),
        "scorer": _digest([repr(scorer), shapes]),
    }
    free = ("epochs", "compiled")
    return run | {f"setting {k}": _told_apart(v) for k, v in vars(config).items() if k not in free}


def save_checkpoint(path: Path, run: dict[str, Any], state: dict[str, Any]) -> None:
    """Write ``state`` whole or not at all: a killed run leaves the previous file."""
    content = io.BytesIO()
    torch.save({"format": FORMAT, "run": run, **state}, content)
    write_whole(path, content.getvalue())


def load_checkpoint(path: Path, run: dict[str, Any], epochs: int) -> dict[str, Any]:
    """Read a checkpoint (tensors and plain values only) of this run; any other is refused."""
    afresh = "delete it to start afresh"
    try:
        state = torch.load(path, weights_only=True)
    except Exception as error:
        why = type(error).__name__
        raise ValueError(f"fit: {path} is not a readable checkpoint ({why}); {afresh}.") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            f"fit: {path} is not a checkpoint of this version (format {FORMAT}); {afresh}."
        )
    with refusing(f"fit: checkpoint {path}", afresh):
        other = [name for name in run if state["run"].get(name) != run[name]]
        done = len(state["history"]["utility"])
    if other:
        raise ValueError(
            f"fit: {path} is the checkpoint of another run: other {', '.join(other)}. Give what it "
            f"was made with, name another file, or {afresh}."
        )
    if done > epochs:
        raise ValueError(
            f"fit: {path} has trained for {done} epochs, more than the {epochs} asked for; "
            f"ask for {done} or more, or {afresh}."
        )
    return state


def _told_apart(value: Any) -> str | int | float | None:
    """A setting as something that can be stored and compared; a function by what it does."""
    if value is None or isinstance(value, str | int | float):
        return value
    return f"{getattr(value, '__name__', type(value).__name__)} {_digest(_parts(value, set()))}"


def _parts(value: Any, seen: set[int]) -> Any:
    """What tells one function from another: code, constants, defaults, and what it closes over."""
    if isinstance(value, Tensor):
        return [str(value.dtype), value.tolist()]
    if value is None or isinstance(value, str | bytes | int | float | complex | torch.dtype):
        return repr(value)
    if id(value) in seen:  # a function that calls itself
        return "itself"
    seen.add(id(value))
    if isinstance(value, functools.partial):
        value = (value.func, value.args, *sorted(value.keywords.items()))
    elif isinstance(value, CodeType):
        value = (value.co_code, *value.co_names, *value.co_consts)
    elif hasattr(value, "__code__"):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        defaults = (value.__defaults__, *sorted((value.__kwdefaults__ or {}).items()))
        value = (value.__code__, defaults, cells)
    if isinstance(value, frozenset):
        value = sorted(value, key=repr)  # its own order is another in each process
    if isinstance(value, tuple | list):
        return [_parts(part, seen) for part in value]
    return [type(value).__module__, type(value).__qualname__]


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
