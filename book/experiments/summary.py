"""From stored cells to a table: mean, spread and interval over seeds (chapters 9 to 13)."""

import io
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.names import problem_key, problem_rank, rank, reading, variant
from experiments.pictures import palette_png
from fairpg_lite._extras import require
from fairpg_lite._files import write_whole
from fairpg_lite.figures import style
from fairpg_lite.sweep import as_table

Cells = Iterable[Mapping[str, Any]]
Row = dict[str, Any]

#: What summary.md shows of the group-fairness experiments; table.csv has every run.
MAIN_COLUMNS = {
    "ndcg": "NDCG",
    "d_group": "D_group",
    "group_gap": "two-sided gap",
    "d_group_estimated": "D_group on estimates",
    "sorted_ndcg": "NDCG, sorted",
    "sorted_d_group": "D_group, sorted",
}


class OverSeeds(NamedTuple):
    """Values over seeds: mean, standard deviation, and half the mean's 95 % interval."""

    mean: float
    sd: float
    half: float


def over_seeds(values: Sequence[float]) -> OverSeeds:
    """The one interval over seeds, Student's; one seed has no spread: nan.

    >>> found = over_seeds([0.0, 1.0, 2.0])
    >>> found.mean, found.sd, round(found.half, 3)
    (1.0, 1.0, 2.484)
    """
    array = np.asarray(values, float)
    n, mean = len(array), float(array.mean())
    if n < 2:
        return OverSeeds(mean, math.nan, math.nan)
    deviation = float(array.std(ddof=1))
    quantile = float(require("scipy.stats", "experiments").t.ppf(0.975, n - 1))
    return OverSeeds(mean, deviation, quantile * deviation / math.sqrt(n))


def finished(cells: Cells) -> list[dict[str, Any]]:
    """The cells that ended with a result."""
    return [dict(cell) for cell in cells if cell["status"] == "done"]


def summarise(cells: Cells) -> list[Row]:
    """One row per method and lambda: ``method``, ``lam``, ``n`` seeds, and for every number ``x``
    in the results ``x_mean``, ``x_sd``, and ``x_low`` and ``x_high``, a 95 % interval for the mean.

    >>> cell = {"method": "m", "lam": 0.0, "status": "done"}
    >>> cells = [cell | {"seed": s, "result": {"x": float(s)}} for s in range(3)]
    >>> row = summarise(cells)[0]
    >>> row["n"], row["x_mean"], row["x_sd"], round(row["x_high"], 3)
    (3, 1.0, 1.0, 3.484)
    """
    table = as_table(finished(cells)).sort_values("seed")
    rows = []
    for (method, lam), group in table.groupby(["method", "lam"]):
        row: Row = {"method": method, "lam": lam, "n": len(group)}
        # What is a number in every run of this method; `infer_objects` for what others lack.
        numbers = group.infer_objects().drop(columns=["method", "lam", "seed"])
        numbers = numbers.select_dtypes("number").dropna(axis="columns")
        for name in sorted(numbers):
            mean, sd, half = over_seeds(numbers[name])
            row |= {f"{name}_mean": mean, f"{name}_sd": sd}
            row |= {f"{name}_low": mean - half, f"{name}_high": mean + half}
        rows.append(row)
    return rows


def write_summary(
    cells: Cells,
    out: str | Path,
    *,
    command: str,
    data: str,
    columns: Mapping[str, str] | None = None,
) -> Path:
    """Write ``summary.md`` to ``out``: means over seeds, for people.

    It begins with the data, the command, seeds, versions and commit. ``columns`` names the numbers
    that it shows and their headings, `MAIN_COLUMNS` by default; those that no cell has are left
    out.
    """
    records = [dict(cell) for cell in cells]
    seconds = sum(cell["seconds"] for cell in records)
    head = about(records, command, data)
    text = _as_markdown(summarise(records), head, seconds, columns or MAIN_COLUMNS)
    return write_whole(Path(out) / "summary.md", text)


