"""The evaluator against enumeration and loops, for each kind of method it takes."""

import math
import pickle

import numpy as np
import pytest
import torch
from oracles import expectation, log2_bias
from scipy.stats import bootstrap, permutation_test
from torch.testing import assert_close

import fairpg_lite as fl
from fairpg_lite import (
    DoublyStochastic,
    LinearScorer,
    Mixture,
    PlackettLuce,
    RankingDataset,
    evaluate,
    group_disparity,
    group_gap,
    individual_disparity,
    ndcg,
)
from fairpg_lite.measures import DEFAULT_MEASURES, MEASURES
from fairpg_lite.policy import FixedRanking
from fairpg_lite.relevance import linear_gain

# All that relevance and groups are enough for.
ALL = tuple(name for name, row in MEASURES.items() if "posterior" not in row.needs)


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
    result = evaluate(
        scorer,
        ds,
        ALL,
        k=2,
        undefined={"ndcg": 0.25, "ndcg_at_k": 0.25},
        samples=20_000,
    )
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
    result = evaluate(scorer, ds, ALL, k=3, deterministic=True, max_grade=4)
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
    policies = [
        DoublyStochastic(PlackettLuce(scorer(q.features)).position_probs().detach()) for q in ds
    ]
    names = ("ndcg", "ndcg_at_k", "average_rank", "d_ind", "d_group")
    direct = evaluate(scorer, ds, names, k=2)
    by_matrix = evaluate(policies, ds, names, k=2)
    for name in names:
        assert_close(
            by_matrix.per_query[name], direct.per_query[name], rtol=0, atol=1e-8, equal_nan=True
        )


def test_err_of_a_matrix_is_the_mean_over_its_lists(scorer):
    """Exact, from the decomposition that lists are drawn from."""
    ds = small_dataset()
    policies = [DoublyStochastic.uniform(len(q.relevance), torch.float64) for q in ds]
    result = evaluate(policies, ds, ("err",), k=2, max_grade=3)
    for i, (query, policy) in enumerate(zip(ds, policies, strict=True)):
        weights, rankings = policy.lotteries[0]
        values = fl.err(rankings, query.relevance, max_grade=3, k=2)
        assert_close(result.per_query["err"][i], weights @ values)


def test_a_mixture_has_the_mean_of_every_linear_measure(scorer):
    ds = small_dataset()
    names = ("ndcg", "err", "average_rank")
    learned = [PlackettLuce(scorer(q.features).detach()) for q in ds]
    random = [DoublyStochastic.uniform(len(q.relevance), torch.float64) for q in ds]
    mixed = [Mixture(pair, [0.7, 0.3]) for pair in zip(learned, random, strict=True)]
    one, two, both = (evaluate(policies, ds, names, k=2) for policies in (learned, random, mixed))
    for name in names:
        expected = 0.7 * one.per_query[name] + 0.3 * two.per_query[name]
        assert_close(both.per_query[name], expected, rtol=0, atol=1e-9, equal_nan=True)


class Reversed:
    """A policy of one's own: the best document last, always."""

    def __init__(self, scores):
        self.mode = scores.argsort()
        self.mask = None

    def sample(self, sample_shape=(), generator=None):
        return self.mode.expand(*sample_shape, len(self.mode))

    def position_probs(self):
        return torch.eye(len(self.mode), dtype=torch.float64)[self.mode.argsort()]

    def exposure(self, position_bias=None):
        bias = log2_bias(len(self.mode)) if position_bias is None else position_bias
        return self.position_probs() @ bias


def test_a_policy_class_of_ones_own_is_judged(scorer):
    ds = small_dataset()
    policies = [Reversed(scorer(q.features).detach()) for q in ds]
    result = evaluate(policies, ds, ALL, k=2, max_grade=4)
    for i, (query, policy) in enumerate(zip(ds, policies, strict=True)):
        assert_close(result.per_query["ndcg"][i], ndcg(policy.mode, query.relevance))
        assert_close(result.per_query["err"][i], fl.err(policy.mode, query.relevance, k=2))


