"""The two ends of a disparity from drawn lists hold the exact one between them."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpg_lite import (
    PlackettLuce,
    audit,
    group_disparity,
    group_gap,
    individual_disparity,
    position_bias,
    ranking_exposure,
    synthetic,
)
from fairpg_lite.auditing import ShownLists, lists_for_width, lower_end
from fairpg_lite.expected_exposure import expected_exposure_loss
from fairpg_lite.parity import exposure_parity

CONVEX = {
    "d_group": group_disparity,
    "group_gap": group_gap,
    "parity": exposure_parity,
    "d_ind": individual_disparity,
    "ee_l": expected_exposure_loss,
}


def enumerated(policy, merit, groups, function):
    """E[upper] and E[lower] over all pairs of lists that two draws can be, and the exact value."""
    n = len(merit)
    rankings = torch.tensor(list(permutations(range(n))))
    chances = policy.log_prob(rankings).exp()
    paid = ranking_exposure(rankings, position_bias(n, dtype=torch.float64))
    upper = lower = 0.0
    for i, j in product(range(len(rankings)), repeat=2):
        chance = float(chances[i] * chances[j])
        two = paid[[i, j]]
        upper += chance * float(function(two.mean(0), merit, groups))
        lower += chance * float(lower_end(function, two, merit, groups, splits=1))
    return upper, lower, float(function(policy.exposure(), merit, groups))


@pytest.mark.parametrize("name", CONVEX)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_expectations_by_enumeration(name, seed):
    g = torch.Generator().manual_seed(seed)
    policy = PlackettLuce(torch.randn(3, generator=g, dtype=torch.float64))
    merit = torch.randint(1, 4, (3,), generator=g).double()
    groups = torch.tensor([0, 1, int(torch.randint(2, (1,), generator=g))])
    upper, lower, exact = enumerated(policy, merit, groups, CONVEX[name])
    assert lower <= exact + 1e-9
    assert exact <= upper + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_tangent_of_d_group_is_sign_of_one_half_and_size_of_the_other(seed):
    g = torch.Generator().manual_seed(seed)
    merit = torch.tensor([2.0, 1.0, 1.5, 0.5], dtype=torch.float64)
    groups = torch.tensor([0, 0, 1, 1])
    paid = torch.rand(7, 4, generator=g, dtype=torch.float64)
    # As `lower_end` divides them.
    order = torch.randperm(7, generator=torch.Generator().manual_seed(0))
    # The two halves shall disagree about who is ahead.
    paid[order[:3], :2] += 1.0
    paid[order[3:], 2:] += 1.0
    gaps = paid[:, :2].sum(-1) / merit[:2].sum() - paid[:, 2:].sum(-1) / merit[2:].sum()
    a, b = gaps[order[:3]].mean(), gaps[order[3:]].mean()
    assert a > 0 > b
    by_hand = ((a > 0) * b + (b > 0) * a) / 2
    found = lower_end(group_disparity, paid, merit, groups, splits=1)
    assert found == pytest.approx(float(by_hand))


def drawn_ends(policy, query, name, lists, g):
    """Upper and lower end from some drawn lists, by the functions that `audit` calls."""
    shown = ShownLists(policy.sample((lists,), g).tolist(), len(query.relevance))
    function = CONVEX[name]
    upper = function(shown.exposure(), query.relevance, query.groups)
    lower = lower_end(function, shown.exposure_by_list(), query.relevance, query.groups)
    return float(upper), float(lower)


@pytest.mark.parametrize("name", CONVEX)
def test_four_lists_hold_the_exact_disparity_between_their_ends(name):
    """A mean over 150 logs of four lists, of a policy whose exposure is known exactly."""
    data = synthetic(n_queries=3, seed=3, dtype=torch.float64)
    g = torch.Generator().manual_seed(1)
    for query in data:
        policy = PlackettLuce(0.3 * query.features.sum(-1))
        truth = float(CONVEX[name](policy.exposure(), query.relevance, query.groups))
        ends = np.array([drawn_ends(policy, query, name, 4, g) for _ in range(150)])
        upper, lower = ends.mean(0)
        noise = ends.std(0) / len(ends) ** 0.5
        assert lower <= truth + 3 * noise[1]
        assert truth <= upper + 3 * noise[0]
        assert lower < upper


def test_the_report_has_the_means_of_both_ends():
    rng = np.random.default_rng(0)
    rows = []
    ends = {"upper": [], "lower": []}
    merit = torch.tensor([1.0, 2.0, 1.0, 3.0], dtype=torch.float64)
    groups = torch.tensor([0, 0, 1, 1])
    for query in range(6):
        lists = [rng.permutation(4).tolist() for _ in range(4)]
        rows += [(query, s, d, r) for s, x in enumerate(lists) for r, d in enumerate(x, 1)]
        # Documents are numbered in the order in which the lists show them.
        seen = list(dict.fromkeys(d for shown in lists for d in shown))
        renamed = [[seen.index(d) for d in shown] for shown in lists]
        shown = ShownLists(renamed, 4)
        how = (merit[seen], groups[seen])
        ends["upper"].append(float(group_disparity(shown.exposure(), *how)))
        ends["lower"].append(float(lower_end(group_disparity, shown.exposure_by_list(), *how)))
    frame = pd.DataFrame(rows, columns=["query", "draw", "document", "rank"])
    grades = {q: dict(enumerate(merit.tolist())) for q in range(6)}
    found = audit(frame, grades, dict(enumerate("xxyy"))).measures["d_group"]
    assert found.value == pytest.approx(np.mean(ends["upper"]))
    assert found.lower_end == pytest.approx(np.mean(ends["lower"]))


def test_more_lists_bring_the_ends_together_as_fast_as_is_said():
    """For one query with about normal means: as many lists as are said are enough."""
    g = torch.Generator().manual_seed(2)
    merit = torch.ones(2, dtype=torch.float64)
    groups = torch.tensor([0, 1])

    def width(lists, gap):
        total = 0.0
        for _ in range(150):
            first = gap + torch.randn(lists, generator=g, dtype=torch.float64)
            paid = torch.stack([first, torch.zeros_like(first)], dim=-1)
            upper = group_gap(paid.mean(0), merit, groups)
            total += float(upper - lower_end(group_gap, paid, merit, groups, splits=1))
        return total / 150

    for gap in (0.0, 0.3):
        few = width(10, gap)
        enough = lists_for_width(10, few, few / 2)
        assert enough == 40
        assert width(enough, gap) < 0.6 * few
    assert lists_for_width(10, 0.5, 1.0) == 10
    assert lists_for_width(10, 0.5, 0.0) is None


def test_one_list_has_no_halves():
    with pytest.raises(ValueError, match="two at least"):
        lower_end(group_disparity, torch.ones(1, 2), torch.ones(2), torch.tensor([0, 1]))


def test_a_query_with_one_list_among_others_with_more_has_a_lower_end_of_zero():
    rows = [("q", 0, "a", 1), ("q", 0, "b", 2), ("r", 0, "a", 1), ("r", 1, "a", 1)]
    frame = pd.DataFrame(rows, columns=["query", "draw", "document", "rank"])
    grades = {"q": {"a": 1, "b": 1}, "r": {"a": 1, "b": 1}}
    found = audit(frame, grades, {"a": "x", "b": "y"})
    assert found.per_query["q"]["d_group_lower_end"] == 0.0
    assert found.per_query["r"]["d_group_lower_end"] == pytest.approx(1.0)


def test_the_same_list_again_and_again_has_no_width():
    rows = [
        (q, draw, d, rank) for q in "qr" for draw in range(6) for rank, d in ((1, "a"), (2, "b"))
    ]
    frame = pd.DataFrame(rows, columns=["query", "draw", "document", "rank"])
    grades = {q: {"a": 2, "b": 1} for q in "qr"}
    found = audit(frame, grades, {"a": "x", "b": "y"})
    for measure in found.measures.values():
        if measure.lower_end is not None:
            assert measure.lower_end == pytest.approx(measure.value)
            assert measure.lists_for_narrow in (6, None)
