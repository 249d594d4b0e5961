"""What must hold for every Plackett-Luce policy, on random inputs."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import log2_bias
from torch.testing import assert_close

from fairpg_lite import PlackettLuce, group_disparity, individual_disparity

score = st.floats(-30, 30, allow_nan=False, width=32)
score_lists = st.lists(score, min_size=1, max_size=10)
CLOSE = {"rtol": 0.0, "atol": 1e-8}


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


@given(score_lists, st.floats(-1e3, 1e3))
def test_a_shift_of_all_scores_changes_nothing(scores, shift):
    s = tensor(scores)
    here, there = PlackettLuce(s), PlackettLuce(s + shift)
    assert_close(here.exposure(), there.exposure(), **CLOSE)
    assert_close(here.softmax_entropy(), there.softmax_entropy(), **CLOSE)
    ranking = torch.arange(len(scores)).flip(0)
    assert_close(here.log_prob(ranking), there.log_prob(ranking), rtol=0, atol=1e-7)


@given(score_lists, st.randoms(use_true_random=False))
def test_permuting_the_documents_permutes_the_answers(scores, random):
    s = tensor(scores)
    order = list(range(len(scores)))
    random.shuffle(order)
    order = torch.tensor(order)
    here, there = PlackettLuce(s), PlackettLuce(s[order])
    assert_close(here.exposure()[order], there.exposure(), **CLOSE)
    assert_close(here.position_probs()[order], there.position_probs(), **CLOSE)


@given(score_lists, st.integers(1, 3), st.floats(-1e4, 1e4))
def test_padding_is_invisible(scores, extra, junk):
    s = tensor(scores)
    wide = torch.nn.functional.pad(s, (0, extra), value=junk)
    mask = torch.arange(len(wide)) < len(s)
    here, there = PlackettLuce(s), PlackettLuce(wide, mask)
    assert_close(there.exposure()[mask], here.exposure(), **CLOSE)
    assert_close(there.softmax_entropy(), here.softmax_entropy(), **CLOSE)


@given(score_lists)
def test_position_probs_are_doubly_stochastic(scores):
    probs = PlackettLuce(tensor(scores)).position_probs()
    ones = torch.ones(len(scores), dtype=torch.float64)
    assert_close(probs.sum(-1), ones, **CLOSE)
    assert_close(probs.sum(-2), ones, **CLOSE)
    assert (probs > -1e-9).all()


@given(score_lists)
def test_all_exposure_is_handed_out(scores):
    exposure = PlackettLuce(tensor(scores)).exposure()
    assert_close(exposure.sum(), log2_bias(len(scores)).sum(), **CLOSE)


@given(score_lists)
def test_a_higher_score_never_has_less_exposure(scores):
    exposure = PlackettLuce(tensor(scores)).exposure()
    for i, a in enumerate(scores):
        for j, b in enumerate(scores):
            if a > b:
                assert exposure[i] >= exposure[j] - 1e-9


@given(score_lists, st.integers(0, 9), st.floats(0.1, 3))
def test_raising_a_score_raises_its_exposure(scores, index, rise):
    i = index % len(scores)
    s = tensor(scores)
    lifted = s.clone()
    lifted[i] += rise
    assert PlackettLuce(lifted).exposure()[i] >= PlackettLuce(s).exposure()[i] - 1e-9


@given(score, st.integers(2, 8), st.integers(0, 1000))
def test_equal_scores_are_fair_to_groups_and_equal_merits(value, n, seed):
    g = torch.Generator().manual_seed(seed)
    exposure = PlackettLuce(torch.full((n,), value, dtype=torch.float64)).exposure()
    groups = torch.randint(0, 2, (n,), generator=g)
    merit = 1.0 + torch.randint(0, 3, (n,), generator=g).double()
    assert group_disparity(exposure, merit, groups) < 1e-9
    assert individual_disparity(exposure, torch.ones_like(merit)) < 1e-9
