"""What outlives a training: the model, in one readable file without pickle; and checkpoints.

`Preparation` makes of a file's columns what a scorer sees: groups read off, features scaled. It is
learned once, on the training set, and kept with the model, so that a test file is treated alike.
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self
from zipfile import ZipFile

import torch
from torch import Tensor, nn

from fairpg_lite._files import write_whole
from fairpg_lite._version import __version__
from fairpg_lite.config import History, TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.scorers import LinearScorer, MLPScorer

# Kind of file and version; a checkpoint has a version only.
FORMAT, CHECKPOINT = "fairpg_lite.model 4", 5
META = "model.json"
_KINDS = {LinearScorer: "linear", MLPScorer: "neural"}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}
_AFRESH = "delete it to start afresh"


# More distinct values than this are measurements, not groups: they need a threshold.
MAX_GROUPS = 50


@dataclass(frozen=True)
class Preparation:
    """How to prepare a dataset for a scorer; `learn` makes one, calling it applies it.

    Groups come first, from the raw features; then the features may be scaled. Chapter 10.

    >>> raw = RankingDataset(torch.tensor([[0.0, 3.0], [1.0, 5.0]]), torch.ones(2), [0, 2])
    >>> Preparation.learn(raw, group_feature=2)(raw).groups
    tensor([0, 1])
    """

    n_features: int
    """Columns of the raw features."""
    normalize: str = "none"
    """Either "none" or "minmax", to [0, 1] within each query."""
    group_feature: int | None = None
    """Id (from 1) of the feature that holds the groups; None for the dataset's own, if any."""
    group_threshold: float | None = None
    """Group 1 is above it, group 0 is the rest; None for one group per distinct value."""
    group_values: tuple[float, ...] = ()
    """Without a threshold, the values of groups 0, 1, … in the training set, rising."""
    groups_given: bool = False
    """Whether the training set came with groups of its own, a side file's, say."""

    def __post_init__(self) -> None:
        feature, n = self.group_feature, self.n_features
        if self.normalize not in ("none", "minmax"):
            raise ValueError(f"Preparation: normalize is {self.normalize!r}; 'minmax' or 'none'.")
        if feature is None and self.group_threshold is not None:
            raise ValueError("Preparation: a threshold needs group_feature.")
        if feature is not None and not 1 <= feature <= n:
            raise ValueError(f"Preparation: the group feature is {feature}, there are 1 to {n}.")

    @classmethod
    def learn(cls, train: RankingDataset, **choices: Any) -> Self:
        """The preparation that ``train`` asks for; ``choices`` are fields such as ``normalize``."""
        plan = cls(train.n_features, **choices, groups_given=train.groups is not None)
        if plan.group_feature is None or plan.group_threshold is not None:
            return plan
        values = train.features[:, plan.group_feature - 1].unique().tolist()
        if len(values) > MAX_GROUPS:
            found = f"feature {plan.group_feature} takes {len(values):,} values, not {MAX_GROUPS}"
            raise ValueError(f"Preparation: {found} at most, as groups do; give --group-threshold.")
        return replace(plan, group_values=tuple(values))

    def __call__(self, dataset: RankingDataset) -> RankingDataset:
        """``dataset`` as the scorer is to see it; groups it already has are kept."""
        name, groups = dataset.info.get("name", "the dataset"), dataset.groups
        if dataset.n_features != self.n_features:
            raise ValueError(
                f"{name} has {dataset.n_features} features, the model was trained on "
                f"{self.n_features}; if its last features are all zero, read it with "
                f"n_features={self.n_features} (--n-features {self.n_features})."
            )
        if groups is None and self.group_feature is not None:
            groups = self._groups(dataset.features[:, self.group_feature - 1].contiguous(), name)
        prepared = dataset.replace(groups=groups)
        return prepared.normalize() if self.normalize == "minmax" else prepared

    def _groups(self, values: Tensor, name: str) -> Tensor:
        if self.group_threshold is not None:
            # In the features' own type: float32's 0.1 is a little above float64's.
            return (values > torch.tensor(self.group_threshold, dtype=values.dtype)).long()
        known = torch.tensor(self.group_values, dtype=values.dtype)
        labels = torch.searchsorted(known, values).clamp(max=len(known) - 1)
        strange = values[known[labels] != values]
        if len(strange):
            raise ValueError(
                f"{name}: feature {self.group_feature} is {strange[0].item():g} somewhere; the "
                f"groups of the training set were {', '.join(map('{:g}'.format, known.tolist()))}."
            )
        return labels


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
    for name, value in config.to_dict().items():
        if callable(given := getattr(config, name)) and "<" in value:
            found = f"{name} is {given!r}, which a checkpoint cannot tell from another"
            raise ValueError(f"fit: {found}; give a module's named function, or no checkpoint.")
        if name not in ("epochs", "compiled"):
            run[f"setting {name}"] = repr(value)
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
        found = f"{path} is the checkpoint of another run: {', '.join(other)}"
        raise ValueError(f"fit: {found}; give what it was made with, or {_AFRESH}.")
    return state
