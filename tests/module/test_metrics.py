"""Metrics against scikit-learn and against loops that follow the definitions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_rankings
from sklearn.metrics import average_precision_score, ndcg_score
from torch.testing import assert_close

from fairpg_lite import (
    PlackettLuce,
    average_precision,
    average_rank,
    dcg,
    err,
    expected_dcg,
    expected_ndcg,
    ndcg,
    position_bias,
    ranking_exposure,
    reciprocal_rank,
)
from fairpg_lite.relevance import linear_gain

grades = st.lists(st.integers(0, 4), min_size=2, max_size=12)
cutoffs = st.one_of(st.none(), st.integers(1, 14))


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


@given(grades, st.randoms(use_true_random=False), cutoffs)
def test_ndcg_agrees_with_scikit_learn(relevance, random, k):
    n = len(relevance)
    ranking = list(range(n))
    random.shuffle(ranking)
    scores = np.empty(n)
    scores[ranking] = -np.arange(n)
    gains = 2.0 ** np.array(relevance) - 1.0
    ours = ndcg(torch.tensor(ranking), tensor(relevance), k=k, undefined=0.0)
    theirs = ndcg_score(gains[None], scores[None], k=k)
    assert abs(float(ours) - theirs) < 1e-12
    linear = ndcg(torch.tensor(ranking), tensor(relevance), k=k, gain=linear_gain, undefined=0.0)
    assert abs(float(linear) - ndcg_score([relevance], scores[None], k=k)) < 1e-12


@given(grades, st.randoms(use_true_random=False))
def test_average_precision_agrees_with_scikit_learn(relevance, random):
    n = len(relevance)
    ranking = list(range(n))
    random.shuffle(ranking)
    scores = np.empty(n)
    scores[ranking] = -np.arange(n)
    binary = np.array(relevance) > 0
    ours = float(average_precision(torch.tensor(ranking), tensor(relevance)))
    theirs = average_precision_score(binary, scores) if binary.any() else 0.0
    assert abs(ours - theirs) < 1e-12


def err_by_cascade(ranking, relevance, top, k):
    """The user at each position: satisfied and gone, or on to the next."""
    reached, value = 1.0, 0.0
    for position, document in enumerate(ranking[:k], start=1):
        stop = (2.0 ** relevance[document] - 1.0) / 2.0**top
        value += reached * stop / position
        reached *= 1.0 - stop
    return value


@given(grades, st.randoms(use_true_random=False), cutoffs)
def test_err_rank_metrics_by_loop(relevance, random, k):
    ranking = list(range(len(relevance)))
    random.shuffle(ranking)
    r, rel = torch.tensor(ranking), tensor(relevance)
    assert abs(float(err(r, rel, k=k)) - err_by_cascade(ranking, relevance, 4, k)) < 1e-12
    found = [p for p, d in enumerate(ranking, start=1) if relevance[d] > 0]
    within = [p for p in found if k is None or p <= k]
    first = 1.0 / within[0] if within else 0.0
    assert abs(float(reciprocal_rank(r, rel, k=k)) - first) < 1e-12
    if found:
        precision = [(i + 1) / p for i, p in enumerate(found) if k is None or p <= k]
        total = len(found) if k is None else min(k, len(found))
        assert abs(float(average_precision(r, rel, k=k)) - sum(precision) / total) < 1e-12
        weights = [relevance[d] for d in ranking]
        mean = sum(w * p for p, w in enumerate(weights, start=1)) / sum(weights)
        assert abs(float(average_rank(r, rel)) - mean) < 1e-12


def test_expected_dcg_is_linear_in_exposure():
    """The mean of DCG over rankings equals DCG's formula at the mean exposure."""
    rankings = torch.tensor(all_rankings(4))[::3]
    relevance = tensor([2.0, 0.0, 1.0, 3.0])
    exposure = ranking_exposure(rankings, position_bias(4, dtype=torch.float64)).mean(0)
    assert_close(expected_dcg(exposure, relevance), dcg(rankings, relevance).mean())
    assert_close(expected_ndcg(exposure, relevance), ndcg(rankings, relevance).mean())


@pytest.mark.parametrize("k", [1, 3, 10])
def test_expected_ndcg_at_k_equals_its_mean_over_rankings(k):
    scores, relevance = tensor([0.3, -1.0, 0.8, 0.1, -0.2]), tensor([1.0, 0, 2, 0, 4])
    rankings = torch.tensor(all_rankings(5))
    policy = PlackettLuce(scores)
    probability = policy.log_prob(rankings).exp()
    mean = (probability * ndcg(rankings, relevance, k=k)).sum()
    bias = position_bias(5, k=k, dtype=torch.float64)
    got = expected_ndcg(policy.exposure(bias), relevance, position_bias=bias)
    assert_close(got, mean, rtol=0, atol=1e-9)


def test_nothing_relevant_has_the_documented_answers():
    ranking, relevance = torch.tensor([1, 0, 2]), torch.zeros(3, dtype=torch.float64)
    assert dcg(ranking, relevance) == 0.0
    assert ndcg(ranking, relevance) == 1.0
    assert ndcg(ranking, relevance, undefined=0.0) == 0.0
    assert err(ranking, relevance) == 0.0
    assert average_precision(ranking, relevance) == 0.0
    assert reciprocal_rank(ranking, relevance) == 0.0
    assert average_rank(ranking, relevance).isnan()
    assert expected_ndcg(torch.ones(3).double(), relevance) == 1.0


