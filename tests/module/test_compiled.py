"""The compiled epochs say what autograd says, on the same draws (chapters 7 and 15)."""

import ast
import dataclasses
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairpg_lite import (
    LinearScorer,
    MLPScorer,
    RankingDataset,
    TrainConfig,
    err,
    fit,
    position_bias,
)
from fairpg_lite.batch import Batch
from fairpg_lite.compiled import epochs as compiled_epochs
from fairpg_lite.compiled import switch
from fairpg_lite.compiled.epochs import Epoch
from fairpg_lite.compiled.kernels import kernel
from fairpg_lite.compiled.kernels.numerics import exp_minus
from fairpg_lite.objective import ideals

CLOSE = {torch.float64: 1e-9, torch.float32: 2e-4}


def padded(data, queries, dtype):
    """A batch of the named queries, in their order."""
    parts = [data[int(q)] for q in queries]
    n = max(len(part.relevance) for part in parts)

    def pad(values):
        room = [n - len(value) for value in values]
        return torch.stack(
            [
                torch.nn.functional.pad(v, (0,) * (2 * v.ndim - 1) + (r,))
                for v, r in zip(values, room, strict=True)
            ]
        )

    groups = None if data.groups is None else pad([part.groups for part in parts])
    mask = pad([torch.ones(len(part.relevance), dtype=torch.bool) for part in parts])
    relevance = pad([part.relevance.to(dtype) for part in parts])
    return Batch(pad([p.features.to(dtype) for p in parts]), relevance, groups, mask, queries)


def optimizer_of(scorer, config):
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[config.optimizer]
    return kind(scorer.parameters(), config.lr, weight_decay=config.weight_decay)


def by_autograd(scorer, data, config, epochs):
    """The definition, batch by batch; returns terms (Q, 3) and norms of the last epoch."""
    optimizer = optimizer_of(scorer, config)
    draws = torch.Generator().manual_seed(5)
    dtype = next(scorer.parameters()).dtype
    ideal = ideals(data, config, dtype)
    for batches, gamma, lr in epochs:
        objective = dataclasses.replace(config, entropy=gamma)
        epoch_terms = []
        norms = []
        optimizer.param_groups[0]["lr"] = lr
        for queries in batches:
            batch = padded(data, queries, dtype)
            terms = objective.terms(scorer(batch.features), batch, draws, ideal)
            optimizer.zero_grad()
            (-objective.total(terms).mean()).backward()
            grads = torch.cat([p.grad.flatten() for p in scorer.parameters()])
            norms.append(float(grads.norm()))
            epoch_terms.append(torch.stack(terms, -1).detach().double())
            optimizer.step()
    return torch.cat(epoch_terms).numpy(), np.array(norms), optimizer


def by_numba(scorer, data, config, epochs):
    optimizer, draws = optimizer_of(scorer, config), torch.Generator().manual_seed(5)
    run = Epoch(scorer, data, config, optimizer, batch_size=config.batch_size).run
    seen = [
        run(torch.cat(tuple(batches)), [len(batch) for batch in batches], draws, gamma, lr)
        for batches, gamma, lr in epochs
    ]
    assert seen[-1].bad == []
    return seen[-1].terms, seen[-1].norms, optimizer


def same(data, config, make, epochs, dtype=torch.float64, close=None):
    """Train twice and compare terms, norms, weights and the optimiser's state."""
    close = close or CLOSE[dtype]
    ends = []
    for way in (by_autograd, by_numba):
        scorer = make()
        terms, norms, optimizer = way(scorer, data, config, epochs)
        weights = [p.detach().double() for p in scorer.parameters()]
        if isinstance(scorer, MLPScorer) and scorer.output.bias is not None:
            weights.pop()  # moved by nothing but rounding
        ends.append((terms, norms, weights, optimizer.state_dict()["state"]))
    (terms, norms, weights, state), (terms2, norms2, weights2, state2) = ends
    np.testing.assert_allclose(terms2, terms, rtol=close, atol=close)
    np.testing.assert_allclose(norms2, norms, rtol=close, atol=close)
    for w, w2 in zip(weights, weights2, strict=True):
        np.testing.assert_allclose(w2.numpy(), w.numpy(), rtol=close, atol=close)
    if config.optimizer == "adam":
        for key in list(state)[: len(weights)]:
            assert int(state[key]["step"]) == int(state2[key]["step"])
            for name in ("exp_avg", "exp_avg_sq"):
                one, two = state[key][name].double(), state2[key][name].double()
                np.testing.assert_allclose(two.numpy(), one.numpy(), rtol=close, atol=close)


