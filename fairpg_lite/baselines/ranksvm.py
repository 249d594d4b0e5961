r"""RankSVM: a linear ranker from pairs of documents of the same query (Joachims 2002; chapter 10).

.. math:: \min_w \tfrac12 \|w\|^2 + \frac{C}{|\mathcal P|} \sum_{(i,j) \in \mathcal P}
          \max(0,\, 1 - w^\top x_i + w^\top x_j)^2

over the pairs of a query in which document i is more relevant than j. The squared hinge makes the
problem smooth, and only *scores* are compared: no difference of feature vectors is ever formed
(Chapelle & Keerthi 2010). A pair costs 16 bytes for its two documents, whatever the features.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fairpg_lite.baselines.fitted import Fitted, mean_ndcg
from fairpg_lite.data import RankingDataset
from fairpg_lite.scorers import LinearScorer

#: The values of C that are tried on validation data, one to a decade.
CS = tuple(10.0**k for k in range(-2, 6))


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
        scorer = _scorer(weights, train.features.dtype)
        tried[c] = math.nan if validation is None else mean_ndcg(scorer, validation, k)
        if best is None or tried[c] > best.objective:
            best = Fitted(scorer, c, tried[c], tried)
    assert best is not None
    return best


def _scorer(weights: np.ndarray, dtype: torch.dtype) -> LinearScorer:
    scorer = LinearScorer(len(weights), init=0.0, dtype=dtype)
    with torch.no_grad():
        scorer.linear.weight.copy_(torch.from_numpy(weights).unsqueeze(0))
    return scorer


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
        self.missing = torch.zeros(len(pairs), dtype=torch.float64)

    def _margins(self, weights: np.ndarray) -> Tensor:
        scores = (self.features @ torch.from_numpy(weights).to(self.features)).double()
        return scores[self.better] - scores[self.worse]

    def _pull(self, pairs: Tensor) -> np.ndarray:
        """The transpose of `_margins`: a value for each pair to one for each feature."""
        documents = torch.zeros(len(self.features), dtype=torch.float64)
        documents.index_add_(0, self.better, pairs).index_add_(0, self.worse, -pairs)
        return (self.features.T @ documents.to(self.features)).double().numpy()

    def loss(self, weights: np.ndarray) -> float:
        """Mean squared hinge; remembers by how much each pair misses its margin."""
        self.missing = (1.0 - self._margins(weights)).relu()
        return float(self.missing.square().mean())

    def gradient(self) -> np.ndarray:
        """``(d,)``, at the weights of the last call of `loss`."""
        return self._pull(self.missing * (-2.0 / len(self.missing)))

    def curvature(self, direction: np.ndarray) -> np.ndarray:
        """Hessian times a direction ``(d,)``: only pairs that miss their margin have curvature."""
        active = torch.where(self.missing > 0, 2.0 / len(self.missing), 0.0)
        return self._pull(active * self._margins(direction))


def _minimise(pairs: _Pairs, weights: np.ndarray, C: float, max_iterations: int) -> np.ndarray:
    """Newton's method; the loss is piecewise quadratic, so a few steps end at the minimum."""
    if len(pairs.missing) == 0:
        return np.zeros_like(weights)
    digits = 1e-13 if pairs.features.dtype == torch.float64 else 1e-7
    value = 0.5 * float(weights @ weights) + C * pairs.loss(weights)
    for _ in range(max_iterations):
        gradient = weights + C * pairs.gradient()
        step = _solve_newton(pairs, gradient, C, digits)
        promised = float(gradient @ step)
        if promised <= digits * value:
            return weights
        length = 1.0
        while length > 1e-8:
            moved = weights - length * step
            now = 0.5 * float(moved @ moved) + C * pairs.loss(moved)
            if now <= value - 1e-4 * length * promised:
                break
            length /= 2.0
        else:
            # Rounding hides the rest of the way down.
            return weights
        weights, value = moved, now
    raise RuntimeError(
        f"rank_svm: C={C} is not solved after {max_iterations} Newton steps; "
        "rescale the features (dataset.normalize) or raise max_iterations."
    )


def _solve_newton(pairs: _Pairs, gradient: np.ndarray, C: float, digits: float) -> np.ndarray:
    """(I + C Hessian)^-1 gradient by conjugate gradients."""
    step, rest = np.zeros_like(gradient), gradient.copy()
    direction, norm = rest.copy(), float(rest @ rest)
    goal = norm * max(digits, 1e-8)
    for _ in range(2 * len(gradient)):
        if norm <= goal:
            break
        bent = direction + C * pairs.curvature(direction)
        size = norm / float(direction @ bent)
        step += size * direction
        rest -= size * bent
        previous, norm = norm, float(rest @ rest)
        direction = rest + (norm / previous) * direction
    return step
