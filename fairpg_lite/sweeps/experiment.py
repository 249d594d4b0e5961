"""Fair-PG-Rank as an experiment: train at one lambda and seed, measure, save the model.

The command line, the book's experiments and the benchmarks use this one class. What varies between
them is the problem (where the data come from), the settings, and what is measured; a subclass that
measures something else overrides `FairPGRank.measure`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from torch import nn

from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import evaluate
from fairpg_lite.measures import MEASURES, of_disparity
from fairpg_lite.models.model_file import save_model
from fairpg_lite.models.preparation import Preparation
from fairpg_lite.scorers import new_scorer
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.history import History
from fairpg_lite.training.loop import fit


@dataclass(frozen=True)
class Splits:
    """The queries of an experiment; as a `Problem`, the same ones for every seed."""

    train: RankingDataset
    """What is trained on."""
    test: RankingDataset
    """What is measured on."""
    valid: RankingDataset | None = None
    """What the epoch is chosen by; None keeps the last."""

    def load(self, seed: int) -> Self:
        """These queries, whatever the seed."""
        return self


class Problem(Protocol):
    """Where the queries of a seed come from: a frozen dataclass, which is stored as a setting."""

    def load(self, seed: int) -> Splits:
        """The queries of a seed."""


class Trained(NamedTuple):
    """A finished training: what there is to measure."""

    scorer: nn.Module
    history: History
    config: TrainConfig
    """With the run's own lambda and seed."""
    splits: Splits


@dataclass(frozen=True)
class FairPGRank:
    """Fair-PG-Rank on one problem, as an experiment of a sweep (PG-Rank where lambda is zero).

    Calling it trains one policy and returns what it measured.

    >>> from fairpg_lite import synthetic
    >>> problem = Splits(train=synthetic(20, seed=0), test=synthetic(20, seed=1))
    >>> experiment = FairPGRank(problem, TrainConfig(method="exact", epochs=2, lr=0.1))
    >>> sorted(experiment(lam=5.0, seed=0))
    ['d_group', 'k', 'ndcg']
    """

    problem: Problem
    """Where the queries come from; `Splits` for given ones."""
    config: TrainConfig = field(default_factory=TrainConfig)
    """How to train; its ``lam`` and ``seed`` are replaced by the run's."""
    hidden: int | None = None
    """Units of the scorer's hidden layer; None is a linear scorer."""
    evaluate_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `evaluate`, such as ``{"measures": ("ndcg", "err"), "k": 10}``."""
    name: str = "Fair-PG-Rank"
    """What it is called in tables and figures."""
    prepare: Preparation | None = field(default=None, compare=False)
    """What made the features, to be stored with the models."""

    def __call__(self, lam: float, seed: int, out: str | Path | None = None) -> dict[str, Any]:
        """Train, save and measure.

        Args:
            lam: Weight of the disparity.
            seed: Fixes the data (if the problem draws them), the start, and the training.
            out: The directory for the model; None saves none.

        Returns:
            What `measure` found, by name.
        """
        trained = self.train(lam, seed)
        if out is not None:
            self.save(trained, out)
        return self.measure(trained)

    def train(self, lam: float, seed: int) -> Trained:
        """Train one policy.

        Args:
            lam: Weight of the disparity.
            seed: Fixes the data (if the problem draws them), the start, and the training.

        Returns:
            The scorer, and what it was trained with.
        """
        splits = self.problem.load(seed)
        scorer = self.new_scorer(splits.train, seed)
        config = replace(self.config, lam=lam, seed=seed)
        history = fit(scorer, splits.train, config, splits.valid, progress=False)
        return Trained(scorer, history, config, splits)

    def new_scorer(self, train: RankingDataset, seed: int) -> nn.Module:
        """The scorer before training; for a subclass to override."""
        return new_scorer(train.n_features, self.hidden, seed=seed, dtype=train.features.dtype)

    def measure(self, trained: Trained) -> dict[str, Any]:
        """What is stored of a run, by name; for a subclass to override.

        Args:
            trained: A finished training.

        Returns:
            The means of `evaluate` on the test queries, None where no query has an answer. What
            ``evaluate_options`` does not say is as in the training: policy, gain, merit, position
            bias, and the disparity beside NDCG and D_group. A disparity of one's own is among them
            in any case, by the name of its function.
        """
        options = judged_as_trained(trained.config, trained.splits.test) | dict(
            self.evaluate_options
        )
        disparity = trained.config.disparity
        if callable(disparity) and hasattr(disparity, "__name__"):
            own = of_disparity(disparity.__name__, disparity.__name__, disparity)
            options["measures"] = (*options["measures"], own)
        evaluation = evaluate(trained.scorer, trained.splits.test, **options)
        measured: dict[str, Any] = {}
        for name, value in evaluation.to_dict().items():
            is_undefined = value is None or math.isnan(value)
            measured[name] = None if is_undefined else value
        return measured

    def save(self, trained: Trained, out: str | Path) -> None:
        """Write the model of a run to the directory ``out``, as `save_model` does."""
        save_model(
            trained.scorer,
            out,
            prepare=self.prepare,
            config=trained.config,
            history=trained.history,
            overwrite=True,
        )


def judged_as_trained(config: TrainConfig, test: RankingDataset) -> dict[str, Any]:
    """The options of `evaluate` with which a training is judged by what it was told to do.

    Args:
        config: The settings of the training.
        test: The queries to judge on.

    Returns:
        Policy, gain, merit, position bias and pooling of the training; NDCG, the disparity that was
        trained, and the default disparity of `evaluate` as measures.
    """
    default = "d_ind" if test.groups is None else "d_group"
    measures = ["ndcg", default]
    if isinstance(config.disparity, str) and config.disparity not in measures:
        needs_groups = "groups" in MEASURES[config.disparity].needs
        if not needs_groups or test.groups is not None:
            measures.append(config.disparity)
    options: dict[str, Any] = {
        "measures": tuple(measures),
        "gain": config.gain,
        "merit": config.merit,
        "position_bias": config.position_bias,
        "pooled": config.pooled,
    }
    if config.policy is not None:
        options["policy"] = config.policy
    return options
