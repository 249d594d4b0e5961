"""Fair-PG-Rank as an estimator of scikit-learn, and a disparity for its `make_scorer`.

This file imports scikit-learn, and ``import fairpg_lite`` does not import this file: it is read
when `fairpg_lite.FairRanker` or `fairpg_lite.disparity_score` is first asked for.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch

# In quotes where it is public: the page of functions then shows this name and not its eight types.
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fairpg_lite._extras import require
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import Disparity
from fairpg_lite.evaluation import evaluate
from fairpg_lite.exact import TOLERANCE
from fairpg_lite.measures import DISPARITIES, MEASURES
from fairpg_lite.metrics import Utility
from fairpg_lite.objective import Estimator
from fairpg_lite.policy import MakePolicy, PlackettLuce
from fairpg_lite.relevance import Gain, Merit
from fairpg_lite.scorers import eval_mode, new_scorer
from fairpg_lite.training.config import MakeOptimizer, TrainConfig
from fairpg_lite.training.loop import fit
from fairpg_lite.training.validation import objective_on

# scikit-learn has no types.
BaseEstimator: Any = require("sklearn.base", "experiments").BaseEstimator
_validation = require("sklearn.utils.validation", "experiments")


class FairRanker(BaseEstimator):  # type: ignore[misc]
    """A stochastic ranking policy that maximises utility less ``lam`` times disparity.

    A table of N documents with d features goes in: which rows belong to one query is said by
    ``qid``, and they need not be neighbours. It is `fit` that learns, in double precision, and a
    `PlackettLuce` policy that ranks.

    ``qid`` and ``sensitive`` are metadata in scikit-learn's sense. With
    ``sklearn.set_config(enable_metadata_routing=True)``, a search or a pipeline hands them on to
    the methods that ask for them, ``set_fit_request(qid=True, sensitive=True)`` and
    ``set_score_request(qid=True, sensitive=True)``; the word ``groups`` stays that of its splitter,
    which keeps queries whole if it is given ``groups=qid``.

    Of scikit-learn's ``check_estimator``, ranking excludes every check that calls ``fit(X, y)``:
    documents compete within a query only, so ``fit`` without ``qid`` is refused. A subclass that
    takes all rows for one query passes them all. (Grades are zero or more, which the tags say, so
    negative targets are not tried.)

    Args:
        hidden: Units of a hidden layer; None is a linear scorer.
        lam: As in `TrainConfig`, like all that follow; so are their defaults.
        disparity: "d_group", "d_ind", another name in `fairpg_lite.measures`, a function, or None.
        utility: "ndcg", "dcg", or a function of rankings.
        method: "sample", "exact", or an estimator of your own.
        samples: Rankings drawn per query.
        baseline: "mean", "loo" or None, or "uniform" with ``reward_to_go``.
        entropy: Weight of the entropy.
        merit: "identity", "square", "sqrt" or a function of relevance.
        position_bias: Attention per position ``(n,)``; None is 1/log2(1+j).
        tolerance: Order of the error of exact exposure.
        gain: "exponential", "linear", "binary" or a function of relevance.
        pooled: Which documents the disparity compares: "query", those of each query; or "dataset",
            those of a batch as one list. Arrays have no document ids for "item".
        policy: What makes a policy of scores and mask; None is Plackett-Luce.
        reward_to_go: Whether a document's exposure pulls on the draws up to its place only.
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
        n_features_in_: The number d of features.
        feature_names_in_: The names of the columns ``(d,)``, if X was a table with names; other
            names, or another order of them, are refused from then on.

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
        reward_to_go: bool = False,
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
        self.reward_to_go = reward_to_go
        self.optimizer = optimizer
        self.lr = lr
        self.lr_decay = lr_decay
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.batch_size = batch_size
        self.patience = patience
        self.seed = seed
        self.compiled = compiled

    def fit(
        self,
        X: "ArrayLike",
        y: "ArrayLike",
        *,
        qid: "ArrayLike",
        sensitive: "ArrayLike | None" = None,
    ) -> Self:
        """Learn a scorer from judged documents.

        Ctrl-C raises KeyboardInterrupt and leaves the ranker as it was before the call.

        Args:
            X: Features, ``(N, d)``.
            y: Relevance, ``(N,)``, zero or more.
            qid: The query of each document, ``(N,)``: numbers or strings.
            sensitive: The group of each document, ``(N,)``: numbers or strings. None where the
                disparity compares no groups.

        Returns:
            The ranker itself.

        >>> X = [[0.0], [1.0], [2.0]] * 2
        >>> ranker = FairRanker(epochs=3).fit(X, [0, 1, 2] * 2, qid=["a"] * 3 + ["b"] * 3)
        >>> len(ranker.history_)
        3
        """
        features, relevance = _validation.check_X_y(
            X, y, dtype=np.float64, y_numeric=True, estimator=self
        )
        config = self._config()
        self._demand_groups(config, sensitive)
        dataset = _dataset_of(features, relevance, qid, sensitive)
        scorer = new_scorer(
            dataset.n_features, self.hidden, seed=config.seed, dtype=dataset.features.dtype
        )
        history = fit(scorer, dataset, config, progress=False)
        # Only now, so that an interrupted training changes nothing.
        _validation.validate_data(self, X, skip_check_array=True)
        self.scorer_ = scorer
        self.history_ = history
        return self

    def score(
        self,
        X: "ArrayLike",
        y: "ArrayLike",
        *,
        qid: "ArrayLike",
        sensitive: "ArrayLike | None" = None,
    ) -> float:
        """The objective on judged documents, exactly: mean utility - ``lam`` * disparity.

        Utility is NDCG unless the parameter ``utility`` says otherwise, and the entropy does not
        count. ``lam`` is the ranker's own, so scores of different ``lam`` do not compare and a
        search by them would find 0 the best: to choose a ``lam``, give the search a ``scoring``
        whose weight of the disparity is fixed (see `disparity_score`). A pipeline has no ``score``
        while metadata are routed: it insists on weights of samples; give a ``scoring`` there, too.

        Args:
            X: Features, ``(N, d)``.
            y: Relevance, ``(N,)``, zero or more.
            qid: The query of each document, ``(N,)``.
            sensitive: The group of each document, ``(N,)``. None where the disparity compares no
                groups.

        Returns:
            A number, the higher the better.

        >>> X = [[0.0], [1.0], [2.0]] * 2
        >>> qid = ["a", "a", "a", "b", "b", "b"]
        >>> ranker = FairRanker(lr=0.1, epochs=50, method="exact").fit(X, [0, 1, 2] * 2, qid=qid)
        >>> ranker.score(X, [0, 1, 2] * 2, qid=qid) > 0.9
        True
        """
        _validation.check_is_fitted(self, "scorer_")
        features, relevance = _validation.validate_data(
            self, X, y, reset=False, dtype=np.float64, y_numeric=True
        )
        config = self._config()
        self._demand_groups(config, sensitive)
        dataset = _dataset_of(features, relevance, qid, sensitive)
        utility, disparity = objective_on(self.scorer_, dataset, config)
        return utility - config.lam * disparity

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
        _validation.check_is_fitted(self, "scorer_")
        values = _validation.validate_data(self, X, reset=False, dtype=np.float64)
        features = torch.tensor(values).to(next(self.scorer_.parameters()))
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
        queries = _queries_of("FairRanker: qid", qid, "X", len(scores))
        ranked: dict[Hashable, NDArray[np.int64]] = {}
        for name, rows in queries.rows_by_name().items():
            policy = PlackettLuce(scores[rows])
            ranking = policy.mode if samples is None else policy.sample((samples,), generator)
            ranked[name] = rows[ranking.numpy()]
        return ranked

    def _config(self) -> TrainConfig:
        """The parameters, checked, as the settings of a training."""
        parameters = self.get_params(deep=False)
        del parameters["hidden"]
        return TrainConfig(**parameters)

    def _demand_groups(self, config: TrainConfig, sensitive: "ArrayLike | None") -> None:
        """Refuse to leave out groups that the objective compares."""
        if config.lam == 0 or sensitive is not None or not isinstance(config.disparity, str):
            return
        if "groups" in MEASURES[config.disparity].needs:
            raise ValueError(
                f"FairRanker: lam is {config.lam:g}, and disparity {config.disparity!r} needs "
                "groups; give sensitive=, the group of each document, or disparity='d_ind'."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags


def disparity_score(
    y_true: "ArrayLike",
    y_score: "ArrayLike",
    *,
    groups: "ArrayLike | None",
    query: "ArrayLike",
    disparity: str | Disparity = "d_group",
    merit: str | Merit = "identity",
    position_bias: Tensor | None = None,
    tolerance: float = TOLERANCE,
) -> float:
    """Mean disparity of the Plackett-Luce policy of scores, for scikit-learn's ``make_scorer``.

    Lower is fairer: ``make_scorer(disparity_score, greater_is_better=False)``. A scorer of a search
    over a `FairRanker` is handed its metadata by
    ``.set_score_request(groups="sensitive", query="qid")``.

    Args:
        y_true: Relevance, ``(N,)``, zero or more.
        y_score: Scores of the documents, ``(N,)``, such as ``predict`` returns.
        groups: The group of each document, ``(N,)``: numbers or strings. None where the disparity
            compares no groups.
        query: The query of each document, ``(N,)``: numbers or strings.
        disparity: A name in `fairpg_lite.measures.DISPARITIES`, or a function.
        merit: Of a relevance, by name or a function.
        position_bias: Attention per position ``(n,)``; None is 1/log2(1+j).
        tolerance: Order of the error of exposure.

    Returns:
        The mean over the queries.

    >>> groups = ["a", "a", "b", "b"]
    >>> value = disparity_score([1, 1, 1, 1], [9, 9, 0, 0], groups=groups, query=[1, 1, 1, 1])
    >>> round(value, 3)
    0.35
    """
    scores = np.array(y_score, dtype=np.float64)
    if scores.ndim != 1:
        raise ValueError(
            f"disparity_score: y_score has shape {scores.shape}; give one score per document."
        )
    relevance = np.array(y_true, dtype=np.float64)
    _check_length("disparity_score: y_true", relevance, "y_score", len(scores))
    measures: Sequence[str] | Mapping[str, Disparity]
    if callable(disparity):
        measures = {"disparity": disparity}
    elif disparity in DISPARITIES:
        measures = (disparity,)
    else:
        raise ValueError(
            f"disparity_score: disparity is {disparity!r}; choose from {', '.join(DISPARITIES)}, "
            "or give a function."
        )
    queries = _queries_of("disparity_score: query", query, "y_score", len(scores))
    ordered = torch.from_numpy(scores)[queries.rows]
    dataset = RankingDataset(
        ordered.unsqueeze(-1),
        torch.from_numpy(relevance[queries.rows]),
        torch.from_numpy(queries.offsets),
        groups=_labels_of("disparity_score: groups", groups, queries, "y_score"),
    )
    evaluation = evaluate(
        ordered,
        dataset,
        measures,
        merit=merit,
        position_bias=position_bias,
        tolerance=tolerance,
    )
    (value,) = evaluation.means.values()
    return value


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


def _queries_of(name: str, query: ArrayLike, other_name: str, n_documents: int) -> _Queries:
    """The queries that ``query (N,)`` names."""
    labels = np.asarray(query)
    _check_length(name, labels, other_name, n_documents)
    names, query_of_row, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    rows = np.argsort(query_of_row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return _Queries(names, rows, offsets)


def _labels_of(
    name: str, groups: ArrayLike | None, queries: _Queries, other_name: str
) -> Tensor | None:
    """Groups 0, 1, … in the order of the queries' rows, or None for no groups."""
    if groups is None:
        return None
    names = np.asarray(groups)
    _check_length(name, names, other_name, len(queries.rows))
    _, group_of_row = np.unique(names, return_inverse=True)
    return torch.from_numpy(group_of_row[queries.rows])


def _dataset_of(
    features: NDArray[np.float64],
    relevance: NDArray[Any],
    qid: ArrayLike,
    sensitive: ArrayLike | None,
) -> RankingDataset:
    """The table as a dataset, query by query, in double precision."""
    queries = _queries_of("FairRanker: qid", qid, "X", len(features))
    return RankingDataset(
        torch.from_numpy(features[queries.rows]),
        torch.from_numpy(relevance[queries.rows].astype(np.float64)),
        torch.from_numpy(queries.offsets),
        groups=_labels_of("FairRanker: sensitive", sensitive, queries, "X"),
    )


def _check_length(name: str, values: NDArray[Any], other_name: str, n_documents: int) -> None:
    """Refuse all but one entry per document."""
    if values.shape != (n_documents,):
        raise ValueError(
            f"{name} has shape {values.shape}, {other_name} has {n_documents} rows; "
            "give one entry per document."
        )
