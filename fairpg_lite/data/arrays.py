"""The arrays behind a dataset: checked, and made of queries, of a table or of other datasets."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairpg_lite.data.statistics import row_blocks

FIELDS = ("features", "relevance", "offsets", "groups", "query_ids", "document_ids", "documents")
PER_DOCUMENT = ("features", "relevance", "groups", "document_ids", "documents")
_TEXTS_GO = {
    "groups": "labels 0, 1, …; RankingDataset.from_pandas makes them of a column of texts",
    "document_ids": "whole numbers; names go into documents=",
    "query_ids": "whole numbers or texts",
}


def whole(name: str, values: Any) -> Tensor:
    """`values` as an int64 tensor, or an error that says where texts go."""
    try:
        numbers = torch.as_tensor(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"RankingDataset: {name} must be {_TEXTS_GO[name]}.") from error
    if numbers.is_floating_point() and not bool((numbers == numbers.round()).all()):
        raise ValueError(f"RankingDataset: {name} must be whole numbers.")
    return numbers.to(torch.int64)


def _tensor(name: str, values: Any) -> Tensor:
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError) as error:
        kind = getattr(values, "dtype", type(values).__name__)
        raise ValueError(
            f"RankingDataset: {name} cannot become a tensor (type {kind}); give float32 or float64."
        ) from error


def prepared(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataset, each of its type and on the features' device, and checked."""
    if hasattr(given["features"], "columns"):
        raise TypeError(
            f"RankingDataset: features is a {type(given['features']).__name__}; call "
            "RankingDataset.from_pandas(frame, query=..., relevance=...)."
        )
    features = _tensor("features", given["features"])
    if features.ndim != 2 or not features.is_floating_point():
        raise ValueError(
            f"RankingDataset: features has shape {tuple(features.shape)} and type "
            f"{features.dtype}; give a floating-point (N, d) tensor."
        )
    relevance = _tensor("relevance", given["relevance"]).to(features.device, features.dtype)
    offsets = torch.as_tensor(given["offsets"], dtype=torch.int64, device=features.device)
    fields = {**given, "features": features, "relevance": relevance, "offsets": offsets}
    ids = torch.arange(len(offsets) - 1) if given["query_ids"] is None else given["query_ids"]
    if not isinstance(ids, Tensor) and np.asarray(ids).dtype.kind in "UO":
        fields["query_ids"] = np.array(list(ids), dtype=object)
    else:
        fields["query_ids"] = whole("query_ids", ids).to(features.device)
    for name in ("groups", "document_ids"):
        if given[name] is not None:
            fields[name] = whole(name, given[name]).to(features.device)
    if given["documents"] is not None:
        fields["documents"] = list(given["documents"])
    check(fields)
    return fields


def rows_of(
    queries: Sequence[int] | Tensor, bounds: Tensor
) -> tuple[Tensor, slice | Tensor, Tensor]:
    """The chosen queries (by index or mask), their rows (a slice where it will do), and offsets."""
    chosen, count = torch.as_tensor(queries).cpu(), len(bounds) - 1
    if chosen.dtype == torch.bool:
        if chosen.shape != (count,):
            raise ValueError(
                f"RankingDataset.subset: the mask has shape {tuple(chosen.shape)}, "
                f"there are {count} queries."
            )
        chosen = chosen.nonzero()[:, 0]
    chosen = chosen.to(torch.int64)
    if len(chosen) and not (-count <= chosen.min() and chosen.max() < count):
        raise IndexError(f"RankingDataset.subset: a query outside 0 … {count - 1}.")
    chosen = torch.where(chosen < 0, chosen + count, chosen)
    lengths = bounds.diff()[chosen]
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    if not len(chosen):
        return chosen, slice(0, 0), offsets
    if bool((chosen.diff() == 1).all()):
        return chosen, slice(int(bounds[chosen[0]]), int(bounds[chosen[-1] + 1])), offsets
    shift = (bounds[chosen] - offsets[:-1]).repeat_interleave(lengths)
    return chosen, torch.arange(int(offsets[-1])) + shift, offsets


