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
from torch import Tensor, nn

from fairpg_lite._files import refusing, write_whole
from fairpg_lite._version import __version__
from fairpg_lite.models.preparation import Preparation
from fairpg_lite.scorers import LinearScorer, MLPScorer
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.history import History

#: The kind of the file, and the version of its layout.
FORMAT = "fairpg_lite.model 1"
#: The name of the file in the directory of a model.
FILE_NAME = "model.json"

_KIND_OF_FILE = FORMAT.partition(" ")[0]
_KINDS: dict[type[nn.Module], str] = {LinearScorer: "linear", MLPScorer: "neural"}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class SavedModel:
    """What `load_model` returns.

    >>> import tempfile
    >>> from fairpg_lite import evaluate, synthetic
    >>> with tempfile.TemporaryDirectory() as out:
    ...     save_model(LinearScorer(2, init=0.0), out)
    ...     model = load_model(out)
    >>> evaluate(model.scorer, model.prepare(synthetic(20)), ("ndcg",))
    Evaluation(ndcg=0.7409, queries=20)
    """

    scorer: nn.Module
    """The scorer, in evaluation mode."""
    prepare: Preparation
    """Turns a dataset as read into what the scorer was trained on."""
    meta: dict[str, Any]
    """model.json, without the weights."""


def save_model(
    scorer: nn.Module,
    out: str | Path,
    *,
    prepare: Preparation | None = None,
    config: TrainConfig | None = None,
    history: History | None = None,
    notes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a scorer to a directory as model.json, all or nothing.

    Args:
        scorer: A `LinearScorer` or an `MLPScorer`.
        out: The directory, which is made if it is not there.
        prepare: How the features were made; None is not at all.
        config: The settings of the training, for whoever asks later how the model came about.
        history: The course of the training, of which the summary is kept.
        notes: Anything else to keep that JSON can hold.
        overwrite: Whether to replace a model that is there already.

    Raises:
        TypeError: If the scorer is of another class; loading it would run its code.
        FileExistsError: If there is a model, and ``overwrite`` is False.
        ValueError: If there is a model.json of another kind, or the model could not be loaded
            again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     save_model(LinearScorer(5), out)
    ...     load_model(out).scorer
    LinearScorer(
      (linear): Linear(in_features=5, out_features=1, bias=False)
    )
    """
    file = Path(out) / FILE_NAME
    if type(scorer) not in _KINDS:  # a subclass may compute something else
        raise TypeError(
            f"save_model: {type(scorer).__name__} is neither LinearScorer nor MLPScorer, and "
            "loading it would run its code; torch.save its state_dict(), and keep the class."
        )
    if file.exists():
        _check_replaceable(file, overwrite)
    first = next(scorer.parameters())
    if prepare is None:
        prepare = Preparation(first.shape[1])
    weights = {name: value.tolist() for name, value in scorer.state_dict().items()}
    meta = {
        "format": FORMAT,
        "fairpg_lite": __version__,
        "kind": _KINDS[type(scorer)],
        "dtype": str(first.dtype).removeprefix("torch."),
        "prepare": asdict(prepare),
        "training": None if config is None else config.to_dict(),
        "history": None if history is None else history.summary(),
        "notes": {} if notes is None else dict(notes),
        "sha256": _digest(weights),
    }
    with refusing("save_model: the model", "only what would load again is saved"):
        _model_of(meta, weights)
    # The weights go into one line, however many there are.
    header = json.dumps(meta, indent=1, ensure_ascii=False).removesuffix("\n}")
    write_whole(file, f'{header},\n "weights": {json.dumps(weights)}\n}}\n')


def load_model(path: str | Path) -> SavedModel:
    """Read a model that `save_model` wrote.

    Args:
        path: The directory that holds model.json.

    Returns:
        Scorer, preparation, and what else was kept.

    Raises:
        FileNotFoundError: If there is no model.json.
        ValueError: If it is foreign, damaged or of another version.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     save_model(LinearScorer(5), out, notes={"asked by": "a regulator"})
    ...     load_model(out).meta["notes"]
    {'asked by': 'a regulator'}
    """
    file = Path(path) / FILE_NAME
    if not file.is_file():
        raise FileNotFoundError(f"load_model: no file {file}; name the directory that holds it.")
    meta = _read_object(file)
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
        return _model_of(meta, weights)


def _check_replaceable(file: Path, overwrite: bool) -> None:
    """Refuse to replace a file of another kind, or a model without being asked to."""
    kind_of_file = str(_read_object(file).get("format"))
    if not kind_of_file.startswith(_KIND_OF_FILE):
        raise ValueError(
            f"save_model: {file} is not ours; it would be lost, so choose another directory."
        )
    if not overwrite:
        raise FileExistsError(
            f"save_model: {file.parent} holds a model; overwrite=True replaces it."
        )


def _read_object(file: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one if the file holds no such thing."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _model_of(meta: dict[str, Any], weights: dict[str, Any]) -> SavedModel:
    """The model that a model.json describes."""
    dtype = _DTYPES[meta["dtype"]]
    state = {name: torch.tensor(values, dtype=dtype) for name, values in weights.items()}
    scorer = _empty_scorer(meta["kind"], state).to(dtype)
    scorer.load_state_dict(state)
    for values in state.values():
        if not torch.isfinite(values).all():
            raise ValueError(f"its weights are not finite {dtype} numbers")
    fields = meta["prepare"]
    prepare = Preparation(**{**fields, "group_values": tuple(fields["group_values"])})
    n_features = next(scorer.parameters()).shape[1]
    if prepare.n_features != n_features:
        raise ValueError("the preparation gives another number of features than are scored")
    return SavedModel(scorer.eval(), prepare, meta)


def _empty_scorer(kind: str, state: dict[str, Tensor]) -> LinearScorer | MLPScorer:
    """A scorer of the kind, as large as the weights that it is to hold."""
    if kind == "linear":
        _, n_features = state["linear.weight"].shape
        return LinearScorer(n_features, bias="linear.bias" in state)
    if kind == "neural":
        hidden, n_features = state["hidden.weight"].shape
        return MLPScorer(n_features, hidden)
    raise ValueError(f"its scorer is of kind {kind!r}, known are 'linear' and 'neural'")


def _digest(weights: dict[str, Any]) -> str:
    """The SHA-256 of the weights, in the order of their names."""
    return hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()
