"""How figures look, and the picture of a trade-off curve.

A figure has a white ground, which the page turns dark in its dark theme (book/_static/book.css).
Colours are Okabe and Ito's, which people with the common colour-vision deficiencies can tell apart;
lines and bars that matter also differ in marker, dash or hatch. Used in every chapter from 1 on.
"""

from contextlib import AbstractContextManager
from importlib.resources import files
from typing import Any

from fairpg_lite._extras import require

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
_LABELS = {
    "d_group": r"$D_{\mathrm{group}}$ (lower is fairer)",
    "d_ind": r"$D_{\mathrm{ind}}$ (lower is fairer)",
    "group_gap": "two-sided gap (lower is fairer)",
}


def style() -> AbstractContextManager[None]:
    """The house style for one block: `with style(): ...`."""
    return require("matplotlib.pyplot", "plots").style.context(_STYLE)


def use_style() -> None:
    """The house style from here on; in a notebook the figures become SVG, without a date in it."""
    pyplot = require("matplotlib.pyplot", "plots")
    pyplot.style.use(_STYLE)
    if "inline" in pyplot.get_backend():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None})


def plot_tradeoff(table: Any, x: str = "d_group") -> Any:
    """NDCG against the disparity ``x`` along lambda, by method; returns the matplotlib axes.

    ``table`` is a data frame with a row per run and columns method, lam, seed and the measures
    (`tradeoff` makes one). A point is a mean over seeds, its bars 95 % intervals (Student's t; one
    seed has none); its label is lambda, and the legend has the method's name as it is.
    """
    quantile = require("scipy.stats", "experiments").t.ppf
    with style():
        ax = require("matplotlib.figure", "plots").Figure().add_subplot()
    for number, (name, runs) in enumerate(table.groupby("experiment", sort=False)):
        seeds = runs.groupby("lam")[[x, "ndcg"]]
        mean, count = seeds.mean(), seeds.count()
        half = (seeds.sem() * quantile(0.975, (count - 1).clip(lower=1))).fillna(0.0)
        look: dict[str, Any] = {"color": list(PALETTE.values())[number % 7], "elinewidth": 0.8}
        look["marker"] = "osD^vPX<"[number % 8]
        ax.errorbar(mean[x], mean["ndcg"], half["ndcg"], half[x], label=name, **look)
        beside = {"xytext": (6, -10), "textcoords": "offset points", "fontsize": 8}
        for lam, *point in mean.itertuples():
            ax.annotate(f"λ={lam:g}", point, **beside)
    ax.set(xlabel=_LABELS.get(x, x), ylabel="NDCG (higher is better)")
    ax.legend()
    return ax
