"""The arrays behind a dataset: checked, made of queries, tables or other datasets, and rescaled."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from fairpg_lite._extras import require

PER_DOCUMENT = ("features", "relevance", "groups", "document_ids", "documents")
# Every field of a dataset, and what it should be given, in the words of an error.
FIELDS = {
    "features": "a floating-point (N, d) tensor; a DataFrame goes into RankingDataset.from_pandas",
    "relevance": "a finite number for each document, zero or more",
    "offsets": "whole numbers that begin with 0 and rise to the number of documents, so that every "
    "query has at least one document",
    "groups": "a label 0, 1, … for each document; RankingDataset.from_pandas makes them of texts",
    "query_ids": "a whole number or a text of one line for each query",
    "document_ids": "a whole number for each document; names go into documents=",
    "documents": "a text of one line for each document",
}
ROWS = 1 << 14  # documents handled at a time, so that statistics need no second copy


def prepared(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataset, each of its type and on the features' device, and checked."""
    fields: dict[str, Any] = {
        name: None if x is None else _converted(name, x) for name, x in given.items()
    }
    features, offsets = fields["features"], fields["offsets"]
    if features.ndim != 2 or not features.is_floating_point():
        _refuse("features", f"has shape {tuple(features.shape)} and type {features.dtype}")
    n, steps = len(features), offsets.diff() if offsets.ndim == 1 else offsets[:0]
    if offsets.ndim != 1 or offsets[:1].tolist() + offsets[-1:].tolist() != [0, n]:
        _refuse("offsets", f"has other ends than 0 and {n}, or another shape")
    if len(steps) and steps.min() < 1:
        _refuse("offsets", f"has a step of {int(steps.min())}")
    if fields["query_ids"] is None:
        fields["query_ids"] = torch.arange(len(steps))
    for name, values in fields.items():
        size = len(steps) if name == "query_ids" else n
        shape = (size,) if values is None else tuple(getattr(values, "shape", (len(values),)))
        if name not in ("features", "offsets") and shape != (size,):
            _refuse(name, f"has shape {shape} instead of ({size},)")
        if isinstance(values, Tensor):
            fields[name] = values.to(features.device)
    fields["relevance"] = relevance = fields["relevance"].to(features)
    if n and not (relevance.min() >= 0 and torch.isfinite(relevance).all()):
        _refuse("relevance", "is negative or not finite somewhere")
    if n and fields["groups"] is not None and fields["groups"].min() < 0:
        _refuse("groups", "is negative somewhere")
    return fields


def _refuse(name: str, problem: str) -> NoReturn:
    raise ValueError(f"RankingDataset: {name} {problem}; give {FIELDS[name]}.")


def _converted(name: str, values: Any) -> Any:
    """Names as a list, ids that are texts as a NumPy array, everything else as a tensor."""
    if name == "documents" or (name == "query_ids" and _texts(values)):
        if not all(isinstance(text, str) and "\n" not in text for text in values):
            _refuse(name, "holds something that is no text of one line")
        return list(values) if name == "documents" else np.array(list(values), dtype=object)
    try:
        numbers = torch.as_tensor(values)
    except (TypeError, ValueError):
        kind = getattr(values, "dtype", type(values).__name__)
        _refuse(name, f"cannot become a tensor (its type is {kind})")
    if name in ("features", "relevance"):
        return numbers
    if numbers.is_floating_point() and not bool((numbers == numbers.round()).all()):
        _refuse(name, "holds numbers that are not whole")
    return numbers.to(torch.int64)


def _texts(values: Any) -> bool:
    return not isinstance(values, Tensor) and np.asarray(values).dtype.kind in "UO"


def pick(values: Any, rows: slice | Tensor) -> Any:
    """The rows of a tensor, an array or a list; None of None."""
    if values is None or isinstance(rows, slice):
        return None if values is None else values[rows]
    if isinstance(values, Tensor):
        return values[rows.to(values.device)]
    return np.array(values, dtype=object)[rows.numpy()]


def digest(fields: Mapping[str, Any]) -> str:
    """SHA-256 of all fields, the tensors a bounded number of rows at a time."""
    found = hashlib.sha256()
    for name, values in fields.items():
        if isinstance(values, Tensor):
            found.update(f"{name} {values.dtype} {tuple(values.shape)};".encode())
            for block in values.split(ROWS):
                flat = block.detach().cpu().contiguous().flatten()
                found.update(flat.view(torch.uint8).numpy().data)
        elif values is not None:
            found.update(f"{name} {json.dumps(list(values))};".encode())
    return found.hexdigest()


