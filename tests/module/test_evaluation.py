"""The evaluator against enumeration and loops, for each kind of method it takes."""

import importlib
import math

import numpy as np
import pytest
import torch
from oracles import all_rankings, expectation, log2_bias
from scipy.stats import bootstrap, permutation_test
from torch.testing import assert_close

import fairpg_lite as fl
from fairpg_lite import (
    LinearScorer,
    PlackettLuce,
    RankingDataset,
    evaluate,
    group_disparity,
    individual_disparity,
    ndcg,
)
from fairpg_lite.evaluation import MEASURES


def small_dataset(seed=0, lengths=(5, 1, 4, 6, 3), d=2):
    g = torch.Generator().manual_seed(seed)
    n = sum(lengths)
    return RankingDataset(
        torch.randn(n, d, generator=g, dtype=torch.float64),
        torch.randint(0, 4, (n,), generator=g).double(),
        torch.tensor([0, *lengths]).cumsum(0),
        groups=torch.randint(0, 2, (n,), generator=g),
    )


@pytest.fixture
def scorer():
    return LinearScorer(
        2, init=1.0, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )


def test_stochastic_policy_against_enumeration(scorer):
    ds = small_dataset()
    result = evaluate(scorer, ds, k=2, undefined=0.25, samples=20_000)
    for i, query in enumerate(ds):
        scores = scorer(query.features).detach()
        n = len(scores)
        wanted = {"ndcg": None, "ndcg_at_k": 2}
        for name, k in wanted.items():
            mean = expectation(
                scores,
                lambda r, k=k, q=query: ndcg(torch.tensor(r), q.relevance, k=k, undefined=0.25),
            )
            assert_close(result.per_query[name][i], mean, rtol=0, atol=1e-8)
        bias = log2_bias(n)
        exposure = torch.stack(
            [expectation(scores, lambda r, d=d, b=bias: b[r.index(d)]) for d in range(n)]
        )
        assert_close(
            result.per_query["d_ind"][i],
            individual_disparity(exposure, query.relevance),
            rtol=0,
            atol=1e-8,
        )
        assert_close(
            result.per_query["d_group"][i],
            group_disparity(exposure, query.relevance, query.groups),
            rtol=0,
            atol=1e-8,
        )
        if query.relevance.sum() > 0:
            rank = expectation(
                scores, lambda r, q=query: fl.average_rank(torch.tensor(r), q.relevance)
            )
            assert_close(result.per_query["average_rank"][i], rank, rtol=0, atol=1e-8)
        # ERR is sampled: values lie in [0, 1), so its standard error is below .5/sqrt(S).
        err = expectation(
            scores, lambda r, q=query: fl.err(torch.tensor(r), q.relevance, max_grade=3, k=2)
        )
        assert abs(result.per_query["err"][i] - err) < 5 * 0.5 / math.sqrt(20_000)


def test_most_probable_ranking(scorer):
    ds = small_dataset()
    result = evaluate(scorer, ds, k=3, deterministic=True, max_grade=4)
    for i, query in enumerate(ds):
        ranking = PlackettLuce(scorer(query.features)).mode
        assert_close(result.per_query["ndcg_at_k"][i], ndcg(ranking, query.relevance, k=3))
        assert_close(result.per_query["ndcg"][i], ndcg(ranking, query.relevance))
        assert_close(result.per_query["err"][i], fl.err(ranking, query.relevance, k=3))
        assert_close(
            result.per_query["average_rank"][i],
            fl.average_rank(ranking, query.relevance),
            equal_nan=True,
        )
        exposure = fl.ranking_exposure(ranking, log2_bias(len(ranking)))
        assert_close(result.per_query["d_ind"][i], individual_disparity(exposure, query.relevance))


def test_matrices_equal_the_policy_they_describe(scorer):
    ds = small_dataset()
    matrices = [PlackettLuce(scorer(q.features)).position_probs().detach() for q in ds]
    direct, by_matrix = evaluate(scorer, ds, k=2), evaluate(matrices, ds, k=2)
    for name in ("ndcg", "ndcg_at_k", "average_rank", "d_ind", "d_group"):
        assert_close(
            by_matrix.per_query[name], direct.per_query[name], rtol=0, atol=1e-8, equal_nan=True
        )
    assert math.isnan(by_matrix.err)


def test_a_permutation_matrix_equals_its_ranking(scorer):
    ds = small_dataset()
    matrices = []
    for query in ds:
        ranking = PlackettLuce(scorer(query.features)).mode
        matrices.append(torch.eye(len(ranking), dtype=torch.float64)[ranking].T)
    result = evaluate(matrices, ds)
    assert_close(
        result.per_query["ndcg"], evaluate(scorer, ds, deterministic=True).per_query["ndcg"]
    )


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_batches_and_padding_change_nothing(scorer, batch_size, monkeypatch):
    ds = small_dataset(lengths=(2, 9, 1, 5, 7, 3))
    whole = evaluate(scorer, ds, k=3)
    monkeypatch.setattr(importlib.import_module("fairpg_lite.evaluation"), "_AT_ONCE", batch_size)
    parts = evaluate(scorer, ds, k=3)
    for name in ("ndcg", "ndcg_at_k", "d_ind", "d_group", "average_rank"):
        assert_close(
            parts.per_query[name], whole.per_query[name], rtol=0, atol=1e-9, equal_nan=True
        )


