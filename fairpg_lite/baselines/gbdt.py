"""Gradient-boosted trees by LightGBM (chapter 10): regression on grades, and LambdaMART."""

from typing import Any

import torch
from torch import Tensor, nn

from fairpg_lite._extras import require
from fairpg_lite.data import RankingDataset

OBJECTIVES = ("regression", "lambdarank")
# LightGBM's table of gains, 2**grade - 1, ends here.
_TOP_GRADE = 30


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
    lightgbm = require("lightgbm", "experiments")
    metric = {"metric": "ndcg" if objective == "lambdarank" else "l2", "eval_at": [k]}
    settings = {"objective": objective, "num_threads": num_threads, "seed": seed, **metric}
    settings |= {"deterministic": True, "force_row_wise": True, "verbosity": -1, **parameters}
    data = _lightgbm_data(lightgbm, train, objective)
    held_out, callbacks = [], []
    if validation is not None:
        held_out = [_lightgbm_data(lightgbm, validation, objective, data)]
        callbacks = [lightgbm.early_stopping(early_stopping, verbose=False)]
    booster = lightgbm.train(settings, data, rounds, valid_sets=held_out, callbacks=callbacks)
    return TreeScorer(booster, num_threads)


def _lightgbm_data(
    lightgbm: Any, dataset: RankingDataset, objective: str, reference: Any = None
) -> Any:
    grades = dataset.relevance
    if not dataset.n_documents:
        raise ValueError("gbdt: the dataset has no documents to learn from.")
    odd = grades[(grades != grades.round()) | (grades > _TOP_GRADE)]
    if objective == "lambdarank" and len(odd):
        raise ValueError(
            f"gbdt: relevance {float(odd[0])} is not a whole grade 0..{_TOP_GRADE}, which "
            "lambdarank needs; round it (dataset.replace(relevance=…)) or pass "
            "objective='regression'."
        )
    return lightgbm.Dataset(
        dataset.features.numpy(),
        label=grades.numpy(),
        group=dataset.lengths.numpy() if objective == "lambdarank" else None,
        reference=reference,
        free_raw_data=True,
    )
