"""The reproductions: what a method's result says, tables against numpy and scipy, figures."""

import json
import math
import pickle

import numpy as np
import pytest
import torch
from scipy import stats

import fairpg_lite as fl
from experiments import german, learners, methods, plots, protocol, synthetic
from experiments.catalogue import (
    AGE_CODE,
    AGE_TEXT,
    CLIPPED_AT_4,
    CLIPPED_AT_5,
    DELTR,
    DELTR_CODE,
    FAIR_PG_RANK,
    FAIR_PG_RANK_EXACT,
    METHODS,
    POST_PROCESSING,
    POST_PROCESSING_WITH_FACTOR,
    SEX,
    SEX_CODE,
    SEX_TEXT,
    STARTED_WIDE,
    UNIFORM,
    VARIANTS,
    identify,
    in_order,
)
from experiments.learners import linear_regression
from experiments.methods import (
    Deltr,
    Fixed,
    Ideal,
    PostProcessing,
    PublishedDeltr,
    Uniform,
    fair_pg_rank,
)
from experiments.problems import GermanData, SyntheticData
from experiments.summary import summarise, write_summary
from fairpg_lite.post_processing import post_process
from fairpg_lite.relevance import linear_gain
from fairpg_lite.sweeps import experiment as library

SMALL = SyntheticData(n_queries=8)
GERMAN = GermanData(n_train=12, n_test=6)


def cell(experiment, lam, seed, **result):
    return {
        "experiment": experiment,
        "lam": lam,
        "seed": seed,
        "status": "done",
        "result": result,
        "versions": {"python": "3.11"},
        "commit": "abc",
        "seconds": 1.0,
    }


def random_cells(n=6):
    rng = np.random.default_rng(0)
    return [
        cell(m, lam, s, ndcg=rng.random(), d_group=rng.random(), theta=[1.0], note="x", flag=True)
        for m in (UNIFORM.on(CLIPPED_AT_5), DELTR_CODE.on(CLIPPED_AT_4))
        for lam in (0.0, 2.5)
        for s in range(n)
    ]


# Tables


def test_means_and_intervals_are_numpys_and_scipys():
    cells = random_cells()
    rows = summarise(cells)
    assert len(rows) == 4
    for row in rows:
        setting = (row["experiment"], row["lam"])
        mine = [c for c in cells if (c["experiment"], c["lam"]) == setting]
        assert row["n"] == len(mine) == 6
        for name in ("ndcg", "d_group"):
            values = [c["result"][name] for c in mine]
            mean, sd, half = row[name]
            assert mean == pytest.approx(np.mean(values), rel=1e-14)
            assert sd == pytest.approx(np.std(values, ddof=1), rel=1e-14)
            low, high = stats.t.interval(0.95, 5, np.mean(values), stats.sem(values))
            assert (mean - half, mean + half) == pytest.approx((low, high), rel=1e-12)
        assert row.keys() == {"experiment", "lam", "n", "ndcg", "d_group"}


def test_one_seed_has_no_interval_and_failures_do_not_count():
    cells = [cell("m", 0.0, 0, ndcg=0.5), cell("m", 0.0, 1, ndcg=0.9)]
    cells[1] = {**cells[1], "status": "failed", "error": {}}
    (row,) = summarise(cells)
    assert (row["n"], row["ndcg"].mean, str(row["ndcg"])) == (1, 0.5, "0.5000")
    assert math.isnan(row["ndcg"].sd)


def test_the_summary_holds_the_numbers_and_says_where_they_come_from(tmp_path):
    cells = random_cells()
    about = {"command": "the call", "data": "Some data."}
    text = write_summary(cells, tmp_path, about).read_text("utf-8")
    assert all(words in text for words in about.values())
    for row in summarise(cells):
        assert f"| {row['lam']:g} | 6 | {row['ndcg']} | {row['d_group']} |" in text
    # By data in the order of the catalogue, and without columns that no cell has.
    assert text.index(CLIPPED_AT_5.label) < text.index(CLIPPED_AT_4.label)
    assert "sorted" not in text


# Names


def test_a_name_is_found_again():
    for variant in VARIANTS:
        for method in METHODS:
            assert identify(method.on(variant)) == (method, variant)
    for method in METHODS:
        assert identify(method.name) == (method, None)
    assert identify("mine").method.label == "mine"


def test_no_two_experiments_share_a_name():
    names = [method.name for method in METHODS]
    names += [method.on(variant) for method in METHODS for variant in VARIANTS]
    assert len(set(names)) == len(names)


def test_names_sort_by_data_and_then_by_method():
    names = [UNIFORM.on(SEX), "mine", FAIR_PG_RANK.on(SEX), UNIFORM.on(CLIPPED_AT_5)]
    wanted = [UNIFORM.on(CLIPPED_AT_5), FAIR_PG_RANK.on(SEX), UNIFORM.on(SEX), "mine"]
    assert sorted(names, key=in_order) == wanted


