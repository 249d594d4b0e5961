"""Reward-to-go and lists of k places: unbiased by enumeration, and as their formulas say."""

import itertools

import pytest
import torch
from oracles import all_rankings, expectation, log2_bias, ranking_probability
from torch.testing import assert_close

from fairpg_lite import PlackettLuce, individual_disparity, position_bias

BASELINES = ("mean", "loo", "uniform", None)
ESTIMATORS = [(True, baseline) for baseline in BASELINES]
ESTIMATORS += [(False, baseline) for baseline in ("mean", "loo", None)]
PULL = torch.tensor([0.7, -1.3, 2.0, 0.4], dtype=torch.float64)


def scores_of(n, seed=0, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, generator=g, dtype=torch.float64)


def true_gradient(scores, bias, pull):
    """The gradient of the sum of pull times exposure, by enumeration."""
    scores = scores.clone().requires_grad_()

    def value(ranking):
        return sum(pull[document] * bias[place] for place, document in enumerate(ranking))

    (grad,) = torch.autograd.grad(expectation(scores, value), scores)
    return grad


def expected_gradient(scores, bias, pull, samples, **options):
    """The mean of the estimate over all draws of ``samples`` rankings, with their probability."""
    n = len(scores)
    draws = torch.tensor(list(itertools.product(all_rankings(n), repeat=samples)))
    probability = torch.stack(
        [ranking_probability(scores, ranking) for ranking in draws.reshape(-1, n).tolist()]
    )
    probability = probability.view(-1, samples).prod(-1)
    leaf = scores.expand(len(draws), n).clone().requires_grad_()
    rankings = draws.transpose(0, 1).contiguous()
    exposure = PlackettLuce(leaf).sampled_exposure(bias, rankings=rankings, **options)
    (grads,) = torch.autograd.grad((exposure * pull).sum(), leaf)
    return (probability.unsqueeze(-1) * grads).sum(0)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("reward_to_go", "baseline"), ESTIMATORS)
def test_unbiased_over_all_pairs_of_rankings(baseline, reward_to_go, k):
    """The mean baseline shrinks by (S-1)/S, as in the paper; the others are unbiased."""
    scores = scores_of(3)
    bias = position_bias(3, k=k, dtype=torch.float64)
    pull = PULL[:3]
    found = expected_gradient(
        scores, bias, pull, samples=2, baseline=baseline, reward_to_go=reward_to_go
    )
    factor = 0.5 if baseline == "mean" else 1.0
    assert_close(found, factor * true_gradient(scores, bias, pull), rtol=0, atol=1e-12)


@pytest.mark.parametrize("baseline", ["uniform", None])
@pytest.mark.parametrize("bias", [log2_bias(4), torch.tensor([1.0, 0.0, 0.4, 0.0]).double()])
def test_one_ranking_is_enough_where_the_baseline_needs_no_others(baseline, bias):
    scores = scores_of(4, scale=2.0)
    found = expected_gradient(scores, bias, PULL, 1, baseline=baseline, reward_to_go=True)
    assert_close(found, true_gradient(scores, bias, PULL), rtol=0, atol=1e-12)


