"""Panels of the paper's Figures 1 and 3, drawn from stored cells (chapters 9 and 12).

Each panel takes an axes object and cells, so that a chapter can lay them out as it likes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from experiments.mixtures import lottery_line, temperature_line
from experiments.names import method_key, problem_key, reading
from experiments.summary import finished
from fairpg_lite._extras import require
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import evaluate
from fairpg_lite.figures import PALETTE, matplotlib_module, style

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
INK = "#3A3F45"
AXES = {"ndcg": "NDCG", "d_group": r"$D_{\mathrm{group}}$", "group_gap": "two-sided gap"}


@contextmanager
def new_figure(size: tuple[float, float]) -> Iterator[Any]:
    """An empty figure in the house style, which holds while it is drawn."""
    matplotlib = matplotlib_module()
    with style():
        yield matplotlib.figure.Figure(figsize=size, layout="constrained")


def of_problem(cells: Cells, problem: str) -> list[dict[str, Any]]:
    """The finished cells on one kind of data, such as "clip5" or "sex-redrawn"."""
    return [cell for cell in finished(cells) if problem_key(cell["method"]) == problem]


def of_method(cells: Cells, *keys: str) -> list[dict[str, Any]]:
    """The finished cells of some methods, such as "fair_pg_rank-sample", on any data."""
    return [cell for cell in finished(cells) if method_key(cell["method"]) in keys]


def curve(cells: Iterable[dict[str, Any]], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lambdas, and mean and standard deviation over seeds of one figure: three arrays ``(L,)``.

    One seed has no spread: 0.
    """
    values: dict[float, list[float]] = {}
    for cell in cells:
        values.setdefault(cell["lam"], []).append(cell["result"][name])
    lambdas = sorted(values)
    means = [np.mean(values[lam]) for lam in lambdas]
    spread = [np.std(values[lam], ddof=1) if len(values[lam]) > 1 else 0.0 for lam in lambdas]
    return np.array(lambdas), np.array(means), np.array(spread)


class ThetaGrid(NamedTuple):
    """NDCG and D_group ``(T, T)`` of the linear policy at ``theta (T,)`` squared.

    Row = theta2, column = theta1.
    """

    theta: np.ndarray
    ndcg: np.ndarray
    d_group: np.ndarray


def theta_grid(
    dataset: RankingDataset, reach: tuple[float, float] = (0.0, 6.0), steps: int = 31
) -> ThetaGrid:
    """The exact figures of h(x) = theta1 x1 + theta2 x2 on a square of parameters. Chapter 9.

    Every theta makes one copy of the queries, with its scores for features, so that a single call
    of `evaluate` does them all.
    """
    theta = torch.linspace(*reach, steps, dtype=torch.float64)
    pairs = torch.cartesian_prod(theta, theta).flip(-1)
    count, n = len(pairs), dataset.n_documents
    assert dataset.groups is not None
    copies = RankingDataset(
        (pairs @ dataset.features.double().T).reshape(-1, 1),
        dataset.relevance.repeat(count),
        torch.cat(
            [dataset.offsets[:-1] + n * k for k in range(count)] + [torch.tensor([n * count])]
        ),
        groups=dataset.groups.repeat(count),
    )
    found = evaluate(_score, copies, samples=1, batch_size=4096, tolerance=1e-5).per_query
    shape = (steps, steps, len(dataset))
    fields = (found[name].reshape(shape).mean(-1).numpy() for name in ("ndcg", "d_group"))
    return ThetaGrid(theta.numpy(), *fields)


def _score(features: Tensor) -> Tensor:
    return features[..., 0]


def theta_range(cells: Cells) -> tuple[float, float]:
    """A square that holds all learned models, with a margin, and the origin."""
    values = [value for cell in cells for value in cell["result"]["theta"]]
    return min(0.0, min(values)) - 0.4, max(values) + 0.4