def test_a_permutation_matrix_equals_its_ranking(scorer):
    ds = small_dataset()
    matrices = []
    for query in ds:
        ranking = PlackettLuce(scorer(query.features)).mode
        matrices.append(DoublyStochastic(torch.eye(len(ranking), dtype=torch.float64)[ranking].T))
    result = evaluate(matrices, ds)
    assert_close(
        result.per_query["ndcg"], evaluate(scorer, ds, deterministic=True).per_query["ndcg"]
    )


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_batches_and_padding_change_nothing(scorer, batch_size, monkeypatch):
    ds = small_dataset(lengths=(2, 9, 1, 5, 7, 3))
    names = ("ndcg", "ndcg_at_k", "d_ind", "d_group", "average_rank")
    whole = evaluate(scorer, ds, names, k=3)
    monkeypatch.setattr("fairpg_lite.evaluation._BATCH_SIZE", batch_size)
    parts = evaluate(scorer, ds, names, k=3)
    for name in names:
        assert_close(
            parts.per_query[name], whole.per_query[name], rtol=0, atol=1e-9, equal_nan=True
        )


def test_undefined_queries_can_be_counted_or_left_out(scorer):
    ds = small_dataset()
    nothing = ds.replace(relevance=torch.where(torch.arange(19) < 5, 0.0, ds.relevance))
    assert evaluate(scorer, nothing).per_query["ndcg"][0] == 1.0
    assert evaluate(scorer, nothing, undefined={"ndcg": 0.0}).per_query["ndcg"][0] == 0.0
    dropped = evaluate(scorer, nothing, undefined="skip")
    assert dropped.per_query["ndcg"][0].isnan()
    assert dropped.ndcg == pytest.approx(float(dropped.per_query["ndcg"].nanmean()))
    assert dropped.per_query["d_group"][0].isnan()
    assert evaluate(scorer, nothing, undefined={"d_group": 0.5}).per_query["d_group"][0] == 0.5
    with pytest.raises(ValueError, match="undefined is 'drop'"):
        evaluate(scorer, nothing, undefined="drop")


def test_without_groups_there_is_no_group_disparity(scorer):
    ds = small_dataset().replace(groups=None)
    assert set(evaluate(scorer, ds).means) == {"ndcg", "d_ind"}
    with pytest.raises(ValueError, match="d_group compares groups, and the dataset has none"):
        evaluate(scorer, ds, ("ndcg", "d_group"))


def test_only_what_is_asked_for_is_computed(scorer, monkeypatch):
    ds = small_dataset()
    monkeypatch.setattr("fairpg_lite.measures.exact_err", None)
    result = evaluate(scorer, ds, ("ndcg", "d_ind"))
    assert list(result.means) == ["ndcg", "d_ind"]
    with pytest.raises(AttributeError, match="err was not computed"):
        _ = result.err
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = result.nonsense
    with pytest.raises(KeyError, match="'err' was not computed"):
        result.interval("err")
    with pytest.raises(ValueError, match="no measure 'dcg'"):
        evaluate(scorer, ds, ("dcg",))
    with pytest.raises(ValueError, match="measures is empty"):
        evaluate(scorer, ds, ())


def test_another_position_bias(scorer):
    """Exposure and NDCG by it, against the matrix of probabilities."""
    ds = small_dataset()
    bias = fl.position_bias(6, "geometric", decay=0.7, dtype=torch.float64)
    result = evaluate(scorer, ds, ("ndcg", "d_ind"), position_bias=bias)
    for i, query in enumerate(ds):
        probs = PlackettLuce(scorer(query.features).detach()).position_probs()
        exposure = probs @ bias[: len(probs)]
        value = fl.expected_ndcg(exposure, query.relevance, position_bias=bias[: len(probs)])
        assert_close(result.per_query["ndcg"][i], value, rtol=0, atol=1e-8)
        disparity = individual_disparity(exposure, query.relevance)
        assert_close(result.per_query["d_ind"][i], disparity, rtol=0, atol=1e-8)


def test_any_callable_scores(scorer):
    ds = small_dataset()
    by_function = evaluate(lambda x: scorer(x), ds)
    assert by_function.ndcg == pytest.approx(evaluate(scorer, ds).ndcg)


def test_wrong_policies_are_refused(scorer):
    ds = small_dataset()
    policies = [DoublyStochastic(torch.eye(len(q.relevance)).double()) for q in ds]
    with pytest.raises(ValueError, match="4 policies for 5 queries"):
        evaluate(policies[:4], ds)
    with pytest.raises(TypeError, match=r"policy 0 is torch\.float64; give a Policy"):
        evaluate([policy.matrix for policy in policies], ds)
    policies[2] = DoublyStochastic.uniform(3, torch.float64)
    with pytest.raises(ValueError, match="policy 2 ranks 3 documents, the query has 4"):
        evaluate(policies, ds)


def test_result_prints_and_serialises(scorer):
    result = evaluate(scorer, small_dataset(), ALL, k=3)
    assert "ndcg_at_k" in repr(result)
    assert list(result.to_dict()) == ["k", *ALL]
    assert pickle.loads(pickle.dumps(result)).means == result.means


