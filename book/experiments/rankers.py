"""The rankers of the paper's Table 1 and Figure 2 as experiments (chapters 10 and 11)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from experiments.catalogue import (
    GBDT,
    LAMBDAMART,
    LINEAR_PG_RANK,
    LINEAR_PG_RANK_ENTROPY,
    NETWORK_PG_RANK,
    NETWORK_PG_RANK_ENTROPY,
    RANK_SVM,
    named,
)
from experiments.cells import Cells, completed
from experiments.learners import CS, gbdt, rank_svm
from experiments.problems import Parts, RankingData
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import individual_disparity
from fairpg_lite.evaluation import Evaluation, evaluate
from fairpg_lite.exact import TOLERANCE
from fairpg_lite.policy import FixedRanking, PlackettLuce
from fairpg_lite.sweeps import Cell, FairPGRank, Trained, grid
from fairpg_lite.training.config import TrainConfig

#: Learning rates of the paper's appendix, by model.
PAPER_LR = {"linear": 1e-3, "neural": 5e-5}
#: Hidden units by model; None is a linear scorer.
HIDDEN = {"linear": None, "neural": 32}
TOP_GRADE = 4.0
#: What PG-Rank is called, by model and entropy weight.
PG_RANK_BY_MODEL = {
    ("linear", 0.0): LINEAR_PG_RANK,
    ("linear", 1.0): LINEAR_PG_RANK_ENTROPY,
    ("neural", 0.0): NETWORK_PG_RANK,
    ("neural", 1.0): NETWORK_PG_RANK_ENTROPY,
}
TREES_BY_OBJECTIVE = {"regression": GBDT, "lambdarank": LAMBDAMART}
#: What summary.md shows of these experiments, and its headings; all of the test queries.
COLUMNS = {
    "test_ndcg_at_10": "NDCG@10, sorted",
    "test_err": "ERR, sorted",
    "test_policy_ndcg_at_10": "NDCG@10, policy",
    "test_policy_d_ind": "D_ind, policy",
    "train_policy_ndcg_at_10": "NDCG@10, policy, training",
    "train_policy_d_ind": "D_ind, policy, training",
}


# What is measured


def sorted_measures(
    scorer: nn.Module, dataset: RankingDataset, per_query: bool = False
) -> dict[str, Any]:
    """What the most probable ranking is worth.

    Args:
        scorer: Any.
        dataset: The queries.
        per_query: Whether to list the queries' values, too.

    Returns:
        Counts, NDCG@10, ERR (whole list) and D_ind. ``without_relevant`` is the share of queries
        without anything relevant; their NDCG counts as 1.
    """
    scores = _scores(scorer, dataset)
    at_10 = evaluate(scores, dataset, ("ndcg_at_k",), k=10, deterministic=True, max_grade=TOP_GRADE)
    whole = evaluate(scores, dataset, ("err", "d_ind"), deterministic=True, max_grade=TOP_GRADE)
    n_without_relevant = sum(not query.relevance.any() for query in dataset)
    result: dict[str, Any] = {
        "queries": len(dataset),
        "documents": dataset.n_documents,
        "without_relevant": n_without_relevant / len(dataset),
        "ndcg_at_10": at_10.ndcg_at_k,
        "err": whole.err,
        "d_ind": whole.d_ind,
    }
    if per_query:
        result["ndcg_at_10_per_query"] = _rounded(at_10.per_query["ndcg_at_k"])
        result["err_per_query"] = _rounded(whole.per_query["err"])
    return result


def policy_measures(
    scorer: nn.Module, dataset: RankingDataset, per_query: bool = False
) -> dict[str, Any]:
    """What the readers of the policy see on average.

    Args:
        scorer: Whose Plackett-Luce policy is judged.
        dataset: The queries.
        per_query: Whether to list the queries' values, too; without it the means have seven digits,
            which saves a quarter of the time.

    Returns:
        NDCG, NDCG@10 and D_ind.
    """
    evaluation = evaluate(
        _scores(scorer, dataset),
        dataset,
        ("ndcg", "ndcg_at_k", "d_ind"),
        k=10,
        max_grade=TOP_GRADE,
        tolerance=TOLERANCE if per_query else 1e-6,
    )
    result: dict[str, Any] = {
        "policy_ndcg": evaluation.ndcg,
        "policy_ndcg_at_10": evaluation.ndcg_at_k,
        "policy_d_ind": evaluation.d_ind,
    }
    if per_query:
        result["policy_ndcg_at_10_per_query"] = _rounded(evaluation.per_query["ndcg_at_k"])
        result["policy_d_ind_per_query"] = _rounded(evaluation.per_query["d_ind"])
    return result


#: Probabilities of a random list, and temperatures, at which D_ind is stored.
CHANCES = tuple(round(0.1 * k, 1) for k in range(1, 10))
TEMPERATURES = (0.25, 0.5, 2.0, 4.0, 8.0, 16.0, 32.0)


@torch.no_grad()
def individual_forms(scorer: nn.Module, dataset: RankingDataset) -> dict[str, Any]:
    """What a comparison at equal D_ind needs of a scorer, in all forms of `experiments.protocol`.

    Args:
        scorer: Any.
        dataset: The queries.

    Returns:
        ``lottery_d_ind`` and ``sorted_lottery_d_ind`` at `CHANCES`, whose NDCG@10 lies on a
        straight line, ``heated_ndcg_at_10`` and ``heated_d_ind`` at `TEMPERATURES`, and
        ``uniform_ndcg_at_10``.
    """
    scores = _scores(scorer, dataset)
    policy_exposure = []
    sorted_exposure = []
    for query_scores in scores.split(dataset.lengths.tolist()):
        policy = PlackettLuce(query_scores)
        policy_exposure.append(policy.exposure(tolerance=1e-6))
        sorted_exposure.append(FixedRanking(policy.mode, dtype=torch.float64).exposure())
    heated_ndcg = []
    heated_d_ind = []
    for temperature in TEMPERATURES:
        heated = _ndcg_and_d_ind(scores / temperature, dataset)
        heated_ndcg.append(heated.ndcg_at_k)
        heated_d_ind.append(heated.d_ind)
    return {
        "lottery_d_ind": _lottery_d_ind(policy_exposure, dataset),
        "sorted_lottery_d_ind": _lottery_d_ind(sorted_exposure, dataset),
        "heated_ndcg_at_10": _rounded(heated_ndcg),
        "heated_d_ind": _rounded(heated_d_ind),
        "uniform_ndcg_at_10": _ndcg_and_d_ind(torch.zeros_like(scores), dataset).ndcg_at_k,
    }


def _ndcg_and_d_ind(scores: Tensor, dataset: RankingDataset) -> Evaluation:
    """The means of a Plackett-Luce policy, to seven digits."""
    measures = ("ndcg_at_k", "d_ind")
    return evaluate(scores, dataset, measures, k=10, max_grade=TOP_GRADE, tolerance=1e-6)


def _lottery_d_ind(exposures: list[Tensor], dataset: RankingDataset) -> list[float]:
    """Mean D_ind of the mixtures with random lists, at each of `CHANCES`."""
    means = []
    for chance in CHANCES:
        values = []
        for exposure, query in zip(exposures, dataset, strict=True):
            mixed = (1 - chance) * exposure + chance * exposure.mean()
            values.append(float(individual_disparity(mixed, query.relevance)))
        means.append(sum(values) / len(values))
    return _rounded(means)


@torch.no_grad()
def _scores(scorer: nn.Module, dataset: RankingDataset) -> Tensor:
    """Scores of all documents ``(N,)`` in double precision, computed in blocks."""
    blocks = dataset.features.split(1 << 14)
    return torch.cat([scorer(block).double() for block in blocks])


def _rounded(values: Iterable[Any]) -> list[float]:
    return [round(float(value), 6) for value in values]


def _prefixed(prefix: str, result: dict[str, Any]) -> dict[str, Any]:
    return {prefix + name: value for name, value in result.items()}


# The rankers


@dataclass(frozen=True)
class IndividualFairPGRank(FairPGRank):
    """Fair-PG-Rank with D_ind, and PG-Rank at lam = 0; `pg_rank` makes one with its name."""

    problem: RankingData
    per_query: bool = False
    """Whether the result lists the test queries' values one by one."""
    forms: bool = field(default=False, metadata={"stored": "if changed"})
    """Whether the result has what a comparison at equal D_ind needs."""

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:  # type: ignore[override]
        """Train and measure; no model is saved."""
        return self.measure(self.train(lam, seed))

    def measure(self, trained: Trained) -> dict[str, Any]:
        """What the scorer is worth as a policy and sorted, and the course of its training."""
        history = {
            "utility": _rounded(trained.history.utility),
            "disparity": _rounded(trained.history.disparity),
        }
        if trained.splits.valid is not None:
            history["valid_utility"] = _rounded(trained.history.valid_utility)
            history["valid_disparity"] = _rounded(trained.history.valid_disparity)
        updates_per_epoch = -(-len(trained.splits.train) // trained.config.batch_size)
        result: dict[str, Any] = {
            "data": self.problem.describe(trained.config.seed),
            "history": history,
            "updates": len(trained.history) * updates_per_epoch,
            "compiled": trained.history.compiled,
        }
        train = trained.splits.train
        test = trained.splits.test
        result |= _prefixed("train_", sorted_measures(trained.scorer, train))
        result |= _prefixed("train_", policy_measures(trained.scorer, train))
        result |= _prefixed("test_", sorted_measures(trained.scorer, test, self.per_query))
        result |= _prefixed("test_", policy_measures(trained.scorer, test, self.per_query))
        if self.forms:
            result |= individual_forms(trained.scorer, test)
        return result


def pg_rank(
    problem: RankingData,
    model: str = "linear",
    *,
    entropy: float = 1.0,
    epochs: int = 20,
    lr: float | None = None,
    samples: int = 10,
    batch_size: int = 1,
    patience: int | None = None,
    compiled: str | bool = "auto",
    per_query: bool = False,
    forms: bool = False,
) -> IndividualFairPGRank:
    """Fair-PG-Rank with D_ind, and PG-Rank at lam = 0; the defaults are the paper's appendix.

    Args:
        problem: The data.
        model: "linear", or "neural", one hidden layer of 32 ReLU units.
        entropy: The paper's gamma; the authors' stored runs had 0.
        epochs: Passes over the queries, at most.
        lr: Learning rate; None is the paper's, by model.
        samples: Rankings drawn per query.
        batch_size: Queries per update.
        patience: Not in the paper: as in `TrainConfig`, on the validation queries of ``problem``.
        compiled: Whether Numba trains; it gives the same numbers.
        per_query: Whether the result lists the test queries' values one by one.
        forms: Whether the result has what a comparison at equal D_ind needs.

    Returns:
        The experiment, to be called with (lam, seed).
    """
    config = TrainConfig(
        disparity="d_ind",
        entropy=entropy,
        samples=samples,
        epochs=epochs,
        lr=PAPER_LR[model] if lr is None else lr,
        batch_size=batch_size,
        patience=patience,
        compiled=compiled,
    )
    return IndividualFairPGRank(
        problem,
        config,
        HIDDEN[model],
        name=named(PG_RANK_BY_MODEL, (model, entropy)).name,
        per_query=per_query,
        forms=forms,
    )


@dataclass(frozen=True)
class Ranker(ABC):
    """What the other rankers share: their data, and how they are measured."""

    problem: RankingData
    per_query: bool = False
    """Whether the result lists the test queries' values one by one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that its results are stored by."""

    @abstractmethod
    def train(self, parts: Parts, seed: int) -> tuple[nn.Module, dict[str, Any]]:
        """A trained scorer, and what is to be noted of it."""

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        """Train and measure. Only lam = 0: these rankers have no price of disparity."""
        parts = self.problem.parts(seed)
        scorer, notes = self.train(parts, seed)
        result: dict[str, Any] = {"data": self.problem.describe(seed), **notes}
        result |= _prefixed("train_", sorted_measures(scorer, parts.train))
        result |= _prefixed("test_", sorted_measures(scorer, parts.test, self.per_query))
        return result


@dataclass(frozen=True)
class RankSVM(Ranker):
    """A linear RankSVM, its C chosen by NDCG@10 on the validation queries."""

    C: tuple[float, ...] = CS

    @property
    def name(self) -> str:
        return RANK_SVM.name

    def train(self, parts: Parts, seed: int) -> tuple[nn.Module, dict[str, Any]]:
        fitted = rank_svm(parts.train, valid=parts.valid, C=self.C)
        return fitted.scorer, {"C": fitted.C, "valid_ndcg_at_10": fitted.valid_ndcg}


@dataclass(frozen=True)
class Trees(Ranker):
    """Boosted trees, at most ``rounds``, fewer where validation queries say so for 30 rounds."""

    objective: str = "regression"
    """On the grades (the paper's GBDT), or "lambdarank" (LambdaMART)."""
    rounds: int = 300

    @property
    def name(self) -> str:
        return named(TREES_BY_OBJECTIVE, self.objective).name

    def train(self, parts: Parts, seed: int) -> tuple[nn.Module, dict[str, Any]]:
        scorer = gbdt(
            parts.train,
            objective=self.objective,
            valid=parts.valid,
            rounds=self.rounds,
            seed=seed,
        )
        return scorer, {"trees": int(scorer.booster.best_iteration or self.rounds)}


# Plans


def baselines(
    problem: RankingData, seeds: Iterable[int], *, quick: bool, per_query: bool = False
) -> list[Cell]:
    """The cells of both kinds of trees and of RankSVM.

    Args:
        problem: The data, with validation queries.
        seeds: One is enough if no seed draws the data.
        quick: Fewer trees and values of C.
        per_query: Whether results list the test queries' values one by one.

    Returns:
        One cell for each ranker and seed.
    """
    seeds = list(seeds)
    rounds = 30 if quick else 300
    constants = (1.0, 100.0) if quick else CS
    lambdamart = Trees(problem, per_query, "lambdarank", rounds)
    regression = Trees(problem, per_query, "regression", rounds)
    svm = RankSVM(problem, per_query, constants)
    return grid(lambdamart, [0.0], seeds) + grid(regression, [0.0], seeds) + grid(svm, [0.0], seeds)


def describe_data(cells: Cells) -> str:
    """The sentence that names the data of these cells; several if they are of several data."""
    sentences = [cell["result"]["data"] for cell in completed(cells)]
    return " ".join(dict.fromkeys(sentences))
