"""Exact exposure and position probabilities against enumeration and a programme over subsets."""

import itertools
import math

import numpy as np
import pytest
import torch
from oracles import all_rankings, expectation, log2_bias, position_probs_by_subsets
from torch.autograd.functional import hessian
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from fairpg_lite import (
    PlackettLuce,
    expected_dcg,
    group_disparity,
    individual_disparity,
    position_bias,
    ranking_exposure,
)
from fairpg_lite.exact import RaceIntegral, Rule
from fairpg_lite.nodes import circle, discount_nodes, exponential_sum, log_weights, time_grid

FINE = {"rtol": 0.0, "atol": 1e-8}


def scores(n, scale=1.0, seed=0, **kwargs):
    g = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, generator=g, dtype=torch.float64, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_enumeration_agrees_with_subsets(n):
    """The two oracles share no code."""
    s = scores(n)
    by_subsets = position_probs_by_subsets(s) @ log2_bias(n)
    bias = log2_bias(n)
    by_enumeration = expectation(s, lambda r: bias[[r.index(i) for i in range(n)]])
    assert_close(by_subsets, by_enumeration, **FINE)


@pytest.mark.parametrize("scale", [0.0, 0.3, 2.0, 8.0])
@pytest.mark.parametrize("n", [1, 2, 5, 11, 15])
def test_position_probs_and_exposure(n, scale):
    s = scores(n, scale)
    probs = position_probs_by_subsets(s)
    policy = PlackettLuce(s)
    assert_close(policy.position_probs(), probs, **FINE)
    assert_close(policy.exposure(), probs @ log2_bias(n), **FINE)


@pytest.mark.parametrize(
    "bias",
    [
        position_bias(12, "reciprocal", dtype=torch.float64),
        position_bias(12, "geometric", decay=0.7, dtype=torch.float64),
        position_bias(12, k=1, dtype=torch.float64),
        position_bias(12, k=3, dtype=torch.float64),
        position_bias(12, k=10, dtype=torch.float64),
        torch.ones(12, dtype=torch.float64),
        torch.tensor([0.1, 0.9, 0.3, 0.0, 0.2, 0.8, 0.7, 0.4, 0.0, 0.5, 0.6, 1.0]).double(),
    ],
    ids=["reciprocal", "geometric", "top1", "top3", "top10", "constant", "arbitrary"],
)
def test_any_position_bias(bias):
    s = scores(12, 1.5).requires_grad_()
    coefficient = scores(12, seed=1)
    exact = PlackettLuce(s).exposure(bias)
    oracle = position_probs_by_subsets(s) @ bias
    assert_close(exact, oracle, **FINE)
    (grad,) = torch.autograd.grad(exact @ coefficient, s)
    (expected,) = torch.autograd.grad(oracle @ coefficient, s)
    assert_close(grad, expected, **FINE)


def test_cut_off_far_below_n_uses_few_nodes_and_stays_exact():
    """100 documents, top 5: compared with the position probabilities, another path to the same."""
    s = scores(100)
    bias = position_bias(100, k=5, dtype=torch.float64)
    nodes, _ = discount_nodes(100, bias, 1e-10, torch.float64)
    assert len(nodes) <= 8
    policy = PlackettLuce(s)
    assert_close(policy.exposure(bias), policy.position_probs() @ bias, **FINE)


@pytest.mark.parametrize(("n", "scale"), [(50, 3.0), (200, 0.01), (200, 3.0), (1000, 1.0)])
def test_large_lists_by_independent_integration(n, scale):
    """Poisson-binomial ranks by a plain recursion, Gauss-Legendre nodes in u = exp(-w_i t)."""
    s = scores(n, scale)
    w = s.softmax(-1)
    i = int(torch.randint(n, (), generator=torch.Generator().manual_seed(n)))
    others = torch.cat([w[:i], w[i + 1 :]])
    node, weight = (torch.from_numpy(x) for x in np.polynomial.legendre.leggauss(100))
    u = (node + 1) / 2
    log_t = torch.log(-torch.log(u) / w[i])
    ahead = -torch.expm1(-others[:, None] * log_t.exp())  # (n - 1, nodes)
    pmf = torch.zeros(n, len(u), dtype=torch.float64)
    pmf[0] = 1.0
    for p in ahead:
        pmf[1:] = pmf[1:] * (1 - p) + pmf[:-1] * p
        pmf[0] *= 1 - p
    expected = log2_bias(n) @ pmf @ weight / 2
    got = PlackettLuce(s).exposure()
    # log t is singular at both ends of u: a hundred nodes are good to about 1e-6.
    assert abs(got[i] - expected) < 1e-5
    assert_close(got.sum(), log2_bias(n).sum(), rtol=1e-8, atol=0.0)


