"""Fair-PG-Rank with scikit-learn's manners: ``fit``, ``predict``, ``get_params`` (chapter 14).

scikit-learn's `clone`, pipelines and searches ask for a few methods, not for a base class.
"""

from collections.abc import Hashable
from dataclasses import fields
from typing import Any, Self

import numpy as np
import torch

from fairpg_lite.data import RankingDataset
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.scorers import eval_mode, new_scorer
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.loop import fit

_DEFAULTS = {"hidden": None} | {field.name: field.default for field in fields(TrainConfig)}


class FairRanker:
    """A stochastic ranking policy that maximises utility less ``lam`` times disparity.

    Rows of ``X (N, d)`` are documents, ``qid (N,)`` says which belong to one query (they need not
    be neighbours), ``y (N,)`` is their relevance, ``groups (N,)`` their groups. The settings are
    the fields of `TrainConfig`, by name: ``lam``, ``disparity``, ``epochs``, …, and ``hidden``, the
    units of a hidden layer (None: a linear scorer). Chapter 14.

    >>> X, qid = np.array([[0.0], [1.0], [2.0]] * 4), np.repeat([1, 2, 3, 4], 3)
    >>> ranker = FairRanker(lr=0.1, epochs=5, method="exact").fit(X, X[:, 0], qid=qid)
    >>> ranker.rank(X[:3], qid[:3])
    {1: array([2, 1, 0])}
    """

    def __init__(self, **settings: Any):
        vars(self).update(_DEFAULTS)
        self.set_params(**settings)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name."""
        return {name: getattr(self, name) for name in _DEFAULTS}

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name."""
        for name in set(settings) - set(_DEFAULTS):
            raise TypeError(f"FairRanker: no setting {name!r}; there are {', '.join(_DEFAULTS)}.")
        vars(self).update(settings)
        return self

    def fit(self, X: Any, y: Any, *, qid: Any, groups: Any = None) -> Self:
        """Learn from documents, their relevance, their queries and, where it matters, groups."""
        features = torch.from_numpy(np.array(X, dtype=np.float64))
        _, rows, offsets = _queries(qid, features)
        relevance = torch.from_numpy(np.array(y, dtype=np.float64)[rows])
        labels: Any = None if groups is None else np.unique(groups, return_inverse=True)[1][rows]
        dataset = RankingDataset(features[rows], relevance, offsets, groups=labels)
        settings = self.get_params()
        hidden, config = settings.pop("hidden"), TrainConfig(**settings)
        self.scorer_ = new_scorer(
            dataset.n_features, hidden, seed=config.seed, dtype=features.dtype
        )
        self.history_ = fit(self.scorer_, dataset, config, progress=False)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Scores ``(N,)``: the higher, the likelier a document stands ahead."""
        features = torch.from_numpy(np.array(X)).to(next(self.scorer_.parameters()))
        with eval_mode(self.scorer_):
            return self.scorer_(features).cpu().numpy()

    def rank(
        self, X: Any, qid: Any, samples: int | None = None, seed: int = 0
    ) -> dict[Hashable, np.ndarray]:
        """Rows of X in ranked order for each query: the likeliest ranking ``(n,)``.

        With ``samples`` that many rankings ``(samples, n)`` are drawn from the policy instead.
        """
        scores, generator = torch.from_numpy(self.predict(X)), torch.Generator().manual_seed(seed)
        names, rows, offsets = _queries(qid, scores.unsqueeze(-1))
        found = {}
        for name, own in zip(names.tolist(), np.split(rows, offsets[1:-1]), strict=True):
            policy = PlackettLuce(scores[own])
            ranking = policy.mode if samples is None else policy.sample((samples,), generator)
            found[name] = own[ranking.numpy()]
        return found

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))


def _queries(qid: Any, features: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The queries' names, the rows of X query by query, and where each query begins and ends."""
    labels = np.asarray(qid)
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        found = f"X has shape {tuple(features.shape)}, qid {labels.shape}"
        raise ValueError(f"FairRanker: {found}; give documents × features, and a query for each.")
    names, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return names, np.argsort(inverse, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])
