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
from scipy.optimize import minimize
from torch import Tensor, nn

from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import evaluate
from fairpg_lite.scorers import LinearScorer

__all__ = [
    "deltr",
    "deltr_as_published",
    "deltr_loss",
    "gbdt",
    "linear_regression",
    "rank_svm",
    "top_exposure_gap",
]

#: The values of C that are tried on validation data, one to a decade.
CS = tuple(10.0**k for k in range(-2, 6))
_NEWTON_STEPS = 100
#: DELTR's learning rates, in the text's range; its passes are those of the authors' notebooks.
RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
PASSES = 10
#: Which gap is squared.
GAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "one-sided": lambda behind: behind.relu(),
    "two-sided": lambda behind: behind,
    "reversed": lambda behind: (-behind).relu(),
}


# Least squares


@torch.no_grad()
def linear_regression(dataset: RankingDataset, *, intercept: bool = True) -> LinearScorer:
    """Ordinary least squares of relevance on features (chapter 9).

    All documents of all queries count alike. Redundant columns (a one-hot coding has them) share
    their weight: the solution of least norm in standardised features. Constant columns get none.

    Args:
        dataset: Queries whose relevance is to be estimated.
        intercept: Whether a constant is estimated, too. The authors' code has none. Where the
            features are a full one-hot coding both ways predict the same.

    Returns:
        A scorer, features ``(…, n, d)`` to estimated relevance ``(…, n)``.
    """
    features = dataset.features.double()
    relevance = dataset.relevance.double()
    if not intercept:
        return _regression_through_zero(features, relevance, dataset.features.dtype)
    mean = features.mean(0)
    mean_relevance = relevance.mean()
    deviation = (features - mean).square().mean(0).sqrt()
    # A constant column keeps a deviation of rounding size.
    deviation = torch.where(deviation > 1e-12 * mean.abs(), deviation, torch.inf)
    standardised = (features - mean) / deviation
    target = (relevance - mean_relevance).unsqueeze(-1)
    solution = torch.linalg.lstsq(standardised, target, rcond=1e-5, driver="gelsd").solution
    weight = solution[:, 0] / deviation
    model = LinearScorer(dataset.n_features, bias=True, init=0.0, dtype=dataset.features.dtype)
    model.linear.weight.copy_(weight)
    model.linear.bias.copy_(mean_relevance - mean @ weight)
    return model


def _regression_through_zero(
    features: Tensor, relevance: Tensor, dtype: torch.dtype
) -> LinearScorer:
    """The least squares without a constant, of least norm."""
    target = relevance.unsqueeze(-1)
    solution = torch.linalg.lstsq(features, target, rcond=1e-10, driver="gelsd").solution
    model = LinearScorer(features.shape[-1], bias=True, init=0.0, dtype=dtype)
    model.linear.weight.copy_(solution[:, 0])
    model.linear.bias.zero_()
    return model


# RankSVM


class Fitted(NamedTuple):
    """A RankSVM, and how its constant was chosen."""

    scorer: LinearScorer
    C: float
    valid_ndcg: float
    """NDCG@10 on the validation queries, nan without any."""


def rank_svm(
    train: RankingDataset,
    *,
    valid: RankingDataset | None = None,
    C: float | Sequence[float] = CS,
) -> Fitted:
    """A linear RankSVM (chapter 10).

    Args:
        train: The training queries. Without a pair that differs in relevance all weights are zero.
        valid: Queries that choose among several values of C, by NDCG@10.
        C: Weight of the *mean* over all pairs of documents that differ in relevance; several are
            tried, and then ``valid`` is needed.

    Returns:
        The scorer with the best NDCG@10 on the validation queries.
    """
    values = [float(C)] if isinstance(C, int | float) else [float(value) for value in C]
    if min(values) <= 0:
        raise ValueError(f"rank_svm: C is {C}; give values above 0.")
    if valid is None and len(values) > 1:
        raise ValueError(
            f"rank_svm: C has {len(values)} values and nothing to choose by; give one, or valid=…."
        )
    pairs = _pairs(train)
    weights = np.zeros(train.n_features)
    fits = []
    for value in sorted(values):
        # The problem is convex: starting from the previous solution only saves time.
        weights = _newton(train.features, pairs, weights, value)
        scorer = LinearScorer(len(weights), init=0.0, dtype=train.features.dtype)
        scorer.linear.weight.data.copy_(torch.from_numpy(weights))
        valid_ndcg = math.nan
        if valid is not None:
            evaluation = evaluate(scorer, valid, ("ndcg_at_k",), k=10, deterministic=True)
            valid_ndcg = evaluation.ndcg_at_k
        fits.append(Fitted(scorer, value, valid_ndcg))
    return max(fits, key=lambda fitted: fitted.valid_ndcg)


