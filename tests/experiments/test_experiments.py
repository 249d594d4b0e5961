"""The reproductions: what a method's result says, tables against numpy and scipy, figures."""

import json
import math
import pickle

import numpy as np
import pytest
import torch
from scipy import stats

import fairpg_lite as fl
from experiments import german, learners, methods, plots, synthetic
from experiments.methods import Deltr, FairPGRank, PostProcessing, Uniform
from experiments.problems import GermanData, SyntheticData
from experiments.summary import (
    READINGS,
    VARIANTS,
    reading,
    split_name,
    summarise,
    write_summary,
)
from fairpg_lite import post_processing as baselines

SMALL = SyntheticData(n_queries=8)
GERMAN = GermanData(n_train=12, n_test=6)


def cell(method, lam, seed, **result):
    return {
        "method": method,
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
        for m in ("uniform-clip5", "deltr-reversed-clip4")
        for lam in (0.0, 2.5)
        for s in range(n)
    ]


# Tables


def test_means_and_intervals_are_numpys_and_scipys():
    cells = random_cells()
    rows = summarise(cells)
    assert len(rows) == 4
    for row in rows:
        mine = [c for c in cells if (c["method"], c["lam"]) == (row["method"], row["lam"])]
        assert row["n"] == len(mine) == 6
        for name in ("ndcg", "d_group"):
            values = [c["result"][name] for c in mine]
            mean, sd, half = row[name]
            assert mean == pytest.approx(np.mean(values), rel=1e-14)
            assert sd == pytest.approx(np.std(values, ddof=1), rel=1e-14)
            low, high = stats.t.interval(0.95, 5, np.mean(values), stats.sem(values))
            assert (mean - half, mean + half) == pytest.approx((low, high), rel=1e-12)
        assert row.keys() == {"method", "lam", "n", "ndcg", "d_group"}


def test_one_seed_has_no_interval_and_failures_do_not_count():
    cells = [cell("m", 0.0, 0, ndcg=0.5), cell("m", 0.0, 1, ndcg=0.9)]
    cells[1] = {**cells[1], "status": "failed", "error": {}}
    (row,) = summarise(cells)
    assert (row["n"], row["ndcg"].mean, str(row["ndcg"])) == (1, 0.5, "0.5000")
    assert math.isnan(row["ndcg"].sd)


def test_the_summary_holds_the_numbers_and_says_where_they_come_from(tmp_path):
    cells = random_cells()
    text = write_summary(cells, tmp_path, command="the call", data="Some data.").read_text()
    for word in ("Some data.", "the call", "0, 1, 2, 3, 4, 5", "24 finished, 0 failed"):
        assert word in text
    mean, _, half = summarise(cells)[0]["ndcg"]
    assert f"{mean:.4f} ± {half:.4f}" in text
    assert VARIANTS["clip5"] in text
    assert "NDCG, sorted" not in text


# Methods


def scorer_with(theta):
    model = fl.LinearScorer(len(theta), dtype=torch.float64)
    with torch.no_grad():
        model.linear.weight.copy_(torch.tensor([theta], dtype=torch.float64))
    return model


@pytest.mark.parametrize(
    "experiment",
    [
        FairPGRank(SMALL, epochs=1),
        FairPGRank(SMALL, "exact", epochs=1),
        FairPGRank(GERMAN, samples=25, epochs=1, lr=0.01, lr_decay=1.0),
        *(Deltr(SMALL, gap) for gap in ("one-sided", "two-sided")),
        Deltr(SMALL, "reversed", "relevance"),
        Deltr(GERMAN, "one-sided"),
    ],
    ids=lambda e: e.name,
)
def test_the_stored_model_has_the_stored_figures(experiment):
    result = experiment(2.0, 3)
    assert experiment(2.0, 3) == result
    scorer, parts = scorer_with(result["theta"]), experiment.problem.load(3)
    for prefix, dataset in (("", parts.test), ("train_", parts.train)):
        if prefix and parts.train is parts.test:
            assert not any(name.startswith("train_") for name in result)
            continue
        for kind, deterministic in (("", False), ("sorted_", True)):
            found = fl.evaluate(scorer, dataset, deterministic=deterministic)
            for name in ("ndcg", "d_group", "group_gap"):
                stored = result[prefix + kind + name]
                assert stored == pytest.approx(getattr(found, name), abs=1e-12)
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    "experiment",
    [FairPGRank(SMALL, epochs=1), PostProcessing(SMALL), Deltr(SMALL)],
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
    monkeypatch.setattr(methods, "fit", lambda s, d, config, progress: asked.append(config) or s)
    monkeypatch.setattr(fl.LinearScorer, "stopped", "epochs", raising=False)
    (plan_cell,) = [
        c
        for c in german.plan(seeds=1)
        if c.experiment.name == "fair_pg_rank-sample-sex" and c.lam == 10
    ]
    plan_cell.experiment(10.0, 4)
    (config,) = asked
    assert (config.lr, config.lr_decay, config.epochs) == (1e-3, 1.0, 10)
    assert (config.samples, config.batch_size, config.entropy) == (25, 1, 0.0)
    assert (config.lam, config.seed, config.disparity) == (10.0, 4, "group")


