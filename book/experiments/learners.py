r"""The learners that Fair-PG-Rank is compared with, each at its best (chapters 9, 10 and 12).

Least squares, gradient-boosted trees, and RankSVM (Joachims 2002), which learns a linear scorer
from pairs of documents of the same query,

.. math:: \min_w \tfrac12 \|w\|^2 + \frac{C}{|\mathcal P|} \sum_{(i,j) \in \mathcal P}
          \max(0,\, 1 - w^\top x_i + w^\top x_j)^2

over those in which document i is more relevant than j. The squared hinge makes the problem smooth,
and only *scores* are compared, never feature vectors (Chapelle & Keerthi 2010). DELTR (Zehlike &
Castillo) alone of these is fair: a learning-to-rank loss with an exposure penalty,

.. math:: L = -\sum_i P_y(i) \log P_s(i) + \lambda\, \mathrm{gap}^2

with :math:`P_y, P_s` the probabilities of standing first under the judgements and the scores (a
softmax, as in ListNet), and the gap between the groups' mean top-1 exposure. Group 1 is protected.
"""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fairpg_lite._extras import require
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import evaluate
from fairpg_lite.scorers import LinearScorer

__all__ = ["deltr", "deltr_loss", "gbdt", "linear_regression", "rank_svm", "top_exposure_gap"]

#: The values of C that are tried on validation data, one to a decade.
CS = tuple(10.0**k for k in range(-2, 6))
_NEWTON_STEPS = 100
#: Which gap is squared.
GAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "one-sided": lambda behind: behind.relu(),
    "two-sided": lambda behind: behind,
    "reversed": lambda behind: (-behind).relu(),
}


@torch.no_grad()
def linear_regression(dataset: RankingDataset) -> LinearScorer:
    """Ordinary least squares with an intercept: a scorer ``(…, n, d)`` to relevance ``(…, n)``.

    All documents of all queries count alike. Redundant columns (a one-hot coding has them) share
    their weight: the solution of least norm in standardised features. Constant columns get none.
    Chapter 9.
    """
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


class Fitted(NamedTuple):
    """A trained ``scorer`` with the ``setting`` C that was chosen for it, by this NDCG@10."""

    scorer: LinearScorer
    setting: float
    objective: float


def rank_svm(
    train: RankingDataset,
    *,
    validation: RankingDataset | None = None,
    C: float | Sequence[float] = CS,
) -> Fitted:
    """The scorer with the best NDCG@10 on ``validation`` among the values of ``C``.

    A single C needs no validation data (``objective`` is then nan). C weighs the *mean* over all
    pairs of documents that differ in relevance; without one all weights are zero. Chapter 10.
    """
    values = [C] if isinstance(C, int | float) else list(C)
    if min(values) <= 0 or (validation is None and len(values) > 1):
        raise ValueError(f"rank_svm: C is {C}; give one above 0, or several and validation=….")
    lists = [
        start + (query.relevance.unsqueeze(-1) > query.relevance).nonzero()
        for start, query in zip(train.offsets.tolist(), train, strict=False)
    ]
    pairs = torch.cat([torch.zeros(0, 2, dtype=torch.int64), *lists]).T.contiguous()
    weights, found = np.zeros(train.n_features), []
    for c in sorted(map(float, values)):
        # The problem is convex: starting from the previous solution only saves time.
        weights = _newton(train.features, pairs, weights, c)
        scorer = LinearScorer(len(weights), init=0.0, dtype=train.features.dtype)
        scorer.linear.weight.data.copy_(torch.from_numpy(weights))
        judged = math.nan
        if validation is not None:
            judged = evaluate(scorer, validation, 10, deterministic=True).ndcg_at_k
        found.append(Fitted(scorer, c, judged))
    return max(found, key=lambda fitted: fitted.objective)


