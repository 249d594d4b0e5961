"""fit: Algorithm 1 to the letter, reproducible, resumable, and clear about what is wrong."""

import functools
import math

import pytest
import torch
from torch.testing import assert_close

import fairpg_lite as fl
from fairpg_lite import (
    LinearScorer,
    MLPScorer,
    PlackettLuce,
    RankingDataset,
    TrainConfig,
    evaluate,
    fit,
    reference,
    synthetic,
)


def linear(d=2, seed=0, **kwargs):
    g = torch.Generator().manual_seed(seed)
    return LinearScorer(d, dtype=torch.float64, generator=g, **kwargs)


def theta(scorer):
    return scorer.linear.weight.detach().flatten().clone()


def quick(**changes):
    settings = {"lr": 0.1, "lr_decay": 0.5, "epochs": 3, "batch_size": 1, "lam": 5.0}
    return TrainConfig(**{**settings, **changes})


# --- Algorithm 1 -------------------------------------------------------------------------------


@pytest.mark.parametrize("disparity", ["d_group", "d_ind"])
def test_fit_is_algorithm_one(monkeypatch, disparity):
    """The same rankings through `fit` and through the paper's loop: the same weights."""
    data = synthetic(n_queries=6, n_docs=5, seed=3).to(dtype=torch.float64)
    drawn_rankings = []
    visited_queries = []
    sample = PlackettLuce.sample
    terms = TrainConfig.terms

    def remember_rankings(policy, shape, generator=None):
        rankings = sample(policy, shape, generator)
        drawn_rankings.append(rankings[:, 0])
        return rankings

    def remember_query(config, scores, batch, *arguments):
        visited_queries.append(int(batch.queries))
        return terms(config, scores, batch, *arguments)

    monkeypatch.setattr(PlackettLuce, "sample", remember_rankings)
    monkeypatch.setattr(TrainConfig, "terms", remember_query)
    scorer = linear(seed=1, init=0.5)
    literal = linear(seed=1, init=0.5)
    start = theta(scorer)
    config = quick(
        optimizer="sgd", lr_decay=1.0, disparity=disparity, entropy=0.3, samples=7, lam=4.0
    )
    fit(scorer, data, config, progress=False)
    assert len(visited_queries) == 18
    optimizer = torch.optim.SGD(literal.parameters(), lr=0.1)
    for q, rankings in zip(visited_queries, drawn_rankings, strict=True):
        features, relevance, groups = data[q]
        scores = literal(features)
        reference.take_step(
            optimizer,
            scores,
            rankings,
            relevance,
            groups,
            disparity=disparity,
            lam=4.0,
            gamma=0.3,
        )
    assert (theta(scorer) - start).abs().max() > 0.01
    assert_close(theta(scorer), theta(literal), rtol=0, atol=1e-12)


def test_exact_step_is_the_gradient_of_the_objective():
    """One full-batch SGD step moves along the numerical gradient of mean U - lam D."""
    data = synthetic(n_queries=8, n_docs=6, seed=1).to(dtype=torch.float64)
    scorer = linear(init=0.5)
    start = theta(scorer)
    config = TrainConfig(
        lam=3.0, method="exact", optimizer="sgd", lr=1.0, epochs=1, batch_size=8, tolerance=1e-11
    )

    def objective(weights):
        with torch.no_grad():
            scorer.linear.weight.copy_(weights.unsqueeze(0))
        result = evaluate(scorer, data)
        return result.ndcg - 3.0 * result.d_group

    h, slope = 1e-5, []
    for i in range(2):
        step = torch.zeros(2, dtype=torch.float64)
        step[i] = h
        slope.append((objective(start + step) - objective(start - step)) / (2 * h))
    with torch.no_grad():
        scorer.linear.weight.copy_(start.unsqueeze(0))
    fit(scorer, data, config, progress=False)
    assert_close(theta(scorer) - start, torch.tensor(slope, dtype=torch.float64), rtol=0, atol=1e-7)


# --- Reproducible ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sample", "exact"])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_same_seed_same_weights_to_the_bit(method, batch_size):
    data = synthetic(n_queries=20, seed=0)
    runs = []
    for _ in range(2):
        scorer = linear()
        fit(scorer, data, quick(method=method, batch_size=batch_size), progress=False)
        runs.append(theta(scorer))
    assert torch.equal(*runs)