def _pairs(dataset: RankingDataset) -> Tensor:
    """Rows ``(2, p)`` of a better and of a worse document, over all pairs that differ."""
    by_query = [torch.zeros(0, 2, dtype=torch.int64)]
    for start, query in zip(dataset.offsets.tolist(), dataset, strict=False):
        is_better = query.relevance.unsqueeze(-1) > query.relevance
        by_query.append(start + is_better.nonzero())
    return torch.cat(by_query).T.contiguous()


def _newton(features: Tensor, pairs: Tensor, start: np.ndarray, C: float) -> np.ndarray:
    """The best weights ``(d,)`` for ``pairs (2, p)``, each a better and a worse document."""
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

    def loss_and_slope(weights: np.ndarray) -> tuple[float, np.ndarray]:
        missing = (1.0 - margins(weights)).relu()
        loss = 0.5 * float(weights @ weights) + 0.5 * factor * float(missing.square().sum())
        return loss, weights - factor * pull(missing)

    def curvature(weights: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return direction + factor * pull((margins(weights) < 1.0) * margins(direction))

    is_double = features.dtype.itemsize == 8
    result = minimize(
        loss_and_slope,
        start,
        jac=True,
        hessp=curvature,
        method="Newton-CG",
        options={"maxiter": _NEWTON_STEPS, "xtol": 1e-9 if is_double else 1e-5},
    )
    if result.status == 1:  # 2 is the end as well: rounding hides the rest of the way down
        raise RuntimeError(f"rank_svm: C={C} takes more than {_NEWTON_STEPS} Newton steps.")
    solution: np.ndarray = result.x
    return solution


# Boosted trees


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
    valid: RankingDataset | None = None,
    rounds: int = 300,
    seed: int = 0,
) -> TreeScorer:
    """Gradient-boosted trees, by LightGBM (chapter 10).

    Args:
        train: The training queries.
        objective: "lambdarank" (LambdaMART), which needs whole grades, or "regression" on them.
        valid: Queries that stop training when NDCG@10 (for regression: the squared error) has not
            improved there for 30 rounds; the best round is kept.
        rounds: Trees, at most.
        seed: LightGBM's own.

    Returns:
        The trees as a scorer.
    """
    import lightgbm  # here, because it takes a second and most who import this file need none

    ranks = objective == "lambdarank"

    def as_lightgbm(dataset: RankingDataset, reference: Any = None) -> Any:
        return lightgbm.Dataset(
            dataset.features.numpy(),
            label=dataset.relevance.numpy(),
            group=dataset.lengths.numpy() if ranks else None,
            reference=reference,
        )

    settings = {
        "objective": objective,
        "metric": "ndcg" if ranks else "l2",
        "eval_at": [10],
        "seed": seed,
        "num_threads": 1,
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
    }
    data = as_lightgbm(train)
    if valid is None:
        return TreeScorer(lightgbm.train(settings, data, rounds))
    stop = lightgbm.early_stopping(30, verbose=False)
    booster = lightgbm.train(
        settings, data, rounds, valid_sets=[as_lightgbm(valid, data)], callbacks=[stop]
    )
    return TreeScorer(booster)


# DELTR


