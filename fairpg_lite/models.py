"""What outlives a training: the model, in one readable file without pickle; and checkpoints.

model.json names the format and its version, the kind of the scorer, how its features were prepared,
the settings and outcome of the training, and holds the weights as decimal numbers that give every
bit back, under a SHA-256. It is replaced in one step, so whoever reads sees the old model or the
new one, however many write. Loading runs no code from the file, allocates no more than the file's
own size warrants, and refuses what is foreign, damaged or of another version.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch
from torch import Tensor, nn

from fairpg_lite._files import write_whole
from fairpg_lite._version import __version__
from fairpg_lite.config import History, TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.preparation import Preparation
from fairpg_lite.scorers import LinearScorer, MLPScorer

FORMAT, VERSION, CHECKPOINT = "fairpg_lite.model", 3, 4
META = "model.json"
_KINDS = {LinearScorer: "linear", MLPScorer: "neural"}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}
_AFRESH = "delete it to start afresh"


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
    """Write a `LinearScorer` or an `MLPScorer` to ``directory`` as model.json, all or nothing.

    ``prepare`` says how the features were made; ``config``, ``history`` and ``notes`` are kept for
    whoever asks later how the model came about. An older model is replaced with ``overwrite`` only.

    Chapter 10.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(LinearScorer(5), folder)
    ...     load_model(folder).scorer
    LinearScorer(
      (linear): Linear(in_features=5, out_features=1, bias=False)
    )
    """
    file = Path(directory) / META
    if type(scorer) not in _KINDS:  # a subclass may compute something else
        raise TypeError(
            f"save_model: {type(scorer).__name__} is neither LinearScorer nor MLPScorer, and "
            "loading it would run its code; torch.save its state_dict(), and keep the class."
        )
    first = next(scorer.parameters())
    prepare = prepare or Preparation(first.shape[1])
    if file.exists() and _header(file) is None:
        raise ValueError(f"save_model: {file} is not ours; choose another directory.")
    if file.exists() and not overwrite:
        raise FileExistsError(f"save_model: {directory} holds a model; overwrite=True replaces it.")
    weights = {name: value.tolist() for name, value in scorer.state_dict().items()}
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "fairpg_lite": __version__,
        "kind": _KINDS[type(scorer)],
        "dtype": str(first.dtype).removeprefix("torch."),
        "prepare": prepare.to_dict(),
        "training": None if config is None else config.to_dict(),
        "history": None if history is None else history.summary(),
        "notes": dict(notes or {}),
        "sha256": _digest(weights),
    }
    with refusing("save_model: the model", "only what would load again is saved"):
        _made(meta, weights)
    text = json.dumps(meta, indent=1, ensure_ascii=False).removesuffix("\n}")
    write_whole(file, f'{text},\n "weights": {json.dumps(weights)}\n}}\n')  # in one line


def load_model(directory: str | Path) -> SavedModel:
    """Read what `save_model` wrote; refuses what is foreign, damaged or of another version.

    Chapter 10.
    """
    file = Path(directory) / META
    if not file.is_file():
        raise FileNotFoundError(f"load_model: no file {file}; name the directory that holds it.")
    meta = _header(file)
    if meta is None:
        raise ValueError(
            f"load_model: {file} is no model of fairpg_lite (its format is to be {FORMAT!r})."
        )
    if meta["version"] != VERSION:
        raise ValueError(
            f"load_model: {file} has format version {meta['version']}, this fairpg_lite reads "
            f"{VERSION}; use fairpg_lite {meta.get('fairpg_lite')}, which wrote it, or train anew."
        )
    with refusing(f"load_model: {file}", "train or copy it anew"):
        weights = meta.pop("weights")
        if _digest(weights) != meta["sha256"]:
            raise ValueError(f"the SHA-256 of its weights is not {meta['sha256']}")
        return _made(meta, weights)


def _header(file: Path) -> dict[str, Any] | None:
    """model.json if it is one of ours, of whatever version."""
    try:
        meta = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(meta, dict) and meta.get("format") == FORMAT
    version = meta.get("version") if ours else None
    return meta if type(version) is int and version > 0 else None


def _made(meta: dict[str, Any], weights: dict[str, Any]) -> SavedModel:
    """The scorer, as large as its weights, and the preparation of a model.json."""
    kind, dtype, fields = meta["kind"], _DTYPES[meta["dtype"]], meta["prepare"]
    if kind not in ("linear", "neural"):
        raise ValueError(f"its scorer is of kind {kind!r}, known are 'linear' and 'neural'")
    state = {name: torch.tensor(values, dtype=dtype) for name, values in weights.items()}
    scorer: LinearScorer | MLPScorer
    if kind == "linear":
        _, n_features = state["linear.weight"].shape
        scorer = LinearScorer(n_features, bias="linear.bias" in state)
    else:
        units, n_features = state["hidden.weight"].shape
        scorer = MLPScorer(n_features, units)
    scorer.to(dtype).load_state_dict(state)
    if not all(torch.isfinite(value).all() for value in state.values()):
        raise ValueError(f"its weights are not finite {dtype} numbers")
    prepare = Preparation(**{**fields, "group_values": tuple(fields["group_values"])})
    if prepare.n_features != n_features:
        raise ValueError("the preparation gives another number of features than are scored")
    return SavedModel(scorer.eval(), prepare, meta)


def _digest(weights: Any) -> str:
    return hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()


@contextmanager
def refusing(what: str, remedy: str = _AFRESH) -> Iterator[None]:
    """Reading what a stranger may have written: whatever fails is one error that says so."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ValueError(f"{what} is damaged: {why}; {remedy}.") from error


