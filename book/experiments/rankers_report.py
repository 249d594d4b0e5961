"""Table 1 and Figure 2 of the paper from stored cells (chapters 10 and 11).

The paper's published figures are constants here, shown beside ours and never mixed with them.
"""

import itertools
import math
import textwrap
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from experiments.plots import curve
from experiments.summary import Cells, finished, markdown, over_seeds
from fairpg_lite.figures import PALETTE, style

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
_NAMES = {"rank_svm": "RankSVM", "gbdt": "GBDT", "lambdamart": "LambdaMART"}
_MEASURES = {"policy_ndcg_at_10": "NDCG@10", "policy_d_ind": "$D_{\\mathrm{ind}}$"}


def data_of(cells: Cells) -> str:
    """The sentence that names the data of these cells; several if they are of several data."""
    sentences = dict.fromkeys(cell["result"]["data"] for cell in finished(cells))
    return " ".join(sentences) or "No cell is finished."


def kept_epoch(cell: Mapping[str, Any]) -> int:
    """The epoch, from 1, whose weights a policy's cell was judged with.

    The last one, unless the validation queries chose (``patience``): then the first with the best
    U - lam * D there, from measures stored to six digits.
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
    chosen = sorted((c for c in finished(cells) if c["lam"] == 0), key=lambda c: c["method"])
    rows = []
    for method, group in itertools.groupby(chosen, lambda c: c["method"]):
        runs = list(group)
        config = runs[0]["config"]
        name = _NAMES.get(method) or f"PG-Rank ({config['model']})"
        row = {"method": name, "entropy": config.get("entropy"), "seeds": len(runs)}
        for measure in ("ndcg_at_10", "err"):
            found = over_seeds([cell["result"][f"test_{measure}"] for cell in runs])
            row |= {measure: found.mean, f"{measure}_sd": found.sd}
        if paper:
            row["paper_ndcg_at_10"], row["paper_err"] = PAPER_TABLE_1.get(name, (None, None))
        rows.append({**row, "data": data_of(runs)})
    order = [*PAPER_TABLE_1, "LambdaMART"]
    return sorted(rows, key=lambda row: (order.index(row["method"]), -(row["entropy"] or 0.0)))


def table_text(rows: list[dict[str, Any]]) -> str:
    """The table in Markdown, with the data's name and the source of the published column."""
    beside = "paper_err" in rows[0]
    texts = [["method", "NDCG@10", "ERR", *(["published NDCG@10", "published ERR"] * beside)]]
    for row in rows:
        gamma = "" if row["entropy"] is None else f", γ = {row['entropy']:g}"
        texts.append([row["method"] + gamma])
        for measure in ("ndcg_at_10", "err"):
            spread = row[f"{measure}_sd"]
            bar = "" if math.isnan(spread) else f" ± {spread:.4f}"
            texts[-1].append(f"{row[measure]:.4f}{bar}")
        published = [row["paper_ndcg_at_10"], row["paper_err"]] if beside else []
        texts[-1] += ["" if value is None else f"{value:.5f}" for value in published]
    notes = ["Data: " + " ".join(dict.fromkeys(row["data"] for row in rows))]
    if beside:
        notes.append(
            "The last two columns are published: Singh & Joachims 2019, Table 1, on Yahoo Set 1; "
            "they are not our numbers."
        )
    return "\n".join([*markdown(texts), "", *notes])


def tradeoff_panels(axes: Any, cells: Cells, entropy: float = 0.0) -> None:
    """Figure 2 on ``axes (2, 2)``: NDCG@10 above D_ind of the policy by lambda, linear left.

    On a scale that is logarithmic from the second lambda on; test solid, training dotted; bars are
    standard deviations over seeds.
    """
    policies = [cell for cell in finished(cells) if cell["config"].get("entropy") == entropy]
    for column, model in zip(axes.T, ("linear", "neural"), strict=True):
        column[0].set_title(f"{model.capitalize()} model, γ = {entropy:g}")
        chosen = [cell for cell in policies if cell["config"]["model"] == model]
        for ax, (measure, label) in zip(column, _MEASURES.items(), strict=True):
            ax.set_ylabel(label)
            if chosen:
                _by_lambda(ax, chosen, measure)
        column[1].set_xlabel("λ")
    for ax in axes[1]:  # when all curves are there: a limit ends the search for others
        ax.set_ylim(bottom=0)


def tradeoff_figure(cells: Cells, entropy: float = 0.0) -> Any:
    """Figure 2 as a picture of its own, with the data's name below."""
    with style():
        figure = Figure(figsize=(8.4, 6.4), layout="constrained")
        axes = figure.subplots(2, 2, sharex=True, sharey="row")
        tradeoff_panels(axes, cells, entropy)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
        text = textwrap.fill(f"Data: {data_of(cells)}", 130)
        figure.supxlabel(text, x=0.01, ha="left", fontsize=8)
    return figure


def _by_lambda(ax: Any, cells: Cells, measure: str) -> None:
    looks = {"train": ("training", "grey", ":", "s"), "test": ("test", "green", "-", "o")}
    for part, (label, colour, dash, marker) in looks.items():
        lambdas, means, spread = curve(cells, f"{part}_{measure}")
        look = {"color": PALETTE[colour], "linestyle": dash, "marker": marker, "label": label}
        ax.errorbar(lambdas, means, spread if spread.any() else None, **look)
    ax.set_xscale("symlog", linthresh=max(lambdas[1:2], default=1.0), linscale=0.5)
    ax.set_xticks(lambdas, [f"{lam:g}" for lam in lambdas])
    ax.minorticks_off()