def test_another_seed_gives_other_draws():
    data = synthetic(n_queries=20, seed=0)
    runs = []
    for seed in range(2):
        scorer = linear()
        fit(scorer, data, quick(seed=seed), progress=False)
        runs.append(theta(scorer))
    assert not torch.equal(*runs)


@pytest.mark.parametrize("method", ["sample", "exact"])
def test_threads_agree_to_rounding(method):
    data = synthetic(n_queries=64, n_docs=30, seed=0)
    runs = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            scorer = MLPScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
            fit(scorer, data, quick(method=method, batch_size=32, epochs=2), progress=False)
        finally:
            torch.set_num_threads(1)
        runs.append(torch.cat([p.detach().flatten() for p in scorer.parameters()]))
    assert_close(*runs, rtol=0, atol=1e-9)


# --- Stopping -----------------------------------------------------------------------------------


def test_patience_ends_the_run_and_keeps_the_best_weights():
    data, valid = synthetic(n_queries=20, seed=0), synthetic(n_queries=20, seed=1)
    scorer = linear()
    config = quick(lam=0.0, epochs=200, lr_decay=1.0, patience=2, lr=0.5)
    history = fit(scorer, data, config, valid, progress=False)
    assert history.stopped == "patience"
    assert len(history) < 200
    best = max(history.valid_utility)
    assert evaluate(scorer, valid).ndcg == pytest.approx(best, abs=1e-6)


def test_the_history_tells_of_the_epoch_that_is_kept():
    """Here the best epoch is not the last: repr, summary and ``kept`` speak of the best."""
    data, valid = synthetic(n_queries=20, seed=0), synthetic(n_queries=20, seed=1)
    config = quick(lam=0.0, epochs=200, lr_decay=1.0, patience=2, lr=0.5)
    history = fit(linear(), data, config, valid, progress=False)
    best = max(history.valid_utility)
    assert history.kept == 1 + history.valid_utility.index(best) < len(history)
    assert history.summary()["valid_utility"] == best
    assert f"of which {history.kept} is kept" in repr(history)
    assert f"valid utility {best:.5f}" in repr(history)
    summary = history.summary()
    assert (summary["kept"], summary["epochs"]) == (history.kept, len(history))
    assert summary["valid_utility"] == best
    alone = fit(linear(), data, quick(), progress=False)
    assert alone.kept == len(alone) == 3


class Dropped(torch.nn.Module):
    """A scorer that draws at random while it trains, with a part that never does."""

    def __init__(self):
        super().__init__()
        self.drop, self.linear = torch.nn.Dropout(0.5), torch.nn.Linear(2, 1, bias=False)
        self.frozen = torch.nn.Dropout(0.5).eval()

    def forward(self, features):
        return self.frozen(self.linear(self.drop(features))).squeeze(-1)


def test_validation_is_in_eval_mode_and_puts_back_the_mode():
    torch.manual_seed(0)
    data, scorer, modes = synthetic(n_queries=10), Dropped(), []
    scorer.drop.register_forward_hook(lambda module, *_: modes.append(module.training))
    history = fit(scorer, data, quick(lr=1e-12, epochs=3), data, progress=False)
    # The weights hardly move, so the policy's numbers do not, unless something is dropped.
    assert history.valid_utility[0] == pytest.approx(history.valid_utility[-1], abs=1e-6)
    assert set(modes) == {True, False}
    assert (scorer.training, scorer.drop.training, scorer.frozen.training) == (True, True, False)


def test_validation_queries_go_where_the_scorer_is(monkeypatch):
    """Shown without a GPU: training and validation data are both asked to go to the device."""
    data, valid, moved = synthetic(n_queries=5), synthetic(n_queries=4, seed=1), []
    to = RankingDataset.to

    def note(self, dtype=None, device=None):
        moved.append((len(self), str(device)))
        return to(self, dtype=dtype, device=device)

    monkeypatch.setattr(RankingDataset, "to", note)
    fit(linear(), data, quick(epochs=1), valid, progress=False)
    assert {(5, "cpu"), (4, "cpu")} <= set(moved)


@pytest.mark.parametrize("method", ["sample", "exact"])
def test_a_scorer_of_the_wrong_shape_is_refused(method):
    """Scores ``(…, n, 1)`` would broadcast against everything, train nothing, and look well."""
    data = synthetic(n_queries=5, n_docs=6).replace(groups=None)
    scorer = torch.nn.Linear(2, 1, dtype=torch.float64)
    before = scorer.weight.detach().clone()
    with pytest.raises(ValueError, match=r"makes \(1, 6, 1\) of features \(1, 6, 2\)"):
        fit(scorer, data, TrainConfig(method=method), progress=False)
    assert torch.equal(scorer.weight, before)


