"""certify: the last policy before the first that does not pass, and how often a promise breaks."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch

from fairpg_lite import PlackettLuce, certify, evaluate, group_disparity, position_bias, synthetic
from fairpg_lite.betting import betting_bound, log_capital
from fairpg_lite.exposure import ranking_exposure
from fairpg_lite.training.certificate import largest_disparity


@pytest.fixture(scope="module")
def calibration():
    return synthetic(400, seed=5, dtype=torch.float64)


@pytest.fixture(scope="module")
def path(calibration):
    scores = calibration.features.sum(-1)
    return {f"temperature {t}": scores / t for t in (30, 4, 2, 1, 0.3)}


def test_means_and_bounds_are_those_of_the_queries_in_the_order_of_the_seed(calibration, path):
    found = certify(path, calibration, 0.01, 0.2, cap=0.3, seed=7, progress=False)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(7))
    for number, scores in enumerate(path.values()):
        judged = evaluate(scores, calibration)
        values = judged.per_query["d_group"][order]
        assert found.means[number] == pytest.approx(judged.d_group)
        assert found.utilities[number] == pytest.approx(judged.ndcg)
        assert found.bounds[number] == float(betting_bound(values, 0.2, cap=0.3))
    assert found.queries == 400
    assert found.above_cap == 0


def test_the_path_ends_at_the_first_that_does_not_pass(calibration, path):
    found = certify(path, calibration, 0.008, 0.1, cap=0.3, progress=False)
    passing = [bound <= 0.008 for bound in found.bounds]
    assert passing[0]
    assert not passing[-1]
    assert found.n_certified == passing.index(False)
    assert found.chosen == max(range(found.n_certified), key=lambda i: found.utilities[i])
    assert found.chosen_name in found.message
    # A fair policy behind an unfair one is not certified: it was never tested.
    names = list(path)
    behind = {names[-1]: path[names[-1]], names[0]: path[names[0]]}
    refused = certify(behind, calibration, 0.008, 0.1, cap=0.3, progress=False)
    assert refused.bounds[1] <= 0.008
    assert refused.chosen is None
    assert refused.certified == (False, False)


def test_too_few_queries_certify_nothing_and_it_is_said(path, calibration):
    few = calibration[:50]
    scores = few.features.sum(-1)
    found = certify([scores * 0], few, 0.01, 0.1, progress=False)
    assert found.means == (0.0,)
    assert found.chosen is None
    assert found.chosen_name is None
    assert "none" in found.message
    assert "247" in found.message  # queries that even a perfect policy needs
    assert not found.to_pandas().certified.any()


def test_disparities_above_the_cap_are_counted(calibration, path):
    found = certify(path, calibration, 0.01, cap=0.02, progress=False)
    above = sum(
        int((evaluate(scores, calibration).per_query["d_group"] > 0.02).sum())
        for scores in path.values()
    )
    assert found.above_cap == above > 0
    assert str(above) in found.message


def test_queries_without_a_disparity_count_zero_or_are_left_out(calibration):
    scores = calibration.features.sum(-1)
    judged = evaluate(scores, calibration)
    defined = judged.defined["d_group"]
    assert defined < 400
    counted = certify([scores], calibration, 0.02, progress=False)
    skipped = certify([scores], calibration, 0.02, undefined="skip", progress=False)
    assert (counted.queries, skipped.queries) == (400, defined)
    assert skipped.means[0] == pytest.approx(counted.means[0] * 400 / defined)


def test_policies_and_scorers_and_other_disparities(calibration):
    few = calibration[:60]

    def scorer(features):
        return features.sum(-1)

    policies = [PlackettLuce(scorer(query.features)) for query in few]
    one = certify([scorer], few, 0.5, progress=False)
    same = certify([policies], few, 0.5, progress=False)
    assert one.means == pytest.approx(same.means)
    by_name = certify([scorer], few, 0.5, disparity="d_ind", progress=False)
    own = certify([scorer], few, 0.5, disparity=group_disparity, progress=False)
    assert by_name.means[0] == pytest.approx(evaluate(scorer, few, ("d_ind",)).d_ind)
    assert own.means == pytest.approx(one.means)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_no_ranking_is_more_unfair_than_the_largest(n_groups):
    """All 720 rankings of six documents; with two groups the worst of them attains it."""
    data = synthetic(8, n_docs=6, seed=2, minority=0.5, dtype=torch.float64)
    groups = torch.arange(48) % n_groups
    relevance = data.relevance.round()
    relevance[:6] = 1.0  # equal merits: both directions count
    data = data.replace(groups=groups, relevance=relevance)
    rankings = torch.tensor(list(permutations(range(6))))
    exposure = ranking_exposure(rankings, position_bias(6, dtype=torch.float64))
    for query, largest in zip(data, largest_disparity(data), strict=True):
        worst = group_disparity(
            exposure, query.relevance.expand(720, 6), query.groups.expand(720, 6)
        ).max()
        if n_groups == 2:
            assert float(worst) == pytest.approx(float(largest), abs=1e-12)
        else:
            assert float(worst) <= float(largest) + 1e-12


def test_promises_are_broken_no_oftener_than_alpha():
    """2,000 calibration sets of a population; the policies' true means are known."""
    population = synthetic(2000, seed=9, dtype=torch.float64)
    scores = population.features.sum(-1)
    judged = [evaluate(scores / t, population) for t in (8, 4, 3, 2.5, 2, 1.5, 1)]
    values = torch.stack([one.per_query["d_group"] for one in judged])
    truth = values.mean(1).numpy()
    delta = float(truth[3]) - 1e-6  # a policy that breaks the budget by a hair
    alpha = 0.1
    draws = torch.from_numpy(np.random.default_rng(0).integers(0, 2000, (2000, 400)))
    passes = np.stack(
        [
            (log_capital(row[draws], delta, alpha, cap=0.3) >= math.log(1 / alpha)).numpy()
            for row in values
        ]
    )
    certified = np.cumprod(passes, axis=0).astype(bool)
    broken = certified[truth > delta].any(0).mean()
    assert broken <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 2000)
    assert certified[0].any()


