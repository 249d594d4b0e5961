"""What U - lam * D asks for, as opposed to what training finds (chapters 7 and 9).

With exact exposure the objective of a linear scorer is an ordinary function of its weights, with
kinks where a query's hinge switches, and it may have more than one hill.

`python -m experiments.optimum` writes results/synthetic/optimum.csv (a quarter of an hour).
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.optimize import minimize
from torch import Tensor

import fairpg_lite as fl
from fairpg_lite import RankingDataset
from fairpg_lite._files import write_whole
from fairpg_lite.batch import Batch

STORED = Path(__file__).resolve().parents[2] / "results" / "synthetic" / "optimum.csv"
#: Between 0 and 5 no finite weights need be best.
LAMBDAS = (5.0, 8.0, 10.0, 12.0, 15.0, 18.0, 25.0)
STARTS = ((24.0, 16.0), (2.0, 1.0))
SEEDS = 20


class Achieved(NamedTuple):
    """Weights, and what they achieve."""

    weights: np.ndarray
    ndcg: Any
    d_group: Any


def whole_batch(dataset: RankingDataset) -> Batch:
    """All queries at once, in float64."""
    return next(iter(dataset.batches(len(dataset), dtype=torch.float64)))


def bias_of(batch: Batch) -> Tensor:
    return fl.position_bias(batch.relevance.shape[-1], dtype=torch.float64)


def measured(batch: Batch, weights: Tensor, tolerance: float = 1e-8) -> tuple[Tensor, Tensor]:
    """Mean NDCG and D_group ``(...)``, exact, with scores ``features @ weights (..., d)``."""
    scores = _scores(batch, weights)
    policy = fl.PlackettLuce(scores, batch.mask.expand(scores.shape))
    return means(batch, policy.exposure(tolerance=tolerance))


def _scores(batch: Batch, weights: Tensor) -> Tensor:
    """Scores ``(..., Q, n)`` of the queries by each of ``weights (..., d)``."""
    return (batch.features @ weights[..., None, :, None]).squeeze(-1)


def means(batch: Batch, exposure: Tensor) -> tuple[Tensor, Tensor]:
    """Mean NDCG and D_group ``(...)`` of exposure ``(..., Q, n)``."""
    assert batch.groups is not None
    parts = (batch.relevance, batch.groups, batch.mask)
    relevance, groups, mask = (part.expand(exposure.shape) for part in parts)
    ndcg = fl.expected_ndcg(exposure, relevance, mask=mask)
    return ndcg.mean(-1), fl.group_disparity(exposure, relevance, groups, mask=mask).mean(-1)


def optimum_path(
    dataset: RankingDataset, lams: Sequence[float], starts: Iterable[Sequence[float]]
) -> dict[float, Achieved]:
    """The weights ``(d,)`` that maximise mean NDCG - lam * D_group, for each lam.

    L-BFGS climbs from all of ``starts`` at the smallest and at the largest lam and follows the hill
    through all ``lams``; a simplex, which kinks do not stop, finishes the better of the two. For
    small lam a sorted list, the limit of ever longer weights, may beat all of them.
    """
    batch = whole_batch(dataset)

    def loss(weights: np.ndarray, lam: float, slope: bool = True) -> Any:
        leaf = torch.tensor(weights, dtype=torch.float64, requires_grad=slope)
        ndcg, d_group = measured(batch, leaf)
        found = lam * d_group - ndcg
        if not slope:
            return found.item()
        return found.item(), torch.autograd.grad(found, leaf)[0].numpy()

    climb = {"jac": True, "method": "L-BFGS-B", "options": {"maxfun": 60, "gtol": 1e-7}}
    finish = {"method": "Nelder-Mead", "options": {"xatol": 1e-3, "fatol": 1e-9}}
    ordered, first = sorted(lams), [np.asarray(start, dtype=np.float64) for start in starts]
    lowest = attrgetter("fun")
    tops: dict[float, list[Any]] = {lam: [] for lam in ordered}
    for way in (ordered, ordered[::-1]):
        here = first
        for lam in way:
            best = min((minimize(loss, x, lam, **climb) for x in here), key=lowest)
            tops[lam].append(best)
            here = [best.x]
    path = {}
    for lam, ends in tops.items():
        weights = minimize(loss, min(ends, key=lowest).x, (lam, False), **finish).x
        ndcg, d_group = measured(batch, torch.from_numpy(weights))
        path[lam] = Achieved(weights, ndcg.item(), d_group.item())
    return path


def sorted_lists(dataset: RankingDataset, angles: int = 721) -> pd.DataFrame:
    """Mean ndcg and d_group of lists sorted by x1 cos a + x2 sin a: limits of longer weights."""
    batch, degrees = whole_batch(dataset), np.linspace(-45, 135, angles)
    a = torch.from_numpy(np.radians(degrees))
    rankings = _scores(batch, torch.stack([a.cos(), a.sin()], -1)).argsort(-1, descending=True)
    ndcg, d_group = means(batch, fl.ranking_exposure(rankings, bias_of(batch)))
    return pd.DataFrame({"angle": degrees, "ndcg": ndcg, "d_group": d_group})


def best_row(dataset: RankingDataset, lam: float, weights: Any, lists: Any) -> dict[str, float]:
    """What the weights achieve, to four decimals; or the best of the sorted lists, if better."""
    top = lists.loc[(lists.ndcg - lam * lists.d_group).idxmax()]
    row = {"lam": lam, "theta1": np.nan, "theta2": np.nan, "length": np.inf, **top}
    if weights is not None:
        w = np.round(weights, 4)
        ndcg, d_group = (x.item() for x in measured(whole_batch(dataset), torch.from_numpy(w)))
        if ndcg - lam * d_group > row["ndcg"] - lam * row["d_group"]:
            row |= {"theta1": w[0], "theta2": w[1], "length": np.hypot(*w)}
            row |= {"angle": np.degrees(np.arctan2(w[1], w[0])), "ndcg": ndcg, "d_group": d_group}
    return row


def of_seed(seed: int) -> pd.DataFrame:
    """A row per lam for the queries of a seed, see `best_row`; lam = 0 is a sorted list."""
    dataset = fl.synthetic(seed=seed, dtype=torch.float64)
    found = {lam: best.weights for lam, best in optimum_path(dataset, LAMBDAS, STARTS).items()}
    lists = sorted_lists(dataset)
    rows = [best_row(dataset, lam, w, lists) for lam, w in {0.0: None, **found}.items()]
    return pd.DataFrame({"seed": seed, **row} for row in rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = pd.concat([of_seed(seed) for seed in range(SEEDS)], ignore_index=True)
    write_whole(STORED, rows.to_csv(index=False, float_format="%.8g"))
