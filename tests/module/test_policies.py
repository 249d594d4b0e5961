"""Matrices, mixtures and fixed rankings as policies: decompositions, draws and expectations."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_rankings, log2_bias, position_probs_by_subsets
from torch.testing import assert_close

from fairpg_lite import DoublyStochastic, Mixture, PlackettLuce, Policy, position_bias
from fairpg_lite.birkhoff import decompose
from fairpg_lite.policy import FixedRanking


def mean_of_permutations(n, count, seed):
    """A doubly stochastic matrix, with exact zeros if ``count`` is small."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(count))
    matrix = np.zeros((n, n))
    for weight in weights:
        matrix[rng.permutation(n), np.arange(n)] += weight
    return matrix


def recomposed(weights, rankings):
    n = rankings.shape[-1]
    matrix = np.zeros((n, n))
    for weight, ranking in zip(weights, rankings, strict=True):
        matrix[ranking, np.arange(n)] += weight
    return matrix


@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 1000))
def test_a_decomposition_gives_the_matrix_back(n, count, seed):
    matrix = mean_of_permutations(n, count, seed)
    weights, rankings = decompose(matrix)
    assert abs(weights.sum() - 1.0) < 1e-12
    assert (weights > 0).all()
    assert len(weights) <= (n - 1) ** 2 + 1
    assert np.abs(recomposed(weights, rankings) - matrix).max() < 1e-12
    positions = np.arange(n)
    assert all((matrix[ranking, positions] > 0).all() for ranking in rankings)


def test_a_hundred_documents():
    matrix = mean_of_permutations(100, 2000, seed=0)
    weights, rankings = decompose(matrix)
    assert np.abs(recomposed(weights, rankings) - matrix).max() < 1e-12
    assert len(weights) <= 99**2 + 1


def test_half_a_matrix_is_refused():
    with pytest.raises(ValueError, match=r"found for 0\.5"):
        decompose(np.eye(3) / 2)


def test_all_kinds_are_policies():
    policy = PlackettLuce(torch.zeros(3))
    matrix = DoublyStochastic.uniform(3)
    fixed = FixedRanking(torch.tensor([2, 0, 1]))
    mixture = Mixture([policy, matrix, fixed], [0.2, 0.3, 0.5])
    for kind in (policy, matrix, fixed, mixture):
        assert isinstance(kind, Policy)
    assert not isinstance(torch.zeros(3), Policy)


def lists_drawn(policy, count, seed=0):
    """How often each ranking is drawn."""
    drawn = policy.sample((count,), torch.Generator().manual_seed(seed))
    return {r: n / count for r, n in Counter(map(tuple, drawn.tolist())).items()}


def test_draws_of_a_matrix_have_its_probabilities():
    matrix = torch.from_numpy(mean_of_permutations(4, 6, seed=1))
    policy = DoublyStochastic(matrix)
    drawn = policy.sample((20_000,), torch.Generator().manual_seed(0))
    seen = torch.nn.functional.one_hot(drawn, 4).double().mean(0).T
    # Each entry is a share of 20,000 draws: its standard error is at most .0036.
    assert_close(seen, matrix, rtol=0, atol=0.018)
    shares = lists_drawn(policy, 20_000)
    weights, rankings = policy.lotteries[0]
    expected = Counter()
    for weight, ranking in zip(weights.tolist(), rankings.tolist(), strict=True):
        expected[tuple(ranking)] += weight
    assert set(shares) <= set(expected)
    for ranking, weight in expected.items():
        assert abs(shares.get(ranking, 0.0) - weight) < 0.018
    assert tuple(policy.mode.tolist()) == max(expected, key=expected.get)


def test_a_batch_of_matrices_with_padding():
    first = torch.from_numpy(mean_of_permutations(3, 4, seed=2))
    second = torch.zeros(3, 3, dtype=torch.float64)
    second[:2, :2] = torch.from_numpy(mean_of_permutations(2, 2, seed=3))
    mask = torch.tensor([[True, True, True], [True, True, False]])
    policy = DoublyStochastic(torch.stack([first, second]), mask)
    drawn = policy.sample((50, 2), torch.Generator().manual_seed(0))
    assert drawn.shape == (50, 2, 2, 3)
    assert (drawn[..., 1, 2] == 2).all()
    assert policy.mode.shape == (2, 3)
    bias = position_bias(3, dtype=torch.float64)
    assert_close(policy.exposure(), torch.stack([first, second]) @ bias)
    assert policy.exposure()[1, 2] == 0.0


