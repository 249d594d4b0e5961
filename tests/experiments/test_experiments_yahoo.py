"""Table 1 and Figure 2: the rankers as experiments, on files in Yahoo's format and on MSLR."""

import json
import math
import pickle
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from sklearn.metrics import ndcg_score

from experiments import mslr, problems, yahoo, yahoo_files
from experiments.__main__ import main
from experiments.catalogue import GBDT, LAMBDAMART, LINEAR_PG_RANK, NETWORK_PG_RANK, RANK_SVM
from experiments.learners import gbdt, rank_svm
from experiments.plots import kept_epoch, tradeoff_panels
from experiments.problems import RankingData, load_parts
from experiments.rankers import (
    PG_RANK_BY_MODEL,
    IndividualFairPGRank,
    describe_data,
    pg_rank,
    policy_measures,
    sorted_measures,
)
from experiments.stand_in import yahoo_like
from fairpg_lite import LinearScorer, RankingDataset, mslr_sample
from fairpg_lite.data import save_letor
from fairpg_lite.sweeps import run_cells

pytestmark = pytest.mark.slow

QUERIES = {"train": 45, "valid": 22, "test": 25}
FIGURES = ("ndcg_at_10", "err", "d_ind")
POLICY = ("policy_ndcg", "policy_ndcg_at_10", "policy_d_ind")


def run(cells, out):
    return run_cells(cells, out, progress=False)


