"""Saving a trained scorer and reading it back: a readable model.json and weights.npz, no pickle.

model.json names the format and its version, the kind and sizes of the scorer, how its features
were prepared, the settings and outcome of the training, and the SHA-256 of weights.npz. Loading
runs no code from the files and refuses what is foreign, damaged or newer.

Saving is all or nothing. The new weights are written beside the old ones as weights.new.npz; then
model.json is replaced, in one step, which is the moment from which the new model counts; then the
weights take their name. Whoever is killed in between leaves the old model or the new one.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairpg_lite._version import __version__
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.history import History
from fairpg_lite.preparation import NORMALIZATIONS, Preparation
from fairpg_lite.scorers import LinearScorer, MLPScorer

FORMAT, VERSION = "fairpg_lite.model", 1
META, WEIGHTS, NEW_WEIGHTS = "model.json", "weights.npz", "weights.new.npz"

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
    """model.json."""


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
    """Write ``scorer`` to ``directory`` as model.json and weights.npz, all or nothing.

    ``prepare`` says how the features were made; without it the scorer takes them as they are.
    ``config``, ``history`` and ``notes`` (plain values) are kept for whoever asks later how the
    model came about. An older model there is replaced with ``overwrite`` only.

    Chapter 10.

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
    arrays = _arrays(scorer, prepare)
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "fairpg_lite": __version__,
        "kind": kind,
        "sizes": sizes,
        "dtype": str(next(scorer.parameters()).dtype).removeprefix("torch."),
        "weights": {
            "sha256": hashlib.sha256(packed.getvalue()).hexdigest(),
            "shapes": {name: list(array.shape) for name, array in arrays.items()},
        },
        "prepare": prepare.to_dict(),
        "training": None if config is None else config.to_dict(),
        "history": None if history is None else summary_of(history),
        "notes": dict(notes or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder, packed.getvalue(), json.dumps(meta, indent=1, ensure_ascii=False) + "\n")


def _replace(folder: Path, weights: bytes, meta: str) -> None:
    """The three steps of the module's docstring; whatever stops them, a whole model is there."""
    _write(folder / NEW_WEIGHTS, weights)
    _write(folder / f"{META}.new", meta.encode())
    os.replace(folder / f"{META}.new", folder / META)
    os.replace(folder / NEW_WEIGHTS, folder / WEIGHTS)


