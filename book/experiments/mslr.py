"""The protocol of Table 1 and Figure 2 on open data: 42 + 42 queries of MSLR-WEB10K.

Small, but real judgements and real features, and everyone may have them (chapters 10 and 11). What
differs from the paper's settings, and why:

- Epochs: Yahoo's 20 are 400,000 updates; 20 epochs of 32 queries would be 640. The network's
  learning rate is .001, the linear model's, for the same reason.
- 10 of the 42 training queries choose RankSVM's C and stop the trees; a seed draws which. So the
  spread over seeds includes the choice of queries, and the policies see the other 32 only.
- Features are scaled to [0, 1] within each query; Yahoo's come so.
- The best epoch by the validation queries is kept: 32 queries are soon learnt by heart. At large
  lambda that is often the first epoch, next to the nearly uniform start: such a cell has a low
  D_ind because it hardly moved. Say so wherever Figure 2 is shown; ``kept_epoch(cell)`` tells.
- Results list the test queries' values, so that they can be drawn again (a bootstrap).
"""

from typing import Any

from experiments.rankers import protocol
from experiments.rankers_report import COLUMNS, data_of
from fairpg_lite.sweep import Cell

__all__ = ["COLUMNS", "DATA", "plan"]

DATA = data_of


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """The cells of both models over lambda, and of the three baselines; 20 seeds by default.

    quick: two seeds, half of the queries, three epochs, two lambdas, few trees, two values of C.
    """
    full = ((0.0, 3.0, 10.0, 30.0, 100.0), 20, 1.0, 200)
    lambdas, count, share, epochs = ((0.0, 10.0), 2, 0.5, 3) if quick else full
    policies: dict[str, Any] = {"epochs": epochs, "lr": 1e-3, "patience": 50}
    policies["compiled"] = "auto" if quick else True
    common = {"data": "mslr", "share": share, "per_query": True}
    return protocol(lambdas, range(seeds or count), quick, policies, **common)