class Attention(torch.nn.Module):
    """A listwise scorer: each document looks at the others of its query, so it needs the mask."""

    def __init__(self, d):
        super().__init__()
        self.look = torch.nn.MultiheadAttention(d, 1, batch_first=True, dtype=torch.float64)
        self.last = torch.nn.Linear(d, 1, bias=False, dtype=torch.float64)

    def forward(self, features, mask):
        seen, _ = self.look(features, features, features, key_padding_mask=~mask)
        return self.last(features + seen).squeeze(-1)


def test_a_listwise_scorer_does_not_see_the_padding():
    """One update on eight queries of unlike length is the mean of eight updates without padding."""
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 9, (8,), generator=g)
    count = int(lengths.sum())
    data = RankingDataset(
        torch.randn(count, 4, generator=g, dtype=torch.float64),
        torch.randint(0, 3, (count,), generator=g).double(),
        torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]),
    )
    scorer = Attention(4)
    alone = Attention(4)
    alone.load_state_dict(scorer.state_dict())
    config = quick(method="exact", disparity=None, lam=0.0, optimizer="sgd", epochs=1, batch_size=8)
    fit(scorer, data, config, data, progress=False)
    gradients = []
    for query in data:  # without padding: one query at a time, the gradients added up
        alone.zero_grad()
        scores = alone(query.features.unsqueeze(0), torch.ones(1, len(query.relevance)) > 0)
        exposure = PlackettLuce(scores).exposure(tolerance=1e-9)
        fl.expected_ndcg(exposure, query.relevance.unsqueeze(0)).backward()
        gradients.append([p.grad.clone() for p in alone.parameters()])
    for k, (p, q) in enumerate(zip(scorer.parameters(), alone.parameters(), strict=True)):
        mean = sum(row[k] for row in gradients) / len(gradients)
        assert_close(p.detach(), q.detach() + 0.1 * mean, rtol=0, atol=1e-5)


# --- Threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("features", "expected"), [(2, 1), (300, 2)])
def test_a_small_update_wakes_no_second_thread(monkeypatch, features, expected):
    monkeypatch.setattr(fl.training.loop, "SHARED", 1000)
    data, seen = synthetic(n_queries=4, n_docs=5), []
    data = data.replace(features=torch.ones(20, features, dtype=torch.float64))

    def watching(exposure, merit, groups, mask):
        seen.append(torch.get_num_threads())
        return exposure.sum(-1)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        fit(linear(features), data, quick(disparity=watching, epochs=1), progress=False)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {expected}


# --- Learning ----------------------------------------------------------------------------------


def test_fairness_weight_trades_ndcg_for_disparity_on_the_synthetic_data():
    """Four seeds of the paper's section 4.2: the tendencies, not the digits (those: results/)."""
    figures = {}
    for lam in (0.0, 5.0, 10.0, 25.0):
        rows = []
        for seed in range(4):
            data, scorer = synthetic(seed=seed), linear(seed=seed)
            config = TrainConfig(
                lam=lam, method="exact", lr=0.1, lr_decay=0.7, epochs=12, batch_size=10, seed=seed
            )
            fit(scorer, data, config, progress=False)
            result, (one, two) = evaluate(scorer, data), theta(scorer).tolist()
            rows.append((result.ndcg, result.d_group, two / one))
        figures[lam] = torch.tensor(rows).mean(0).tolist()
    ndcg, disparity, ratio = zip(*figures.values(), strict=True)
    assert list(ndcg) == sorted(ndcg, reverse=True)
    assert list(disparity) == sorted(disparity, reverse=True)
    assert ratio[0] > 0.6
    assert ratio[2] < 0.5


