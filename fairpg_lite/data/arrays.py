"""The arrays behind a dataset: checked, rescaled, told apart, and stored in one file."""

import copy
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairpg_lite._files import whole_file

# Every field of a dataset, and what it must be, in the words of an error.
FIELDS = {
    "features": "a floating-point (N, d) tensor; a DataFrame goes into RankingDataset.from_pandas",
    "relevance": "a finite number for each document, zero or more",
    "offsets": "whole numbers that begin with 0 and rise to the number of documents",
    "groups": "a label 0, 1, … for each document; RankingDataset.from_pandas makes them of texts",
    "query_ids": "a whole number or a text of one line for each query",
    "document_ids": "a whole number for each document; names go into documents=",
    "documents": "a text of one line for each document",
}
FORMAT = "fairpg_lite.RankingDataset 4"


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataset as tensors on one device, texts apart; a wrong one is refused."""
    fields: dict[str, Any] = {name: _converted(name, values) for name, values in given.items()}
    features, offsets = fields["features"], fields["offsets"]

    def demand(name: str, holds: Any) -> None:
        if not holds:
            shapes = f"{tuple(fields[name].shape)}, features {tuple(features.shape)}"
            raise ValueError(f"RankingDataset: {name} has shape {shapes}; give {FIELDS[name]}.")

    demand("features", features.ndim == 2 and features.is_floating_point())
    demand("offsets", offsets.ndim == 1 and len(offsets) > 0 and (offsets.diff() > 0).all())
    demand("offsets", offsets[0] == 0 and offsets[-1] == len(features))
    if fields["query_ids"] is None:
        fields["query_ids"] = torch.arange(len(offsets) - 1)
    for name, values in fields.items():
        size = len(offsets) - 1 if name == "query_ids" else len(features)
        if name not in ("features", "offsets"):
            demand(name, values is None or values.shape == (size,))
        if isinstance(values, Tensor):
            fields[name] = values.to(features.device)
    fields["relevance"] = relevance = fields["relevance"].to(features)
    demand("relevance", (relevance >= 0).all() and relevance.isfinite().all())
    demand("groups", fields["groups"] is None or (fields["groups"] >= 0).all())
    return fields


def _converted(name: str, values: Any) -> Any:
    """Names, and ids that are texts, as a NumPy array; everything else as a tensor."""
    if values is None:
        return None
    try:
        texts = not isinstance(values, Tensor) and np.asarray(values).dtype.kind in "UO"
        if name == "documents" or (name == "query_ids" and texts):
            if all(isinstance(text, str) and "\n" not in text for text in values):
                return np.array(list(values), dtype=object)
        else:
            numbers = torch.as_tensor(values)
            if name in ("features", "relevance"):
                return numbers
            if bool((numbers == numbers.to(torch.int64)).all()):
                return numbers.to(torch.int64)
        problem = "holds something else"
    except (TypeError, ValueError) as error:
        problem = f"cannot become a tensor ({error})"
    raise ValueError(f"RankingDataset: {name} {problem}; give {FIELDS[name]}.")


def gathered(queries: Iterable[Any]) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """The queries in the order they first occur, the rows query by query, and the offsets."""
    places: dict[Any, int] = {}
    codes = np.array([places.setdefault(query, len(places)) for query in queries])
    order = np.argsort(codes, kind="stable")
    return list(places), order, np.concatenate([[0], np.bincount(codes).cumsum()])


def minmax_per_query(features: Tensor, bounds: Sequence[int]) -> Tensor:
    """Features (N, d) to [0, 1] within each query; a feature constant in the query becomes 0."""
    scaled = features / 2  # the difference of two large finite numbers may overflow, of halves not
    for start, end in pairwise(bounds):
        low, high = scaled[start:end].aminmax(dim=0)
        span = torch.where(high > low, high - low, 1.0)
        scaled[start:end] = ((scaled[start:end] - low) / span).clamp_(0.0, 1.0)
    return scaled


def digest(fields: Mapping[str, Any]) -> str:
    """SHA-256 of all fields."""
    found = hashlib.sha256()
    for name, values in fields.items():
        if isinstance(values, Tensor):
            array = np.ascontiguousarray(values.detach().cpu().numpy())
            found.update(f"{name} {array.dtype} {array.shape};".encode())
            found.update(array.data)
        elif values is not None:
            found.update(f"{name} {json.dumps(list(values))};".encode())
    return found.hexdigest()


def own_memory(values: Any) -> Any:
    """A copy of a view: torch stores all the memory behind it, be it a thousand times as much."""
    view = isinstance(values, Tensor) and values.untyped_storage().nbytes() > values.nbytes
    return values.clone() if view else values


def save_fields(fields: Mapping[str, Any], info: dict[str, Any], path: str | Path) -> None:
    """Write a dataset to the file `path`, whole or not at all."""
    plain = {
        name: values.tolist() if isinstance(values, np.ndarray) else own_memory(values)
        for name, values in fields.items()
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        try:
            torch.save([FORMAT, digest({**fields, "features": None}), plain, info], file)
        except RuntimeError as error:  # what torch makes of a full disk
            raise error.__context__ or error from None


def load_fields(path: str | Path) -> dict[str, Any]:
    """What `save_fields` wrote; the features are memory-mapped, and all else is verified."""
    inode = os.stat(path).st_ino
    try:
        # Plain values and tensors only: weights_only runs no code of the file.
        made_by, expected, fields, info = torch.load(path, "cpu", mmap=True, weights_only=True)
        if made_by != FORMAT or digest({**fields, "features": None}) != expected:
            raise ValueError("its format or its checksum is another")
        rest = {name: copy.deepcopy(x) for name, x in fields.items() if name != "features"}
        return {"features": fields["features"], **rest, "info": info}
    except Exception as error:
        if os.stat(path).st_ino != inode:  # replaced meanwhile: torch opens a file twice
            return load_fields(path)
        raise ValueError(
            f"RankingDataset.load: {path} is damaged, or not what RankingDataset.save of this "
            f"version wrote ({type(error).__name__}: {error})."
        ) from error
