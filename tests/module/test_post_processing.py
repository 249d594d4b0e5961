"""The post-processing programme against enumeration, against its dual, and on the paper's data."""

import itertools
import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from experiments.learners import linear_regression
from fairpg_lite import (
    evaluate,
    group_disparity,
    position_bias,
)
from fairpg_lite.data import RankingDataset, synthetic
from fairpg_lite.post_processing import fair_ranking_lp, group_rows, post_process
from fairpg_lite.relevance import exponential_gain, linear_gain

LAMBDAS = (0.0, 0.05, 0.4, 0.8, 5.0, 1e6)


def doubly_stochastic(n, generator, count=1):
    """Random mixtures of random permutation matrices, (count, n, n)."""
    draws = torch.rand(count, 2 * n, n, generator=generator).argsort(-1)
    weights = torch.rand(count, 2 * n, 1, 1, generator=generator, dtype=torch.float64) ** 3
    matrices = torch.nn.functional.one_hot(draws, n) * weights
    return matrices.sum(1) / weights.sum(1)


def is_doubly_stochastic(P):
    return (
        P.min() >= 0
        and torch.allclose(P.sum(0), P.new_ones(len(P)), atol=1e-12, rtol=0)
        and torch.allclose(P.sum(1), P.new_ones(len(P)), atol=1e-12, rtol=0)
    )


@st.composite
def queries(draw, most=7, labels=3):
    """Estimated relevance with ties, zeros and negative values, and groups that may be missing."""
    n = draw(st.integers(1, most))
    relevance = draw(
        st.lists(st.sampled_from([-0.6, 0.0, 0.5, 1.0, 2.3, 3.0]), min_size=n, max_size=n)
    )
    groups = draw(st.lists(st.integers(0, labels - 1), min_size=n, max_size=n))
    return torch.tensor(relevance, dtype=torch.float64), torch.tensor(groups)


@given(queries(), st.integers(0, 99))
def test_the_rows_are_the_disparities(query, seed):
    relevance, groups = query
    P = doubly_stochastic(len(relevance), torch.Generator().manual_seed(seed), count=4)
    exposure = P @ position_bias(len(relevance), dtype=torch.float64)
    merits, labels = relevance.clamp(min=0).expand(exposure.shape), groups.expand(exposure.shape)
    by_group = group_rows(relevance, groups).disparity(exposure)
    torch.testing.assert_close(by_group, group_disparity(exposure, merits, labels))


def test_the_authors_scaling_is_the_ratio_times_the_size_of_the_group():
    relevance = torch.tensor([2.0, 1.0, 3.0, 1.0, 0.5], dtype=torch.float64)
    groups = torch.tensor([0, 0, 0, 0, 1])
    exposure = torch.tensor([1.0, 0.5, 0.6, 0.4, 0.3], dtype=torch.float64)
    got = group_rows(relevance, groups, scaling="authors").disparity(exposure)
    assert got == pytest.approx(2.5 / 1.75 - 0.3 / 0.5)
    # Fair by the definition: the larger group is only charged for being larger.
    assert group_disparity(exposure, relevance, groups) == 0


# The optimum by enumeration. With two groups there is one constraint, and some mixture of two
# rankings is optimal: in between two rankings the objective bends only where the row is zero.


def best_mixture_of_two(relevance, groups, lam, bias):
    rankings = torch.tensor(list(itertools.permutations(range(len(relevance)))))
    exposures = bias[rankings.argsort(-1)]
    utility = exposures @ exponential_gain(relevance)

    def disparity(exposure):
        merit = relevance.clamp(min=0).expand(exposure.shape)
        return group_disparity(exposure, merit, groups.expand(exposure.shape))

    means = [relevance.clamp(min=0)[groups == g].mean() for g in (0, 1)]
    ratio = [exposures[:, groups == g].mean(-1) / means[g] for g in (0, 1)]
    row = ratio[0] - ratio[1]
    best = -math.inf
    for a, b in itertools.product(range(len(rankings)), repeat=2):
        shares = [0.0]
        if row[a] * row[b] < 0:
            shares.append(float(row[a] / (row[a] - row[b])))
        for share in shares:
            d = float(disparity(exposures[a] + share * (exposures[b] - exposures[a])))
            u = float(utility[a] + share * (utility[b] - utility[a]))
            if math.isinf(lam):
                best = max(best, u if d < 1e-9 else -math.inf)
            else:
                best = max(best, u - lam * d)
    return best


