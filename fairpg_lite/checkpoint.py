"""Stopping and going on: everything that the next epoch depends on, in one file (chapter 7)."""

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

FORMAT = 1


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write ``state`` whole or not at all: a killed run leaves the previous file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    torch.save({"format": FORMAT, **state}, temporary)
    os.replace(temporary, path)


def load_checkpoint(path: Path, config: dict[str, Any], scorer: nn.Module) -> dict[str, Any]:
    """Read a checkpoint (tensors and plain values only) and see that it belongs to this run."""
    try:
        state = torch.load(path, weights_only=True)
    except Exception as error:
        raise ValueError(
            f"fit: {path} is not a readable checkpoint ({type(error).__name__}); "
            "delete it to start afresh."
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            f"fit: {path} is not a checkpoint of this version (format {FORMAT}); "
            "delete it to start afresh."
        )
    # A longer run may continue a shorter one; nothing else may differ.
    theirs = {**state["config"], "epochs": config["epochs"]}
    different = sorted(name for name in config if theirs.get(name) != config[name])
    if different:
        raise ValueError(
            f"fit: {path} was made with other settings ({', '.join(different)}); "
            "use the same ones, or another checkpoint file."
        )
    shapes = {name: value.shape for name, value in scorer.state_dict().items()}
    if shapes != {name: value.shape for name, value in state["scorer"].items()}:
        raise ValueError(f"fit: {path} holds another scorer than {type(scorer).__name__}.")
    return state
