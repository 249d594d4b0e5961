"""The methods that the paper compares for group fairness, as experiments (chapters 9 and 12).

Each is called with (lam, seed) and returns measures of the same names: ``ndcg``, ``d_group`` and
``group_gap`` (whichever group is ahead) of the policy on the test queries; ``sorted_…``, of its
most probable ranking; ``train_…``, on the training queries if they are others; ``lottery_…`` and
``temperature_…``, what `experiments.mixtures` needs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from experiments import learners, mixtures
from experiments.problems import Parts, Problem
from fairpg_lite import post_processing as baselines
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import evaluate
from fairpg_lite.relevance import exponential_gain, linear_gain
from fairpg_lite.scorers import LinearScorer
from fairpg_lite.sweeps.records import Cell, grid
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.loop import fit


def measures(policy: Any, dataset: RankingDataset, prefix: str = "", **how: Any) -> dict[str, Any]:
    """The three numbers that the methods are compared by, exact; ``how`` is that of `evaluate`."""
    # ERR is the only sampled measure and is not used here: one sample will do.
    found = evaluate(policy, dataset, samples=1, **how)
    return {prefix + name: getattr(found, name) for name in ("ndcg", "d_group", "group_gap")}


def judge(scorer: nn.Module, parts: Parts) -> dict[str, Any]:
    """A linear model: its weights, and what it is worth as a policy and as its sorted list."""
    assert isinstance(scorer, LinearScorer)
    theta = scorer.linear.weight.detach().flatten().tolist()
    found: dict[str, Any] = {"theta": theta}
    if len(theta) == 2:  # the paper's two parameters, by name
        found["theta1"], found["theta2"] = theta
    found |= mixtures.lotteries(scorer, parts.test)
    for prefix, dataset in _judged(parts):
        found |= measures(scorer, dataset, prefix)
        found |= measures(scorer, dataset, f"{prefix}sorted_", deterministic=True)
    return found


def _judged(parts: Parts) -> list[tuple[str, RankingDataset]]:
    """The test queries, and the training queries if they are not the same."""
    train = [] if parts.train is parts.test else [("train_", parts.train)]
    return [("", parts.test), *train]


def initial(dataset: RankingDataset, seed: int) -> LinearScorer:
    """The paper's linear model before training, without bias, from a stream of its own."""
    # Far from the small seeds that draw the data, the order of queries and the rankings.
    generator = torch.Generator().manual_seed(1_000_003 + seed)
    return LinearScorer(dataset.n_features, generator=generator, dtype=dataset.features.dtype)


@dataclass(frozen=True)
class Method:
    """What all methods share: a problem, and a name made of ``kind`` and the problem's."""

    problem: Problem
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        return f"{self.kind.format(**vars(self))}-{self.problem.name}".replace("-sided", "_sided")


@dataclass(frozen=True)
class FairPGRank(Method):
    """Fair-PG-Rank with a linear model, one query per update, Adam; D_group is charged for."""

    kind = "fair_pg_rank-{gradient}"
    gradient: str = "sample"  # of exposure: "sample" as in the paper, or "exact"
    samples: int = 10
    epochs: int = 5
    lr: float = 0.1
    lr_decay: float = 0.5
    compiled: str | bool = field(default="auto", compare=False)  # gives the same numbers

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        parts = self.problem.load(seed)
        scorer = initial(parts.train, seed)
        names = ("samples", "epochs", "lr", "lr_decay", "compiled")
        settings = {name: getattr(self, name) for name in names}
        config = TrainConfig(lam=lam, method=self.gradient, seed=seed, **settings)
        history = fit(scorer, parts.train, config, progress=False)
        if history.stopped == "interrupted":
            raise KeyboardInterrupt  # what Ctrl-C leaves behind is no result
        return judge(scorer, parts) | (mixtures.heat(scorer, parts.test) if lam == 0 else {})


@dataclass(frozen=True)
class PostProcessing(Method):
    """The linear programme on relevance estimated by least squares (the paper's first baseline).

    By the "definition", mean exposure over mean merit and gain 2^rel - 1, as in the text; or as the
    "authors" did, sum over mean and the estimate as gain. ``d_group_estimated``: on the estimates.
    """

    kind = "post_processing-{scaling}"
    scaling: str = "definition"
    on_train: bool = False  # whether the training queries are ranked as well

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        parts = self.problem.load(seed)
        model = learners.linear_regression(parts.train)
        result: dict[str, Any] = {"regression": model.linear.weight.detach().flatten().tolist()}
        gain = linear_gain if self.scaling == "authors" else exponential_gain
        for prefix, data in _judged(parts) if self.on_train else [("", parts.test)]:
            estimate: Tensor = model(data.features).detach()
            matrices = baselines.post_process(data, estimate, lam, scaling=self.scaling, gain=gain)
            believed = data.replace(relevance=estimate.clamp(min=0.0))
            result |= measures(matrices, data, prefix)
            result[f"{prefix}d_group_estimated"] = evaluate(matrices, believed).d_group
            result |= {} if prefix else mixtures.lottery_of(matrices, data)
        return result


@dataclass(frozen=True)
class Deltr(Method):
    """DELTR (Zehlike & Castillo), the paper's second baseline, to the optimum of its loss."""

    kind = "deltr-{gap}"
    gap: str = "one-sided"  # DELTR's own; "two-sided" as in the text, "reversed" as in the code
    target: str = "softmax"  # of relevance, DELTR's own; "relevance" in the authors' code

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        parts = self.problem.load(seed)
        start = initial(parts.train, seed)
        scorer = learners.deltr(parts.train, lam, gap=self.gap, target=self.target, scorer=start)
        return judge(scorer, parts)


@dataclass(frozen=True)
class Uniform(Method):
    """Every ranking with the same probability: what no learning at all gets. Only lam = 0."""

    kind = "uniform"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for prefix, dataset in _judged(self.problem.load(seed)):
            result |= measures(torch.zeros(dataset.n_documents).double(), dataset, prefix)
        return result


@dataclass(frozen=True)
class Fixed(Method):
    """Weights that nobody learned, (5, 5 use): how much of x2 is fair? Only lam = 0. Chapter 13."""

    kind = "fixed-{use:g}"
    use: float = 0.0

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        scorer = LinearScorer(2, dtype=torch.float64)
        with torch.no_grad():
            scorer.linear.weight.copy_(torch.tensor([[5.0, 5.0 * self.use]]))
        return judge(scorer, self.problem.load(seed))


def rivals(
    problem: Problem,
    programmes: Mapping[str, Sequence[float]],
    deltr: Sequence[float],
    seeds: Iterable[int],
    on_train: bool = False,
) -> list[Cell]:
    """The cells of what the paper compares with, and of the uniform policy; lambdas by scaling."""
    cells = []
    for scaling, lambdas in programmes.items():
        cells += grid(PostProcessing(problem, scaling, on_train), lambdas, seeds)
    for gap in ("one-sided", "two-sided", "reversed"):
        target = "relevance" if gap == "reversed" else "softmax"
        cells += grid(Deltr(problem, gap, target), deltr, seeds)
    return cells + grid(Uniform(problem), [0.0], seeds)


def few(lambdas: Sequence[float]) -> tuple[float, ...]:
    """What a quick version runs: the first, the last and one between show the shape."""
    return (lambdas[0], lambdas[len(lambdas) // 2], lambdas[-1])
