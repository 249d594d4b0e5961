"""The trade-off curve: training at every lambda and seed, and its picture; and how figures look.

A figure has a white ground, which the page turns dark in its dark theme (book/_static/book.css).
Colours are Okabe and Ito's, which people with the common colour-vision deficiencies can tell apart;
lines and bars that matter also differ in marker, dash or hatch. Used in every chapter from 1 on.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fairpg_lite._extras import require
from fairpg_lite._records import key
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import evaluate
from fairpg_lite.models import Preparation, save_model
from fairpg_lite.sweep import as_table, collect, grid, load_cells, run_cells
from fairpg_lite.train import fit, new_scorer

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PALETTE", "plot_tradeoff", "style", "tradeoff", "use_style"]

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


@dataclass(frozen=True)
class Training:
    """Fair-PG-Rank on one data set, as an experiment of a sweep: train, then judge on ``test``."""

    train: RankingDataset
    test: RankingDataset
    valid: RankingDataset | None
    config: TrainConfig
    hidden: int | None
    judge: Mapping[str, Any]
    name = "Fair-PG-Rank"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        scorer = new_scorer(self.train, self.hidden, seed)
        config = replace(self.config, lam=lam, seed=seed)
        fit(scorer, self.train, config, valid=self.valid, progress=False)
        judge: Any = {name: math.nan if v == "nan" else v for name, v in self.judge.items()}
        found = evaluate(scorer, self.test, **judge).to_dict()
        measures = {n: None if v is None or math.isnan(v) else v for n, v in found.items()}
        weights = {name: value.tolist() for name, value in scorer.state_dict().items()}
        return {**measures, "weights": weights}


def tradeoff(
    train: RankingDataset,
    test: RankingDataset,
    lams: Iterable[float],
    seeds: int | Iterable[int] = 5,
    *,
    out: str | Path,
    valid: RankingDataset | None = None,
    config: TrainConfig | None = None,
    hidden: int | None = None,
    judge: Mapping[str, Any] | None = None,
    prepare: Preparation | None = None,
    **how: Any,
) -> "pd.DataFrame":
    """Train at every lambda and seed, judge on ``test``; returns a row per run (chapter 15).

    Columns: method, lam, seed, then the measures of `evaluate`. It is also ``out/table.csv``, with
    the settings in ``out/table.json``; the models are below ``out/models``. Killed, the same call
    goes on where it was; more lambdas or seeds are added. A run that fails is a RuntimeError in the
    end, and the others are kept.

    ``seeds`` says how many, or which; ``valid`` chooses the epoch; ``hidden`` makes a layer of so
    many units; ``judge`` has options of `evaluate`, such as ``{"k": 10}``; ``prepare``, which made
    the features, is stored with the models; ``how`` is that of `run_cells`.
    """
    out, numbers = Path(out), range(seeds) if isinstance(seeds, int) else seeds
    config = config or TrainConfig()
    # NaN, by which `evaluate` leaves undefined queries out, is no JSON.
    judge = {name: "nan" if v != v else v for name, v in (judge or {}).items()}
    cells = grid(Training(train, test, valid, config, hidden, judge), lams, numbers)
    records = run_cells(cells, out, **how)
    for cell, record in zip(cells, records, strict=True):
        if weights := record.get("result", {}).get("weights"):
            scorer, dtype = new_scorer(train, hidden, cell.seed), train.features.dtype
            scorer.load_state_dict({n: torch.tensor(v, dtype=dtype) for n, v in weights.items()})
            used = replace(config, lam=cell.lam, seed=cell.seed)
            where = out / "models" / cell.path("").with_suffix("")
            save_model(scorer, where, prepare=prepare, config=used, overwrite=True)
    collect(out, without=("weights",))
    failed = [record["error"] for record in records if record["status"] == "failed"]
    if failed:
        raise RuntimeError(
            f"tradeoff: {len(failed)} of {len(cells)} runs failed, the first with "
            f"{failed[0]['type']}: {failed[0]['message']}; the same call tries them again."
        )
    asked = {(Training.name, cell.lam, cell.seed) for cell in cells}
    return as_table([record for record in load_cells(out) if key(record) in asked])


def plot_tradeoff(table: Any, x: str = "d_group") -> Any:
    """NDCG against the disparity ``x`` along lambda, by method; returns the matplotlib axes.

    ``table`` is a data frame with a row per run and columns method, lam, seed and the measures
    (`tradeoff` makes one). A point is a mean over seeds, its bars 95 % intervals (Student's t; one
    seed has none); its label is lambda, and the legend has the method's name as it is.
    """
    quantile = require("scipy.stats", "experiments").t.ppf
    with style():
        ax = require("matplotlib.figure", "plots").Figure().add_subplot()
    for number, (name, runs) in enumerate(table.groupby("method", sort=False)):
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