def _write(path: Path, content: bytes) -> None:
    """To the disk, not only to its cache: a rename must not overtake what it renames."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


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


def _arrays(scorer: nn.Module, prepare: Preparation) -> dict[str, np.ndarray]:
    tensors = {f"scorer.{name}": value for name, value in scorer.state_dict().items()}
    tensors |= {f"prepare.{name}": value for name, value in prepare.arrays().items()}
    for name, value in tensors.items():
        if not torch.isfinite(value).all():
            raise ValueError(f"save_model: {name} holds NaN or infinity; such a model cannot rank.")
    return {name: value.detach().cpu().numpy() for name, value in tensors.items()}


def summary_of(history: History) -> dict[str, Any]:
    """How the training went, in few numbers; without times, so that equal runs give equal files."""
    summary: dict[str, Any] = {"epochs": len(history), "stopped": history.stopped}
    for name in ("utility", "disparity", "valid_utility", "valid_disparity"):
        values = getattr(history, name)
        if values:
            summary[name] = {"first": values[0], "last": values[-1]}
    if history.valid_utility:
        lam = history.config.get("lam", 0.0)
        pairs = zip(history.valid_utility, history.valid_disparity, strict=True)
        objective = [utility - lam * disparity for utility, disparity in pairs]
        summary["best_epoch"] = 1 + objective.index(max(objective))
    return summary


def load_model(directory: str | Path) -> SavedModel:
    """Read what `save_model` wrote; refuses what is foreign, damaged or of a newer format.

    Chapter 10.
    """
    folder = Path(directory)
    meta = _read_meta(folder)
    arrays = _read_arrays(folder, meta)
    kind, sizes = meta["kind"], meta["sizes"]
    if kind not in _KINDS:
        raise ValueError(
            f"load_model: {folder} holds a scorer of kind {kind!r}, known are "
            f"{', '.join(map(repr, _KINDS))}; call register_scorer before loading."
        )
    try:
        scorer = _KINDS[kind][0](**sizes).to(getattr(torch, meta["dtype"]))
        part = {name: value for name, value in arrays.items() if name.startswith("scorer.")}
        scorer.load_state_dict({name[len("scorer.") :]: value for name, value in part.items()})
        prepare = _preparation(meta["prepare"], arrays)
        fits = prepare.n_scored == sizes["n_features"]
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError) as error:
        raise _damaged(folder, "weights, sizes and preparation do not fit each other") from error
    if not fits:
        raise _damaged(folder, "the preparation gives another number of features than are scored")
    return SavedModel(scorer.eval(), prepare, meta)


def _damaged(folder: Path, why: str) -> ValueError:
    return ValueError(
        f"load_model: the model in {folder} is damaged: {why}. Train or copy it anew."
    )


def _header(folder: Path) -> dict[str, Any] | None:
    """model.json if it is one of ours, of whatever version."""
    try:
        meta = json.loads((folder / META).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    ours = isinstance(meta, dict) and meta.get("format") == FORMAT
    return meta if ours and isinstance(meta.get("version"), int) else None


def _read_meta(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        why = "is a file; name the directory that holds model.json" if folder.exists() else "absent"
        raise FileNotFoundError(f"load_model: {folder}: {why}.")
    meta = _header(folder)
    if meta is None:
        raise ValueError(
            f"load_model: {folder} holds no model of fairpg_lite (no model.json that names "
            f"{FORMAT!r} as its format)."
        )
    if meta["version"] > VERSION:
        raise ValueError(
            f"load_model: {folder} has format version {meta['version']}, written by fairpg_lite "
            f"{meta.get('fairpg_lite')}; this is {__version__} and reads up to version {VERSION}. "
            "Install a newer fairpg_lite."
        )
    types = {"kind": str, "sizes": dict, "dtype": str, "weights": dict, "prepare": dict}
    for name, kind in types.items():
        if not isinstance(meta.get(name), kind):
            raise _damaged(folder, f"model.json lacks {name!r}")
    if meta["dtype"] not in ("float32", "float64"):
        raise _damaged(folder, f"its dtype is {meta['dtype']!r}")
    return meta


def _read_arrays(folder: Path, meta: dict[str, Any]) -> dict[str, Tensor]:
    packed = _verified(folder, meta["weights"].get("sha256"))
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise _damaged(folder, f"{WEIGHTS} cannot be read ({error})") from error
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    if shapes != meta["weights"].get("shapes"):
        raise _damaged(folder, f"{WEIGHTS} holds {shapes}, model.json says otherwise")
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise _damaged(folder, f"{name} in {WEIGHTS} holds values that are not finite numbers")
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _verified(folder: Path, expected: Any) -> bytes:
    """The weights that model.json speaks of; a save killed at the end left them as the new ones."""
    found = []
    for name in (WEIGHTS, NEW_WEIGHTS):
        file = folder / name
        if file.is_file():
            content = file.read_bytes()
            found.append(hashlib.sha256(content).hexdigest())
            if found[-1] == expected:
                return content
    if not found:
        raise _damaged(folder, f"{WEIGHTS} is missing")
    raise _damaged(folder, f"the SHA-256 of {WEIGHTS} is {found[0]}, model.json says {expected}")


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


def queries_of(dataset: RankingDataset) -> dict[str, Any]:
    """A dataset in few words, for a model's notes: its name, not its place on a disk."""
    groups = None if dataset.groups is None else dataset.groups.bincount().tolist()
    return {
        "name": dataset.info.get("name"),
        "queries": len(dataset),
        "documents": dataset.n_documents,
        "features": dataset.n_features,
        "documents_per_group": groups,
    }