def started(model, features, init, g, dtype):
    """A scorer with weights within ``init`` of zero."""
    scorer = model(features, generator=g, dtype=dtype)
    with torch.no_grad():
        for p in scorer.parameters():
            p.uniform_(-init, init, generator=g)
    return scorer


def ragged(seed, lengths, features=None, groups=3, dtype=torch.float64, grades=4):
    """Queries of these lengths. Without ``features`` the unit matrix: weights are scores."""
    g = torch.Generator().manual_seed(seed)
    count = sum(lengths)
    x = torch.eye(count, dtype=dtype)
    if features is not None:
        x = torch.randn(count, features, generator=g, dtype=dtype)
    relevance = torch.randint(0, grades, (count,), generator=g).to(dtype)
    labels = 7 * torch.randint(0, groups, (count,), generator=g) if groups else None
    return RankingDataset(x, relevance, [0, *np.cumsum(lengths).tolist()], groups=labels)


def scored(scores, dtype=torch.float64):
    """A maker of linear scorers with these weights."""

    def make():
        scorer = LinearScorer(len(scores), dtype=dtype)
        scorer.linear.weight.data[:] = scores.to(dtype)
        return scorer

    return make


SETTINGS = st.fixed_dictionaries(
    {
        "lam": st.sampled_from([0.0, 0.7, 5.0]),
        "disparity": st.sampled_from(["d_group", "group_gap", "d_ind"]),
        "utility": st.sampled_from(["ndcg", "dcg"]),
        "gain": st.sampled_from(["exponential", "linear", lambda r: r / r.sum(-1, True).clamp(1)]),
        "method": st.sampled_from(["sample", "exact"]),
        "samples": st.sampled_from([2, 3, 10]),
        "baseline": st.sampled_from(["mean", "loo", None]),
        "merit": st.sampled_from(["identity", "square", "sqrt", lambda r: r / (1 + r)]),
        "tolerance": st.sampled_from([1e-5, 1e-9]),
    }
)
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(SETTINGS, LENGTHS, st.integers(0, 1000), st.sampled_from([0.1, 1.0, 30.0]), st.booleans())
def test_the_gradient_by_the_scores(settings, lengths, seed, spread, together):
    """With unit features and plain descent the step is the gradient."""
    data = ragged(seed, lengths)
    config = TrainConfig(**settings, entropy=0.4, optimizer="sgd", lr=1.0)
    g = torch.Generator().manual_seed(seed)
    scores = spread * torch.randn(data.n_documents, generator=g, dtype=torch.float64)
    order = torch.randperm(len(data), generator=g)
    batches = [order] if together else list(order.split(1))
    same(data, config, scored(scores), [(batches, 0.4 * (seed % 2), 1.0)])


@given(
    SETTINGS,
    LENGTHS,
    st.integers(0, 1000),
    st.sampled_from(["adam", "sgd"]),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([LinearScorer, MLPScorer]),
)
def test_weights_after_epochs(settings, lengths, seed, optimizer, decay, size, model):
    data = ragged(seed, lengths, features=5, groups=2)
    config = TrainConfig(
        **settings, entropy=0.3, optimizer=optimizer, weight_decay=decay, batch_size=size
    )

    def make():
        g = torch.Generator().manual_seed(seed)
        return started(model, 5, 0.5, g, torch.float64)

    g = torch.Generator().manual_seed(seed)
    batches = [list(torch.randperm(len(data), generator=g).split(size)) for _ in range(2)]
    # Adam divides by the gradient's size, and by its rounding where there is none.
    same(data, config, make, [(batches[0], 0.3, 0.01), (batches[1], 0.1, 0.005)], close=1e-7)


