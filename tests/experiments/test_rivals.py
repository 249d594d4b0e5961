"""The rivals of chapter 8: each one's expectation over all lists is the gradient it estimates."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks import _timing
from benchmarks.rivals import kernels
from benchmarks.rivals.errors import drawn
from benchmarks.rivals.estimates import codes, exact_gradients, sampled_gradients
from benchmarks.rivals.kernels import LEAVE_ONE_OUT, MEAN, NONE, PL_RANK, REINFORCE, TO_GO, UNIFORM
from benchmarks.rivals.problems import Trial, finest_exposure, subset_exposure
from benchmarks.rivals.ways import BY_NAME, SAMPLED
from experiments import rivals
from fairpg_lite import PlackettLuce, position_bias
from tests import oracles

SCORES = np.array([0.7, -0.4, 1.1, 0.0])
PULL = np.array([0.9, 0.1, -0.3, 0.5])
KINDS = {"REINFORCE": REINFORCE, "reward-to-go": TO_GO, "PL-Rank": PL_RANK}

# What one list is enough for: kind and baseline.
SINGLE_LISTS = [
    (REINFORCE, NONE), (TO_GO, NONE), (PL_RANK, NONE), (TO_GO, UNIFORM), (PL_RANK, UNIFORM)
]  # fmt: skip


def bias_of(n, k):
    return position_bias(n, k=k, dtype=torch.float64).numpy()


def all_lists(n):
    return np.array(oracles.all_rankings(n))


def probabilities(scores):
    s = torch.tensor(scores)
    return np.array(
        [float(oracles.ranking_probability(s, r)) for r in oracles.all_rankings(len(s))]
    )


def true_gradient(scores, pull, bias):
    s = torch.tensor(scores, requires_grad=True)

    def earned(ranking):
        return sum(bias[k] * pull[d] for k, d in enumerate(ranking))

    return torch.autograd.grad(oracles.expectation(s, earned), s)[0].numpy()


def expectation_over_pairs(scores, estimate):
    """Of ``estimate(lists (2, n))``, over all pairs of lists."""
    lists = all_lists(len(scores))
    chance = probabilities(scores)
    total = np.zeros(len(scores))
    for pair in itertools.product(range(len(lists)), repeat=2):
        total += chance[list(pair)].prod() * estimate(lists[list(pair)])
    return total


@pytest.mark.parametrize("k", [None, 2, 1])
@pytest.mark.parametrize("function", [kernels.gradient, kernels.gradient_by_definition])
@pytest.mark.parametrize(("kind", "baseline"), SINGLE_LISTS)
def test_a_list_is_right_on_average(kind, baseline, function, k):
    for n in (2, 4):
        scores, pull, bias = SCORES[:n], PULL[:n], bias_of(n, k)
        shown = all_lists(n)[:, : min(k or n, n)].copy()
        found = sum(
            chance * function(np.exp(scores), shown[i : i + 1], pull, bias, kind, baseline)
            for i, chance in enumerate(probabilities(scores))
        )
        np.testing.assert_allclose(found, true_gradient(scores, pull, bias), atol=1e-13)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_baselines_on_all_pairs_of_lists(kind):
    bias = bias_of(4, None)
    truth = true_gradient(SCORES, PULL, bias)

    def estimate(baseline):
        def of(lists):
            return kernels.gradient(np.exp(SCORES), lists, PULL, bias, kind, baseline)

        return expectation_over_pairs(SCORES, of)

    np.testing.assert_allclose(estimate(LEAVE_ONE_OUT), truth, atol=1e-13)
    found = estimate(MEAN)
    if kind == PL_RANK:  # what a draw earns itself has no baseline, so it is not shrunk
        assert np.linalg.norm(found) > 0.5 * np.linalg.norm(truth)
    else:
        np.testing.assert_allclose(found, truth / 2, atol=1e-13)


def test_both_orders_of_summation_agree():
    rng = np.random.default_rng(0)
    for n, places in ((5, 5), (50, 50), (50, 7)):
        scores = 5.0 * rng.standard_normal(n)
        pull = rng.standard_normal(n)
        weight = np.exp(scores)
        lists = kernels.lists_of(weight, rng.standard_exponential((6, n)), places)
        for kind, baseline in itertools.product(KINDS.values(), (NONE, MEAN, LEAVE_ONE_OUT)):
            args = (weight, lists, pull, bias_of(n, places), kind, baseline)
            one = kernels.gradient(*args)
            np.testing.assert_allclose(one, kernels.gradient_by_definition(*args), atol=1e-11)


@pytest.mark.parametrize(
    ("kind", "baseline", "options"),
    [
        (REINFORCE, MEAN, {"baseline": "mean"}),
        (REINFORCE, LEAVE_ONE_OUT, {"baseline": "loo"}),
        (TO_GO, LEAVE_ONE_OUT, {"baseline": "loo", "reward_to_go": True}),
        (TO_GO, UNIFORM, {"baseline": "uniform", "reward_to_go": True}),
    ],
)
def test_what_the_package_has_is_the_same(kind, baseline, options):
    rng = np.random.default_rng(2)
    scores = torch.tensor(2.0 * rng.standard_normal(9), requires_grad=True)
    pull = rng.standard_normal(9)
    weight = scores.exp().detach().numpy()
    lists = kernels.lists_of(weight, rng.standard_exponential((5, 9)), 9)
    exposure = PlackettLuce(scores).sampled_exposure(rankings=torch.tensor(lists), **options)
    (expected,) = torch.autograd.grad((torch.tensor(pull) * exposure).sum(), scores)
    found = kernels.gradient(weight, lists, pull, bias_of(9, None), kind, baseline)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow  # Numba compiles them
@pytest.mark.parametrize("way", SAMPLED, ids=lambda way: way.name)
def test_many_lists_come_close(way):
    # Of a smooth objective: every way, as the benchmark calls it, lists included.
    trial = Trial("NDCG", 12, 1.0, queries=2)
    source = np.random.default_rng(0)
    if way.sobol:
        source = torch.quasirandom.SobolEngine(12, scramble=True, seed=0)
    waits = drawn(way, trial, 20_000, source)
    found = sampled_gradients(
        trial.scores, waits, codes(way, trial.bias), trial.problem, trial.times(1e-5)
    )
    error = np.linalg.norm(found - trial.truth) / np.linalg.norm(trial.truth)
    assert error < (0.5 if way.baseline == NONE else 0.1)


@pytest.mark.slow
def test_only_exact_charges_are_unbiased_for_a_hinge():
    # Two lists, all pairs of the 24: sampled charges miss the gradient of D_group, exact ones hit.
    trial = Trial("NDCG - 10 D_group", 4, 1.0, queries=6, seed=3)
    lists = all_lists(4)
    # Waits that put the documents in a given order whatever their weights.
    waits = np.array([1e9 ** np.argsort(ranking).astype(float) for ranking in lists])
    off = {"REINFORCE, leave-one-out": [], "exact charges, leave-one-out": []}
    for name, errors in off.items():
        code = codes(BY_NAME[name], trial.bias)
        expected = np.zeros_like(trial.truth)
        chance = np.array([probabilities(row) for row in trial.scores])
        for pair in itertools.product(range(24), repeat=2):
            both = np.broadcast_to(waits[list(pair)], (6, 2, 4)).copy()
            got = sampled_gradients(trial.scores, both, code, trial.problem, trial.times(1e-10))
            expected += chance[:, list(pair)].prod(1)[:, None] * got
        errors.append(np.abs(expected - trial.truth).max())
    assert off["exact charges, leave-one-out"][0] < 1e-8
    assert off["REINFORCE, leave-one-out"][0] > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["NDCG", "NDCG - 10 D_ind", "NDCG - 10 D_group"])
def test_exact_agrees_with_subsets(objective):
    trial = Trial(objective, 7, 2.0, queries=3)
    found = exact_gradients(trial.scores, trial.problem, trial.times(1e-10))
    np.testing.assert_allclose(found, trial.truth, atol=1e-8)


def test_subsets_are_what_the_oracle_says():
    scores = torch.tensor([[0.3, -1.0, 2.0, 0.0, 0.5]], dtype=torch.float64)
    bias = position_bias(5, dtype=torch.float64)
    expected = oracles.position_probs_by_subsets(scores[0]) @ bias
    torch.testing.assert_close(subset_exposure(PlackettLuce(scores), None)[0], expected)
    torch.testing.assert_close(finest_exposure(PlackettLuce(scores), None)[0], expected)


@pytest.mark.parametrize("n", [6, 60])
def test_lists_are_sorted_arrivals(n):
    rng = np.random.default_rng(1)
    weight = np.exp(rng.standard_normal(n))
    waits = rng.standard_exponential((20, n))
    for places in (1, n // 2, n):
        lists = kernels.lists_of(weight, waits, places)
        np.testing.assert_array_equal(lists, np.argsort(waits / weight, axis=1)[:, :places])
    shown = kernels.mean_exposure(lists, bias_of(n, None), n)
    assert math.isclose(shown.sum(), bias_of(n, None).sum())


def test_time_is_read_between_settings():
    course = (
        rivals.Point(1, 4.0, 10.0),
        rivals.Point(4, 2.0, 40.0),
        rivals.Point(16, 1.0, 160.0),
    )
    assert rivals.error_at(course, 40.0) == pytest.approx(2.0)
    assert rivals.error_at(course, 20.0) == pytest.approx(4.0 / math.sqrt(2))
    assert rivals.error_at(course, 1.0) == pytest.approx(4.0)
    assert rivals.error_at(course, 640.0) == pytest.approx(0.5)
    assert rivals.lists_in(course, 80.0) == pytest.approx(8.0)
    assert rivals.lists_in(course, 640.0) == pytest.approx(64.0)


def test_seconds_to_a_value():
    value = np.array([[0.0, 0.5, 1.0], [0.0, 0.7, 1.0]])
    seconds = np.array([[0.0, 1.0, 3.0], [0.0, 1.0, 3.0]])
    course = rivals.Course(0.1, value, seconds, np.array([]))
    assert rivals.seconds_to(course, 0.6) == pytest.approx(1.0)
    assert rivals.seconds_to(course, 0.8) == pytest.approx(2.0)
    assert rivals.seconds_to(course, 1.1) == math.inf
    assert rivals.target({("a", 1): course}, 0.5) == pytest.approx(0.5)


def test_interval_is_students():
    values = np.array([1.0, 2.0, 4.0])
    low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    found = rivals.estimate(values)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_a_stored_table_is_read_as_it_was_written(tmp_path, monkeypatch):
    rows = [{"way": "a", "error": 0.1, "spent": None}, {"error": 2e-7, "spent": 3.5, "way": "b"}]
    monkeypatch.setattr(_timing, "RESULTS", tmp_path)
    monkeypatch.setattr(rivals, "STORED", tmp_path)
    _timing.store_table("table", "a command", rows, queries={"10": 24})
    content = rivals.stored.__wrapped__("table")
    assert content["rows"] == rows
    assert (content["command"], content["queries"]) == ("a command", {"10": 24})


def stored_cells():
    """Objective, documents and spread of every cell of the table of errors."""
    rows = rivals.stored("rivals_errors")["rows"]
    return sorted({(row["objective"], row["n"], row["spread"]) for row in rows})


def lists_of_exact(objective, n, spread):
    """How many lists the paper's estimator uses in the time of the exact gradient."""
    exact = rivals.exact_point(objective, n, spread)
    paper = rivals.points(objective, n, spread, "REINFORCE, mean")
    return rivals.lists_in(paper, exact.microseconds)


