"""What outlives a training: the model, in one readable file without pickle.

model.json names the format and its version, the kind of the scorer, how its features were prepared,
the settings and outcome of the training, and holds the weights as decimal numbers that give every
bit back, under a SHA-256. It is replaced in one step, so whoever reads sees the old model or the
new one, however many write. Loading runs no code from the file, allocates no more than the file's
own size warrants, and refuses what is foreign, damaged or of another version.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fairpg_lite._files import refusing, write_whole
from fairpg_lite._version import __version__
from fairpg_lite.models.preparation import Preparation
from fairpg_lite.scorers import LinearScorer, MLPScorer
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.history import History

# Kind of file and version.
FORMAT = "fairpg_lite.model 4"
META = "model.json"
_KINDS = {LinearScorer: "linear", MLPScorer: "neural"}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class SavedModel:
    """A model read: ``evaluate(model.scorer, model.prepare(load_letor(path)))`` judges it."""

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
    if file.exists() and not str(_header(file).get("format")).startswith("fairpg_lite.model"):
        raise ValueError(f"save_model: {file} is not ours; choose another directory.")
    if file.exists() and not overwrite:
        raise FileExistsError(f"save_model: {directory} holds a model; overwrite=True replaces it.")
    weights = {name: value.tolist() for name, value in scorer.state_dict().items()}
    meta = {
        "format": FORMAT,
        "fairpg_lite": __version__,
        "kind": _KINDS[type(scorer)],
        "dtype": str(first.dtype).removeprefix("torch."),
        "prepare": asdict(prepare),
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
    """Read what `save_model` wrote; refuses any other file (chapter 10)."""
    file = Path(directory) / META
    if not file.is_file():
        raise FileNotFoundError(f"load_model: no file {file}; name the directory that holds it.")
    meta = _header(file)
    if meta.get("format") != FORMAT:
        raise ValueError(
            f"load_model: {file} is no model for this fairpg_lite: its format is "
            f"{meta.get('format')!r}, not {FORMAT!r}; use fairpg_lite {meta.get('fairpg_lite')}, "
            "or train anew."
        )
    with refusing(f"load_model: {file}", "train or copy it anew"):
        weights = meta.pop("weights")
        if _digest(weights) != meta["sha256"]:
            raise ValueError(f"the SHA-256 of its weights is not {meta['sha256']}")
        return _made(meta, weights)


def _header(file: Path) -> dict[str, Any]:
    """What the JSON file says; nothing, if it is none."""
    try:
        meta = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return meta if isinstance(meta, dict) else {}


def _made(meta: dict[str, Any], weights: dict[str, Any]) -> SavedModel:
    """The scorer, as large as its weights, and the preparation of a model.json."""
    kind, dtype, fields = meta["kind"], _DTYPES[meta["dtype"]], meta["prepare"]
    state = {name: torch.tensor(values, dtype=dtype) for name, values in weights.items()}
    scorer: LinearScorer | MLPScorer
    if kind == "linear":
        _, n_features = state["linear.weight"].shape
        scorer = LinearScorer(n_features, bias="linear.bias" in state)
    elif kind == "neural":
        units, n_features = state["hidden.weight"].shape
        scorer = MLPScorer(n_features, units)
    else:
        raise ValueError(f"its scorer is of kind {kind!r}, known are 'linear' and 'neural'")
    scorer.to(dtype).load_state_dict(state)
    if not all(torch.isfinite(value).all() for value in state.values()):
        raise ValueError(f"its weights are not finite {dtype} numbers")
    prepare = Preparation(**{**fields, "group_values": tuple(fields["group_values"])})
    if prepare.n_features != n_features:
        raise ValueError("the preparation gives another number of features than are scored")
    return SavedModel(scorer.eval(), prepare, meta)


def _digest(weights: Any) -> str:
    return hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()
