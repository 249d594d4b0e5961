"""make_fair: layers are what their names say, keep the budget, and are judged on fresh queries."""

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

from fairpg_lite import LinearScorer, PlackettLuce, evaluate, group_gap, make_fair, synthetic
from fairpg_lite.policy import FixedRanking, Mixture
from fairpg_lite.post_processing import fair_ranking_lp
from fairpg_lite.training.fair_layer import METHODS, calibrate

BUDGET = 0.008


def ranker(features):
    """Scores from -6 to 6: no relevances."""
    return 2.0 * features.sum(-1) - 6.0


@pytest.fixture(scope="module")
def data():
    return synthetic(30, n_docs=6, seed=0, minority=0.4, dtype=torch.float64)


@pytest.fixture(scope="module")
def fresh():
    return synthetic(60, n_docs=6, seed=1, minority=0.4, dtype=torch.float64)


@pytest.fixture(scope="module")
def layers(data, fresh):
    return {
        method: make_fair(ranker, data, method, BUDGET, valid=fresh, progress=False)
        for method in METHODS
    }


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_kept_and_fresh_queries_are_judged(layers, data, fresh, method):
    layer = layers[method]
    assert evaluate(ranker, data).d_group > BUDGET  # there was something to mend
    found = evaluate(layer, data)
    assert len(layer) == len(data)
    assert found.d_group == pytest.approx(layer.disparity, abs=1e-9)
    assert found.ndcg == pytest.approx(layer.utility, abs=1e-9)
    assert layer.disparity <= BUDGET
    on_fresh = evaluate(layer.on(ranker, fresh), fresh)
    assert on_fresh.d_group == pytest.approx(layer.fresh_disparity, abs=1e-9)
    assert layer.fresh.ndcg == pytest.approx(on_fresh.ndcg, abs=1e-9)
    assert layer.keeps_budget == (layer.fresh_disparity <= BUDGET)
    uniform = evaluate(lambda x: 0 * x[..., 0], data).ndcg
    assert layer.utility > uniform + 0.02


@pytest.mark.parametrize("method", METHODS)
def test_one_request_is_served_as_the_query_was_judged(layers, data, method):
    layer = layers[method]
    query = data[3]
    policy = layer.policy(ranker(query.features), query.groups)
    torch.testing.assert_close(policy.exposure(), layer[3].exposure())
    drawn = policy.sample((5,), torch.Generator().manual_seed(0), k=2)
    assert drawn.shape == (5, 2)
    assert all(len(set(row)) == 2 for row in drawn.tolist())


def test_the_layers_are_what_their_names_say(layers, data):
    query = data[0]
    scores = ranker(query.features)
    temperature = layers["temperature"].parameters["temperature"]
    by_hand = PlackettLuce(scores / temperature).exposure()
    torch.testing.assert_close(layers["temperature"][0].exposure(), by_hand)

    (chance,) = layers["mixture"].parameters.values()
    sorted_list = FixedRanking(scores.argsort(descending=True), dtype=torch.float64)
    uniform = PlackettLuce(torch.zeros(6, dtype=torch.float64))
    by_hand = Mixture([sorted_list, uniform], [1 - chance, chance]).exposure()
    torch.testing.assert_close(layers["mixture"][0].exposure(), by_hand)

    head = layers["head"].parameters
    bonus = torch.where(query.groups == 1, head["bonus of group 1"], 0.0)
    assert head["bonus of group 0"] == 0.0
    by_hand = PlackettLuce(head["weight of the score"] * scores + bonus).exposure()
    torch.testing.assert_close(layers["head"][0].exposure(), by_hand)

    estimate = torch.zeros(len(data.relevance), dtype=torch.float64)
    all_scores = ranker(data.features)
    for label in (0, 1):
        own = data.groups == label
        by_sklearn = IsotonicRegression().fit(all_scores[own].numpy(), data.relevance[own].numpy())
        estimate[own] = torch.from_numpy(by_sklearn.predict(all_scores[own].numpy()))
    lam = layers["programme"].parameters["lam"]
    for number in range(10):
        rows = slice(6 * number, 6 * number + 6)
        matrix = fair_ranking_lp(estimate[rows], data.groups[rows], lam)
        torch.testing.assert_close(layers["programme"][number].position_probs(), matrix)


