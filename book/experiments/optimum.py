"""What U - lam * D asks for, as opposed to what training finds (chapters 7 and 9).

With exact exposure the objective of a linear scorer is an ordinary function of its weights, with
kinks where a query's hinge switches, and it may have more than one hill.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from fairpg_lite import PlackettLuce, RankingDataset, expected_ndcg, group_disparity
from fairpg_lite.batch import Batch

TOLERANCE = 1e-8  # of exact exposure


class Optimum(NamedTuple):
    """The best weights that were found for one lam, with what they achieve."""

    weights: np.ndarray
    ndcg: float
    d_group: float


def measured(batch: Batch, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Exact mean NDCG and D_group of the policy with scores ``features @ weights (d,)``."""
    if batch.groups is None:
        raise ValueError("optimum: these queries have no groups, so they have no D_group.")
    policy = PlackettLuce(batch.features @ weights, batch.mask)
    exposure = policy.exposure(tolerance=TOLERANCE)
    ndcg = expected_ndcg(exposure, batch.relevance, mask=batch.mask)
    d_group = group_disparity(exposure, batch.relevance, batch.groups, mask=batch.mask)
    return ndcg.mean(), d_group.mean()


def optimum_path(
    dataset: RankingDataset, lams: Sequence[float], starts: Iterable[Sequence[float]]
) -> dict[float, Optimum]:
    """The weights ``(d,)`` that maximise mean NDCG - lam * D_group, for each lam.

    L-BFGS with the exact gradient climbs from all of ``starts`` at the smallest and at the largest
    lam. From there it follows the hill, upwards and downwards through ``lams``, and the better of
    the two optima counts. A simplex, which kinks do not stop, then finishes each. Finite
    weights need not be best: for small lam a sorted list, their limit, may beat all of them.
    """
    batch = next(iter(dataset.batches(len(dataset), dtype=torch.float64)))
    first = [np.asarray(start, dtype=np.float64) for start in starts]

    def loss(weights: np.ndarray, lam: float) -> tuple[float, np.ndarray]:
        leaf = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
        ndcg, d_group = measured(batch, leaf)
        value = lam * d_group - ndcg
        return value.item(), torch.autograd.grad(value, leaf)[0].numpy()

    def value(weights: np.ndarray, lam: float) -> float:
        with torch.no_grad():
            ndcg, d_group = measured(batch, torch.from_numpy(weights))
        return (lam * d_group - ndcg).item()

    ordered = sorted(lams)
    found: dict[float, list[tuple[float, np.ndarray]]] = {lam: [] for lam in ordered}
    for way in (ordered, ordered[::-1]):
        here = first
        for lam in way:
            ends = [
                minimize(
                    loss, x, lam, jac=True, method="L-BFGS-B", options={"maxfun": 60, "gtol": 1e-7}
                )
                for x in here
            ]
            best = min(ends, key=lambda end: end.fun)
            found[lam].append((best.fun, best.x))
            here = [best.x]
    path = {}
    for lam, ends in found.items():
        _, x = min(ends, key=lambda end: end[0])
        simplex = minimize(
            value, x, lam, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-9}
        )
        ndcg, d_group = measured(batch, torch.from_numpy(simplex.x))
        path[lam] = Optimum(simplex.x, ndcg.item(), d_group.item())
    return path
