"""Gradients of utility and disparity: exact against enumeration, sampled against the formulas."""

import math

import pytest
import torch
from oracles import (
    all_rankings,
    dcg_of,
    expectation,
    group_disparity_by_loop,
    ideal_dcg,
    individual_disparity_by_loop,
    log2_bias,
    position_probs_by_subsets,
)
from torch.testing import assert_close

from fairpg_lite import (
    PlackettLuce,
    expected_ndcg,
    group_disparity,
    individual_disparity,
    ndcg,
    position_bias,
    ranking_exposure,
)

RELEVANCE = torch.tensor([3.0, 0.0, 1.0, 2.0, 2.0, 1.0, 4.0], dtype=torch.float64)
GROUPS = torch.tensor([0, 0, 1, 0, 1, 1, 0])


def problem(n, seed=0, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(n, generator=g, dtype=torch.float64)
    return scores.requires_grad_(), RELEVANCE[:n], GROUPS[:n]


@pytest.mark.parametrize("n", [3, 5, 6])
def test_gradient_of_expected_ndcg_against_enumeration(n):
    s, relevance, _ = problem(n)
    bias = log2_bias(n)
    best = ideal_dcg(relevance, bias)
    oracle = expectation(s, lambda r: dcg_of(r, relevance, bias) / best)
    (expected,) = torch.autograd.grad(oracle, s)
    utility = expected_ndcg(PlackettLuce(s).exposure(), relevance)
    (grad,) = torch.autograd.grad(utility, s)
    assert_close(utility, oracle, rtol=0, atol=1e-8)
    assert_close(grad, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("n", [4, 7, 14])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_disparities_against_subsets(n, seed):
    g = torch.Generator().manual_seed(seed)
    s, relevance, groups = problem(min(n, 7), seed)
    if n > 7:
        s = torch.randn(n, generator=g, dtype=torch.float64).requires_grad_()
        relevance = torch.randint(0, 5, (n,), generator=g).double()
        groups = torch.arange(n) % 2
    oracle_exposure = position_probs_by_subsets(s) @ log2_bias(n)
    exposure = PlackettLuce(s).exposure()
    pairs = [
        (
            individual_disparity(exposure, relevance),
            individual_disparity_by_loop(oracle_exposure, relevance),
        ),
        (
            group_disparity(exposure, relevance, groups),
            group_disparity_by_loop(oracle_exposure, relevance, groups),
        ),
    ]
    for got, oracle in pairs:
        assert_close(got, oracle, rtol=0, atol=1e-8)
        (grad,) = torch.autograd.grad(got, s, retain_graph=True)
        (expected,) = torch.autograd.grad(oracle, s, retain_graph=True)
        assert_close(grad, expected, rtol=0, atol=1e-8)


def grad_log_prob(s, rankings):
    """(S, n): the gradient of log pi of each ranking on its own."""
    rows = [torch.autograd.grad(PlackettLuce(s).log_prob(r), s)[0] for r in rankings]
    return torch.stack(rows)


def test_sampled_gradient_of_individual_disparity_is_the_papers_formula():
    """Section 3.2.2 with H_q = {M_i >= M_j > 0} and the second term v_r(d_j)/M_j, mean baseline."""
    s, merit, _ = problem(7)
    rankings = PlackettLuce(s).sample((12,), generator=torch.Generator().manual_seed(1))
    exposure = PlackettLuce(s).sampled_exposure(rankings=rankings)
    (grad,) = torch.autograd.grad(individual_disparity(exposure, merit), s)

    v_r = ranking_exposure(rankings, position_bias(7, dtype=torch.float64))
    v_pi = v_r.mean(0)
    slope = grad_log_prob(s, rankings)
    pairs = [(i, j) for i in range(7) for j in range(7) if merit[i] >= merit[j] > 0]
    expected = torch.zeros(7, dtype=torch.float64)
    for i, j in pairs:
        if v_pi[i] / merit[i] - v_pi[j] / merit[j] > 0:
            pdiff = v_r[:, i] / merit[i] - v_r[:, j] / merit[j]
            expected += ((pdiff - pdiff.mean()).unsqueeze(-1) * slope).mean(0) / len(pairs)
    assert expected.abs().max() > 1e-3
    assert_close(grad, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_sampled_gradient_of_group_disparity_is_the_papers_formula(seed):
    """Indicator times sign times E[diff_r grad log pi], without a baseline as in the text."""
    s, merit, groups = problem(7, seed, scale=2.0)
    rankings = PlackettLuce(s).sample((12,), generator=torch.Generator().manual_seed(seed))
    exposure = PlackettLuce(s).sampled_exposure(rankings=rankings, baseline=None)
    disparity = group_disparity(exposure, merit, groups)
    (grad,) = torch.autograd.grad(disparity, s)

    v_r = ranking_exposure(rankings, position_bias(7, dtype=torch.float64))
    one, zero = groups == 1, groups == 0
    diff_r = v_r[:, zero].sum(-1) / merit[zero].sum() - v_r[:, one].sum(-1) / merit[one].sum()
    sign = torch.sign(merit[zero].mean() - merit[one].mean())
    indicator = float(sign * diff_r.mean() > 0)
    slope = grad_log_prob(s, rankings)
    expected = indicator * sign * (diff_r.unsqueeze(-1) * slope).mean(0)
    assert_close(disparity.detach(), indicator * sign * diff_r.mean())
    assert_close(grad, expected, rtol=0, atol=1e-12)


def test_both_sides_of_the_indicator_are_met_above():
    active = []
    for seed in range(6):
        s, merit, groups = problem(7, seed, scale=2.0)
        rankings = PlackettLuce(s).sample((12,), generator=torch.Generator().manual_seed(seed))
        exposure = PlackettLuce(s).sampled_exposure(rankings=rankings)
        active.append(bool(group_disparity(exposure, merit, groups) > 0))
    assert set(active) == {True, False}


@pytest.mark.parametrize(("baseline", "factor"), [("loo", 1.0), (None, 1.0), ("mean", 0.75)])
def test_score_function_estimator_in_expectation(baseline, factor):
    """Mean of 4,000 gradients with S = 4: the true one, times (S-1)/S for the mean baseline.

    The tolerance is five standard errors of the mean, per coordinate, from the same gradients.
    """
    s, relevance, _ = problem(5)
    (truth,) = torch.autograd.grad(expected_ndcg(PlackettLuce(s).exposure(), relevance), s)
    repeats, samples = 4000, 4
    many = s.detach().expand(repeats, 5).clone().requires_grad_()
    policy = PlackettLuce(many)
    rankings = policy.sample((samples,), generator=torch.Generator().manual_seed(5))
    values = ndcg(rankings, relevance.expand(repeats, 5))
    policy.expect(values, rankings, baseline).sum().backward()
    mean, error = many.grad.mean(0), many.grad.std(0) / math.sqrt(repeats)
    assert ((mean - factor * truth).abs() < 5 * error).all()
    # The test can tell the factors apart: a quarter of the gradient is many standard errors.
    assert (0.25 * truth.abs() / error).max() > (10 if baseline else 2)


def test_leave_one_out_is_a_multiple_of_the_mean_baseline():
    s, relevance, _ = problem(6)
    policy = PlackettLuce(s)
    rankings = policy.sample((5,), generator=torch.Generator().manual_seed(0))
    values = ndcg(rankings, relevance)
    (mean,) = torch.autograd.grad(policy.expect(values, rankings, "mean"), s)
    (loo,) = torch.autograd.grad(policy.expect(values, rankings, "loo"), s)
    assert_close(loo, mean * 5 / 4)


@pytest.mark.parametrize("baseline", ["mean", "loo", None])
def test_expect_written_out(baseline):
    s, relevance, _ = problem(6)
    policy = PlackettLuce(s)
    rankings = policy.sample((5,), generator=torch.Generator().manual_seed(0))
    values = ndcg(rankings, relevance)
    (grad,) = torch.autograd.grad(policy.expect(values, rankings, baseline), s)
    expected = torch.zeros(6, dtype=torch.float64)
    for i in range(5):
        others = torch.cat([values[:i], values[i + 1 :]])
        b = {"mean": values.mean(), "loo": others.mean(), None: 0.0}[baseline]
        expected += (values[i] - b) * torch.autograd.grad(policy.log_prob(rankings[i]), s)[0] / 5
    assert_close(grad, expected)
    assert policy.expect(values, rankings, baseline).item() == pytest.approx(values.mean().item())


def test_sampled_exposure_converges_to_exact():
    """Fifty thousand rankings: within five standard errors for every document."""
    s, _, _ = problem(6)
    rankings = PlackettLuce(s.detach()).sample(
        (50_000,), generator=torch.Generator().manual_seed(2)
    )
    paid = ranking_exposure(rankings, position_bias(6, dtype=torch.float64))
    error = paid.std(0) / math.sqrt(len(paid))
    exact = PlackettLuce(s.detach()).exposure()
    assert ((paid.mean(0) - exact).abs() < 5 * error).all()


def test_enumerated_expectation_of_any_value_through_expect():
    """With every ranking listed and weighted, expect(None) is the exact gradient: check by hand."""
    s, relevance, _ = problem(4)
    rankings = torch.tensor(all_rankings(4))
    log_prob = PlackettLuce(s).log_prob(rankings)
    weighted = ndcg(rankings, relevance) * log_prob.detach().exp() * len(rankings)
    (grad,) = torch.autograd.grad(PlackettLuce(s).expect(weighted, rankings, None), s)
    (exact,) = torch.autograd.grad(expected_ndcg(PlackettLuce(s).exposure(), relevance), s)
    assert_close(grad, exact, rtol=0, atol=1e-8)