def test_one_document_and_ties():
    one = torch.tensor([0])
    assert ndcg(one, tensor([3.0])) == 1.0
    assert average_rank(one, tensor([1.0])) == 1.0
    same = tensor([2.0, 2.0, 2.0])
    assert_close(ndcg(torch.tensor(all_rankings(3)), same), torch.ones(6).double())


@given(grades, st.integers(1, 3), st.randoms(use_true_random=False), cutoffs)
def test_padding_is_invisible(relevance, extra, random, k):
    n = len(relevance)
    ranking = list(range(n))
    random.shuffle(ranking)
    wide = tensor([*relevance, *[4.0] * extra])
    mask = torch.arange(n + extra) < n
    padded = torch.tensor([*ranking, *range(n, n + extra)])
    for metric in (dcg, ndcg, err, average_rank, average_precision, reciprocal_rank):
        how = {} if metric is average_rank else {"k": k}
        plain = metric(torch.tensor(ranking), tensor(relevance), **how)
        assert_close(metric(padded, wide, **how, mask=mask), plain, equal_nan=True)


def test_one_value_per_query_and_sample():
    relevance = torch.rand(2, 3, 5, dtype=torch.float64)
    rankings = PlackettLuce(relevance).sample((4,))
    for metric in (dcg, ndcg, err, average_rank, average_precision, reciprocal_rank):
        values = metric(rankings, relevance)
        assert values.shape == (4, 2, 3)
        alone = metric(rankings[1, 1, 2], relevance[1, 2])
        assert_close(values[1, 1, 2], alone)


def test_the_log_is_base_two():
    assert_close(dcg(torch.tensor([1, 0]), tensor([1.0, 0.0])), tensor(1.0 / math.log2(3)))
    assert_close(position_bias(3, dtype=torch.float64), tensor([1.0, 1 / math.log2(3), 0.5]))


def test_position_bias_kinds():
    assert position_bias(4, "reciprocal").tolist() == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert position_bias(3, "geometric", decay=0.9).tolist() == pytest.approx([1, 0.9, 0.81])
    assert position_bias(4, k=2).tolist() == pytest.approx([1.0, 1 / math.log2(3), 0.0, 0.0])


@pytest.mark.parametrize(
    "metric", [dcg, ndcg, err, average_rank, average_precision, reciprocal_rank]
)
def test_padding_before_a_real_document_is_refused(metric):
    mask = torch.tensor([True, True, False])
    relevance = torch.tensor([1.0, 0.0, 0.0])
    assert torch.isfinite(metric(torch.tensor([1, 0, 2]), relevance, mask=mask))
    with pytest.raises(ValueError, match="padding must come last"):
        metric(torch.tensor([2, 0, 1]), relevance, mask=mask)


def test_a_gain_too_large_for_the_format_is_said():
    for grades in ([200.0, 1.0], [127.0, 127.0, 127.0]):  # the gain, or the sum alone, overflows
        relevance = torch.tensor(grades)
        order = torch.arange(len(grades))
        with pytest.raises(ValueError, match=rf"relevance of {grades[0]:g} is too large.*float32"):
            ndcg(order, relevance)
        assert ndcg(order, relevance.double()) == 1.0
    relevance = torch.tensor([200.0, 1.0])
    assert ndcg(torch.tensor([0, 1]), relevance, gain="linear") == 1.0
    assert ndcg(torch.tensor([0, 1]), relevance.double()) == 1.0


def test_err_takes_the_highest_grade_its_format_rounds():
    """(2**30 - 1) / 2**30 is one in float32: satisfied for certain, not out of range."""
    value = err(torch.tensor([1, 0]), torch.tensor([30.0, 0.0]), max_grade=30)
    assert_close(value, torch.tensor(0.5))
    with pytest.raises(ValueError, match=r"relevance 31\.0 is above max_grade=30"):
        err(torch.tensor([1, 0]), torch.tensor([31.0, 0.0]), max_grade=30)
    with pytest.raises(ValueError, match=r"relevance 1\.0 is above"):
        err(torch.tensor([1, 0]), torch.tensor([1.0, 0.0]), max_grade=0)


def test_gains_have_names():
    relevance = torch.tensor([1.0, 3.0, 0.0])
    ranking = torch.tensor([0, 1, 2])
    assert_close(dcg(ranking, relevance, gain="linear"), dcg(ranking, relevance, gain=linear_gain))
    with pytest.raises(ValueError, match="gain is 'cubic'"):
        dcg(ranking, relevance, gain="cubic")


def test_padding_adds_no_position_to_the_best_ranking():
    """Where attention rises again later on, a short list must not be measured against that."""
    bias = torch.tensor([1.0, 0.2, 0.7], dtype=torch.float64)
    relevance = torch.tensor([2.0, 1.0], dtype=torch.float64)
    padded, mask = torch.cat([relevance, relevance[:1]]), torch.tensor([True, True, False])
    alone = ndcg(torch.tensor([0, 1]), relevance, position_bias=bias)
    assert alone == 1.0
    assert ndcg(torch.tensor([0, 1, 2]), padded, position_bias=bias, mask=mask) == alone
