"""Table 1 and Figure 2 of the paper from stored cells (chapters 10 and 11).

The paper's published figures are constants here, shown beside ours and never mixed with them.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from fairpg_lite.figures import PALETTE, matplotlib_module, style

Cells = Iterable[Mapping[str, Any]]

#: NDCG@10 and ERR as published: Table 1 of Singh & Joachims (NeurIPS 2019), on Yahoo Set 1.
#: The first two are quoted there from Chapelle & Chang (2011). One unseeded run each.
PAPER_TABLE_1: dict[str, tuple[float, float]] = {
    "RankSVM": (0.75924, 0.43680),
    "GBDT": (0.79013, 0.46201),
    "PG-Rank (linear)": (0.76145, 0.44988),
    "PG-Rank (neural)": (0.77082, 0.45440),
}
PAPER_SOURCE = "published: Singh & Joachims 2019, Table 1, on Yahoo Set 1"

_METHODS = {"RankSVM": "RankSVM", "gbdt": "GBDT", "lambdamart": "LambdaMART"}


def finished(cells: Cells) -> list[Mapping[str, Any]]:
    return [cell for cell in cells if cell["status"] == "done"]


def data_of(cells: Cells) -> str:
    """The sentence that names the data of these cells; several if they are of several data."""
    sentences = {cell["result"]["data"]: None for cell in finished(cells)}
    return " ".join(sentences) or "No cell is finished."


def paper_name(cell: Mapping[str, Any]) -> str:
    """A method as the paper's Table 1 calls it."""
    if cell["method"].startswith("fair_pg_rank"):
        return f"PG-Rank ({cell['config']['model']})"
    return {"rank_svm": "RankSVM", "gbdt": "GBDT", "lambdamart": "LambdaMART"}[cell["method"]]


def table(cells: Cells, *, paper: bool = True) -> list[dict[str, Any]]:
    """Table 1: one row per method, lam = 0, the most probable ranking on the test queries.

    ``ndcg_at_10`` and ``err`` are means over ``seeds`` seeds, ``…_sd`` their standard deviations
    (nan for one). ``paper_ndcg_at_10`` and ``paper_err`` are the published figures on Yahoo's data
    (None where there is none); ``paper=False`` leaves them out.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for cell in finished(cells):
        if cell["lam"] == 0:
            groups.setdefault(cell["method"], []).append(cell)
    rows = []
    for group in groups.values():
        name = paper_name(group[0])
        row = {"method": name, "entropy": group[0]["config"].get("entropy"), "seeds": len(group)}
        for figure in ("ndcg_at_10", "err"):
            values = [cell["result"][f"test_{figure}"] for cell in group]
            row[figure] = statistics.fmean(values)
            row[f"{figure}_sd"] = statistics.stdev(values) if len(values) > 1 else math.nan
        if paper:
            published = PAPER_TABLE_1.get(name, (None, None))
            row["paper_ndcg_at_10"], row["paper_err"] = published
        rows.append({**row, "data": data_of(group)})
    return sorted(rows, key=_table_order)


def _table_order(row: dict[str, Any]) -> tuple[int, float]:
    order = [*PAPER_TABLE_1, "LambdaMART"]
    return order.index(row["method"]), -(row["entropy"] or 0.0)


def table_text(rows: list[dict[str, Any]]) -> str:
    """The table in Markdown, with the data's name and the source of the published column."""
    beside = any("paper_err" in row for row in rows)
    head = ["method", "NDCG@10", "ERR"] + (["published NDCG@10", "published ERR"] if beside else [])
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        method = row["method"]
        if row["entropy"] is not None:
            method += f", γ = {row['entropy']:g}"
        values = [_with_spread(row, "ndcg_at_10"), _with_spread(row, "err")]
        if beside:
            published = (row["paper_ndcg_at_10"], row["paper_err"])
            values += ["" if value is None else f"{value:.5f}" for value in published]
        lines.append("| " + " | ".join([method, *values]) + " |")
    notes = ["Data: " + " ".join(dict.fromkeys(row["data"] for row in rows))]
    if beside:
        notes.append(f"The last two columns are {PAPER_SOURCE}; they are not our numbers.")
    return "\n".join([*lines, "", *notes])


