"""Sampling, log-probability, mode, entropy of Plackett-Luce policies."""

import itertools
import math

import pytest
import torch
from oracles import all_rankings, position_probs_by_subsets, ranking_probability
from torch.testing import assert_close

from fairpg_lite import PlackettLuce
from fairpg_lite.disparity import group_disparity


def scores(n, scale=1.0, seed=0):
    g = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 4, 7])
@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0])
def test_log_prob_equals_the_product_and_sums_to_one(n, scale):
    s = scores(n, scale)
    rankings = torch.tensor(all_rankings(n))
    log_prob = PlackettLuce(s).log_prob(rankings)
    assert_close(log_prob.exp().sum(), torch.ones((), dtype=torch.float64))
    for ranking, got in list(zip(all_rankings(n), log_prob, strict=True))[::37]:
        assert_close(got.exp(), ranking_probability(s, ranking), rtol=1e-12, atol=1e-300)


def test_log_prob_gradient_by_hand():
    """d log pi / d s_i = 1 - sum over the draws that i took part in of its softmax share."""
    s = scores(5).requires_grad_()
    ranking = torch.tensor([3, 0, 4, 1, 2])
    PlackettLuce(s).log_prob(ranking).backward()
    expected = torch.ones(5, dtype=torch.float64)
    left = ranking.tolist()
    while left:
        share = s.detach()[left].softmax(-1)
        for document, p in zip(left, share, strict=True):
            expected[document] -= p
        left.pop(0)
    assert_close(s.grad, expected)


def test_log_prob_survives_extreme_scores():
    s = torch.tensor([1e4, -1e4, 0.0], dtype=torch.float64).requires_grad_()
    log_prob = PlackettLuce(s).log_prob(torch.tensor([[0, 2, 1], [1, 2, 0]]))
    assert_close(log_prob.detach(), torch.tensor([0.0, -3e4], dtype=torch.float64))
    log_prob.sum().backward()
    assert torch.isfinite(s.grad).all()


@pytest.mark.parametrize("seed", range(3))
def test_sampler_has_the_right_distribution(seed):
    """Counts of all 24 rankings; each must lie within five standard errors of its probability."""
    s = scores(4, 1.0, seed)
    draws = 40_000
    g = torch.Generator().manual_seed(seed)
    rankings = PlackettLuce(s).sample((draws,), generator=g)
    code = (rankings * torch.tensor([64, 16, 4, 1])).sum(-1)
    for ranking in all_rankings(4):
        p = float(ranking_probability(s, ranking))
        wanted = sum(d * 4 ** (3 - i) for i, d in enumerate(ranking))
        share = float((code == wanted).double().mean())
        assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / draws)


def test_sampler_under_ties_at_extreme_scores():
    """Two documents tied at -1e4 below one at 1e4: first and fair, in float32 too."""
    s = torch.tensor([-1e4, 1e4, -1e4])
    rankings = PlackettLuce(s).sample((10_000,), generator=torch.Generator().manual_seed(0))
    assert (rankings[:, 0] == 1).all()
    share = float((rankings[:, 1] == 0).double().mean())
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(10_000)


def test_same_seed_same_rankings():
    policy = PlackettLuce(scores(10))
    first = policy.sample((5, 2), generator=torch.Generator().manual_seed(7))
    again = policy.sample((5, 2), generator=torch.Generator().manual_seed(7))
    other = policy.sample((5, 2), generator=torch.Generator().manual_seed(8))
    assert first.shape == (5, 2, 10)
    assert (first == again).all()
    assert (first != other).any()


def test_mode_is_the_most_probable_ranking():
    s = scores(5)
    rankings = torch.tensor(all_rankings(5))
    best = rankings[PlackettLuce(s).log_prob(rankings).argmax()]
    assert PlackettLuce(s).mode.tolist() == best.tolist()
    assert PlackettLuce(torch.zeros(4)).mode.tolist() == [0, 1, 2, 3]


def test_entropy_of_the_softmax():
    s = scores(6, 2.0)
    p = s.softmax(-1)
    assert_close(PlackettLuce(s).softmax_entropy(), -(p * p.log()).sum())
    uniform = PlackettLuce(torch.zeros(8, dtype=torch.float64)).softmax_entropy()
    assert_close(uniform, torch.tensor(math.log(8), dtype=torch.float64))
    extreme = torch.tensor([1e4, -1e4], dtype=torch.float64).requires_grad_()
    entropy = PlackettLuce(extreme).softmax_entropy()
    entropy.backward()
    assert entropy == 0.0
    assert torch.isfinite(extreme.grad).all()


def test_one_document():
    policy = PlackettLuce(torch.tensor([3.0], dtype=torch.float64))
    assert policy.sample((2,)).tolist() == [[0], [0]]
    assert policy.log_prob(torch.tensor([0])) == 0.0
    assert policy.mode.tolist() == [0]
    assert policy.softmax_entropy() == 0.0
    one = torch.ones(1, dtype=torch.float64)
    assert_close(policy.exposure(), one, rtol=0, atol=1e-9)
    assert_close(policy.position_probs(), one.unsqueeze(0), rtol=0, atol=1e-9)