def negative(exposure, merit, groups, mask):
    return -exposure.sum(-1)


def test_wrong_arguments_are_refused(calibration):
    few = calibration[:20]
    scores = few.features.sum(-1)
    for arguments, words in (
        (([], few, 0.1), "policies is empty"),
        (([scores], few, 0.0), "delta is 0"),
        (([scores], few, math.nan), "delta is nan"),
        (([scores], few, 1.0), "delta is 1 and cap is 1"),
        (([scores], few, 0.1, 1.0), "alpha is 1"),
        (([scores], few.replace(groups=None), 0.1), "dataset has none"),
        (([scores[:-1]], few, 0.1), "scores has shape"),
    ):
        with pytest.raises(ValueError, match=words):
            certify(*arguments, progress=False)
    for options, words in (
        ({"cap": -1.0}, "cap is -1"),
        ({"disparity": "ndcg"}, "disparity is 'ndcg'"),
        ({"undefined": "0"}, "undefined is '0'"),
        ({"seed": -1}, "seed is -1"),
        ({"disparity": negative}, "zero or more"),
    ):
        with pytest.raises(ValueError, match=words):
            certify([scores], few, 0.1, progress=False, **options)
    with pytest.raises(TypeError, match="a list or a dictionary"):
        certify(scores, few, 0.1, progress=False)
    with pytest.raises(TypeError, match="put it into a list"):
        certify([PlackettLuce(query.features.sum(-1)) for query in few], few, 0.1, progress=False)
    with pytest.raises(ValueError, match="no groups"):
        largest_disparity(few.replace(groups=None))
    with pytest.raises(ValueError, match="10 positions"):
        largest_disparity(few, position_bias=torch.ones(3))