def value(P, relevance, lam, bias, disparity):
    exposure = P @ bias
    paid = 0.0 if math.isinf(lam) else lam * float(disparity(exposure))
    return float(exponential_gain(relevance) @ exposure) - paid


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("lam", [*LAMBDAS, math.inf])
def test_optimal_among_all_mixtures_of_permutations(n, lam):
    bias = position_bias(n, dtype=torch.float64)
    unfair_when_sorted = 0
    for seed in range(4):
        g = torch.Generator().manual_seed(10 * n + seed)
        groups = torch.cat([torch.tensor([0, 1]), torch.randint(2, (n - 2,), generator=g)])
        # Small differences in merit, which sorting blows up.
        relevance = 1.0 + 0.4 * torch.rand(n, generator=g, dtype=torch.float64)
        if seed == 3:  # a tie in mean merit, where both directions count
            relevance = torch.ones(n, dtype=torch.float64)
        P = fair_ranking_lp(relevance, groups, lam)
        assert is_doubly_stochastic(P)
        disparity = partial(group_disparity, merit=relevance, groups=groups)
        got = value(P, relevance, lam, bias, disparity)
        assert got == pytest.approx(best_mixture_of_two(relevance, groups, lam, bias), abs=1e-7)
        if math.isinf(lam):
            assert disparity(P @ bias) < 1e-9
        unfair_when_sorted += bool(disparity(fair_ranking_lp(relevance, groups, 0.0) @ bias) > 0)
    assert unfair_when_sorted >= 3


def best_over_weights(relevance, lam, bias, pairs):
    """The same programme over the weights of all n! rankings; hinge s >= row for each pair.

    ``pairs`` are (coefficients on exposure, weight of the hinge).
    """
    rankings = torch.tensor(list(itertools.permutations(range(len(relevance)))))
    exposures = bias[rankings.argsort(-1)].numpy()
    utility = exposures @ exponential_gain(relevance).numpy()
    rows = np.array([exposures @ row for row, _ in pairs])
    hard = math.isinf(lam)
    price = [] if hard else [lam * weight for _, weight in pairs]
    left = rows if hard else np.hstack([rows, -np.eye(len(pairs))])
    ones = np.append(np.ones(len(rankings)), np.zeros(len(price)))[None]
    result = linprog(np.append(-utility, price), left, np.zeros(len(pairs)), ones, [1.0])
    assert result.success
    return -result.fun


@pytest.mark.parametrize("lam", [0.5, 20.0, math.inf])
def test_three_groups_are_optimal(lam):
    relevance = torch.tensor([2.0, 0.4, 1.1, 1.0], dtype=torch.float64)
    groups = torch.tensor([7, 2, 2, 5])
    mean = {7: 2.0, 5: 1.0, 2: 0.75}
    row = {
        g: (groups == g).double().numpy() / (groups == g).sum().item() / m for g, m in mean.items()
    }
    pairs = [(row[a] - row[b], 1 / 3) for a, b in ((7, 5), (7, 2), (5, 2))]
    bias = position_bias(4, dtype=torch.float64)
    P = fair_ranking_lp(relevance, groups, lam)
    got = value(P, relevance, lam, bias, lambda e: group_disparity(e, relevance, groups))
    assert got == pytest.approx(best_over_weights(relevance, lam, bias, pairs), abs=1e-7)


def dual_bound(useful, bias, row, lam):
    """Duality without a solver: the least over prices mu of the best sort by ``useful - mu row``.

    Convex and piecewise linear in mu, so the minimum is where two documents change places.
    """
    i, j = np.triu_indices(len(useful), 1)
    differ = row[i] != row[j]
    mu = (useful[i] - useful[j])[differ] / (row[i] - row[j])[differ]
    last = min(lam, 2 * max(mu.max(), 0) + 1)
    mu = np.concatenate([[0.0, last], mu[(mu > 0) & (mu < last)]])
    priced = np.sort(useful - mu[:, None] * row, axis=1)[:, ::-1]
    return (priced @ np.sort(bias)[::-1]).min()