def top_exposure_gap(scores: Tensor, groups: Tensor, mask: Tensor | None = None) -> Tensor:
    """How far the protected group is behind: others' mean top-1 exposure minus its own (chapter 9).

    Exposure is the softmax of the scores times v_1 = 1 (DELTR's text has 1/ln 2: its lambda is ours
    divided by (1/ln 2)**2).

    Args:
        scores: ``(…, n)``.
        groups: ``(…, n)``; group 1 is protected.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(…)``; 0 where a side has no document.
    """
    is_real = torch.ones_like(groups, dtype=torch.bool) if mask is None else mask
    top = scores.masked_fill(~is_real, -math.inf).softmax(-1)
    sides = torch.stack([(groups != 1) & is_real, (groups == 1) & is_real])
    sizes = sides.sum(-1).clamp(min=1)
    others, protected = torch.where(sides, top, 0.0).sum(-1) / sizes
    has_both = sides.any(-1).all(0)
    return torch.where(has_both, others - protected, 0.0)


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
    """DELTR's loss, one value per query (chapter 9; appendix B.3 of the paper).

    Args:
        scores: ``(…, n)``.
        relevance: ``(…, n)``.
        groups: ``(…, n)``; group 1 is protected.
        lam: Weight of the squared gap.
        mask: ``(…, n)``, True for a real document; None: all are real.
        gap: "one-sided" (DELTR: penalise the protected group being behind), "two-sided" (the
            paper's text: the plain square) or "reversed" (the published notebooks: penalise it
            being ahead).
        target: "softmax" of relevance (DELTR), or "relevance" itself (the notebooks).

    Returns:
        ``(…)``.

    >>> deltr_loss(torch.zeros(2), torch.tensor([1.0, 1.0]), torch.tensor([0, 1]), lam=1.0)
    tensor(0.6931)
    """
    if gap not in GAPS:
        raise ValueError(f"deltr_loss: gap is {gap!r}; choose from {', '.join(GAPS)}.")
    is_padding = torch.zeros_like(groups, dtype=torch.bool) if mask is None else ~mask
    if target == "softmax":
        aim = relevance.masked_fill(is_padding, -math.inf).softmax(-1)
    elif target == "relevance":
        aim = relevance.masked_fill(is_padding, 0.0)
    else:
        raise ValueError(f"deltr_loss: target is {target!r}; choose 'softmax' or 'relevance'.")
    # Padding has log-probability -inf; 0 * -inf must not happen.
    log_top = scores.masked_fill(is_padding, -math.inf).log_softmax(-1)
    log_top = log_top.masked_fill(is_padding, 0.0)
    behind = top_exposure_gap(scores, groups, mask)
    return -(aim * log_top).sum(-1) + lam * GAPS[gap](behind).square()