@pytest.mark.parametrize("n", [60, 200])
@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0])
def test_position_probs_of_long_lists_sum_to_one(n, scale):
    probs = PlackettLuce(scores(n, scale)).position_probs()
    ones = torch.ones(n, dtype=torch.float64)
    assert_close(probs.sum(-1), ones, **FINE)
    assert_close(probs.sum(-2), ones, **FINE)
    assert probs.min() > -1e-9
    assert_close(probs @ log2_bias(n), PlackettLuce(scores(n, scale)).exposure(), **FINE)


def test_arbitrary_bias_of_a_thousand_documents():
    g = torch.Generator().manual_seed(0)
    bias = torch.rand(1000, generator=g, dtype=torch.float64)
    exposure = PlackettLuce(scores(1000)).exposure(bias, tolerance=1e-4)
    assert_close(exposure.sum(), bias.sum(), rtol=1e-4, atol=0.0)
    assert 0.0 < exposure.min() < exposure.max() < 1.0


@pytest.mark.parametrize("n", [3, 10, 300])
def test_huge_score_ranges(n):
    """Scores from -1e4 to 1e4, apart: the policy is deterministic to the last digit."""
    s = torch.linspace(1e4, -1e4, n, dtype=torch.float64).requires_grad_()
    exposure = PlackettLuce(s).exposure(tolerance=1e-6)
    assert_close(exposure.detach(), log2_bias(n), rtol=0, atol=1e-5)
    exposure[0].backward()
    assert torch.isfinite(s.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_near_ties_below_a_huge_gap(dtype):
    """Only differences inside a cluster matter; a gap of 2e4 changes nothing else."""
    cluster = torch.tensor([0.5, 0.0, -1.0], dtype=dtype)
    s = torch.cat([torch.tensor([1e4], dtype=dtype), cluster - 1e4])
    exposure = PlackettLuce(s).exposure()
    inside = position_probs_by_subsets((s[1:] + 1e4).double()) @ log2_bias(4)[1:]
    atol = 1e-8 if dtype == torch.float64 else 1e-5
    assert_close(exposure[0], torch.ones((), dtype=dtype), rtol=0, atol=atol)
    assert_close(exposure[1:].double(), inside, rtol=0, atol=atol)


def test_float32_is_good_to_single_precision():
    s = scores(15)
    exact = position_probs_by_subsets(s) @ log2_bias(15)
    got = PlackettLuce(s.float()).exposure()
    assert got.dtype == torch.float32
    assert_close(got.double(), exact, rtol=0, atol=2e-5)
    assert_close(
        PlackettLuce(s.float()).position_probs().double(),
        position_probs_by_subsets(s),
        rtol=0,
        atol=2e-5,
    )


@pytest.mark.parametrize(
    ("tolerance", "times"),
    [(5e-2, 12), (1e-2, 12), (1e-3, 12), (1e-4, 12), (1e-5, 4), (1e-8, 4), (1e-10, 1), (1e-12, 1)],
)
def test_tolerance_is_the_order_of_the_error(tolerance, times):
    """Against subsets, with few documents and with many, which is where it errs most."""
    worst = 0.0
    for seed, (n, scale) in enumerate(itertools.product([2, 3, 5, 8, 12], [0.3, 1.0, 3.0, 8.0])):
        s = scores(n, scale, seed)
        probs = position_probs_by_subsets(s)
        for bias in (log2_bias(n), position_bias(n, k=1, dtype=torch.float64)):
            error = PlackettLuce(s).exposure(bias, tolerance=tolerance) - probs @ bias
            worst = max(worst, float(error.abs().max()))
    assert worst < times * tolerance


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9])
@pytest.mark.parametrize("kind", ["log2", "rugged", "first"])
def test_a_position_bias_of_another_order_of_magnitude(kind, scale):
    """What is paid grows with the position bias, and so does its gradient."""
    bias = {
        "log2": log2_bias(12),
        "rugged": torch.rand(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
        "first": position_bias(12, k=2, dtype=torch.float64),
    }[kind]
    s = scores(12, 1.5).requires_grad_()
    expected = PlackettLuce(s).exposure(bias)
    found = PlackettLuce(s).exposure(bias * scale) / scale
    assert_close(found, expected, rtol=0, atol=2e-10)
    (grad,) = torch.autograd.grad(found[0], s)
    (expected_grad,) = torch.autograd.grad(expected[0], s)
    assert_close(grad, expected_grad, rtol=0, atol=2e-9)


def generating(log_w, nodes, log_t, weight):
    """G_i(z_m), node by node."""
    return RaceIntegral.apply(log_w, Rule(nodes, torch.ones_like(nodes), log_t, weight), False)


def test_written_out_gradient_equals_finite_differences():
    s = scores(6, 1.5).requires_grad_()
    log_w = log_weights(s)
    log_t, weight = time_grid(log_w, 0.35, 1e-10)
    for nodes in (
        torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64),
        torch.polar(torch.tensor([1.0, 0.8]), torch.tensor([0.4, 2.5])).to(torch.complex128),
    ):
        assert torch.autograd.gradcheck(
            lambda x, z=nodes: generating(log_weights(x), z, log_t, weight), s
        )