@pytest.mark.parametrize(
    "unnamed",
    [
        lambda: Uniform(SyntheticData(clip=3.0)).name,
        lambda: Uniform(GermanData(group="age")).name,
        lambda: Fixed(SMALL, use=0.5).name,
        lambda: Deltr(SMALL, "both").name,
    ],
)
def test_a_setting_without_a_name_says_where_to_give_it_one(unnamed):
    with pytest.raises(ValueError, match=r"catalogue\.py"):
        unnamed()


# Methods


def scorer_with(theta):
    model = fl.LinearScorer(len(theta), dtype=torch.float64)
    with torch.no_grad():
        model.linear.weight.copy_(torch.tensor([theta], dtype=torch.float64))
    return model


@pytest.mark.parametrize(
    "experiment",
    [
        fair_pg_rank(SMALL, epochs=1),
        fair_pg_rank(SMALL, "exact", epochs=1),
        fair_pg_rank(GERMAN, samples=25, epochs=1, lr=0.01, lr_decay=1.0),
        *(Deltr(SMALL, gap) for gap in ("one-sided", "two-sided")),
        PublishedDeltr(SMALL, "sgd"),
        PublishedDeltr(SMALL, "adam"),
        Deltr(GERMAN, "one-sided"),
    ],
    ids=lambda e: e.name,
)
def test_the_stored_model_has_the_stored_figures(experiment):
    result = experiment(2.0, 3)
    assert experiment(2.0, 3) == result
    scorer, parts = scorer_with(result["theta"]), experiment.problem.load(3)
    for prefix, dataset in (("", parts.test), ("train_", parts.train)):
        for kind, deterministic in (("", False), ("sorted_", True)):
            names = ("ndcg", "d_group", "group_gap")
            found = fl.evaluate(scorer, dataset, names, deterministic=deterministic)
            for name in names:
                stored = result[prefix + kind + name]
                assert stored == pytest.approx(found.means[name], abs=1e-12)
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    "experiment",
    [fair_pg_rank(SMALL, epochs=1), PostProcessing(SMALL), Deltr(SMALL)],
    ids=lambda e: e.name,
)
def test_torchs_default_number_format_changes_nothing(experiment):
    """A chapter works in float64, the command line in float32: the same cell all the same."""
    before = torch.get_default_dtype()
    found = []
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            found.append(experiment(3.0, 1))
        finally:
            torch.set_default_dtype(before)
    assert found[0] == found[1]


def test_training_is_the_papers(monkeypatch):
    """What `fit` is asked for: the exact settings are in the cell, none is forgotten."""
    asked = []
    monkeypatch.setattr(library, "fit", lambda s, d, config, *_, **__: asked.append(config))
    (plan_cell,) = [
        c for c in german.plan(seeds=1) if c.experiment.name == FAIR_PG_RANK.on(SEX) and c.lam == 10
    ]
    plan_cell.experiment.train(10.0, 4)
    (config,) = asked
    assert (config.lr, config.lr_decay, config.epochs) == (1e-3, 1.0, 10)
    assert (config.samples, config.batch_size, config.entropy) == (25, 1, 0.0)
    assert (config.lam, config.seed, config.disparity) == (10.0, 4, "d_group")


def test_a_reproduction_saves_no_models():
    """A folder `out` in the signature would ask for one of each of two thousand runs."""
    with pytest.raises(TypeError):
        fair_pg_rank(SMALL, epochs=1)(0.0, 0, out="somewhere")


def test_post_processing_reads_both_ways():
    """By the definition the estimates become fair; the authors' scaling makes the truth unfair."""
    problem = SyntheticData(n_queries=20)
    start, end = (PostProcessing(problem)(lam, 0) for lam in (0.0, 1000.0))
    assert end["d_group_estimated"] < 1e-9 < start["d_group_estimated"]
    theirs = PostProcessing(problem, "authors")(6.0, 0)
    assert theirs["d_group"] > 1.5 * start["d_group"]
    parts = problem.load(0)
    model = linear_regression(parts.train, intercept=False)
    guess = model(parts.test.features).detach()
    policies = post_process(parts.test, guess, 6.0, scaling="authors", gain=linear_gain)
    found = fl.evaluate(policies, parts.test)
    assert theirs["d_group"] == pytest.approx(found.d_group, abs=1e-7)


