"""Panels of the paper's Figures 1 and 3, drawn on given axes from stored cells (chapters 9, 12)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.patheffects import withStroke

from experiments.mixtures import lottery_line, temperature_line
from experiments.names import reading, split_name
from experiments.optimum import measured, whole_batch
from fairpg_lite.data import RankingDataset
from fairpg_lite.figures import PALETTE
from fairpg_lite.sweep import as_table

Cells = Sequence[dict[str, Any]]

#: Colour and marker of each method, the same in every figure.
LOOKS = {
    "fair_pg_rank-sample": ("blue", "o"),
    "fair_pg_rank-exact": ("sky", "P"),
    "post_processing-definition": ("green", "s"),
    "post_processing-authors": ("orange", "D"),
    "deltr-one_sided": ("pink", "^"),
    "deltr-two_sided": ("amber", "<"),
    "deltr-reversed": ("grey", "v"),
    "uniform": ("grey", "X"),
}
AXES = {"ndcg": "NDCG", "d_group": r"$D_{\mathrm{group}}$"}


def of_problem(cells: Cells, problem: str) -> Cells:
    """The cells on one kind of data, such as "clip5" or "sex-redrawn"."""
    return [cell for cell in cells if split_name(cell["method"])[1] == problem]


def of_method(cells: Cells, key: str) -> Cells:
    """The cells of one method, such as "fair_pg_rank-sample", on any data."""
    return [cell for cell in cells if split_name(cell["method"])[0] == key]


def curve(
    cells: Iterable[Mapping[str, Any]], name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lambdas, and mean and standard deviation over seeds of one measure: three arrays ``(L,)``.

    One seed has no spread: 0.
    """
    runs = as_table([dict(cell) for cell in cells]).groupby("lam")[name]
    return runs.mean().index.to_numpy(), runs.mean().to_numpy(), runs.std().fillna(0.0).to_numpy()


class ThetaGrid(NamedTuple):
    """NDCG and D_group ``(T, T)`` of the linear policy at ``theta (T,)`` squared.

    Row = theta2, column = theta1.
    """

    theta: np.ndarray
    ndcg: np.ndarray
    d_group: np.ndarray


def theta_grid(dataset: RankingDataset, reach: tuple[float, float], steps: int = 31) -> ThetaGrid:
    """The exact measures of h(x) = theta1 x1 + theta2 x2 on a square of parameters. Chapter 9."""
    theta, batch = torch.linspace(*reach, steps, dtype=torch.float64), whole_batch(dataset)
    rows = [
        measured(batch, torch.stack([theta, second.expand(steps)], dim=-1), tolerance=1e-5)
        for second in theta
    ]
    ndcg, d_group = (torch.stack(part).numpy() for part in zip(*rows, strict=True))
    return ThetaGrid(theta.numpy(), ndcg, d_group)


def contour_panel(ax: Any, grid: ThetaGrid, name: str, cells: Cells) -> None:
    """Filled contours of "ndcg" or "d_group" over theta, learned models on top (Figure 1 a, b).

    A small point is a run; a cross is the mean over the seeds of one lambda, labelled with it.
    The dotted line is theta1 = theta2, the true relevance.
    """
    drawn = ax.contourf(grid.theta, grid.theta, getattr(grid, name), levels=12, cmap="cividis")
    ax.figure.colorbar(drawn, ax=ax, label=AXES[name])
    ends = grid.theta[[0, -1]]
    ax.plot(ends, ends, color="white", linestyle=":", linewidth=1.5)
    runs = np.array([cell["result"]["theta"] for cell in cells])
    ax.plot(*runs.T, ".", color="white", alpha=0.45, markersize=3)
    lambdas, first, _ = curve(cells, "theta1")
    _, second, _ = curve(cells, "theta2")
    ax.plot(first, second, "P", color=PALETTE["orange"], markeredgecolor="white", markersize=9)
    # A dark rim, so that white letters can be read on any contour.
    rim = {"path_effects": [withStroke(linewidth=2.0, foreground="#22262B")]}
    for lam, x, y in zip(lambdas, first, second, strict=True):
        label = ax.annotate(f"{lam:g}", (x, y), (6, -10), textcoords="offset points", **rim)
        label.set(color="white", fontsize=9)
    ax.set(xlim=ends, ylim=ends, xlabel=r"$\theta_1$", ylabel=r"$\theta_2$", aspect="equal")
    ax.grid(False)


