r"""Rankers without fairness (chapters 9 and 10): least squares, RankSVM, gradient-boosted trees.

RankSVM (Joachims 2002) learns a linear scorer from pairs of documents of the same query,

.. math:: \min_w \tfrac12 \|w\|^2 + \frac{C}{|\mathcal P|} \sum_{(i,j) \in \mathcal P}
          \max(0,\, 1 - w^\top x_i + w^\top x_j)^2

over those in which document i is more relevant than j. The squared hinge makes the problem smooth,
and only *scores* are compared: no difference of feature vectors is ever formed (Chapelle & Keerthi
2010). A pair costs 16 bytes for its two documents, whatever the features.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairpg_lite._extras import require
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import evaluate
from fairpg_lite.scorers import LinearScorer

#: The values of C that are tried on validation data, one to a decade.
CS = tuple(10.0**k for k in range(-2, 6))
OBJECTIVES = ("regression", "lambdarank")
# LightGBM's table of gains, 2**grade - 1, ends here.
_TOP_GRADE = 30


@torch.no_grad()
def linear_regression(dataset: RankingDataset) -> LinearScorer:
    """Ordinary least squares with an intercept: a scorer ``(…, n, d)`` to relevance ``(…, n)``.

    All documents of all queries count alike. Redundant columns (a one-hot coding has them) share
    their weight: the solution of least norm in standardised features. Constant columns get none.

    Chapter 9.
    """
    if not dataset.n_documents:
        raise ValueError("linear_regression: the dataset has no documents to fit on.")
    features, relevance = dataset.features.double(), dataset.relevance.double()
    mean, level = features.mean(0), relevance.mean()
    deviation = (features - mean).square().mean(0).sqrt()
    # A constant column keeps a deviation of rounding size.
    deviation = torch.where(deviation > 1e-12 * mean.abs(), deviation, torch.inf)
    standard, target = (features - mean) / deviation, (relevance - level).unsqueeze(-1)
    solution = torch.linalg.lstsq(standard, target, rcond=1e-5, driver="gelsd").solution
    weight = solution[:, 0] / deviation
    model = LinearScorer(dataset.n_features, bias=True, init=0.0, dtype=dataset.features.dtype)
    model.linear.weight.copy_(weight)
    model.linear.bias.copy_(level - mean @ weight)
    return model


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
        weights = pairs.minimise(weights, c, max_iterations)
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
        pairs = torch.cat([torch.zeros(0, 2, dtype=torch.int64), *lists])
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

    def minimise(self, start: np.ndarray, C: float, max_iterations: int) -> np.ndarray:
        """Newton's method; the loss is piecewise quadratic, so a few steps end at the minimum."""
        if not len(self.better):
            return np.zeros_like(start)
        factor = 2.0 * C / len(self.better)

        def value(weights: np.ndarray) -> tuple[float, np.ndarray]:
            missing = (1.0 - self.margins(weights)).relu()
            loss = 0.5 * float(weights @ weights) + 0.5 * factor * float(missing.square().sum())
            return loss, weights - factor * self.pull(missing)

        def curvature(weights: np.ndarray, direction: np.ndarray) -> np.ndarray:
            active = (self.margins(weights) < 1.0) * self.margins(direction)
            return direction + factor * self.pull(active)

        precise = self.features.dtype == torch.float64
        options = {"maxiter": max_iterations, "xtol": 1e-9 if precise else 1e-5}
        result = require("scipy.optimize", "experiments").minimize(
            value, start, jac=True, hessp=curvature, method="Newton-CG", options=options
        )
        if result.status == 1:  # 2 is the end as well: rounding hides the rest of the way down
            raise RuntimeError(
                f"rank_svm: C={C} is not solved after {max_iterations} Newton steps; "
                "rescale the features (dataset.normalize) or raise max_iterations."
            )
        return result.x


class TreeScorer(nn.Module):
    """Boosted trees as a scorer: features ``(…, n, d)`` to scores ``(…, n)``, without gradient.

    Many documents share a leaf, so scores tie; a deterministic ranking breaks ties by index.

    Chapter 10.
    """

    def __init__(self, booster: Any, num_threads: int = 1):
        super().__init__()
        self.booster, self.num_threads = booster, num_threads

    def forward(self, features: Tensor) -> Tensor:
        flat = features.detach().cpu().reshape(-1, features.shape[-1])
        scores = self.booster.predict(flat.numpy(), num_threads=self.num_threads)
        return torch.from_numpy(scores).to(features).reshape(features.shape[:-1])


def gbdt(
    train: RankingDataset,
    *,
    objective: str = "lambdarank",
    validation: RankingDataset | None = None,
    rounds: int = 300,
    early_stopping: int = 30,
    k: int = 10,
    num_threads: int = 1,
    seed: int = 0,
    **parameters: Any,
) -> TreeScorer:
    """Train trees with ``objective`` "lambdarank" (LambdaMART) or "regression" on the grades.

    With ``validation`` data training stops when NDCG@k (for regression: the squared error) has not
    improved there for ``early_stopping`` rounds, and the best round is kept. "lambdarank" needs
    whole grades 0..30. ``parameters`` go to LightGBM, e.g. ``num_leaves=63``. The same seed and
    ``num_threads`` give the same trees. Too few documents for a single split (LightGBM's
    ``min_data_in_leaf`` is 20) give a constant score.

    Chapter 10.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"gbdt: objective is {objective!r}; choose one of {OBJECTIVES}.")
    lightgbm, ranks = require("lightgbm", "experiments"), objective == "lambdarank"

    def made(dataset: RankingDataset, **more: Any) -> Any:
        grades = dataset.relevance
        if not dataset.n_documents:
            raise ValueError("gbdt: the dataset has no documents to learn from.")
        odd = grades[(grades != grades.round()) | (grades > _TOP_GRADE)]
        if ranks and len(odd):
            raise ValueError(
                f"gbdt: relevance {float(odd[0])} is not a whole grade 0..{_TOP_GRADE}, which "
                "lambdarank needs; round it (dataset.replace(relevance=…)) or pass "
                "objective='regression'."
            )
        more["group"] = dataset.lengths.numpy() if ranks else None
        return lightgbm.Dataset(dataset.features.numpy(), label=grades.numpy(), **more)

    settings = {"objective": objective, "num_threads": num_threads, "seed": seed, "verbosity": -1}
    settings |= {"metric": "ndcg" if ranks else "l2", "eval_at": [k], "deterministic": True}
    how: dict[str, Any] = {}
    data = made(train)
    if validation is not None:
        how["valid_sets"] = [made(validation, reference=data)]
        how["callbacks"] = [lightgbm.early_stopping(early_stopping, verbose=False)]
    settings |= {"force_row_wise": True, **parameters}
    return TreeScorer(lightgbm.train(settings, data, rounds, **how), num_threads)
