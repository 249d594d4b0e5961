"""FairRanker: scikit-learn's clone, pipeline and search work, and it is `fit` that learns."""

import dataclasses
import inspect
import pickle
import signal

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_estimator,
)
from sklearn.utils.validation import NotFittedError, _num_samples, check_is_fitted

from fairpg_lite import (
    FairRanker,
    LinearScorer,
    Mixture,
    PlackettLuce,
    TrainConfig,
    disparity_score,
    evaluate,
    fit,
    synthetic,
)

SETTINGS = {"lam": 5.0, "lr": 0.1, "epochs": 3, "batch_size": 10, "method": "exact"}


@pytest.fixture
def table():
    """The synthetic queries as a table: X, y, qid, groups."""
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    qid = np.repeat(np.arange(30), data.lengths.numpy())
    return data.features.numpy(), data.relevance.numpy(), qid, data.groups.numpy()


def test_it_is_fit(table):
    X, y, qid, groups = table
    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups)
    scorer = LinearScorer(2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    history = fit(scorer, data, TrainConfig(**SETTINGS), progress=False)
    assert np.array_equal(ranker.predict(X), scorer(data.features).detach().numpy())
    assert ranker.history_.utility == history.utility


def test_validation_queries_choose_the_epoch(table):
    X, y, qid, groups = table
    valid = synthetic(n_queries=20, seed=1)
    settings = SETTINGS | {"epochs": 30, "lr": 0.5, "patience": 2}
    ranker = FairRanker(**settings).fit(X, y, qid=qid, sensitive=groups, valid=valid)
    scorer = LinearScorer(2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    double = valid.to(torch.float64)
    history = fit(scorer, data, TrainConfig(**settings), double, progress=False)
    assert np.array_equal(ranker.predict(X), scorer(data.features).detach().numpy())
    assert ranker.history_.stopped == history.stopped == "patience"


@pytest.mark.parametrize(
    ("valid", "error", "words"),
    [
        (None, ValueError, "patience is 2, and there are no validation queries"),
        ([1, 2], TypeError, "valid is a list"),
        (synthetic(3).replace(features=torch.zeros(30, 5)), ValueError, "valid has 5 features"),
        (synthetic(3).replace(groups=None), ValueError, "valid has no groups"),
    ],
)
def test_wrong_validation_queries_are_refused(table, valid, error, words):
    X, y, qid, groups = table
    ranker = FairRanker(**SETTINGS, patience=2)
    with pytest.raises(error, match=words):
        ranker.fit(X, y, qid=qid, sensitive=groups, valid=valid)


def test_rows_may_come_in_any_order(table):
    """Shuffled rows, queries with names, groups with names: the same policy, to rounding."""
    X, y, qid, groups = table
    order = np.random.default_rng(0).permutation(len(X))
    names = np.array([f"query {q:02d}" for q in qid])
    people = np.where(groups == 0, "men", "women")
    expected = FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups).predict(X)
    ranker = FairRanker(**SETTINGS)
    ranker.fit(X[order], y[order], qid=names[order], sensitive=people[order])
    np.testing.assert_allclose(ranker.predict(X), expected, rtol=1e-9)
    ranked = ranker.rank(X[order], names[order], mode=True)
    assert set(ranked) == set(names)
    for name, rows in ranked.items():
        assert sorted(rows) == np.flatnonzero(names[order] == name).tolist()
        assert (np.diff(ranker.predict(X[order])[rows]) <= 0).all()


def test_drawn_rankings_follow_the_policy(table):
    X, y, qid, groups = table
    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups)
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


