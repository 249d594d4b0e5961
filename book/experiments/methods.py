"""The methods that the paper compares for group fairness, as experiments (chapters 9 and 12).

Each is called with (lam, seed) and returns measures of the same names, all from `evaluate` with
exact exposure:

- ``ndcg``, ``d_group`` (the paper's, one-sided) and ``group_gap`` (whichever group is ahead) of
  the policy on the test queries;
- ``sorted_…``: the same of the most probable ranking, where the method has scores;
- ``train_…``: the same on the training queries, where they are others;
- ``lottery_…`` and ``temperature_…``: what `experiments.mixtures` needs, on the test queries.
"""

from dataclasses import InitVar, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from experiments import mixtures
from experiments.problems import Parts, Problem
from fairpg_lite import baselines
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import evaluate
from fairpg_lite.evaluation import Evaluation
from fairpg_lite.relevance import exponential_gain, linear_gain
from fairpg_lite.scorers import LinearScorer
from fairpg_lite.train import fit


def measures(found: Evaluation, prefix: str = "") -> dict[str, float]:
    """The three numbers that the methods are compared by."""
    values = {"ndcg": found.ndcg, "d_group": found.d_group, "group_gap": found.group_gap}
    return {prefix + name: value for name, value in values.items()}


def judge(scorer: Any, dataset: RankingDataset, prefix: str = "") -> dict[str, float]:
    """A scorer as a stochastic policy, and sorted: its most probable ranking."""
    # ERR is the only sampled measure and is not used here: one sample will do.
    policy = evaluate(scorer, dataset, samples=1)
    best = evaluate(scorer, dataset, deterministic=True)
    return measures(policy, prefix) | measures(best, prefix + "sorted_")


def judge_parts(scorer: Any, parts: Parts) -> dict[str, Any]:
    """The test queries' measures, and the training queries' if they are not the same."""
    found: dict[str, Any] = judge(scorer, parts.test)
    found |= mixtures.lotteries(scorer, parts.test)
    return found if parts.train is parts.test else found | judge(scorer, parts.train, "train_")


def initial(dataset: RankingDataset, seed: int) -> LinearScorer:
    """The paper's linear model before training, without bias, from a stream of its own."""
    # Far from the small seeds that draw the data, the order of queries and the rankings.
    generator = torch.Generator().manual_seed(1_000_003 + seed)
    return LinearScorer(dataset.n_features, generator=generator, dtype=dataset.features.dtype)


def weights(scorer: nn.Module) -> dict[str, Any]:
    """The linear model: ``theta``, and each of the paper's two parameters by name."""
    assert isinstance(scorer, LinearScorer)
    theta = scorer.linear.weight.detach().flatten().tolist()
    named = {f"theta{i}": value for i, value in enumerate(theta, start=1)}
    return {"theta": theta, **(named if len(theta) == 2 else {})}


@dataclass(frozen=True)
class FairPGRank:
    """Fair-PG-Rank with a linear model, one query per update, Adam; D_group is charged for."""

    problem: Problem
    gradient: str = "sample"
    """How exposure gets its gradient, "sample" as in the paper or "exact"."""
    samples: int = 10
    epochs: int = 5
    lr: float = 0.1
    lr_decay: float = 0.5
    compiled: InitVar[str | bool] = "auto"
    """As in `TrainConfig`. No field, so not stored, since both ways give the same numbers."""

    def __post_init__(self, compiled: str | bool) -> None:
        object.__setattr__(self, "_compiled", compiled)

    @property
    def name(self) -> str:
        return f"fair_pg_rank-{self.gradient}-{self.problem.name}"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        parts = self.problem.load(seed)
        scorer = initial(parts.train, seed)
        config = TrainConfig(
            lam=lam,
            method=self.gradient,
            samples=self.samples,
            epochs=self.epochs,
            lr=self.lr,
            lr_decay=self.lr_decay,
            compiled=self.__dict__["_compiled"],
            seed=seed,
        )
        history = fit(scorer, parts.train, config, progress=False)
        if history.stopped == "interrupted":
            # A training that Ctrl-C cut short is no result.
            raise KeyboardInterrupt
        hot = mixtures.heat(scorer, parts.test) if lam == 0 else {}
        return weights(scorer) | judge_parts(scorer, parts) | hot