def test_an_intercept_is_one_more_weight():
    """Without it the residuals need not have mean 0; a full one-hot coding has it anyway."""
    data = SyntheticData(n_queries=20).load(0).train
    for intercept in (True, False):
        model = linear_regression(data, intercept=intercept)
        residuals = data.relevance - model(data.features).detach()
        assert (data.features.T @ residuals).abs().max() < 1e-8 * len(residuals)
        assert (abs(residuals.mean()) < 1e-10) == intercept
    people = GERMAN.load(0).train
    both = [linear_regression(people, intercept=x)(people.features) for x in (True, False)]
    assert torch.allclose(*both, atol=1e-8)


def test_what_is_trained_on_does_not_judge():
    for problem in (SMALL, GermanData(split="random", redrawn=True, n_train=12, n_test=6)):
        for seed in (0, 3):
            parts = problem.load(seed)
            assert not set(map(tuple, parts.train.features.tolist())) & set(
                map(tuple, parts.test.features.tolist())
            )


def test_published_deltr_goes_downhill_and_keeps_the_best_rate():
    """Against the optimum of the same loss: never below it, and near it at a small lambda."""
    parts = SMALL.load(0)
    for lam in (0.0, 10.0):
        start = methods.initial_scorer(parts.train, 0)
        found = learners.deltr_as_published(parts.train, lam, scorer=start)
        best = learners.deltr(
            parts.train, lam, scorer=methods.initial_scorer(parts.train, 0), gap="two-sided"
        )
        batch = next(iter(parts.train.batches(8)))
        losses = []
        for scorer in (found.scorer, best):
            loss = learners.deltr_loss(
                scorer(batch.features), batch.relevance, batch.groups, lam, gap="two-sided"
            )
            losses.append(loss.mean().item())
        assert found.loss == pytest.approx(losses[0], abs=1e-9)
        assert losses[1] - 1e-9 <= losses[0] < losses[1] + 0.1
        assert found.rate in learners.RATES


@pytest.mark.parametrize("gap", ["one-sided", "two-sided", "reversed"])
def test_the_slope_of_published_deltr_is_autograds(gap):
    batch = next(iter(SMALL.load(0).train.batches(8)))
    contrasts = learners._contrasts((batch.groups == 1).numpy())
    generator = torch.Generator().manual_seed(0)
    for query in range(8):
        weights = torch.randn(2, generator=generator, dtype=torch.float64, requires_grad=True)
        scores = batch.features[query] @ weights
        loss = learners.deltr_loss(
            scores, batch.relevance[query], batch.groups[query], 7.0, gap=gap
        )
        loss.backward()
        slope = learners._deltr_slope(
            batch.features[query].numpy(),
            batch.relevance[query].softmax(-1).numpy(),
            contrasts[query],
            weights.detach().numpy()[:, None],
            7.0,
            gap,
        )
        assert slope[:, 0] == pytest.approx(weights.grad.numpy())


def test_ideal_lists_by_loops():
    """The whole group with more merit first, and by relevance: NDCG 1."""
    assert Ideal(SMALL, "relevance")(0.0, 0)["ndcg"] == pytest.approx(1.0)
    found = Ideal(SMALL, "group")(0.0, 0)
    gaps = []
    for query in SMALL.load(0).test:
        sides = [query.relevance[query.groups == g] for g in (0, 1)]
        if min(len(side) for side in sides) == 0:
            gaps.append(0.0)
            continue
        means = [side.mean().item() for side in sides]
        top = int(means[1] > means[0])
        bias = fl.position_bias(10, dtype=torch.float64)
        first = len(sides[top])
        paid = {top: bias[:first].mean().item(), 1 - top: bias[first:].mean().item()}
        gaps.append(abs(paid[0] / means[0] - paid[1] / means[1]))
    assert found["group_gap"] == pytest.approx(np.mean(gaps), abs=1e-9)


def test_the_exposure_ratio_of_equal_treatment():
    """Sorted or not, a model that pays everybody alike pays per merit by merit alone."""
    batch = next(iter(SMALL.load(0).test.batches(8)))
    even = torch.ones_like(batch.relevance)
    merits = [batch.relevance[batch.groups == g].mean().item() for g in (0, 1)]
    assert methods.exposure_ratio(even, batch) == pytest.approx(merits[0] / merits[1])


def test_the_uniform_policy_pays_everybody_the_mean():
    result = Uniform(SMALL)(0.0, 0)
    assert result["d_group"] < 1e-9
    bias = fl.position_bias(10, dtype=torch.float64)
    queries = list(SMALL.load(0).test)
    wanted = [fl.expected_ndcg(bias.mean().expand(10), q.relevance).item() for q in queries]
    assert result["ndcg"] == pytest.approx(np.mean(wanted), abs=1e-9)


def test_fixed_queries_are_shared_and_redrawn_ones_are_not():
    first, second = (GERMAN.load(seed).test.document_ids for seed in (0, 7))
    assert torch.equal(first, second)
    redrawn = GermanData(redrawn=True, n_train=12, n_test=6)
    first, second = (redrawn.load(seed).test.document_ids for seed in (0, 7))
    assert not torch.equal(first, second)


