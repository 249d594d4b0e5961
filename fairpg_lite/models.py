"""Saving a trained scorer and reading it back: one readable file, model.json, and no pickle.

It names the format and its version, the kind and sizes of the scorer, how its features were
prepared, the settings and outcome of the training, and holds the weights as decimal numbers that
give every bit back, under a SHA-256. One file is replaced in one step, so whoever reads sees the
old model or the new one, however many write. Loading runs no code from the file, allocates no more
than the file's own size warrants, and refuses what is foreign, damaged or of another version.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairpg_lite._files import write_whole
from fairpg_lite._version import __version__
from fairpg_lite.config import TrainConfig
from fairpg_lite.history import History, refusing
from fairpg_lite.preparation import Preparation
from fairpg_lite.scorers import LinearScorer, MLPScorer

FORMAT, VERSION = "fairpg_lite.model", 2
META = "model.json"
_DTYPES = {"float32": torch.float32, "float64": torch.float64, "int64": torch.int64}

Sizes = dict[str, int | bool]
_KINDS: dict[str, tuple[type[nn.Module], Callable[[Any], Sizes]]] = {
    "linear": (
        LinearScorer,
        lambda s: {"n_features": s.linear.in_features, "bias": s.linear.bias is not None},
    ),
    "neural": (
        MLPScorer,
        lambda s: {"n_features": s.hidden.in_features, "hidden": s.hidden.out_features},
    ),
}


@dataclass(frozen=True)
class SavedModel:
    """What `load_model` returns.

    ``evaluate(model.scorer, model.prepare(load_letor(path)))`` treats a file as the training did.

    Chapter 10.
    """

    scorer: nn.Module
    prepare: Preparation
    """Turns a dataset as read into what the scorer was trained on."""
    meta: dict[str, Any]
    """model.json, without the weights."""


def register_scorer(kind: str, cls: type[nn.Module], sizes: Callable[[Any], Sizes]) -> None:
    """Let `save_model` and `load_model` handle scorers of class ``cls`` under the name ``kind``.

    ``sizes(scorer)`` gives the whole numbers (and booleans) with which ``cls(**sizes)`` makes a
    scorer of the same shape; ``n_features`` must be among them. Register before loading, too.

    Chapter 10.
    """
    if _KINDS.get(kind, (cls,))[0] is not cls:
        raise ValueError(f"register_scorer: {kind!r} is taken by {_KINDS[kind][0].__name__}.")
    _KINDS[kind] = (cls, sizes)


def save_model(
    scorer: nn.Module,
    directory: str | Path,
    *,
    prepare: Preparation | None = None,
    config: TrainConfig | None = None,
    history: History | None = None,
    notes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write ``scorer`` to ``directory`` as model.json, all or nothing.

    Chapter 10.

    Args:
        scorer: A `LinearScorer`, an `MLPScorer`, or of a class that was registered.
        directory: Made if it is not there.
        prepare: How the features were made; without it the scorer takes them as they are.
        config: Kept, like ``history``, for whoever asks later how the model came about.
        history: What `fit` returned.
        notes: Plain values to keep as well.
        overwrite: Whether an older model there may be replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(LinearScorer(5), folder)
    ...     load_model(folder).scorer
    LinearScorer(
      (linear): Linear(in_features=5, out_features=1, bias=False)
    )
    """
    file = Path(directory) / META
    kind, sizes = _describe(scorer)
    prepare = prepare or Preparation(int(sizes["n_features"]))
    if prepare.n_scored != sizes["n_features"]:
        raise ValueError(
            f"save_model: the scorer takes {sizes['n_features']} features, the preparation "
            f"gives {prepare.n_scored}."
        )
    if file.exists() and _header(file) is None:
        raise ValueError(f"save_model: {file} is not ours; choose another directory.")
    if file.exists() and not overwrite:
        raise FileExistsError(f"save_model: {directory} holds a model; overwrite=True replaces it.")
    tensors = {f"scorer.{name}": value for name, value in scorer.state_dict().items()}
    tensors |= {f"prepare.{name}": value for name, value in prepare.arrays().items()}
    weights = {name: _plain(name, value) for name, value in tensors.items()}
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "fairpg_lite": __version__,
        "kind": kind,
        "sizes": sizes,
        "dtype": str(next(scorer.parameters()).dtype).removeprefix("torch."),
        "prepare": prepare.to_dict(),
        "training": None if config is None else config.to_dict(),
        "history": None if history is None else history.summary(),
        "notes": dict(notes or {}),
        "sha256": _digest(weights),
        "weights": weights,
    }
    write_whole(file, json.dumps(meta, indent=1, ensure_ascii=False) + "\n")


