"""What U - lam * D asks for, as opposed to what training finds (chapters 7 and 9).

With exact exposure the objective of a linear scorer is an ordinary function of its weights, with
kinks where a query's hinge switches, and it may have more than one hill.

`python -m experiments.optimum` writes results/synthetic/optimum.csv (a quarter of an hour).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

import fairpg_lite as fl
from fairpg_lite import RankingDataset
from fairpg_lite.batch import Batch

STORED = Path(__file__).resolve().parents[2] / "results" / "synthetic" / "optimum.csv"
#: Between 0 and 5 no finite weights need be best.
LAMS = (5.0, 8.0, 10.0, 12.0, 15.0, 18.0, 25.0)
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


def measured(batch: Batch, weights: Tensor, tolerance: float = 1e-8) -> tuple[Tensor, Tensor]:
    """Mean NDCG and D_group of linear scorers, exact.

    Args:
        batch: Q queries with groups.
        weights: ``(..., d)``; scores are ``features @ weights``.
        tolerance: Accuracy of the exposure.

    Returns:
        Two tensors ``(...)``, with a gradient in the weights.
    """
    scores = _scores(batch, weights)
    policy = fl.PlackettLuce(scores, batch.mask.expand(scores.shape))
    return means(batch, policy.exposure(tolerance=tolerance))


def means(batch: Batch, exposure: Tensor) -> tuple[Tensor, Tensor]:
    """Mean NDCG and D_group ``(...)`` of exposure ``(..., Q, n)``."""
    assert batch.groups is not None
    relevance = batch.relevance.expand(exposure.shape)
    groups = batch.groups.expand(exposure.shape)
    mask = batch.mask.expand(exposure.shape)
    ndcg = fl.expected_ndcg(exposure, relevance, mask=mask)
    d_group = fl.group_disparity(exposure, relevance, groups, mask)
    return ndcg.mean(-1), d_group.mean(-1)


def optimum_path(
    dataset: RankingDataset, lams: Sequence[float], starts: Iterable[Sequence[float]]
) -> dict[float, Achieved]:
    """The weights ``(d,)`` that maximise mean NDCG - lam * D_group, for each lam.

    L-BFGS climbs from all of ``starts`` at the smallest and at the largest lam and follows the hill
    through all ``lams``; a simplex, which kinks do not stop, finishes the better of the two. For
    small lam a sorted list, the limit of ever longer weights, may beat all of them.

    Args:
        dataset: Queries with groups.
        lams: Prices of D_group, in any order.
        starts: Weights ``(d,)`` to climb from.

    Returns:
        The best weights and what they achieve, by lam in rising order.
    """
    batch = whole_batch(dataset)
    rising = sorted(lams)
    first_points = [np.asarray(start, dtype=np.float64) for start in starts]
    up = _follow(batch, rising, first_points)
    down = _follow(batch, rising[::-1], first_points)
    path = {}
    for lam in rising:
        better = _lowest([up[lam], down[lam]])
        weights = _finish(batch, lam, better.x)
        ndcg, d_group = measured(batch, torch.from_numpy(weights))
        path[lam] = Achieved(weights, ndcg.item(), d_group.item())
    return path


def _follow(
    batch: Batch, lams: Sequence[float], points: list[np.ndarray]
) -> dict[float, OptimizeResult]:
    """The top that L-BFGS reaches at each lam, from all points first and then from the last top."""
    tops = {}
    for lam in lams:
        tops[lam] = _lowest([_climb(batch, lam, point) for point in points])
        points = [tops[lam].x]
    return tops


def _climb(batch: Batch, lam: float, start: np.ndarray) -> OptimizeResult:
    """Where L-BFGS ends."""

    def loss_and_slope(weights: np.ndarray) -> tuple[float, np.ndarray]:
        leaf = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
        loss = _loss(batch, lam, leaf)
        (slope,) = torch.autograd.grad(loss, leaf)
        return loss.item(), slope.numpy()

    options = {"maxfun": 60, "gtol": 1e-7}
    return minimize(loss_and_slope, start, jac=True, method="L-BFGS-B", options=options)


def _finish(batch: Batch, lam: float, start: np.ndarray) -> np.ndarray:
    """The weights ``(d,)`` at which a simplex ends."""

    def loss(weights: np.ndarray) -> float:
        return _loss(batch, lam, torch.tensor(weights, dtype=torch.float64)).item()

    options = {"xatol": 1e-3, "fatol": 1e-9}
    weights: np.ndarray = minimize(loss, start, method="Nelder-Mead", options=options).x
    return weights


def _loss(batch: Batch, lam: float, weights: Tensor) -> Tensor:
    ndcg, d_group = measured(batch, weights)
    return lam * d_group - ndcg


def _lowest(results: Sequence[OptimizeResult]) -> OptimizeResult:
    """The first of those with the lowest loss."""
    return min(results, key=lambda result: result.fun)


def _scores(batch: Batch, weights: Tensor) -> Tensor:
    """Scores ``(..., Q, n)`` of the queries by each of ``weights (..., d)``."""
    return (batch.features @ weights[..., None, :, None]).squeeze(-1)


def sorted_lists(dataset: RankingDataset, angles: int = 721) -> pd.DataFrame:
    """What lists sorted by x1 cos a + x2 sin a achieve: the limits of ever longer weights.

    Args:
        dataset: Queries with groups and two features.
        angles: How many directions are tried, from -45 to 135 degrees.

    Returns:
        A row for each direction: angle, and the means of ndcg and d_group.
    """
    batch = whole_batch(dataset)
    degrees = np.linspace(-45, 135, angles)
    radians = torch.from_numpy(np.radians(degrees))
    directions = torch.stack([radians.cos(), radians.sin()], -1)
    rankings = _scores(batch, directions).argsort(-1, descending=True)
    bias = fl.position_bias(rankings.shape[-1], dtype=torch.float64)
    ndcg, d_group = means(batch, fl.ranking_exposure(rankings, bias))
    return pd.DataFrame({"angle": degrees, "ndcg": ndcg, "d_group": d_group})


def best_row(
    dataset: RankingDataset, lam: float, weights: Sequence[float] | None, lists: pd.DataFrame
) -> dict[str, float]:
    """What is best at one lam.

    Args:
        dataset: Queries with groups and two features.
        lam: The price of D_group.
        weights: ``(2,)``, to be rounded to four decimals; None if there are none to try.
        lists: What `sorted_lists` found.

    Returns:
        A row of results/synthetic/optimum.csv: the weights and what they achieve, or the best of
        the sorted lists, if that is better.
    """
    best_list = lists.loc[(lists.ndcg - lam * lists.d_group).idxmax()]
    row = {"lam": lam, "theta1": np.nan, "theta2": np.nan, "length": np.inf, **best_list}
    if weights is None:
        return row
    theta1, theta2 = np.round(weights, 4)
    ndcg, d_group = measured(
        whole_batch(dataset), torch.tensor([theta1, theta2], dtype=torch.float64)
    )
    if (ndcg - lam * d_group).item() > row["ndcg"] - lam * row["d_group"]:
        row |= {
            "theta1": theta1,
            "theta2": theta2,
            "length": np.hypot(theta1, theta2),
            "angle": np.degrees(np.arctan2(theta2, theta1)),
            "ndcg": ndcg.item(),
            "d_group": d_group.item(),
        }
    return row


def of_seed(seed: int) -> pd.DataFrame:
    """A row per lam for the queries of a seed, see `best_row`; lam = 0 is a sorted list."""
    dataset = fl.synthetic(seed=seed, dtype=torch.float64)
    lists = sorted_lists(dataset)
    rows = [best_row(dataset, 0.0, None, lists)]
    for lam, best in optimum_path(dataset, LAMS, STARTS).items():
        rows.append(best_row(dataset, lam, best.weights.tolist(), lists))
    return pd.DataFrame({"seed": seed, **row} for row in rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    table = pd.concat([of_seed(seed) for seed in range(SEEDS)], ignore_index=True)
    table.to_csv(STORED, index=False, float_format="%.8g")