def same(cells):
    """What must be equal between runs."""
    volatile = ("seconds", "versions", "commit")
    return [{k: v for k, v in cell.items() if k not in volatile} for cell in cells]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A miniature of Set 1 in the real format, read as if its counts were the published ones."""
    root = tmp_path_factory.mktemp("yahoo")
    counts = {}
    for part, queries in QUERIES.items():
        stand_in = yahoo_like(queries, part=part)
        save_letor(stand_in, root / f"set1.{part}.txt")
        counts[part] = (queries, stand_in.n_documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yahoo_files, "PUBLISHED_COUNTS", counts)
        yield root


@pytest.fixture
def counted(monkeypatch):
    """The published counts are asked for, as always."""
    load_parts.cache_clear()
    monkeypatch.setattr(yahoo_files, "PUBLISHED_COUNTS", problems.PUBLISHED_COUNTS)


@pytest.fixture(scope="module")
def on_files(files, tmp_path_factory):
    """Every method on the miniature, and the directory of the run."""
    out = tmp_path_factory.mktemp("runs")
    return run(yahoo.plan(data=files, quick=True), out), out


@pytest.fixture(scope="module")
def mslr_out(tmp_path_factory):
    return tmp_path_factory.mktemp("mslr")


@pytest.fixture(scope="module")
def on_mslr(mslr_out):
    return run(mslr.plan(quick=True), mslr_out)


POLICIES = {method.name for method in PG_RANK_BY_MODEL.values()}


def check_results(cells):
    names = {RANK_SVM.name, GBDT.name, LAMBDAMART.name, *POLICIES}
    assert {cell["experiment"] for cell in cells} == names
    for cell in cells:
        assert cell["status"] == "done", cell.get("error")
        stochastic = cell["experiment"] in POLICIES
        for part in ("train", "test"):
            for name in FIGURES + (POLICY if stochastic else ()):
                assert 0 <= cell["result"][f"{part}_{name}"] <= 1
            assert ("train_policy_ndcg" in cell["result"]) == stochastic
        if stochastic:
            assert cell["result"]["compiled"] is False  # so short a run is left to autograd
            epochs = cell["config"]["config"]["epochs"]
            assert 1 <= len(cell["result"]["history"]["utility"]) <= epochs


def test_every_method_runs_on_files_in_yahoos_format(on_files, files):
    cells, _ = on_files
    check_results(cells)
    lams = {c["lam"] for c in cells if c["experiment"] == LINEAR_PG_RANK.name}
    assert lams == set(yahoo.QUICK_LAMS)
    for cell in cells:
        # A fiftieth would be one query; never fewer than twenty.
        assert cell["result"]["train_queries"] == cell["result"]["test_queries"] == 20
        assert cell["result"]["data"] == describe_data(cells)
        assert cell["config"]["problem"]["data"] == "yahoo"
        assert str(files) not in json.dumps(cell)  # results name no place on a machine
    assert "not the published number" in describe_data(cells)


def test_every_method_runs_on_mslr(on_mslr):
    check_results(on_mslr)
    for cell in on_mslr:
        assert cell["result"]["train_queries"] == 20
        assert cell["result"]["test_queries"] == 21
        listed = cell["result"]["test_ndcg_at_10_per_query"]
        assert len(listed) == 21
        assert np.mean(listed) == pytest.approx(cell["result"]["test_ndcg_at_10"], abs=1e-6)
        assert len(cell["result"]["test_err_per_query"]) == 21
        assert "MSLR-WEB10K" in cell["result"]["data"]


def test_a_cell_is_equal_when_run_again(on_files, files, tmp_path):
    cells, _ = on_files
    plan = yahoo.plan(data=files, quick=True)
    names = (NETWORK_PG_RANK.name, GBDT.name, RANK_SVM.name)
    again = [cell for cell in plan if cell.experiment.name in names and cell.lam in (0.0, 100.0)]
    first = [cell for cell in cells if cell["experiment"] in names and cell["lam"] in (0.0, 100.0)]
    assert same(run(again, tmp_path)) == same(first)
    # Where files lie is no part of an experiment.
    elsewhere = replace(again[0].experiment.problem, root="elsewhere")
    assert again[0].experiment == replace(again[0].experiment, problem=elsewhere)


def test_seeds_matter_and_lambdas_too(on_mslr):
    found = {}
    for cell in on_mslr:
        if cell["experiment"] == LINEAR_PG_RANK.name:
            found[cell["lam"], cell["seed"]] = cell["result"]["test_policy_d_ind"]
    assert len(found) == len(set(found.values())) == 4
    svm = [c["result"]["test_ndcg_at_10"] for c in on_mslr if c["experiment"] == RANK_SVM.name]
    assert svm[0] != svm[1]  # the seed draws the validation queries


def test_the_kept_epoch_is_the_one_that_was_judged(on_files):
    """A network whose validation gets worse is judged with the weights of an earlier epoch."""
    data = RankingData("mslr", share=0.1)
    settings = {"model": "neural", "entropy": 0.0, "lr": 0.01}
    ranker = pg_rank(data, **settings, epochs=4, patience=4)
    cell = {"lam": 30.0, "result": ranker(30.0, 0)}
    kept = kept_epoch(cell)
    assert kept < 4
    unvalidated = replace(data, with_valid=False)
    shorter = pg_rank(unvalidated, **settings, epochs=kept)(30.0, 0)
    for name in ("test_ndcg_at_10", "test_policy_d_ind", "train_policy_ndcg"):
        assert shorter[name] == cell["result"][name]
    (last, *_) = (c for c in on_files[0] if c["experiment"] in POLICIES)
    assert kept_epoch(last) == 3


def by_hand(scores, relevance):
    """NDCG@10 by scikit-learn, and ERR by walking down the list."""
    gains = 2.0**relevance - 1.0
    ndcg = ndcg_score(gains[None], scores[None], k=10) if len(gains) > 1 and gains.any() else 1.0
    err, looking = 0.0, 1.0
    for place, i in enumerate(np.argsort(-scores, kind="stable"), start=1):
        err += looking * gains[i] / 16.0 / place
        looking *= 1.0 - gains[i] / 16.0
    return ndcg, err


def test_table_1_figures_by_another_way(on_mslr):
    """RankSVM and LambdaMART trained again outside the experiment, judged by other code."""
    train, test = mslr_sample(dtype=torch.float64)
    learn, valid = train.split((32 / 42, 10 / 42), seed=1)
    trained = {
        RANK_SVM: rank_svm(learn[:20], valid=valid, C=(1.0, 100.0)).scorer,
        LAMBDAMART: gbdt(learn[:20], valid=valid, rounds=30, seed=1),
    }
    for method, scorer in trained.items():
        (cell,) = (c for c in on_mslr if c["experiment"] == method.name and c["seed"] == 1)
        with torch.no_grad():
            values = [
                by_hand(scorer(query.features).numpy(), query.relevance.numpy())
                for query in test[:21]
            ]
        ndcg, err = np.mean(values, axis=0)
        assert cell["result"]["test_err"] == pytest.approx(err, abs=1e-9)
        if method == RANK_SVM:  # trees tie, and scikit-learn averages over ties
            assert cell["result"]["test_ndcg_at_10"] == pytest.approx(ndcg, abs=1e-9)


def test_policy_figures_by_drawing_rankings():
    """The exact figures against 20,000 rankings drawn, within four standard errors."""
    data = yahoo_like(6, part="test").to(torch.float64)
    scorer = LinearScorer(699, init=0.1, generator=torch.Generator().manual_seed(3)).double()
    found = policy_measures(scorer, data)
    rng = np.random.default_rng(0)
    means, errors = [], []
    for query in data:
        scores = scorer(query.features).detach().numpy()
        gains = 2.0 ** query.relevance.numpy() - 1.0
        discount = 1 / np.log2(2 + np.arange(len(gains))) * (np.arange(len(gains)) < 10)
        ideal = (np.sort(gains)[::-1] * discount).sum()
        if ideal == 0:
            means.append(1.0)
            errors.append(0.0)
            continue
        race = rng.exponential(size=(20_000, len(gains))) / np.exp(scores)
        order = race.argsort(-1)
        values = (gains[order] * discount).sum(-1) / ideal
        means.append(values.mean())
        errors.append(values.std() / math.sqrt(len(values)))
    error = math.sqrt(np.square(errors).sum()) / len(data)
    assert abs(found["policy_ndcg_at_10"] - np.mean(means)) < 4 * error
    assert found["policy_ndcg_at_10"] != sorted_measures(scorer, data)["ndcg_at_10"]


def test_the_table_shows_the_papers_figures_beside(on_files):
    cells, _ = on_files
    rows = yahoo.table(cells)
    assert [(row["ranker"], row["entropy"]) for row in rows] == [
        ("RankSVM", None),
        ("GBDT", None),
        ("PG-Rank, linear", 1.0),
        ("PG-Rank, linear", 0.0),
        ("PG-Rank, network", 1.0),
        ("PG-Rank, network", 0.0),
        ("LambdaMART", None),
    ]
    published = {
        "RankSVM": (0.75924, 0.43680),
        "GBDT": (0.79013, 0.46201),
        "PG-Rank, linear": (0.76145, 0.44988),
        "PG-Rank, network": (0.77082, 0.45440),
        "LambdaMART": (None, None),
    }
    for row in rows:
        assert (row["paper_ndcg_at_10"], row["paper_err"]) == published[row["ranker"]]
    (svm,) = (cell["result"] for cell in cells if cell["experiment"] == RANK_SVM.name)
    assert (rows[0]["ndcg_at_10"], rows[0]["err"]) == (svm["test_ndcg_at_10"], svm["test_err"])


def test_the_command_writes_a_summary_of_the_cells(on_mslr, mslr_out, capsys):
    """The cells are there, so it trains nothing."""
    assert main(["mslr", "--quick", "--quiet", "--out", str(mslr_out)]) == 0
    written = {line.rsplit("/", 1)[-1] for line in capsys.readouterr().out.splitlines()}
    assert written == {"table.csv", "summary.md"}
    summary = (mslr_out / "summary.md").read_text("utf-8")
    assert NETWORK_PG_RANK.label in summary
    assert describe_data(on_mslr) in summary


def test_the_panels_draw_what_the_cells_say(on_mslr):
    axes = Figure().subplots(2, 2)
    with matplotlib.rc_context({"axes.titlelocation": "center"}):  # whatever style others set
        tradeoff_panels(axes, on_mslr)
    assert [ax.get_title() for ax in axes[0]] == ["linear", "network"]
    models = (LINEAR_PG_RANK, NETWORK_PG_RANK)
    places = [(key, model) for key in ("ndcg_at_10", "d_ind") for model in models]
    for ax, (key, model) in zip(axes.flat, places, strict=True):
        picked = [c for c in on_mslr if c["experiment"] == model.name]
        for line, part in zip(ax.containers, ("train", "test"), strict=True):
            means = [
                np.mean([c["result"][f"{part}_policy_{key}"] for c in picked if c["lam"] == lam])
                for lam in (0.0, 10.0)
            ]
            np.testing.assert_allclose(line.lines[0].get_ydata(), means)
            np.testing.assert_allclose(line.lines[0].get_xdata(), [0.0, 10.0])


def test_the_stand_in_says_that_it_is_one(tmp_path):
    cells = yahoo.plan(stand_in=True, quick=True)
    (trees,) = (cell for cell in cells if cell.experiment.name == GBDT.name)
    (done,) = run([trees], tmp_path)
    assert "not Yahoo's data" in done["result"]["data"]
    assert "no evidence" in done["result"]["data"]
    assert done["config"]["problem"]["data"] == "stand-in"
    assert done["result"]["train_queries"] == 399


def test_the_papers_settings():
    for cell in yahoo.plan(stand_in=True):
        if not isinstance(cell.experiment, IndividualFairPGRank):
            assert cell.lam == 0
            continue
        config = cell.experiment.config
        assert (config.epochs, config.samples, config.batch_size) == (20, 10, 1)
        assert (config.baseline, config.utility, config.optimizer) == ("mean", "ndcg", "adam")
        assert (config.disparity, config.patience) == ("d_ind", None)
        assert config.lr == {None: 1e-3, 32: 5e-5}[cell.experiment.hidden]
        assert not cell.experiment.problem.with_valid
    data = yahoo_like(2)
    linear = pg_rank(RankingData()).new_scorer(data, 0)
    assert 5e-4 < max(p.abs().max() for p in linear.parameters()) <= 1e-3
    neural = pg_rank(RankingData(), "neural").new_scorer(data, 0)
    assert neural.hidden.weight.shape == (32, 699)
    assert 0.17 < max(p.abs().max() for p in neural.parameters()) <= 32**-0.5


def test_a_process_loads_its_data_once(files, monkeypatch):
    load_parts.cache_clear()
    calls = []
    read = problems.yahoo
    monkeypatch.setattr(problems, "yahoo", lambda *a, **k: calls.append(a) or read(*a, **k))
    problem = RankingData("yahoo", root=str(files))
    copy = pickle.loads(pickle.dumps(problem))  # as a worker gets it
    assert copy.parts(0).train is problem.parts(1).train
    assert copy.load(0).train is problem.load(1).train
    assert len(calls) == 1


def test_wrong_calls_say_what_to_do(files, counted, tmp_path, monkeypatch):
    monkeypatch.delenv("FAIRPG_YAHOO", raising=False)
    with pytest.raises(FileNotFoundError, match="stand_in=True"):
        yahoo.plan()
    with pytest.raises(FileNotFoundError, match=r"nowhere.*C14"):
        yahoo.plan(data=tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"set1\.train\.txt"):
        yahoo.plan(data=tmp_path)
    with pytest.raises(ValueError, match="published are"):
        yahoo.plan(data=files)
    monkeypatch.setenv("FAIRPG_YAHOO", str(files))
    with pytest.raises(ValueError, match="published are"):
        yahoo.own_table(tmp_path / "nowhere")


def test_measure_counts_queries_without_anything_relevant():
    data = RankingDataset(torch.eye(4), torch.tensor([0.0, 0.0, 2.0, 0.0]), offsets=[0, 2, 4])
    found = sorted_measures(LinearScorer(4, init=0.0), data)
    assert found["without_relevant"] == 0.5
    assert found["ndcg_at_10"] == 1.0  # by convention, and document 2 before 3
    assert found["err"] == pytest.approx(0.5 * 3 / 16)


def test_chapter_10_fills_in_the_real_column(files, on_files, tmp_path, monkeypatch):
    """What the chapter prints, with FAIRPG_YAHOO set, on files in the real format."""
    monkeypatch.delenv("FAIRPG_YAHOO", raising=False)
    nowhere = tmp_path / "yahoo"
    assert "stays empty" in yahoo.own_table(nowhere)
    monkeypatch.setenv("FAIRPG_YAHOO", str(files))
    shown = yahoo.own_table(nowhere)
    assert all(name in shown for name in ("RankSVM", "GBDT", "PG-Rank, network", "0.76145"))
    assert "Yahoo" in shown
    assert "stand-in" not in shown
    assert yahoo.own_table(on_files[1]) == shown  # the same run, stored