@pytest.mark.parametrize(
    "utility",
    ["dcg", fl.err, lambda *args, mask: -fl.average_rank(*args, mask=mask).nan_to_num(), fl.ndcg],
)
def test_any_metric_is_learned(utility):
    """Two features make a document relevant, a third is noise: each metric finds them."""
    g = torch.Generator().manual_seed(0)
    n, q = 6, 60
    x = torch.randn(q * n, 3, generator=g, dtype=torch.float64)
    relevance = (x[:, 0] - x[:, 1] > 1.0).double()
    data = RankingDataset(x, relevance, torch.arange(q + 1) * n)
    scorer = LinearScorer(3, dtype=torch.float64, generator=g)
    before = evaluate(scorer, data).ndcg
    config = TrainConfig(utility=utility, lr=0.05, epochs=5, batch_size=5, disparity=None)
    history = fit(scorer, data, config, progress=False)
    assert evaluate(scorer, data).ndcg > before + 0.1
    assert history.utility[-1] > history.utility[0]
    weights = theta(scorer)
    assert weights[0] > 0 > weights[1]


def test_entropy_keeps_the_policy_stochastic():
    data = synthetic(n_queries=30, seed=0).to(dtype=torch.float64)
    entropies = []
    for gamma in (0.0, 1.0):
        scorer = linear()
        config = quick(lam=0.0, entropy=gamma, method="exact", epochs=6, lr_decay=0.9)
        fit(scorer, data, config, progress=False)
        scores = torch.stack([scorer(q.features) for q in data]).detach()
        entropies.append(float(PlackettLuce(scores).softmax_entropy().mean()))
    assert entropies[1] > entropies[0] + 0.2


def test_a_disparity_of_ones_own():
    """Statistical parity in one line: the groups' mean exposures may not differ."""

    def parity(exposure, merit, groups, mask):
        first = (exposure * (groups == 0)).sum(-1) / (groups == 0).sum(-1).clamp(min=1)
        second = (exposure * (groups == 1)).sum(-1) / (groups == 1).sum(-1).clamp(min=1)
        return (first - second).square()

    data = synthetic(n_queries=40, seed=0).to(dtype=torch.float64)
    gaps = []
    for lam in (0.0, 50.0):
        scorer = linear()
        config = quick(disparity=parity, lam=lam, method="exact", epochs=5)
        fit(scorer, data, config, progress=False)
        scores = torch.stack([scorer(q.features) for q in data]).detach()
        exposure = PlackettLuce(scores).exposure()
        groups = torch.stack([q.groups for q in data])
        gaps.append(float(parity(exposure, None, groups, None).mean()))
    assert gaps[1] < 0.5 * gaps[0]


def test_history_tells_what_happened():
    data = synthetic(n_queries=12, seed=0)
    history = fit(linear(), data, quick(entropy=0.1), data, progress=False)
    columns = vars(history)
    for name in ("utility", "disparity", "entropy", "gradient_norm", "valid_utility"):
        assert len(columns[name]) == 3
        assert all(math.isfinite(x) for x in columns[name])
    assert "3 epochs" in repr(history)


# --- Errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lam": -1.0}, "lam is -1.0"),
        ({"lam": float("nan")}, "lam is nan"),
        ({"samples": 1}, "samples is 1.*needs at least two"),
        ({"samples": 0}, "samples is 0"),
        ({"samples": 2.5}, "samples is 2.5"),
        ({"epochs": 0}, "epochs is 0"),
        ({"lr": -0.1}, "lr is -0.1"),
        ({"method": "guess"}, "method is 'guess'"),
        ({"baseline": "median"}, "baseline is 'median'"),
        ({"utility": "clicks"}, "utility is 'clicks'"),
        ({"disparity": "both"}, "disparity is 'both'"),
        ({"merit": "cube"}, "merit is 'cube'"),
        ({"optimizer": "lion"}, "optimizer is 'lion'"),
        ({"patience": 0}, "patience is 0"),
        ({"lam": 1.0, "disparity": None}, "lam is 1.0; there is no disparity"),
    ],
)
def test_settings_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 3.0}, "epochs is 3.0"),
        ({"batch_size": True}, "batch_size is True"),
        ({"seed": 10**23}, "seed is 10+; give a whole number"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"lr": math.inf}, "lr is inf"),
        ({"lr_decay": 1.5}, "lr_decay is 1.5; a decay makes less"),
        ({"compiled": "always"}, "compiled is 'always'"),
    ],
)
def test_settings_of_the_training_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**changes)


def test_weights_that_overflow_are_an_error():
    """In the last update, too, after which nothing is computed with them."""
    scorer = LinearScorer(2, dtype=torch.float32, generator=torch.Generator().manual_seed(0))
    data = synthetic(n_queries=50)
    config = quick(lr=1e38, epochs=1, batch_size=50, method="exact", optimizer="sgd")
    with pytest.raises(FloatingPointError, match="a weight is no longer finite after epoch 1"):
        fit(scorer, data.replace(features=1e3 * data.features), config, progress=False)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("lr", "decay"), [(1e38, 1.0), (1e300, 1.0), (1e300, 0.5)])