CASES = {
    "plain": {"lam": 0.0, "disparity": None},
    "individual": {"lam": 2.0, "disparity": "d_ind"},
    "group": {"lam": 2.0, "disparity": "d_group", "utility": "dcg"},
    "entropy": {"lam": 2.0, "entropy": 0.5, "baseline": "loo"},
}
METHODS = ("sample", "exact")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_a_few_queries(case, method):
    """Small enough for planted_bugs.py, which run without compiling."""
    data = ragged(3, [4, 1, 6, 5], groups=2)
    config = TrainConfig(**CASES[case], method=method, optimizer="sgd", samples=4)
    scores = torch.randn(16, generator=torch.Generator().manual_seed(1)).double()
    batches = [torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3])]
    same(data, config, scored(scores), [(batches, config.entropy, 1.0)])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_scores_far_apart_and_tied(case, method):
    config = TrainConfig(**CASES[case], method=method, optimizer="sgd", tolerance=1e-8)
    data = ragged(5, [7, 7, 7, 250, 1], grades=1 if case == "plain" else 60)
    g = torch.Generator().manual_seed(2)
    scores = torch.randn(data.n_documents, generator=g, dtype=torch.float64)
    scores[:7] *= 3000.0
    scores[7:14] = 0.25
    scores[14:21] = torch.tensor([900.0, 900, -900, -900, 0, 30, 30])
    if case == "individual":  # between equals of equal merit rounding decides who is ahead
        data.relevance[7:21] = torch.arange(14) % 7 + 1.0
    batches = [torch.tensor([3]), torch.tensor([0, 4]), torch.tensor([1]), torch.tensor([2])]
    same(data, config, scored(scores), [(batches, config.entropy, 1.0)])


# Twenty seconds of compiling for each pair: mixed ones are left to the thorough run.
@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("features", "weights"),
    [
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
        pytest.param(torch.float32, torch.float64, marks=pytest.mark.thorough),
        pytest.param(torch.float64, torch.float32, marks=pytest.mark.thorough),
    ],
)
def test_number_formats(method, features, weights):
    data = ragged(4, [5, 3, 8], features=6, dtype=features, grades=9)
    config = TrainConfig(**CASES["individual"], method=method, samples=5, tolerance=1e-5)
    epochs = [([torch.tensor([2]), torch.tensor([0, 1])], 0.0, 0.01)]
    coarse = 5e-4 if torch.float32 in (features, weights) else 1e-8
    for model in (LinearScorer, MLPScorer):

        def make(model=model):
            g = torch.Generator().manual_seed(3)
            return started(model, 6, 0.3, g, weights)

        same(data, config, make, epochs, weights, coarse)