@dataclass(frozen=True)
class PostProcessing:
    """The linear programme on relevance estimated by least squares (the paper's first baseline).

    ``d_group_estimated`` is D_group as the programme sees it, on the estimates.
    """

    problem: Problem
    scaling: str = "definition"
    """"definition" is mean exposure over mean merit and gain 2^rel - 1, as in the paper's text;
    "authors": what the published notebooks solve, sum over mean and the estimate as gain."""
    on_train: bool = False
    """Whether the training queries are ranked as well; five times the work on German Credit."""

    @property
    def name(self) -> str:
        return f"post_processing-{self.scaling}-{self.problem.name}"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        parts = self.problem.load(seed)
        model = baselines.linear_regression(parts.train)
        result: dict[str, Any] = {"regression": model.linear.weight.detach().flatten().tolist()}
        result |= self.judge(model, parts.test, lam)
        if self.on_train and parts.train is not parts.test:
            result |= self.judge(model, parts.train, lam, "train_")
        return result

    def judge(
        self, model: nn.Module, dataset: RankingDataset, lam: float, prefix: str = ""
    ) -> dict[str, Any]:
        estimate: Tensor = model(dataset.features).detach()
        gain = linear_gain if self.scaling == "authors" else exponential_gain
        matrices = baselines.post_process(dataset, estimate, lam, scaling=self.scaling, gain=gain)
        believed = dataset.replace(relevance=estimate.clamp(min=0.0))
        thought = evaluate(matrices, believed).d_group
        found: dict[str, Any] = measures(evaluate(matrices, dataset), prefix)
        found |= {} if prefix else mixtures.lottery_of(matrices, dataset)
        return found | {f"{prefix}d_group_estimated": thought}


@dataclass(frozen=True)
class Deltr:
    """DELTR (Zehlike & Castillo), the paper's second baseline, with a linear model.

    Minimised by L-BFGS on all queries: the optimum that the paper's stochastic descent looks for,
    reached also where lambda makes the loss too stiff for any of the paper's learning rates.
    """

    problem: Problem
    gap: str = "one-sided"
    """"one-sided" is DELTR's own, "two-sided" the paper's text, "reversed" the authors' code."""
    target: str = "softmax"
    """"softmax" of relevance, DELTR's own; "relevance" in the authors' code."""

    @property
    def name(self) -> str:
        return f"deltr-{self.gap.replace('-', '_')}-{self.problem.name}"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        parts = self.problem.load(seed)
        start = initial(parts.train, seed)
        scorer = baselines.deltr(parts.train, lam, gap=self.gap, target=self.target, scorer=start)
        return weights(scorer) | judge_parts(scorer, parts)


def all_deltr(problem: Problem) -> list[Deltr]:
    """DELTR's own penalty, the paper's text, and the authors' code."""
    return [
        Deltr(problem, "one-sided"),
        Deltr(problem, "two-sided"),
        Deltr(problem, "reversed", "relevance"),
    ]


@dataclass(frozen=True)
class Uniform:
    """Every ranking with the same probability: what no learning at all gets. Only lam = 0."""

    problem: Problem

    @property
    def name(self) -> str:
        return f"uniform-{self.problem.name}"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        if lam != 0:
            raise ValueError(f"Uniform: lam is {lam}, and there is nothing to weigh; use lam=0.")
        parts = self.problem.load(seed)
        result = measures(evaluate(_no_scores, parts.test, samples=1))
        if parts.train is not parts.test:
            result |= measures(evaluate(_no_scores, parts.train, samples=1), "train_")
        return result


@dataclass(frozen=True)
class Fixed:
    """Weights that nobody learned, (5, 5 use): how much of x2 is fair? Only lam = 0. Chapter 13."""

    problem: Problem
    use: float = 0.0
    """The second weight as a share of the first."""

    @property
    def name(self) -> str:
        return f"fixed-{self.use:g}-{self.problem.name}"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        parts = self.problem.load(seed)
        scorer = LinearScorer(2, dtype=torch.float64)
        nn.init.constant_(scorer.linear.weight, 5.0)
        with torch.no_grad():
            scorer.linear.weight[0, 1] *= self.use
        return weights(scorer) | judge_parts(scorer, parts)


def _no_scores(features: Tensor) -> Tensor:
    return features[..., 0] * 0.0