def test_group_gap_counts_both_directions(scorer):
    ds = small_dataset()
    result = evaluate(scorer, ds, ("d_group", "group_gap"))
    for i, query in enumerate(ds):
        exposure = PlackettLuce(scorer(query.features).detach()).exposure()
        gap = group_gap(exposure, query.relevance, query.groups)
        assert_close(result.per_query["group_gap"][i], gap, rtol=0, atol=1e-8)
    assert math.isclose(result.group_gap, result.per_query["group_gap"].mean().item())
    assert result.group_gap > result.d_group


@pytest.mark.parametrize("k", [None, 1, 3])
def test_err_is_exact_unless_rankings_are_asked_for(scorer, k):
    ds = small_dataset()
    result = evaluate(scorer, ds, ("err",), k=k)
    for i, query in enumerate(ds):
        scores = scorer(query.features).detach()
        mean = expectation(
            scores, lambda r, q=query: fl.err(torch.tensor(r), q.relevance, max_grade=3, k=k)
        )
        assert_close(result.per_query["err"][i], mean, rtol=0, atol=1e-9)


@pytest.mark.parametrize("k", [None, 1, 3])
def test_rr_is_exact_and_ap_is_drawn(scorer, k):
    ds = small_dataset()
    result = evaluate(scorer, ds, ("rr", "ap"), k=k)
    mode = evaluate(scorer, ds, ("rr", "ap"), k=k, deterministic=True)
    matrices = []
    for i, query in enumerate(ds):
        scores = scorer(query.features).detach()
        rr = expectation(
            scores, lambda r, q=query: fl.reciprocal_rank(torch.tensor(r), q.relevance, k=k)
        )
        assert_close(result.per_query["rr"][i], rr, rtol=0, atol=1e-9)
        ap = expectation(
            scores, lambda r, q=query: fl.average_precision(torch.tensor(r), q.relevance, k=k)
        )
        assert abs(result.per_query["ap"][i] - ap) < 5 * 0.5 / math.sqrt(1000)
        ranking = fl.PlackettLuce(scores).mode
        matrices.append(DoublyStochastic(torch.eye(len(ranking), dtype=torch.float64)[ranking].T))
        ap_of_mode = fl.average_precision(ranking, query.relevance, k=k)
        assert_close(mode.per_query["ap"][i], ap_of_mode)
    lists = evaluate(matrices, ds, ("rr", "ap"), k=k)
    assert lists.means == pytest.approx(mode.means)


def test_rr_of_a_mixture_and_of_nothing_relevant(scorer):
    ds = small_dataset()
    policies = [fl.PlackettLuce(scorer(query.features).detach()) for query in ds]
    mixtures = [fl.Mixture([p, FixedRanking(p.mode)], [0.25, 0.75]) for p in policies]
    parts = [evaluate(scorer, ds, ("rr",), deterministic=fixed).rr for fixed in (False, True)]
    assert evaluate(mixtures, ds, ("rr",)).rr == pytest.approx(0.25 * parts[0] + 0.75 * parts[1])
    nothing = ds.replace(relevance=torch.zeros_like(ds.relevance))
    assert evaluate(scorer, nothing, ("rr", "ap")).means == {"rr": 0.0, "ap": 0.0}
    assert evaluate(scorer, nothing, ("rr", "ap")).defined == {"rr": 0, "ap": 0}


def test_scores_from_anywhere(scorer):
    """One score per document of the dataset, as a tensor or an array."""
    ds = small_dataset(lengths=(2, 9, 1, 5, 7, 3))
    scores = scorer(ds.features).detach()
    for given in (scores, scores.numpy()):
        for how in ({}, {"deterministic": True}):
            expected = evaluate(scorer, ds, ALL, k=3, **how)
            found = evaluate(given, ds, ALL, k=3, **how)
            for name, values in expected.per_query.items():
                assert_close(found.per_query[name], values, rtol=0, atol=1e-10, equal_nan=True)
    with pytest.raises(ValueError, match=r"scores has shape \(26,\), relevance has \(27,\)"):
        evaluate(scores[1:], ds)


def test_gain_is_a_choice(scorer):
    ds = small_dataset()
    result = evaluate(scorer, ds, gain="linear", deterministic=True, undefined={"ndcg": 0.0})
    for i, query in enumerate(ds):
        ranking = PlackettLuce(scorer(query.features)).mode
        value = ndcg(ranking, query.relevance, gain=linear_gain, undefined=0.0)
        assert_close(result.per_query["ndcg"][i], value)


