"""The methods that the paper compares for group fairness, as experiments (chapters 9 and 12).

Each is called with (lam, seed) and returns measures of the same names: ``ndcg``, ``d_group`` and
``group_gap`` (whichever group is ahead) of the policy on the test queries; ``sorted_…``, of its
most probable ranking; ``train_…``, on the training queries; ``exposure_ratio``, the exposure per
merit of group 1 over that of group 0, over all queries; ``lottery_…`` and ``temperature_…``, what
`experiments.mixtures` needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from experiments import mixtures
from experiments.catalogue import (
    BETTER_GROUP_FIRST,
    BY_RELEVANCE,
    DELTR,
    DELTR_CODE,
    DELTR_ONE_SIDED,
    DELTR_OPTIMUM,
    FAIR_PG_RANK,
    FAIR_PG_RANK_EXACT,
    POST_PROCESSING,
    POST_PROCESSING_INTERCEPT,
    POST_PROCESSING_WITH_FACTOR,
    UNIFORM,
    X1_ALONE,
    X1_AND_SOME_X2,
    X1_AND_X2,
    Method,
    named,
)
from experiments.learners import RATES, deltr, deltr_as_published, linear_regression
from experiments.optimum import whole_batch
from experiments.problems import GermanData, GroupProblem, SyntheticData
from experiments.two_sorts import programme_exposure
from fairpg_lite.batch import Batch
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import group_disparity, group_gap
from fairpg_lite.evaluation import evaluate
from fairpg_lite.policy import FixedRanking, PlackettLuce, Policy
from fairpg_lite.relevance import exponential_gain, linear_gain
from fairpg_lite.scorers import LinearScorer, Scorer, score
from fairpg_lite.sweeps import FairPGRank, Splits, Trained
from fairpg_lite.training.config import TrainConfig

#: A disparity below this is called zero.
ZERO = 1e-6
#: What the methods are compared by.
MEASURES = ("ndcg", "d_group", "group_gap")
#: What a method is called, by the setting that tells its versions apart.
FAIR_PG_RANK_BY_GRADIENT = {"sample": FAIR_PG_RANK, "exact": FAIR_PG_RANK_EXACT}
POST_PROCESSING_BY_SETTINGS = {
    ("definition", False): POST_PROCESSING,
    ("definition", True): POST_PROCESSING_INTERCEPT,
    ("authors", False): POST_PROCESSING_WITH_FACTOR,
}
DELTR_BY_OPTIMIZER = {"sgd": DELTR, "adam": DELTR_CODE}
DELTR_BY_GAP = {"one-sided": DELTR_ONE_SIDED, "two-sided": DELTR_OPTIMUM}
FIXED_BY_USE = {0.0: X1_ALONE, 0.25: X1_AND_SOME_X2, 1.0: X1_AND_X2}
IDEAL_BY_ORDER = {"relevance": BY_RELEVANCE, "group": BETTER_GROUP_FIRST}


# What is measured


def group_measures(
    ranker: Scorer | Tensor | Sequence[Policy],
    dataset: RankingDataset,
    prefix: str = "",
    *,
    deterministic: bool = False,
) -> dict[str, float]:
    """The three numbers that the methods are compared by, exact.

    Args:
        ranker: What `evaluate` takes.
        dataset: Queries with groups.
        prefix: Goes before each name.
        deterministic: Judge the most probable ranking.

    Returns:
        NDCG, D_group and the gap, by name.
    """
    evaluation = evaluate(ranker, dataset, MEASURES, deterministic=deterministic)
    return {prefix + name: mean for name, mean in evaluation.means.items()}


@torch.no_grad()
def exposure_ratio(exposure: Tensor, batch: Batch) -> float:
    """What group 1 gets per unit of merit, over what group 0 gets; all queries together.

    Args:
        exposure: ``(Q, n)``.
        batch: The Q queries, with groups.

    Returns:
        Above 1 where group 1 is ahead.
    """
    assert batch.groups is not None
    per_merit = []
    for group in (0, 1):
        members = (batch.groups == group) & batch.mask
        per_merit.append(exposure[members].sum() / batch.relevance[members].sum())
    return float(per_merit[1] / per_merit[0])


@torch.no_grad()
def exposure_ratios(scorer: Scorer, dataset: RankingDataset) -> dict[str, float]:
    """`exposure_ratio` of a scorer's policy and of its sorted list, by stored name."""
    batch = whole_batch(dataset)
    policy = PlackettLuce(score(scorer, batch), batch.mask)
    ranking = FixedRanking(policy.mode, batch.mask, torch.float64)
    return {
        "exposure_ratio": exposure_ratio(policy.exposure(), batch),
        "sorted_exposure_ratio": exposure_ratio(ranking.exposure(), batch),
    }