def load_model(directory: str | Path) -> SavedModel:
    """Read what `save_model` wrote; refuses what is foreign, damaged or of another version.

    Chapter 10.
    """
    folder = Path(directory)
    if not folder.is_dir():
        why = "is a file; name the directory that holds model.json" if folder.exists() else "absent"
        raise FileNotFoundError(f"load_model: {folder}: {why}.")
    meta = _header(folder / META)
    if meta is None:
        raise ValueError(
            f"load_model: {folder} holds no model of fairpg_lite (no model.json that names "
            f"{FORMAT!r} as its format, and a version)."
        )
    if meta["version"] != VERSION:
        remedy = "Install a newer" if meta["version"] > VERSION else "Train anew, or use that"
        raise ValueError(
            f"load_model: {folder} has format version {meta['version']}, written by fairpg_lite "
            f"{meta.get('fairpg_lite')}; this is {__version__} and reads version {VERSION}. "
            f"{remedy} fairpg_lite."
        )
    kind = meta.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(
            f"load_model: {folder} holds a scorer of kind {kind!r}, known are "
            f"{', '.join(map(repr, _KINDS))}; call register_scorer before loading."
        )
    with refusing(f"load_model: the model in {folder}", "train or copy it anew"):
        weights, sizes, cls = meta.pop("weights"), meta["sizes"], _KINDS[kind][0]
        if _digest(weights) != meta["sha256"]:
            raise ValueError(f"the SHA-256 of its weights is not {meta['sha256']}")
        parts: dict[str, dict[str, Tensor]] = {"scorer": {}, "prepare": {}}
        for name, stored in weights.items():
            part, _, own = name.partition(".")
            parts[part][own] = _tensor(name, stored)
        with torch.device("meta"):  # sizes without memory: they may be anything as yet
            shapes = _shapes(cls(**sizes).to(_DTYPES[meta["dtype"]]).state_dict())
        if shapes != _shapes(parts["scorer"]):
            raise ValueError(f"weights of {_shapes(parts['scorer'])} do not fit sizes {sizes}")
        fields = {**meta["prepare"], **parts["prepare"]}
        prepare = Preparation(**{**fields, "group_values": tuple(fields["group_values"])})
        if len(parts["prepare"]) != (2 if prepare.normalize == "standard" else 0):
            raise ValueError("the preparation lacks its scale")
        if prepare.n_scored != sizes["n_features"]:
            raise ValueError("the preparation gives another number of features than are scored")
        scorer = cls(**sizes).to(_DTYPES[meta["dtype"]])
        scorer.load_state_dict(parts["scorer"])
    return SavedModel(scorer.eval(), prepare, meta)


def _header(file: Path) -> dict[str, Any] | None:
    """model.json if it is one of ours, of whatever version."""
    try:
        meta = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(meta, dict) and meta.get("format") == FORMAT
    version = meta.get("version") if ours else None
    return meta if type(version) is int and version > 0 else None


def _describe(scorer: nn.Module) -> tuple[str, Sizes]:
    for kind, (cls, sizes) in _KINDS.items():
        if type(scorer) is cls:  # a subclass may compute something else
            return kind, sizes(scorer)
    name, known = type(scorer).__name__, ", ".join(cls.__name__ for cls, _ in _KINDS.values())
    raise TypeError(
        f"save_model: {name} is not one of {known}, and saving an unknown class would need pickle, "
        f"which can run code. Either register_scorer('my-kind', {name}, sizes), or keep "
        "torch.save(scorer.state_dict(), file) and your own class."
    )


def _plain(name: str, value: Tensor) -> dict[str, Any]:
    """A tensor for the file; its numbers are one string, and so one line."""
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in _DTYPES:
        raise TypeError(f"save_model: {name} is {dtype}; known are {', '.join(_DTYPES)}.")
    if not torch.isfinite(value).all():
        raise ValueError(f"save_model: {name} holds NaN or infinity; such a model cannot rank.")
    numbers = " ".join(map(repr, value.detach().flatten().tolist()))
    return {"dtype": dtype, "shape": list(value.shape), "values": numbers}


def _tensor(name: str, stored: Any) -> Tensor:
    """The tensor that `_plain` wrote; finite also in its own number format."""
    dtype = _DTYPES[stored["dtype"]]
    numbers = map(float if dtype.is_floating_point else int, stored["values"].split())
    value = torch.tensor(list(numbers), dtype=dtype).reshape(stored["shape"])
    if not torch.isfinite(value).all():
        raise ValueError(f"{name} holds values that are not finite {stored['dtype']} numbers")
    return value


def _digest(weights: Any) -> str:
    return hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (tuple(value.shape), str(value.dtype)) for name, value in state.items()}
