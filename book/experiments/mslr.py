"""The protocol of Table 1 and Figure 2 on open data: 42 + 42 queries of MSLR-WEB10K.

Small, but real judgements and real features, and everyone may have them (chapters 10 and 11). What
differs from the paper's settings, and why:

- Epochs: see EPOCHS. Yahoo's 20 epochs are 400,000 updates; 20 epochs of 32 queries would be 640.
- The network's learning rate is .001, the linear model's, for the same reason.
- 10 of the 42 training queries choose RankSVM's C and stop the trees; a seed draws which. So the
  spread over seeds includes the choice of queries, and the policies see the other 32 only.
- Features are scaled to [0, 1] within each query; Yahoo's come so.
- The best epoch by the validation queries is kept (see PATIENCE): 32 queries are soon learnt by
  heart. The paper trains a fixed number of epochs. At large lambda that is often the first epoch,
  next to the nearly uniform start: such a cell has a low D_ind because it hardly moved. Say so
  wherever Figure 2 is shown on this data; ``kept_epoch(cell)`` tells.
- Entropy weights 1 (the text) and 0 (the authors' runs) at lambda = 0, and 0 for Figure 2.
- The policies train the compiled way although each run is short: together they are not.

42 test queries leave wide intervals: every result lists the queries' values, so that they can be
drawn again (a bootstrap over queries).
"""

from pathlib import Path
from typing import Any

from experiments.rankers import FairPGRank, RankSVM, Trees
from experiments.rankers_report import (
    COLUMNS,
    Cells,
    data_of,
    kept_epoch,
    table_text,
    tradeoff_figure,
)
from experiments.rankers_report import table as _table
from fairpg_lite.baselines.rankers import CS
from fairpg_lite.sweep import Cell, grid

__all__ = [
    "COLUMNS",
    "DATA",
    "EPOCHS",
    "LAMBDAS",
    "figure",
    "kept_epoch",
    "plan",
    "table",
    "table_text",
]

#: One sentence naming the data of some cells.
DATA = data_of
LAMBDAS = (0.0, 3.0, 10.0, 30.0, 100.0)
ENTROPY = 0.0
EPOCHS = 200
PATIENCE = 50
LEARNING_RATE = 1e-3
FULL: dict[str, Any] = {"share": 1.0, "epochs": EPOCHS, "rounds": 300, "C": CS}
QUICK: dict[str, Any] = {"share": 0.5, "epochs": 3, "rounds": 30, "C": (1.0, 100.0)}


def plan(
    *,
    seeds: int | None = None,
    quick: bool = False,
    epochs: int | None = None,
    checkpoints: str | Path | None = None,
) -> list[Cell]:
    """The cells of both models over lambda, and of the three baselines; 20 seeds by default.

    quick: two seeds, half of the queries, three epochs, two lambdas, few trees and two values of
    C. It shows that the path works; the numbers mean nothing.
    """
    fewer: dict[str, Any] = QUICK if quick else FULL
    epochs = fewer["epochs"] if epochs is None else epochs
    lambdas = (0.0, 10.0) if quick else LAMBDAS
    chosen = range((2 if quick else 20) if seeds is None else seeds)
    common: dict[str, Any] = {"data": "mslr", "share": fewer["share"], "per_query": True}
    common["checkpoints"] = checkpoints
    cells: list[Cell] = []
    for model in ("neural", "linear"):
        settings = {**common, "model": model, "epochs": epochs, "lr": LEARNING_RATE}
        settings |= {"patience": PATIENCE, "compiled": "auto" if quick else True}
        cells += grid(FairPGRank(entropy=ENTROPY, **settings), lambdas, chosen)
        cells += grid(FairPGRank(entropy=1.0, **settings), [0.0], chosen)
    for objective in ("lambdarank", "regression"):
        trees = Trees(objective=objective, rounds=fewer["rounds"], **common)
        cells += grid(trees, [0.0], chosen)
    return cells + grid(RankSVM(C=fewer["C"], **common), [0.0], chosen)


def table(cells: Cells) -> list[dict[str, Any]]:
    """Table 1's methods on this data; the published figures are of other data and stay out."""
    return _table(cells, paper=False)


def figure(cells: list[dict[str, Any]]) -> Any:
    """Figure 2's curves on this data, bars for the spread over seeds."""
    return tradeoff_figure(cells, ENTROPY)
