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
from fairpg_lite.data import RankingDataset
from fairpg_lite.history import History
from fairpg_lite.preparation import NORMALIZATIONS, Preparation
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
    folder = Path(directory)
    kind, sizes = _describe(scorer)
    prepare = prepare or Preparation(int(sizes["n_features"]))
    if prepare.n_scored != sizes["n_features"]:
        raise ValueError(
            f"save_model: the scorer takes {sizes['n_features']} features, the preparation "
            f"gives {prepare.n_scored}."
        )
    if (folder / META).exists():
        if _header(folder) is None:
            raise ValueError(f"save_model: {folder / META} is not ours; choose another directory.")
        if not overwrite:
            raise FileExistsError(
                f"save_model: {folder} holds a model; overwrite=True replaces it."
            )
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
    write_whole(folder / META, json.dumps(meta, indent=1, ensure_ascii=False) + "\n")


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


def _digest(weights: Any) -> str:
    return hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()


def load_model(directory: str | Path) -> SavedModel:
    """Read what `save_model` wrote; refuses what is foreign, damaged or of another version.

    Chapter 10.
    """
    folder = Path(directory)
    meta = _read_meta(folder)
    weights, kind, sizes = meta.pop("weights"), meta["kind"], meta["sizes"]
    if kind not in _KINDS:
        raise ValueError(
            f"load_model: {folder} holds a scorer of kind {kind!r}, known are "
            f"{', '.join(map(repr, _KINDS))}; call register_scorer before loading."
        )
    if _digest(weights) != meta.get("sha256"):
        raise _damaged(folder, f"the SHA-256 of its weights is not {meta.get('sha256')!r}")
    tensors = {name: _tensor(folder, name, stored) for name, stored in weights.items()}
    states = {name[7:]: value for name, value in tensors.items() if name.startswith("scorer.")}
    try:
        with torch.device("meta"):  # sizes without memory: they may be anything as yet
            shapes = _shapes(_KINDS[kind][0](**sizes).to(_DTYPES[meta["dtype"]]).state_dict())
        prepare = _preparation(meta["prepare"], tensors)
        fits = shapes == _shapes(states)
        if fits:
            scorer = _KINDS[kind][0](**sizes).to(_DTYPES[meta["dtype"]])
            scorer.load_state_dict(states)
    except (TypeError, ValueError, KeyError, RuntimeError, OverflowError) as error:
        why = "weights, sizes and preparation do not fit each other"
        raise _damaged(folder, why) from error
    if not fits:
        raise _damaged(folder, f"weights of {_shapes(states)} do not fit sizes {sizes}")
    if prepare.n_scored != sizes["n_features"]:
        raise _damaged(folder, "the preparation gives another number of features than are scored")
    return SavedModel(scorer.eval(), prepare, meta)


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (tuple(value.shape), str(value.dtype)) for name, value in state.items()}


def _damaged(folder: Path, why: str) -> ValueError:
    return ValueError(
        f"load_model: the model in {folder} is damaged: {why}. Train or copy it anew."
    )


def _header(folder: Path) -> dict[str, Any] | None:
    """model.json if it is one of ours, of whatever version."""
    try:
        meta = json.loads((folder / META).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(meta, dict) and meta.get("format") == FORMAT
    version = meta.get("version") if ours else None
    return meta if type(version) is int and version > 0 else None


def _read_meta(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        why = "is a file; name the directory that holds model.json" if folder.exists() else "absent"
        raise FileNotFoundError(f"load_model: {folder}: {why}.")
    meta = _header(folder)
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
    types = {"kind": str, "sizes": dict, "dtype": str, "weights": dict, "prepare": dict}
    for name, kind in types.items():
        if not isinstance(meta.get(name), kind):
            raise _damaged(folder, f"model.json lacks {name!r}")
    if meta["dtype"] not in ("float32", "float64"):
        raise _damaged(folder, f"its dtype is {meta['dtype']!r}")
    return meta


def _tensor(folder: Path, name: str, stored: Any) -> Tensor:
    """The tensor that `_plain` wrote; finite also in its own number format."""
    try:
        dtype = _DTYPES[stored["dtype"]]
        numbers = map(float if dtype.is_floating_point else int, stored["values"].split())
        value = torch.tensor(list(numbers), dtype=dtype).reshape(stored["shape"])
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
        raise _damaged(folder, f"{name} cannot be read ({error})") from error
    if not torch.isfinite(value).all():
        raise _damaged(folder, f"{name} holds values that are not finite {stored['dtype']} numbers")
    return value


def _preparation(stored: dict[str, Any], arrays: Mapping[str, Tensor]) -> Preparation:
    prepare = Preparation(
        **{**stored, "group_values": tuple(stored["group_values"])},
        mean=arrays.get("prepare.mean"),
        divisor=arrays.get("prepare.divisor"),
    )
    scaled = prepare.mean is not None and prepare.divisor is not None
    if prepare.normalize not in NORMALIZATIONS or scaled != (prepare.normalize == "standard"):
        raise ValueError("the scale is missing")
    if any(value.shape != (prepare.n_scored,) for value in prepare.arrays().values()):
        raise ValueError("the scale has another length")
    return prepare


def data_notes(dataset: RankingDataset) -> dict[str, Any]:
    """A dataset in few words, for a model's notes: its name, not its place on a disk."""
    groups = None if dataset.groups is None else dataset.groups.bincount().tolist()
    return {
        "name": dataset.info.get("name"),
        "queries": len(dataset),
        "documents": dataset.n_documents,
        "features": dataset.n_features,
        "documents_per_group": groups,
    }
