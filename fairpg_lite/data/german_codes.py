"""The code table of german.data: which column is what, and how it becomes features.

Column meanings are those of the file's documentation (Statlog German Credit, UCI). The levels
are those that occur in the file: A47 (purpose "vacation") and A95 ("female single") do not.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Column(NamedTuple):
    """One attribute: its place in the file, and its levels, or None if it is a number."""

    name: str
    place: int
    levels: dict[str, str] | None = None


def _codes(prefix: str, *suffixes: int) -> dict[str, str]:
    return {f"{prefix}{suffix}": f"{prefix}{suffix}" for suffix in suffixes}


# All 20, in the file's order: 7 numbers, 13 categories with 54 levels, hence 61 features.
TWENTY = (
    Column("checking account", 0, _codes("A1", 1, 2, 3, 4)),
    Column("duration", 1),
    Column("credit history", 2, _codes("A3", 0, 1, 2, 3, 4)),
    Column("purpose", 3, _codes("A4", 0, 1, 2, 3, 4, 5, 6, 8, 9, 10)),
    Column("credit amount", 4),
    Column("savings", 5, _codes("A6", 1, 2, 3, 4, 5)),
    Column("employment since", 6, _codes("A7", 1, 2, 3, 4, 5)),
    Column("instalment rate", 7),
    Column("personal status and sex", 8, _codes("A9", 1, 2, 3, 4)),
    Column("other debtors", 9, _codes("A10", 1, 2, 3)),
    Column("residence since", 10),
    Column("property", 11, _codes("A12", 1, 2, 3, 4)),
    Column("age", 12),
    Column("other instalments", 13, _codes("A14", 1, 2, 3)),
    Column("housing", 14, _codes("A15", 1, 2, 3)),
    Column("existing credits", 15),
    Column("job", 16, _codes("A17", 1, 2, 3, 4)),
    Column("people liable", 17),
    Column("telephone", 18, _codes("A19", 1, 2)),
    Column("foreign worker", 19, _codes("A20", 1, 2)),
)

# The nine of the re-release that the authors used, in the order of their feature matrix:
# 3 numbers and 26 levels (sorted by name), 29 features. Cars new and used are one purpose there,
# so are education and retraining; its "NA" is the file's "no account" or "unknown".
NINE = (
    Column("age", 12),
    Column("credit amount", 4),
    Column("duration", 1),
    Column("sex", 8, {"A92": "female", "A91": "male", "A93": "male", "A94": "male"}),
    Column("job", 16, {"A171": "0", "A172": "1", "A173": "2", "A174": "3"}),
    Column("housing", 14, {"A153": "free", "A152": "own", "A151": "rent"}),
    Column(
        "savings",
        5,
        {"A65": "NA", "A61": "little", "A62": "moderate", "A63": "quite rich", "A64": "rich"},
    ),
    Column("checking account", 0, {"A14": "NA", "A11": "little", "A12": "moderate", "A13": "rich"}),
    Column(
        "purpose",
        3,
        {
            "A49": "business",
            "A40": "car",
            "A41": "car",
            "A44": "domestic appliances",
            "A46": "education",
            "A48": "education",
            "A42": "furniture/equipment",
            "A43": "radio/TV",
            "A45": "repairs",
            "A410": "vacation/others",
        },
    ),
)


def encode(
    rows: Sequence[Sequence[str]],
    columns: Sequence[Column],
    scale: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, list[str]]:
    """Features (len(rows), d) and their names: numbers through `scale`, categories one-hot."""
    blocks, names = [], []
    for column in columns:
        values = [row[column.place] for row in rows]
        if column.levels is None:
            blocks.append(scale(np.array(values, dtype=np.float64))[:, None])
            names.append(column.name)
        else:
            levels = list(dict.fromkeys(column.levels.values()))
            meant = [levels.index(column.levels[value]) for value in values]
            blocks.append(np.eye(len(levels))[meant])
            names += [f"{column.name}={level}" for level in levels]
    return np.concatenate(blocks, axis=1), names
