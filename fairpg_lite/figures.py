"""How figures look, and the picture of a trade-off curve.

A figure has a white ground; the book's pages draw it in the colours of their theme, by the names
that book/_static/drawn.css gives the colours below.
Colours are Okabe and Ito's, which people with the common colour-vision deficiencies can tell apart;
lines and bars that matter also differ in marker, dash or hatch. Used in every chapter from 1 on.
"""

from contextlib import AbstractContextManager
from importlib.resources import files
from typing import TYPE_CHECKING

from fairpg_lite._extras import require
from fairpg_lite.measures import MEASURES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["PALETTE", "plot_tradeoff", "style", "use_style"]

# Okabe & Ito (2008), darkest first so that two-colour figures have the strongest contrast.
PALETTE: dict[str, str] = {
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "sky": "#56B4E9",
    "amber": "#E69F00",
    "grey": "#5F6670",
}
_STYLE = str(files("fairpg_lite") / "_data" / "figures.mplstyle")
_MARKERS = "osD^vPX<"


def style() -> AbstractContextManager[None]:
    """The house style for one block.

    Returns:
        A context, ``with style(): ...``.

    >>> import matplotlib
    >>> with style():
    ...     matplotlib.rcParams["axes.prop_cycle"].by_key()["color"][0]
    '#0072B2'
    """
    pyplot = require("matplotlib.pyplot", "plots")
    context: AbstractContextManager[None] = pyplot.style.context(_STYLE)
    return context


def use_style() -> None:
    """The house style from now on; in a notebook the figures become SVG, without a date in it."""
    pyplot = require("matplotlib.pyplot", "plots")
    pyplot.style.use(_STYLE)
    if "inline" in pyplot.get_backend():
        backend = require("matplotlib_inline.backend_inline", "plots")
        backend.set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None})


def plot_tradeoff(table: "pd.DataFrame", x: str = "d_group", y: str = "ndcg") -> "Axes":
    """One measure against another along lambda, a curve for each experiment.

    A point is a mean over seeds, its bars are 95 % intervals (Student's t; one seed has none), and
    its label is lambda.

    Args:
        table: A row for each run, with the columns experiment, lam, seed and the measures;
            `tradeoff` makes one.
        x: The column along the horizontal axis.
        y: The column along the vertical axis.

    Returns:
        The axes, on a figure of their own. The labels of measures are those of
        `fairpg_lite.measures`; any other column is called by its name.

    >>> import pandas as pd
    >>> runs = {"experiment": "mine", "lam": [0.0, 5.0], "seed": 0}
    >>> table = pd.DataFrame({**runs, "d_group": [0.2, 0.1], "ndcg": [0.9, 0.8]})
    >>> plot_tradeoff(table).get_ylabel()
    'NDCG (higher is better)'
    """
    for column in ("experiment", "lam", x, y):
        if column not in table.columns:
            raise ValueError(
                f"plot_tradeoff: the table has no column {column!r}, but "
                f"{', '.join(table.columns)}."
            )
    quantile = require("scipy.stats", "experiments").t.ppf
    with style():
        axes: Axes = require("matplotlib.figure", "plots").Figure().add_subplot()
    colours = list(PALETTE.values())
    for number, (experiment, runs) in enumerate(table.groupby("experiment", sort=False)):
        by_lam = runs.groupby("lam")[[x, y]]
        mean = by_lam.mean()
        degrees = (by_lam.count() - 1).clip(lower=1)
        half_width = (by_lam.sem() * quantile(0.975, degrees)).fillna(0.0)
        axes.errorbar(
            mean[x],
            mean[y],
            half_width[y],
            half_width[x],
            label=experiment,
            color=colours[number % len(colours)],
            marker=_MARKERS[number % len(_MARKERS)],
            elinewidth=0.8,
        )
        for lam, *point in mean.itertuples():
            axes.annotate(
                f"λ={lam:g}", point, xytext=(6, -10), textcoords="offset points", fontsize=8
            )
    axes.set(xlabel=_axis_label(x), ylabel=_axis_label(y))
    axes.legend()
    return axes


def _axis_label(column: str) -> str:
    """What an axis is called: a measure by its label, any other column by its name."""
    return MEASURES[column].axis_label if column in MEASURES else column
