"""Fair-PG-Rank with scikit-learn's manners: ``fit``, ``predict``, ``get_params`` (chapter 14).

scikit-learn's `clone`, pipelines and searches ask for a few methods, not for a base class.
"""

from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from fairpg_lite import _check
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.scorers import LinearScorer, MLPScorer, eval_mode
from fairpg_lite.train import fit

_SCORERS: dict[str, Callable[..., nn.Module]] = {"linear": LinearScorer, "neural": MLPScorer}
_DEFAULTS = {"scorer": "linear"} | {field.name: field.default for field in fields(TrainConfig)}


class FairRanker:
    """A stochastic ranking policy that maximises utility less ``lam`` times disparity.

    Rows of ``X (N, d)`` are documents, ``qid (N,)`` says which belong to one query (they need not
    be neighbours), ``y (N,)`` is their relevance, ``groups (N,)`` their groups. ``scorer`` is
    "linear", "neural", or a function from the number of features to a module; ``settings`` are the
    fields of `TrainConfig`, by name: ``lam``, ``disparity``, ``epochs``, …

    Chapter 14.

    >>> X, qid = np.array([[0.0], [1.0], [2.0]] * 4), np.repeat([1, 2, 3, 4], 3)
    >>> ranker = FairRanker(lr=0.1, epochs=5, method="exact").fit(X, X[:, 0], qid=qid)
    >>> ranker.rank(X[:3], qid[:3])
    {1: array([2, 1, 0])}
    """

    def __init__(self, scorer: str | Callable[[int], nn.Module] = "linear", **settings: Any):
        vars(self).update(_DEFAULTS)
        self.set_params(scorer=scorer, **settings)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name."""
        return {name: getattr(self, name) for name in _DEFAULTS}

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name."""
        if unknown := sorted(set(settings) - set(_DEFAULTS)):
            known = ", ".join(_DEFAULTS)
            raise TypeError(f"FairRanker: no setting {unknown[0]!r}; there are {known}.")
        vars(self).update(settings)
        return self

    def fit(self, X: Any, y: Any, *, qid: Any, groups: Any = None) -> Self:
        """Learn from documents, their relevance, their queries and, where it matters, groups."""
        features = _matrix(X)
        _, rows, offsets = _queries(qid, len(features))
        labels: Any = None if groups is None else np.unique(groups, return_inverse=True)[1][rows]
        relevance = np.asarray(y, dtype=features.dtype)[rows]
        documents = torch.from_numpy(features[rows])
        dataset = RankingDataset(documents, torch.from_numpy(relevance), offsets, groups=labels)
        settings = self.get_params()
        scorer, config = settings.pop("scorer"), TrainConfig(**settings)
        self.n_features_in_ = features.shape[1]
        if callable(scorer):
            self.scorer_ = scorer(self.n_features_in_)
        elif scorer in _SCORERS:
            generator = torch.Generator().manual_seed(config.seed)
            how = {"generator": generator, "dtype": torch.float64}
            self.scorer_ = _SCORERS[scorer](self.n_features_in_, **how)
        else:
            raise ValueError(f"FairRanker: scorer is {scorer!r}; give 'linear' or 'neural'.")
        self.history_ = fit(self.scorer_, dataset, config, progress=False)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Scores ``(N,)``: the higher, the likelier a document stands ahead."""
        features = torch.from_numpy(_matrix(X)).to(next(self.scorer_.parameters()))
        with eval_mode(self.scorer_):
            return self.scorer_(features.unsqueeze(0))[0].cpu().numpy()

    def rank(
        self, X: Any, qid: Any, samples: int | None = None, seed: int = 0
    ) -> dict[Hashable, np.ndarray]:
        """Rows of X in ranked order for each query: the likeliest ranking ``(n,)``.

        With ``samples`` that many rankings ``(samples, n)`` are drawn from the policy instead.
        """
        scores = torch.from_numpy(self.predict(X))
        names, rows, offsets = _queries(qid, len(scores))
        generator = torch.Generator().manual_seed(_check.seed("FairRanker.rank: seed", seed))
        found = {}
        for name, own in zip(names.tolist(), np.split(rows, offsets[1:-1]), strict=True):
            policy = PlackettLuce(scores[own])
            ranking = policy.mode if samples is None else policy.sample((samples,), generator)
            found[name] = own[ranking.numpy()]
        return found

    def __repr__(self) -> str:
        changed = {k: v for k, v in self.get_params().items() if v is not _DEFAULTS[k]}
        return f"FairRanker({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scorer_")


def _matrix(X: Any) -> np.ndarray:
    features = np.ascontiguousarray(X, dtype=np.float64)
    if features.ndim != 2:
        raise ValueError(f"FairRanker: X has shape {features.shape}; give documents × features.")
    return features


def _queries(qid: Any, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The queries' names, the rows of X query by query, and where each query begins and ends."""
    labels = np.asarray(qid)
    if labels.shape != (count,):
        raise ValueError(
            f"FairRanker: qid has shape {labels.shape}, X has {count} rows; give one query each."
        )
    names, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return names, np.argsort(inverse, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])