def test_padding_may_stand_anywhere():
    """A masked document in the middle: the others take the first positions."""
    matrix = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [0.75, 0.25, 0.0]]).double()
    policy = DoublyStochastic(matrix, torch.tensor([True, False, True]))
    shares = lists_drawn(policy, 10_000)
    assert set(shares) == {(0, 2, 1), (2, 0, 1)}
    assert abs(shares[2, 0, 1] - 0.75) < 0.02


def test_the_uniform_policy_pays_everybody_alike():
    exposure = DoublyStochastic.uniform(7, torch.float64).exposure()
    assert_close(exposure, torch.full((7,), log2_bias(7).mean().item(), dtype=torch.float64))


def test_expected_value_is_the_mean_over_all_lists():
    matrix = torch.from_numpy(mean_of_permutations(4, 5, seed=4))
    policy = DoublyStochastic(matrix)

    def first_document(rankings):
        return rankings[..., 0].double()

    assert_close(policy.expected_value(first_document), matrix[:, 0] @ torch.arange(4.0).double())


@given(st.integers(2, 5), st.integers(0, 1000), st.floats(0.0, 1.0))
def test_a_mixture_has_the_mean_exposure(n, seed, share):
    g = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, generator=g, dtype=torch.float64)
    learned = PlackettLuce(scores)
    matrix = torch.from_numpy(mean_of_permutations(n, 3, seed))
    mixture = Mixture([learned, DoublyStochastic(matrix)], [1.0 - share, share])
    probs = (1.0 - share) * position_probs_by_subsets(scores) + share * matrix
    assert_close(mixture.position_probs(), probs, rtol=0, atol=1e-9)
    assert_close(mixture.exposure(), probs @ log2_bias(n), rtol=0, atol=1e-9)


def test_draws_of_a_mixture():
    learned = PlackettLuce(torch.tensor([1.0, 0.0, -1.0]))
    always = FixedRanking(torch.tensor([2, 1, 0]))
    shares = lists_drawn(Mixture([learned, always], [0.6, 0.4]), 20_000)
    for ranking in all_rankings(3):
        probability = 0.6 * float(learned.log_prob(torch.tensor(ranking)).exp())
        probability += 0.4 * (ranking == (2, 1, 0))
        assert abs(shares.get(ranking, 0.0) - probability) < 0.018


def test_a_mixture_of_batches_draws_for_each_query_by_itself():
    left = FixedRanking(torch.tensor([[0, 1], [0, 1]]))
    right = FixedRanking(torch.tensor([[1, 0], [1, 0]]))
    mixture = Mixture([left, right], [0.5, 0.5])
    drawn = mixture.sample((2000,), torch.Generator().manual_seed(0))
    assert drawn.shape == (2000, 2, 2)
    pairs = Counter(map(tuple, drawn[..., 0].tolist()))
    for pair in itertools.product((0, 1), repeat=2):
        assert abs(pairs[pair] / 2000 - 0.25) < 0.05


def test_a_mixture_passes_the_gradient_on():
    scores = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64, requires_grad=True)
    random = DoublyStochastic.uniform(3, torch.float64)
    mixed = Mixture([PlackettLuce(scores), random], [0.25, 0.75]).exposure()
    (grad,) = torch.autograd.grad(mixed[0], scores)
    (alone,) = torch.autograd.grad(PlackettLuce(scores).exposure()[0], scores)
    assert_close(grad, 0.25 * alone)


def test_a_fixed_ranking():
    mask = torch.tensor([True, True, False])
    policy = FixedRanking(torch.tensor([1, 0, 2]), mask, torch.float64)
    assert policy.exposure().tolist() == pytest.approx([1 / np.log2(3), 1.0, 0.0])
    assert policy.position_probs().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert policy.sample((2,)).tolist() == [[1, 0, 2], [1, 0, 2]]
    with pytest.raises(ValueError, match="padding before a real document"):
        FixedRanking(torch.tensor([2, 0, 1]), mask)