def test_a_list_is_drawn_anew_with_every_call(table):
    X, y, qid, groups = table
    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups)
    rows = qid == 3
    lists = [tuple(ranker.rank(X[rows], qid[rows])[3]) for _ in range(20)]
    assert len(set(lists)) > 1
    first = ranker.rank(X, qid, seed=4)
    again = ranker.rank(X, qid, seed=4)
    cut = ranker.rank(X, qid, seed=4, k=2)
    many = ranker.rank(X, qid, samples=3, k=99)
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
        assert cut[name].shape == (2,)
        assert many[name].shape == (3, len(first[name]))
    np.testing.assert_array_equal(cut[0], first[0][:2])  # the first query: the same noise
    best = ranker.rank(X, qid, mode=True, k=3)
    assert all((np.diff(ranker.predict(X)[found]) <= 0).all() for found in best.values())
    for options, words in (
        ({"mode": True, "samples": 2}, "mode=True"),
        ({"seed": 1, "generator": torch.Generator()}, "both given"),
        ({"seed": -1}, "seed is -1"),
        ({"k": 0}, "k is 0"),
    ):
        with pytest.raises(ValueError, match=words):
            ranker.rank(X, qid, **options)


def test_lists_are_those_of_the_policy_that_was_chosen(table):
    """Half of the lists are random under this one, whatever the scores."""

    def half_random(scores, mask):
        return Mixture([PlackettLuce(scores, mask), PlackettLuce(0 * scores, mask)], [0.5, 0.5])

    X, y, qid, groups = table
    ranker = FairRanker(**SETTINGS, policy=half_random).fit(X, y, qid=qid, sensitive=groups)
    rows = np.flatnonzero(qid == 3)
    drawn = ranker.rank(X[rows], qid[rows], samples=4000, seed=0)[3]
    scores = torch.from_numpy(ranker.predict(X[rows]))
    expected = half_random(scores.unsqueeze(0), None).position_probs()[0, :, 0].numpy()
    found = np.bincount(drawn[:, 0], minlength=len(rows)) / 4000
    assert np.abs(found - expected).max() < 0.03
    assert np.abs(expected - scores.softmax(-1).numpy()).max() > 0.06  # the test would notice


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
    with pytest.raises(ValueError, match=r"Invalid parameter 'lambda' for estimator FairRanker"):
        copy.set_params(**{"lambda": 1.0})
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker)
    check_is_fitted(FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups))


def test_a_pipeline_with_a_scaler(table):
    X, y, qid, groups = table
    pipeline = make_pipeline(StandardScaler(), FairRanker(**SETTINGS))
    pipeline.fit(100.0 * X + 7.0, y, fairranker__qid=qid, fairranker__sensitive=groups)
    scaled = StandardScaler().fit_transform(X)
    expected = FairRanker(**SETTINGS).fit(scaled, y, qid=qid, sensitive=groups).predict(scaled)
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
    search.fit(X, y, groups=qid, fairranker__qid=qid, fairranker__sensitive=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    found = search.best_estimator_[-1].lr
    assert {"fairranker__lr": found} == search.best_params_


def test_a_hidden_layer_and_what_is_refused(table):
    X, y, qid, groups = table
    ranker = FairRanker(hidden=8, **SETTINGS).fit(X, y, qid=qid, sensitive=groups)
    assert ranker.scorer_.hidden.out_features == 8
    with pytest.raises(ValueError, match=r"qid has shape \(5,\), X has 300 rows"):
        ranker.rank(X, qid[:5])
    with pytest.raises(ValueError, match="lam is 1, and disparity 'd_group' needs groups; give se"):
        FairRanker(lam=1.0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="needs groups; give sensitive="):
        ranker.score(X, y, qid=qid)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        FairRanker().predict(X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.ones(300)}, "Expected 2D array, got 1D array"),
        ({"y": np.ones(4)}, r"inconsistent numbers of samples: \[300, 4\]"),
        ({"qid": np.ones(5)}, r"FairRanker: qid has shape \(5,\), X has 300 rows"),
        (
            {"sensitive": np.ones((300, 2))},
            r"FairRanker: sensitive has shape \(300, 2\), X has 300",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(table, changes, message):
    columns = dict(zip(("X", "y", "qid", "sensitive"), table, strict=True))
    with pytest.raises(ValueError, match=message):
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

    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups)
    before = ranker.predict(X)
    with pytest.raises(KeyboardInterrupt):
        ranker.set_params(disparity=interrupting).fit(X, y, qid=qid, sensitive=groups)
    assert len(calls) == 5
    assert np.array_equal(ranker.predict(X), before)


