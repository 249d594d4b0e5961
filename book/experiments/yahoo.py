"""Yahoo Set 1, or its stand-in: Table 1 and Figure 2 of the paper (chapters 10 and 11).

The paper's protocol: a linear model and a network with one hidden layer of 32, Adam, one query at
a time, 20 epochs, S = 10, a baseline, NDCG as utility and D_ind as disparity. Three things are
ours:

- The paper prints no values of lambda. Ours run from 0 to where the policy is nearly uniform.
- The text has an entropy weight of gamma = 1, the authors' stored runs had 0. In an objective that
  is averaged over the samples 1 outweighs NDCG and leaves a policy close to uniform, with little
  left to trade. So lambda = 0 is run with both weights (Table 1), and Figure 2 with 0.
- LambdaMART is not in the paper's table.

The real files cannot be shipped. Numbers on the stand-in are never numbers on Yahoo's data, and
its order of methods is put in by design.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.rankers import protocol
from experiments.rankers_report import COLUMNS, data_of, table, table_text, tradeoff_figure
from experiments.ranking_data import load_parts
from fairpg_lite.data.sets import HOW_TO_OBTAIN
from fairpg_lite.sweep import Cell, load_cells, run_cells

__all__ = ["COLUMNS", "DATA", "figure", "own_table", "plan", "table", "table_text"]

DATA, figure = data_of, tradeoff_figure
#: Where Figure 2 looks, with both models; from a pilot on a twentieth of the stand-in.
LAMBDAS = (0.0, 3.0, 10.0, 30.0, 100.0)
QUICK_LAMBDAS = (0.0, 10.0, 100.0)
SEEDS = 5


def plan(
    *,
    seeds: int | None = None,
    quick: bool = False,
    data: str | os.PathLike[str] | None = None,
    stand_in: bool = False,
    epochs: int | None = None,
    check_counts: bool = True,
    checkpoints: str | Path | None = None,
) -> list[Cell]:
    """The cells of Table 1 and Figure 2.

    Args:
        seeds: of the policies, 5 by default, 1 with quick. RankSVM and the trees are run once:
            nothing in them is drawn.
        quick: a fiftieth of the queries, three epochs, three lambdas, few trees and two values of
            C. It shows that the path works; the numbers mean nothing.
        data: Yahoo's files (default FAIRPG_YAHOO); they are read, checked and cached here, before
            anything is trained.
        stand_in: the stand-in instead.
        epochs: 20 by default.
        check_counts: whether files must have the published counts.
        checkpoints: a directory where a long cell keeps its state after every epoch, so that a
            killed run goes on from there; removed as cells finish.
    """
    source, root = _source(data, stand_in)
    full = (LAMBDAS, SEEDS, 1.0, 20)
    lambdas, count, share, usual = (QUICK_LAMBDAS, 1, 0.02, 3) if quick else full
    if source == "yahoo":
        load_parts("yahoo", share, check_counts, root)
    chosen, policies = range(seeds or count), {"epochs": epochs or usual}
    common: dict[str, Any] = {"data": source, "share": share, "check_counts": check_counts}
    common |= {"root": root, "checkpoints": checkpoints}
    return protocol(lambdas, chosen, [0], quick=quick, policies=policies, **common)


def _source(data: str | os.PathLike[str] | None, stand_in: bool) -> tuple[str, str | None]:
    """The name of the source and, for real files, where they lie."""
    if stand_in and data is not None:
        raise ValueError(f"yahoo: both data={str(data)!r} and the stand-in; choose one.")
    if stand_in:
        return "stand-in", None
    root = data or os.environ.get("FAIRPG_YAHOO")
    if not root:
        raise FileNotFoundError(
            f"yahoo: no data was given. {HOW_TO_OBTAIN} "
            "Here: data=PATH (--data PATH), or stand_in=True (--stand-in)."
        )
    return "yahoo", str(Path(root).expanduser().resolve())


def own_table(results: str | Path = "../results/yahoo") -> str:
    """Table 1 on a reader's own copy of Yahoo's files (chapter 10).

    From the stored run, or on the spot from a fiftieth of the files in FAIRPG_YAHOO; a sentence
    where there is neither.
    """
    if Path(results).exists():
        return table_text(table(load_cells(results)))
    if not os.environ.get("FAIRPG_YAHOO"):
        return "FAIRPG_YAHOO is not set: the column stays empty."
    cells = plan(quick=True, check_counts="FAIRPG_YAHOO_ANY_SIZE" not in os.environ)
    with TemporaryDirectory() as out:
        return table_text(table(run_cells([c for c in cells if c.lam == 0], out, progress=False)))