@pytest.mark.parametrize("chunk", [1_000_000, 300])
@pytest.mark.parametrize("bias", [None, [1.0, 0.2, 0.9, 0.0, 0.0, 0.0]], ids=["log2", "uneven"])
def test_exposure_is_the_weighted_sum_of_generating_functions(bias, chunk, monkeypatch):
    """Real and complex nodes, in one piece and in several: the fused sum and its gradient."""
    monkeypatch.setattr("fairpg_lite._memory._CHUNK", chunk)
    bias = None if bias is None else torch.tensor(bias, dtype=torch.float64)
    s = torch.stack([scores(6, 1.5), scores(6, 0.2, seed=1)]).requires_grad_()
    log_t, weight = time_grid(log_weights(s), 0.35, 1e-10)
    nodes, coefficients = discount_nodes(6, bias, 1e-10, torch.float64)
    assert nodes.is_complex() == (bias is not None)

    def fused(x):
        rule = Rule(nodes, coefficients, log_t, weight)
        sums = RaceIntegral.apply(log_weights(x), rule, True)
        return torch.real(sums.squeeze(-1))

    parts = generating(log_weights(s), nodes, log_t, weight)
    summed = torch.real(parts @ coefficients)
    assert_close(fused(s), summed, rtol=0, atol=1e-14)
    pull = torch.tensor([[0.3, -1.0, 2.0, 0.0, 1.0, -0.4]], dtype=torch.float64)
    expected, found = (torch.autograd.grad((pull * v).sum(), s)[0] for v in (summed, fused(s)))
    assert_close(found, expected, rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(fused, s)


def test_pieces_do_not_change_the_result(monkeypatch):
    s = scores(9).requires_grad_()
    whole = PlackettLuce(s).exposure()
    (expected,) = torch.autograd.grad(whole[0], s)
    monkeypatch.setattr("fairpg_lite._memory._CHUNK", 500)
    pieces = PlackettLuce(s).exposure()
    (grad,) = torch.autograd.grad(pieces[0], s)
    assert_close(pieces, whole, rtol=0, atol=1e-14)
    assert_close(grad, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [16, 128, 1024])
def test_discount_is_a_short_positive_sum_of_powers(n):
    values = (1.0 / torch.log2(2.0 + torch.arange(n, dtype=torch.float64))).numpy()
    z, a = exponential_sum(values, 1e-10)
    assert (z > 0).all()
    assert (z < 1).all()
    assert (a > 0).all()
    assert len(z) <= 2 + 2 * math.log2(n)
    for k in (0, 1, n // 2, n - 1):
        assert abs(float((a * z**k).sum()) - values[k]) <= 1e-10


def test_circle_reproduces_any_values():
    g = torch.Generator().manual_seed(3)
    for n in (1, 2, 7, 8, 40):
        values = torch.rand(n, generator=g, dtype=torch.float64).numpy()
        z, a = circle(values, 1e-10)
        for k in range(n):
            assert abs((a * z**k).sum().real - values[k]) < 1e-12


def test_batches_equal_single_queries():
    s = torch.stack([scores(8, scale, seed) for seed, scale in enumerate([0.1, 1.0, 9.0])])
    together = PlackettLuce(s.reshape(3, 1, 8)).exposure()
    assert together.shape == (3, 1, 8)
    for row, alone in zip(together[:, 0], s, strict=True):
        assert_close(row, PlackettLuce(alone).exposure(), rtol=0, atol=1e-10)


def test_ranking_exposure_pays_the_position():
    rankings = torch.tensor(all_rankings(4))
    bias = position_bias(4)
    paid = ranking_exposure(rankings, bias)
    for row, ranking in zip(paid, all_rankings(4), strict=True):
        for document in range(4):
            assert row[document] == bias[ranking.index(document)]


def exposure_by(method, policy):
    if method == "exact":
        return policy.exposure()
    return policy.sampled_exposure(generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("method", ["exact", "sample"])
def test_inference_mode_leaves_nothing_behind(method):
    """What is cached under inference_mode must still serve a gradient; the length is a new one."""
    bias = position_bias(53, "reciprocal", dtype=torch.float64)
    s = scores(53, seed=5)
    with torch.inference_mode():
        calm = exposure_by(method, PlackettLuce(s))
        PlackettLuce(s).exposure(bias)
        PlackettLuce(s).position_probs()
        expected_dcg(calm, s.abs())
    leaf = s.clone().requires_grad_()
    policy = PlackettLuce(leaf)
    exposure = exposure_by(method, policy)
    assert_close(exposure.detach(), calm, rtol=0, atol=1e-14)
    (exposure[0] + policy.exposure(bias)[0] + policy.position_probs()[0, 0]).backward()
    expected_dcg(policy.exposure(), s.abs()).backward()
    assert torch.isfinite(leaf.grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_at_the_end_only(dtype):
    s = scores(15, 2.0).to(dtype)
    probs = position_probs_by_subsets(s.double())
    exact = probs @ log2_bias(15)
    policy = PlackettLuce(s)
    rankings = policy.sample((50,), torch.Generator().manual_seed(0))
    wide = PlackettLuce(s.double())
    pairs = {
        "exposure": (policy.exposure(), exact),
        "probs": (policy.position_probs(), probs),
        "sampled": (
            policy.sampled_exposure(rankings=rankings),
            wide.sampled_exposure(rankings=rankings),
        ),
        "log_prob": (policy.log_prob(rankings), wide.log_prob(rankings)),
        "entropy": (policy.softmax_entropy(), wide.softmax_entropy()),
    }
    for name, (got, expected) in pairs.items():
        assert got.dtype == dtype, name
        # Half a unit in the last place, and a little for the float32 on the way.
        assert_close(
            got.double(), expected, rtol=0.51 * torch.finfo(dtype).eps, atol=2e-5, msg=name
        )


@pytest.mark.parametrize("n", [50, 700])
def test_a_long_list_needs_no_large_table(n):
    """Tables are walked in pieces: no tensor made on the way exceeds a few million cells."""
    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, tuple | list) else [out]:
                if isinstance(tensor, torch.Tensor):
                    largest = max(largest, tensor.untyped_storage().nbytes())
            return out

    s = scores(8 * n).reshape(8, n).requires_grad_()
    merit = scores(8 * n, seed=1).abs().reshape(8, n)
    with Watch():
        exposure = PlackettLuce(s).exposure(tolerance=1e-4)
        individual_disparity(exposure, merit).sum().backward()
    assert largest <= 8 * 1_100_000


def test_second_derivatives_are_right_or_refused():
    """torch.autograd.functional.hessian used to get zeros, without a word."""
    s = scores(4, 1.5)
    ranking = torch.tensor([2, 0, 3, 1])

    def plain(x):
        placed = x[ranking]
        return sum(placed[k] - placed[k:].logsumexp(0) for k in range(4))

    expected = hessian(plain, s)
    assert_close(hessian(lambda x: PlackettLuce(x).log_prob(ranking), s), expected)
    far = torch.tensor([900.0, 0.4, 0.0, -900.0], dtype=torch.float64)
    assert_close(hessian(lambda x: PlackettLuce(x).log_prob(ranking), far), hessian(plain, far))
    mask, padded = torch.tensor([True] * 4 + [False]), torch.cat([s, s[:1]])
    longer = torch.tensor([2, 0, 3, 1, 4])
    found = hessian(lambda x: PlackettLuce(x, mask).log_prob(longer), padded)
    assert_close(found[:4, :4], expected)
    assert (found[4] == 0).all()
    refused = {
        "exact exposure": lambda x: PlackettLuce(x).exposure()[0],
        "position_probs": lambda x: PlackettLuce(x).position_probs()[0, 0],
        "sampled rankings": lambda x: PlackettLuce(x).sampled_exposure()[0],
    }
    for name, function in refused.items():
        with pytest.raises(RuntimeError, match=rf"{name}.* can be differentiated once"):
            hessian(function, s)


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch.func's own
def test_torch_func_is_served_or_refused_in_our_words():
    """It used to fail with PyTorch's own words, and to leave tensors of its own in our caches."""
    s, ranking = scores(4, 1.5), torch.tensor([2, 0, 3, 1])
    expected = hessian(lambda x: PlackettLuce(x).log_prob(ranking), s)
    assert_close(torch.func.hessian(lambda x: PlackettLuce(x).log_prob(ranking))(s), expected)
    refused = {
        "exposure": lambda x: PlackettLuce(x).exposure()[0],
        "position_probs": lambda x: PlackettLuce(x).position_probs()[0, 0],
        "expect": lambda x: PlackettLuce(x).expect(x.detach()[:2], torch.stack([ranking] * 2)),
    }
    for name, function in refused.items():
        for transform in (torch.func.hessian, torch.func.grad):
            with pytest.raises(RuntimeError, match=rf"{name} has .* torch\.func .* cannot use"):
                transform(function)(s)
    leaf = s.clone().requires_grad_()
    PlackettLuce(leaf).exposure()[0].backward()
    assert leaf.grad.abs().sum() > 0


def test_disparities_bend_as_their_parts_do():
    """The hinge is piecewise linear, so D of a curve bends with the curve alone."""
    merit = torch.tensor([3.0, 1.0, 2.0, 1.0], dtype=torch.float64)
    groups = torch.tensor([0, 1, 0, 1])
    at = torch.tensor([0.9, 0.2, 0.5, 0.1], dtype=torch.float64)
    for function in (
        lambda x: individual_disparity(x**3, merit),
        lambda x: group_disparity(x**3, merit, groups),
    ):
        step = 1e-4 * torch.eye(4, dtype=torch.float64)
        leaf = [(at + sign * row).requires_grad_() for row in step for sign in (1, -1)]
        slopes = [torch.autograd.grad(function(x), x)[0] for x in leaf]
        differences = torch.stack(
            [(up - down) / 2e-4 for up, down in zip(slopes[::2], slopes[1::2], strict=True)]
        )
        found = hessian(function, at)
        assert found.abs().max() > 0.1
        assert_close(found, differences, rtol=1e-6, atol=1e-6)
