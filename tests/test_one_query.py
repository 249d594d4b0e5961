"""One query at a time, without a graph, says what autograd says (chapters 6 and 7)."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from fairpg_lite import (
    LinearScorer,
    MLPScorer,
    RankingDataset,
    TrainConfig,
    fit,
    group_disparity,
    individual_disparity,
    synthetic,
)
from fairpg_lite.one_query import OneQuery, group_slope, individual_slope
from fairpg_lite.optimizers import Adam


def ragged(seed=0, lengths=(1, 4, 7, 2, 9), groups=2):
    """Queries of several lengths, one of them a single document, some without merit."""
    g = torch.Generator().manual_seed(seed)
    count = sum(lengths)
    return RankingDataset(
        features=torch.randn(count, 3, generator=g, dtype=torch.float64),
        relevance=torch.randint(0, 4, (count,), generator=g).double(),
        groups=torch.randint(0, groups, (count,), generator=g) * 5,
        offsets=torch.tensor([0, *np.cumsum(lengths).tolist()]),
    )


def both_ways(monkeypatch, data, config, scorer=LinearScorer, init=0.5):
    """Weights and history of one run of ``fit``, by single queries and by batches of one."""
    results = []
    for cover in (True, False):
        if not cover:
            monkeypatch.setattr(OneQuery, "covers", lambda config: False)
        g = torch.Generator().manual_seed(7)
        model = scorer(data.n_features, init=init, generator=g, dtype=torch.float64)
        history = fit(model, data, config, progress=False)
        weights = torch.cat([p.detach().flatten() for p in model.parameters()])
        columns = (history.utility, history.disparity, history.entropy, history.gradient_norm)
        results.append((weights, torch.tensor(columns, dtype=torch.float64)))
    return results


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lam": 0.0},
        {"disparity": "individual"},
        {"disparity": None, "lam": 0.0},
        {"baseline": "loo"},
        {"baseline": None, "samples": 1},
        {"entropy": 0.7, "entropy_decay": 0.5},
        {"merit": "square", "disparity": "individual"},
        {"position_bias": torch.tensor([1.0, 0.5, 0.4, 0.1, 0, 0, 0, 0, 0, 0])},
        {"undefined": 1.0},
        {"optimizer": "sgd", "weight_decay": 0.1},
    ],
    ids=lambda changes: "-".join(changes) or "plain",
)
def test_both_ways_agree(monkeypatch, changes):
    config = TrainConfig(**{"lam": 2.0, "epochs": 3, "lr": 0.05, "samples": 6, "seed": 3} | changes)
    (one, one_history), (batched, batched_history) = both_ways(monkeypatch, ragged(), config)
    assert (one - batched).abs().max() < 1e-10
    assert_close(one_history, batched_history, rtol=0, atol=1e-10)


@pytest.mark.parametrize("groups", [1, 3])
def test_any_number_of_groups(monkeypatch, groups):
    config = TrainConfig(lam=2.0, epochs=2, lr=0.05, samples=6)
    one, batched = both_ways(monkeypatch, ragged(groups=groups), config)
    assert_close(one, batched, rtol=0, atol=1e-10)


def test_neural_scorer_and_scores_far_apart(monkeypatch):
    config = TrainConfig(lam=1.0, disparity="individual", epochs=2, lr=0.01)
    one, batched = both_ways(monkeypatch, ragged(), config, MLPScorer)
    assert_close(one, batched, rtol=0, atol=1e-10)
    monkeypatch.undo()
    one, batched = both_ways(monkeypatch, ragged(), config, init=2000.0)  # exp() would underflow
    assert_close(one, batched, rtol=1e-12, atol=1e-9)


def test_single_precision_trains_alike(monkeypatch):
    data = synthetic(n_queries=20, seed=2)
    ends = []
    for cover in (True, False):
        if not cover:
            monkeypatch.setattr(OneQuery, "covers", lambda config: False)
        scorer = LinearScorer(2, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
        fit(scorer, data, TrainConfig(lam=1.0, lr=0.05, epochs=2), progress=False)
        ends.append(scorer.linear.weight.detach())
    assert ends[0].dtype == torch.float32
    assert_close(*ends, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "exact"},
        {"batch_size": 2},
        {"utility": "err"},
        {"utility": "dcg"},
        {"disparity": lambda exposure, merit, groups, mask: exposure.sum(-1)},
    ],
)
def test_what_it_does_not_cover(changes):
    assert OneQuery.covers(TrainConfig())
    assert not OneQuery.covers(TrainConfig(**changes))


documents = st.integers(1, 7)


@given(documents, st.integers(0, 2**32 - 1))
def test_individual_slope_is_the_gradient(n, seed):
    rng = np.random.default_rng(seed)
    exposure, merit = rng.random(n), rng.integers(0, 3, n).astype(float)
    v = torch.tensor(exposure, requires_grad=True)
    expected = individual_disparity(v, torch.from_numpy(merit))
    expected.backward()
    value, slope = individual_slope(exposure, merit)
    assert abs(value - expected.item()) < 1e-14
    np.testing.assert_allclose(slope, v.grad.numpy(), atol=1e-14)


@given(documents, st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_group_slope_is_the_gradient(n, count, seed):
    rng = np.random.default_rng(seed)
    exposure, merit = rng.random(n), rng.integers(0, 3, n).astype(float)
    groups = rng.integers(0, count, n)
    v = torch.tensor(exposure, requires_grad=True)
    expected = group_disparity(v, torch.from_numpy(merit), torch.from_numpy(groups), undefined=0.25)
    if expected.requires_grad:
        expected.backward()
    value, slope = group_slope(exposure, merit, groups, 0.25)
    assert abs(value - expected.item()) < 1e-14
    np.testing.assert_allclose(slope, 0.0 if v.grad is None else v.grad.numpy(), atol=1e-14)


def test_slopes_against_finite_differences():
    """A third way, independent of autograd."""
    rng = np.random.default_rng(0)
    exposure, merit = rng.random(6), rng.integers(1, 4, 6).astype(float)
    groups = np.array([0, 1, 0, 1, 2, 2])
    for measure in (individual_slope, lambda v, m: group_slope(v, m, groups)):
        _, slope = measure(exposure, merit)
        for i in range(6):
            step = np.eye(6)[i] * 1e-7
            difference = measure(exposure + step, merit)[0] - measure(exposure - step, merit)[0]
            assert abs(difference / 2e-7 - slope[i]) < 1e-6


def test_quick_step_is_adam():
    """`quick_step` and PyTorch's own ``step`` move alike, also after a restored checkpoint."""
    g = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 2, generator=g), torch.randn(4, generator=g)]
    ours = [torch.nn.Parameter(p.clone()) for p in start]
    theirs = [torch.nn.Parameter(p.clone()) for p in start]
    quick = Adam(ours, 0.1, 0.01)
    plain = torch.optim.Adam(theirs, 0.1, weight_decay=0.01)
    for k in range(8):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn(a.shape, generator=g)
            b.grad = a.grad.clone()
        if k == 4:
            ours[1].grad = theirs[1].grad = None  # a parameter without a gradient stays
            quick.load_state_dict(quick.state_dict())
        quick.quick_step()
        plain.step()
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a, b, rtol=1e-5, atol=1e-6)
