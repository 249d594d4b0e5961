"""The rankers of the paper's Table 1 and Figure 2 as experiments (chapters 10 and 11)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from experiments.learners import CS, gbdt, rank_svm
from experiments.problems import Split, describe, load_split
from experiments.summary import Cells, finished
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import evaluate
from fairpg_lite.scorers import LinearScorer, MLPScorer
from fairpg_lite.sweeps.records import Cell, grid
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.loop import fit

#: Learning rates of the paper's appendix, by model.
PAPER_LR = {"linear": 1e-3, "neural": 5e-5}
TOP_GRADE = 4.0
#: What summary.md shows of these experiments, and its headings; all of the test queries.
COLUMNS = {
    "test_ndcg_at_10": "NDCG@10, sorted",
    "test_err": "ERR, sorted",
    "test_policy_ndcg_at_10": "NDCG@10, policy",
    "test_policy_d_ind": "D_ind, policy",
    "train_policy_ndcg_at_10": "NDCG@10, policy, training",
    "train_policy_d_ind": "D_ind, policy, training",
}
#: A scorer, and what is worth noting about its training.
Trained = tuple[nn.Module, dict[str, Any]]


@dataclass(frozen=True)
class Ranker(ABC):
    """What all rankers share: their data, and how they are measured."""

    data: str = "stand-in"  # or "yahoo" or "mslr"
    share: float = 1.0  # of the queries
    per_query: bool = False  # whether the result lists the test queries' values one by one
    # Where Yahoo's files lie on this machine: no part of an experiment, and not stored.
    root: str | None = field(default=None, compare=False, kw_only=True)

    @abstractmethod
    def train(self, parts: Split, lam: float, seed: int) -> Trained:
        """A scorer trained on ``parts``, and what is to be noted of it."""

    def parts(self, seed: int) -> Split:
        return load_split(self.data, self.share, self.root, seed if self.data == "mslr" else 0)

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        parts = self.parts(seed)
        scorer, notes = self.train(parts, lam, seed)
        result: dict[str, Any] = {"data": describe(self.data, parts), **notes}
        for part in ("train", "test"):
            how = (isinstance(self, FairPGRank), self.per_query and part == "test")
            found = measure(scorer, getattr(parts, part), *how)
            result |= {f"{part}_{name}": value for name, value in found.items()}
        return result


@dataclass(frozen=True)
class FairPGRank(Ranker):
    """Fair-PG-Rank with D_ind, and PG-Rank at lam = 0; the defaults are the paper's appendix."""

    model: str = "linear"  # or "neural", one hidden layer of 32 ReLU units
    entropy: float = 1.0  # the paper's gamma; the authors' stored runs had 0
    epochs: int = 20
    lr: float | None = None  # None is the paper's, by model
    samples: int = 10
    batch_size: int = 1
    patience: int | None = None  # not in the paper: as in `TrainConfig`, on the validation queries
    compiled: str | bool = field(default="auto", compare=False)  # gives the same numbers

    @property
    def name(self) -> str:
        return f"fair_pg_rank-{self.model}-entropy{self.entropy:g}"

    def config(self, lam: float, seed: int) -> TrainConfig:
        names = ("entropy", "samples", "epochs", "batch_size", "patience", "compiled")
        settings = {name: getattr(self, name) for name in names}
        lr = PAPER_LR[self.model] if self.lr is None else self.lr
        return TrainConfig(lam=lam, disparity="individual", lr=lr, seed=seed, **settings)

    def scorer(self, dataset: RankingDataset, seed: int) -> nn.Module:
        """The model before training, initialised as in the paper, by a stream of its own."""
        kind = LinearScorer if self.model == "linear" else MLPScorer
        generator = torch.Generator().manual_seed(seed)
        return kind(dataset.n_features, generator=generator, dtype=dataset.features.dtype)

    def train(self, parts: Split, lam: float, seed: int) -> Trained:
        scorer, config = self.scorer(parts.train, seed), self.config(lam, seed)
        valid = None if self.patience is None else parts.valid
        history = fit(scorer, parts.train, config, valid, progress=False)
        if history.stopped == "interrupted":
            raise KeyboardInterrupt  # what Ctrl-C leaves behind is no result
        names = ("utility", "disparity", *(("valid_utility", "valid_disparity") if valid else ()))
        notes = {name: _rounded(getattr(history, name)) for name in names}
        updates = len(history) * -(-len(parts.train) // self.batch_size)
        return scorer, {"history": notes, "updates": updates, "compiled": history.compiled}


@dataclass(frozen=True)
class RankSVM(Ranker):
    """A linear RankSVM, its C chosen by NDCG@10 on the validation queries."""

    C: tuple[float, ...] = CS
    name = "rank_svm"

    def train(self, parts: Split, lam: float, seed: int) -> Trained:
        found = rank_svm(parts.train, validation=parts.valid, C=self.C)
        return found.scorer, {"C": found.setting, "valid_ndcg_at_10": found.objective}


@dataclass(frozen=True)
class Trees(Ranker):
    """Boosted trees, at most ``rounds``, fewer where validation queries say so for 30 rounds."""

    objective: str = "regression"  # on the grades (the paper's GBDT), or "lambdarank" (LambdaMART)
    rounds: int = 300

    @property
    def name(self) -> str:
        return "gbdt" if self.objective == "regression" else "lambdamart"

    def train(self, parts: Split, lam: float, seed: int) -> Trained:
        how: dict[str, Any] = {"objective": self.objective, "rounds": self.rounds, "seed": seed}
        scorer = gbdt(parts.train, validation=parts.valid, **how)
        return scorer, {"trees": int(scorer.booster.best_iteration or self.rounds)}


def protocol(
    lambdas: Iterable[float], seeds: range, quick: bool, policies: dict[str, Any], **common: Any
) -> list[Cell]:
    """The cells of Table 1 and Figure 2, longest first; baselines once if no seed draws the data.

    ``policies`` are settings of all `FairPGRank`, ``common`` of all rankers.
    """
    cells: list[Cell] = []
    for model in ("neural", "linear"):
        settings = {**common, **policies, "model": model}
        cells += grid(FairPGRank(entropy=0.0, **settings), lambdas, seeds)
        cells += grid(FairPGRank(entropy=1.0, **settings), [0.0], seeds)
    seeds = seeds if common["data"] == "mslr" else range(1)
    for objective in ("lambdarank", "regression"):
        trees = Trees(objective=objective, rounds=30 if quick else 300, **common)
        cells += grid(trees, [0.0], seeds)
    return cells + grid(RankSVM(C=(1.0, 100.0) if quick else CS, **common), [0.0], seeds)


def measure(
    scorer: nn.Module, dataset: RankingDataset, stochastic: bool, per_query: bool = False
) -> dict[str, Any]:
    """NDCG@10, ERR (whole list) and D_ind of the most probable ranking, and counts.

    ``stochastic`` adds what the policy's readers see on average. ``without_relevant`` is the share
    of queries without anything relevant; their NDCG counts as 1. ``per_query`` lists the queries'
    values; without it the policy's means have seven digits, which saves a quarter of the time.
    """
    with torch.no_grad():  # scored once, in blocks, then measured in several ways
        scores = torch.cat([scorer(block).double() for block in dataset.features.split(1 << 14)])
    at_10 = evaluate(scores, dataset, 10, deterministic=True, max_grade=TOP_GRADE)
    whole = evaluate(scores, dataset, deterministic=True, max_grade=TOP_GRADE)
    found: dict[str, Any] = {
        "queries": len(dataset),
        "documents": dataset.n_documents,
        "without_relevant": sum(not query.relevance.any() for query in dataset) / len(dataset),
        "ndcg_at_10": at_10.ndcg_at_k,
        "err": whole.err,
        "d_ind": whole.d_ind,
    }
    listed = {"ndcg_at_10": at_10.per_query["ndcg_at_k"], "err": whole.per_query["err"]}
    if stochastic:
        digits: dict[str, Any] = {} if per_query else {"tolerance": 1e-6}
        policy = evaluate(scores, dataset, 10, samples=1, max_grade=TOP_GRADE, **digits)
        names = {"policy_ndcg_at_10": "ndcg_at_k", "policy_d_ind": "d_ind"}
        found |= {"policy_ndcg": policy.ndcg}
        found |= {name: getattr(policy, own) for name, own in names.items()}
        listed |= {name: policy.per_query[own] for name, own in names.items()}
    if per_query:
        found |= {f"{name}_per_query": _rounded(values) for name, values in listed.items()}
    return found


def _rounded(values: Iterable[Any]) -> list[float]:
    return [round(float(value), 6) for value in values]


def data_of(cells: Cells) -> str:
    """The sentence that names the data of these cells; several if they are of several data."""
    return " ".join(dict.fromkeys(cell["result"]["data"] for cell in finished(cells)))


DATA = data_of
