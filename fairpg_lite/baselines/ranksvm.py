r"""RankSVM: a linear ranker from pairs of documents of the same query (Joachims 2002; chapter 10).

.. math:: \min_w \tfrac12 \|w\|^2 + \frac{C}{|\mathcal P|} \sum_{(i,j) \in \mathcal P}
          \max(0,\, 1 - w^\top x_i + w^\top x_j)^2

over the pairs of a query in which document i is more relevant than j. The squared hinge makes the
problem smooth, and only *scores* are compared: no difference of feature vectors is ever formed
(Chapelle & Keerthi 2010). A pair costs 16 bytes for its two documents, whatever the features.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairpg_lite._extras import require
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import evaluate
from fairpg_lite.scorers import LinearScorer

#: The values of C that are tried on validation data, one to a decade.
CS = tuple(10.0**k for k in range(-2, 6))


@dataclass(frozen=True)
class Fitted:
    """A trained ``scorer`` with the ``setting`` C that was chosen for it.

    ``objective`` is the NDCG@k it was chosen by, ``tried`` the one of every C tried.

    Chapter 10.
    """

    scorer: LinearScorer
    setting: float
    objective: float
    tried: dict[float, float]


def rank_svm(
    train: RankingDataset,
    *,
    validation: RankingDataset | None = None,
    C: float | Sequence[float] = CS,
    k: int | None = 10,
    max_iterations: int = 100,
) -> Fitted:
    """The scorer with the best NDCG@k on ``validation`` among the values of ``C``.

    A single C needs no validation data (``objective`` is then nan). C weighs the *mean* over all
    pairs, so a good value does not depend on the size of the dataset. Pairs of equally relevant
    documents do not count; data without any other pair gives weights of zero.

    Chapter 10.
    """
    values = [float(C)] if isinstance(C, int | float) else [float(c) for c in C]
    if not values or not all(0 < c < math.inf for c in values):
        raise ValueError(f"rank_svm: C is {C}; give positive numbers.")
    if validation is None and len(values) > 1:
        raise ValueError(
            f"rank_svm: {len(values)} values of C and no validation data to choose by; "
            "pass validation=… or a single C."
        )
    pairs = _Pairs(train)
    weights = np.zeros(train.n_features)
    tried: dict[float, float] = {}
    best: Fitted | None = None
    for c in sorted(values):
        # The problem is convex: starting from the previous solution only saves time.
        weights = _minimise(pairs, weights, c, max_iterations)
        scorer = LinearScorer(len(weights), init=0.0, dtype=train.features.dtype)
        with torch.no_grad():
            scorer.linear.weight.copy_(torch.from_numpy(weights))
        tried[c] = math.nan
        if validation is not None:
            tried[c] = evaluate(scorer, validation, k, deterministic=True).ndcg_at_k
        if best is None or tried[c] > best.objective:
            best = Fitted(scorer, c, tried[c], tried)
    assert best is not None
    return best


class _Pairs:
    """The pairs of a dataset as two lists of document numbers: ``better (p,)``, ``worse (p,)``."""

    def __init__(self, dataset: RankingDataset):
        self.features = dataset.features
        lists = [
            start + (query.relevance.unsqueeze(-1) > query.relevance).nonzero()
            for start, query in zip(dataset.offsets.tolist(), dataset, strict=False)
        ]
        pairs = torch.cat(lists) if lists else torch.zeros(0, 2, dtype=torch.int64)
        self.better, self.worse = pairs.T.contiguous()

    def margins(self, weights: np.ndarray) -> Tensor:
        """By how much the better document of each pair leads ``(p,)``; linear in ``weights``."""
        scores = (self.features @ torch.from_numpy(weights).to(self.features)).double()
        return scores[self.better] - scores[self.worse]

    def pull(self, values: Tensor) -> np.ndarray:
        """The transpose of `margins`: a value for each pair to one for each feature."""
        documents = torch.zeros(len(self.features), dtype=torch.float64)
        documents.index_add_(0, self.better, values).index_add_(0, self.worse, -values)
        return (self.features.T @ documents.to(self.features)).double().numpy()

    def hinge(self, weights: np.ndarray) -> Tensor:
        """By how much each pair misses its margin of one ``(p,)``."""
        return (1.0 - self.margins(weights)).relu()


def _minimise(pairs: _Pairs, start: np.ndarray, C: float, max_iterations: int) -> np.ndarray:
    """Newton's method; the loss is piecewise quadratic, so a few steps end at the minimum."""
    if not len(pairs.better):
        return np.zeros_like(start)
    factor = 2.0 * C / len(pairs.better)

    def value(weights: np.ndarray) -> tuple[float, np.ndarray]:
        missing = pairs.hinge(weights)
        loss = 0.5 * float(weights @ weights) + 0.5 * factor * float(missing.square().sum())
        return loss, weights - factor * pairs.pull(missing)

    def curvature(weights: np.ndarray, direction: np.ndarray) -> np.ndarray:
        active = (pairs.hinge(weights) > 0) * pairs.margins(direction)
        return direction + factor * pairs.pull(active)

    precise = pairs.features.dtype == torch.float64
    result = require("scipy.optimize", "experiments").minimize(
        value, start, jac=True, hessp=curvature, method="Newton-CG",
        options={"maxiter": max_iterations, "xtol": 1e-9 if precise else 1e-5},
    )  # fmt: skip
    if result.status == 1:  # 2 is the end as well: rounding hides the rest of the way down
        raise RuntimeError(
            f"rank_svm: C={C} is not solved after {max_iterations} Newton steps; "
            "rescale the features (dataset.normalize) or raise max_iterations."
        )
    return result.x