@pytest.mark.parametrize(
    ("n", "lam"), [(10, 3.0), (10, 1e9), (30, math.inf), (30, 40.0), (100, 200.0)]
)
def test_as_good_as_the_dual_bound_up_to_100_documents(n, lam):
    g = torch.Generator().manual_seed(n)
    groups = torch.arange(n) % 3 // 2
    # The larger group is better by a little: sorting is unfair, and the constraint binds.
    relevance = torch.rand(n, generator=g, dtype=torch.float64) + 0.5 + 0.2 * (groups == 0)
    bias = position_bias(n, dtype=torch.float64)
    P = fair_ranking_lp(relevance, groups, lam)
    assert is_doubly_stochastic(P)
    rows = group_rows(relevance, groups)
    assert rows.disparity(fair_ranking_lp(relevance, groups, 0.0) @ bias) > 0
    got = value(P, relevance, lam, bias, rows.disparity)
    useful = exponential_gain(relevance)
    bound = dual_bound(useful.numpy(), bias.numpy(), rows.rows[0].numpy(), lam)
    assert got == pytest.approx(bound, rel=1e-9, abs=1e-9 if lam < 1e8 or math.isinf(lam) else 1e-4)


@given(queries(most=6, labels=2))
def test_without_a_price_it_sorts(query):
    relevance, groups = query
    P = fair_ranking_lp(relevance, groups, 0.0)
    order = sorted(range(len(relevance)), key=lambda d: (-float(relevance[d]), d))
    assert P.argmax(0).tolist() == order
    assert torch.equal(P, P.round())


def test_more_price_is_less_disparity_and_less_utility():
    relevance = torch.tensor([3.0, 2.5, 2.0, 1.5, 2.4, 1.0], dtype=torch.float64)
    groups = torch.tensor([0, 0, 0, 1, 1, 1])
    bias = position_bias(6, dtype=torch.float64)
    exposures = [fair_ranking_lp(relevance, groups, lam) @ bias for lam in (0, 1, 5, 20, 1e3)]
    paid = [float(group_disparity(e, relevance, groups)) for e in exposures]
    useful = [float(exponential_gain(relevance) @ e) for e in exposures]
    assert paid == sorted(paid, reverse=True)
    assert paid[0] > 0.02
    assert paid[-1] < 1e-9
    assert useful == sorted(useful, reverse=True)


@pytest.mark.parametrize(
    ("relevance", "groups"),
    [
        ([1.5], [0]),  # one document
        ([1.0, 2.0, 3.0], [1, 1, 1]),  # a group is missing
        ([1.0, 0.0, -2.0], [0, 1, 1]),  # a group without positive merit
        ([0.0, 0.0], [0, 1]),  # nobody has merit
    ],
)
@pytest.mark.parametrize("lam", [1.0, math.inf])
def test_without_two_groups_of_merit_there_is_no_constraint(relevance, groups, lam):
    relevance, groups = torch.tensor(relevance), torch.tensor(groups)
    assert len(group_rows(relevance, groups).rows) == 0
    P = fair_ranking_lp(relevance, groups, lam)
    assert torch.equal(P, fair_ranking_lp(relevance, groups, 0.0))


def test_equal_documents_get_equal_shares_under_the_hard_constraint():
    groups = torch.tensor([0, 1, 0, 1])
    P = fair_ranking_lp(torch.ones(4), groups, math.inf)
    exposure = P @ position_bias(4, dtype=torch.float64)
    assert exposure[groups == 0].sum() == pytest.approx(float(exposure[groups == 1].sum()))


def test_the_authors_scaling_can_be_infeasible_where_the_definition_is_not():
    relevance = torch.tensor([1.1, 1.0, 1.2, 1.0, 1.1, 1.0])
    groups = torch.tensor([0, 0, 0, 0, 0, 1])
    fair_ranking_lp(relevance, groups, math.inf)
    with pytest.raises(ValueError, match="finite lam"):
        fair_ranking_lp(relevance, groups, math.inf, scaling="authors")


