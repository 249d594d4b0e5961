"""Figure 2 of the paper, and what else is said of stored rankers (chapters 10 and 11)."""

from collections.abc import Mapping
from typing import Any

from experiments.plots import curve
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
_MODELS = {"linear": "linear", "neural": "network"}
_MEASURES = {"policy_ndcg_at_10": "NDCG@10", "policy_d_ind": "$D_{\\mathrm{ind}}$"}
_LOOKS = {"train": ("training", "grey", ":", "s"), "test": ("test", "green", "-", "o")}


def data_of(cells: Cells) -> str:
    """The sentence that names the data of these cells; several if they are of several data."""
    return " ".join(dict.fromkeys(cell["result"]["data"] for cell in finished(cells)))


DATA = data_of


def kept_epoch(cell: Mapping[str, Any]) -> int:
    """The epoch, from 1, whose weights a policy's cell was judged with: the last one, or with
    ``patience`` the first with the best U - lam * D on the validation queries.
    """
    history = cell["result"]["history"]
    if cell["config"]["patience"] is None:
        return len(history["utility"])
    pairs = zip(history["valid_utility"], history["valid_disparity"], strict=True)
    values = [utility - cell["lam"] * disparity for utility, disparity in pairs]
    return 1 + values.index(max(values))


def tradeoff_panels(axes: Any, cells: Cells) -> None:
    """Figure 2 on ``axes (2, 2)``: NDCG@10 above D_ind of the policy by lambda, linear left.

    Without the entropy term; test solid, training dotted; bars are standard deviations over seeds.
    """
    for column, (model, title) in zip(axes.T, _MODELS.items(), strict=True):
        column[0].set_title(title)
        method = f"fair_pg_rank-{model}-entropy0"
        chosen = [cell for cell in finished(cells) if cell["method"] == method]
        for ax, (measure, label) in zip(column, _MEASURES.items(), strict=True):
            ax.set_ylabel(label)
            for part, (name, colour, dash, marker) in _LOOKS.items():
                lambdas, means, spread = curve(chosen, f"{part}_{measure}")
                look = {"color": PALETTE[colour], "linestyle": dash, "marker": marker}
                ax.errorbar(lambdas, means, spread if spread.any() else None, label=name, **look)
            ax.set_xscale("symlog", linthresh=lambdas[1], linscale=0.5)
            ax.set_xticks(lambdas, [f"{lam:g}" for lam in lambdas])
            ax.minorticks_off()
        column[1].set_xlabel("λ")
    for ax in axes[1]:  # when all curves are there: a limit ends the search for others
        ax.set_ylim(bottom=0)
