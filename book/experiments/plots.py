"""Curves and panels of the paper's figures, from stored cells (chapters 9, 11 and 12)."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from experiments.mixtures import lottery_line, temperature_line
from experiments.optimum import Achieved, measured, whole_batch
from experiments.summary import Cells, finished, reading, split_name
from fairpg_lite.data import RankingDataset
from fairpg_lite.figures import PALETTE
from fairpg_lite.sweeps.running import as_table

#: Colour and marker of the methods in a trade-off.
LOOKS = {
    "fair_pg_rank-sample": ("blue", "o"),
    "post_processing-definition": ("green", "s"),
    "post_processing-authors": ("orange", "D"),
}
#: Of Figure 2: columns, rows and curves.
_MODELS = {"linear": "linear", "neural": "network"}
_MEASURES = {"policy_ndcg_at_10": "NDCG@10", "policy_d_ind": "$D_{\\mathrm{ind}}$"}
_LOOKS = {"train": ("training", "grey", ":", "s"), "test": ("test", "green", "-", "o")}


def of_problem(cells: Cells, problem: str) -> list[Mapping[str, Any]]:
    """The cells on one kind of data, such as "clip5" or "sex-redrawn"."""
    return [cell for cell in cells if split_name(cell["method"])[1] == problem]


def of_method(cells: Cells, key: str) -> list[Mapping[str, Any]]:
    """The cells of one method, such as "fair_pg_rank-sample", on any data."""
    return [cell for cell in cells if split_name(cell["method"])[0] == key]


def curve(cells: Cells, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lambdas, and mean and standard deviation (0 for one seed) of one measure: arrays ``(L,)``."""
    runs = as_table([dict(cell) for cell in cells]).groupby("lam")[name]
    return runs.mean().index.to_numpy(), runs.mean().to_numpy(), runs.std().fillna(0.0).to_numpy()


def theta_grid(dataset: RankingDataset, reach: tuple[float, float], steps: int) -> Achieved:
    """The exact measures of h(x) = theta1 x1 + theta2 x2 on a square of parameters. Chapter 9.

    They are ``(steps, steps)``, row = theta2, column = theta1, both from ``weights (steps,)``.
    """
    theta, batch = torch.linspace(*reach, steps, dtype=torch.float64), whole_batch(dataset)
    rows = [
        measured(batch, torch.stack([theta, second.expand(steps)], dim=-1), tolerance=1e-5)
        for second in theta
    ]
    ndcg, d_group = (torch.stack(part).numpy() for part in zip(*rows, strict=True))
    return Achieved(theta.numpy(), ndcg, d_group)


def tradeoff_panel(ax: Any, cells: Cells, *, methods: Iterable[str], lines: bool = False) -> None:
    """NDCG against D_group along lambda (Figure 1 c); larger markers: larger lambda; bars: one sd.

    ``lines`` adds PG-Rank in a lottery with random lists, and at ever higher temperature.
    """
    if lines:
        name = of_method(cells, "fair_pg_rank-sample")[0]["method"]
        for label, line, dashes in (
            ("PG-Rank in a lottery", lottery_line(cells, name), "--"),
            ("PG-Rank, temperature", temperature_line(cells, name), "-."),
        ):
            mean = line.groupby("step")[["d_group", "ndcg"]].mean()
            look = {"color": "#3A3F45", "lw": 1.2, "zorder": 1}
            ax.plot(mean["d_group"], mean["ndcg"], dashes, label=label, **look)
    for key in methods:
        lambdas, across, across_sd = curve(of_method(cells, key), "d_group")
        _, up, up_sd = curve(of_method(cells, key), "ndcg")
        colour, marker = PALETTE[LOOKS[key][0]], LOOKS[key][1]
        look = {"color": colour, "marker": marker, "linewidth": 1.3, "elinewidth": 0.7}
        ax.errorbar(across, up, up_sd, across_sd, label=reading(key), markersize=4, **look)
        sizes = 16 + 70 * np.arange(len(lambdas)) / max(len(lambdas) - 1, 1)
        ax.scatter(across, up, sizes, color=colour, marker=marker, zorder=3)
    ax.set(xlabel=r"$D_{\mathrm{group}}$ (lower is fairer)", ylabel="NDCG (higher is better)")


def kept_epoch(cell: Mapping[str, Any]) -> int:
    """The epoch, from 1, that a cell was judged with: the last, or the best in validation."""
    history = cell["result"]["history"]
    if cell["config"]["patience"] is None:
        return len(history["utility"])
    pairs = zip(history["valid_utility"], history["valid_disparity"], strict=True)
    values = [utility - cell["lam"] * disparity for utility, disparity in pairs]
    return 1 + values.index(max(values))


def tradeoff_panels(axes: Any, cells: Cells) -> None:
    """Figure 2 on ``axes (2, 2)``: NDCG@10 above D_ind by lambda, linear left; bars: one sd."""
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
