"""What the arrays of a dataset must be: each one converted, checked, or refused with the reason."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

# The arrays of a dataset, in the order in which its fingerprint reads them.
FIELDS = (
    "features",
    "relevance",
    "offsets",
    "groups",
    "query_ids",
    "document_ids",
    "documents",
    "columns",
    "query_weights",
)


def checked(fields: Mapping[str, Any], where: str = "RankingDataset") -> dict[str, Any]:
    """Return the arrays named in `FIELDS`, as tensors on the device of the features.

    Texts (`documents`, and query ids that are texts) become NumPy arrays. The first array that is
    wrong is refused with a `ValueError` that begins with `where`.
    """
    features = _features(where, fields["features"])
    n_documents = len(features)
    offsets = _offsets(where, fields["offsets"], n_documents)
    arrays = {
        "features": features,
        "relevance": _relevance(where, fields["relevance"], features),
        "offsets": offsets,
        "groups": _groups(where, fields["groups"], n_documents),
        "query_ids": _query_ids(where, fields["query_ids"], len(offsets) - 1),
        "document_ids": _document_ids(where, fields["document_ids"], n_documents),
        "documents": _documents(where, fields["documents"], n_documents),
        "columns": _columns(where, fields["columns"], features),
        "query_weights": _query_weights(where, fields["query_weights"], features, len(offsets) - 1),
    }
    for name, values in arrays.items():
        if isinstance(values, Tensor):
            arrays[name] = values.to(features.device)
    return arrays


def _features(where: str, values: Any) -> Tensor:
    """Return the features, a floating-point tensor (N, d)."""
    if hasattr(values, "columns"):
        raise ValueError(
            f"{where}: features is a {type(values).__name__}; "
            "RankingDataset.from_pandas makes a dataset of a DataFrame."
        )
    features = _tensor(where, "features", values)
    if features.ndim != 2:
        raise ValueError(
            f"{where}: features has shape {tuple(features.shape)}; "
            "give a tensor of shape (N, d), a row for each document."
        )
    if not features.is_floating_point():
        raise ValueError(
            f"{where}: features is {features.dtype}; give a floating-point tensor, "
            "torch.as_tensor(features).float()."
        )
    return features


def _offsets(where: str, values: Any, n_documents: int) -> Tensor:
    """Return the offsets, whole numbers (Q + 1,) that rise from 0 to the number of documents."""
    offsets = _whole_numbers(where, "offsets", values, "give whole numbers, where queries begin")
    if offsets.ndim != 1:
        raise ValueError(
            f"{where}: offsets has shape {tuple(offsets.shape)}; "
            "give a list: 0, then the end of each query."
        )
    if len(offsets) == 0:
        raise ValueError(f"{where}: offsets is empty; give 0, then the end of each query.")
    if offsets[0] != 0:
        raise ValueError(f"{where}: offsets[0] is {int(offsets[0])}; offsets begin with 0.")
    lengths = offsets.diff()
    if (lengths <= 0).any():
        query = int((lengths <= 0).nonzero()[0])
        raise ValueError(
            f"{where}: offsets[{query + 1}] is {int(offsets[query + 1])}, after "
            f"{int(offsets[query])}; offsets must rise, a query has one document or more."
        )
    if offsets[-1] != n_documents:
        raise ValueError(
            f"{where}: offsets ends with {int(offsets[-1])}, and features has {n_documents} rows; "
            "the last offset is the number of documents."
        )
    return offsets


def _relevance(where: str, values: Any, features: Tensor) -> Tensor:
    """Return the relevance (N,), finite and not negative, in the dtype of the features."""
    numbers = _tensor(where, "relevance", values)
    _one_per_document(where, "relevance", tuple(numbers.shape), len(features))
    relevance = numbers.to(features)
    unbounded = ~relevance.isfinite()
    if unbounded.any():
        i = int(unbounded.nonzero()[0])
        number = float(numbers[i])
        if np.isfinite(number):
            raise ValueError(
                f"{where}: relevance[{i}] is {number:g}, which {features.dtype}, the dtype of "
                "features, cannot hold; give features in a wider dtype, or smaller grades."
            )
        raise ValueError(f"{where}: relevance[{i}] is {number:g}; relevance must be finite.")
    negative = relevance < 0
    if negative.any():
        i = int(negative.nonzero()[0])
        raise ValueError(
            f"{where}: relevance[{i}] is {float(numbers[i]):g}; relevance must be zero or more."
        )
    return relevance


def _groups(where: str, values: Any, n_documents: int) -> Tensor | None:
    """Return the group labels (N,), whole numbers from 0 on."""
    if values is None:
        return None
    if _holds_texts(values):
        raise ValueError(
            f"{where}: groups holds texts; give labels 0, 1, … "
            "(RankingDataset.from_pandas makes them of a column of texts)."
        )
    groups = _whole_numbers(where, "groups", values, "give a label 0, 1, … for each document")
    _one_per_document(where, "groups", tuple(groups.shape), n_documents)
    negative = groups < 0
    if negative.any():
        i = int(negative.nonzero()[0])
        raise ValueError(f"{where}: groups[{i}] is {int(groups[i])}; labels are 0, 1, …")
    return groups


def _query_ids(where: str, values: Any, n_queries: int) -> Any:
    """Return the ids of queries (Q,): a tensor of whole numbers, or a NumPy array of texts."""
    if values is None:
        return torch.arange(n_queries)
    if _holds_texts(values):
        ids: Any = _texts(where, "query_ids", values, "give whole numbers or texts")
    else:
        ids = _whole_numbers(where, "query_ids", values, "give whole numbers or texts")
    if ids.shape != (n_queries,):
        raise ValueError(
            f"{where}: query_ids has shape {tuple(ids.shape)}, and offsets make {n_queries} "
            "queries; give one id for each query."
        )
    return ids


def _document_ids(where: str, values: Any, n_documents: int) -> Tensor | None:
    """Return the ids of documents (N,), whole numbers."""
    if values is None:
        return None
    if _holds_texts(values):
        raise ValueError(
            f"{where}: document_ids holds texts; give whole numbers, names go into documents=."
        )
    ids = _whole_numbers(where, "document_ids", values, "give whole numbers")
    _one_per_document(where, "document_ids", tuple(ids.shape), n_documents)
    return ids


def _documents(where: str, values: Any, n_documents: int) -> Any:
    """Return the names of documents, a NumPy array (N,) of texts."""
    if values is None:
        return None
    names = _texts(where, "documents", values, 'give a text for each document, "" for none')
    _one_per_document(where, "documents", names.shape, n_documents)
    return names


def _columns(where: str, values: Any, features: Tensor) -> dict[str, Tensor] | None:
    """Return the named columns, each (N,) and finite, floats in the dtype of the features."""
    if values is None:
        return None
    if not isinstance(values, Mapping):
        raise ValueError(
            f"{where}: columns is a {type(values).__name__}; give a mapping of names to one value "
            'for each document, {"merit": ...}.'
        )
    columns = {}
    for name, column in values.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"{where}: columns has the name {name!r}; name columns by texts.")
        numbers = _tensor(where, f"columns[{name!r}]", column)
        _one_per_document(where, f"columns[{name!r}]", tuple(numbers.shape), len(features))
        numbers = numbers.to(features.device)
        if numbers.is_floating_point():
            numbers = numbers.to(features.dtype)
        unbounded = ~numbers.isfinite()
        if unbounded.any():
            i = int(unbounded.nonzero()[0])
            raise ValueError(
                f"{where}: columns[{name!r}][{i}] is {float(numbers[i]):g}; it must be finite."
            )
        columns[name] = numbers
    return columns or None


def _query_weights(where: str, values: Any, features: Tensor, n_queries: int) -> Tensor | None:
    """Return the weights of queries (Q,), finite, not negative, and not all zero."""
    if values is None:
        return None
    weights = _tensor(where, "query_weights", values).to(features)
    if weights.shape != (n_queries,):
        raise ValueError(
            f"{where}: query_weights has shape {tuple(weights.shape)}, and offsets make "
            f"{n_queries} queries; give one weight for each query."
        )
    wrong = ~weights.isfinite() | (weights < 0)
    if wrong.any():
        i = int(wrong.nonzero()[0])
        raise ValueError(
            f"{where}: query_weights[{i}] is {float(weights[i]):g}; a weight is finite, zero or "
            "more."
        )
    if n_queries and not (weights > 0).any():
        raise ValueError(f"{where}: query_weights are all zero; let one query count at least.")
    return weights


def _tensor(where: str, name: str, values: Any) -> Tensor:
    """Return `values` as a tensor."""
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(
            f"{where}: {name} cannot become a tensor ({error}); give a tensor, a NumPy array or "
            "a list of numbers."
        ) from error


def _whole_numbers(where: str, name: str, values: Any, remedy: str) -> Tensor:
    """Return `values` as a tensor of 64-bit integers."""
    numbers = _tensor(where, name, values)
    whole = numbers.to(torch.int64)
    differs = numbers != whole
    if differs.any():
        place = differs.nonzero()[0].tolist()
        raise ValueError(f"{where}: {name}{place} is {numbers[differs][0].item()}; {remedy}.")
    return whole


def _texts(where: str, name: str, values: Any, remedy: str) -> np.ndarray:
    """Return `values` as a NumPy array of texts of one line."""
    try:
        texts = list(values)
    except TypeError as error:
        raise ValueError(f"{where}: {name} is {values!r}; {remedy}.") from error
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{where}: {name}[{i}] is {text!r}; {remedy}.")
        if "\n" in text:
            raise ValueError(
                f"{where}: {name}[{i}] is {text!r}, which has a line break; give texts of one line."
            )
    return np.array(texts, dtype=object)


def _holds_texts(values: Any) -> bool:
    """Return whether NumPy takes `values` for texts, or for a mixture that has some."""
    if isinstance(values, Tensor):
        return False
    try:
        return np.asarray(values).dtype.kind in "UO"
    except (TypeError, ValueError):  # lists of several lengths: refused as no tensor
        return False


def _one_per_document(where: str, name: str, shape: tuple[int, ...], n_documents: int) -> None:
    """Refuse an array that has not one entry for each document."""
    if shape != (n_documents,):
        raise ValueError(
            f"{where}: {name} has shape {shape}, and features has {n_documents} rows; "
            "give one entry for each document."
        )