# Plans


@pytest.mark.parametrize("module", [synthetic, german])
def test_a_plan_is_complete_and_its_methods_have_names(module):
    cells = module.plan()
    assert max(c.seed for c in cells) == 39
    assert len({c.path("") for c in cells}) == len(cells)
    for c in cells:
        method, variant = identify(c.experiment.name)
        assert method in METHODS
        assert variant in VARIANTS
    assert {identify(c.experiment.name).method for c in cells} >= {
        FAIR_PG_RANK,
        POST_PROCESSING,
        POST_PROCESSING_WITH_FACTOR,
        DELTR,
        DELTR_CODE,
        UNIFORM,
    }
    assert pickle.loads(pickle.dumps(cells[0])) == cells[0]
    quick = module.plan(quick=True)
    assert len(quick) < len(cells) / 5
    assert {c.seed for c in module.plan(seeds=1)} == {0}


def test_the_papers_lambdas():
    def lams(module, name):
        return sorted({c.lam for c in module.plan(seeds=1) if c.experiment.name == name})

    for variant in (CLIPPED_AT_5, STARTED_WIDE, CLIPPED_AT_4):
        found = lams(synthetic, FAIR_PG_RANK.on(variant))
        assert found == [0, 1, 3, 5, 8, 10, 15, 25]
    assert len(lams(synthetic, FAIR_PG_RANK_EXACT.on(CLIPPED_AT_5))) == 12
    text = [0, 0.1, 0.3, 1, 3, 5, 10, 25]
    assert lams(german, FAIR_PG_RANK.on(SEX)) == [*text, 50, 100]
    for variant in (SEX_CODE, SEX_TEXT, AGE_TEXT, AGE_CODE):
        assert lams(german, FAIR_PG_RANK.on(variant)) == text
    assert lams(synthetic, POST_PROCESSING.on(CLIPPED_AT_5))[-3:] == [10, 100, 1000]
    # The text's, and as many for everybody.
    deltr = [0, *(10.0**k for k in range(7))]
    for module, variant in ((synthetic, CLIPPED_AT_5), (german, SEX_TEXT)):
        assert lams(module, DELTR.on(variant)) == deltr
        for method in (FAIR_PG_RANK, POST_PROCESSING, DELTR):
            assert len(lams(module, method.on(variant))) == protocol.GRID_SIZE


# Figures


def test_the_grid_over_theta_is_the_evaluators():
    data = SMALL.load(1).test
    grid = plots.theta_grid(data, (-1.0, 3.0), steps=5)
    for row, column in ((0, 3), (4, 1), (2, 2)):
        found = fl.evaluate(scorer_with([grid.weights[column], grid.weights[row]]), data)
        assert grid.ndcg[row, column] == pytest.approx(found.ndcg, abs=1e-4)
        assert grid.d_group[row, column] == pytest.approx(found.d_group, abs=1e-4)


def test_a_curve_is_mean_and_deviation_by_lambda():
    cells = random_cells()
    lams, mean, spread = plots.curve(plots.of_method(cells, UNIFORM), "ndcg")
    name = UNIFORM.on(CLIPPED_AT_5)
    values = [c["result"]["ndcg"] for c in cells if c["experiment"] == name]
    assert lams.tolist() == [0.0, 2.5]
    assert mean == pytest.approx([np.mean(values[:6]), np.mean(values[6:])])
    assert spread == pytest.approx([np.std(v, ddof=1) for v in (values[:6], values[6:])])


def test_the_trade_off_draws_what_the_cells_hold():
    matplotlib = pytest.importorskip("matplotlib.figure")
    drawn_methods = [FAIR_PG_RANK, POST_PROCESSING_WITH_FACTOR]
    cells = [
        cell(
            method.on(CLIPPED_AT_5),
            lam,
            s,
            ndcg=0.9 - lam / 100,
            d_group=0.01 / (1 + lam) + s / 1e5,
        )
        for method in drawn_methods
        for lam in (0.0, 10.0)
        for s in range(2)
    ]
    ax = matplotlib.Figure().subplots()
    for method in drawn_methods:
        x, y = plots.method_line(ax, cells, method)
        assert x == pytest.approx([0.010005, 0.01 / 11 + 5e-6])
        assert y == pytest.approx([0.9, 0.8])
        line, last = ax.get_lines()[-2:]
        assert line.get_marker() == last.get_marker() == method.marker
        assert line.get_xdata() == pytest.approx(x)
        assert line.get_ydata() == pytest.approx(y)
        assert last.get_xdata() == pytest.approx(x[-1:])
        assert last.get_ydata() == pytest.approx(y[-1:])