def test_undefined_queries_can_be_counted_or_left_out(scorer):
    ds = small_dataset()
    nothing = ds.replace(relevance=torch.where(torch.arange(19) < 5, 0.0, ds.relevance))
    assert evaluate(scorer, nothing).per_query["ndcg"][0] == 1.0
    assert evaluate(scorer, nothing, undefined=0.0).per_query["ndcg"][0] == 0.0
    dropped = evaluate(scorer, nothing, undefined=float("nan"))
    assert dropped.per_query["ndcg"][0].isnan()
    assert dropped.ndcg == pytest.approx(float(dropped.per_query["ndcg"].nanmean()))
    assert evaluate(scorer, nothing, undefined_disparity=0.5).per_query["d_group"][0] == 0.5


def test_without_groups_there_is_no_group_disparity(scorer):
    ds = small_dataset().replace(groups=None)
    assert math.isnan(evaluate(scorer, ds).d_group)


def test_any_callable_scores(scorer):
    ds = small_dataset()
    by_function = evaluate(lambda x: scorer(x), ds)
    assert by_function.ndcg == pytest.approx(evaluate(scorer, ds).ndcg)


def test_wrong_matrices_are_refused(scorer):
    ds = small_dataset()
    matrices = [torch.eye(len(q.relevance)) for q in ds]
    with pytest.raises(ValueError, match="4 probability matrices for 5 queries"):
        evaluate(matrices[:4], ds)
    matrices[2] = torch.full((4, 4), 0.3)
    with pytest.raises(ValueError, match="matrix of query 2"):
        evaluate(matrices, ds)
    matrices[2] = torch.eye(3)
    with pytest.raises(ValueError, match=r"shape \(3, 3\) for 4 documents"):
        evaluate(matrices, ds)


def test_result_prints_and_serialises(scorer):
    result = evaluate(scorer, small_dataset(), k=3)
    assert "ndcg_at_k" in repr(result)
    assert set(result.to_dict()) == {
        "k",
        "ndcg",
        "ndcg_at_k",
        "err",
        "average_rank",
        "d_ind",
        "d_group",
        "group_gap",
    }
    assert len(all_rankings(3)) == 6


def test_group_gap_counts_both_directions(scorer):
    ds = small_dataset()
    result = evaluate(scorer, ds)
    for i, query in enumerate(ds):
        exposure = PlackettLuce(scorer(query.features).detach()).exposure()
        gap = group_disparity(exposure, query.relevance, query.groups, two_sided=True)
        assert_close(result.per_query["group_gap"][i], gap, rtol=0, atol=1e-8)
    assert math.isclose(result.group_gap, result.per_query["group_gap"].mean().item())
    assert result.group_gap > result.d_group


@pytest.mark.parametrize("k", [None, 1, 3])
def test_err_is_exact_unless_rankings_are_asked_for(scorer, k):
    ds = small_dataset()
    result = evaluate(scorer, ds, k)
    for i, query in enumerate(ds):
        scores = scorer(query.features).detach()
        mean = expectation(
            scores, lambda r, q=query: fl.err(torch.tensor(r), q.relevance, max_grade=3, k=k)
        )
        assert_close(result.per_query["err"][i], mean, rtol=0, atol=1e-9)


def test_scores_from_anywhere(scorer):
    """One score per document of the dataset, as a tensor or an array."""
    ds = small_dataset(lengths=(2, 9, 1, 5, 7, 3))
    scores = scorer(ds.features).detach()
    for given in (scores, scores.numpy()):
        for how in ({}, {"deterministic": True}):
            expected, found = evaluate(scorer, ds, 3, **how), evaluate(given, ds, 3, **how)
            for name, values in expected.per_query.items():
                assert_close(found.per_query[name], values, rtol=0, atol=1e-10, equal_nan=True)
    with pytest.raises(ValueError, match=r"scores has shape \(26,\), relevance has \(27,\)"):
        evaluate(scores[1:], ds)


def test_gain_is_a_choice(scorer):
    ds = small_dataset()
    result = evaluate(scorer, ds, gain="linear", deterministic=True, undefined=0.0)
    for i, query in enumerate(ds):
        ranking = PlackettLuce(scorer(query.features)).mode
        value = ndcg(ranking, query.relevance, gain=fl.linear_gain, undefined=0.0)
        assert_close(result.per_query["ndcg"][i], value)


