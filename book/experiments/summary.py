"""From stored cells to what people read: means over seeds, summary.md (Part III)."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

from experiments.names import VARIANTS, place, reading, split_name
from fairpg_lite._files import write_whole
from fairpg_lite.sweep import as_table

Cells = Iterable[Mapping[str, Any]]

#: What summary.md shows of the group-fairness experiments; table.csv has every run.
MAIN_COLUMNS = {
    "ndcg": "NDCG",
    "d_group": "D_group",
    "group_gap": "two-sided gap",
    "d_group_estimated": "D_group on estimates",
    "sorted_ndcg": "NDCG, sorted",
    "sorted_d_group": "D_group, sorted",
}
INTERVAL = "Mean over seeds ± half the width of its 95 % interval (Student's t; none for one seed)."


class OverSeeds(NamedTuple):
    """Values over seeds: mean, standard deviation, and half the mean's 95 % interval."""

    mean: float
    sd: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.4f}" + ("" if math.isnan(self.half) else f" ± {self.half:.4f}")


def over_seeds(values: Sequence[float] | np.ndarray) -> OverSeeds:
    """The one interval over seeds, Student's; one seed has no spread: nan.

    >>> found = over_seeds([0.0, 1.0, 2.0])
    >>> found.mean, found.sd, round(found.half, 3), str(found)
    (1.0, 1.0, 2.484, '1.0000 ± 2.4841')
    """
    array = np.asarray(values, float)
    n, mean = len(array), float(array.mean())
    if n < 2:
        return OverSeeds(mean, math.nan, math.nan)
    sd = float(array.std(ddof=1))
    return OverSeeds(mean, sd, float(t.ppf(0.975, n - 1)) * sd / math.sqrt(n))


def finished(cells: Cells) -> list[dict[str, Any]]:
    """The cells that ended with a result."""
    return [dict(cell) for cell in cells if cell["status"] == "done"]


def summarise(cells: Cells) -> list[dict[str, Any]]:
    """One row per method and lambda: ``method``, ``lam``, ``n`` seeds, and the `OverSeeds` of
    whatever is a number in all of its results.
    """
    rows = []
    table = as_table(finished(cells)).sort_values("seed").drop(columns="seed")
    for (method, lam), runs in table.groupby(["method", "lam"]):
        # `infer_objects` for what other methods lack.
        numbers = runs.infer_objects().select_dtypes("number").dropna(axis="columns")
        found = {name: over_seeds(numbers[name]) for name in numbers}
        rows.append({**found, "method": method, "lam": lam, "n": len(runs)})
    return rows


def write_summary(
    cells: Cells, out: Path, command: str, data: str, columns: Mapping[str, str] = MAIN_COLUMNS
) -> Path:
    """Write ``summary.md`` to ``out``: what was run, and means over seeds.

    ``columns`` are the numbers that it shows, if any cell has them, and their headings.
    """
    cells = list(cells)
    rows = sorted(summarise(cells), key=lambda row: (place(row["method"]), row["lam"]))
    shown = [name for name in columns if any(name in row for row in rows)]
    titles = ["method", "λ", "n", *(columns[name] for name in shown)]
    lines = ["# Summary", "", *_head(cells, command, data), "", INTERVAL, ""]
    for variant, group in itertools.groupby(rows, lambda row: split_name(row["method"])[1]):
        lines += [f"## {VARIANTS.get(variant, variant)}", ""] if variant else []
        lines += ["| " + " | ".join(titles) + " |", "|---" + "|--:" * (len(titles) - 1) + "|"]
        for row in group:
            texts = [reading(row["method"]), f"{row['lam']:g}", str(row["n"])]
            texts += [str(row.get(name, "")) for name in shown]
            lines.append("| " + " | ".join(texts) + " |")
        lines.append("")
    return write_whole(Path(out) / "summary.md", "\n".join(lines))


def _head(cells: Sequence[Mapping[str, Any]], command: str, data: str) -> list[str]:
    """What a reader needs to know about the numbers; a mixture of versions must not look whole."""
    seeds = sorted({cell["seed"] for cell in cells})
    whole = seeds == list(range(len(seeds))) and len(seeds) > 1
    failed = sum(cell["status"] != "done" for cell in cells)
    versions = (", ".join(" ".join(pair) for pair in sorted(c["versions"].items())) for c in cells)
    head = {
        "data": data,
        "command": command,
        "seeds": f"0 to {seeds[-1]}" if whole else ", ".join(map(str, seeds)),
        "cells": f"{len(cells) - failed} finished, {failed} failed",
        "versions": "; ".join(dict.fromkeys(versions)),
        "commit": "; ".join(dict.fromkeys(cell["commit"] for cell in cells)),
        "time": f"{sum(cell['seconds'] for cell in cells):.0f} s in all cells together",
    }
    return [f"- **{name}**: {text}" for name, text in head.items()]
