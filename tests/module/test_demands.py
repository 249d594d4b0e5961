"""The measures that came after the paper, each against a loop over its definition."""

import dataclasses
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_rankings, log2_bias
from torch.testing import assert_close

from fairpg_lite import (
    DoublyStochastic,
    LinearScorer,
    Mixture,
    PlackettLuce,
    RankingDataset,
    TrainConfig,
    evaluate,
    fit,
    fit_to_budget,
    position_bias,
    synthetic,
)
from fairpg_lite.disparity import disparity_of
from fairpg_lite.expected_exposure import ideal_exposure
from fairpg_lite.measures import DISPARITIES, MEASURES
from fairpg_lite.training.validation import objective_on

PAPER = ("d_ind", "d_group", "group_gap")
LATER = [name for name, row in MEASURES.items() if row.disparity is not None and name not in PAPER]
REPORTED = ["signed_gap", "ee_r"]


def groups_of(groups):
    return sorted(set(groups))


def ratios(total, weight, groups):
    """Sum over sum of each group that has weight."""
    found = {}
    for label in groups_of(groups):
        members = [i for i, g in enumerate(groups) if g == label]
        if sum(weight[i] for i in members) > 0:
            found[label] = sum(total[i] for i in members) / sum(weight[i] for i in members)
    return list(found.values())


def mean_gap(values, size=abs):
    pairs = [size(a - b) for a, b in itertools.combinations(values, 2)]
    return sum(pairs) / len(pairs) if pairs else 0.0


def ideal_by_enumeration(merit, bias):
    """Mean exposure over all rankings that are sorted by merit."""
    rankings = [
        r
        for r in all_rankings(len(merit))
        if all(merit[a] >= merit[b] for a, b in itertools.pairwise(r))
    ]
    return [sum(bias[r.index(d)] for r in rankings) / len(rankings) for d in range(len(merit))]


def by_loop(name, v, m, groups):
    """The definition, document by document, in plain numbers."""
    n = len(v)
    ones = [1.0] * n
    bias = log2_bias(n).tolist()
    with_merit = [i for i in range(n) if m[i] > 0]
    if name == "signed_gap":
        return mean_gap(ratios(v, m, groups), size=lambda difference: difference)
    if name == "parity":
        return mean_gap(ratios(v, ones, groups))
    if name == "clicks":
        return mean_gap(ratios([a * b for a, b in zip(v, m, strict=True)], m, groups))
    if name == "awrf":
        shares = []
        for label in groups_of(groups):
            members = [i for i in range(n) if groups[i] == label]
            shares.append(abs(sum(v[i] for i in members) / sum(v) - len(members) / n))
        return sum(shares) / 2
    if name == "ee_d":
        return sum(x * x for x in v)
    if name == "envy":
        return sum(max(m[i] * v[j] for j in range(n)) - m[i] * v[i] for i in range(n)) / n
    if name == "dominance":
        return sum(max(0.0, m[i] * sum(v) / n - m[i] * v[i]) for i in range(n)) / n
    if name == "inequity":
        if not with_merit:
            return 0.0
        return sum(abs(v[i] / sum(v) - m[i] / sum(m)) for i in range(n))
    if name in ("ee_l", "ee_r"):
        ideal = ideal_by_enumeration(m, bias)
        if name == "ee_r":
            return 2 * sum(a * b for a, b in zip(v, ideal, strict=True))
        return sum((a - b) ** 2 for a, b in zip(v, ideal, strict=True))
    if not with_merit:
        return 0.0
    x = [v[i] / m[i] for i in with_merit]
    y = [v[i] * m[i] for i in with_merit]
    if name == "gini":
        mean = sum(x) / len(x)
        return sum(abs(a - b) for a in x for b in x) / (2 * len(x) ** 2 * mean)
    if name == "nash":
        return -sum(math.log(value) for value in y) / len(y)
    if name == "gini_welfare":
        mean = sum(y) / len(y)
        gini = sum(abs(a - b) for a in y for b in y) / (2 * len(y) ** 2 * mean)
        return -mean * (1.0 - gini)
    raise AssertionError(name)


def call(name, exposure, merit, groups, mask=None):
    function = MEASURES[name].function
    return disparity_of(function, exposure, merit, groups=groups, mask=mask, position_bias=None)


