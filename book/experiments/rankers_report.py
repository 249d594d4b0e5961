"""Table 1 and Figure 2 of the paper from stored cells (chapters 10 and 11).

The paper's published figures are constants here, shown beside ours and never mixed with them.
"""

import math
import statistics
import textwrap
from collections.abc import Mapping
from typing import Any

from experiments.plots import curve, new_figure
from experiments.summary import Cells, finished
from fairpg_lite.figures import PALETTE

#: What summary.md shows of these experiments, and its headings; all of the test queries.
COLUMNS = {
    "test_ndcg_at_10": "NDCG@10, sorted",
    "test_err": "ERR, sorted",
    "test_policy_ndcg_at_10": "NDCG@10, policy",
    "test_policy_d_ind": "D_ind, policy",
    "train_policy_ndcg_at_10": "NDCG@10, policy, training",
    "train_policy_d_ind": "D_ind, policy, training",
}

#: NDCG@10 and ERR as published: Table 1 of Singh & Joachims (NeurIPS 2019), on Yahoo Set 1.
#: The first two are quoted there from Chapelle & Chang (2011). One unseeded run each.
PAPER_TABLE_1: dict[str, tuple[float, float]] = {
    "RankSVM": (0.75924, 0.43680),
    "GBDT": (0.79013, 0.46201),
    "PG-Rank (linear)": (0.76145, 0.44988),
    "PG-Rank (neural)": (0.77082, 0.45440),
}
PAPER_SOURCE = "published: Singh & Joachims 2019, Table 1, on Yahoo Set 1"


def data_of(cells: Cells) -> str:
    """The sentence that names the data of these cells; several if they are of several data."""
    sentences = {cell["result"]["data"]: None for cell in finished(cells)}
    return " ".join(sentences) or "No cell is finished."


def paper_name(cell: Mapping[str, Any]) -> str:
    """A method as the paper's Table 1 calls it."""
    if cell["method"].startswith("fair_pg_rank"):
        return f"PG-Rank ({cell['config']['model']})"
    return {"rank_svm": "RankSVM", "gbdt": "GBDT", "lambdamart": "LambdaMART"}[cell["method"]]


def kept_epoch(cell: Mapping[str, Any]) -> int:
    """The epoch, from 1, whose weights a policy's cell was judged with.

    The last one, unless the validation queries chose (``patience``): then the first with the best
    U - lam * D there, from figures stored to six digits.
    """
    history = cell["result"]["history"]
    if cell["config"]["patience"] is None:
        return len(history["utility"])
    pairs = zip(history["valid_utility"], history["valid_disparity"], strict=True)
    values = [utility - cell["lam"] * disparity for utility, disparity in pairs]
    return 1 + values.index(max(values))


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


def tradeoff_panels(axes: Any, cells: Cells, entropy: float = 0.0) -> None:
    """Figure 2 on ``axes (2, 2)``: NDCG@10 above D_ind of the policy, linear left, neural right.

    By lambda, on a scale that is logarithmic from the second value on; test solid, training
    dotted; bars are standard deviations over seeds.
    """
    policies = [cell for cell in finished(cells) if cell["config"].get("entropy") == entropy]
    for column, model in zip(axes.T, ("linear", "neural"), strict=True):
        column[0].set_title(f"{model.capitalize()} model, γ = {entropy:g}")
        chosen = [cell for cell in policies if cell["config"]["model"] == model]
        for ax, (measure, label) in zip(column, _MEASURES.items(), strict=True):
            ax.set_ylabel(label)
            if chosen:
                _curves(ax, chosen, measure)
        column[1].set_xlabel("λ")
        column[1].set_ylim(bottom=0)


_MEASURES = {"policy_ndcg_at_10": "NDCG@10", "policy_d_ind": "$D_{\\mathrm{ind}}$"}


def _curves(ax: Any, cells: list[dict[str, Any]], measure: str) -> None:
    looks = {"train": ("training", "grey", ":", "s"), "test": ("test", "green", "-", "o")}
    for part, (label, colour, dash, marker) in looks.items():
        lambdas, means, spread = curve(cells, f"{part}_{measure}")
        bars = spread if spread.any() else None
        look = {"color": PALETTE[colour], "linestyle": dash, "marker": marker, "label": label}
        ax.errorbar(lambdas, means, bars, **look)
    ax.set_xscale("symlog", linthresh=max(lambdas[1:2], default=1.0), linscale=0.5)
    ax.set_xticks(lambdas, [f"{lam:g}" for lam in lambdas])
    ax.minorticks_off()


def tradeoff_figure(cells: Cells, entropy: float) -> Any:
    """Figure 2 as a picture of its own, with the data's name below."""
    with new_figure((8.4, 6.4)) as figure:
        axes = figure.subplots(2, 2, sharex=True, sharey="row")
        tradeoff_panels(axes, cells, entropy)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
        text = textwrap.fill(f"Data: {data_of(cells)}", 130)
        figure.supxlabel(text, x=0.01, ha="left", fontsize=8)
    return figure


def tradeoff_panel(ax: Any, cells: Cells) -> Any:
    """One panel of Figure 2 on ``ax``: NDCG@10 (left) and D_ind (right) of the policy by lambda.

    Test solid, training dotted; bars are standard deviations over seeds. The values of lambda
    stand at equal distances. Returns the right axis.
    """
    done = finished(cells)
    right = ax.twinx()
    right.grid(False)
    right.spines["right"].set_visible(True)
    looks = (
        (ax, "policy_ndcg_at_10", "NDCG@10", PALETTE["blue"], "o"),
        (right, "policy_d_ind", "$D_{\\mathrm{ind}}$", PALETTE["orange"], "s"),
    )
    for axis, key, label, colour, marker in looks:
        for part, dash in (("train", ":"), ("test", "-")):
            lambdas, means, spread = curve(done, f"{part}_{key}")
            axis.errorbar(
                range(len(lambdas)),
                means,
                spread if spread.any() else None,
                color=colour,
                linestyle=dash,
                marker=marker,
                markerfacecolor=colour if part == "test" else "white",
                label=f"{label}, {'training' if part == 'train' else 'test'}",
            )
        axis.set_ylabel(f"{label} of the policy", color=colour)
    ax.set_xticks(range(len(lambdas)), [f"{lam:g}" for lam in lambdas])
    ax.set_xlabel("λ (not to scale)")
    right.set_ylim(bottom=0)
    return right