def deltr(
    train: RankingDataset,
    lam: float,
    *,
    scorer: nn.Module,
    gap: str = "one-sided",
    target: str = "softmax",
) -> nn.Module:
    """Train a scorer to the least mean `deltr_loss` (chapter 9; appendix B.3 of the paper).

    All queries at once by L-BFGS: the optimum that the paper's stochastic descent looks for. The
    initial weights are kept where no better ones are found.

    Args:
        train: Queries with groups.
        lam: Weight of the squared gap.
        scorer: What is trained, in place.
        gap: That of `deltr_loss`.
        target: That of `deltr_loss`.

    Returns:
        The scorer.
    """
    if train.groups is None:
        raise ValueError("deltr: the dataset has no groups; dataset.replace(groups=...).")
    if not 0 <= lam < math.inf:
        raise ValueError(f"deltr: lam is {lam}; give a finite number, zero or more.")
    search = torch.optim.LBFGS(
        scorer.parameters(),
        max_iter=300,
        tolerance_grad=1e-9,
        tolerance_change=1e-12,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def mean_loss() -> Tensor:
        """The mean over all queries; its slope is left in the parameters."""
        search.zero_grad()
        total = torch.zeros(())
        for batch in train.batches(256):
            assert batch.groups is not None
            losses = deltr_loss(
                scorer(batch.features),
                batch.relevance,
                batch.groups,
                lam,
                batch.mask,
                gap=gap,
                target=target,
            )
            part = losses.sum() / len(train)
            part.backward()
            total = total + part.detach()
        return total

    initial_state = copy.deepcopy(scorer.state_dict())
    initial_loss = float(mean_loss())
    search.step(mean_loss)
    if not float(mean_loss()) < initial_loss:
        scorer.load_state_dict(initial_state)
    search.zero_grad()
    return scorer


class Descent(NamedTuple):
    """DELTR by stochastic gradient descent, and the learning rate that was best."""

    scorer: LinearScorer
    rate: float
    loss: float
    """Mean loss on the training queries."""


def deltr_as_published(
    train: RankingDataset,
    lam: float,
    *,
    scorer: LinearScorer,
    gap: str = "two-sided",
    target: str = "softmax",
    optimizer: str = "sgd",
    rates: Sequence[float] = RATES,
    seed: int = 0,
) -> Descent:
    """DELTR as the paper trains it: one query at a time, the best of several learning rates.

    The text has plain stochastic gradient descent and a search for the best learning rate in
    [.001, 1]; best is what has the lowest mean `deltr_loss` on the training queries. The authors'
    notebooks have Adam at .001. Both pass `PASSES` times over the queries, in a new order each
    time. All learning rates are trained side by side, on the same order of the queries.

    Args:
        train: Queries with groups, all of the same length.
        lam: Weight of the squared gap.
        scorer: Where every learning rate starts.
        gap: That of `deltr_loss`.
        target: That of `deltr_loss`.
        optimizer: "sgd" or "adam".
        rates: The learning rates to try.
        seed: Of the order of the queries.

    Returns:
        The best scorer, its learning rate and its loss.
    """
    batch = next(iter(train.batches(len(train), dtype=torch.float64)))
    assert batch.groups is not None
    features = batch.features.numpy()
    protected = (batch.groups == 1).numpy()
    aims = batch.relevance.numpy()
    if target == "softmax":
        aims = batch.relevance.softmax(-1).numpy()
    contrasts = _contrasts(protected)
    start = scorer.linear.weight.detach().double().numpy().ravel()
    weights = np.repeat(start[:, None], len(rates), axis=1)
    mean = np.zeros_like(weights)
    square = np.zeros_like(weights)
    rng = np.random.default_rng([seed, 20_180])
    steps = np.asarray(rates)
    count = 0
    for _ in range(PASSES):
        for query in rng.permutation(len(features)):
            slope = _deltr_slope(features[query], aims[query], contrasts[query], weights, lam, gap)
            if optimizer == "sgd":
                weights = weights - steps * slope
                continue
            count += 1
            mean = 0.9 * mean + 0.1 * slope
            square = 0.999 * square + 0.001 * slope**2
            unbiased = np.sqrt(square / (1 - 0.999**count)) + 1e-8
            weights = weights - steps * mean / (1 - 0.9**count) / unbiased
    losses = []
    for column in weights.T:
        scores = batch.features @ torch.from_numpy(column.copy())
        loss = deltr_loss(scores, batch.relevance, batch.groups, lam, gap=gap, target=target)
        losses.append(float(loss.mean()))
    best = int(np.nanargmin(losses))
    with torch.no_grad():
        scorer.linear.weight.copy_(torch.from_numpy(weights[:, best].copy()))
    return Descent(scorer, float(steps[best]), losses[best])


def _contrasts(protected: np.ndarray) -> np.ndarray:
    """What top-1 exposure is multiplied by to get the gap ``(Q, n)``; 0 where a side is empty."""
    sizes = protected.sum(-1, keepdims=True)
    others = protected.shape[-1] - sizes
    has_both = (sizes > 0) & (others > 0)
    weights = np.where(protected, -1 / np.maximum(sizes, 1), 1 / np.maximum(others, 1))
    return np.asarray(np.where(has_both, weights, 0.0))


def _deltr_slope(
    features: np.ndarray,
    aim: np.ndarray,
    contrast: np.ndarray,
    weights: np.ndarray,
    lam: float,
    gap: str,
) -> np.ndarray:
    """The gradient ``(d, R)`` of one query's loss at R weights ``(d, R)``."""
    scores = features @ weights
    top = np.exp(scores - scores.max(axis=0))
    top /= top.sum(axis=0)
    slope = top * aim.sum() - aim[:, None]
    behind = contrast @ top
    if gap == "one-sided":
        behind = np.maximum(behind, 0.0)
    elif gap == "reversed":
        behind = np.minimum(behind, 0.0)
    # d gap / d scores_i = top_i (contrast_i - gap), where gap is the unclipped one.
    raw = contrast @ top
    slope += 2 * lam * behind * top * (contrast[:, None] - raw)
    return np.asarray(features.T @ slope)
