"""The state of a training after each epoch, in a file, so that a killed one can go on."""

import io
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch
from torch import nn

from fairpg_lite._files import refusing
from fairpg_lite.data import RankingDataset
from fairpg_lite.training.config import TrainConfig

#: The version of the file's layout.
FORMAT = 1
#: What to do about a file that cannot be continued.
AFRESH = "delete it to start afresh"

# Settings that may differ when a run is continued: more epochs, or the same numbers another way.
_FREE_SETTINGS = ("epochs", "compiled")


def identity_of(
    scorer: nn.Module, dataset: RankingDataset, valid: RankingDataset | None, config: TrainConfig
) -> dict[str, str | None]:
    """What a checkpoint belongs to: these data, these settings, a scorer like this one.

    Args:
        scorer: Its structure counts, its weights do not.
        dataset: The training queries.
        valid: The validation queries, or None.
        config: All settings but ``epochs`` and ``compiled``.

    Returns:
        Plain values by name, to be stored and compared.
    """
    shapes = {name: (value.shape, value.dtype) for name, value in scorer.state_dict().items()}
    identity: dict[str, str | None] = {
        "training data": dataset.fingerprint(),
        "validation data": None if valid is None else valid.fingerprint(),
        "scorer": f"{scorer} {shapes}",
    }
    for name, value in config.to_dict().items():
        function = getattr(config, name)
        # "<lambda>", "<locals>", or the address of an object: a name that others have, too.
        if callable(function) and "<" in value:
            raise ValueError(
                f"fit: {name} is {function!r}, which a checkpoint cannot tell from another "
                "function; define it by name at the top of a module, or train without a checkpoint."
            )
        if name not in _FREE_SETTINGS:
            identity[f"setting {name}"] = repr(value)
    return identity


def to_bytes(state: dict[str, Any]) -> bytes:
    """The content of a checkpoint file."""
    content = io.BytesIO()
    torch.save({"format": FORMAT, **state}, content)
    return content.getvalue()


def load_checkpoint(path: Path, identity: dict[str, str | None], epochs: int) -> dict[str, Any]:
    """The state in a checkpoint file (tensors and plain values only), if it belongs to this run.

    Args:
        path: The file.
        identity: What `identity_of` says of this run.
        epochs: How many epochs this run is to have.

    Returns:
        What was given to `to_bytes`.

    Raises:
        ValueError: If the file is damaged, of another version, or another run's.
    """
    state = _read(path)
    if not isinstance(state, dict) or "format" not in state:
        raise ValueError(f"fit: {path} is not a checkpoint; choose another file, or {AFRESH}.")
    if state["format"] != FORMAT:
        raise ValueError(
            f"fit: {path} is a checkpoint of format {state['format']}, "
            f"this version of fairpg_lite reads format {FORMAT}; {AFRESH}."
        )
    with refusing(f"fit: checkpoint {path}", AFRESH):
        differences = _differences(state["identity"], identity)
        epochs_done = len(state["history"]["utility"])
    if differences:
        raise ValueError(
            f"fit: {path} is the checkpoint of another run: {', '.join(differences)}; "
            f"give what it was made with, or {AFRESH}."
        )
    if epochs_done > epochs:
        raise ValueError(
            f"fit: {path} has {epochs_done} epochs, more than the {epochs} asked for; "
            f"ask for {epochs_done} or more, or {AFRESH}."
        )
    return state


def _read(path: Path) -> Any:
    """What a file holds that `torch.save` wrote."""
    try:
        with ZipFile(path) as archive:
            unpacked_size = sum(member.file_size for member in archive.infolist())
        # torch packs nothing, so a file that unpacks to more than itself is none of ours, and may
        # be made to fill the memory.
        if unpacked_size < path.stat().st_size:
            return torch.load(path, weights_only=True)
    except Exception as error:  # whatever zipfile and pickle make of a damaged file
        raise ValueError(
            f"fit: {path} cannot be read as a checkpoint, it may be cut off; {AFRESH}."
        ) from error
    raise ValueError(
        f"fit: {path} cannot be read as a checkpoint, it unpacks to {unpacked_size:,} bytes; "
        f"{AFRESH}."
    )


def _differences(stored: dict[str, Any], identity: dict[str, str | None]) -> list[str]:
    """What is not as it was when the checkpoint was made, in words."""
    differences = []
    for name, value in identity.items():
        if stored.get(name) != value:
            differences.append(f"other {name}")
    return differences
