"""A pandas table, a row for each document, as the arrays of a dataset; and the way back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fairpg_lite._extras import require
from fairpg_lite.data.gathering import gather

_WHERE = "RankingDataset.from_pandas"


def arrays_of_table(
    frame: Any,
    *,
    query: str,
    relevance: str,
    features: Sequence[str] | None,
    group: str | None,
    document: str | None,
    columns: Sequence[str],
    query_weight: str | None,
) -> dict[str, Any]:
    """Return the arguments of `RankingDataset` for the rows of `frame`, gathered by query."""
    if not hasattr(frame, "columns"):
        raise TypeError(f"{_WHERE}: frame is a {type(frame).__name__}; give a pandas DataFrame.")
    named = (query, relevance, group, document, query_weight, *columns)
    roles = [name for name in named if name is not None]
    if features is None:
        features = [name for name in frame.columns if name not in roles]
    _refuse_missing(frame, [*roles, *features])

    gathered = gather(frame[query].tolist())
    table = frame.iloc[gathered.rows]
    query_ids = gathered.ids
    if frame[query].dtype.kind not in "iu":
        query_ids = [str(query_id) for query_id in gathered.ids]
    arguments = {
        "features": torch.tensor(_numbers(table, features), dtype=torch.get_default_dtype()),
        "relevance": torch.tensor(_numbers(table, [relevance])[:, 0]),
        "offsets": gathered.offsets,
        "query_ids": query_ids,
        "document_ids": torch.from_numpy(gathered.rows),
    }
    if group is not None:
        labels, names = table[group].factorize(sort=True)
        arguments["groups"] = labels
        arguments["info"] = {"group_names": names.tolist()}
    if document is not None:
        arguments["documents"] = [str(name) for name in table[document]]
    if columns:
        values = _numbers(table, columns)
        arguments["columns"] = dict(zip(columns, values.T.copy(), strict=True))
    if query_weight is not None:
        arguments["query_weights"] = _one_per_query(table, query_weight, gathered.offsets)
    return arguments


def _one_per_query(table: Any, column: str, offsets: np.ndarray) -> np.ndarray:
    """Return the value (Q,) that all rows of a query share."""
    values = _numbers(table, [column])[:, 0]
    first: np.ndarray = values[offsets[:-1]]
    differs = values != np.repeat(first, np.diff(offsets))
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        raise ValueError(
            f"{_WHERE}: column {column!r} has {values[row]:g} beside another value in the same "
            "query; a query has one weight."
        )
    return first


def table_of_arrays(fields: Mapping[str, Any], info: Mapping[str, Any]) -> Any:
    """Return the DataFrame of the arrays of a dataset."""
    pandas = require("pandas", "experiments")
    lengths = fields["offsets"].diff().numpy(force=True)
    columns = {"query": np.repeat(_array(fields["query_ids"]), lengths)}
    if fields["documents"] is not None:
        columns["document"] = _array(fields["documents"])
    columns["relevance"] = _array(fields["relevance"])
    if fields["groups"] is not None:
        groups = _array(fields["groups"])
        names = info.get("group_names")
        columns["group"] = groups if names is None else np.asarray(names)[groups]
    features = _array(fields["features"])
    feature_names = info.get("feature_names", [])
    if len(feature_names) != features.shape[1]:
        feature_names = [f"feature_{number}" for number in range(1, features.shape[1] + 1)]
    columns |= zip(feature_names, features.T, strict=True)
    for name, values in (fields["columns"] or {}).items():
        if name in columns:
            raise ValueError(
                f"RankingDataset.to_pandas: the column {name!r} has the name of another column of "
                "the table; rename it."
            )
        columns[name] = _array(values)
    if fields["query_weights"] is not None:
        columns["query_weight"] = np.repeat(_array(fields["query_weights"]), lengths)
    index = None
    if fields["document_ids"] is not None:
        index = pandas.Index(_array(fields["document_ids"]), name="document_id")
    return pandas.DataFrame(columns, index=index)


def _array(values: Any) -> np.ndarray:
    """Return a NumPy array of a tensor or of texts."""
    if isinstance(values, torch.Tensor):
        return values.numpy(force=True)
    return np.asarray(values)


def _refuse_missing(frame: Any, columns: Sequence[str]) -> None:
    """Refuse a table without one of `columns`, without rows, or with a missing value in them."""
    for name in columns:
        if name not in frame.columns:
            raise ValueError(
                f"{_WHERE}: frame has no column {name!r}; its columns are {list(frame.columns)}."
            )
    if len(frame) == 0:
        raise ValueError(f"{_WHERE}: frame has no rows; give one for each document.")
    missing = frame[list(columns)].isna().to_numpy()
    if missing.any():
        row, place = np.argwhere(missing)[0]
        raise ValueError(
            f"{_WHERE}: the value of column {columns[place]!r} is missing in row {row}; fill or "
            "drop what is missing (DataFrame.fillna, DataFrame.dropna)."
        )


def _numbers(table: Any, columns: Sequence[str]) -> np.ndarray:
    """Return the values (N, d) of `columns` as float64."""
    try:
        values: np.ndarray = table[list(columns)].to_numpy(float)
    except (TypeError, ValueError) as error:
        name = next(name for name in columns if not _holds_numbers(table[name]))
        raise ValueError(
            f"{_WHERE}: column {name!r} does not hold numbers ({error}); name the columns of "
            "numbers in features=, or encode this one (pandas.get_dummies)."
        ) from error
    return values


def _holds_numbers(column: Any) -> bool:
    """Return whether every value of a column can be read as a number."""
    try:
        column.to_numpy(float)
    except (TypeError, ValueError):
        return False
    return True