# --- scikit-learn's own demands ---


class OneQuery(FairRanker):
    """All rows are one query: what scikit-learn's checks can fit, since they give no qid."""

    def fit(self, X, y, *, qid=None, sensitive=None):
        return super().fit(X, y, qid=np.zeros(_num_samples(X)), sensitive=sensitive)

    def score(self, X, y, *, qid=None, sensitive=None):
        return super().score(X, y, qid=np.zeros(_num_samples(X)), sensitive=sensitive)


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_pass_but_for_those_without_queries():
    results = check_estimator(FairRanker(), on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    one_query = check_estimator(OneQuery(epochs=2), on_fail=None)
    faults = {r["check_name"]: r["exception"] for r in one_query if r["status"] == "failed"}
    assert faults == {}
    # Only a missing qid makes a difference.
    passed = {result["check_name"] for result in one_query if result["status"] == "passed"}
    assert failed <= passed
    assert len(passed - failed) > 8
    check_dataframe_column_names_consistency("FairRanker", OneQuery(epochs=2))


def test_it_is_an_estimator_that_shows_its_parameters(table):
    X, y, qid, groups = table
    assert isinstance(FairRanker(), BaseEstimator)
    assert repr(FairRanker(lam=2.0, disparity="d_ind")) == "FairRanker(disparity='d_ind', lam=2.0)"
    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups)
    assert ranker.n_features_in_ == 2
    again = pickle.loads(pickle.dumps(ranker))
    assert np.array_equal(again.predict(X), ranker.predict(X))


def test_columns_in_another_order_are_refused(table):
    X, y, qid, groups = table
    frame = pd.DataFrame(X, columns=["height", "width"])
    ranker = FairRanker(**SETTINGS).fit(frame, y, qid=qid, sensitive=groups)
    assert ranker.feature_names_in_.tolist() == ["height", "width"]
    assert np.isfinite(ranker.predict(frame)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        ranker.predict(frame[["width", "height"]])
    ranker.fit(X, y, qid=qid, sensitive=groups)
    with pytest.raises(ValueError, match="X has 1 features, but FairRanker is expecting 2"):
        ranker.predict(X[:, :1])


def test_the_score_is_the_objective(table):
    X, y, qid, groups = table
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups)
    evaluation = evaluate(ranker.scorer_, data, ("ndcg", "d_group"))
    expected = evaluation.ndcg - 5.0 * evaluation.d_group
    assert ranker.score(X, y, qid=qid, sensitive=groups) == pytest.approx(expected, abs=1e-6)
    assert disparity_score(y, ranker.predict(X), groups=groups, query=qid) == pytest.approx(
        evaluation.d_group, abs=1e-9
    )
    names = np.where(groups == 0, "men", "women")
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = disparity_score(
        y[order], ranker.predict(X)[order], groups=names[order], query=qid[order]
    )
    assert shuffled == pytest.approx(evaluation.d_group, abs=1e-9)


def test_a_disparity_score_of_ones_own_or_of_no_name(table):
    X, y, qid, _ = table

    def twice(exposure, merit, groups=None, mask=None):
        return 2.0 * exposure.sum(-1)

    mean = disparity_score(y, X[:, 0], groups=None, query=qid, disparity=twice)
    first_ten = 1.0 / np.log2(np.arange(2, 12))
    assert mean == pytest.approx(2.0 * first_ten.sum())
    with pytest.raises(ValueError, match="disparity is 'ndcg'; choose from d_ind, d_group"):
        disparity_score(y, X[:, 0], groups=None, query=qid, disparity="ndcg")
    with pytest.raises(
        ValueError, match=r"disparity_score: query has shape \(3,\), y_score has 300"
    ):
        disparity_score(y, X[:, 0], groups=None, query=[1, 2, 3])
    with pytest.raises(ValueError, match=r"disparity_score: y_score has shape \(300, 2\)"):
        disparity_score(y, X, groups=None, query=qid)


