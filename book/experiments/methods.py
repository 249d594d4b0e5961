"""The methods that the paper compares for group fairness, as experiments (chapters 9 and 12).

Each is called with (lam, seed) and returns measures of the same names: ``ndcg``, ``d_group`` and
``group_gap`` (whichever group is ahead) of the policy on the test queries; ``sorted_…``, of its
most probable ranking; ``train_…``, on the training queries if they are others; ``lottery_…`` and
``temperature_…``, what `experiments.mixtures` needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from experiments import mixtures
from experiments.catalogue import (
    DELTR_ONE_SIDED,
    DELTR_REVERSED,
    DELTR_TWO_SIDED,
    FAIR_PG_RANK,
    FAIR_PG_RANK_EXACT,
    POST_PROCESSING,
    POST_PROCESSING_WITH_FACTOR,
    UNIFORM,
    X1_ALONE,
    X1_AND_SOME_X2,
    Method,
    named,
)
from experiments.learners import deltr, linear_regression
from experiments.problems import GroupProblem
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import evaluate
from fairpg_lite.policy import Policy
from fairpg_lite.post_processing import post_process
from fairpg_lite.relevance import exponential_gain, linear_gain
from fairpg_lite.scorers import LinearScorer, Scorer, new_scorer
from fairpg_lite.sweeps import Cell, FairPGRank, Splits, Trained, grid
from fairpg_lite.training.config import TrainConfig

#: What the methods are compared by.
MEASURES = ("ndcg", "d_group", "group_gap")
#: What a method is called, by the setting that tells its versions apart.
FAIR_PG_RANK_BY_GRADIENT = {"sample": FAIR_PG_RANK, "exact": FAIR_PG_RANK_EXACT}
POST_PROCESSING_BY_SCALING = {
    "definition": POST_PROCESSING,
    "authors": POST_PROCESSING_WITH_FACTOR,
}
DELTR_BY_GAP = {
    "one-sided": DELTR_ONE_SIDED,
    "two-sided": DELTR_TWO_SIDED,
    "reversed": DELTR_REVERSED,
}
FIXED_BY_USE = {0.0: X1_ALONE, 0.25: X1_AND_SOME_X2}


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


def linear_model_result(scorer: nn.Module, splits: Splits) -> dict[str, Any]:
    """A linear model: its weights, and what it is worth as a policy and as its sorted list."""
    assert isinstance(scorer, LinearScorer)
    theta = scorer.linear.weight.detach().flatten().tolist()
    result: dict[str, Any] = {"theta": theta}
    if len(theta) == 2:  # the paper's two parameters, by name
        result["theta1"], result["theta2"] = theta
    result |= mixtures.lotteries(scorer, splits.test)
    for prefix, dataset in _parts(splits).items():
        result |= group_measures(scorer, dataset, prefix)
        result |= group_measures(scorer, dataset, f"{prefix}sorted_", deterministic=True)
    return result


def _parts(splits: Splits) -> dict[str, RankingDataset]:
    """The test queries, and the training queries if they are others, by the prefix of a number."""
    if splits.train is splits.test:
        return {"": splits.test}
    return {"": splits.test, "train_": splits.train}


# Fair-PG-Rank


def initial_scorer(dataset: RankingDataset, seed: int) -> LinearScorer:
    """The paper's linear model before training, without bias, from a stream of its own."""
    # Far from the small seeds that draw the data, the order of queries and the rankings.
    scorer = new_scorer(dataset.n_features, seed=1_000_003 + seed, dtype=dataset.features.dtype)
    assert isinstance(scorer, LinearScorer)
    return scorer


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
        return initial_scorer(train, seed)

    def measure(self, trained: Trained) -> dict[str, Any]:
        """The numbers of a linear model, at lambda 0 with those of its temperatures."""
        result = linear_model_result(trained.scorer, trained.splits)
        if trained.config.lam == 0:
            result |= mixtures.heat(trained.scorer, trained.splits.test)
        return result


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

    ``d_group_estimated`` is the disparity on the estimates.
    """

    scaling: str = "definition"
    """By the "definition", mean exposure over mean merit and gain 2^rel - 1, as in the text; or as
    the "authors" did, sum over mean and the estimate as gain."""
    on_train: bool = False
    """Whether the training queries are ranked as well."""

    @property
    def method(self) -> Method:
        return named(POST_PROCESSING_BY_SCALING, self.scaling)

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        splits = self.problem.load(seed)
        model = linear_regression(splits.train)
        gain = linear_gain if self.scaling == "authors" else exponential_gain
        parts = _parts(splits) if self.on_train else {"": splits.test}
        result: dict[str, Any] = {"regression": model.linear.weight.detach().flatten().tolist()}
        for prefix, dataset in parts.items():
            estimate: Tensor = model(dataset.features).detach()
            policies = post_process(dataset, estimate, lam, scaling=self.scaling, gain=gain)
            believed = dataset.replace(relevance=estimate.clamp(min=0.0))
            result |= group_measures(policies, dataset, prefix)
            d_group_estimated = evaluate(policies, believed, ("d_group",)).d_group
            result[f"{prefix}d_group_estimated"] = d_group_estimated
            if dataset is splits.test:
                result |= mixtures.lottery_of(policies, dataset)
        return result


@dataclass(frozen=True)
class Deltr(Rival):
    """DELTR (Zehlike & Castillo), the paper's second baseline, to the optimum of its loss."""

    gap: str = "one-sided"
    """DELTR's own; "two-sided" as in the text, "reversed" as in the code."""
    target: str = "softmax"
    """Of relevance, DELTR's own; "relevance" in the authors' code."""

    @property
    def method(self) -> Method:
        return named(DELTR_BY_GAP, self.gap)

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        splits = self.problem.load(seed)
        start = initial_scorer(splits.train, seed)
        scorer = deltr(splits.train, lam, scorer=start, gap=self.gap, target=self.target)
        return linear_model_result(scorer, splits)


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


# Plans


def rivals(
    problem: GroupProblem,
    programme_lams: Mapping[str, Sequence[float]],
    deltr_lams: Sequence[float],
    seeds: Iterable[int],
    on_train: bool = False,
) -> list[Cell]:
    """The cells of what the paper compares with, and of the uniform policy.

    Args:
        problem: The data.
        programme_lams: Lambdas of post-processing, by scaling.
        deltr_lams: Lambdas of DELTR.
        seeds: The same for all.
        on_train: Whether post-processing ranks the training queries as well.

    Returns:
        One cell for each lambda and seed of each method.
    """
    seeds = list(seeds)
    cells = []
    for scaling, lams in programme_lams.items():
        cells += grid(PostProcessing(problem, scaling, on_train), lams, seeds)
    cells += grid(Deltr(problem, "one-sided"), deltr_lams, seeds)
    cells += grid(Deltr(problem, "two-sided"), deltr_lams, seeds)
    # The authors' code has another target, too.
    cells += grid(Deltr(problem, "reversed", "relevance"), deltr_lams, seeds)
    cells += grid(Uniform(problem), [0.0], seeds)
    return cells


def few(lams: Sequence[float]) -> tuple[float, ...]:
    """What a quick version runs: the first, the last and one between show the shape."""
    return (lams[0], lams[len(lams) // 2], lams[-1])
