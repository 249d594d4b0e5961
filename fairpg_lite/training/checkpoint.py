"""The state of a training after each epoch, in a file, so that a killed one can go on."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch
from torch import nn

from fairpg_lite._files import refusing
from fairpg_lite.data import RankingDataset
from fairpg_lite.training.config import TrainConfig

CHECKPOINT = 5
AFRESH = "delete it to start afresh"


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
        raise ValueError(f"fit: {path} is no checkpoint of this version, or cut off; {AFRESH}.")
    with refusing(f"fit: checkpoint {path}", AFRESH):
        other = [f"other {name}" for name in run if state["run"].get(name) != run[name]]
        done = len(state["history"]["utility"])
    if done > epochs:
        other.append(f"{done} epochs, more than the {epochs} asked for")
    if other:
        found = f"{path} is the checkpoint of another run: {', '.join(other)}"
        raise ValueError(f"fit: {found}; give what it was made with, or {AFRESH}.")
    return state
