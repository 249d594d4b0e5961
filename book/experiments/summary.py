"""From stored cells to what people read: names, means over seeds, summary.md (Part III)."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

from fairpg_lite._files import write_whole
from fairpg_lite.sweeps.running import as_table

Cells = Iterable[Mapping[str, Any]]

#: What people call a stored method, such as "deltr-reversed-clip4", in the order of the tables.
READINGS = {
    "fair_pg_rank-sample": "Fair-PG-Rank",
    "fair_pg_rank-exact": "Fair-PG-Rank, exact gradient",
    "post_processing-definition": "post-processing (definition)",
    "post_processing-authors": "post-processing (with the factor)",
    "deltr-one_sided": "DELTR (its own one-sided penalty)",
    "deltr-two_sided": "DELTR (two-sided, as in the text)",
    "deltr-reversed": "DELTR (authors' reversed side)",
    "uniform": "uniform policy",
    "fixed-0": "x₁ alone, not learned",
    "fixed-0.25": "x₁ and a quarter of x₂, not learned",
    "fair_pg_rank-linear-entropy0": "Fair-PG-Rank, linear, γ = 0",
    "fair_pg_rank-linear-entropy1": "Fair-PG-Rank, linear, γ = 1",
    "fair_pg_rank-neural-entropy0": "Fair-PG-Rank, network, γ = 0",
    "fair_pg_rank-neural-entropy1": "Fair-PG-Rank, network, γ = 1",
    "rank_svm": "RankSVM",
    "gbdt": "GBDT (regression)",
    "lambdamart": "LambdaMART",
}
#: The same for the data of the group-fairness experiments.
VARIANTS = {
    "clip5": "relevance clipped at 5 (text)",
    "clip4": "relevance clipped at 4 (authors' run)",
    "sex": "sex as recorded, same queries for every seed",
    "sex-redrawn": "sex as recorded, queries redrawn for every seed",
    "sex-text-redrawn": "sex as recorded, 20 attributes and 8:2 as in the text, queries redrawn",
    "age": "age 25 or younger, same queries for every seed",
}
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


class MissingCellsError(LookupError):
    """The cells that are asked for are not among those given."""


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


def split_name(name: str) -> tuple[str, str]:
    """The method's and the data's part of a stored name; there may be no data's part.

    >>> split_name("post_processing-authors-sex-redrawn"), split_name("rank_svm")
    (('post_processing-authors', 'sex-redrawn'), ('rank_svm', ''))
    """
    known = [key for key in READINGS if name == key or name.startswith(key + "-")]
    method = known[0] if known else name
    return method, name.removeprefix(method).lstrip("-")


def reading(name: str) -> str:
    """The method of a stored name in words, as figures and tables print it."""
    method, _ = split_name(name)
    return READINGS.get(method, method)


def place(name: str) -> tuple[int, str, int, str]:
    """A key to sort by: its data, then its method, each in the order above, unknown ones last."""
    method, data = split_name(name)
    variants, methods = [*VARIANTS, data], [*READINGS, method]
    return variants.index(data), data, methods.index(method), method


def finished(cells: Cells) -> list[dict[str, Any]]:
    """The cells that ended with a result."""
    return [dict(cell) for cell in cells if cell["status"] == "done"]


def by_seed(cells: Cells, method: str, lam: float) -> dict[int, Mapping[str, Any]]:
    """The results of a stored method at one lambda."""
    runs = [cell for cell in cells if (cell["method"], cell["lam"]) == (method, lam)]
    found = {cell["seed"]: cell["result"] for cell in runs if cell["status"] == "done"}
    if not found:
        raise MissingCellsError(f"no cells of {method} at λ = {lam:g}")
    return found


def summarise(cells: Cells) -> list[dict[str, Any]]:
    """A row per method and lambda: method, lam, n seeds, and `OverSeeds` of what is a number."""
    rows = []
    table = as_table(finished(cells)).sort_values("seed").drop(columns="seed")
    for (method, lam), runs in table.groupby(["method", "lam"]):
        # `infer_objects` for what other methods lack.
        numbers = runs.infer_objects().select_dtypes("number").dropna(axis="columns")
        found = {name: over_seeds(numbers[name]) for name in numbers}
        rows.append({**found, "method": method, "lam": lam, "n": len(runs)})
    return rows


def write_summary(
    cells: Cells, out: str | Path, columns: Mapping[str, str] = MAIN_COLUMNS, **about: str
) -> Path:
    """Write ``summary.md`` to ``out``: ``about``, then means over seeds of ``columns``."""
    cells = list(cells)
    rows = sorted(summarise(cells), key=lambda row: (place(row["method"]), row["lam"]))
    shown = [name for name in columns if any(name in row for row in rows)]
    failed = sum(cell["status"] != "done" for cell in cells)
    about["seeds"] = ", ".join(map(str, sorted({cell["seed"] for cell in cells})))
    about["cells"] = f"{len(cells) - failed} finished, {failed} failed"
    lines = ["# Summary", "", *(f"- **{name}**: {text}" for name, text in about.items()), ""]
    lines += [NOTE, ""]
    head = _row("method", "λ", "n", *(columns[name] for name in shown))
    for variant, group in itertools.groupby(rows, lambda row: split_name(row["method"])[1]):
        lines += [f"## {VARIANTS.get(variant, variant)}", ""] if variant else []
        lines += [head, "|---|--:|--:" + "|--:" * len(shown) + "|"]
        for row in group:
            own = (reading(row["method"]), f"{row['lam']:g}", row["n"])
            lines.append(_row(*own, *(row.get(name, "") for name in shown)))
        lines.append("")
    return write_whole(Path(out) / "summary.md", "\n".join(lines))


def _row(*texts: object) -> str:
    return "| " + " | ".join(map(str, texts)) + " |"
