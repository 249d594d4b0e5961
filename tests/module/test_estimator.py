"""FairRanker: scikit-learn's clone, pipeline and search work, and it is `fit` that learns."""

import dataclasses
import inspect
import signal

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import NotFittedError, check_is_fitted

from fairpg_lite import FairRanker, LinearScorer, TrainConfig, fit, synthetic

SETTINGS = {"lam": 5.0, "lr": 0.1, "epochs": 3, "batch_size": 10, "method": "exact"}


@pytest.fixture
def table():
    """The synthetic queries as a table: X, y, qid, groups."""
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    qid = np.repeat(np.arange(30), data.lengths.numpy())
    return data.features.numpy(), data.relevance.numpy(), qid, data.groups.numpy()


def test_it_is_fit(table):
    X, y, qid, groups = table
    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, groups=groups)
    scorer = LinearScorer(2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    history = fit(scorer, data, TrainConfig(**SETTINGS), progress=False)
    assert np.array_equal(ranker.predict(X), scorer(data.features).detach().numpy())
    assert ranker.history_.utility == history.utility


def test_rows_may_come_in_any_order(table):
    """Shuffled rows, queries with names, groups with names: the same policy, to rounding."""
    X, y, qid, groups = table
    order = np.random.default_rng(0).permutation(len(X))
    names = np.array([f"query {q:02d}" for q in qid])
    people = np.where(groups == 0, "men", "women")
    expected = FairRanker(**SETTINGS).fit(X, y, qid=qid, groups=groups).predict(X)
    ranker = FairRanker(**SETTINGS)
    ranker.fit(X[order], y[order], qid=names[order], groups=people[order])
    np.testing.assert_allclose(ranker.predict(X), expected, rtol=1e-9)
    ranked = ranker.rank(X[order], names[order])
    assert set(ranked) == set(names)
    for name, rows in ranked.items():
        assert sorted(rows) == np.flatnonzero(names[order] == name).tolist()
        assert (np.diff(ranker.predict(X[order])[rows]) <= 0).all()


def test_drawn_rankings_follow_the_policy(table):
    X, y, qid, groups = table
    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, groups=groups)
    rows = np.flatnonzero(qid == 3)
    generator = torch.Generator().manual_seed(0)
    drawn = ranker.rank(X[rows], qid[rows], samples=4000, generator=generator)[3]
    assert drawn.shape == (4000, len(rows))
    first = np.bincount(drawn[:, 0], minlength=len(rows)) / 4000
    weight = np.exp(ranker.predict(X[rows]))
    assert np.abs(first - weight / weight.sum()).max() < 0.03
    other = ranker.rank(X[rows], qid[rows], samples=4000, generator=generator)[3]
    assert not np.array_equal(drawn, other)
    generator.manual_seed(0)
    again = ranker.rank(X[rows], qid[rows], samples=4000, generator=generator)[3]
    assert np.array_equal(drawn, again)


def test_clone_and_parameters(table):
    X, y, qid, groups = table
    bias = torch.tensor([1.0, 0.5] + [0.1] * 20, dtype=torch.float64)
    ranker = FairRanker(hidden=8, lam=2.0, disparity="d_ind", position_bias=bias)
    copy = clone(ranker)
    assert copy is not ranker
    assert torch.equal(copy.get_params().pop("position_bias"), bias)
    assert (copy.hidden, copy.lam, copy.disparity) == (8, 2.0, "d_ind")
    assert copy.set_params(lam=3.0) is copy
    assert (copy.lam, ranker.lam) == (3.0, 2.0)
    with pytest.raises(ValueError, match=r"no parameter 'lambda'; choose from hidden, lam, disp"):
        copy.set_params(**{"lambda": 1.0})
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker)
    check_is_fitted(FairRanker(**SETTINGS).fit(X, y, qid=qid, groups=groups))


def test_a_pipeline_with_a_scaler(table):
    X, y, qid, groups = table
    pipeline = make_pipeline(StandardScaler(), FairRanker(**SETTINGS))
    pipeline.fit(100.0 * X + 7.0, y, fairranker__qid=qid, fairranker__groups=groups)
    scaled = StandardScaler().fit_transform(X)
    expected = FairRanker(**SETTINGS).fit(scaled, y, qid=qid, groups=groups).predict(scaled)
    np.testing.assert_allclose(pipeline.predict(100.0 * X + 7.0), expected, rtol=1e-6)
    assert clone(pipeline).get_params()["fairranker__lam"] == 5.0


def test_a_search_over_settings(table):
    """scikit-learn cuts qid and groups along with the rows."""
    X, y, qid, groups = table

    def closeness(ranker, X, y):
        return float(np.corrcoef(ranker.predict(X), y)[0, 1])

    # A search keeps the word `groups` for its folds: here the queries, which stay whole.
    pipeline = make_pipeline(StandardScaler(), FairRanker(**SETTINGS))
    grid = {"fairranker__lr": [1e-9, 0.1]}
    search = GridSearchCV(pipeline, grid, scoring=closeness, cv=GroupKFold(2))
    search.fit(X, y, groups=qid, fairranker__qid=qid, fairranker__groups=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    found = search.best_estimator_[-1].lr
    assert {"fairranker__lr": found} == search.best_params_


def test_a_hidden_layer_and_what_is_refused(table):
    X, y, qid, groups = table
    ranker = FairRanker(hidden=8, **SETTINGS).fit(X, y, qid=qid, groups=groups)
    assert ranker.scorer_.hidden.out_features == 8
    with pytest.raises(ValueError, match=r"qid has shape \(5,\), X has 300 rows"):
        ranker.rank(X, qid[:5])
    with pytest.raises(ValueError, match="needs groups"):
        FairRanker(lam=1.0).fit(X, y, qid=qid)
    with pytest.raises(AttributeError, match="nothing is learned yet; call fit first"):
        FairRanker().predict(X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.ones(300)}, r"X has shape \(300,\); give one row per document"),
        ({"y": np.ones(4)}, r"y has shape \(4,\), X has 300 rows"),
        ({"qid": np.ones(5)}, r"qid has shape \(5,\), X has 300 rows"),
        ({"groups": np.ones((300, 2))}, r"groups has shape \(300, 2\), X has 300 rows"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(table, changes, message):
    columns = dict(zip(("X", "y", "qid", "groups"), table, strict=True))
    with pytest.raises(ValueError, match=f"FairRanker: {message}"):
        FairRanker().fit(**{**columns, **changes})


def test_parameters_are_those_of_a_training():
    """Written out for scikit-learn and for completion, they must not drift apart."""
    (hidden, *parameters) = inspect.signature(FairRanker).parameters.values()
    assert (hidden.name, hidden.default) == ("hidden", None)
    settings = dataclasses.fields(TrainConfig)
    assert [(p.name, p.default) for p in parameters] == [(s.name, s.default) for s in settings]
    assert [p.annotation for p in parameters] == [s.type for s in settings]
    config = TrainConfig()
    assert FairRanker().get_params() == {"hidden": None, **vars(config)}


def test_ctrl_c_leaves_the_ranker_as_it_was(table):
    X, y, qid, groups = table
    calls = []

    def interrupting(exposure, merit, groups, mask):
        calls.append(1)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
        return exposure.sum(-1)

    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, groups=groups)
    before = ranker.predict(X)
    with pytest.raises(KeyboardInterrupt):
        ranker.set_params(disparity=interrupting).fit(X, y, qid=qid, groups=groups)
    assert len(calls) == 5
    assert np.array_equal(ranker.predict(X), before)