@pytest.mark.parametrize("name", LATER + REPORTED)
@given(
    merit=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    n_groups=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_against_a_loop_and_padding_changes_nothing(name, merit, n_groups, seed):
    rng = np.random.default_rng(seed)
    n = len(merit)
    v = rng.uniform(0.1, 1.0, n)
    groups = rng.integers(0, n_groups, n)
    exposure = torch.from_numpy(v)
    m = torch.tensor(merit, dtype=torch.float64)
    value = call(name, exposure, m, torch.from_numpy(groups))
    expected = by_loop(name, v.tolist(), [float(x) for x in merit], groups.tolist())
    assert_close(float(value), float(expected), rtol=0, atol=1e-9)
    mask = torch.arange(n + 2) < n
    longer = [torch.cat([x, torch.full((2,), 7.0).double()]) for x in (exposure, m)]
    labels = torch.cat([torch.from_numpy(groups), torch.zeros(2, dtype=torch.int64)])
    assert_close(call(name, *longer, labels, mask), value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LATER)
def test_gradient_by_finite_differences(name):
    g = torch.Generator().manual_seed(3)
    exposure = (0.2 + torch.rand(4, 6, generator=g, dtype=torch.float64)).requires_grad_()
    merit = torch.randint(1, 4, (4, 6), generator=g).double()
    groups = torch.randint(0, 2, (4, 6), generator=g)
    assert torch.autograd.gradcheck(lambda v: call(name, v, merit, groups), exposure)


def policies_of(data, scorer):
    learned = [PlackettLuce(scorer(q.features).detach()) for q in data]
    as_matrix = [DoublyStochastic(policy.position_probs()) for policy in learned]
    mixed = [Mixture([a, b], [0.5, 0.5]) for a, b in zip(learned, as_matrix, strict=True)]
    return learned, as_matrix, mixed


def test_every_measure_is_exact_for_every_kind_of_policy():
    """One distribution as scores, as a matrix, and as a mixture of both."""
    data = synthetic(n_queries=5, n_docs=5, seed=0, minority=0.4, dtype=torch.float64)
    start = torch.Generator().manual_seed(0)
    scorer = LinearScorer(2, init=1.0, dtype=torch.float64, generator=start)
    names = [name for name in MEASURES if name not in ("err", "ndcg_at_k")]
    posterior = torch.rand(50, len(data.relevance), generator=start, dtype=torch.float64)
    expected = evaluate(scorer, data, names, posterior=posterior)
    for policies in policies_of(data, scorer):
        found = evaluate(policies, data, names, posterior=posterior)
        for name in names:
            assert_close(
                found.per_query[name], expected.per_query[name], rtol=0, atol=1e-8, equal_nan=True
            )


@pytest.mark.parametrize("method", ["exact", "sample"])
@pytest.mark.parametrize("name", LATER)
def test_training_lowers_it(name, method):
    data = synthetic(n_queries=20, seed=0, minority=0.4, dtype=torch.float64)
    values = []
    for lam in (0.0, 20.0):
        scorer = LinearScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        config = TrainConfig(
            lam=lam, disparity=name, method=method, lr=0.2, epochs=15, batch_size=10, samples=20
        )
        fit(scorer, data, config, progress=False)
        values.append(evaluate(scorer, data, (name,)).means[name])
    assert values[1] < values[0]


def test_the_ideal_policy_has_no_loss():
    merit = torch.tensor([2.0, 0.0, 2.0, 1.0], dtype=torch.float64)
    bias = position_bias(4, "geometric", dtype=torch.float64)
    ideal = ideal_exposure(merit, position_bias=bias)
    assert_close(ideal, torch.tensor(ideal_by_enumeration(merit.tolist(), bias.tolist())).double())
    loss = disparity_of(
        DISPARITIES["ee_l"], ideal, merit, groups=None, mask=None, position_bias=bias
    )
    assert loss == 0.0


def test_a_measure_of_ones_own_is_reported_and_told_the_position_bias():
    data = synthetic(n_queries=4, n_docs=5, seed=0, dtype=torch.float64)
    bias = position_bias(5, "reciprocal", dtype=torch.float64)
    told = []

    def waste(exposure, merit, groups=None, mask=None, *, position_bias=None):
        told.append(position_bias)
        return (exposure * (merit == 0)).sum(-1)

    result = evaluate(data.relevance, data, {"waste": waste}, position_bias=bias)
    assert result.per_query["waste"].shape == (4,)
    assert result.means["waste"] == result.waste
    assert all(torch.equal(seen, bias) for seen in told)
    low, high = result.interval("waste")
    assert low <= result.waste <= high


def test_a_wrong_answer_of_ones_own_is_said():
    data = synthetic(n_queries=4, n_docs=5, seed=0)
    with pytest.raises(ValueError, match=r"returned shape \(\) for exposure \(4, 5\)"):
        evaluate(data.relevance, data, {"f": lambda v, m, groups=None, mask=None: v.sum()})
    with pytest.raises(TypeError, match="returned a float; return a tensor"):
        evaluate(data.relevance, data, {"f": lambda v, m, groups=None, mask=None: 1.0})
    with pytest.raises(ValueError, match="give shares that sum to one"):
        MEASURES["awrf"].disparity(
            torch.ones(2), torch.ones(2), torch.tensor([0, 1]), target=[0.5, 0.6]
        )
    with pytest.raises(ValueError, match=r"target has shape \(1,\) for 2 groups"):
        MEASURES["awrf"].disparity(torch.ones(2), torch.ones(2), torch.tensor([0, 1]), target=[1.0])


@pytest.mark.parametrize("name", DISPARITIES)
def test_training_to_a_budget(name):
    """Half of what lambda 0 gives away to a large lambda is kept, and used up to a tenth."""
    data = synthetic(n_queries=20, seed=0).to(dtype=torch.float64)
    config = TrainConfig(
        disparity=name, method="exact", lr=0.2, epochs=8, batch_size=20, entropy=0.05
    )
    ends = []
    for lam in (0.0, 1000.0):
        scorer = LinearScorer(2, init=0.0, dtype=torch.float64)
        fit(scorer, data, dataclasses.replace(config, lam=lam), progress=False)
        ends.append(objective_on(scorer, data, config)[1])
    assert ends[1] < ends[0]
    budget = (ends[0] + ends[1]) / 2
    scorer = LinearScorer(2, init=0.0, dtype=torch.float64)
    found = fit_to_budget(scorer, data, budget, config, slack=0.1, progress=False)
    assert found.disparity <= budget
    assert evaluate(scorer, data, (name,)).means[name] == pytest.approx(found.disparity, abs=1e-5)


def test_a_budget_below_what_can_be_is_refused():
    data = synthetic(n_queries=3)
    with pytest.raises(ValueError, match="a budget of d_ind cannot be negative"):
        fit_to_budget(LinearScorer(2), data, -0.1, TrainConfig(disparity="d_ind"))


OTHER_LIBRARIES = json.loads(
    (Path(__file__).resolve().parents[1] / "fixtures" / "other_libraries.json").read_text()
)
#: What other libraries call some of the measures, of one list of two groups.
CALLED = {
    "parity": ("FairRankTune", "EXP"),
    "group_gap": ("FairRankTune", "EXPU"),
    "clicks": ("FairRankTune", "EXPRU"),
    "gini": ("LensKit", "gini"),
}
UTILITIES = {
    ("ap", None): "AP",
    ("rr", None): "RR",
    ("rr", 3): "RR@3",
    ("ndcg", None): "nDCG",
    ("ndcg_at_k", 3): "nDCG@3",
}


@pytest.mark.parametrize("case", OTHER_LIBRARIES)
def test_other_libraries_say_the_same(case):
    """tests/fixtures/other_libraries.py made the values, in an environment of its own.

    AP at a cut-off is not among them: trec_eval divides by all relevant documents there, and we by
    at most k.
    """
    n = len(case["relevance"])
    merit = torch.tensor(case["relevance"], dtype=torch.float64)
    groups = torch.tensor(case["groups"])
    attention = log2_bias(n)
    for name, (library, called) in CALLED.items():
        found = float(DISPARITIES[name](attention, merit, groups))
        assert found == pytest.approx(case[library][called], rel=1e-9, abs=1e-12)
    inequity = float(DISPARITIES["inequity"](attention, merit, groups))
    expected = case["FairRankTune"]["IAA"] / float(attention.sum())
    assert inequity == pytest.approx(expected, rel=1e-9, abs=1e-12)
    grades = torch.tensor(case["grades"], dtype=torch.float64)
    data = RankingDataset(torch.zeros(n, 1, dtype=torch.float64), grades, [0, n])
    scores = torch.arange(n, 0, -1.0)
    for (name, k), called in UTILITIES.items():
        result = evaluate(scores, data, (name,), k=k, gain="linear", deterministic=True)
        expected = case["ir_measures"][called]
        assert result.means[name] == pytest.approx(expected, rel=1e-9, abs=1e-12)
