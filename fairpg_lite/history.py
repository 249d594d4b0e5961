"""What a training run leaves behind: what happened, and a checkpoint to go on from (chapter 7)."""

import functools
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

FORMAT = 4
_AFRESH = "delete it to start afresh"


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
    """Why training ended, "epochs", "patience" or "interrupted"."""
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
        return {"epochs": len(self), "stopped": self.stopped, "kept": kept, **self.at(kept)}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON."""
        return asdict(self)


@contextmanager
def refusing(what: str, remedy: str = _AFRESH) -> Iterator[None]:
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
    shapes = [(name, str(v.dtype), *v.shape) for name, v in scorer.state_dict().items()]
    run: dict[str, Any] = {"training data": dataset.fingerprint(), "scorer": [repr(scorer), shapes]}
    run["validation data"] = None if valid is None else valid.fingerprint()
    free = ("epochs", "compiled")
    return run | {f"setting {k}": _identity(v) for k, v in vars(config).items() if k not in free}


def save_checkpoint(path: Path, run: dict[str, Any], state: dict[str, Any]) -> None:
    """Write ``state`` whole or not at all: a killed run leaves the previous file."""
    content = io.BytesIO()
    torch.save({"format": FORMAT, "run": run, **state}, content)
    write_whole(path, content.getvalue())


def load_checkpoint(path: Path, run: dict[str, Any], epochs: int) -> dict[str, Any]:
    """Read a checkpoint (tensors and plain values only) of this run; any other is refused."""
    try:
        state = torch.load(path, weights_only=True)
    except Exception as error:
        why = type(error).__name__
        raise ValueError(f"fit: {path} is not a readable checkpoint ({why}); {_AFRESH}.") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            f"fit: {path} is not a checkpoint of this version (format {FORMAT}); {_AFRESH}."
        )
    with refusing(f"fit: checkpoint {path}"):
        other = [name for name in run if state["run"].get(name) != run[name]]
        done = len(state["history"]["utility"])
    if other:
        raise ValueError(
            f"fit: {path} is the checkpoint of another run: other {', '.join(other)}. Give what it "
            f"was made with, name another file, or {_AFRESH}."
        )
    if done > epochs:
        raise ValueError(
            f"fit: {path} has trained for {done} epochs, more than the {epochs} asked for; "
            f"ask for {done} or more, or {_AFRESH}."
        )
    return state


def _identity(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """A setting as texts to compare; a function by its code, defaults and what it closes over."""
    parts: Any
    if id(value) in inside:  # a function that calls itself
        return "itself"
    if isinstance(value, functools.partial):
        parts = value.func, value.args, sorted(value.keywords.items())
    elif isinstance(value, CodeType):
        parts = value.co_code, value.co_names, value.co_consts
    elif hasattr(value, "__code__"):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        by_name = sorted((value.__kwdefaults__ or {}).items())
        parts = value.__code__, value.__defaults__, by_name, cells
    elif isinstance(value, Tensor):
        parts = value.dtype, value.tolist()
    elif isinstance(value, frozenset):
        parts = sorted(value, key=repr)  # its own order is another in each process
    elif isinstance(value, tuple | list):
        parts = value
    elif value is None or isinstance(value, str | bytes | int | float | complex | torch.dtype):
        return repr(value)
    else:
        return f"{type(value).__module__}.{type(value).__qualname__}"
    return [_identity(part, (*inside, id(value))) for part in parts]