def _newton(features: Tensor, pairs: Tensor, start: np.ndarray, C: float) -> np.ndarray:
    """The best weights for ``pairs (2, p)``, each a better and a worse document."""
    better, worse = pairs
    factor = 2.0 * C / max(1, len(better))

    def margins(weights: np.ndarray) -> Tensor:
        """By how much the better document of each pair leads ``(p,)``; linear in ``weights``."""
        scores = (features @ torch.from_numpy(weights).to(features)).double()
        return scores[better] - scores[worse]

    def pull(values: Tensor) -> np.ndarray:
        """The transpose of `margins`: a value for each pair to one for each feature."""
        documents = torch.zeros(len(features), dtype=torch.float64)
        documents.index_add_(0, better, values).index_add_(0, worse, -values)
        return (features.T @ documents.to(features)).double().numpy()

    def value(weights: np.ndarray) -> tuple[float, np.ndarray]:
        missing = (1.0 - margins(weights)).relu()
        loss = 0.5 * float(weights @ weights) + 0.5 * factor * float(missing.square().sum())
        return loss, weights - factor * pull(missing)

    def curvature(weights: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return direction + factor * pull((margins(weights) < 1.0) * margins(direction))

    options = {"maxiter": _NEWTON_STEPS, "xtol": 1e-9 if features.dtype.itemsize == 8 else 1e-5}
    result = require("scipy.optimize", "experiments").minimize(
        value, start, jac=True, hessp=curvature, method="Newton-CG", options=options
    )
    if result.status == 1:  # 2 is the end as well: rounding hides the rest of the way down
        raise RuntimeError(f"rank_svm: C={C} takes more than {_NEWTON_STEPS} Newton steps.")
    return result.x


class TreeScorer(nn.Module):
    """Boosted trees as a scorer: features ``(…, n, d)`` to scores ``(…, n)``, without gradient.

    Many documents share a leaf, so scores tie; a deterministic ranking breaks ties by index.
    """

    def __init__(self, booster: Any):
        super().__init__()
        self.booster = booster

    def forward(self, features: Tensor) -> Tensor:
        flat = features.detach().cpu().reshape(-1, features.shape[-1])
        scores = self.booster.predict(flat.numpy(), num_threads=1)
        return torch.from_numpy(scores).to(features).reshape(features.shape[:-1])


def gbdt(
    train: RankingDataset,
    *,
    objective: str = "lambdarank",
    validation: RankingDataset | None = None,
    rounds: int = 300,
    seed: int = 0,
) -> TreeScorer:
    """Train trees with ``objective`` "lambdarank" (LambdaMART) or "regression" on the grades.

    With ``validation`` data training stops when NDCG@10 (for regression: the squared error) has not
    improved there for 30 rounds, and the best round is kept. "lambdarank" needs whole grades.
    Chapter 10.
    """
    lightgbm, ranks = require("lightgbm", "experiments"), objective == "lambdarank"

    def made(dataset: RankingDataset, **more: Any) -> Any:
        group = dataset.lengths.numpy() if ranks else None
        features, grades = dataset.features.numpy(), dataset.relevance.numpy()
        return lightgbm.Dataset(features, label=grades, group=group, **more)

    settings: dict[str, Any] = {"objective": objective, "metric": "ndcg" if ranks else "l2"}
    settings |= {"eval_at": [10], "seed": seed, "num_threads": 1, "verbosity": -1}
    settings |= {"deterministic": True, "force_row_wise": True}
    data, how = made(train), {}
    if validation is not None:
        how["valid_sets"] = [made(validation, reference=data)]
        how["callbacks"] = [lightgbm.early_stopping(30, verbose=False)]
    return TreeScorer(lightgbm.train(settings, data, rounds, **how))


def top_exposure_gap(scores: Tensor, groups: Tensor, mask: Tensor | None = None) -> Tensor:
    """How far the protected group is behind ``(…)``: others' mean top-1 exposure minus its own.

    Exposure is the softmax of ``scores (…, n)`` times v_1 = 1 (DELTR's text has 1/ln 2: its lambda
    is ours divided by (1/ln 2)**2). Where a side has no document there is no gap: 0. Chapter 9.
    """
    real = torch.ones_like(groups, dtype=torch.bool) if mask is None else mask
    top = scores.masked_fill(~real, -math.inf).softmax(-1)
    sides = torch.stack([(groups != 1) & real, (groups == 1) & real])
    others, ours = torch.where(sides, top, 0.0).sum(-1) / sides.sum(-1).clamp(min=1)
    return torch.where(sides.any(-1).all(0), others - ours, 0.0)


def deltr_loss(
    scores: Tensor,
    relevance: Tensor,
    groups: Tensor,
    lam: float,
    mask: Tensor | None = None,
    *,
    gap: str = "one-sided",
    target: str = "softmax",
) -> Tensor:
    """DELTR's loss ``(…)`` of ``scores (…, n)``, one value per query.

    ``gap``: "one-sided" (DELTR: penalise the protected group being behind), "two-sided" (the
    paper's text: the plain square) or "reversed" (the published notebooks: penalise it being
    ahead). ``target``: "softmax" of relevance (DELTR), or "relevance" itself (the notebooks).
    Chapter 9; appendix B.3 of the paper.

    >>> deltr_loss(torch.zeros(2), torch.tensor([1.0, 1.0]), torch.tensor([0, 1]), lam=1.0)
    tensor(0.6931)
    """
    if gap not in GAPS or target not in ("softmax", "relevance"):
        known = f"{list(GAPS)}, and 'softmax' or 'relevance'"
        raise ValueError(f"deltr_loss: gap is {gap!r} and target {target!r}; choose of {known}.")
    padding = torch.zeros_like(groups, dtype=torch.bool) if mask is None else ~mask
    aim = relevance.masked_fill(padding, 0.0)
    if target == "softmax":
        aim = relevance.masked_fill(padding, -math.inf).softmax(-1)
    # Padding has log-probability -inf; 0 * -inf must not happen.
    log_top = scores.masked_fill(padding, -math.inf).log_softmax(-1).masked_fill(padding, 0.0)
    behind = top_exposure_gap(scores, groups, mask)
    return -(aim * log_top).sum(-1) + lam * GAPS[gap](behind).square()


def deltr(train: RankingDataset, lam: float, *, scorer: nn.Module, **options: Any) -> nn.Module:
    """``scorer``, trained in place to the least mean `deltr_loss` over the queries, and returned.

    All queries at once by L-BFGS: the optimum that the paper's stochastic descent looks for. The
    initial weights are kept where no better ones are found. Chapter 9; appendix B.3 of the paper.
    """
    if train.groups is None or not 0 <= lam < math.inf:
        raise ValueError(f"deltr: give data with groups and a finite lam of 0 or more, not {lam}.")
    search = torch.optim.LBFGS(
        scorer.parameters(), max_iter=300, tolerance_grad=1e-9, tolerance_change=1e-12,
        history_size=20, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def mean_loss() -> Tensor:
        search.zero_grad()
        total = torch.zeros(())
        for batch in train.batches(256):
            known: Any = batch.relevance, batch.groups, lam, batch.mask
            part = deltr_loss(scorer(batch.features), *known, **options).sum() / len(train)
            part.backward()
            total = total + part.detach()
        return total

    before, start = copy.deepcopy(scorer.state_dict()), float(mean_loss())
    search.step(mean_loss)
    if not float(mean_loss()) < start:
        scorer.load_state_dict(before)
    search.zero_grad()
    return scorer
