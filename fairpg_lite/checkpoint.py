"""Stopping and going on: everything that the next epoch depends on, in one file (chapter 7)."""

import functools
import hashlib
import io
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn

from fairpg_lite._files import write_whole
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset

FORMAT = 2
KEYS = ("run", "history", "scorer", "optimizer", "order", "draws", "best")


def belongs_to(
    scorer: nn.Module, dataset: RankingDataset, valid: RankingDataset | None, config: TrainConfig
) -> dict[str, Any]:
    """What a checkpoint can be continued with: this data, these settings, a scorer like this."""
    functions = {name: _told_apart(value) for name, value in vars(config).items()}
    shapes = {name: [str(v.dtype), *v.shape] for name, v in scorer.state_dict().items()}
    return {
        "settings": {**functions, "epochs": None, "compiled": None},
        "training data": dataset.fingerprint(),
        "validation data": None if valid is None else valid.fingerprint(),
        "scorer": _digest([repr(scorer), shapes]),
    }


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
        raise ValueError(
            f"fit: {path} is not a readable checkpoint ({type(error).__name__}); {afresh}."
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            f"fit: {path} is not a checkpoint of this version (format {FORMAT}); {afresh}."
        )
    missing = [key for key in KEYS if key not in state]
    if missing:
        raise ValueError(f"fit: {path} is a damaged checkpoint: no {missing[0]!r}; {afresh}.")
    different = _differences(state["run"], run)
    if different:
        raise ValueError(
            f"fit: {path} is the checkpoint of another run: other {', '.join(different)}. Give "
            f"what it was made with, name another file, or {afresh}."
        )
    done = len(state["history"]["utility"])
    if done > epochs:
        raise ValueError(
            f"fit: {path} has trained for {done} epochs, more than the {epochs} asked for; "
            f"ask for {done} or more, or {afresh}."
        )
    return state


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    found = [name for name in ours if name != "settings" and theirs.get(name) != ours[name]]
    stored, asked = theirs.get("settings", {}), ours["settings"]
    settings = sorted(name for name in asked if stored.get(name) != asked[name])
    return [*found, *([f"settings ({', '.join(settings)})"] if settings else [])]


def _told_apart(value: Any) -> str | int | float | None:
    """A setting as something that can be stored and compared; a function by what it does."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, torch.dtype):
        return str(value)
    return f"{getattr(value, '__name__', type(value).__name__)} {_digest(_parts(value, set()))}"


def _parts(value: Any, seen: set[int]) -> Any:
    """What tells one function from another: code, constants, defaults, and what it closes over."""
    if isinstance(value, Tensor):
        return [str(value.dtype), value.tolist()]
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return repr(value)
    if id(value) in seen:  # a function that calls itself
        return "itself"
    seen.add(id(value))
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, _parts(value.co_consts, seen)]
    if isinstance(value, tuple | list | frozenset):
        return [_parts(part, seen) for part in value]
    if isinstance(value, functools.partial):
        inner = (value.func, value.args, tuple(sorted(value.keywords.items())))
        return _parts(inner, seen)
    if hasattr(value, "__code__"):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        defaults = (value.__defaults__, tuple(sorted((value.__kwdefaults__ or {}).items())))
        return [_parts(part, seen) for part in (value.__code__, defaults, cells)]
    return [type(value).__module__, type(value).__qualname__]


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