def test_a_huge_learning_rate_ends_in_finite_weights_or_in_our_error(
    lr, decay, dtype, optimizer, compiled
):
    scorer, data = LinearScorer(2, dtype=dtype), synthetic(n_queries=10)
    way = {"method": "exact", "optimizer": optimizer, "compiled": compiled}
    try:
        fit(scorer, data, quick(lr=lr, lr_decay=decay, **way), progress=False)
    except FloatingPointError as error:
        assert "learning rate" in str(error)  # noqa: PT017
    else:
        assert torch.isfinite(scorer.linear.weight).all()


@pytest.mark.parametrize("grade", [200, 127])  # of 127, the sum overflows: NDCG was 0
@pytest.mark.parametrize("utility", ["ndcg", "dcg"])
def test_a_grade_whose_gain_overflows_is_named(utility, grade):
    data = synthetic(n_queries=4, n_docs=5)
    data = data.replace(relevance=data.relevance * 0 + grade)
    scorer = LinearScorer(2, dtype=torch.float32)
    with pytest.raises(ValueError, match=rf"relevance of {grade} is too large.*float32"):
        fit(scorer, data, quick(utility=utility), progress=False)


def test_err_of_grades_beyond_its_scale_is_refused_with_the_way_out():
    data = synthetic(n_queries=4, n_docs=5)
    data = data.replace(relevance=data.relevance * 0 + 5.0)
    with pytest.raises(ValueError, match=r"relevance 5.0 is above max_grade=4.*top grade"):
        fit(linear(), data, quick(utility=fl.err), progress=False)
    utility = functools.partial(fl.err, max_grade=5)
    assert len(fit(linear(), data, quick(utility=utility, epochs=1), progress=False)) == 1


def test_one_sample_is_fine_without_a_baseline():
    assert TrainConfig(samples=1, baseline=None).samples == 1
    assert TrainConfig(samples=1, method="exact").samples == 1


def test_no_queries_are_said():
    data = synthetic(n_queries=3)
    with pytest.raises(ValueError, match="fit: the dataset holds no query"):
        fit(linear(), data[:0], quick(), progress=False)
    with pytest.raises(ValueError, match="fit: the validation set holds no query"):
        fit(linear(), data, quick(), data[:0], progress=False)


def test_missing_groups_are_said():
    data = synthetic(n_queries=3).replace(groups=None)
    with pytest.raises(ValueError, match="needs groups"):
        fit(linear(), data, quick(), progress=False)


def test_bad_features_name_the_query():
    data = synthetic(n_queries=4, n_docs=5)
    features = data.features.clone()
    features[12, 1] = float("nan")
    with pytest.raises(ValueError, match=r"features of query 2, at \[2, 1\] is nan"):
        fit(linear(), data.replace(features=features), quick(), progress=False)


def test_a_loss_that_blows_up_names_query_and_epoch():
    data = synthetic(n_queries=4, n_docs=5)

    def explode(exposure, merit, groups, mask):
        value = fl.group_disparity(exposure, merit, groups, mask)
        return value / 0.0 if explode.count == 5 else value

    def counted(exposure, merit, groups=None, mask=None):
        explode.count += 1
        return explode(exposure, merit, groups, mask)

    explode.count = -1
    with pytest.raises(FloatingPointError, match=r"epoch 2, at query \[\d\]"):
        fit(linear(), data, quick(disparity=counted), progress=False)


def test_progress_goes_to_stderr_and_can_be_silenced(capsys):
    fit(linear(), synthetic(n_queries=3), quick(epochs=1), progress=False)
    assert capsys.readouterr().err == ""
    fit(linear(), synthetic(n_queries=3), quick(epochs=1), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "training" in shown.err


def test_a_scorer_with_nothing_to_train_is_refused():
    data = fl.synthetic(n_queries=2, seed=0)
    with pytest.raises(ValueError, match="Identity has no parameters"):
        fl.fit(torch.nn.Identity(), data, progress=False)
    with pytest.raises(ValueError, match="all parameters of LinearScorer are frozen"):
        fl.fit(fl.LinearScorer(2).requires_grad_(False), data, progress=False)