def _with_spread(row: dict[str, Any], figure: str) -> str:
    spread = row[f"{figure}_sd"]
    text = f"{row[figure]:.4f}"
    return text if math.isnan(spread) else f"{text} ± {spread:.4f}"


def curve(cells: Cells, key: str) -> tuple[list[float], list[float], list[float]]:
    """lambda, mean over seeds, and standard deviation (0 for one seed) of a figure in the cells."""
    by_lam: dict[float, list[float]] = {}
    for cell in finished(cells):
        by_lam.setdefault(cell["lam"], []).append(cell["result"][key])
    lambdas = sorted(by_lam)
    means = [statistics.fmean(by_lam[lam]) for lam in lambdas]
    spread = [statistics.stdev(by_lam[lam]) if len(by_lam[lam]) > 1 else 0.0 for lam in lambdas]
    return lambdas, means, spread


def tradeoff_panel(ax: Any, cells: Cells) -> Any:
    """One panel of Figure 2 on ``ax``: NDCG@10 (left) and D_ind (right) of the policy by lambda.

    Test solid, training dotted; bars are standard deviations over seeds. The values of lambda
    stand at equal distances. Returns the right axis.
    """
    cells = finished(cells)
    right = ax.twinx()
    right.grid(False)
    right.spines["right"].set_visible(True)
    look = ((ax, "policy_ndcg_at_10", PALETTE["blue"], "o"),)
    look += ((right, "policy_d_ind", PALETTE["orange"], "s"),)
    lambdas: list[float] = []
    for axis, key, colour, marker in look:
        for part, dash in (("train", ":"), ("test", "-")):
            lambdas, means, spread = curve(cells, f"{part}_{key}")
            axis.errorbar(
                range(len(lambdas)),
                means,
                spread if any(spread) else None,
                color=colour,
                linestyle=dash,
                marker=marker,
                markerfacecolor=colour if part == "test" else "white",
                label=f"{'NDCG@10' if axis is ax else 'D_ind'}, {part}",
            )
        axis.yaxis.label.set_color(colour)
    ax.set_xticks(range(len(lambdas)), [f"{lam:g}" for lam in lambdas])
    ax.set_xlabel("λ (not to scale)")
    ax.set_ylabel("NDCG@10 of the policy")
    right.set_ylabel("D_ind of the policy")
    right.set_ylim(bottom=0)
    return right


def tradeoff_figure(cells: Cells, entropy: float) -> Any:
    """Figure 2: the linear model left, the neural one right, at one weight of the entropy."""
    matplotlib = matplotlib_module()
    cells = [
        cell
        for cell in finished(cells)
        if cell["method"].startswith("fair_pg_rank") and cell["config"]["entropy"] == entropy
    ]
    with style():
        # Not pyplot's: a figure that nobody shows must not stay in pyplot's list.
        figure = matplotlib.figure.Figure(figsize=(9.6, 4.2), layout="constrained")
        for ax, model in zip(figure.subplots(1, 2), ("linear", "neural"), strict=True):
            panel = [cell for cell in cells if cell["config"]["model"] == model]
            ax.set_title(f"{'Linear model' if model == 'linear' else 'Neural network'}")
            if panel:
                right = tradeoff_panel(ax, panel)
        if cells:
            handles, labels = ax.get_legend_handles_labels()
            more, texts = right.get_legend_handles_labels()
            figure.legend(handles + more, labels + texts, loc="outside upper center", ncols=4)
        figure.supxlabel(f"{data_of(cells)}\nγ = {entropy:g}", fontsize=8, wrap=True)
    return figure