def linear_model_result(scorer: nn.Module, splits: Splits) -> dict[str, Any]:
    """A linear model: its weights, and what it is worth in all forms that a comparison allows."""
    assert isinstance(scorer, LinearScorer)
    theta = scorer.linear.weight.detach().flatten().tolist()
    result: dict[str, Any] = {"theta": theta}
    if len(theta) == 2:  # the paper's two parameters, by name
        result["theta1"], result["theta2"] = theta
    result |= mixtures.lotteries(scorer, splits.test)
    result |= mixtures.heat(scorer, splits.test)
    result |= exposure_ratios(scorer, splits.test)
    for prefix, dataset in _parts(splits).items():
        result |= group_measures(scorer, dataset, prefix)
        result |= group_measures(scorer, dataset, f"{prefix}sorted_", deterministic=True)
    return result


def _parts(splits: Splits) -> dict[str, RankingDataset]:
    """The test and the training queries, by the prefix of a number."""
    return {"": splits.test, "train_": splits.train}


# Fair-PG-Rank


def initial_scorer(dataset: RankingDataset, seed: int, start: float = 1e-3) -> LinearScorer:
    """The paper's linear model before training, without bias, from a stream of its own.

    Args:
        dataset: Has the number of features and their dtype.
        seed: Of the run.
        start: Weights start within this distance of 0.

    Returns:
        The scorer.
    """
    # Far from the small seeds that draw the data, the order of queries and the rankings.
    generator = torch.Generator().manual_seed(1_000_003 + seed)
    dtype = dataset.features.dtype
    return LinearScorer(dataset.n_features, init=start, generator=generator, dtype=dtype)


@dataclass(frozen=True)
class GroupFairPGRank(FairPGRank):
    """Fair-PG-Rank with a linear model, measured as the other methods here are.

    `fair_pg_rank` makes one with its name and the settings of the synthetic experiment.
    """

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:  # type: ignore[override]
        """Train and measure; the weights are in the result, so no model is saved."""
        return self.measure(self.train(lam, seed))

    def new_scorer(self, train: RankingDataset, seed: int) -> nn.Module:
        """See `initial_scorer`."""
        assert isinstance(self.problem, SyntheticData | GermanData)
        return initial_scorer(train, seed, self.problem.start)

    def measure(self, trained: Trained) -> dict[str, Any]:
        """The numbers of a linear model."""
        return linear_model_result(trained.scorer, trained.splits)


def fair_pg_rank(
    problem: GroupProblem,
    gradient: str = "sample",
    *,
    samples: int = 10,
    epochs: int = 5,
    lr: float = 0.1,
    lr_decay: float = 0.5,
    compiled: str | bool = "auto",
) -> GroupFairPGRank:
    """Fair-PG-Rank with a linear model, one query per update, Adam; D_group is charged for.

    Args:
        problem: The data.
        gradient: Of exposure, "sample" as in the paper, or "exact".
        samples: Rankings drawn per query.
        epochs: Passes over the queries.
        lr: Learning rate.
        lr_decay: Factor on it after every epoch.
        compiled: Whether Numba trains; it gives the same numbers.

    Returns:
        The experiment, to be called with (lam, seed).
    """
    config = TrainConfig(
        disparity="d_group",
        method=gradient,
        samples=samples,
        epochs=epochs,
        lr=lr,
        lr_decay=lr_decay,
        compiled=compiled,
    )
    method = named(FAIR_PG_RANK_BY_GRADIENT, gradient)
    return GroupFairPGRank(problem, config, name=method.on(problem.variant))


# What it is compared with


@dataclass(frozen=True)
class Rival(ABC):
    """What the other methods share: a problem, and the name that follows from their settings."""

    problem: GroupProblem

    @property
    @abstractmethod
    def method(self) -> Method:
        """What this is called in figures and tables."""

    @property
    def name(self) -> str:
        """The name that its results are stored by."""
        return self.method.on(self.problem.variant)

    @abstractmethod
    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        """Train and measure."""


