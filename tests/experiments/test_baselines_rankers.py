"""RankSVM against scikit-learn on explicit pairs; boosted trees; a light import."""

import subprocess
import sys

import lightgbm
import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC

from experiments.learners import deltr, gbdt, linear_regression, rank_svm
from fairpg_lite import LinearScorer, PlackettLuce, evaluate, ndcg
from fairpg_lite.data import RankingDataset, synthetic
from fairpg_lite.post_processing import post_process


def ranking_data(n_queries, seed, d=6, dtype=torch.float64):
    """Queries of 1 to 15 documents whose grades follow a noisy linear score."""
    g = torch.Generator().manual_seed(seed)
    queries = []
    truth = torch.linspace(-1, 1, d, dtype=torch.float64)
    for _ in range(n_queries):
        n = int(torch.randint(1, 16, (), generator=g))
        x = torch.randn(n, d, generator=g, dtype=torch.float64)
        score = x @ truth + 0.5 * torch.randn(n, generator=g, dtype=torch.float64)
        queries.append((x.to(dtype), (score + 1.5).clamp(0, 4).round().to(dtype)))
    features, relevance = (torch.cat(parts) for parts in zip(*queries, strict=True))
    return RankingDataset(features, relevance, np.cumsum([0, *(len(y) for _, y in queries)]))


def mean_ndcg(scorer, data, k):
    return evaluate(scorer, data, ("ndcg_at_k",), k=k, deterministic=True).ndcg_at_k


def explicit_pairs(data):
    rows = []
    for q in data:
        for i in range(len(q.relevance)):
            for j in range(len(q.relevance)):
                if q.relevance[i] > q.relevance[j]:
                    rows.append((q.features[i] - q.features[j]).numpy())
    return np.array(rows)


@pytest.mark.parametrize("C", [0.05, 3.0, 500.0])
def test_the_same_weights_as_a_classifier_of_pairs(C):
    data = ranking_data(25, seed=0)
    pairs = explicit_pairs(data)
    sign = np.where(np.arange(len(pairs)) % 2 == 0, 1, -1)  # LinearSVC wants both classes
    svm = LinearSVC(C=C / len(pairs), fit_intercept=False, dual=False, tol=1e-12, max_iter=10_000)
    svm.fit(pairs * sign[:, None], sign)
    got = rank_svm(data, C=C).scorer.linear.weight[0].detach().numpy()
    np.testing.assert_allclose(got, svm.coef_[0], atol=1e-5 * np.abs(svm.coef_).max())


def test_float32_data_give_nearly_the_same_ranker():
    data = ranking_data(25, seed=0)
    single = data.to(torch.float32)
    exact, rough = (rank_svm(x, C=10.0).scorer.linear.weight for x in (data, single))
    assert rough.dtype == torch.float32
    assert torch.allclose(exact.float(), rough, rtol=1e-3, atol=1e-4)


def test_validation_chooses_the_constant():
    train, valid = ranking_data(25, seed=0), ranking_data(20, seed=1)
    fitted = rank_svm(train, valid=valid, C=(0.01, 1.0, 100.0))
    tried = {c: mean_ndcg(rank_svm(train, C=c).scorer, valid, 10) for c in (0.01, 1.0, 100.0)}
    assert fitted.valid_ndcg == pytest.approx(max(tried.values()))
    assert max(tried, key=tried.get) == fitted.C
    by_hand = [ndcg(PlackettLuce(fitted.scorer(q.features)).mode, q.relevance, k=10) for q in valid]
    assert fitted.valid_ndcg == pytest.approx(float(torch.stack(by_hand).mean()))
    assert fitted.valid_ndcg > 0.9


def test_without_pairs_there_is_nothing_to_learn(monkeypatch):
    ties = RankingDataset(torch.randn(4, 3), torch.ones(4), [0, 3, 4])
    assert rank_svm(ties, C=1.0).scorer.linear.weight.abs().sum() == 0
    with pytest.raises(ValueError, match="valid="):
        rank_svm(ties)
    with pytest.raises(ValueError, match="above 0"):
        rank_svm(ties, C=-1.0)
    monkeypatch.setattr("experiments.learners._NEWTON_STEPS", 1)
    with pytest.raises(RuntimeError, match="Newton"):
        rank_svm(ranking_data(10, seed=0), C=1e4)


