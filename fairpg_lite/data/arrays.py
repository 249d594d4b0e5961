"""The arrays behind a dataset: checked, gathered by query, told apart."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

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
