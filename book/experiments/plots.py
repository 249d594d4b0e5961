"""Curves and panels of the paper's figures, from stored cells (chapters 9, 11 and 12)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.patches import Rectangle
from torch import Tensor

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


def method_line(
    ax: Any, cells: Cells, method: Method, *, is_sorted: bool = False, upto: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """A method's NDCG against D_group along lambda, means over seeds; the last mark is large.

    Args:
        ax: Matplotlib axes to draw on.
        cells: Cells on one version of the data.
        method: Whose line to draw, in its look.
        is_sorted: Whether its sorted lists are judged (hollow marks, dotted) or its policy.
        upto: The largest lambda that is drawn.

    Returns:
        D_group and NDCG of the points, in the order of lambda.
    """
    chosen = [cell for cell in of_method(cells, method) if cell["lam"] <= upto]
    prefix = "sorted_" if is_sorted else ""
    x = curve(chosen, prefix + "d_group").mean
    y = curve(chosen, prefix + "ndcg").mean
    colour = PALETTE[method.colour]
    look = {"color": colour, "marker": method.marker, "mfc": "white" if is_sorted else colour}
    ax.plot(x, y, ls=":" if is_sorted else "-", ms=4, **look)
    ax.plot(x[-1], y[-1], ms=9, **look)
    return x, y


def baseline_lines(ax: Any, cells: Cells, *, upto: int | None = None) -> None:
    """PG-Rank mixed with random lists (dashed) and at a rising temperature (dash-dotted).

    Args:
        ax: Matplotlib axes to draw on.
        cells: Cells of Fair-PG-Rank and of the uniform policy on one version of the data.
        upto: How many steps of each line to draw; None draws all.
    """
    cells = list(cells)
    name = of_method(cells, FAIR_PG_RANK)[0]["experiment"]
    for line, dashes in ((lottery_line(cells, name), "--"), (temperature_line(cells, name), "-.")):
        mean = line.groupby("step")[["d_group", "ndcg"]].mean()[:upto]
        ax.plot(mean["d_group"], mean["ndcg"], dashes, color=PALETTE["grey"], lw=1.4, zorder=1)


def theta_map(ax: Any, landscape: Achieved, path: np.ndarray, at: np.ndarray) -> None:
    """The map of D_group over two weights, with the models along lambda (chapter 9).

    Args:
        ax: Matplotlib axes to draw on.
        landscape: What `theta_grid` returns.
        path: The weights ``(L, 2)`` of all models, drawn as small dots.
        at: The weights ``(2,)`` of the model that is marked.
    """
    grid = landscape.weights
    reach = (grid[0], grid[-1])
    drawn = ax.contourf(grid, grid, landscape.d_group, levels=12, cmap="cividis")
    label = MEASURES["d_group"].math_label
    bar = ax.figure.colorbar(drawn, ax=ax, location="top", shrink=0.8, label=label)
    bar.set_ticks([0, 0.005, 0.01])
    ax.plot(reach, reach, color="white", ls=":", lw=1.2)
    ax.plot(*path.T, ".-", color="white", lw=0.8, ms=4)
    ax.plot(*at, "P", color=PALETTE[FAIR_PG_RANK.colour], mec="white", ms=13)
    ax.set(xlim=reach, ylim=reach, xlabel="$\\theta_1$", ylabel="$\\theta_2$")
    ax.set_aspect("equal")
    ax.grid(visible=False)


def drawn_lists(ax: Any, rankings: Tensor, relevance: Tensor, is_minority: Tensor) -> None:
    """Some lists as rows of boxes, in the colours of the groups, stronger with more relevance.

    Args:
        ax: Matplotlib axes to draw on.
        rankings: ``(S, n)``, the document at each position.
        relevance: ``(n,)``, printed in the boxes.
        is_minority: ``(n,)``, whose boxes are orange and whose numbers are bold.
    """
    for row, ranking in enumerate(rankings.tolist()):
        for position, document in enumerate(ranking, start=1):
            in_minority = bool(is_minority[document])
            colour = PALETTE["orange" if in_minority else "blue"]
            value = relevance[document].item()
            corner = (position - 0.46, row + 0.08)
            strength = 0.08 + 0.1 * value
            ax.add_patch(Rectangle(corner, 0.92, 0.84, color=colour, alpha=strength, lw=0))
            ax.text(
                position,
                row + 0.5,
                f"{value:.1f}",
                ha="center",
                va="center",
                fontsize=9.5,
                weight="bold" if in_minority else "normal",
            )
    count, length = rankings.shape
    ax.set(xlim=(0.4, length + 0.6), ylim=(count, 0), xticks=range(1, length + 1), yticks=[])
    ax.set(xlabel="position")
    ax.grid(visible=False)


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