def run_of(
    scorer: nn.Module, dataset: RankingDataset, valid: RankingDataset | None, config: TrainConfig
) -> dict[str, Any]:
    """What a checkpoint can be continued with: this data, these settings, a scorer like this."""
    run: dict[str, Any] = {"training data": dataset.fingerprint()}
    run["validation data"] = None if valid is None else valid.fingerprint()
    shapes = {name: (value.shape, value.dtype) for name, value in scorer.state_dict().items()}
    run["scorer"] = f"{scorer} {shapes}"
    for name, value in vars(config).items():
        named = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '<')}"
        if callable(value) and "<" in named:
            raise ValueError(
                f"fit: {name} is {value!r}, which a checkpoint cannot tell from another; give a "
                "function with a name of its own in its module, or no checkpoint."
            )
        if name not in ("epochs", "compiled"):
            same = [str(value.dtype), value.tolist()] if isinstance(value, Tensor) else value
            run[f"setting {name}"] = named if callable(value) else repr(same)
    return run


def load_checkpoint(path: Path, run: dict[str, Any], epochs: int) -> dict[str, Any]:
    """Read a checkpoint (tensors and plain values only) of this run; any other is refused."""
    try:
        with ZipFile(path) as archive:  # torch packs nothing: what would unpack to more is a bomb
            unpacked = sum(part.file_size for part in archive.infolist())
        state = torch.load(path, weights_only=True) if unpacked < path.stat().st_size else {}
        ours = state["format"] == CHECKPOINT
    except Exception:
        ours = False
    if not ours:
        raise ValueError(f"fit: {path} is no checkpoint of this version, or cut off; {_AFRESH}.")
    with refusing(f"fit: checkpoint {path}"):
        other = [f"other {name}" for name in run if state["run"].get(name) != run[name]]
        done = len(state["history"]["utility"])
    if done > epochs:
        other.append(f"{done} epochs, more than the {epochs} asked for")
    if other:
        raise ValueError(
            f"fit: {path} is the checkpoint of another run: {', '.join(other)}. Give what it was "
            f"made with, name another file, or {_AFRESH}."
        )
    return state
