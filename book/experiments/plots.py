"""Curves and panels of the paper's figures, from stored cells (chapters 9, 11 and 12)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from experiments.catalogue import (
    FAIR_PG_RANK,
    LINEAR_PG_RANK,
    NETWORK_PG_RANK,
    Method,
    Variant,
    identify,
)
from experiments.cells import Cells, of_experiment
from experiments.mixtures import lottery_line, temperature_line
from experiments.optimum import Achieved, measured, whole_batch
from fairpg_lite.data import RankingDataset
from fairpg_lite.figures import PALETTE
from fairpg_lite.measures import MEASURES
from fairpg_lite.sweeps import as_table


class AlongLambda(NamedTuple):
    """A measure along lambda, each array ``(L,)``."""

    lams: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    """Standard deviation over seeds, 0 for one seed."""


def of_variant(cells: Cells, variant: Variant) -> list[Mapping[str, Any]]:
    """The cells on one version of the data, of any method."""
    return [cell for cell in cells if identify(cell["experiment"]).variant == variant]


def of_method(cells: Cells, method: Method) -> list[Mapping[str, Any]]:
    """The cells of one method, on any data."""
    return [cell for cell in cells if identify(cell["experiment"]).method == method]


def curve(cells: Cells, name: str) -> AlongLambda:
    """Mean and deviation over seeds of one number of the cells, by lambda."""
    runs = as_table([dict(cell) for cell in cells]).groupby("lam")[name]
    mean = runs.mean()
    sd = runs.std().fillna(0.0)
    return AlongLambda(mean.index.to_numpy(), mean.to_numpy(), sd.to_numpy())


def theta_grid(dataset: RankingDataset, reach: tuple[float, float], steps: int) -> Achieved:
    """The exact measures of h(x) = theta1 x1 + theta2 x2 on a square of parameters (chapter 9).

    Args:
        dataset: Queries with groups and two features.
        reach: The least and the largest parameter.
        steps: Points along each side.

    Returns:
        The parameters ``(steps,)`` and their measures ``(steps, steps)``, row = theta2, column =
        theta1.
    """
    theta = torch.linspace(*reach, steps, dtype=torch.float64)
    batch = whole_batch(dataset)
    ndcg_rows = []
    d_group_rows = []
    for second in theta:
        weights = torch.stack([theta, second.expand(steps)], dim=-1)
        ndcg, d_group = measured(batch, weights, tolerance=1e-5)
        ndcg_rows.append(ndcg)
        d_group_rows.append(d_group)
    return Achieved(
        theta.numpy(), torch.stack(ndcg_rows).numpy(), torch.stack(d_group_rows).numpy()
    )


def tradeoff_panel(
    ax: Any, cells: Cells, *, methods: Iterable[Method], lines: bool = False
) -> None:
    """NDCG against D_group along lambda (Figure 1 c); larger markers: larger lambda; bars: one sd.

    Args:
        ax: Matplotlib axes to draw on.
        cells: Cells on one version of the data.
        methods: Whose points to draw, each in its own look.
        lines: Whether to add PG-Rank in a lottery with random lists, and at a rising temperature.
    """
    cells = list(cells)
    if lines:
        name = of_method(cells, FAIR_PG_RANK)[0]["experiment"]
        _draw_line(ax, lottery_line(cells, name), "--", "PG-Rank in a lottery")
        _draw_line(ax, temperature_line(cells, name), "-.", "PG-Rank, temperature")
    for method in methods:
        chosen = of_method(cells, method)
        across = curve(chosen, "d_group")
        up = curve(chosen, "ndcg")
        colour = PALETTE[method.colour]
        ax.errorbar(
            across.mean,
            up.mean,
            up.sd,
            across.sd,
            label=method.label,
            color=colour,
            marker=method.marker,
            markersize=4,
            linewidth=1.3,
            elinewidth=0.7,
        )
        n_lams = len(across.lams)
        sizes = 16 + 70 * np.arange(n_lams) / max(n_lams - 1, 1)
        ax.scatter(across.mean, up.mean, sizes, color=colour, marker=method.marker, zorder=3)
    ax.set(xlabel=MEASURES["d_group"].axis_label, ylabel=MEASURES["ndcg"].axis_label)


def _draw_line(ax: Any, line: Any, dashes: str, label: str) -> None:
    """The mean over seeds of a table of `lottery_line` or `temperature_line`."""
    mean = line.groupby("step")[["d_group", "ndcg"]].mean()
    ax.plot(mean["d_group"], mean["ndcg"], dashes, label=label, color="#3A3F45", lw=1.2, zorder=1)


def kept_epoch(cell: Mapping[str, Any]) -> int:
    """The epoch, from 1, that a cell was judged with: the last, or the best in validation."""
    history = cell["result"]["history"]
    if "valid_utility" not in history:
        return len(history["utility"])
    values = []
    for utility, disparity in zip(
        history["valid_utility"], history["valid_disparity"], strict=True
    ):
        values.append(utility - cell["lam"] * disparity)
    return 1 + values.index(max(values))


def tradeoff_panels(axes: Any, cells: Cells) -> None:
    """Figure 2: NDCG@10 above D_ind by lambda, linear model left; bars: one sd.

    Args:
        axes: Matplotlib axes ``(2, 2)``.
        cells: Cells of the rankers.
    """
    cells = list(cells)
    models = {"linear": LINEAR_PG_RANK, "network": NETWORK_PG_RANK}
    labels = {"policy_ndcg_at_10": "NDCG@10", "policy_d_ind": MEASURES["d_ind"].math_label}
    for column, (title, method) in zip(axes.T, models.items(), strict=True):
        column[0].set_title(title)
        chosen = of_experiment(cells, method.name)
        for ax, (measure, label) in zip(column, labels.items(), strict=True):
            ax.set_ylabel(label)
            _draw_part(ax, curve(chosen, f"train_{measure}"), "training", "grey", ":", "s")
            _draw_part(ax, curve(chosen, f"test_{measure}"), "test", "green", "-", "o")
            lams = curve(chosen, f"test_{measure}").lams
            ax.set_xscale("symlog", linthresh=lams[1], linscale=0.5)
            ax.set_xticks(lams, [f"{lam:g}" for lam in lams])
            ax.minorticks_off()
        column[1].set_xlabel("λ")
    for ax in axes[1]:  # when all curves are there: a limit ends the search for others
        ax.set_ylim(bottom=0)


def _draw_part(ax: Any, part: AlongLambda, label: str, colour: str, dash: str, marker: str) -> None:
    """One curve of Figure 2, with bars unless there is one seed."""
    ax.errorbar(
        part.lams,
        part.mean,
        part.sd if part.sd.any() else None,
        label=label,
        color=PALETTE[colour],
        linestyle=dash,
        marker=marker,
    )