@dataclass(frozen=True)
class PostProcessing(Rival):
    """The linear programme on relevance estimated by least squares (the paper's first baseline).

    ``d_group_estimated`` is the disparity on the estimates, ``unfair_on_estimates`` the share of
    queries in which it is above `ZERO`.
    """

    scaling: str = "definition"
    """By the "definition", mean exposure over mean merit and gain 2^rel - 1, as in the text; or as
    the "authors" did, sum over mean and the estimate as gain."""
    intercept: bool = False
    """Whether least squares has one; the authors' code has none."""

    @property
    def method(self) -> Method:
        return named(POST_PROCESSING_BY_SETTINGS, (self.scaling, self.intercept))

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        splits = self.problem.load(seed)
        test = splits.test
        model = linear_regression(splits.train, intercept=self.intercept)
        gain = linear_gain if self.scaling == "authors" else exponential_gain
        estimate: Tensor = model(test.features).detach()
        exposure = programme_exposure(test, estimate, lam, scaling=self.scaling, gain=gain)
        batch = whole_batch(test)
        assert batch.groups is not None
        believed = estimate.clamp(min=0.0).view_as(exposure)
        on_estimates = group_disparity(exposure, believed, batch.groups)
        result: dict[str, Any] = {"regression": model.linear.weight.detach().flatten().tolist()}
        result |= mixtures.lottery_of(exposure, batch)
        gap = group_gap(exposure, batch.relevance, batch.groups)
        result["group_gap"] = float(gap.mean())
        result["d_group_estimated"] = float(on_estimates.mean())
        result["unfair_on_estimates"] = float((on_estimates > ZERO).double().mean())
        return result


@dataclass(frozen=True)
class Deltr(Rival):
    """DELTR (Zehlike & Castillo), the paper's second baseline, to the optimum of its loss."""

    gap: str = "two-sided"
    """As in the text, or "one-sided", DELTR's own."""

    @property
    def method(self) -> Method:
        return named(DELTR_BY_GAP, self.gap)

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        splits = self.problem.load(seed)
        start = initial_scorer(splits.train, seed)
        scorer = deltr(splits.train, lam, scorer=start, gap=self.gap)
        return linear_model_result(scorer, splits)


@dataclass(frozen=True)
class PublishedDeltr(Rival):
    """DELTR as the paper trains it: by the text, or by the authors' code.

    The text: two-sided gap, plain descent, the best learning rate in [.001, 1]. The code: reversed
    gap, relevance itself as target, Adam at .001.
    """

    optimizer: str = "sgd"
    """"sgd" is the text's, "adam" the code's."""

    @property
    def method(self) -> Method:
        return named(DELTR_BY_OPTIMIZER, self.optimizer)

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        splits = self.problem.load(seed)
        is_text = self.optimizer == "sgd"
        found = deltr_as_published(
            splits.train,
            lam,
            scorer=initial_scorer(splits.train, seed),
            gap="two-sided" if is_text else "reversed",
            target="softmax" if is_text else "relevance",
            optimizer=self.optimizer,
            rates=RATES if is_text else (1e-3,),
            seed=seed,
        )
        result = linear_model_result(found.scorer, splits)
        return result | {"rate": found.rate, "train_loss": found.loss}


@dataclass(frozen=True)
class Uniform(Rival):
    """Every ranking with the same probability: what no learning at all gets. Only lam = 0."""

    @property
    def method(self) -> Method:
        return UNIFORM

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for prefix, dataset in _parts(self.problem.load(seed)).items():
            equal_scores = torch.zeros(dataset.n_documents, dtype=torch.float64)
            result |= group_measures(equal_scores, dataset, prefix)
        return result


@dataclass(frozen=True)
class Fixed(Rival):
    """Weights that nobody learned, (5, 5 use): how much of x2 is fair? Only lam = 0. Chapter 13."""

    use: float = 0.0

    @property
    def method(self) -> Method:
        return named(FIXED_BY_USE, self.use)

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        scorer = LinearScorer(2, dtype=torch.float64)
        with torch.no_grad():
            scorer.linear.weight.copy_(torch.tensor([[5.0, 5.0 * self.use]]))
        return linear_model_result(scorer, self.problem.load(seed))


@dataclass(frozen=True)
class Ideal(Rival):
    """Lists of somebody who knows the relevance of the test queries. Only lam = 0. Chapter 13."""

    order: str = "relevance"
    """Documents by "relevance", or the whole "group" with more mean relevance on top."""

    @property
    def method(self) -> Method:
        return named(IDEAL_BY_ORDER, self.order)

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        test = self.problem.load(seed).test
        scores = test.relevance.clone()
        if self.order == "group":
            scores = _merit_of_own_group(test)
        return group_measures(scores, test, deterministic=True)


def _merit_of_own_group(dataset: RankingDataset) -> Tensor:
    """For every document the mean relevance of its group in its query ``(N,)``."""
    merits = []
    for query in dataset:
        assert query.groups is not None
        means = torch.zeros(len(query.relevance), dtype=query.relevance.dtype)
        for group in query.groups.unique():
            members = query.groups == group
            means[members] = query.relevance[members].mean()
        merits.append(means)
    return torch.cat(merits)


# Plans


def few(lams: Sequence[float]) -> tuple[float, ...]:
    """What a quick version runs: the first, the last and one between show the shape."""
    return (lams[0], lams[len(lams) // 2], lams[-1])
