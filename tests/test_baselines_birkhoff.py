"""Mixtures of rankings rebuild the matrix, are few, and can be drawn from."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairpg_lite import PlackettLuce, position_bias, ranking_exposure
from fairpg_lite.baselines import birkhoff, fair_ranking_lp


def balanced(matrix):
    for _ in range(2000):
        matrix = matrix / matrix.sum(0, keepdim=True)
        matrix = matrix / matrix.sum(1, keepdim=True)
    return matrix


def dense(n, g):
    return balanced(torch.rand(n, n, generator=g, dtype=torch.float64) + 1e-3)


def spiky(n, g):
    """Entries over twelve orders of magnitude."""
    weights = 10 ** (-12 * torch.rand(3 * n, generator=g, dtype=torch.float64))
    eye = torch.eye(n, dtype=torch.float64)
    return sum(w * eye[torch.randperm(n, generator=g)] for w in weights / weights.sum())


def nearly_deterministic(n, g):
    order = torch.randperm(n, generator=g)
    return (1 - 1e-8) * torch.eye(n, dtype=torch.float64)[order] + 1e-8 * dense(n, g)


def blocks(n, g):
    sizes = [n // 2, n - n // 2] if n > 1 else [n]
    return torch.block_diag(*(dense(k, g) for k in sizes))[torch.randperm(n, generator=g)]


def few(n, g):
    """A mixture of three permutations, one of them rare."""
    weights = torch.tensor([0.7, 0.3 - 1e-6, 1e-6], dtype=torch.float64)
    eye = torch.eye(n, dtype=torch.float64)
    return sum(w * eye[torch.randperm(n, generator=g)] for w in weights)


def uniform(n, g):
    return torch.full((n, n), 1 / n, dtype=torch.float64)


KINDS = [dense, spiky, nearly_deterministic, blocks, few, uniform]


def rebuilt(weights, rankings):
    """The matrix of the mixture, term by term."""
    n = rankings.shape[-1]
    P = torch.zeros(n, n, dtype=torch.float64)
    for weight, ranking in zip(weights, rankings, strict=True):
        P[ranking, torch.arange(n)] += weight
    return P


def check(P):
    """The mixture of P is one, and has few rankings; returns its weights."""
    n = len(P)
    weights, rankings = birkhoff(P)
    assert len(weights) <= (n - 1) ** 2 + 1
    assert weights.min() > 0
    assert float(weights.sum()) == pytest.approx(1.0, abs=1e-14)
    assert torch.equal(rankings.sort(-1).values, torch.arange(n).expand_as(rankings))
    assert (rebuilt(weights, rankings) - P).abs().max() < 1e-9
    return weights


@given(st.sampled_from(KINDS), st.integers(1, 12), st.integers(0, 1000))
def test_any_matrix_is_rebuilt_by_few_rankings(kind, n, seed):
    check(kind(n, torch.Generator().manual_seed(seed)))


@pytest.mark.parametrize("kind", KINDS)
def test_forty_documents(kind, generator):
    check(kind(40, generator))


def test_the_bound_is_reached_and_kept():
    """A generic matrix of three documents needs all of (n-1)**2 + 1 = 5 rankings."""
    counts = [len(check(dense(3, torch.Generator().manual_seed(seed)))) for seed in range(20)]
    assert max(counts) == 5


def test_a_plackett_luce_policy_as_a_mixture(generator):
    scores = torch.randn(8, generator=generator, dtype=torch.float64)
    check(PlackettLuce(scores).position_probs())


def test_a_post_processed_policy_needs_two_rankings_of_weight():
    """One constraint: a vertex of the programme mixes few rankings."""
    relevance = torch.tensor([0.89] * 5 + [0.88] * 5, dtype=torch.float64)
    groups = torch.arange(10) // 5
    P = fair_ranking_lp(relevance, groups, math.inf)
    assert len(check(P)) <= 20


def test_large_weights_come_first(generator):
    weights, _ = birkhoff(spiky(12, generator))
    assert weights[: len(weights) // 2].sum() > weights[len(weights) // 2 :].sum()
    # Never more than twice what an earlier step took: the threshold only falls.
    running = torch.cummin(weights, 0).values
    assert (weights <= 2 * running + 1e-15).sum() >= 0.9 * len(weights)


def test_samples_have_the_matrix_as_frequencies(generator):
    P = dense(5, generator)
    S = 20_000
    weights, rankings = birkhoff(P)
    rankings = rankings[torch.multinomial(weights, S, True, generator=generator)]
    assert rankings.shape == (S, 5)
    counts = torch.nn.functional.one_hot(rankings, 5).double().mean(0).T
    # Five standard deviations of a frequency, for each of 25 entries.
    assert ((counts - P).abs() < 5 * (P * (1 - P) / S).sqrt()).all()
    bias = position_bias(5, dtype=torch.float64)
    exposure = ranking_exposure(rankings, bias).mean(0)
    assert torch.allclose(exposure, P @ bias, atol=5 * 0.5 / math.sqrt(S))


def test_rounding_of_a_float32_matrix_is_forgiven(generator):
    P = dense(6, generator).float()
    assert (rebuilt(*birkhoff(P)) - P.double()).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("P", "message"),
    [
        (torch.ones(2, 3), r"\(2, 3\)"),
        (torch.ones(2, 2), "sums off by 1.0e"),
        (torch.tensor([[1.5, -0.5], [-0.5, 1.5]]), "smallest entry -5.0e-01"),
        (torch.tensor([[math.nan]]), "finite"),
    ],
)
def test_errors_name_the_matrix(P, message):
    with pytest.raises(ValueError, match=message):
        birkhoff(P)
