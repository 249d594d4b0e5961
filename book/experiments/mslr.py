"""The protocol of Table 1 and Figure 2 on open data: 42 + 42 queries of MSLR-WEB10K.

Small, but real, and everyone may have them (chapters 10 and 11 say what differs from the paper). A
seed draws 10 of the 42 training queries for validation; they choose RankSVM's C, stop the trees,
and choose the epoch that is kept: 32 queries are soon learnt by heart. At large lambda it is often
the first, which hardly moved from the nearly uniform start; ``kept_epoch(cell)`` tells.
"""

from typing import Any

from experiments.rankers import COLUMNS, DATA, protocol
from fairpg_lite.sweeps.records import Cell

__all__ = ["COLUMNS", "DATA", "plan"]


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """The cells of both models over lambda, and of the three baselines; 20 seeds by default."""
    full = ((0.0, 3.0, 10.0, 30.0, 100.0), 20, 1.0, 200)
    lambdas, count, share, epochs = ((0.0, 10.0), 2, 0.5, 3) if quick else full
    policies: dict[str, Any] = {"epochs": epochs, "lr": 1e-3, "patience": 50}
    policies["compiled"] = "auto" if quick else True
    common = {"data": "mslr", "share": share, "per_query": True}
    return protocol(lambdas, range(seeds or count), quick, policies, **common)