def test_the_search_is_not_beaten_by_a_scan(layers, data):
    """Of 60 temperatures none within the budget is more useful by .002."""
    scores = ranker(data.features)
    for temperature in np.geomspace(0.05, 100, 60):
        judged = evaluate(scores / temperature, data)
        if judged.d_group <= BUDGET:
            assert judged.ndcg < layers["temperature"].utility + 0.002


def test_calibration_is_scikit_learns():
    generator = np.random.default_rng(0)
    scores = torch.from_numpy(generator.normal(size=80).round(1))
    relevance = (scores.double() + torch.from_numpy(generator.normal(size=80)) > 0).double()
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores.numpy(), relevance.numpy())
    asked = torch.linspace(-4, 4, 33, dtype=torch.float64)
    np.testing.assert_allclose(
        calibrate(scores, relevance)(asked).numpy(), theirs.predict(asked.numpy()), atol=1e-9
    )


def test_scores_of_all_kinds_are_the_same_ranker(data, fresh):
    class Estimator:
        def predict(self, X):
            return ranker(torch.as_tensor(X)).numpy()

    scorer = LinearScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        scorer.linear.weight.fill_(2.0)
    pair = (ranker(fresh.features), fresh)
    found = [
        make_fair(ranker(data.features), data, valid=pair, progress=False),
        make_fair(ranker(data.features).numpy(), data, valid=pair, progress=False),
        make_fair(Estimator(), data, valid=fresh, progress=False),
        make_fair(scorer, data, valid=fresh, progress=False),
    ]
    for layer in found:
        assert layer.fresh_disparity == pytest.approx(found[0].fresh_disparity, abs=1e-6)


def test_a_budget_that_cannot_be_kept_is_said(data):
    def stubborn(exposure, merit, groups, mask):
        return 1.0 + 0.0 * exposure.sum(-1)

    layer = make_fair(ranker, data, "mixture", 0.5, disparity=stubborn, progress=False)
    assert not layer.keeps_budget
    assert "cannot keep" in layer.message
    assert "fresh" in layer.message  # and that nothing is known of fresh queries


def test_another_disparity_and_position_bias(data):
    bias = torch.tensor([1.0, 0.5, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    layer = make_fair(
        ranker, data, budget=0.05, disparity=group_gap, position_bias=bias, progress=False
    )
    found = evaluate(layer, data, ("group_gap",), position_bias=bias)
    assert found.group_gap == pytest.approx(layer.disparity, abs=1e-9)
    assert layer.disparity <= 0.05


def test_wrong_arguments_are_refused(data, fresh, layers):
    scores = ranker(data.features)
    for options, words in (
        ({"method": "lp"}, "method is 'lp'"),
        ({"budget": -0.1}, "cannot be negative"),
        ({"disparity": "fair"}, "disparity is 'fair'"),
        ({"method": "programme", "disparity": "d_ind"}, "knows d_group only"),
        ({"method": "programme", "merit": "square"}, "as merit"),
        ({"method": "programme", "position_bias": torch.ones(6)}, "position bias"),
        ({"method": "programme", "calibrated": True}, "zero or more"),
    ):
        with pytest.raises(ValueError, match=words):
            make_fair(scores, data, progress=False, **options)
    for wrong, words in (
        (scores[:-1], "one entry of scores per document"),
        (scores * float("nan"), "is nan"),
        (scores * 0, "all scores are equal"),
    ):
        with pytest.raises(ValueError, match=words):
            make_fair(wrong, data, progress=False)
    without = data.replace(groups=None)
    with pytest.raises(ValueError, match="data has none"):
        make_fair(scores, without, progress=False)
    with pytest.raises(ValueError, match="treats groups apart"):
        make_fair(scores, without, "head", disparity="d_ind", progress=False)
    with pytest.raises(TypeError, match=r"valid=\(scores, queries\)"):
        make_fair(scores, data, valid=fresh, progress=False)
    with pytest.raises(TypeError, match="a pair"):
        make_fair(scores, data, valid=(fresh,), progress=False)
    with pytest.raises(TypeError, match="scores is a str"):
        make_fair("scores", data, progress=False)
    with pytest.raises(ValueError, match="needs the groups"):
        layers["head"].policy(scores[:6])
    with pytest.raises(ValueError, match="group 7"):
        layers["head"].policy(scores[:6], torch.full((6,), 7))
    with pytest.raises(ValueError, match="group 7"):
        layers["programme"].policy(scores[:6], torch.full((6,), 7))
    with pytest.raises(ValueError, match="one query"):
        layers["mixture"].policy(scores.view(-1, 6))
