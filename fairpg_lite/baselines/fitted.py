"""What a search over one setting returns, and what it is judged by."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, nn

from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import evaluate


@dataclass(frozen=True)
class Fitted:
    """A trained ``scorer`` with the ``setting`` (learning rate or C) that was chosen for it.

    ``objective`` is the value it was chosen by, ``tried`` the value of every setting tried.

    Chapters 9 and 10.
    """

    scorer: nn.Module
    setting: float
    objective: float
    tried: dict[float, float] = field(default_factory=dict)


def mean_ndcg(scorer: Callable[[Tensor], Tensor], dataset: RankingDataset, k: int | None) -> float:
    """Mean NDCG@k over the queries of their most probable rankings: what settings are chosen by."""
    return evaluate(scorer, dataset, k, deterministic=True).ndcg_at_k