def contour_panel(ax: Any, grid: ThetaGrid, name: str, cells: Cells = ()) -> Any:
    """Filled contours of "ndcg" or "d_group" over theta, learned models on top (Figure 1 a, b).

    A small point is a run; a cross is the mean over the seeds of one lambda, labelled with it.
    The dotted line is theta1 = theta2, the true relevance.
    """
    drawn = ax.contourf(grid.theta, grid.theta, getattr(grid, name), levels=12, cmap="cividis")
    ax.figure.colorbar(drawn, ax=ax, label=AXES[name])
    low, high = grid.theta[0], grid.theta[-1]
    ax.plot([low, high], [low, high], color="white", linestyle=":", linewidth=1.5)
    runs = np.array([cell["result"]["theta"] for cell in cells]).reshape(-1, 2)
    ax.plot(*runs.T, ".", color="white", alpha=0.45, markersize=3)
    if len(runs):
        lambdas, first, _ = curve(cells, "theta1")
        _, second, _ = curve(cells, "theta2")
        ax.plot(first, second, "P", color=PALETTE["orange"], markeredgecolor="white", markersize=9)
        for lam, x, y in zip(lambdas, first, second, strict=True):
            label = ax.annotate(f"{lam:g}", (x, y), (6, -10), textcoords="offset points")
            label.set(color="white", fontsize=9, path_effects=[_outline()])
    ax.set(xlim=(low, high), ylim=(low, high), xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
    ax.set_aspect("equal")
    ax.grid(False)
    return drawn


def _outline() -> Any:
    """A dark rim, so that white letters can be read on any contour."""
    require("matplotlib.patheffects", "plots")
    from matplotlib.patheffects import withStroke

    return withStroke(linewidth=2.0, foreground="#22262B")


def tradeoff_panel(
    ax: Any,
    cells: Cells,
    *,
    methods: Sequence[str] = tuple(LOOKS),
    sorted_methods: Sequence[str] = ("deltr-one_sided", "deltr-two_sided", "deltr-reversed"),
    x: str = "d_group",
    y: str = "ndcg",
    lines: bool = False,
) -> None:
    """NDCG against D_group, a line per method along lambda (Figures 1 c and 3, right).

    Bars are one standard deviation over seeds. Filled markers are stochastic policies; hollow ones
    with a dotted line are most probable rankings, for ``sorted_methods``. The larger a marker, the
    larger is lambda. ``lines`` adds what needs no fair learning: PG-Rank in a lottery with random
    lists, and PG-Rank at ever higher temperature.
    """
    if lines:
        baseline_lines(ax, cells)
    for key in methods:
        chosen = of_method(cells, key)
        if chosen:
            _tradeoff_line(ax, chosen, key, x, y, "")
            if key in sorted_methods:
                _tradeoff_line(ax, chosen, key, x, y, "sorted_")
    ax.set(xlabel=f"{AXES[x]} (lower is fairer)", ylabel=f"{AXES[y]} (higher is better)")


def baseline_lines(ax: Any, cells: Cells, method: str = "fair_pg_rank-sample") -> None:
    """PG-Rank's lottery and temperature lines, means over seeds, below everything else."""
    name = of_method(cells, method)[0]["method"]
    found = {
        "PG-Rank in a lottery": (lottery_line(cells, name), "--"),
        "PG-Rank, temperature": (temperature_line(cells, name), "-."),
    }
    for label, (line, dashes) in found.items():
        mean = line.groupby("step")[["d_group", "ndcg"]].mean()
        ax.plot(mean["d_group"], mean["ndcg"], dashes, color=INK, label=label, lw=1.2, zorder=1)


def zoom_on(ax: Any, cells: Cells, x: str = "d_group", y: str = "ndcg") -> None:
    """Limit a trade-off panel to where the curves of ``cells`` run, with a margin."""
    _, across, _ = curve(cells, x)
    _, up, _ = curve(cells, y)
    wide, high = 0.45 * (across.max() - across.min()), 0.45 * (up.max() - up.min())
    ax.set_xlim(across.min() - wide, across.max() + wide)
    ax.set_ylim(up.min() - high, up.max() + high)
    ax.locator_params(axis="x", nbins=4)


def legend_panel(ax: Any, source: Any) -> None:
    """The legend of another panel, on axes of its own."""
    ax.set_axis_off()
    handles, labels = source.get_legend_handles_labels()
    ax.legend(handles, labels, loc="center left", fontsize=8, handlelength=2.4)


def _tradeoff_line(ax: Any, cells: Cells, key: str, x: str, y: str, prefix: str) -> None:
    colour, marker = LOOKS[key]
    hollow = bool(prefix)
    lambdas, across, across_sd = curve(cells, prefix + x)
    _, up, up_sd = curve(cells, prefix + y)
    label = reading(key) + (", sorted" if hollow else "")
    ax.errorbar(
        across, up, up_sd, across_sd, label=label, color=PALETTE[colour], marker=marker,
        linestyle=":" if hollow else "-", markerfacecolor="white" if hollow else None,
        linewidth=1.3, elinewidth=0.7, markersize=4,
    )  # fmt: skip
    sizes = 16 + 70 * np.arange(len(lambdas)) / max(len(lambdas) - 1, 1)
    edge, face = PALETTE[colour], "white" if hollow else PALETTE[colour]
    ax.scatter(across, up, sizes, facecolors=face, edgecolors=edge, marker=marker, zorder=3)


def lambda_panel(
    ax: Any,
    cells: Cells,
    name: str = "ndcg",
    *,
    label: str | None = None,
    colour: str = "blue",
    linestyle: str = "-",
    band: bool = True,
) -> None:
    """One figure of one method against lambda, its band a standard deviation (Figure 3, left)."""
    lambdas, mean, spread = curve(cells, name)
    shade = PALETTE[colour]
    text = label if label is not None else reading(cells[0]["method"])
    ax.plot(lambdas, mean, linestyle, marker="o", markersize=4, color=shade, label=text)
    if band:
        ax.fill_between(lambdas, mean - spread, mean + spread, color=shade, alpha=0.22, linewidth=0)
    # Linear up to the smallest lambda, logarithmic beyond: 0 has its place.
    ax.set_xscale("symlog", linthresh=0.1)
    ticks = [lam for lam in lambdas if lam > 0]
    ax.set_xticks([0.0, *ticks], [f"{lam:g}" for lam in [0.0, *ticks]])
    ax.minorticks_off()
    plain = name.removeprefix("train_").removeprefix("sorted_")
    ax.set(xlabel=r"$\lambda$", ylabel=AXES.get(plain, plain))
