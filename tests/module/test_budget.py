"""fit_to_budget: the least lambda within a budget, on the queries that are asked about."""

import dataclasses
import signal

import pytest
import torch

from fairpg_lite import (
    LinearScorer,
    TrainConfig,
    average_rank,
    evaluate,
    fit,
    fit_to_budget,
    group_disparity,
    synthetic,
)
from fairpg_lite.training import budget


def linear(seed=0):
    return LinearScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def budget_config():
    return TrainConfig(method="exact", lr=0.2, lr_decay=0.8, epochs=8, batch_size=25)


def test_budget_is_met_and_used(budget_config):
    data, scorer = synthetic(n_queries=50, seed=0), linear()
    free = linear()
    fit(free, data, budget_config, progress=False)
    delta = 0.6 * evaluate(free, data).d_group
    result = fit_to_budget(scorer, data, delta, budget_config, slack=0.05, progress=False)
    assert result.converged, result
    assert 0 <= delta - result.disparity <= 0.05 * delta
    assert result.lam > 0
    measured = evaluate(scorer, data)
    assert measured.d_group == pytest.approx(result.disparity, abs=1e-5)
    assert measured.ndcg < evaluate(free, data).ndcg


def test_a_loose_budget_needs_no_lambda(budget_config):
    result = fit_to_budget(linear(), synthetic(n_queries=20), 1.0, budget_config, progress=False)
    assert result.lam == 0.0
    assert result.converged
    assert "does not bind" in result.message


def test_an_infeasible_budget_is_said(budget_config):
    """A disparity that no policy can bring below 1."""

    def stubborn(exposure, merit, groups, mask):
        return 1.0 + 0.0 * exposure.sum(-1)

    config = dataclasses.replace(budget_config, disparity=stubborn, epochs=1)
    result = fit_to_budget(linear(), synthetic(n_queries=10), 0.5, config, progress=False)
    assert not result.converged
    assert "infeasible" in result.message
    assert result.disparity == pytest.approx(1.0)
    assert len(result.rounds) < 10


def test_ctrl_c_ends_the_search_for_a_budget(budget_config):
    """And not only the training that it happens to hit, with the next lambda to follow."""
    data, calls = synthetic(n_queries=50, seed=0), []
    delta = 0.005
    expected = fit_to_budget(linear(), data, delta, budget_config, progress=False)
    assert len(expected.rounds) > 3

    def interrupting(exposure, merit, groups, mask):
        calls.append(1)
        if len(calls) == 20:  # two batches an epoch, eight epochs a round: in the second round
            signal.raise_signal(signal.SIGINT)
        return group_disparity(exposure, merit, groups, mask)

    config = dataclasses.replace(budget_config, disparity=interrupting)
    with pytest.raises(KeyboardInterrupt):
        fit_to_budget(linear(), data, delta, config, progress=False)
    assert len(calls) == 20
    again = fit_to_budget(linear(), data, delta, budget_config, progress=False)
    assert again.rounds == expected.rounds


def test_the_budget_is_held_on_validation_queries(budget_config, monkeypatch):
    """A few training queries with less disparity than the others: their own lambda is too small."""
    data, valid = synthetic(n_queries=20, seed=5), synthetic(n_queries=100, seed=2)
    delta = 0.0022
    monkeypatch.setattr(budget, "MAX_ROUNDS", 10)
    budget_config = dataclasses.replace(budget_config, epochs=4)
    on_train, on_valid = linear(), linear()
    blind = fit_to_budget(on_train, data, delta, budget_config, slack=0.1, progress=False)
    result = fit_to_budget(on_valid, data, delta, budget_config, valid=valid, progress=False)
    assert evaluate(on_train, valid).d_group > delta  # what this is about
    assert blind.train_disparity == blind.disparity <= delta
    assert evaluate(on_valid, valid).d_group == pytest.approx(result.disparity, abs=1e-5)
    assert 0.5 * delta <= result.disparity <= delta
    trained = evaluate(on_valid, data).d_group
    assert result.train_disparity == pytest.approx(trained, abs=1e-5)
    assert result.lam > blind.lam
    # The weights are those of the epoch that is best on the validation queries.
    history = result.history
    objective = [
        u - result.lam * d
        for u, d in zip(history.valid_utility, history.valid_disparity, strict=True)
    ]
    assert history.kept == 1 + objective.index(max(objective))


def test_a_budget_that_does_not_carry_over_is_said(budget_config):
    """A disparity that only the validation queries have, and that nothing lowers."""
    data, valid = synthetic(n_queries=20, seed=1), synthetic(n_queries=20, seed=2)

    def stubborn(exposure, merit, groups, mask):
        return torch.where(merit.sum(-1) > 1e6, 1.0, 0.0) + 0.0 * exposure.sum(-1)

    def minus_rank(rankings, relevance, mask):
        return -average_rank(rankings, relevance, mask=mask)

    others = valid.replace(relevance=valid.relevance + 1e6)
    config = dataclasses.replace(
        budget_config, disparity=stubborn, epochs=1, utility=minus_rank, method="exact"
    )
    result = fit_to_budget(linear(), data, 0.5, config, valid=others, progress=False)
    assert not result.converged
    assert (result.train_disparity, result.disparity) == (0.0, 1.0)
    assert "infeasible" in result.message
    assert "does not carry over: disparity 0 on the training queries, 1 on" in result.message


def test_a_disparity_that_is_no_number_keeps_no_budget(budget_config):
    """At lambda 0 nothing else would notice it."""

    def undefined(exposure, merit, groups, mask):
        return float("nan") * exposure.sum(-1)

    config = dataclasses.replace(budget_config, disparity=undefined)
    with pytest.raises(FloatingPointError, match="not finite in epoch 1"):
        fit_to_budget(linear(), synthetic(n_queries=4), 1.0, config, progress=False)


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        ({"delta": -0.1}, {}, "delta is -0.1; a budget of d_group cannot be negative"),
        ({"delta": float("nan")}, {}, "delta is nan"),
        ({"slack": -1.0}, {}, "slack is -1.0; give a fraction of delta"),
        ({}, {"disparity": None}, "config.disparity is None; choose the disparity"),
    ],
)
def test_no_budget_at_all_is_refused(changes, settings, message):
    options = {"delta": 0.1, "config": TrainConfig(**settings), "progress": False, **changes}
    with pytest.raises(ValueError, match=f"^fit_to_budget: {message}"):
        fit_to_budget(linear(), synthetic(n_queries=4), **options)