def about(cells: list[dict[str, Any]], command: str, data: str) -> dict[str, str]:
    """What a reader needs to know about the numbers, in words."""

    def distinct(values: Iterable[str]) -> str:
        return "; ".join(dict.fromkeys(values)) or "none"

    seeds = sorted({cell["seed"] for cell in cells})
    whole = seeds == list(range(len(seeds))) and len(seeds) > 1
    failed = sum(cell["status"] != "done" for cell in cells)
    return {
        "data": data,
        "command": command,
        "seeds": f"0 to {seeds[-1]}" if whole else ", ".join(map(str, seeds)) or "none",
        "cells": f"{len(cells) - failed} finished, {failed} failed",
        "versions": distinct(
            ", ".join(f"{name} {number}" for name, number in sorted(cell["versions"].items()))
            for cell in cells
        ),
        "commit": distinct(cell["commit"] for cell in cells),
    }


def provenance_line(cells: Cells, command: str) -> str:
    """One line below a figure: command, seeds, version and commit of the cells it shows.

    Chapters 9 to 13 write it into their figures, so that a copied picture still says it.

    >>> cell = {"seed": 0, "status": "done", "commit": "8e38bcc", "versions": {"fairpg_lite": "1"}}
    >>> provenance_line([cell, cell | {"seed": 1}], "python -m experiments synthetic")
    'python -m experiments synthetic; seeds 0 to 1; fairpg_lite 1; commit 8e38bcc'
    """
    head = about([dict(cell) for cell in cells], command, "")
    version = head["versions"] if ";" in head["versions"] else head["versions"].split(", ")[0]
    return f"{command}; seeds {head['seeds']}; {version}; commit {head['commit']}"


def _as_markdown(
    rows: list[Row], about: Mapping[str, str], seconds: float, columns: Mapping[str, str]
) -> str:
    lines = ["# Summary", ""]
    lines += [f"- **{name}**: {value}" for name, value in about.items()]
    lines += [f"- **time**: {seconds:.0f} s in all cells together", ""]
    lines += [
        "Mean over seeds ± half the width of its 95 % interval (Student's t; none for one seed).",
        "",
    ]
    shown = {k: v for k, v in columns.items() if any(f"{k}_mean" in row for row in rows)}
    ordered = sorted(rows, key=lambda row: problem_rank(row["method"]))
    for key in dict.fromkeys(problem_key(row["method"]) for row in ordered):
        chosen = [row for row in rows if problem_key(row["method"]) == key]
        lines += [f"## {variant(chosen[0]['method'])}", ""] if key else []
        lines += [*_table(chosen, shown), ""]
    return "\n".join(lines)


def _table(rows: list[Row], shown: Mapping[str, str]) -> list[str]:
    """The lines of one Markdown table, the paper's method first."""
    lines = ["| " + " | ".join(["method", "λ", "n", *shown.values()]) + " |"]
    lines += ["|---|" + "--:|" * (2 + len(shown))]
    for row in sorted(rows, key=lambda r: (rank(r["method"]), r["method"], r["lam"])):
        start = [reading(row["method"]), f"{row['lam']:g}", str(row["n"])]
        lines += ["| " + " | ".join(start + [_entry(row, name) for name in shown]) + " |"]
    return lines


def _entry(row: Row, name: str) -> str:
    if f"{name}_mean" not in row:
        return ""
    mean, half = row[f"{name}_mean"], row[f"{name}_high"] - row[f"{name}_mean"]
    return f"{mean:.4f}" if math.isnan(half) else f"{mean:.4f} ± {half:.4f}"


def write_figure(figure: Any, out: str | Path, caption: str = "") -> list[Path]:
    """Write ``figure.png`` and ``figure.svg`` to ``out``, with ``caption`` below the panels.

    The same cells give the same bytes: no date, no version, a fixed salt for the identifiers.
    """
    require("matplotlib", "plots")
    paths = [Path(out) / "figure.png", Path(out) / "figure.svg"]
    if caption:
        wide = int(figure.get_figwidth() * 16)
        text = "\n".join(textwrap.wrap(caption, wide))
        figure.supxlabel(text, x=0.01, ha="left", fontsize=8, color="#3A3F45")
    # Letters are drawn as shapes: what the figure says must also be there as text.
    about = {"Date": None, "Creator": None, "Description": caption or None}
    with style():
        png, svg = io.BytesIO(), io.StringIO()
        figure.savefig(png, format="png", dpi=150)
        figure.savefig(svg, format="svg", metadata=about)
    write_whole(paths[0], palette_png(png.getvalue()))
    write_whole(paths[1], svg.getvalue())
    return paths
