"""D_ind and D_group against loops over the definitions, worked examples and properties."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import group_disparity_by_loop, individual_disparity_by_loop
from torch.testing import assert_close

from fairpg_lite import (
    PlackettLuce,
    group_disparity,
    group_gap,
    individual_disparity,
    position_bias,
)
from fairpg_lite.relevance import merit_of

merits = st.lists(st.integers(0, 4), min_size=1, max_size=9)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def exposure_for(n, seed):
    g = torch.Generator().manual_seed(seed)
    return 0.1 + torch.rand(n, generator=g, dtype=torch.float64)


def test_individual_by_hand():
    """Merits 2, 1, 0 and exposures 1, .6, .5: H = {(0,0), (0,1), (1,1)}; 1/2 - .6 < 0, so 0."""
    v, m = tensor([1.0, 0.6, 0.5]), tensor([2.0, 1.0, 0.0])
    assert individual_disparity(v, m) == 0.0
    # With exposures 1, .3: 1/2 - .3/1 = .2 over three pairs.
    assert_close(individual_disparity(tensor([1.0, 0.3, 0.5]), m), tensor(0.2 / 3))


def test_group_by_hand():
    """Three documents: G0 = {0, 1} with merits 3, 1, G1 = {2} with merit 1."""
    v, m, g = tensor([1.0, 0.6, 0.2]), tensor([3.0, 1.0, 1.0]), torch.tensor([0, 0, 1])
    # mean exposure .8 over mean merit 2, less .2 over 1.
    assert_close(group_disparity(v, m, g), tensor(0.8 / 2 - 0.2))
    # The lower-merit group ahead is not counted: max(0, .).
    assert group_disparity(tensor([0.6, 0.2, 1.0]), m, g) == 0.0


def test_the_ten_candidates():
    """Five at .89 above five at .88: the paper's opening example, from the definition."""
    merit = tensor([0.89] * 5 + [0.88] * 5)
    v = position_bias(10, dtype=torch.float64)
    groups = torch.tensor([0] * 5 + [1] * 5)
    expected = v[:5].mean() / 0.89 - v[5:].mean() / 0.88
    assert_close(group_disparity(v, merit, groups), expected)


@given(merits, st.integers(0, 10_000))
def test_individual_against_loop(merit, seed):
    v = exposure_for(len(merit), seed)
    assert_close(
        individual_disparity(v, tensor(merit)), individual_disparity_by_loop(v, tensor(merit))
    )


@given(merits, st.integers(0, 10_000))
def test_group_against_loop(merit, seed):
    n = len(merit)
    g = torch.Generator().manual_seed(seed)
    groups = torch.randint(0, 2, (n,), generator=g)
    m, v = tensor(merit), exposure_for(n, seed)
    got = group_disparity(v, m, groups, undefined=-1.0)
    defined = all((m[groups == label] > 0).any() for label in (0, 1))
    if defined:
        assert_close(got, group_disparity_by_loop(v, m, groups))
    else:
        assert got == -1.0


@given(merits, st.integers(0, 10_000))
def test_two_sided_is_the_absolute_difference_of_the_ratios(merit, seed):
    n = len(merit)
    groups = torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(seed))
    m, v = tensor(merit), exposure_for(n, seed)
    got = group_gap(v, m, groups, undefined=-1.0)
    if all((m[groups == label] > 0).any() for label in (0, 1)):
        a, b = (v[groups == k].mean() / m[groups == k].mean() for k in (0, 1))
        assert_close(got, (a - b).abs())
        assert got >= group_disparity(v, m, groups)
    else:
        assert got == -1.0


@given(st.integers(0, 10_000), st.integers(3, 5))
def test_many_groups_is_the_mean_over_pairs(seed, count):
    g = torch.Generator().manual_seed(seed)
    n = 12
    groups = torch.randint(0, count, (n,), generator=g)
    merit = torch.randint(0, 4, (n,), generator=g).double()
    v = exposure_for(n, seed)
    values = []
    for a in range(count):
        for b in range(a):
            pair = (groups == a) | (groups == b)
            if pair.any():  # else both groups are absent
                alone = group_disparity(v[pair], merit[pair], groups[pair], undefined=float("nan"))
                values += [] if alone.isnan() else [alone]
    expected = torch.stack(values).mean() if values else torch.zeros((), dtype=torch.float64)
    assert_close(group_disparity(v, merit, groups), expected)


@given(st.integers(0, 10_000))
def test_renaming_groups_changes_nothing(seed):
    g = torch.Generator().manual_seed(seed)
    groups = torch.randint(0, 3, (10,), generator=g)
    merit = torch.randint(0, 3, (10,), generator=g).double()
    v = exposure_for(10, seed)
    renamed = torch.tensor([70, -3, 5])[groups]
    assert_close(group_disparity(v, merit, renamed), group_disparity(v, merit, groups))