def test_a_training_cut_short_is_no_result(monkeypatch):
    class Stopped:
        stopped = "interrupted"

    monkeypatch.setattr(methods, "fit", lambda *args, **kwargs: Stopped())
    with pytest.raises(KeyboardInterrupt):
        FairPGRank(SMALL)(0.0, 0)


def test_post_processing_reads_both_ways():
    """By the definition the estimates become fair; the authors' scaling makes the truth unfair."""
    problem = SyntheticData(n_queries=20)
    start, end = (PostProcessing(problem)(lam, 0) for lam in (0.0, 1000.0))
    assert end["d_group_estimated"] < 1e-9 < start["d_group_estimated"]
    theirs = PostProcessing(problem, "authors")(6.0, 0)
    assert theirs["d_group"] > 1.5 * start["d_group"]
    data = problem.load(0).test
    guess = learners.linear_regression(data)(data.features).detach()
    matrices = baselines.post_process(data, guess, 6.0, scaling="authors", gain=fl.linear_gain)
    assert theirs["d_group"] == pytest.approx(fl.evaluate(matrices, data).d_group, abs=1e-12)


def test_post_processing_on_training_queries_only_when_asked():
    assert "train_ndcg" not in PostProcessing(GERMAN)(0.0, 0)
    assert "train_d_group_estimated" in PostProcessing(GERMAN, on_train=True)(0.0, 0)


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
    assert max(c.seed for c in cells) == 19
    assert len({c.path("") for c in cells}) == len(cells)
    for c in cells:
        method, problem = split_name(c.experiment.name)
        assert reading(c.experiment.name) == READINGS[method]
        assert problem in VARIANTS
    assert {split_name(c.experiment.name)[0] for c in cells} >= {
        "fair_pg_rank-sample",
        "post_processing-definition",
        "post_processing-authors",
        "deltr-one_sided",
        "deltr-two_sided",
        "deltr-reversed",
        "uniform",
    }
    assert pickle.loads(pickle.dumps(cells[0])) == cells[0]
    quick = module.plan(quick=True)
    assert len(quick) < len(cells) / 5
    assert {c.seed for c in module.plan(seeds=1)} == {0}


def test_the_papers_lambdas():
    def lambdas(module, name):
        return sorted({c.lam for c in module.plan(seeds=1) if c.experiment.name == name})

    for method in ("sample-clip5", "sample-clip4", "exact-clip5"):
        found = lambdas(synthetic, f"fair_pg_rank-{method}")
        assert found == [0, 1, 3, 5, 8, 10, 12, 15, 17, 18, 20, 25]
    text = [0, 0.1, 0.3, 1, 3, 10, 25]
    assert lambdas(german, "fair_pg_rank-sample-sex") == [*text, 50, 100]
    for name in ("sex-redrawn", "sex-text-redrawn", "age"):
        assert lambdas(german, f"fair_pg_rank-sample-{name}") == text
    assert lambdas(synthetic, "post_processing-definition-clip5")[-3:] == [10, 100, 1000]


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
    lambdas, mean, spread = plots.curve(plots.of_method(cells, "uniform"), "ndcg")
    values = [c["result"]["ndcg"] for c in cells if c["method"] == "uniform-clip5"]
    assert lambdas.tolist() == [0.0, 2.5]
    assert mean == pytest.approx([np.mean(values[:6]), np.mean(values[6:])])
    assert spread == pytest.approx([np.std(v, ddof=1) for v in (values[:6], values[6:])])


def test_the_trade_off_draws_what_the_cells_hold():
    matplotlib = pytest.importorskip("matplotlib.figure")
    names = {"fair_pg_rank-sample": "Fair-PG-Rank"}
    names["post_processing-authors"] = "post-processing (with the factor)"
    cells = [
        cell(f"{name}-clip5", lam, s, ndcg=0.9 - lam / 100, d_group=0.01 / (1 + lam) + s / 1e5)
        for name in names
        for lam in (0.0, 10.0)
        for s in range(2)
    ]
    ax = matplotlib.Figure().subplots()
    plots.tradeoff_panel(ax, cells, methods=names)
    assert ax.get_legend_handles_labels()[1] == list(names.values())
    for drawn in ax.containers:
        assert drawn.lines[0].get_ydata() == pytest.approx([0.9, 0.8])
        assert drawn.lines[0].get_xdata() == pytest.approx([0.010005, 0.01 / 11 + 5e-6])
