"""Fair-PG-Rank with scikit-learn's manners: ``fit``, ``predict``, ``get_params``.

scikit-learn's `clone`, pipelines and searches ask for a few methods, not for a base class.
"""

import inspect
from collections.abc import Hashable
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import Disparity
from fairpg_lite.metrics import Utility
from fairpg_lite.objective import Estimator
from fairpg_lite.policy import MakePolicy, PlackettLuce
from fairpg_lite.relevance import Gain, Merit
from fairpg_lite.scorers import eval_mode, new_scorer
from fairpg_lite.training.config import MakeOptimizer, TrainConfig
from fairpg_lite.training.loop import fit


class FairRanker:
    """A stochastic ranking policy that maximises utility less ``lam`` times disparity.

    A table of N documents with d features goes in: which rows belong to one query is said by
    ``qid``, and they need not be neighbours. It is `fit` that learns, in double precision, and a
    `PlackettLuce` policy that ranks.

    Args:
        hidden: Units of a hidden layer; None is a linear scorer.
        lam: As in `TrainConfig`, like all that follow; so are their defaults.
        disparity: "d_group", "d_ind", another name in `fairpg_lite.measures`, a function, or None.
        utility: "ndcg", "dcg", or a function of rankings.
        method: "sample", "exact", or an estimator of your own.
        samples: Rankings drawn per query.
        baseline: "mean", "loo" or None.
        entropy: Weight of the entropy.
        merit: "identity", "square", "sqrt" or a function of relevance.
        position_bias: Attention per position ``(n,)``; None is 1/log2(1+j).
        tolerance: Accuracy of exact exposure.
        gain: "exponential", "linear", "binary" or a function of relevance.
        pooled: Which documents the disparity compares: "query", those of each query; or "dataset",
            those of a batch as one list. Arrays have no document ids for "item".
        policy: What makes a policy of scores and mask; None is Plackett-Luce.
        optimizer: "adam", "sgd", or what makes one, such as ``torch.optim.AdamW``.
        lr: Learning rate.
        lr_decay: Factor on the learning rate after every epoch.
        weight_decay: L2 penalty.
        epochs: Passes over the queries.
        batch_size: Queries per update.
        patience: Without effect, as there are no validation queries.
        seed: Fixes initial weights, order of queries and rankings drawn.
        compiled: "auto", True or False.

    Attributes:
        scorer_: The trained scorer, after ``fit``.
        history_: The course of its training, a `History`.

    >>> X = np.array([[0.0], [1.0], [2.0]] * 4)
    >>> qid = np.repeat([1, 2, 3, 4], 3)
    >>> ranker = FairRanker(lr=0.1, epochs=5, method="exact").fit(X, X[:, 0], qid=qid)
    >>> ranker.rank(X[:3], qid[:3])
    {1: array([2, 1, 0])}
    """

    def __init__(
        self,
        hidden: int | None = None,
        lam: float = 0.0,
        disparity: str | Disparity | None = "d_group",
        utility: str | Utility = "ndcg",
        method: str | Estimator = "sample",
        samples: int = 10,
        baseline: str | None = "mean",
        entropy: float = 0.0,
        merit: str | Merit = "identity",
        position_bias: Tensor | None = None,
        tolerance: float = 1e-5,
        gain: str | Gain = "exponential",
        pooled: str = "query",
        policy: MakePolicy | None = None,
        optimizer: str | MakeOptimizer = "adam",
        lr: float = 1e-3,
        lr_decay: float = 1.0,
        weight_decay: float = 0.0,
        epochs: int = 20,
        batch_size: int = 1,
        patience: int | None = None,
        seed: int = 0,
        compiled: str | bool = "auto",
    ):
        # scikit-learn wants each parameter as it was given, unchecked; `fit` checks them.
        self.hidden = hidden
        self.lam = lam
        self.disparity = disparity
        self.utility = utility
        self.method = method
        self.samples = samples
        self.baseline = baseline
        self.entropy = entropy
        self.merit = merit
        self.position_bias = position_bias
        self.tolerance = tolerance
        self.gain = gain
        self.pooled = pooled
        self.policy = policy
        self.optimizer = optimizer
        self.lr = lr
        self.lr_decay = lr_decay
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.batch_size = batch_size
        self.patience = patience
        self.seed = seed
        self.compiled = compiled

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name.

        Args:
            deep: Without effect, as no parameter is an estimator; scikit-learn passes it.

        Returns:
            Name and value of each parameter of the constructor.

        >>> FairRanker(lam=2.0).get_params()["lam"]
        2.0
        """
        return {name: getattr(self, name) for name in _parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; the signature is scikit-learn's.

        Args:
            **params: New values of parameters of the constructor.

        Returns:
            The ranker itself.

        Raises:
            ValueError: If there is no parameter of such a name.

        >>> FairRanker().set_params(lam=2.0).lam
        2.0
        """
        names = _parameter_names()
        for name in params:
            if name not in names:
                raise ValueError(
                    f"FairRanker: there is no parameter {name!r}; choose from {', '.join(names)}."
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(
        self, X: "ArrayLike", y: "ArrayLike", *, qid: "ArrayLike", groups: "ArrayLike | None" = None
    ) -> Self:
        """Learn a scorer from judged documents.

        Ctrl-C raises KeyboardInterrupt and leaves the ranker as it was before the call.

        Args:
            X: Features, ``(N, d)``.
            y: Relevance, ``(N,)``, zero or more.
            qid: The query of each document, ``(N,)``: numbers or strings.
            groups: The group of each document, ``(N,)``: numbers or strings. None where the
                disparity compares no groups.

        Returns:
            The ranker itself.

        >>> X = [[0.0], [1.0], [2.0]] * 2
        >>> ranker = FairRanker(epochs=3).fit(X, [0, 1, 2] * 2, qid=["a"] * 3 + ["b"] * 3)
        >>> len(ranker.history_)
        3
        """
        dataset = _dataset_of(X, y, qid, groups)
        parameters = self.get_params()
        hidden = parameters.pop("hidden")
        config = TrainConfig(**parameters)
        scorer = new_scorer(
            dataset.n_features, hidden, seed=config.seed, dtype=dataset.features.dtype
        )
        history = fit(scorer, dataset, config, progress=False)
        self.scorer_ = scorer
        self.history_ = history
        return self

    def predict(self, X: "ArrayLike") -> NDArray[np.float64]:
        """Scores of documents: the higher, the likelier a document stands ahead of others.

        Args:
            X: Features, ``(N, d)``.

        Returns:
            ``(N,)``.

        >>> X = [[0.0], [1.0], [2.0]] * 2
        >>> ranker = FairRanker(epochs=3).fit(X, [0, 1, 2] * 2, qid=["a"] * 3 + ["b"] * 3)
        >>> ranker.predict(X).shape
        (6,)
        """
        if not hasattr(self, "scorer_"):
            raise AttributeError("FairRanker: nothing is learned yet; call fit first.")
        features = torch.from_numpy(np.array(X)).to(next(self.scorer_.parameters()))
        with eval_mode(self.scorer_):
            scores: Tensor = self.scorer_(features)
        return scores.cpu().numpy()

    def rank(
        self,
        X: "ArrayLike",
        qid: "ArrayLike",
        samples: int | None = None,
        generator: torch.Generator | None = None,
    ) -> dict[Hashable, NDArray[np.int64]]:
        """Ranked documents of each query.

        Args:
            X: Features, ``(N, d)``.
            qid: The query of each document, ``(N,)``.
            samples: Draw so many rankings from the policy; None is the likeliest ranking.
            generator: Where they are drawn from, ``torch.Generator().manual_seed(0)``, say; None
                is torch's own stream.

        Returns:
            For each query, by its name in ``qid``, rows of X from the first position to the last:
            ``(n,)``, or ``(samples, n)`` if rankings are drawn.

        >>> X = [[0.0], [1.0], [2.0]] * 2
        >>> qid = ["a", "a", "a", "b", "b", "b"]
        >>> ranker = FairRanker(epochs=3).fit(X, [0, 1, 2] * 2, qid=qid)
        >>> ranker.rank(X, qid, samples=10)["b"].shape
        (10, 3)
        """
        scores = torch.from_numpy(self.predict(X))
        queries = _queries_of(qid, len(scores))
        ranked: dict[Hashable, NDArray[np.int64]] = {}
        for name, rows in queries.rows_by_name().items():
            policy = PlackettLuce(scores[rows])
            ranking = policy.mode if samples is None else policy.sample((samples,), generator)
            ranked[name] = rows[ranking.numpy()]
        return ranked

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))