def digest(fields: Mapping[str, Any]) -> str:
    """SHA-256 of all fields, the tensors a bounded number of rows at a time."""
    found = hashlib.sha256()
    for name, values in fields.items():
        if isinstance(values, Tensor):
            found.update(f"{name} {values.dtype} {tuple(values.shape)};".encode())
            for block in row_blocks(values):
                flat = block.detach().cpu().contiguous().flatten()
                found.update(flat.view(torch.uint8).numpy().data)
        elif values is not None:
            found.update(f"{name} {json.dumps(list(values))};".encode())
    return found.hexdigest()


def pick(values: Any, rows: slice | Tensor) -> Any:
    """The rows of a tensor, an array or a list; None of None."""
    if values is None or isinstance(rows, slice):
        return None if values is None else values[rows]
    if isinstance(values, Tensor):
        return values[rows.to(values.device)]
    return (
        values[rows.numpy()]
        if isinstance(values, np.ndarray)
        else [values[i] for i in rows.tolist()]
    )


def check(fields: Mapping[str, Any]) -> None:
    """Raise an error if the arrays do not belong together."""
    features, relevance, offsets, groups, query_ids, _, documents = (fields[k] for k in FIELDS)
    n, shape = len(features), tuple(features.shape)
    for name in PER_DOCUMENT[1:]:
        values = fields[name]
        found = (n,) if values is None else tuple(getattr(values, "shape", (len(values),)))
        if found != (n,):
            raise ValueError(
                f"RankingDataset: {name} has shape {found}, features has {shape}; "
                f"give one {name} value per document."
            )
    steps = offsets.diff()
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0:
        raise ValueError("RankingDataset: offsets must be one-dimensional and begin with 0.")
    if offsets[-1] != n or (len(steps) and steps.min() < 1):
        raise ValueError(
            f"RankingDataset: offsets must rise to the number of documents ({n}), every query "
            f"with at least one document; they end at {int(offsets[-1])}, the smallest "
            f"step is {int(steps.min()) if len(steps) else 'absent'}."
        )
    if tuple(query_ids.shape) != tuple(steps.shape):
        raise ValueError(
            f"RankingDataset: query_ids has shape {tuple(query_ids.shape)}; "
            f"offsets define {len(steps)} queries."
        )
    for name, texts in (("query_ids", query_ids), ("documents", documents)):
        named = () if texts is None or isinstance(texts, Tensor) else texts
        if not all(isinstance(text, str) and "\n" not in text for text in named):
            raise TypeError(f"RankingDataset: {name} must be texts of one line each.")
    if n and not (relevance.min() >= 0 and torch.isfinite(relevance).all()):
        raise ValueError("RankingDataset: relevance must be finite and not negative.")
    if n and groups is not None and groups.min() < 0:
        raise ValueError("RankingDataset: groups must be labels 0, 1, …; one is negative.")


def of_queries(queries: Iterable[Sequence[Tensor | None]]) -> dict[str, Any]:
    """The arrays of `(features, relevance)` or `(features, relevance, groups)` of each query."""
    parts = [[torch.as_tensor(v) for v in query if v is not None] for query in queries]
    if not parts:
        raise ValueError("RankingDataset.from_queries: no query was given.")
    if len({len(part) for part in parts}) > 1:
        raise ValueError("RankingDataset.from_queries: some queries have groups, some do not.")
    for i, part in enumerate(parts):
        if len({len(values) for values in part}) > 1:
            named = zip(("features", "relevance", "groups"), part, strict=False)
            sizes = ", ".join(f"{name} {tuple(values.shape)}" for name, values in named)
            raise ValueError(
                f"RankingDataset.from_queries: query {i} has {sizes}; give one row of each "
                "per document."
            )
    offsets = torch.tensor([0, *(len(part[0]) for part in parts)]).cumsum(0)
    columns = (torch.cat(column) for column in zip(*parts, strict=True))
    return {
        **dict(zip(("features", "relevance", "groups"), columns, strict=False)),
        "offsets": offsets,
    }


