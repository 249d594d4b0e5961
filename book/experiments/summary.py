"""From stored cells to what people read: means over seeds, and summary.md (Part III)."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

from experiments.catalogue import identify, in_order
from experiments.cells import Cells, completed
from fairpg_lite.sweeps import as_table

#: What summary.md shows of the group-fairness experiments; table.csv has every run.
MAIN_COLUMNS = {
    "ndcg": "NDCG",
    "d_group": "D_group",
    "group_gap": "two-sided gap",
    "d_group_estimated": "D_group on estimates",
    "sorted_ndcg": "NDCG, sorted",
    "sorted_d_group": "D_group, sorted",
}
NOTE = "Mean over seeds ± half the width of its 95 % interval (Student's t; none for one seed)."


class OverSeeds(NamedTuple):
    """Values over seeds: mean, standard deviation, and half the mean's 95 % interval."""

    mean: float
    sd: float
    half: float

    def __str__(self) -> str:
        if math.isnan(self.half):
            return f"{self.mean:.4f}"
        return f"{self.mean:.4f} ± {self.half:.4f}"


def over_seeds(values: Sequence[float] | np.ndarray) -> OverSeeds:
    """The one interval over seeds, Student's.

    Args:
        values: One number for each seed ``(n,)``.

    Returns:
        Mean, deviation and half the interval; one seed has no spread, nan.

    >>> interval = over_seeds([0.0, 1.0, 2.0])
    >>> interval.mean, interval.sd, round(interval.half, 3)
    (1.0, 1.0, 2.484)
    >>> str(interval)
    '1.0000 ± 2.4841'
    """
    array = np.asarray(values, float)
    n = len(array)
    mean = float(array.mean())
    if n < 2:
        return OverSeeds(mean, math.nan, math.nan)
    sd = float(array.std(ddof=1))
    return OverSeeds(mean, sd, float(t.ppf(0.975, n - 1)) * sd / math.sqrt(n))


def summarise(cells: Cells) -> list[dict[str, Any]]:
    """Means over seeds of everything that is a number.

    Args:
        cells: Stored cells; those that failed are left out.

    Returns:
        A row for each experiment and lambda with experiment, lam, n seeds, and `OverSeeds` by name.
    """
    table = as_table(completed(cells)).sort_values("seed").drop(columns="seed")
    rows = []
    for (experiment, lam), runs in table.groupby(["experiment", "lam"]):
        # `infer_objects` for what other experiments lack.
        numbers = runs.infer_objects().select_dtypes("number").dropna(axis="columns")
        row: dict[str, Any] = {name: over_seeds(numbers[name]) for name in numbers}
        row |= {"experiment": experiment, "lam": lam, "n": len(runs)}
        rows.append(row)
    return rows


def write_summary(
    cells: Cells,
    out: str | Path,
    about: Mapping[str, str],
    columns: Mapping[str, str] = MAIN_COLUMNS,
) -> Path:
    """Write means over seeds as a page for people.

    Args:
        cells: Stored cells, failed ones too: they are counted.
        out: The directory.
        about: What the head of the page says, by name, such as the command and the data.
        columns: The numbers to show, and their headings.

    Returns:
        The path of ``summary.md``.
    """
    cells = list(cells)
    rows = sorted(summarise(cells), key=lambda row: (in_order(row["experiment"]), row["lam"]))
    shown = [name for name in columns if any(name in row for row in rows)]
    seeds = sorted({cell["seed"] for cell in cells})
    n_failed = sum(cell["status"] != "done" for cell in cells)
    head = {
        **about,
        "seeds": ", ".join(str(seed) for seed in seeds),
        "cells": f"{len(cells) - n_failed} finished, {n_failed} failed",
    }
    lines = ["# Summary", ""]
    lines += [f"- **{name}**: {text}" for name, text in head.items()]
    lines += ["", NOTE, ""]
    for variant, variant_rows in itertools.groupby(rows, _variant_label):
        if variant:
            lines += [f"## {variant}", ""]
        lines.append(_table_row("method", "λ", "n", *(columns[name] for name in shown)))
        lines.append("|---|--:|--:" + "|--:" * len(shown) + "|")
        for row in variant_rows:
            label = identify(row["experiment"]).method.label
            numbers = [row.get(name, "") for name in shown]
            lines.append(_table_row(label, f"{row['lam']:g}", row["n"], *numbers))
        lines.append("")
    path = Path(out) / "summary.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _variant_label(row: Mapping[str, Any]) -> str:
    """What a table calls the data of a row; nothing where they have one version only."""
    variant = identify(row["experiment"]).variant
    return "" if variant is None else variant.label


def _table_row(*texts: object) -> str:
    return "| " + " | ".join(str(text) for text in texts) + " |"