def test_a_search_chooses_a_lam_above_zero(table):
    """Queries stay whole, and the groups reach training and scoring."""
    X, y, qid, groups = table
    scorer = make_scorer(disparity_score, greater_is_better=False)
    settings = {**SETTINGS, "epochs": 10}
    grid = {"fairranker__lam": [0.0, 20.0]}
    with config_context(enable_metadata_routing=True):
        ranker = FairRanker(**settings).set_fit_request(qid=True, sensitive=True)
        ranker.set_score_request(qid=True, sensitive=True)
        scorer.set_score_request(groups="sensitive", query="qid")
        pipeline = make_pipeline(StandardScaler(), ranker)
        search = GridSearchCV(pipeline, grid, scoring=scorer, cv=GroupKFold(3))
        search.fit(X, y, groups=qid, qid=qid, sensitive=groups)
        objectives = cross_val_score(
            ranker,
            X,
            y,
            cv=GroupKFold(3),
            params={"groups": qid, "qid": qid, "sensitive": groups},
        )
        search_score = search.score(X, y, qid=qid, sensitive=groups)
    assert search.best_params_ == {"fairranker__lam": 20.0}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search_score == -disparity_score(y, search.predict(X), groups=groups, query=qid)
    assert np.isfinite(objectives).all()


def test_a_search_may_weigh_utility_and_disparity(table):
    X, y, qid, groups = table

    def weighed(y_true, y_score, *, groups, query, weight):
        utility = np.corrcoef(y_true, y_score)[0, 1]
        return utility - weight * disparity_score(y_true, y_score, groups=groups, query=query)

    grid = {"lam": [0.0, 20.0]}
    chosen = {}
    with config_context(enable_metadata_routing=True):
        ranker = FairRanker(**{**SETTINGS, "epochs": 10})
        ranker.set_fit_request(qid=True, sensitive=True)
        for weight in (0.0, 1000.0):
            scorer = make_scorer(weighed, weight=weight)
            scorer.set_score_request(groups="sensitive", query="qid")
            search = GridSearchCV(ranker, grid, scoring=scorer, cv=GroupKFold(2))
            search.fit(X, y, groups=qid, qid=qid, sensitive=groups)
            chosen[weight] = search.best_params_["lam"]
    assert chosen == {0.0: 0.0, 1000.0: 20.0}


# --- evaluate takes estimators ---


def test_evaluate_takes_a_fitted_ranker(table):
    X, y, qid, groups = table
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    ranker = FairRanker(**SETTINGS).fit(X, y, qid=qid, sensitive=groups)
    expected = evaluate(ranker.scorer_, data, ("ndcg", "err", "d_group")).means
    assert evaluate(ranker, data, ("ndcg", "err", "d_group")).means == pytest.approx(expected)
    pipeline = make_pipeline(StandardScaler(), ranker)
    pipeline.fit(X, y, fairranker__qid=qid, fairranker__sensitive=groups)
    scores = torch.from_numpy(pipeline.predict(X))
    assert evaluate(pipeline, data).means == evaluate(scores, data).means


def test_evaluate_takes_lightgbm():
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    options = {"n_estimators": 5, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    ranker = lightgbm.LGBMRanker(**options)
    X = data.features.numpy()
    grades = (data.relevance.numpy() > np.median(data.relevance)).astype(int)
    ranker.fit(X, grades, group=data.lengths.numpy())
    scores = torch.from_numpy(ranker.booster_.predict(X))
    expected = evaluate(scores, data, ("ndcg", "d_group")).means
    assert evaluate(ranker.booster_, data, ("ndcg", "d_group")).means == expected
    assert evaluate(ranker, data, ("ndcg", "d_group")).means == expected