def written_out(scores, lists, bias, pull, baseline, mask=None):
    """The gradient by loops: each draw of each list, its softmax, and what follows it."""
    documents = [i for i in range(len(scores)) if mask is None or mask[i]]
    samples = len(lists)

    def to_go(ranking, k):
        return sum(pull[ranking[j]] * bias[j] for j in range(k, len(ranking)))

    total = torch.zeros_like(scores)
    for s, ranking in enumerate(lists):
        for k, document in enumerate(ranking):
            left = [d for d in documents if d not in ranking[:k]]
            log_p = scores[document] - torch.logsumexp(scores[left], 0)
            (slope,) = torch.autograd.grad(log_p, scores)
            others = [to_go(lists[i], k) for i in range(samples) if i != s]
            earned = to_go(ranking, k)
            places = [bias[j] for j in range(k, min(len(bias), len(documents)))]
            b = {
                "mean": lambda earned=earned, others=others: (earned + sum(others)) / samples,
                "loo": lambda others=others: sum(others) / (samples - 1),
                "uniform": lambda left=left, places=places: (
                    sum(pull[d] for d in left) / len(left) * sum(places)
                ),
                None: lambda: 0.0,
            }[baseline]()
            total += (earned - b) * slope / samples
    return total


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("k", [2, 4, 6])
@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_written_out(baseline, k, scale):
    scores = scores_of(6, scale=scale).requires_grad_()
    bias = position_bias(6, "reciprocal", k=k, dtype=torch.float64)
    pull = scores_of(6, seed=3)
    lists = PlackettLuce(scores).sample((5,), torch.Generator().manual_seed(1))
    exposure = PlackettLuce(scores).sampled_exposure(
        bias, rankings=lists, baseline=baseline, reward_to_go=True
    )
    (grad,) = torch.autograd.grad((exposure * pull).sum(), scores)
    shown = [ranking[:k] for ranking in lists.tolist()]
    assert_close(grad, written_out(scores, shown, bias, pull, baseline), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reward_to_go", [True, False])
@pytest.mark.parametrize("k", [2, 5, 7])
def test_padding_changes_nothing(k, reward_to_go):
    """Five documents, alone and among two of padding, which a mask hides."""
    baseline = "uniform" if reward_to_go else "loo"
    alone = scores_of(5).requires_grad_()
    lists = PlackettLuce(alone).sample((4,), torch.Generator().manual_seed(2))
    bias = position_bias(7, k=k, dtype=torch.float64)
    merit = torch.tensor([1.0, 2.0, 0.0, 3.0, 1.0], dtype=torch.float64)
    exposure = PlackettLuce(alone).sampled_exposure(
        bias, rankings=lists, baseline=baseline, reward_to_go=reward_to_go
    )
    (grad,) = torch.autograd.grad(individual_disparity(exposure, merit), alone)
    place = torch.tensor([6, 0, 3, 4, 1])
    padded = torch.full((7,), 9.0, dtype=torch.float64).scatter(0, place, alone.detach())
    padded.requires_grad_()
    mask = torch.zeros(7, dtype=torch.bool).scatter(0, place, True)
    behind = torch.tensor([2, 5]).expand(4, 2)
    exposure2 = PlackettLuce(padded, mask).sampled_exposure(
        bias,
        rankings=torch.cat([place[lists], behind], -1),
        baseline=baseline,
        reward_to_go=reward_to_go,
    )
    merit2 = torch.zeros(7, dtype=torch.float64).scatter(0, place, merit)
    (grad2,) = torch.autograd.grad(individual_disparity(exposure2, merit2, mask=mask), padded)
    assert_close(exposure2[place], exposure)
    assert_close(grad2[place], grad)
    assert (grad2[~mask] == 0).all()


def test_lists_of_k_are_drawn_alike_and_pay_alike():
    """Drawn here, given whole, or given as the first k places: one estimate."""
    scores = scores_of(9).expand(2, 9).clone().requires_grad_()
    bias = position_bias(9, k=3, dtype=torch.float64)
    policy = PlackettLuce(scores)
    whole = policy.sample((6,), torch.Generator().manual_seed(4))
    ends = []
    for rankings in (None, whole, whole[..., :3]):
        exposure = policy.sampled_exposure(
            bias, samples=6, generator=torch.Generator().manual_seed(4), rankings=rankings
        )
        (grad,) = torch.autograd.grad(exposure.square().sum(), scores)
        ends.append((exposure.detach(), grad))
    for exposure, grad in ends[1:]:
        assert_close(exposure, ends[0][0])
        assert_close(grad, ends[0][1])


def test_a_cut_off_list_has_the_slope_of_its_draws_by_differences():
    """With the rewards held fixed, the estimate is the slope of weighted log-probabilities."""
    scores = scores_of(6)
    bias = position_bias(6, k=3, dtype=torch.float64)
    lists = PlackettLuce(scores).sample((4,), torch.Generator().manual_seed(5), k=3)
    leaf = scores.clone().requires_grad_()
    pull = scores_of(6, seed=7)
    exposure = PlackettLuce(leaf).sampled_exposure(bias, rankings=lists, baseline="loo")
    (grad,) = torch.autograd.grad((exposure * pull).sum(), leaf)
    rewards = (pull[lists] * bias[:3]).sum(-1)
    weights = (rewards - rewards.mean()) / 3

    def weighted(x):
        return (weights * PlackettLuce(x).log_prob(lists, k=3)).sum()

    step = 1e-6
    unit = torch.eye(6, dtype=torch.float64)
    slopes = [
        (weighted(scores + step * e) - weighted(scores - step * e)) / (2 * step) for e in unit
    ]
    assert_close(grad, torch.stack(slopes), rtol=0, atol=1e-8)


def test_second_derivatives_are_refused():
    scores = scores_of(4).requires_grad_()
    for reward_to_go in (True, False):
        exposure = PlackettLuce(scores).sampled_exposure(
            position_bias(4, k=2, dtype=torch.float64), samples=3, reward_to_go=reward_to_go
        )
        with pytest.raises(RuntimeError, match="differentiated once"):
            torch.autograd.grad(exposure[0], scores, create_graph=True)


def test_less_variance_on_a_long_list():
    """Each step helps: reward-to-go, and a baseline that looks at what is left."""
    g = torch.Generator().manual_seed(0)
    scores = scores_of(50)
    relevance = torch.randint(0, 5, (50,), generator=g).double()
    many = scores.expand(200, 50).clone().requires_grad_()
    errors = []
    exact = scores.clone().requires_grad_()
    (truth,) = torch.autograd.grad((PlackettLuce(exact).exposure() * relevance).sum(), exact)
    for reward_to_go, baseline in ((False, "loo"), (True, "loo"), (True, "uniform")):
        exposure = PlackettLuce(many).sampled_exposure(
            samples=4, generator=g, baseline=baseline, reward_to_go=reward_to_go
        )
        (grads,) = torch.autograd.grad((exposure * relevance).sum(), many)
        errors.append((grads - truth).square().sum(-1).mean().sqrt())
    assert errors[0] > 1.2 * errors[1] > 1.44 * errors[2]