class _Queries(NamedTuple):
    """Q queries of a table of N documents."""

    names: NDArray[Any]
    """``(Q,)``, sorted."""
    rows: NDArray[np.int64]
    """``(N,)``, rows of the table query by query."""
    offsets: NDArray[np.int64]
    """``(Q + 1,)``; query i owns ``rows[offsets[i]:offsets[i + 1]]``."""

    def rows_by_name(self) -> dict[Hashable, NDArray[np.int64]]:
        """The rows of each query."""
        by_query = np.split(self.rows, self.offsets[1:-1])
        return dict(zip(self.names.tolist(), by_query, strict=True))


def _parameter_names() -> list[str]:
    """The names of the constructor's parameters."""
    return list(inspect.signature(FairRanker).parameters)


def _queries_of(qid: ArrayLike, n_documents: int) -> _Queries:
    """The queries that ``qid (N,)`` names."""
    labels = np.asarray(qid)
    _check_length("qid", labels, n_documents)
    names, query_of_row, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    rows = np.argsort(query_of_row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return _Queries(names, rows, offsets)


def _dataset_of(
    X: ArrayLike, y: ArrayLike, qid: ArrayLike, groups: ArrayLike | None
) -> RankingDataset:
    """The table as a dataset, query by query, in double precision."""
    features = np.array(X, dtype=np.float64)
    if features.ndim != 2:
        raise ValueError(
            f"FairRanker: X has shape {features.shape}; give one row per document and one column "
            "per feature."
        )
    relevance = np.array(y, dtype=np.float64)
    _check_length("y", relevance, len(features))
    queries = _queries_of(qid, len(features))
    labels = None
    if groups is not None:
        _check_length("groups", np.asarray(groups), len(features))
        _, group_of_row = np.unique(np.asarray(groups), return_inverse=True)
        labels = torch.from_numpy(group_of_row[queries.rows])
    return RankingDataset(
        torch.from_numpy(features)[queries.rows],
        torch.from_numpy(relevance[queries.rows]),
        torch.from_numpy(queries.offsets),
        groups=labels,
    )


def _check_length(name: str, values: NDArray[Any], n_documents: int) -> None:
    """Refuse all but one entry per document."""
    if values.shape != (n_documents,):
        raise ValueError(
            f"FairRanker: {name} has shape {values.shape}, X has {n_documents} rows; "
            f"give one entry of {name} per document."
        )