def test_a_solution_that_breaks_its_own_sums_is_an_error(monkeypatch):
    """Scaled to one it would look like an answer, and be none."""
    solve = scipy.optimize.milp

    def wrong(*args, **how):
        result = solve(*args, **how)
        result.x *= 0.3
        return result

    monkeypatch.setattr("scipy.optimize.milp", wrong)
    with pytest.raises(ValueError, match=r"fair_ranking_lp: .* do not sum to one"):
        fair_ranking_lp(torch.tensor([1.0, 1.0, 0.875]), torch.tensor([0, 0, 1]), math.inf)


def test_a_failed_solve_is_an_error(monkeypatch):
    failed = SimpleNamespace(status=4, success=False, x=None, message="numerical trouble")
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: failed)
    with pytest.raises(ValueError, match="numerical trouble"):
        fair_ranking_lp(torch.tensor([1.0, 0.9]), torch.tensor([0, 1]), 1e3)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((torch.ones(2, 2), torch.ones(2, 2).long(), 1.0), {}, ValueError, r"\(2, 2\)"),
        ((torch.ones(2), torch.ones(3).long(), 1.0), {}, ValueError, r"groups has shape \(3,\)"),
        ((torch.ones(2), torch.tensor([0, 1]), -1.0), {}, ValueError, "lam is -1.0"),
        ((torch.tensor([1.0, math.nan]), torch.tensor([0, 1]), 1.0), {}, ValueError, "finite"),
        ((torch.ones(2), torch.tensor([0, 1]), 1.0), {"scaling": "sum"}, ValueError, "'sum'"),
    ],
)
def test_errors_name_the_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        fair_ranking_lp(*arguments, **options)


def test_a_dataset_is_solved_query_by_query():
    data = synthetic(n_queries=4, n_docs=5, seed=1, minority=0.5, dtype=torch.float64)
    model = linear_regression(data)
    matrices = post_process(data, model(data.features).detach(), 30.0)
    for query, P in zip(data, matrices, strict=True):
        alone = fair_ranking_lp(model(query.features).detach(), query.groups, 30.0)
        assert torch.allclose(P.matrix, alone)
    with pytest.raises(ValueError, match="no groups"):
        post_process(data.replace(groups=None), data.relevance, 1.0)


def test_linear_regression_is_least_squares():
    g = torch.Generator().manual_seed(3)
    x = torch.randn(200, 5, generator=g, dtype=torch.float64) * torch.tensor([1, 1e4, 1e-4, 1, 1])
    x[:, 3] = 2.0  # constant
    x[:, 4] = 3 * x[:, 0] - 1  # redundant
    y = (x[:, 0] + 1e-4 * x[:, 1]).abs() + torch.rand(200, generator=g, dtype=torch.float64)
    data = RankingDataset(x, y, [0, 100, 200])
    design = np.column_stack([x.numpy()[:, :3], np.ones(200)])
    solution = np.linalg.lstsq(design, y.numpy(), rcond=None)[0]
    model = linear_regression(data)
    np.testing.assert_allclose(model(x).detach().numpy(), design @ solution, atol=1e-9)
    assert model.linear.weight[0, 3] == 0


# The paper's claim on the synthetic data, and what it depends on.


def outcomes(seed, lam, **options):
    """True NDCG, true D_group and D_group on the estimates, means over the queries."""
    data = synthetic(seed=seed, dtype=torch.float64)
    estimate = linear_regression(data)(data.features).detach()
    matrices = post_process(data, estimate, lam, **options)
    true = evaluate(matrices, data)
    believed = evaluate(matrices, data.replace(relevance=estimate.clamp(min=0)))
    return true.ndcg, true.d_group, believed.d_group


@pytest.mark.parametrize("seed", range(3))
def test_by_the_definition_only_the_estimates_become_fair(seed):
    before, middle, after = (outcomes(seed, lam) for lam in (0.0, 6.0, 1e3))
    assert before[2] > 1.5 * middle[2] > 1e-3
    assert after[2] < 1e-9
    assert 0.6 * before[1] < after[1] <= middle[1] <= before[1]
    assert after[0] > before[0] - 0.005


@pytest.mark.parametrize("seed", range(3))
def test_with_the_authors_scaling_disparity_rises(seed):
    options = {"scaling": "authors", "gain": linear_gain}
    before, dip, after = (outcomes(seed, lam, **options) for lam in (0.0, 0.95, 6.0))
    assert dip[1] < before[1]
    assert after[1] > 2.5 * before[1]
    assert after[0] < before[0] - 0.05