def test_how_many_queries_a_mean_rests_on(scorer):
    """Query 0 has nothing relevant, query 1 has one document and so one group."""
    ds = small_dataset()
    relevance = torch.where(torch.arange(19) < 5, 0.0, ds.relevance.clamp(min=1.0))
    groups = torch.arange(19).remainder(2)
    ds = ds.replace(relevance=relevance, groups=groups)
    result = evaluate(scorer, ds, DEFAULT_MEASURES, k=2)
    assert result.defined == dict.fromkeys(DEFAULT_MEASURES, 4) | {"d_group": 3, "group_gap": 3}
    assert {name: int((~v.isnan()).sum()) for name, v in result.per_query.items()} == (
        dict.fromkeys(result.defined, 5) | {"average_rank": 4}
    )
    skipped = evaluate(scorer, ds, undefined="skip")
    assert int(skipped.per_query["ndcg"].isnan().sum()) == 1
    assert int(skipped.per_query["d_group"].isnan().sum()) == 2
    assert skipped.d_group == pytest.approx(result.d_group * 5 / 3)


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
    one_group = ds.replace(groups=torch.zeros_like(ds.groups))
    nothing = evaluate(scorer, one_group, undefined="skip")
    assert all(math.isnan(end) for end in nothing.interval("d_group"))


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
    assert 0.0 <= evaluate(LinearScorer(2, dtype=torch.float64), most, ("err",)).err <= 1.0
    thirty = ds.replace(relevance=torch.full_like(ds.relevance, 30.0))
    assert evaluate(LinearScorer(2), thirty, ("err",)).err == pytest.approx(1.0, abs=1e-5)


def test_half_precision_scorers_are_measured_in_single(scorer):
    ds = small_dataset().to(dtype=torch.float32)
    half = LinearScorer(2, init=1.0, dtype=torch.bfloat16)
    result = evaluate(half, ds, ALL)
    scores = half(ds.features.bfloat16()).detach().double()
    expected = evaluate(scores, ds.to(dtype=torch.float64), ALL)
    assert result.per_query["ndcg"].dtype == torch.float32
    for name, values in expected.per_query.items():
        found = result.per_query[name].double()
        assert_close(found, values, rtol=0, atol=2e-5, equal_nan=True)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": -1}, "k is -1"),
        ({"k": 2.5}, r"k is 2\.5"),
        ({"samples": 0}, "samples is 0"),
        ({"undefined": 0.0}, r"undefined is 0\.0"),
        ({"undefined": {"ndgc": 0.0}}, "undefined names 'ndgc'"),
    ],
)
def test_choices_that_make_no_sense_are_refused(scorer, choices, message):
    with pytest.raises(ValueError, match=message):
        evaluate(scorer, small_dataset(), ("ndcg_at_k",), **choices)


def test_samples_are_drawn_where_they_are_asked_for(scorer):
    ds = small_dataset()
    policies = [DoublyStochastic.uniform(len(q.relevance), torch.float64) for q in ds]
    exact = evaluate(policies, ds, ("err",)).err
    drawn = evaluate(policies, ds, ("err",), samples=2).err
    assert drawn != exact
    many = evaluate(policies, ds, ("err",), samples=20_000).err
    assert abs(many - exact) < 0.01


def test_exposure_by_drawn_rankings():
    """Within five standard errors of what is integrated, and the same again every time."""
    data = fl.synthetic(n_queries=5)
    exact = evaluate(data.relevance, data, ("ndcg", "err"))
    drawn = evaluate(data.relevance, data, ("ndcg", "err"), method="sample", samples=2000)
    again = evaluate(data.relevance, data, ("ndcg", "err"), method="sample", samples=2000)
    assert drawn.means == again.means
    for name in ("ndcg", "err"):
        # NDCG and ERR lie between 0 and 1, so that a mean of 2,000 has an error of at most 0.0112.
        assert (drawn.per_query[name] - exact.per_query[name]).abs().max() < 5 * 0.0112
        assert drawn.means[name] != exact.means[name]
    fixed = evaluate(data.relevance, data, ("ndcg",), deterministic=True, method="sample")
    assert fixed.ndcg == evaluate(data.relevance, data, ("ndcg",), deterministic=True).ndcg


def test_an_unknown_method_is_refused():
    data = fl.synthetic(n_queries=2)
    with pytest.raises(ValueError, match="method is 'guess'; choose 'exact' or 'sample'"):
        evaluate(data.relevance, data, method="guess")
