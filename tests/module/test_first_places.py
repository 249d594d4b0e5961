"""Exact exposure of the first k places, against subsets, the circle and drawn rankings."""

import math

import numpy as np
import pytest
import torch
from oracles import position_probs_by_subsets
from torch.testing import assert_close

from fairpg_lite import PlackettLuce, err, position_bias
from fairpg_lite.exact import exact_err
from fairpg_lite.first_places import correlation, first_places_exposure, product
from fairpg_lite.nodes import enough_arrivals

FINE = {"rtol": 0, "atol": 2e-10}


def scores_of(n, seed=0, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 7, 12])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_against_subsets(n, k, scale):
    """With its gradient, and for n from below k on."""
    s = scores_of(n, scale=scale).requires_grad_()
    bias = torch.rand(k, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
    found = first_places_exposure(s, bias, None, 1e-10)
    oracle = position_probs_by_subsets(s)[:, :k] @ bias[:n]
    assert_close(found, oracle, **FINE)
    pull = scores_of(n, seed=1)
    (grad,) = torch.autograd.grad(found @ pull, s)
    (expected,) = torch.autograd.grad(oracle @ pull, s)
    assert_close(grad, expected, rtol=0, atol=2e-9)


@pytest.mark.parametrize(("n", "k"), [(40, 1), (40, 12), (300, 10)])
def test_against_the_circle(n, k):
    """The position probabilities are another way to the same numbers."""
    s = scores_of(n)
    policy = PlackettLuce(s)
    bias = position_bias(n, k=k, dtype=torch.float64)
    assert_close(policy.exposure(bias), policy.position_probs() @ bias, **FINE)
    assert_close(policy.exposure(bias).sum(), bias.sum(), rtol=1e-9, atol=0)


def test_the_gradient_by_differences_in_a_batch_with_padding():
    s = scores_of(2 * 16).view(2, 16).requires_grad_()
    mask = torch.ones(2, 16, dtype=torch.bool)
    mask[1, 3:] = False
    bias = position_bias(16, k=3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: PlackettLuce(x, mask).exposure(bias), s)
    alone = PlackettLuce(s[1, :3]).exposure(bias[:3])
    assert_close(PlackettLuce(s, mask).exposure(bias)[1, :3], alone, **FINE)
    first = PlackettLuce(s[0]).exposure(bias)
    assert_close(PlackettLuce(s, mask).exposure(bias)[0], first, rtol=0, atol=1e-14)


def test_pieces_change_nothing(monkeypatch):
    s = scores_of(2 * 35).view(2, 35).requires_grad_()
    bias = position_bias(35, k=4, dtype=torch.float64)
    ends = []
    for cells in (1_000_000, 100):
        monkeypatch.setattr("fairpg_lite._memory._CHUNK", cells)
        for small in (0, 10**9):
            monkeypatch.setattr("fairpg_lite.first_places._SMALL", small)
            exposure = PlackettLuce(s).exposure(bias)
            (grad,) = torch.autograd.grad(exposure[0, 5] - exposure[1, 2], s)
            ends.append((exposure.detach(), grad))
    for exposure, grad in ends[1:]:
        assert_close(exposure, ends[0][0], rtol=0, atol=1e-14)
        assert_close(grad, ends[0][1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("scale", [100.0, 1e4])
def test_scores_far_apart(scale):
    """The list is certain: the first k get what the first k positions pay."""
    s = torch.linspace(scale, -scale, 200, dtype=torch.float64)[torch.randperm(200)]
    bias = position_bias(200, k=5, dtype=torch.float64)
    found = PlackettLuce(s * 200).exposure(bias)
    expected = torch.zeros(200, dtype=torch.float64).scatter(0, s.argsort(descending=True), bias)
    assert_close(found, expected, rtol=0, atol=1e-9)


def test_no_query_has_no_answer():
    scores = torch.zeros(0, 40, dtype=torch.float64).requires_grad_()
    exposure = PlackettLuce(scores).exposure(position_bias(40, k=3, dtype=torch.float64))
    assert exposure.shape == (0, 40)
    exposure.sum().backward()


def test_float32_is_good_to_single_precision():
    s = scores_of(100)
    bias = position_bias(100, k=10)
    found = PlackettLuce(s.float()).exposure(bias)
    assert found.dtype == torch.float32
    assert_close(found.double(), PlackettLuce(s).exposure(bias), rtol=0, atol=2e-5)


def test_err_at_k_is_the_mean_over_rankings():
    """Within five standard errors of thirty thousand draws, and exactly what n = 3 k has."""
    s = scores_of(40)
    relevance = torch.randint(0, 5, (40,), generator=torch.Generator().manual_seed(0)).double()
    satisfied = (2**relevance - 1) / 16
    drawn = PlackettLuce(s).sample((30_000,), torch.Generator().manual_seed(1))
    values = err(drawn, relevance, k=5)
    error = values.std() / math.sqrt(len(values))
    assert abs(exact_err(s, satisfied, k=5) - values.mean()) < 5 * error
    longer = torch.cat([s[:14], torch.full((6,), -200.0, dtype=torch.float64)])
    shown = torch.cat([satisfied[:14], torch.zeros(6, dtype=torch.float64)])
    assert_close(exact_err(longer, shown, k=5), exact_err(s[:14], satisfied[:14], k=5), **FINE)


def test_products_and_correlations_are_those_of_numpy():
    first = scores_of(4).unsqueeze(-1)
    second = scores_of(3, seed=1).unsqueeze(-1)
    whole = np.convolve(first.squeeze(-1), second.squeeze(-1))
    for k in (1, 3, 6, 9):
        found = product(first, second, k).squeeze(-1)
        np.testing.assert_allclose(found.numpy(), whole[:k], atol=1e-14)
    for size in (1, 2, 4):
        found = correlation(first, second, size).squeeze(-1)
        expected = [
            sum(float(first[m + j, 0] * second[j, 0]) for j in range(3) if m + j < 4)
            for m in range(size)
        ]
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-14)


@pytest.mark.parametrize("k", [1, 10, 64])
def test_enough_arrivals_leave_nothing_to_chance(k):
    """A Poisson number with that mean, which is the least concentrated sum of coins."""
    mean = enough_arrivals(k, 1e-8)
    log_terms = [m * math.log(mean) - mean - math.lgamma(m + 1) for m in range(k)]
    assert sum(math.exp(x) for x in log_terms) < 1e-8