def test_a_tie_in_merit_counts_either_way():
    merit, groups = tensor([1.0, 1.0]), torch.tensor([0, 1])
    ahead = group_disparity(tensor([1.0, 0.5]), merit, groups)
    behind = group_disparity(tensor([0.5, 1.0]), merit, groups)
    assert ahead == behind == 0.5


def test_zero_merit_documents_count_in_groups_but_not_in_pairs():
    """|G| cancels, but the exposure of every member is summed."""
    v, groups = tensor([1.0, 0.5, 0.4]), torch.tensor([0, 0, 1])
    merit = tensor([1.0, 0.0, 0.5])
    # G0: mean exposure .75 over mean merit .5; G1: .4 over .5. A tie, so the difference counts.
    assert_close(group_disparity(v, merit, groups), tensor(1.5 - 0.8))
    assert_close(individual_disparity(v, merit), tensor((1.0 - 0.8) / 3))


@pytest.mark.parametrize(
    ("merit", "groups"),
    [
        ([1.0, 1.0, 1.0], [0, 0, 0]),
        ([1.0, 1.0, 0.0], [0, 0, 1]),
        ([0.0, 0.0, 0.0], [0, 0, 1]),
    ],
    ids=["one group", "group without merit", "no merit at all"],
)
def test_undefined_group_disparity_is_explicit_and_has_no_gradient(merit, groups):
    v = tensor([1.0, 0.6, 0.5]).requires_grad_()
    value = group_disparity(v, tensor(merit), torch.tensor(groups), undefined=0.25)
    assert value == 0.25
    value.backward()
    assert (v.grad == 0).all()


def test_no_merit_has_no_individual_disparity():
    v = tensor([1.0, 0.6]).requires_grad_()
    value = individual_disparity(v, tensor([0.0, 0.0]))
    value.backward()
    assert value == 0.0
    assert (v.grad == 0).all()


@given(st.integers(2, 8), st.integers(0, 10_000))
def test_the_uniform_policy_has_no_disparity(n, seed):
    """Uniform scores expose all alike, so nobody of more merit is ahead per unit of it."""
    g = torch.Generator().manual_seed(seed)
    v = PlackettLuce(torch.zeros(n, dtype=torch.float64)).exposure()
    merit = 1.0 + torch.randint(0, 4, (n,), generator=g).double()
    groups = torch.arange(n) % 2
    # The group of higher merit gets no more exposure, so less per unit of merit.
    assert group_disparity(v, merit, groups) <= 1e-9
    assert individual_disparity(v, merit) <= 1e-9
    same = torch.full((n,), 2.0, dtype=torch.float64)
    assert individual_disparity(v, same) <= 1e-9


@given(merits, st.integers(0, 1000), st.integers(1, 3))
def test_padding_is_invisible(merit, seed, extra):
    n = len(merit)
    v, m = exposure_for(n, seed), tensor(merit)
    g = torch.Generator().manual_seed(seed)
    groups = torch.randint(0, 2, (n,), generator=g)
    pad = torch.nn.functional.pad
    wide_v, wide_m = pad(v, (0, extra), value=0.7), pad(m, (0, extra), value=9.0)
    wide_g, mask = pad(groups, (0, extra), value=5), torch.arange(n + extra) < n
    assert_close(individual_disparity(wide_v, wide_m, mask=mask), individual_disparity(v, m))
    assert_close(group_disparity(wide_v, wide_m, wide_g, mask), group_disparity(v, m, groups))


def test_masked_members_are_not_paid():
    """Padding may carry the label of a real group."""
    exposure = torch.tensor([1.0, 0.5, 0.9], dtype=torch.float64)
    merit = torch.ones(3, dtype=torch.float64)
    groups = torch.tensor([0, 1, 1])
    mask = torch.tensor([True, True, False])
    assert group_disparity(exposure, merit, groups, mask) == 0.5


def test_batches_equal_single_queries():
    g = torch.Generator().manual_seed(0)
    v = torch.rand(3, 2, 6, generator=g, dtype=torch.float64)
    merit = torch.randint(0, 3, (3, 2, 6), generator=g).double()
    groups = torch.randint(0, 3, (3, 2, 6), generator=g)
    together = group_disparity(v, merit, groups)
    individual = individual_disparity(v, merit)
    assert together.shape == individual.shape == (3, 2)
    for a in range(3):
        for b in range(2):
            alone = group_disparity(v[a, b], merit[a, b], groups[a, b])
            assert_close(together[a, b], alone)
            assert_close(individual[a, b], individual_disparity(v[a, b], merit[a, b]))


def test_merit_functions():
    relevance = tensor([0.0, 4.0])
    assert merit_of(relevance).tolist() == [0.0, 4.0]
    assert merit_of(relevance, "square").tolist() == [0.0, 16.0]
    assert merit_of(relevance, "sqrt").tolist() == [0.0, 2.0]
    assert merit_of(relevance, lambda r: r + 1).tolist() == [1.0, 5.0]