BIASES = {
    "cut-off": torch.tensor([1.0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    "geometric": 0.7 ** torch.arange(12),
    "rugged": torch.tensor([1.0, 0.2, 0.9, 0.1, 0.4, 0.3, 0.1, 0.5, 0, 0, 0.3, 0.2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bias", BIASES)
def test_other_position_biases(bias, method):
    data = ragged(6, [10, 3, 12, 1, 2], groups=0)
    config = TrainConfig(
        lam=1.0,
        disparity="d_ind",
        position_bias=BIASES[bias].double(),
        method=method,
        optimizer="sgd",
    )
    scores = torch.randn(28, generator=torch.Generator().manual_seed(1)).double()
    same(data, config, scored(scores), [([torch.tensor([0, 1, 4]), torch.tensor([2])], 0.0, 1.0)])
    group = dict(vars(config), disparity="d_group", lam=0.0)  # no groups: no disparity
    same(data, TrainConfig(**group), scored(scores), [([torch.tensor([2])], 0.0, 1.0)])


@pytest.mark.parametrize("k", [1, 3])
def test_the_first_places_exactly(k):
    """Lists long enough for k places to be few, and short ones among them."""
    data = ragged(8, [17, 3, 12, 1, 9, 2], groups=2)
    config = TrainConfig(
        lam=1.0,
        method="exact",
        position_bias=position_bias(17, k=k, dtype=torch.float64),
        optimizer="sgd",
    )
    batches = [torch.tensor([0, 1, 4]), torch.tensor([2]), torch.tensor([3, 5])]
    for spread in (1.0, 60.0):
        scores = spread * torch.randn(44, generator=torch.Generator().manual_seed(1)).double()
        same(data, config, scored(scores), [(batches, 0.0, 1.0)])


TO_GO = {
    "whole lists": None,
    "three places": torch.tensor([1.0, 0.5, 0.2, *[0.0] * 9]).double(),
}


@pytest.mark.parametrize("places", TO_GO)
@pytest.mark.parametrize("baseline", ["mean", "loo", "uniform", None])
def test_reward_to_go(baseline, places):
    """On ragged queries, and with scores so far apart that weights vanish."""
    data = ragged(6, [10, 3, 12, 1, 2], groups=2)
    config = TrainConfig(
        lam=1.0,
        samples=4,
        baseline=baseline,
        reward_to_go=True,
        position_bias=TO_GO[places],
        optimizer="sgd",
    )
    batches = [torch.tensor([0, 1, 4]), torch.tensor([2]), torch.tensor([3])]
    for spread in (1.0, 600.0):
        scores = spread * torch.randn(28, generator=torch.Generator().manual_seed(1)).double()
        same(data, config, scored(scores), [(batches, 0.0, 1.0)])


def test_pieces_and_a_bias_change_nothing(monkeypatch):
    """One call per epoch, one per query, or one for a few."""
    data = ragged(7, [5, 3, 8, 2, 6], features=4)
    config = TrainConfig(lam=1.0, lr=0.01)
    batches = torch.tensor([3, 1, 0, 4, 2]).split(1)
    ends = []
    for queries in (10**6, 1, 3):
        monkeypatch.setattr(compiled_epochs, "_QUERIES_PER_CALL", queries)
        g = torch.Generator().manual_seed(0)
        scorer = LinearScorer(4, bias=True, generator=g, dtype=torch.float64)
        terms, norms, _ = by_numba(scorer, data, config, [(batches, 0.0, 0.01)] * 2)
        ends.append([terms, norms, scorer.linear.weight.detach().numpy()])
    for other in ends[1:]:
        for one, two in zip(ends[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", [LinearScorer, MLPScorer])
def test_a_large_batch_is_shared_out_to_threads(model, method, monkeypatch):
    """The same to rounding as in one piece, and to the last bit on any number of threads."""
    data = ragged(17, [5, 3, 8, 2, 6, 1, 9, 4, 7, 3, 5], features=4)
    choices = {"lam": 1.0, "disparity": "d_ind", "entropy": 0.1, "batch_size": 10}
    config = TrainConfig(method=method, **choices)
    batches = [torch.tensor([3, 1, 0, 4, 2, 9, 5, 8, 7, 6]), torch.tensor([10])]
    monkeypatch.setattr(compiled_epochs, "SHARED", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    ends, shared = [], []
    maps = ThreadPoolExecutor.map

    def counted(pool, work, *given):
        shared.append(pool._max_workers)
        return maps(pool, work, *given)

    monkeypatch.setattr(ThreadPoolExecutor, "map", counted)

    def make():
        return started(model, 4, 0.5, torch.Generator().manual_seed(3), torch.float64)

    same(data, config, make, [(batches, 0.1, 0.01)] * 2)
    assert shared == [3] * 8  # twice in each of four updates
    for threads in (1, 4):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        terms, norms, _ = by_numba(scorer := make(), data, config, [(batches, 0.1, 0.01)] * 2)
        ends.append([terms, norms, *(p.detach().numpy() for p in scorer.parameters())])
    for one, two in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_batch_that_is_not_worth_it_stays_in_one_piece(monkeypatch):
    data = ragged(17, [5, 3, 8, 2], features=4)
    config = TrainConfig(batch_size=4)
    monkeypatch.setattr(ThreadPoolExecutor, "map", lambda *given: pytest.fail("shared out"))
    scorer = LinearScorer(4, dtype=torch.float64)
    by_numba(scorer, data, config, [([torch.arange(4)], 0.0, 0.01)])


@given(st.lists(st.floats(0.0, 495.0), min_size=1, max_size=40))
def test_the_exponential_of_the_race(values):
    y = np.array([0.0, *values, 495.0])
    found = np.array([exp_minus(value) for value in y])
    assert (np.abs(found / np.exp(-y) - 1.0) <= (3.0 + y) * np.finfo(float).eps).all()
    assert found[0] == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_where_it_stops_being_finite_is_named(method):
    data = ragged(8, [3, 4, 2, 5], features=2)
    data.features[8] = torch.inf
    scorer = LinearScorer(2, dtype=torch.float64)
    config = TrainConfig(lr=0.1, method=method)
    run = Epoch(scorer, data, config, optimizer_of(scorer, config), batch_size=1).run
    seen = run(torch.arange(4), [1] * 4, torch.Generator().manual_seed(0), 0.0, 0.1)
    assert seen.bad == [2]
    assert torch.isfinite(scorer.linear.weight).all()
    assert np.isfinite(seen.norms).tolist() == [True, True, False, False]


def test_no_moment_becomes_denormal():
    """A feature that was seen once: its moments fade to zero, not to numbers that cost time."""
    x = torch.zeros(2000, 2)
    x[::2, 0] = 1.0
    x[0, 1] = 1.0
    data = RankingDataset(x, x[:, 0], torch.arange(0, 2001, 2))
    scorer = LinearScorer(2, init=0.0)
    config = TrainConfig(disparity=None)
    optimizer = optimizer_of(scorer, config)
    run = Epoch(scorer, data, config, optimizer, batch_size=config.batch_size).run
    run(torch.arange(1000), [1] * 1000, torch.Generator().manual_seed(0), 0.0, 1e-3)
    moment = optimizer.state_dict()["state"][0]["exp_avg"]
    assert moment[0, 0] != 0.0
    assert moment[0, 1] == 0.0


class Mine(LinearScorer):
    pass


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"utility": err}, "utility is <function err"),
        ({"disparity": lambda v, m, g, k: v.sum(-1)}, "disparity is <function"),
        ({"scorer": LinearScorer(4, dtype=torch.bfloat16)}, "neither float32 nor float64"),
        ({"scorer": LinearScorer(4).to("meta")}, "the scorer is on meta"),
        ({"scorer": torch.nn.Linear(4, 1)}, "Linear is neither"),
        ({"scorer": Mine(4)}, "Mine is neither"),
        ({"scorer": LinearScorer(4).requires_grad_(False)}, "frozen"),
        ({"features": torch.zeros(4, 8).T}, "not one contiguous"),
        ({"features": torch.zeros(8, 4).half()}, "not one contiguous"),
    ],
)
def test_what_it_does_not_serve(changes, reason):
    data = ragged(1, [3, 5], features=4)
    assert switch.why_not(LinearScorer(4), data, TrainConfig()) is None
    changes = dict(changes)
    scorer = changes.pop("scorer", LinearScorer(4))
    data = data.replace(features=changes.pop("features", data.features))
    assert reason in switch.why_not(scorer, data, TrainConfig(**changes))


def trained(way, size=1, epochs=3, **rest):
    data = ragged(9, [5, 3, 8, 2, 6, 4, 4], features=4)
    config = TrainConfig(
        lam=1.0, disparity="d_ind", batch_size=size, epochs=epochs, lr=0.02, lr_decay=0.5,
        entropy=0.2, compiled=way, seed=4,
    )  # fmt: skip
    g = torch.Generator().manual_seed(0)
    scorer = MLPScorer(4, 6, generator=g, dtype=torch.float64)
    history = fit(scorer, data, config, progress=False, **rest)
    return scorer.hidden.weight.detach().numpy(), history


@pytest.mark.parametrize("size", [1, 3])
def test_fit_takes_the_way_it_is_told_to_the_same_end(size, monkeypatch):
    plain, history = trained(False, size)
    quick, history2 = trained(True, size)
    assert (history.compiled, history2.compiled) == (False, True)
    np.testing.assert_allclose(quick, plain, rtol=1e-7, atol=1e-9)
    for name in ("utility", "disparity", "entropy", "gradient_norm"):
        np.testing.assert_allclose(getattr(history2, name), getattr(history, name), rtol=1e-7)
    assert not trained("auto", size)[1].compiled  # too short a run
    monkeypatch.setattr(switch, "WORTHWHILE", 21)
    assert trained("auto", size)[1].compiled
    assert not trained("auto", size, epochs=2)[1].compiled


def test_a_checkpoint_is_continued_bit_by_bit(tmp_path):
    whole, _ = trained(True, epochs=4)
    trained(True, epochs=2, checkpoint=tmp_path / "c.pt")
    parts, history = trained(True, epochs=4, checkpoint=tmp_path / "c.pt")
    np.testing.assert_array_equal(parts, whole)
    assert history.compiled
    assert len(history) == 4
    trained(False, epochs=2, checkpoint=tmp_path / "d.pt")  # begun the one way, ended the other
    parts, _ = trained(True, epochs=4, checkpoint=tmp_path / "d.pt")
    np.testing.assert_allclose(parts, whole, rtol=1e-7, atol=1e-9)


def test_true_where_it_cannot_serve_says_why():
    data = ragged(1, [3, 5], features=4)
    with pytest.raises(ValueError, match=r"compiled=True, but utility is <function err"):
        fit(LinearScorer(4), data, TrainConfig(utility=err, compiled=True), progress=False)


def test_an_epoch_that_fails_names_the_query():
    data = ragged(1, [3, 5], features=4)
    config = TrainConfig(lr=1.7e308, compiled=True)
    scorer = LinearScorer(4, dtype=torch.float64)
    with pytest.raises(FloatingPointError, match=r"not finite in epoch \d+, at query \["):
        fit(scorer, data, config, progress=False)


@pytest.mark.slow
def test_without_numba_everything_goes_the_other_way():
    code = """
import sys
sys.modules["numba"] = None
import torch
from fairpg_lite import LinearScorer, TrainConfig, fit, synthetic
from fairpg_lite.compiled import switch
switch.WORTHWHILE = 1
data = synthetic(n_queries=4, seed=0)
print(fit(LinearScorer(2), data, TrainConfig(epochs=2), progress=False).compiled)
try:
    fit(LinearScorer(2), data, TrainConfig(epochs=2, compiled=True), progress=False)
except ValueError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, error = out.stdout.splitlines()
    assert first == "False"
    assert "Numba cannot be imported" in error
    assert "fairpg-lite[fast]" in error


# A folder of two kernels, of which one calls the other in another file, and how it is asked.
INNER = """
from folder.kernel import kernel

@kernel
def inner(x):
    return x + {}
"""
OUTER = """
from folder.inner import inner
from folder.kernel import kernel

@kernel
def outer(x):
    return 2.0 * inner(x)
"""
ASK = """
from folder.outer import outer
value = outer(1.0)
print(value, sum(outer.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_an_edit_of_a_kernel_is_noticed_by_those_who_call_it(tmp_path):
    """Numba itself looks only at the file of the function that is called from Python."""
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(kernel.__file__, folder / "kernel.py")
    (folder / "outer.py").write_text(OUTER)
    # The interpreter that runs the tests may be told not to compile, or where to keep the cache.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}

    def ask(added):
        (folder / "inner.py").write_text(INNER.format(added))
        out = subprocess.run(
            [sys.executable, "-c", ASK],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        value, cache_hits = out.stdout.split()
        return float(value), int(cache_hits)

    assert ask(1.0) == (4.0, 0)
    assert ask(1.0) == (4.0, 1)
    assert ask(2.0) == (6.0, 0)
    assert ask(1.0) == (4.0, 1)


def test_a_kernel_uses_nothing_from_outside_its_folder():
    """Or else its cache would not notice a change there."""
    package = "fairpg_lite.compiled.kernels"
    for path in Path(kernel.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("fairpg_lite"):
                assert node.module.startswith(package), f"{path.name} imports {node.module}"
