"""Two ways to less disparity that need no learning, and that every fair ranker must beat.

A *lottery* shows a random list with probability a, and the policy's own list otherwise; *heat*
divides the scores by a temperature (chapters 9, 12 and 13). D_group is a hinge in every query, so
the disparity of a lottery is far below the straight line from the policy to the uniform one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import fairpg_lite as fl
from experiments.optimum import bias_of, means, whole_batch
from experiments.summary import Cells, by_seed, split_name
from fairpg_lite.batch import Batch
from fairpg_lite.scorers import Scorer, score

#: Probabilities of a random list at which D_group is stored. At 0 it is the policy's, at 1 it is 0.
CHANCES = tuple(round(0.05 * k, 2) for k in range(1, 20))
#: Temperatures of the stored line, from just above 1, which is the policy itself.
TEMPERATURES = tuple(2 ** (k / 4) for k in range(1, 29))
DIGITS = 8


def lotteries(scorer: Scorer, dataset: fl.RankingDataset) -> dict[str, list[float]]:
    """D_group at every probability in `CHANCES`, for a scorer's policy and for its sorted list."""

    def policy(batch: Batch) -> fl.PlackettLuce:
        return fl.PlackettLuce(score(scorer, batch), batch.mask)

    def ranking(batch: Batch) -> Tensor:
        return fl.ranking_exposure(policy(batch).mode, bias_of(batch), batch.mask)

    own = mixed(lambda batch: policy(batch).exposure(), dataset)
    return {"lottery_d_group": own, "sorted_lottery_d_group": mixed(ranking, dataset)}


def lottery_of(matrices: Sequence[Tensor], dataset: fl.RankingDataset) -> dict[str, list[float]]:
    """The same for one probability matrix ``(n, n)`` per query, row = document, n the same."""
    rows = torch.stack([*map(torch.as_tensor, matrices)]).double()
    return {"lottery_d_group": mixed(lambda batch: rows @ bias_of(batch), dataset)}


@torch.no_grad()
def mixed(exposure: Callable[[Batch], Tensor], dataset: fl.RankingDataset) -> list[float]:
    """D_group of the lottery between a policy, by its exposure ``(Q, n)``, and random lists."""
    chances = torch.tensor(CHANCES, dtype=torch.float64).view(-1, 1, 1)
    batch = whole_batch(dataset)
    own = exposure(batch)
    # All rankings together pay the same in sum; a random list shares it out evenly.
    even = own.sum(-1, keepdim=True) / batch.mask.sum(-1, keepdim=True) * batch.mask
    _, d_group = means(batch, (1.0 - chances) * own + chances * even)
    return [round(value, DIGITS) for value in d_group.tolist()]


def heat(scorer: Scorer, dataset: fl.RankingDataset) -> dict[str, list[float]]:
    """NDCG and D_group of the policy with its scores divided by each of `TEMPERATURES`."""
    scores = scorer(dataset.features).detach()
    found = [fl.evaluate(scores / tau, dataset, samples=1) for tau in TEMPERATURES]
    return {
        f"temperature_{name}": [round(getattr(each, name), DIGITS) for each in found]
        for name in ("ndcg", "d_group")
    }


def lottery(result: Mapping[str, Any], even: float, prefix: str = "") -> np.ndarray:
    """NDCG and D_group ``(2, steps)`` of a run as random lists, of NDCG ``even``, take over."""
    chance = np.array([0.0, *CHANCES, 1.0])
    ndcg = (1 - chance) * result[f"{prefix}ndcg"] + chance * even
    return np.array([ndcg, [result[f"{prefix}d_group"], *result[f"{prefix}lottery_d_group"], 0.0]])


def heated(result: Mapping[str, Any]) -> np.ndarray:
    """NDCG and D_group ``(2, steps)`` of a stored run at temperature 1 and `TEMPERATURES`."""
    return np.array([[result[n], *result[f"temperature_{n}"]] for n in ("ndcg", "d_group")])


def lottery_line(cells: Cells, method: str, lam: float = 0.0) -> pd.DataFrame:
    """Lotteries of a stored method: seed, step (probability of a random list), ndcg, d_group."""
    cells = list(cells)
    own = by_seed(cells, method, lam)
    even = by_seed(cells, f"uniform-{split_name(method)[1]}", 0.0)
    # On fixed queries the uniform policy is the same for all seeds and stored once.
    alone = next(iter(even.values()))
    lines = {seed: lottery(run, even.get(seed, alone)["ndcg"]) for seed, run in own.items()}
    return _table(lines, [0.0, *CHANCES, 1.0])


def temperature_line(cells: Cells, method: str) -> pd.DataFrame:
    """The same for temperatures by which its scores at lambda 0 are divided, 1 first."""
    lines = {seed: heated(result) for seed, result in by_seed(cells, method, 0.0).items()}
    return _table(lines, [1.0, *TEMPERATURES])


def _table(lines: Mapping[int, np.ndarray], steps: Sequence[float]) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"seed": seed, "step": steps, "ndcg": ndcg, "d_group": d_group})
        for seed, (ndcg, d_group) in lines.items()
    ]
    return pd.concat(parts, ignore_index=True)