def tradeoff_panel(
    ax: Any, cells: Cells, *, methods: Iterable[str] = tuple(LOOKS), lines: bool = False
) -> None:
    """NDCG against D_group, a line per method along lambda (Figures 1 c and 3, right).

    Bars are one standard deviation over seeds. Filled markers are stochastic policies; hollow ones
    with a dotted line are DELTR's most probable rankings. The larger a marker, the larger is
    lambda. ``lines`` adds what needs no fair learning: PG-Rank in a lottery with random lists, and
    PG-Rank at ever higher temperature.
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
        chosen = of_method(cells, key)
        if chosen:
            _tradeoff_line(ax, chosen, key)
        if chosen and key.startswith("deltr"):
            _tradeoff_line(ax, chosen, key, "sorted_")
    ax.set(xlabel=f"{AXES['d_group']} (lower is fairer)", ylabel="NDCG (higher is better)")


def _tradeoff_line(ax: Any, cells: Cells, key: str, prefix: str = "") -> None:
    lambdas, across, across_sd = curve(cells, prefix + "d_group")
    _, up, up_sd = curve(cells, prefix + "ndcg")
    colour, marker = PALETTE[LOOKS[key][0]], LOOKS[key][1]
    face, dash, ending = ("white", ":", ", sorted") if prefix else (colour, "-", "")
    ax.errorbar(
        across, up, up_sd, across_sd, label=reading(key) + ending, color=colour, marker=marker,
        linestyle=dash, markerfacecolor=face, linewidth=1.3, elinewidth=0.7, markersize=4,
    )  # fmt: skip
    sizes = 16 + 70 * np.arange(len(lambdas)) / max(len(lambdas) - 1, 1)
    ax.scatter(across, up, sizes, facecolors=face, edgecolors=colour, marker=marker, zorder=3)


def zoom_on(ax: Any, cells: Cells) -> None:
    """Limit a trade-off panel to where the curve of ``cells`` runs, with a margin."""
    for name, limit in (("d_group", ax.set_xlim), ("ndcg", ax.set_ylim)):
        _, means, _ = curve(cells, name)
        margin = 0.45 * np.ptp(means)
        limit(means.min() - margin, means.max() + margin)
    ax.locator_params(axis="x", nbins=4)


def legend_panel(ax: Any, source: Any) -> None:
    """The legend of another panel, on axes of its own."""
    ax.set_axis_off()
    ax.legend(*source.get_legend_handles_labels(), loc="center left", fontsize=8, handlelength=2.4)


def lambda_panel(ax: Any, cells: Cells, name: str, label: str, colour: str, dash: str) -> None:
    """One measure of one method against lambda (Figure 3, left).

    The band of a solid line is one standard deviation.
    """
    lambdas, mean, spread = curve(cells, name)
    shade = PALETTE[colour]
    ax.plot(lambdas, mean, dash, marker="o", markersize=4, color=shade, label=label)
    if dash == "-":
        ax.fill_between(lambdas, mean - spread, mean + spread, color=shade, alpha=0.22, linewidth=0)
    # Linear up to the smallest lambda, logarithmic beyond: 0 has its place.
    ax.set_xscale("symlog", linthresh=0.1)
    ax.set_xticks(lambdas, [f"{lam:g}" for lam in lambdas])
    ax.minorticks_off()
    ax.set(xlabel=r"$\lambda$", ylabel=AXES[name.removeprefix("train_")])