@pytest.mark.parametrize("objective", ["regression", "lambdarank"])
def test_trees_learn_to_rank_and_are_reproducible(objective):
    train, test = ranking_data(150, seed=2), ranking_data(40, seed=3)
    model = gbdt(train, objective=objective, rounds=60)
    untrained = mean_ndcg(lambda x: torch.zeros(x.shape[:-1]), test, 10)
    assert mean_ndcg(model, test, 10) > untrained + 0.5 * (1 - untrained)
    again = gbdt(train, objective=objective, rounds=60)
    assert torch.equal(model(test.features), again(test.features))
    batch = next(iter(test.batches(8)))
    scores = model(batch.features)
    assert scores.shape == batch.mask.shape
    assert scores.dtype == test.features.dtype
    alone = model(test[int(batch.queries[0])].features)
    assert torch.equal(scores[0][batch.mask[0]], alone)


def test_regression_is_lightgbm_s_regression():
    data = ranking_data(60, seed=4)
    reference = lightgbm.LGBMRegressor(n_estimators=15, verbosity=-1, n_jobs=1, random_state=0)
    reference.fit(data.features.numpy(), data.relevance.numpy())
    got = gbdt(data, objective="regression", rounds=15)(data.features)
    expected = reference.booster_.predict(data.features.numpy())
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)


def test_lambdarank_looks_within_queries():
    """The same documents in one query or two are different data for LambdaMART."""
    data = ranking_data(80, seed=5)
    merged = RankingDataset(data.features, data.relevance, [0, data.n_documents])
    apart, together = (gbdt(x, rounds=5)(data.features) for x in (data, merged))
    assert not torch.equal(apart, together)


@pytest.mark.parametrize("objective", ["regression", "lambdarank"])
def test_validation_stops_early(objective):
    train, valid = ranking_data(40, seed=2), ranking_data(30, seed=3)
    model = gbdt(train, objective=objective, valid=valid, rounds=400)
    assert 0 < model.booster.best_iteration < 370
    best = model.booster.predict(valid.features.numpy(), num_iteration=model.booster.best_iteration)
    np.testing.assert_array_equal(model(valid.features).numpy(), best)


def test_few_documents_and_wrong_grades():
    tiny = RankingDataset(torch.randn(3, 2), torch.tensor([1.0, 0.0, 2.0]), [0, 2, 3])
    for objective in ("regression", "lambdarank"):
        assert gbdt(tiny, objective=objective, rounds=3)(tiny.features).unique().numel() == 1
    with pytest.raises(lightgbm.basic.LightGBMError, match="label should be int type"):
        gbdt(tiny.replace(relevance=torch.tensor([0.5, 0.0, 1.0])))


def test_every_method_goes_through_the_same_evaluator():
    data = synthetic(n_queries=20, seed=3, dtype=torch.float64)
    graded = data.replace(relevance=data.relevance.round())
    guess = linear_regression(data)(data.features).detach()
    results = {
        "lp": evaluate(post_process(data, guess, 50.0), data),
        "deltr": evaluate(deltr(data, 10.0, scorer=LinearScorer(2).double()), data),
        "ranksvm": evaluate(rank_svm(graded, C=10.0).scorer, data, deterministic=True),
        "regression": evaluate(gbdt(data, objective="regression"), data, deterministic=True),
        "lambdamart": evaluate(gbdt(graded), data, deterministic=True),
    }
    for name, result in results.items():
        assert 0.8 < result.ndcg <= 1, name
        assert 0 < result.d_group < 0.1, name
        assert len(result.per_query["ndcg"]) == 20


def test_importing_the_baselines_is_light():
    code = (
        "import sys, torch, numpy; before = set(sys.modules); import fairpg_lite.post_processing; "
        "heavy = {'scipy', 'sklearn', 'lightgbm', 'joblib', 'tqdm', 'matplotlib'}; "
        "assert not heavy & (set(sys.modules) - before), heavy & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
