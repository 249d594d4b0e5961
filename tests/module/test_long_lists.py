"""Exact exposure of long lists: the nodes, the accuracy, and what is refused."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from fairpg_lite import PlackettLuce, position_bias
from fairpg_lite.nodes import discount_nodes, exponential_sum, named_nodes


@pytest.mark.parametrize("kind", ["log2", "reciprocal"])
def test_a_long_sum_is_as_short_as_a_dense_one(kind, monkeypatch):
    """At a length that both ways can do: as many nodes, at the same places."""
    values = position_bias(1024, kind, dtype=torch.float64).numpy()
    dense_nodes, dense_coefficients = exponential_sum(values, 1e-9)
    monkeypatch.setattr("fairpg_lite.nodes._LONGEST_DENSE", 100)
    nodes, coefficients = exponential_sum(values, 1e-9)
    assert len(nodes) == len(dense_nodes)
    np.testing.assert_allclose(np.sort(nodes), np.sort(dense_nodes), atol=1e-4)
    np.testing.assert_allclose(coefficients.sum(), dense_coefficients.sum(), atol=1e-8)


@pytest.mark.parametrize("kind", ["log2", "reciprocal"])
@pytest.mark.parametrize("n", [2049, 20_000])
def test_a_long_discount_is_a_short_positive_sum_of_powers(kind, n):
    """In fifty digits where mpmath is asked: at positions from the first to the last."""
    mpmath = pytest.importorskip("mpmath")
    nodes, coefficients = named_nodes(kind, n, None, 1e-10, torch.float64)
    assert (nodes > 0).all()
    assert (nodes < 1).all()
    assert (coefficients > 0).all()
    assert len(nodes) <= 2 + 2 * math.log2(n)
    with mpmath.workdps(50):
        for k in (0, 1, 2, 10, 100, n // 3, n - 1):
            total = mpmath.mpf(0)
            for z, a in zip(nodes.tolist(), coefficients.tolist(), strict=True):
                total += mpmath.mpf(a) * mpmath.mpf(z) ** k
            exact = 1 / mpmath.log(k + 2, 2) if kind == "log2" else mpmath.mpf(1) / (k + 1)
            assert abs(total - exact) < 1.01e-10


def test_equal_scores_share_the_exposure_of_a_long_list():
    n = 5000
    v = position_bias(n, dtype=torch.float64)
    exposure = PlackettLuce(torch.zeros(n, dtype=torch.float64)).exposure()
    assert_close(exposure, v.mean().expand(n), rtol=0, atol=1e-10)


def test_two_kinds_of_documents_by_binomials():
    """3,000 documents of two weights: the number ahead is a sum of two binomials, added up.

    The binomials come from lgamma, the sum over them is written out, and the integral is
    Gauss-Legendre in u = exp(-w t), whose hundred nodes are good to about 1e-6.
    """
    light, heavy = 2000, 1000
    scores = torch.cat([torch.zeros(light), torch.full((heavy,), 1.5)]).double()
    weights = scores.softmax(-1)
    bias = position_bias(light + heavy, dtype=torch.float64).numpy()

    def binomial(n, wt):
        """The chance of m arrivals among n documents, each of which waits with chance exp(-wt)."""
        log_factorial = np.array([math.lgamma(m + 1) for m in range(n + 1)])
        log_choose = log_factorial[-1] - log_factorial - log_factorial[::-1]
        m = np.arange(n + 1)
        return np.exp(log_choose + m * math.log(-math.expm1(-wt)) - (n - m) * wt)

    node, weight = np.polynomial.legendre.leggauss(100)
    expected = 0.0
    for u, share in zip((node + 1) / 2, weight / 2, strict=True):
        t = -math.log(u) / float(weights[0])
        of_light = binomial(light - 1, float(weights[0]) * t)
        of_heavy = binomial(heavy, float(weights[-1]) * t)
        expected += share * float(np.convolve(of_light, of_heavy) @ bias)
    found = PlackettLuce(scores).exposure()
    assert abs(float(found[0]) - expected) < 1e-5
    assert_close(found[:light], found[0].expand(light), rtol=0, atol=1e-12)
    assert_close(float(found.sum()), float(bias.sum()), rtol=1e-9, atol=0)


@pytest.mark.slow
def test_a_hundred_thousand_documents_against_drawn_lists():
    """The exposure of ten groups of ten thousand, within five standard errors of 20 draws."""
    n = 100_000
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(n, generator=g, dtype=torch.float64)
    group = scores.argsort().argsort() // (n // 10)
    v = position_bias(n, dtype=torch.float64)
    exposure = PlackettLuce(scores).exposure()
    assert_close(exposure.sum(), v.sum(), rtol=1e-9, atol=0)
    means = torch.zeros(10, dtype=torch.float64).index_add(0, group, exposure) / (n // 10)
    drawn = []
    for _ in range(20):
        ranking = PlackettLuce(scores).sample((), g)
        paid = torch.empty_like(v)
        paid[ranking] = v
        drawn.append(torch.zeros(10, dtype=torch.float64).index_add(0, group, paid) / (n // 10))
    drawn = torch.stack(drawn)
    error = drawn.std(0) / math.sqrt(len(drawn))
    assert ((drawn.mean(0) - means).abs() < 5 * error).all()
    # Lists this long hardly vary, so five standard errors are a tight bound.
    assert (error / means).max() < 1e-3


def test_a_long_rugged_bias_is_refused_with_a_way_out():
    bias = torch.rand(9000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.raises(
        ValueError, match=r"9000 positions .* no short sum of powers.* sampled_exposure"
    ):
        discount_nodes(9000, bias, 1e-6, torch.float64)