def test_the_rule_of_thumb_of_method_is_that_of_the_table():
    """What `Objective.method` says of "sample" and "exact"."""
    leads = {}
    for cell in stored_cells():
        objective, n, spread = cell
        lists = lists_of_exact(*cell)
        leads[cell] = min(rivals.leads(*cell).values())
        if objective == "NDCG@10":
            assert 20 <= lists <= 1600
        elif spread <= 3:
            assert 2 <= lists <= 20
        else:
            assert 10 <= lists <= 80
        assert leads[cell] >= 100 or (n == 10 and spread >= 10)
    assert min(leads.values()) >= 20
    assert np.mean([lead >= 1000 for lead in leads.values()]) > 0.5


@pytest.mark.parametrize("data", ["stand-in", "German Credit"])
def test_who_is_first_in_training_is_as_method_says(data):
    """ "exact" in all settings of Yahoo's shape, a sampled gradient in all of German Credit."""
    counted = 0
    for model, fair in itertools.product(("linear", "network"), (False, True)):
        courses = rivals.courses(data, model, fair)
        if ("exact", 0) not in courses:
            continue
        counted += 1
        goal = rivals.target(courses)
        seconds = {way: rivals.seconds_to(course, goal) for way, course in courses.items()}
        first = min(seconds, key=seconds.__getitem__)
        assert (first == ("exact", 0)) == (data == "stand-in")
        if (data, model) == ("German Credit", "network"):
            last = {way: course.value[:, -1].mean() for way, course in courses.items()}
            assert last["exact", 0] < max(last.values())
    assert counted == {"stand-in": 3, "German Credit": 4}[data]