def test_padding_ranks_last_and_is_invisible():
    s = scores(4)
    wide = torch.full((6,), float("nan"), dtype=torch.float64)
    wide[[0, 2, 3, 5]] = s
    mask = ~wide.isnan()
    padded = wide.nan_to_num(3.0).requires_grad_()
    policy, plain = PlackettLuce(padded, mask), PlackettLuce(s)
    rankings = policy.sample((50,), generator=torch.Generator().manual_seed(0))
    assert mask[rankings[:, :4]].all()
    assert policy.mode[4:].tolist() == [1, 4]
    narrow = {0: 0, 2: 1, 3: 2, 5: 3}
    moved = torch.tensor([[narrow[d] for d in r[:4].tolist()] for r in rankings])
    assert_close(policy.log_prob(rankings), plain.log_prob(moved))
    assert_close(policy.softmax_entropy(), plain.softmax_entropy())
    assert_close(policy.exposure()[mask], plain.exposure(), rtol=0, atol=1e-10)
    assert (policy.exposure()[~mask] == 0).all()
    probs = policy.position_probs()
    assert_close(probs[mask][:, :4], position_probs_by_subsets(s), rtol=0, atol=1e-8)
    assert probs[~mask].abs().sum() == 0
    sampled = policy.sampled_exposure(rankings=rankings)
    assert_close(sampled[mask], plain.sampled_exposure(rankings=moved))
    (sampled.sum() + policy.exposure()[0] + policy.softmax_entropy()).backward()
    assert (padded.grad[~mask] == 0).all()
    assert torch.isfinite(padded.grad).all()


def test_shapes_follow_torch_distributions():
    policy = PlackettLuce(torch.zeros(3, 2, 5))
    rankings = policy.sample((7,))
    assert rankings.shape == (7, 3, 2, 5)
    assert policy.log_prob(rankings).shape == (7, 3, 2)
    assert policy.log_prob(policy.mode).shape == (3, 2)
    assert policy.position_probs().shape == (3, 2, 5, 5)
    assert policy.expect(torch.zeros(7, 3, 2), rankings).shape == (3, 2)
    assert policy.expect(torch.zeros(7, 3, 2, 5), rankings).shape == (3, 2, 5)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_log_prob_and_its_gradient_in_both_number_ranges(scale):
    """Plain exponentials for ordinary scores, logarithms for wide ones: the same function."""
    s = scores(6, scale).requires_grad_()
    rankings = PlackettLuce(s.detach() / scale).sample(
        (9,), generator=torch.Generator().manual_seed(0)
    )
    log_prob = PlackettLuce(s).log_prob(rankings)
    weights = scores(9, seed=4)
    (grad,) = torch.autograd.grad(log_prob @ weights, s)
    placed = s.expand(rankings.shape).gather(-1, rankings)
    left = torch.stack([placed[:, k:].logsumexp(-1) for k in range(6)], -1)
    expected = (placed - left).sum(-1)
    assert_close(log_prob, expected)
    assert_close(grad, torch.autograd.grad(expected @ weights, s)[0])


@pytest.mark.parametrize("shape", [(0,), (2, 0), (10.0,), (-1,)])
def test_there_is_no_mean_over_no_rankings(shape):
    policy = PlackettLuce(scores(3))
    with pytest.raises(ValueError, match="give whole numbers from 1"):
        policy.sample(shape)
    with pytest.raises(ValueError, match="give whole numbers from 1"):
        policy.sampled_exposure(samples=shape[-1], baseline=None)
    none = torch.zeros(0, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match="0 samples"):
        policy.sampled_exposure(rankings=none, baseline=None)


def test_a_batch_of_no_queries_has_no_answers():
    """Nothing in, nothing out, and no raw error about a reduction."""
    scores = torch.zeros(0, 4, requires_grad=True)
    policy, rankings = PlackettLuce(scores), torch.zeros(0, 4, dtype=torch.long)
    assert policy.exposure().shape == (0, 4)
    assert policy.position_probs().shape == (0, 4, 4)
    assert policy.log_prob(rankings).shape == (0,)
    assert group_disparity(policy.exposure(), torch.zeros(0, 4), rankings).shape == (0,)
    policy.exposure().sum().backward()
    assert scores.grad.shape == (0, 4)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_the_first_places_against_enumeration(n):
    """The probability of k places is that of all rankings that begin with them."""
    s = scores(n)
    policy = PlackettLuce(s)
    for k in range(1, n + 1):
        for places in itertools.permutations(range(n), k):
            total = sum(ranking_probability(s, r) for r in all_rankings(n) if r[:k] == places)
            found = policy.log_prob(torch.tensor(places), k=k).exp()
            assert_close(found, total, rtol=0, atol=1e-12)


def test_the_first_places_have_a_gradient_and_ignore_padding():
    s = scores(6).requires_grad_()
    places = PlackettLuce(s).sample((4,), torch.Generator().manual_seed(0), k=3)
    assert torch.autograd.gradcheck(lambda x: PlackettLuce(x).log_prob(places, k=3), s)
    wide = torch.nn.functional.pad(s, (0, 2), value=50.0)
    mask = torch.arange(8) < 6
    assert_close(
        PlackettLuce(wide, mask).log_prob(places, k=3), PlackettLuce(s).log_prob(places, k=3)
    )
    (grad,) = torch.autograd.grad(PlackettLuce(wide, mask).log_prob(places, k=3).sum(), s)
    assert torch.isfinite(grad).all()


def test_the_first_places_are_those_of_the_whole_draw():
    policy = PlackettLuce(torch.stack([scores(9), scores(9, seed=1)]))
    whole = policy.sample((20,), torch.Generator().manual_seed(0))
    first = policy.sample((20,), torch.Generator().manual_seed(0), k=4)
    assert first.shape == (20, 2, 4)
    assert (first == whole[..., :4]).all()
    assert_close(policy.log_prob(whole, k=9), policy.log_prob(whole))


def test_a_short_query_shows_all_it_has():
    policy = PlackettLuce(scores(4), torch.tensor([True, False, True, False]))
    places = policy.sample((50,), torch.Generator().manual_seed(0), k=3)
    assert set(places[:, :2].flatten().tolist()) == {0, 2}
    assert_close(policy.log_prob(places, k=3), policy.log_prob(places, k=2))