def of_frame(
    frame: Any,
    roles: Mapping[str, str | None],
    features: Sequence[str] | None,
    dtype: torch.dtype,
) -> dict[str, Any]:
    """The arguments of a dataset from a table with a row per document; `roles` names columns."""
    where = "RankingDataset.from_pandas"
    if hasattr(frame, "to_pandas"):
        frame = frame.to_pandas()
    elif not hasattr(frame, "columns"):
        raise TypeError(
            f"{where}: frame is a {type(frame).__name__}; give a pandas DataFrame, or call "
            "RankingDataset.from_queries for tensors and load_letor for files."
        )
    query, relevance, group, document = roles.values()
    if features is None:
        features = [name for name in frame.columns if name not in roles.values()]
    texts, columns = [x for x in (query, group, document) if x is not None], [relevance, *features]
    unknown = [name for name in (*texts, *columns) if name not in frame.columns]
    if unknown or not len(frame):
        problem = f"there is no column {unknown[0]!r}" if unknown else "there are no rows"
        raise ValueError(f"{where}: {problem}; the columns are {', '.join(map(str, frame))}.")
    number = require("pandas", "experiments").to_numeric
    table = frame[columns].apply(number, errors="coerce")  # what is no number becomes NaN
    numbers = table.to_numpy(float, na_value=np.nan)
    if not np.isfinite(numbers).all():
        column, row = np.argwhere(~np.isfinite(numbers.T))[0]
        raise ValueError(
            f"{where}: column {columns[column]!r} is {frame[columns[column]].iloc[row]} in row "
            f"{row}; fill or drop what is missing (DataFrame.fillna, DataFrame.dropna), encode "
            "texts (pandas.get_dummies), or name the columns to learn from, features=[...]."
        )
    for name in texts:
        if (missing := frame[name].isna().to_numpy()).any():
            raise ValueError(f"{where}: column {name!r} is empty in row {missing.argmax()}.")
    ids, order, offsets = gathered(frame[query].tolist())
    labels, names = (None, []) if group is None else frame[group].factorize(sort=True)
    whole = frame[query].dtype.kind in "iu"
    return {
        "features": torch.from_numpy(numbers[order, 1:]).to(dtype),
        "relevance": numbers[order, 0],
        "offsets": offsets,
        "groups": None if labels is None else labels[order],
        "query_ids": ids if whole else [str(name) for name in ids],
        "document_ids": order,
        "documents": None if document is None else [str(d) for d in frame[document].iloc[order]],
        "info": {} if group is None else {"group_names": names.tolist()},
    }


def gathered(queries: Iterable[Any]) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """The queries in the order they first occur, the rows query by query, and the offsets."""
    places: dict[Any, int] = {}
    codes = np.array([places.setdefault(query, len(places)) for query in queries])
    order = np.argsort(codes, kind="stable")
    return list(places), order, np.concatenate([[0], np.bincount(codes).cumsum()])


def joined(datasets: Sequence[Any]) -> dict[str, Any]:
    """The arrays of several datasets one after another; what some have, all must have."""
    if not datasets:
        raise ValueError("RankingDataset.concat: no dataset was given.")
    arrays: dict[str, Any] = {}
    for name in (*PER_DOCUMENT, "query_ids"):
        columns = [getattr(dataset, name) for dataset in datasets]
        kinds = [f"{type(c).__name__} {[*getattr(c, 'shape', ())[1:]] or ''}" for c in columns]
        if len(set(kinds)) > 1:
            raise ValueError(
                f"RankingDataset.concat: {name} must be of one kind in all datasets, here "
                f"{', '.join(map(str.strip, kinds))}; read them with the same n_features, or give "
                f"them alike, e.g. dataset.replace({name}=...)."
            )
        if isinstance(columns[0], Tensor):
            arrays[name] = torch.cat(columns)
        elif columns[0] is not None:
            arrays[name] = [text for column in columns for text in column]
    lengths = torch.cat([dataset.lengths for dataset in datasets])
    return {**arrays, "offsets": torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])}


def minmax_per_query(features: Tensor, bounds: Sequence[int]) -> Tensor:
    """Features (N, d) to [0, 1] within each query; a feature constant in the query becomes 0."""
    scaled = torch.empty_like(features)
    for start, end in pairwise(bounds):
        low, high = features[start:end].aminmax(dim=0)
        # Halves first: high - low of two large finite numbers may overflow, the halves do not.
        span = high / 2 - low / 2
        span = torch.where(span > 0, span, torch.ones_like(span))
        scaled[start:end] = ((features[start:end] / 2 - low / 2) / span).clamp_(0.0, 1.0)
    return scaled


def scale_of(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and divisor (d,) of the columns of features (N, d), in float64 and two passes.

    The divisor is the population's standard deviation, or 1 where the column is constant.
    """
    if not len(features):
        raise ValueError("normalize: the dataset to fit on has no documents.")
    blocks, zero = features.split(ROWS), features.new_zeros(features.shape[1], dtype=torch.float64)
    mean = sum((block.double().sum(0) for block in blocks), zero) / len(features)
    squares = sum(((block.double() - mean).square_().sum(0) for block in blocks), zero)
    deviation = (squares / len(features)).sqrt()
    # Rounding leaves a constant column with a deviation of about 1e-16 of its size, not 0.
    return mean, torch.where(deviation <= 1e-12 * mean.abs(), 1.0, deviation)


def rescale(features: Tensor, mean: Tensor, divisor: Tensor) -> Tensor:
    """Features (N, d) less `mean (d,)`, over `divisor (d,)`, in the features' type."""
    if features.shape[1:] != mean.shape:
        raise ValueError(f"normalize: {features.shape[1]} features here, {len(mean)} in fitted_on.")
    scaled = torch.empty_like(features)
    for block, out in zip(features.split(ROWS), scaled.split(ROWS), strict=True):
        out.copy_((block.double() - mean) / divisor)
    return scaled