def test_how_many_queries_a_mean_rests_on(scorer):
    """Query 0 has nothing relevant, query 1 has one document and so one group."""
    ds = small_dataset()
    relevance = torch.where(torch.arange(19) < 5, 0.0, ds.relevance.clamp(min=1.0))
    groups = torch.arange(19).remainder(2)
    ds = ds.replace(relevance=relevance, groups=groups)
    result = evaluate(scorer, ds, 2)
    assert result.defined == dict.fromkeys(MEASURES, 4) | {"d_group": 3, "group_gap": 3}
    assert {name: int((~v.isnan()).sum()) for name, v in result.per_query.items()} == (
        dict.fromkeys(result.defined, 5) | {"average_rank": 4}
    )
    skipped = evaluate(scorer, ds, undefined=math.nan, undefined_disparity=math.nan)
    assert int(skipped.per_query["ndcg"].isnan().sum()) == 1
    assert int(skipped.per_query["d_group"].isnan().sum()) == 2
    assert skipped.d_group == pytest.approx(result.d_group * 5 / 3)
    none = evaluate(scorer, ds.replace(groups=None))
    assert none.defined["d_group"] == 0
    assert none.per_query["d_group"].isnan().all()


def test_an_interval_over_queries(scorer):
    """Percentiles of the bootstrap against SciPy's, and against the normal distribution's."""
    ds = small_dataset(lengths=[5] * 80)
    result = evaluate(scorer, ds)
    low, high = result.interval("ndcg")
    assert (low, high) == result.interval("ndcg")
    values = result.per_query["ndcg"].numpy()
    theirs = bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=0)
    error = values.std() / math.sqrt(80)
    assert abs(low - theirs.confidence_interval.low) < 0.15 * error
    assert abs(high - theirs.confidence_interval.high) < 0.15 * error
    assert low < result.ndcg < high
    assert all(math.isnan(x) for x in evaluate(scorer, ds.replace(groups=None)).interval("d_group"))


def test_two_evaluations_are_compared_query_by_query(scorer):
    """The mean of the differences, and SciPy's interval for it."""
    ds = small_dataset(lengths=(5,) * 60)
    first = evaluate(scorer, ds)
    g = torch.Generator().manual_seed(3)
    second = evaluate(LinearScorer(2, init=0.3, dtype=torch.float64, generator=g), ds)
    found = first.compare(second, "ndcg")
    paired = (first.per_query["ndcg"] - second.per_query["ndcg"]).numpy()
    theirs = bootstrap((paired,), np.mean, method="percentile", n_resamples=4000, rng=0)
    assert found.mean == pytest.approx(paired.mean())
    error = paired.std() / math.sqrt(60)
    assert abs(found.low - theirs.confidence_interval.low) < 0.2 * error
    assert abs(found.high - theirs.confidence_interval.high) < 0.2 * error
    pair = [e.per_query["ndcg"].numpy() for e in (first, second)]
    theirs = permutation_test(
        pair,
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=4000,
        rng=0,
    )
    assert abs(found.p_value - theirs.pvalue) < 0.05
    assert found.queries == 60
    assert first.compare(first, "ndcg")[:4] == (0.0, 0.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="60 queries against 5"):
        first.compare(evaluate(scorer, small_dataset()), "ndcg")


def test_grades_too_large_for_their_gain_are_said(scorer):
    ds = small_dataset().to(dtype=torch.float32)
    for grade in (200, 127):  # of 127, the sum overflows: NDCG was 0
        steep = ds.replace(relevance=torch.full_like(ds.relevance, grade))
        with pytest.raises(ValueError, match=rf"relevance of {grade} is too large.*float32"):
            evaluate(LinearScorer(2), steep)
    most = small_dataset().to(dtype=torch.float64)  # 2**1023.5 fits, and 2**1024 does not
    most = most.replace(
        relevance=torch.full_like(most.relevance, 1000.0).index_fill(0, torch.tensor([0]), 1023.5)
    )
    assert 0.0 <= evaluate(LinearScorer(2, dtype=torch.float64), most).err <= 1.0
    thirty = ds.replace(relevance=torch.full_like(ds.relevance, 30.0))
    assert evaluate(LinearScorer(2), thirty).err == pytest.approx(1.0, abs=1e-5)


def test_half_precision_scorers_are_measured_in_single(scorer):
    ds = small_dataset().to(dtype=torch.float32)
    half = LinearScorer(2, init=1.0, dtype=torch.bfloat16)
    result = evaluate(half, ds)
    scores = half(ds.features.bfloat16()).detach().double()
    expected = evaluate(scores, ds.to(dtype=torch.float64))
    assert result.per_query["ndcg"].dtype == torch.float32
    for name, values in expected.per_query.items():
        found = result.per_query[name].double()
        assert_close(found, values, rtol=0, atol=2e-5, equal_nan=True)
