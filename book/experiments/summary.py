"""From stored cells to what people read: means over seeds, summary.md, figures (Part III)."""

import io
import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

from experiments.names import VARIANTS, place, reading, split_name
from experiments.pictures import palette_png
from fairpg_lite._files import write_whole
from fairpg_lite.figures import style
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
INTERVAL = "95 % interval (Student's t; none for one seed)"


class OverSeeds(NamedTuple):
    """Values over seeds: mean, standard deviation, and half the mean's 95 % interval."""

    mean: float
    sd: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.4f}" + ("" if math.isnan(self.half) else f" ± {self.half:.4f}")


def over_seeds(values: Sequence[float]) -> OverSeeds:
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

    >>> cell = {"method": "m", "lam": 0.0, "status": "done"}
    >>> cells = [cell | {"seed": s, "result": {"x": float(s)}} for s in range(3)]
    >>> row = summarise(cells)[0]
    >>> row["n"], row["x"].mean, row["x"].sd
    (3, 1.0, 1.0)
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
    cells: Cells, out: str | Path, *, columns: Mapping[str, str] = MAIN_COLUMNS, **about: str
) -> Path:
    """Write ``summary.md`` to ``out``: means over seeds, for people.

    ``columns`` names the numbers that it shows and their headings; those that no cell has are left
    out. ``about`` is that of `facts`.
    """
    cells = list(cells)
    rows = sorted(summarise(cells), key=lambda row: (place(row["method"]), row["lam"]))
    head = facts(cells, **about)
    head["time"] = f"{sum(cell['seconds'] for cell in cells):.0f} s in all cells together"
    lines = ["# Summary", "", *(f"- **{name}**: {text}" for name, text in head.items()), ""]
    lines += [f"Mean over seeds ± half the width of its {INTERVAL}.", ""]
    shown = [name for name in columns if any(name in row for row in rows)]
    titles = ["method", "λ", "n", *(columns[name] for name in shown)]
    for data, group in itertools.groupby(rows, lambda row: split_name(row["method"])[1]):
        lines += [f"## {VARIANTS.get(data, data)}", ""] if data else []
        texts = [
            [reading(row["method"]), f"{row['lam']:g}", str(row["n"])]
            + [str(row.get(name, "")) for name in shown]
            for row in group
        ]
        lines += [*markdown([titles, *texts], "--:"), ""]
    return write_whole(Path(out) / "summary.md", "\n".join(lines))


def markdown(rows: Sequence[Sequence[str]], rule: str = "---") -> list[str]:
    """The lines of a table, its head the first row; ``rule`` aligns all columns but the first."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|---" + f"|{rule}" * (len(rows[0]) - 1) + "|", *lines[1:]]


def facts(cells: Cells, command: str, data: str) -> dict[str, str]:
    """What a reader needs to know about the numbers, in words."""
    cells = list(cells)
    seeds = sorted({cell["seed"] for cell in cells})
    whole = seeds == list(range(len(seeds))) and len(seeds) > 1
    failed = sum(cell["status"] != "done" for cell in cells)
    versions = (
        ", ".join(f"{name} {number}" for name, number in sorted(cell["versions"].items()))
        for cell in cells
    )
    return {
        "data": data,
        "command": command,
        "seeds": f"0 to {seeds[-1]}" if whole else ", ".join(map(str, seeds)) or "none",
        "cells": f"{len(cells) - failed} finished, {failed} failed",
        "versions": "; ".join(dict.fromkeys(versions)) or "none",
        "commit": "; ".join(dict.fromkeys(cell["commit"] for cell in cells)) or "none",
    }


def provenance_line(cells: Cells, command: str) -> str:
    """One line below a figure: command, seeds, version and commit of the cells it shows.

    >>> cell = {"seed": 0, "status": "done", "commit": "8e38bcc", "versions": {"fairpg_lite": "1"}}
    >>> provenance_line([cell, cell | {"seed": 1}], "python -m experiments synthetic")
    'python -m experiments synthetic; seeds 0 to 1; fairpg_lite 1; commit 8e38bcc'
    """
    found = facts(cells, command, "")
    version = found["versions"] if ";" in found["versions"] else found["versions"].split(", ")[0]
    return f"{command}; seeds {found['seeds']}; {version}; commit {found['commit']}"


def write_figure(figure: Any, out: str | Path, caption: str) -> list[Path]:
    """Write ``figure.png`` and ``figure.svg`` to ``out``, with ``caption`` below the panels.

    The same cells give the same bytes: no date, no version, a fixed salt for the identifiers.
    """
    text = textwrap.fill(caption, int(figure.get_figwidth() * 16))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=8, color="#3A3F45")
    # Letters are drawn as shapes: what the figure says must also be there as text.
    about = {"Date": None, "Creator": None, "Description": caption}
    png, svg = io.BytesIO(), io.StringIO()
    with style():
        figure.savefig(png, format="png", dpi=150)
        figure.savefig(svg, format="svg", metadata=about)
    return [
        write_whole(Path(out) / "figure.png", palette_png(png.getvalue())),
        write_whole(Path(out) / "figure.svg", svg.getvalue()),
    ]