def of_frame(
    frame: Any,
    query: str,
    relevance: str,
    features: Sequence[str] | None,
    group: str | None,
    document: str | None,
) -> tuple[dict[str, Any], list[Any]]:
    """The arrays of a table with a row per document, in float64, and the names of the groups."""
    if not hasattr(frame, "columns") and not hasattr(frame, "to_pandas"):
        raise TypeError(
            f"RankingDataset.from_pandas: frame is a {type(frame).__name__}; give a pandas "
            "DataFrame, or call RankingDataset.from_queries for tensors and load_letor for files."
        )
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    taken = [name for name in (query, relevance, group, document) if name is not None]
    columns = [c for c in frame.columns if c not in taken] if features is None else list(features)
    unknown = [name for name in (*taken, *columns) if name not in frame.columns]
    if unknown or not len(frame):
        problem = f"there is no column {unknown[0]!r}" if unknown else "there are no rows"
        raise ValueError(
            f"RankingDataset.from_pandas: {problem}; the columns are {', '.join(map(str, frame))}."
        )
    codes, ids = frame[query].factorize()
    order = np.argsort(codes, kind="stable")  # scattered queries are gathered
    for name in (query, group, document):
        if name is not None and frame[name].isna().any():
            raise ValueError(
                f"RankingDataset.from_pandas: column {name!r} is empty in row "
                f"{int(frame[name].isna().to_numpy().argmax())}."
            )
    labels, names = (None, []) if group is None else frame[group].factorize(sort=True)
    numbered = ids.dtype.kind in "iu"
    arrays = {
        "features": _numbers(frame, columns)[order],
        "relevance": _numbers(frame, [relevance])[order, 0],
        "offsets": torch.tensor([0, *np.bincount(codes)]).cumsum(0),
        "groups": None if labels is None else torch.from_numpy(labels[order].astype(np.int64)),
        "query_ids": torch.tensor(ids.to_list()) if numbered else [str(name) for name in ids],
        "document_ids": torch.from_numpy(order),
        "documents": None if document is None else [str(d) for d in frame[document].iloc[order]],
    }
    return arrays, list(getattr(names, "tolist", list)())


def _numbers(frame: Any, columns: list[str]) -> Tensor:
    """The columns as a float64 tensor (N, len(columns)); texts, NaN and infinity are refused."""
    values = np.empty((len(frame), len(columns)))
    for k, name in enumerate(columns):
        try:
            values[:, k] = frame[name].to_numpy()
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"RankingDataset.from_pandas: column {name!r} holds no numbers ({error}); name the "
                "columns to learn from with features=[...], or encode it (pandas.get_dummies)."
            ) from error
        wrong = ~np.isfinite(values[:, k])
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"RankingDataset.from_pandas: column {name!r} is {values[row, k]} in row {row}; "
                "fill or drop it first (DataFrame.fillna, DataFrame.dropna)."
            )
    return torch.from_numpy(values)


def joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The arrays of several datasets one after another; what some have, all must have."""
    if not parts:
        raise ValueError("RankingDataset.concat: no dataset was given.")
    widths = [part["features"].shape[1] for part in parts]
    if len(set(widths)) > 1:
        raise ValueError(
            f"RankingDataset.concat: the datasets have {', '.join(map(str, widths))} features; "
            "read them with the same n_features."
        )
    arrays: dict[str, Any] = {}
    for name in (*PER_DOCUMENT, "query_ids"):
        columns = [part[name] for part in parts]
        if len({type(column) for column in columns}) > 1:
            has = ", ".join("none" if c is None else type(c).__name__ for c in columns)
            raise ValueError(
                f"RankingDataset.concat: {name} must be of one kind in all datasets, here {has}; "
                f"give them alike, e.g. dataset.replace({name}=...)."
            )
        if isinstance(columns[0], Tensor):
            arrays[name] = torch.cat(columns)
        else:
            texts = [text for column in columns for text in ([] if column is None else column)]
            arrays[name] = texts if columns[0] is not None else None
    lengths = torch.cat([part["offsets"].diff() for part in parts])
    return {**arrays, "offsets": torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])}
