"""The command line: same figures as the module, one clear line for every mistake, exit codes."""

import argparse
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path

import distributed
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
import torch

import fairpg_lite as fl
from fairpg_lite import (
    LinearScorer,
    PlackettLuce,
    TrainConfig,
    load_letor,
    load_model,
    synthetic,
)
from fairpg_lite.cli import main
from fairpg_lite.cli.options import SETTINGS
from fairpg_lite.cli.output import shows_progress
from fairpg_lite.relevance import linear_gain

ROOT = Path(__file__).resolve().parents[2]
QUICK = ["--method", "exact", "--lr", "0.1", "--epochs", "4", "--batch-size", "10"]
GROUPS = ["--group-feature", "3"]


def write(path, seed, n_queries=30):
    """The synthetic data with the group as third feature; one of ten queries holds nothing."""
    data = synthetic(n_queries=n_queries, n_docs=5, seed=seed)
    features = torch.cat([data.features, data.groups.unsqueeze(-1).float()], dim=1)
    relevance = data.relevance.clone()
    relevance[:5] = 0.0
    fl.save_letor(data.replace(features=features, relevance=relevance), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train.txt, valid.txt, test.txt, and a model trained on them."""
    place = tmp_path_factory.mktemp("cli")
    for seed, name in enumerate(("train", "valid", "test")):
        write(place / f"{name}.txt", seed)
    call = ["fit", "train.txt", "--valid", "valid.txt", *GROUPS, "--lam", "5", *QUICK]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert main([*call, "--out", "model", "-q"]) == 0
    return place


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """A fresh directory with those files in it, the place to be."""
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").symlink_to(folder / f"{name}.txt")
    (tmp_path / "model").symlink_to(folder / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *argv):
    capsys.readouterr()
    code = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    return code, out, err


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


# --- Same figures as the module ----------------------------------------------------------------


def with_groups(name):
    data = load_letor(name)
    return data.replace(groups=data.features[:, 2].long())


def test_fit_is_the_modules_fit(here):
    scorer = LinearScorer(3, generator=torch.Generator().manual_seed(0))
    config = TrainConfig(lam=5.0, method="exact", lr=0.1, epochs=4, batch_size=10)
    train, valid = with_groups("train.txt"), with_groups("valid.txt")
    history = fl.fit(scorer, train, config, valid, progress=False)
    model = load_model("model")
    assert torch.equal(model.scorer.linear.weight, scorer.linear.weight)
    assert model.meta["training"] == config.to_dict()
    assert model.meta["history"]["valid_utility"] == history.valid_utility[history.kept - 1]
    assert model.meta["notes"]["train"] == str(train)


def test_every_setting_reaches_the_training(here, capsys):
    """Each option changed from its default is what the model says it was trained with."""
    changed = {
        "utility": "dcg", "merit": "sqrt", "method": "sample", "samples": 3, "epochs": 2,
        "batch_size": 7, "lr": 0.02, "entropy": 0.1, "patience": 4, "seed": 11, "gain": "linear",
        "lam": 0.5, "disparity": "d_ind", "baseline": "loo", "pooled": "dataset",
    }  # fmt: skip
    assert set(changed) == set(SETTINGS)
    words = [w for k, v in changed.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    more = ["--hidden", "6", "--valid", "valid.txt", "--normalize", "minmax"]
    assert run(capsys, "fit", "train.txt", "--out", "m", *words, *more)[0] == 0
    model = load_model("m")
    stored = model.meta["training"]
    assert {name: stored[name] for name in changed} == changed
    assert model.scorer.hidden.weight.shape == (6, 3)
    assert model.prepare.normalize == "minmax"


def table(capsys, *words):
    """The rows that `evaluate` prints, by measure, and its last two lines."""
    code, out, err = run(capsys, "evaluate", *words)
    assert code == 0, err
    lines = out.splitlines()
    width = lines[2].index("    policy") if "policy" in lines[2] else 14
    rows = {line[:width].strip(): line[width:].replace(" to ", " ").split() for line in lines[3:-3]}
    return lines[0], rows, lines[-2:]


def means(evaluation, measures):
    return {name: f"{getattr(evaluation, measure):.4f}" for name, measure in measures.items()}


MEASURES = {"NDCG": "ndcg", "ERR": "err", "average rank": "average_rank", "D_ind": "d_ind",
            "D_group": "d_group", "two-sided gap": "group_gap"}  # fmt: skip
NAMES = tuple(MEASURES.values())


@pytest.mark.parametrize("k", [None, 3])
def test_evaluate_is_the_modules_evaluate(here, capsys, k):
    head, rows, foot = table(capsys, "model", "test.txt", *([] if k is None else ["--k", k]))
    assert head == "model on test.txt: 30 queries, 150 documents"
    measures = MEASURES
    bias = None
    if k is not None:
        measures = {n if m == "average_rank" else f"{n}@3": m for n, m in MEASURES.items()}
        bias = fl.position_bias(5, k=k)
    assert set(rows) == set(measures)
    data, scorer = with_groups("test.txt"), load_model("model").scorer
    names = tuple(measures.values())
    policy, best = (
        fl.evaluate(scorer, data, names, k=k, position_bias=bias, deterministic=sure)
        for sure in (False, True)
    )
    if k is not None:
        at_k = fl.evaluate(scorer, data, ("ndcg_at_k",), k=k)
        assert rows["NDCG@3"][0] == f"{at_k.ndcg_at_k:.4f}"
    assert {name: row[0] for name, row in rows.items()} == means(policy, measures)
    assert {name: row[3] for name, row in rows.items()} == means(best, measures)
    for name, measure in measures.items():
        assert rows[name][1:3] == [f"{end:.4f}" for end in policy.interval(measure)]
    # One query holds nothing relevant, and a few lack a group.
    answers = fl.evaluate(scorer, data, names, k=k, position_bias=bias, undefined="skip").per_query
    for name, measure in measures.items():
        assert rows[name][4] == str(int((~answers[measure].isnan()).sum()))
    cut = "" if k is None else "@3"
    assert int(rows[f"D_group{cut}"][4]) < int(rows[f"NDCG{cut}"][4]) == 29
    assert foot[0] == (
        "Gain: 2^grade - 1. Queries without an answer count 1 in NDCG, 0 in ERR and disparity, "
        "nothing in average rank (--undefined 1)."
    )


def test_two_models_are_compared_query_by_query(here, capsys):
    assert run(capsys, "fit", "train.txt", *GROUPS, *QUICK, "--out", "plain", "-q")[0] == 0
    head, rows, foot = table(capsys, "model", "plain", "test.txt", "--gain", "linear")
    assert head.startswith("A = model and B = plain on test.txt: 30 queries")
    assert foot[0].startswith("Gain: the grade.")
    data = with_groups("test.txt")
    ours, theirs = (
        fl.evaluate(load_model(name).scorer, data, NAMES, gain="linear")
        for name in ("model", "plain")
    )
    assert {name: row[0] for name, row in rows.items()} == means(ours, MEASURES)
    assert {name: row[1] for name, row in rows.items()} == means(theirs, MEASURES)
    for name, measure in MEASURES.items():
        expected = ours.compare(theirs, measure)
        assert rows[name][2:6] == [f"{value:.4f}" for value in expected[:4]]


@pytest.mark.parametrize("undefined", ["0", "1", "skip"])
def test_what_undefined_queries_count_is_chosen_and_said(here, capsys, undefined):
    """By hand from the values of each query: MQ2008 has 51 of 156 without a relevant document."""
    _, rows, foot = table(capsys, "model", "test.txt", "--undefined", undefined)
    data, scorer = with_groups("test.txt"), load_model("model").scorer
    for name, filler in (("NDCG", undefined), ("D_group", "0")):
        values = []
        for query in data:
            with torch.no_grad():
                exposure = PlackettLuce(scorer(query.features)).exposure()
            if name == "NDCG":
                value = fl.expected_ndcg(exposure, query.relevance, undefined=np.nan)
            else:
                value = fl.group_disparity(
                    exposure, query.relevance, query.groups, undefined=np.nan
                )
            if not value.isnan():
                values.append(float(value))
            elif undefined != "skip":
                values.append(float(filler))
        assert float(rows[name][0]) == pytest.approx(np.mean(values), abs=6e-5)
    assert f"(--undefined {undefined})" in foot[0]
    assert ("left out" in foot[0]) == (undefined == "skip")


def test_merit_is_that_of_the_training(here, capsys):
    run(capsys, "fit", "train.txt", *GROUPS, "--merit", "square", *QUICK, "--out", "m")
    expected = fl.evaluate(
        load_model("m").scorer, with_groups("test.txt"), ("d_ind",), merit="square"
    )
    assert table(capsys, "m", "test.txt")[1]["D_ind"][0] == f"{expected.d_ind:.4f}"


def weights():
    stored = json.loads(Path("model/model.json").read_text())["weights"]["linear.weight"]
    return np.array(stored[0])


def test_draws_have_the_policys_probabilities(here, capsys):
    """Each document at each position: within six standard errors of its exact probability."""
    draws = 3000
    out = run(capsys, "rank", "model", "test.txt", "--samples", draws, "--seed", "3")[1]
    first = [line for line in json_lines(out) if line["query"] == 1]
    assert [line["sample"] for line in first] == list(range(draws))
    scores = load_letor("test.txt")[1].features.double() @ torch.tensor(weights())
    probs = PlackettLuce(scores).position_probs().numpy()
    rankings = np.array([line["ranking"] for line in first])
    frequency = np.stack([(rankings == document).mean(0) for document in range(5)])
    assert np.all(abs(frequency - probs) <= 6 * np.sqrt(probs * (1 - probs) / draws))
    assert frequency.min() > 0  # a policy, not one ranking


def test_the_seed_fixes_the_draws(here, capsys):
    def text(*words):
        return run(capsys, "rank", "model", "test.txt", "--samples", "4", *words)[1]

    assert text("--seed", "1") == text("--seed", "1") != text("--seed", "2")
    assert text() == text("--seed", "0")
    rows = json_lines(text("--seed", "1"))
    assert [row["sample"] for row in rows] == 30 * [0, 1, 2, 3]
    assert all(sorted(row["ranking"]) == [0, 1, 2, 3, 4] for row in rows)


@pytest.mark.parametrize("samples", [1, 3])
def test_trec_eval_reads_the_runs_and_finds_our_ndcg(here, capsys, samples):
    """Names of documents and queries survive; each draw is a run of its own."""
    files = ["run.txt"] if samples == 1 else [f"run.{i}.txt" for i in range(samples)]
    call = ["rank", "model", "test.txt", "--samples", samples, "--seed", "5"]
    expected = json_lines(run(capsys, *call)[1])
    assert run(capsys, *call, "--format", "trec", "--output", "run.txt")[:2] == (0, "")
    assert sorted(p.name for p in here.glob("*run*")) == files
    data = load_letor("test.txt")
    judged = {
        str(qid): {str(i): int(r) for i, r in enumerate(query.relevance.tolist())}
        for qid, query in zip(data.query_ids.tolist(), data, strict=True)
    }
    for sample, file in enumerate(files):
        with open(file) as stream:
            read = pytrec_eval.parse_run(stream)
        found = pytrec_eval.RelevanceEvaluator(judged, {"ndcg"}).evaluate(read)
        rankings = [row["ranking"] for row in expected if row["sample"] == sample]
        for qid, query, ranking in zip(judged, data, rankings, strict=True):
            grades, order = query.relevance.floor(), torch.tensor(ranking)
            ours = fl.ndcg(order, grades, gain=linear_gain, undefined=0.0)
            assert found[qid]["ndcg"] == pytest.approx(float(ours), abs=1e-6)


def test_documents_keep_their_names(here, capsys):
    lines = Path("test.txt").read_text().splitlines()
    named = [f"{x} #docid = GX{i:03}" if i % 5 else x for i, x in enumerate(lines)]
    Path("named.txt").write_text("\n".join(named) + "\n")
    first = json_lines(run(capsys, "rank", "model", "named.txt")[1])[0]["ranking"]
    assert set(map(str, first)) == {"0", "GX001", "GX002", "GX003", "GX004"}
    lines = run(capsys, "rank", "model", "named.txt", "--format", "trec")[1].splitlines()
    assert lines[0].split() == ["0", "Q0", str(first[0]), "1", "5", "fairpg_lite.0"]


def test_the_first_k_and_the_most_probable_ranking(here, capsys):
    whole = json_lines(run(capsys, "rank", "model", "test.txt", "--seed", "3")[1])
    cut = json_lines(run(capsys, "rank", "model", "test.txt", "--seed", "3", "--k", "2")[1])
    assert cut[0]["ranking"] == whole[0]["ranking"][:2]
    assert all(len(row["ranking"]) == 2 for row in cut)
    long = json_lines(run(capsys, "rank", "model", "test.txt", "--k", "99")[1])
    assert all(len(row["ranking"]) == 5 for row in long)

    model = load_model("model")
    data = model.prepare(load_letor("test.txt"))
    best = json_lines(run(capsys, "rank", "model", "test.txt", "--mode")[1])
    out = run(capsys, "rank", "model", "test.txt", "--mode", "--format", "trec")[1]
    lines = [line.split() for line in out.splitlines()]
    for number, (row, query) in enumerate(zip(best, data, strict=True)):
        with torch.no_grad():
            scores = model.scorer(query.features)
        assert row["ranking"] == PlackettLuce(scores).mode.tolist()
        written = [float(line[4]) for line in lines[5 * number : 5 * number + 5]]
        assert written == scores[row["ranking"]].tolist()
    assert run(capsys, "rank", "model", "test.txt", "--mode", "--samples", "2")[0] == 2


def test_equal_scores_are_written_as_places(here, capsys):
    """trec_eval orders equal scores by name, which would be another ranking."""
    text = Path("test.txt").read_text().splitlines()
    twice = [text[0], text[0], *text[1:5]]
    Path("ties.txt").write_text("\n".join(twice) + "\n")
    out = run(capsys, "rank", "model", "ties.txt", "--mode", "--format", "trec")[1]
    assert [line.split()[4] for line in out.splitlines()] == ["6", "5", "4", "3", "2", "1"]


def own_policy(scores, mask):
    return PlackettLuce(scores, mask)


def test_a_model_of_another_policy_is_not_ranked_as_plackett_luce(here, capsys):
    model = load_model("model")
    config = TrainConfig(policy=own_policy)
    fl.save_model(model.scorer, "other", prepare=model.prepare, config=config)
    code, _, err = run(capsys, "rank", "other", "test.txt")
    assert code == 1
    assert "own_policy" in err
    assert "rank in Python" in err


# --- Groups and features -----------------------------------------------------------------------


def test_groups_from_a_side_file_are_those_of_the_feature(here, capsys):
    """Also where a query's lines are scattered: labels follow the lines of the file."""
    lines = Path("train.txt").read_text().splitlines()
    order = np.random.default_rng(0).permutation(len(lines))
    Path("mixed.txt").write_text("".join(lines[i] + "\n" for i in order))
    label = ["woman" if " 3:1" in lines[i] else "man" for i in order]
    Path("labels.txt").write_text("\n".join(label) + "\n")
    common = ["fit", "mixed.txt", "--lam", "5", *QUICK]
    assert run(capsys, *common, "--groups", "labels.txt", "--out", "a")[0] == 0
    assert run(capsys, *common, *GROUPS, "--out", "b")[0] == 0
    one, two = (json.loads(Path(name, "model.json").read_text()) for name in "ab")
    assert one["weights"] == two["weights"]
    by_file = table(capsys, "a", "mixed.txt", "--groups", "labels.txt")[1]
    assert by_file == table(capsys, "b", "mixed.txt")[1]
    code, out, err = run(capsys, "evaluate", "a", "mixed.txt")
    assert (code, "D_group" in out) == (0, False)
    assert "give --groups FILE" in err


def test_side_files_that_do_not_fit_are_refused(here, capsys):
    Path("short.txt").write_text("a\nb\n")
    Path("holes.txt").write_text("a\n\n" + "b\n" * 148)
    base = ["fit", "train.txt", "--lam", "1", "--out", "m"]
    code, _, err = run(capsys, *base, "--groups", "short.txt")
    assert code == 1
    assert "short.txt holds 2 labels, train.txt has 150 documents" in err
    assert "holes.txt: line 2 is empty" in run(capsys, *base, "--groups", "holes.txt")[2]
    Path("good.txt").write_text("a\nb\n" * 75)
    code, _, err = run(capsys, *base, "--groups", "good.txt", "--valid", "valid.txt")
    assert code == 2
    assert "--valid-groups" in err
    Path("one.txt").write_text("a\n" * 150)
    assert "needs documents of two groups" in run(capsys, *base, "--groups", "one.txt")[2]
    assert not Path("m").exists()


def test_the_model_remembers_its_scale(here, capsys):
    words = ["--normalize", "minmax"]
    assert run(capsys, "fit", "train.txt", *GROUPS, *words, *QUICK, "--out", "m")[0] == 0
    scaled = with_groups("test.txt").normalize()
    rows = table(capsys, "m", "test.txt")[1]
    expected = means(fl.evaluate(load_model("m").scorer, scaled, NAMES), MEASURES)
    assert {name: row[0] for name, row in rows.items()} == expected


def test_another_number_of_features_is_refused(here, capsys):
    Path("wide.txt").write_text("1 qid:1 1:1 4:2\n")
    Path("narrow.txt").write_text("1 qid:1 1:1 2:2\n0 qid:1 1:2\n")
    for command in (["evaluate"], ["rank"]):
        code, out, err = run(capsys, *command, "model", "wide.txt")
        assert (code, out) == (1, "")
        assert "wide.txt has 4 features, the model was trained on 3" in err
        assert (
            "narrow.txt has 2 features, the model was trained on 3"
            in (run(capsys, *command, "model", "narrow.txt")[2])
        )
        assert run(capsys, *command, "model", "narrow.txt", "--n-features", "3")[0] == 0
    code, _, err = run(capsys, "rank", "model", "wide.txt", "--n-features", "3")
    assert code == 1
    assert "wide.txt, line 1: '4:2' is not" in err
    assert "--n-features=3" in err
    fit = ["fit", "train.txt", "--valid", "narrow.txt", *QUICK, "--out", "m"]
    assert "narrow.txt has 2 features" in run(capsys, *fit)[2]


def test_a_position_bias_is_trained_and_judged_by(here, capsys):
    Path("bias.txt").write_text("1\n0.5\n0.25\n0\n0\n0\n")
    words = {"geometric:0.5": fl.position_bias(5, "geometric"), "bias.txt": None}
    words["bias.txt"] = torch.tensor([1.0, 0.5, 0.25, 0.0, 0.0, 0.0])
    data = with_groups("test.txt")
    for number, (word, bias) in enumerate(words.items()):
        fit = ["fit", "train.txt", *GROUPS, "--lam", "5", *QUICK, "--position-bias", word]
        assert run(capsys, *fit, "--out", f"m{number}")[0] == 0
        model = load_model(f"m{number}")
        assert model.meta["training"]["position_bias"] == bias.tolist()
        expected = fl.evaluate(model.scorer, data, ("ndcg", "d_group"), position_bias=bias)
        cut = "@3" if word == "bias.txt" else ""  # zeros to the end are a cut-off
        for asked in ([], ["--position-bias", word]):
            rows = table(capsys, f"m{number}", "test.txt", *asked)[1]
            assert rows[f"NDCG{cut}"][0] == f"{expected.ndcg:.4f}"
            assert rows[f"D_group{cut}"][0] == f"{expected.d_group:.4f}"
    log2 = fl.evaluate(model.scorer, data, ("ndcg", "d_group"))
    rows = table(capsys, "m1", "test.txt", "--position-bias", "log2")[1]
    assert rows["D_group"][0] == f"{log2.d_group:.4f}"


def test_a_cut_off_is_trained_and_judged_by(here, capsys):
    """--k is the position bias that ends there, in every command."""
    for n, words in enumerate((["--k", "2"], ["--k", "2", "--position-bias", "reciprocal"])):
        bias = fl.position_bias(5, "reciprocal" if n else "log2", k=2)
        fit = ["fit", "train.txt", *GROUPS, "--lam", "5", *QUICK, *words]
        assert run(capsys, *fit, "--out", f"k{n}", "-q")[0] == 0
        model = load_model(f"k{n}")
        assert model.meta["training"]["position_bias"] == bias.tolist()
        data = with_groups("test.txt")
        names = ("ndcg", "d_group", "err", "rr")
        expected = fl.evaluate(model.scorer, data, names, position_bias=bias, k=2)
        for asked in ([], words):
            rows = table(capsys, f"k{n}", "test.txt", "--measures", *names, *asked)[1]
            assert rows["NDCG@2"][0] == f"{expected.ndcg:.4f}"
            assert rows["D_group@2"][0] == f"{expected.d_group:.4f}"
            assert rows["ERR@2"][0] == f"{expected.err:.4f}"
            assert rows["RR@2"][0] == f"{expected.rr:.4f}"
    code, _, err = run(capsys, "evaluate", "k0", "test.txt", "--k", "4")
    assert code == 2
    assert "--k is 4, and the training's position bias ends at position 2" in err
    at_one = table(capsys, "k0", "test.txt", "--k", "1")[1]
    expected = fl.evaluate(
        load_model("k0").scorer, with_groups("test.txt"), position_bias=fl.position_bias(5, k=1)
    )
    assert at_one["D_group@1"][0] == f"{expected.d_group:.4f}"
    # A model of a cut-off goes on to longer lists, nobody looks there.
    Path("long.txt").write_text("".join(f"{i % 3} qid:1 1:{i} 2:1 3:{i % 2}\n" for i in range(9)))
    assert run(capsys, "evaluate", "k0", "long.txt")[0] == 0


def test_queries_are_pooled_by_every_command(here, capsys):
    fit = ["fit", "train.txt", *GROUPS, "--lam", "5", *QUICK, "--pooled", "dataset", "--out", "p"]
    assert run(capsys, *fit, "-q")[0] == 0
    model = load_model("p")
    assert model.meta["training"]["pooled"] == "dataset"
    expected = fl.evaluate(model.scorer, with_groups("test.txt"), pooled="dataset")
    for asked in ([], ["--pooled", "dataset"]):
        assert table(capsys, "p", "test.txt", *asked)[1]["D_group"][0] == f"{expected.d_group:.4f}"
    by_query = fl.evaluate(model.scorer, with_groups("test.txt"))
    rows = table(capsys, "p", "test.txt", "--pooled", "query")[1]
    assert rows["D_group"][0] == f"{by_query.d_group:.4f}"
    code, _, err = run(capsys, "evaluate", "p", "test.txt", "--pooled", "item")
    assert code == 2
    assert "test.txt has some without" in err
    lines = Path("test.txt").read_text().splitlines()
    groups = with_groups("test.txt").groups.tolist()  # an item has one group
    items = [10 * group + number % 3 for number, group in enumerate(groups)]
    named = [f"{line} #docid = item{item}" for line, item in zip(lines, items, strict=True)]
    Path("named.txt").write_text("\n".join(named) + "\n")
    data = with_groups("named.txt")
    data = data.replace(document_ids=torch.tensor(items))
    expected = fl.evaluate(model.scorer, data, ("inequity",), pooled="item")
    words = ["--pooled", "item", "--measures", "inequity"]
    rows = table(capsys, "p", "named.txt", *words)[1]
    assert rows["inequity of attention"][0] == f"{expected.inequity:.4f}"


def test_no_baseline_can_be_typed(here, capsys):
    assert run(capsys, "fit", "train.txt", *QUICK, "--baseline", "none", "--out", "b")[0] == 0
    assert load_model("b").meta["training"]["baseline"] is None


OWN = """
def uneven(exposure, merit, groups=None, mask=None):
    '''How far exposure is from the same for all.'''
    return (exposure - exposure.mean(-1, keepdim=True)).square().sum(-1)
"""


def test_a_disparity_of_ones_own_is_trained_and_drawn(here, capsys, monkeypatch):
    Path("mine.py").write_text(OWN)
    sweep = ["sweep", "train.txt", "--test", "test.txt", *QUICK, "--seeds", "1", "--out", "own"]
    sweep += ["--lam", "0", "5", "--disparity", "mine:uneven"]
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    code, out, err = run(capsys, *sweep)
    assert code == 0, err
    rows = list(csv.DictReader(Path("own/table.csv").read_text().splitlines()))
    uneven = sys.modules["mine"].uneven
    for row in rows:
        model = load_model(f"own/models/{row['experiment']}/lam={float(row['lam']):g}_seed=0")
        found = fl.evaluate(model.scorer, fl.load_letor("test.txt"), {"uneven": uneven})
        assert float(row["uneven"]) == pytest.approx(found.means["uneven"])
    assert float(rows[1]["uneven"]) < 0.9 * float(rows[0]["uneven"])
    assert "uneven" in Path("own/tradeoff.svg").read_text()
    assert out.splitlines()[0].split()[2] == "uneven"
    for words, said in ((["nobody:f"], "no module 'nobody'"), (["mine:f"], "no function 'f'")):
        code, _, err = run(capsys, "fit", "train.txt", *QUICK, "--out", "x", "--disparity", *words)
        assert code == 2
        assert said in err


def test_a_sweep_trains_and_judges_by_the_position_bias(here, capsys):
    sweep = ["sweep", "train.txt", "--test", "test.txt", "--lam", "5", "--seeds", "1", *GROUPS]
    sweep += [*QUICK, "--position-bias", "reciprocal", "--out", "s"]
    assert run(capsys, *sweep)[0] == 0
    fit = ["fit", "train.txt", *GROUPS, "--lam", "5", *QUICK, "--position-bias", "reciprocal"]
    assert run(capsys, *fit, "--out", "m")[0] == 0
    row = pd.read_csv("s/table.csv").iloc[0]
    assert table(capsys, "m", "test.txt")[1]["D_group"][0] == f"{row.d_group:.4f}"


def test_the_top_of_the_scale_is_a_choice(here, capsys):
    model = load_model("model")
    expected = fl.evaluate(model.scorer, with_groups("test.txt"), ("err",), max_grade=10.0)
    rows = table(capsys, "model", "test.txt", "--max-grade", "10")[1]
    assert rows["ERR"][0] == f"{expected.err:.4f}"


# --- Mistakes ----------------------------------------------------------------------------------

FIT = ["fit", "train.txt", "--out", "new"]
SWEEP = ["sweep", "train.txt", "--test", "test.txt", "--lam", "0", "1", "--out", "new"]
MISTAKES = {
    "no command": ([], 2, "required: COMMAND"),
    "unknown command": (["train"], 2, "invalid choice: 'train'"),
    "unknown option": ([*FIT, "--lamda", "1"], 2, "unrecognized arguments: --lamda"),
    "no out": (["fit", "train.txt"], 2, "required: --out"),
    "negative lam": ([*FIT, "--lam", "-1"], 2, "lam is -1.0; give a finite"),
    "lam nan": ([*FIT, "--lam", "nan"], 2, "lam is nan"),
    "lam inf": ([*FIT, "--lam", "inf"], 2, "lam is inf"),
    "zero lr": ([*FIT, "--lr", "0"], 2, "lr is 0.0; give a number above zero"),
    "half an epoch": ([*FIT, "--epochs", "0.5"], 2, "0.5 is not a whole number"),
    "no epoch": ([*FIT, "--epochs", "0"], 2, "epochs is 0"),
    "threshold": ([*FIT, *GROUPS, "--group-threshold", "x"], 2, "invalid float value: 'x'"),
    "grade 200": (["fit", "steep.txt", "--out", "new"], 1, "relevance of 200 is too large"),
    "grade 200 there": (["evaluate", "model", "steep.txt"], 1, "relevance of 200 is too large"),
    "query file": (["fit", "q.txt", "--out", "new"], 1, "q.txt.query: the counts add up to 5"),
    "seed": ([*FIT, "--seed", 10**23], 2, "--seed: 100000000000000000000000 is not a whole"),
    "seed of rank": (["rank", "model", "test.txt", "--seed", 10**23], 2, "is not a whole"),
    "empty out": (["fit", "train.txt", "--out", ""], 2, "--out: the name is empty"),
    "runs to stdout": (
        ["rank", "model", "test.txt", "--format", "trec", "--samples", "2"], 2, "give --output"
    ),
    "one group": ([*FIT, "--group-feature", "3", "--group-threshold", "9", "--lam", "1"], 2,
                  "needs documents of two groups in train.txt"),
    "sweep of one group": (
        [*SWEEP, "--group-feature", "3", "--group-threshold", "9"], 2, "of two groups in train.txt"
    ),
    "sweep on other features": (
        ["sweep", "train.txt", "--test", "bad.csv", *SWEEP[4:], *GROUPS], 1,
        "bad.csv has 1 features, the model was trained on 3"
    ),
    "sweep without groups": (SWEEP, 2, "--disparity d_group needs documents of two groups"),
    "sweep without lambda": (["sweep", "train.txt", "--test", "x", "--out", "new"], 2, "--lam"),
    "sweep at minus one": ([*SWEEP, *GROUPS, "--lam", "-1"], 1, "lam is -1.0; give a finite"),
    "sweep to nowhere": ([*SWEEP[:-1], ""], 2, "the name is empty"),
    "test without a budget": ([*FIT, "--test", "test.txt"], 2, "reports on a --budget"),
    "lam and budget": ([*FIT, "--lam", "1", "--budget", "1"], 2, "not allowed with"),
    "one sample": ([*FIT, "--samples", "1"], 2, "needs at least two"),
    "no groups": ([*FIT, "--lam", "1"], 2, "--group-feature ID or --groups FILE"),
    "other disparity": ([*FIT, "--disparity", "x"], 2, "disparity is 'x'; "),
    "patience": ([*FIT, "--patience", "2"], 2, "give --valid FILE"),
    "threshold of what": ([*FIT, "--group-threshold", "1"], 1, "needs --group-feature"),
    "two groupings": ([*FIT, *GROUPS, "--groups", "x"], 2, "not allowed with"),
    "cut-off": (["evaluate", "model", "test.txt", "--k", "0"], 2, "--k: 0 is not a whole number"),
    "bias": ([*FIT, "--position-bias", "log3"], 2, "--position-bias is log3; choose log2, recip"),
    "decay": ([*FIT, "--position-bias", "geometric:2"], 2, "geometric:2; give a factor above 0"),
    "no decay": ([*SWEEP, *GROUPS, "--position-bias", "geometric:"], 2, "give a factor above 0"),
    "bias in a file": (
        ["evaluate", "model", "test.txt", "--position-bias", "bad.txt"], 1,
        "bad.txt, line 1: '1 qid:1 1:1' is not a position bias"
    ),
    "short bias": (
        ["evaluate", "model", "test.txt", "--position-bias", "q.txt.query"], 1,
        "q.txt.query has 2 lines, the longest list has 5 documents"
    ),
    "max grade": (["evaluate", "model", "test.txt", "--max-grade", "x"], 2, "invalid float value"),
    "low max grade": (
        ["evaluate", "model", "test.txt", "--max-grade", "1"], 2, "--max-grade is 1, and test.txt"
    ),
    "three models": (["evaluate", "model", "model", "model", "test.txt"], 2, "two models at most"),
    "missing file": (["fit", "nil.txt", "--out", "new"], 1, "No such file or directory: 'nil.txt'"),
    "missing labels": ([*FIT, "--groups", "nil.txt"], 1, "No such file or directory: 'nil.txt'"),
    "directory": (["fit", ".", "--out", "new"], 1, "Is a directory: '.'"),
    "malformed": (["fit", "bad.txt", "--out", "new"], 1, "bad.txt, line 2: '1:nan' is not"),
    "cut": (["fit", "cut.txt", "--out", "new"], 1, "cut.txt, line 2"),
    "from zero": (["fit", "zero.txt", "--out", "new"], 1, "ids that rise from 1"),
    "group feature": ([*FIT, "--group-feature", "4"], 1, "group feature is 4"),
    "many groups": ([*FIT, "--group-feature", "1"], 1, "--group-threshold"),
    "out is a file": (["fit", "train.txt", "--out", "bad.txt"], 1, "bad.txt"),
    "out below a file": (["fit", "train.txt", "--out", "bad.txt/m"], 1, "bad.txt"),
    "no model": (["evaluate", "nil", "test.txt"], 1, "no file nil/model.json"),
    "not a model": (["rank", ".", "test.txt"], 1, "no file model.json"),
    "file to rank": (["rank", "model", "nil.txt"], 1, "No such file"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_in_one_line(here, capsys, name):
    Path("bad.txt").write_text("1 qid:1 1:1\n1 qid:1 1:nan\n")
    Path("cut.txt").write_text("1 qid:1 1:1\n1 qid:1 1:2")
    Path("zero.txt").write_text("1 qid:1 0:1\n")
    Path("steep.txt").write_text("200 qid:1 1:1 2:0 3:1\n0 qid:1 1:2 2:1 3:0\n")
    Path("q.txt").write_text("1 1:1\n0 1:2\n")
    Path("q.txt.query").write_text("2\n3\n")
    Path("bad.csv").write_text("1 qid:1 1:1\n")
    argv, expected, message = MISTAKES[name]
    code, out, err = run(capsys, *argv)
    assert (code, out) == (expected, "")
    assert message in err
    assert err.count("\n") == 1, err
    assert err.startswith("fairpg-lite")
    assert not list(Path().glob("new/*"))  # nothing was begun


def test_a_table_of_versions_keeps_its_lines(here, capsys, monkeypatch):
    """And what is no message of ours is a bug, whose traceback Python prints."""

    def broken(error):
        def raising(*args, **kwargs):
            raise error

        monkeypatch.setattr("fairpg_lite.cli.ranking.PlackettLuce", raising)

    broken(ValueError("two\nlines"))
    assert run(capsys, "rank", "model", "test.txt")[::2] == (1, "fairpg-lite: two\nlines\n")
    broken(KeyError("bug"))
    with pytest.raises(KeyError):
        main(["rank", "model", "test.txt"])


# --- What is written, and where ----------------------------------------------------------------


def test_a_model_is_replaced_with_overwrite_only(here, capsys):
    fit = ["fit", "train.txt", *QUICK, "--out", "m"]
    assert run(capsys, *fit)[0] == 0
    before = Path("m/model.json").read_bytes()
    code, _, err = run(capsys, *fit, "--seed", "1")
    assert code == 1
    assert "m holds another model.json; give --overwrite" in err
    assert Path("m/model.json").read_bytes() == before
    assert run(capsys, *fit, "--seed", "1", "--overwrite")[0] == 0
    assert load_model("m").meta["training"]["seed"] == 1


def test_out_that_cannot_be_written_is_said(here, capsys, monkeypatch):
    """As root no permission binds, so the system itself refuses."""

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fairpg_lite._files.os.replace", refuse)
    code, _, err = run(capsys, "fit", "train.txt", *QUICK, "--out", "new/m")
    assert code == 1
    assert err == "fairpg-lite: [Errno 13] Permission denied: 'new/m/.probe'\n"


def tree(root):
    return {p.relative_to(root).as_posix(): p.stat().st_mtime_ns for p in root.rglob("*")}


@pytest.mark.slow
def test_nothing_is_written_elsewhere(folder, tmp_path):
    """All files below home, working and temporary directory, before and after three commands."""
    for name in ("home", "work", "tmp"):
        (tmp_path / name).mkdir()
    script = f"""
import sys
from fairpg_lite.cli import main
train, test = {str(folder / "train.txt")!r}, {str(folder / "test.txt")!r}
fit = ["fit", train, "--group-feature", "3", "--lam", "1", "--epochs", "2", "--out", "m"]
assert main(fit) == 0
assert main(["evaluate", "m", test]) == 0
assert main(["rank", "m", test]) == 0
"""
    places = {"HOME": "home", "XDG_CACHE_HOME": "home/.cache", "TMPDIR": "tmp"}
    environment = {
        **os.environ,
        **{name: str(tmp_path / place) for name, place in places.items()},
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    inputs, before = tree(folder), set(tree(tmp_path))
    command = [sys.executable, "-c", script]
    subprocess.run(command, cwd=tmp_path / "work", env=environment, check=True, capture_output=True)
    new = set(tree(tmp_path)) - before
    expected = {"m", "m/model.json"}
    assert new == {f"work/{name}" for name in expected}
    assert tree(folder) == inputs


# --- Interrupted and continued -----------------------------------------------------------------


def interrupt_after(monkeypatch, epochs):
    """Ctrl-C in the epoch after so many; returns what undoes it."""
    from fairpg_lite.training.run import Run

    real, done = Run.epoch, []

    def epoch(self):
        if len(done) == epochs:
            raise KeyboardInterrupt
        done.append(1)
        real(self)

    monkeypatch.setattr(Run, "epoch", epoch)


def test_an_interrupted_training_continues_to_the_same_model(here, capsys, monkeypatch):
    fit = ["fit", "train.txt", "--valid", "valid.txt", *GROUPS, "--lam", "5", "--lr", "0.1"]
    fit += ["--epochs", "4", "--batch-size", "10"]  # sampled: the draws must go on, too
    assert run(capsys, *fit, "--out", "whole")[0] == 0
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        code, _, err = run(capsys, *fit, "--out", "m")
    assert code == 130
    assert "interrupted; the same command continues after the last finished epoch" in err
    assert not Path("m/model.json").exists()
    code, _, err = run(capsys, *fit, "--out", "m")
    assert code == 0
    assert "training: History(4 epochs" in err
    assert Path("m/model.json").read_bytes() == Path("whole/model.json").read_bytes()
    assert os.listdir("m") == ["model.json"]


@pytest.mark.parametrize("change", ["settings", "data", "groups"])
def test_only_the_same_run_is_continued(here, capsys, monkeypatch, change):
    write(here / "other.txt", seed=7)
    fit = ["fit", "train.txt", *GROUPS, "--lam", "5", *QUICK]
    with monkeypatch.context() as patch:
        interrupt_after(patch, 1)
        assert run(capsys, *fit, "--out", "m")[0] == 130
    other = {
        "settings": [*fit, "--seed", "3"],
        "data": ["fit", "other.txt", *fit[2:]],
        "groups": [*fit, "--group-threshold", "5", "--lam", "0"],
    }[change]
    code, _, err = run(capsys, *other, "--out", "m")
    assert code == 1
    assert err.startswith("fairpg-lite: fit: m/checkpoint.pt is the checkpoint of another run")
    assert run(capsys, *other, "--out", "m", "--overwrite")[0] == 0
    assert run(capsys, *other, "--out", "fresh")[0] == 0
    assert Path("m/model.json").read_bytes() == Path("fresh/model.json").read_bytes()
    assert os.listdir("m") == ["model.json"]


def test_a_budget_is_kept_or_the_command_fails(here, capsys):
    fit = ["fit", "train.txt", *GROUPS, "--method", "exact", "--lr", "0.1", "--batch-size", "10"]
    code, _, err = run(capsys, *fit, "--epochs", "2", "--budget", "0.5", "--out", "loose")
    assert code == 0
    assert "lambda is 0: the budget does not bind" in err
    meta = load_model("loose").meta
    assert meta["training"]["lam"] == meta["notes"]["budget"]["lam"] == 0.0
    # Two documents of equal merit, told apart by their group alone: D_group = 0 needs a weight
    # of exactly 0, which no training hits.
    Path("pair.txt").write_text("1 qid:1 1:0\n1 qid:1 1:1\n")
    pair = ["fit", "pair.txt", "--group-feature", "1", "--method", "exact", "--epochs", "1"]
    code, _, err = run(capsys, *pair, "--budget", "0", "--out", "tight")
    assert code == 1
    assert "the model in tight is over budget" in err
    notes = load_model("tight").meta["notes"]["budget"]
    assert notes["disparity"] > notes["delta"] == 0.0


def test_a_budget_is_held_on_validation_and_told_for_every_file(here, capsys):
    """With the disparity that `evaluate` finds on each file."""
    files = ["--valid", "valid.txt", "--test", "test.txt"]
    fit = ["fit", "train.txt", *files, *GROUPS, *QUICK, "--budget", "0.004"]
    code, _, err = run(capsys, *fit, "--out", "b")
    notes = load_model("b").meta["notes"]["budget"]
    found = notes["found"]
    assert code == 0
    assert notes["disparity"] == found["valid"] <= notes["delta"] == 0.004
    assert notes["lam"] > 0, err  # it binds
    told = ", ".join(f"{found[part]:.3g} on {part}" for part in ("train", "valid", "test"))
    assert f"disparity {told}, at lambda {notes['lam']:g}: " in err
    for part, value in found.items():
        judged = float(table(capsys, "b", f"{part}.txt")[1]["D_group"][0])
        assert judged == pytest.approx(value, abs=6e-5)
    # Nothing to be fair to on valid, all of TRAIN's disparity on test: said, and no failure.
    Path("none.txt").write_text("1 qid:1 1:1 2:1 3:0\n1 qid:1 1:2 2:1 3:0\n")
    blind = ["--valid", "none.txt", "--test", "train.txt"]
    code, _, err = run(capsys, *fit[:2], *blind, *fit[6:], "--out", "c")
    assert code == 0
    assert ", at lambda 0: " in err
    assert "it does not carry over to test" in err


def test_several_training_files_are_one(here, capsys):
    whole = load_letor("train.txt")
    for name, part in (("a.txt", whole[:10]), ("b.txt.gz", whole[10:])):
        fl.save_letor(part, name)
    model = ["--lam", "5", *GROUPS, *QUICK, "-q", "--out"]
    assert run(capsys, "fit", "a.txt", "b.txt.gz", *model, "two")[0] == 0
    assert run(capsys, "fit", "train.txt", *model, "one")[0] == 0
    weights = [load_model(name).scorer.linear.weight for name in ("one", "two")]
    assert torch.equal(*weights)
    sweep = ["sweep", "a.txt", "b.txt.gz", "--test", "test.txt", "--seeds", "1", *model, "s"]
    assert run(capsys, *sweep)[0] == 0
    assert torch.equal(
        load_model("s/models/Fair-PG-Rank/lam=5_seed=0").scorer.linear.weight, weights[0]
    )
    code, _, err = run(capsys, "fit", "a.txt", "nil.txt", *model, "x")
    assert (code, err) == (1, "fairpg-lite: [Errno 2] No such file or directory: 'nil.txt'\n")


def save_and_die(*args, **options):
    """The process dies right after the model was written."""
    fl.save_model(*args, **options)
    raise ArithmeticError("killed")


def test_a_training_killed_after_its_model_was_written_is_finished(here, capsys, monkeypatch):
    """The checkpoint is still there: exit 0, nothing left."""
    fit = ["fit", "train.txt", *GROUPS, "--lam", "5", *QUICK, "--out", "m"]
    with monkeypatch.context() as patch:
        patch.setattr("fairpg_lite.cli.fitting.save_model", save_and_die)
        assert run(capsys, *fit)[0] == 1
    before = Path("m/model.json").read_bytes()
    assert Path("m/checkpoint.pt").exists()
    code, _, err = run(capsys, *fit)
    assert code == 0
    assert "this very command; there is nothing to do" in err
    assert os.listdir("m") == ["model.json"]
    assert Path("m/model.json").read_bytes() == before
    assert run(capsys, *fit, "--epochs", "5")[0] == 1  # another run


def test_a_full_disk_is_named_with_the_file(here, capsys, monkeypatch):
    replace = os.replace

    def full(source, target):
        if Path(target).name == "checkpoint.pt":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("fairpg_lite._files.os.replace", full)
    code, out, err = run(capsys, "fit", "train.txt", *QUICK, "--out", "m", "-q")
    said = "fairpg-lite: [Errno 28] No space left on device: 'm/checkpoint.pt'\n"
    assert (code, out, err) == (1, "", said)
    assert os.listdir("m") == []


# --- A sweep -----------------------------------------------------------------------------------

TRADE = ["sweep", "train.txt", "--test", "test.txt", *GROUPS, *QUICK, "--seeds", "2", "--out", "s"]


def test_a_sweep_is_fit_and_evaluate_at_every_lambda_and_seed(here, capsys):
    more = ["--k", "3", "--undefined", "skip", "--measures", "parity"]
    code, out, err = run(capsys, *TRADE, "--lam", "0", "5", *more)
    assert code == 0
    assert "4 runs" in err
    pictures = {"tradeoff.png", "tradeoff.svg", "tradeoff_parity.png", "tradeoff_parity.svg"}
    assert {"table.csv", "models"} | pictures <= set(os.listdir("s"))
    rows = list(csv.DictReader(Path("s/table.csv").read_text().splitlines()))
    assert [(float(r["lam"]), int(r["seed"])) for r in rows] == [(0, 0), (0, 1), (5, 0), (5, 1)]
    model = f"s/models/{rows[3]['experiment']}/lam=5_seed=1"
    assert run(capsys, "fit", "train.txt", *GROUPS, *QUICK, "--lam", "5", "--seed", "1",
               "--k", "3", "--out", "alone", "-q")[0] == 0  # fmt: skip
    assert torch.equal(
        load_model("alone").scorer.linear.weight, load_model(model).scorer.linear.weight
    )
    for asked in ([], ["--k", "3"]):
        shown = table(capsys, model, "test.txt", *asked, "--undefined", "skip")[1]
        assert f"{float(rows[3]['d_group']):.4f}" == shown["D_group@3"][0]
        assert f"{float(rows[3]['err']):.4f}" == shown["ERR@3"][0]
        assert f"{float(rows[3]['ndcg']):.4f}" == shown["NDCG@3"][0]
    mean = [np.mean([float(r["ndcg"]) for r in rows if r["lam"] == lam]) for lam in ("0.0", "5.0")]
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["0", f"{mean[0]:.4f}"], ["5", f"{mean[1]:.4f}"]
    ]  # fmt: skip
    assert "Fair-PG-Rank" in Path("s/tradeoff.svg").read_text()


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_grows(here, capsys, monkeypatch):
    """What is finished is not computed again; the table is that of a sweep in one go."""
    from fairpg_lite.sweeps import FairPGRank

    train = FairPGRank.train
    done = []

    def training(self, lam, seed):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append((lam, seed))
        return train(self, lam, seed)

    with monkeypatch.context() as patch:
        patch.setattr(FairPGRank, "train", training)
        assert run(capsys, *TRADE, "--lam", "0", "5")[0] == 130
        assert len(done) == 2
        done.clear()
        assert run(capsys, *TRADE, "--lam", "0", "5")[0] == 0
        assert done == [(5.0, 0), (5.0, 1)]
        done.clear()
        assert run(capsys, *TRADE, "--lam", "0", "5", "9")[0] == 0
        assert done == [(9.0, 0), (9.0, 1)]
    assert run(capsys, *TRADE[:-1], "whole", "--lam", "0", "5", "9")[0] == 0

    def measures(folder):
        rows = csv.DictReader((here / folder / "table.csv").read_text().splitlines())
        return [{k: v for k, v in row.items() if k not in ("seconds", "made")} for row in rows]

    assert measures("s") == measures("whole")
    assert (here / "s/tradeoff.svg").read_bytes() == (here / "whole/tradeoff.svg").read_bytes()
    code, _, err = run(capsys, *TRADE, "--lam", "0", "--entropy", "1")
    assert code == 1
    assert "other settings" in err


@pytest.fixture
def cluster():
    """Schedulers and workers in this process, on any free port: how many workers is the test's."""
    with ExitStack() as stack:

        def start(workers):
            how = {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
            made = distributed.LocalCluster(n_workers=workers, protocol="tcp", **how)
            return stack.enter_context(made).scheduler_address

        yield start


def test_a_sweep_on_a_cluster_is_the_sweep_of_one_process(here, capsys, cluster):
    words = ["--lam", "0", "5", "--seeds", "1"]
    assert run(capsys, *TRADE, *words)[0] == 0
    code, _, err = run(
        capsys, *TRADE[:-1], "there", *words, "--scheduler", cluster(1), "--timeout", "200"
    )
    assert (code, "2 runs" in err) == (0, True), err
    tables = [pd.read_csv(here / folder / "table.csv") for folder in ("s", "there")]
    times = ["seconds", "made"]
    pd.testing.assert_frame_equal(*(table.drop(columns=times) for table in tables))
    models = [load_model(f"{d}/models/Fair-PG-Rank/lam=5_seed=0").scorer for d in ("s", "there")]
    assert torch.equal(models[0].linear.weight, models[1].linear.weight)


def test_a_cluster_without_workers_is_given_up_after_the_timeout(here, capsys, cluster):
    address = cluster(0)
    words = ["--lam", "0", "--scheduler", address, "--timeout", "0.5"]
    code, out, err = run(capsys, *TRADE, *words)
    assert (code, out) == (1, "")
    assert f"the Dask cluster at {address} has no worker" in err
    assert "Given up after 0.5 s" in err


# --- Help, terminals ---------------------------------------------------------------------------


def test_help_has_examples_and_says_what_every_option_does(capsys):
    code, out, err = run(capsys, "--help")
    assert (code, err) == (0, "")
    assert "examples:" in out
    assert "exit codes: 0 done, 1 failed, 2 wrong call, 130 interrupted" in out
    for command in ("fit", "evaluate", "rank", "sweep"):
        code, out, err = run(capsys, command, "--help")
        assert (code, err) == (0, "")
        assert f"fairpg-lite {command} " in out.partition("examples:")[2]
        assert f"\n    {command} " in run(capsys, "--help")[1]


def test_every_option_has_a_help_text():
    from fairpg_lite.cli import make_parser

    (commands,) = [
        action.choices
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    for name in ("fit", "evaluate", "rank", "sweep"):
        missing = [action.dest for action in commands[name]._actions if not action.help]
        assert missing == []


def test_version(capsys):
    assert run(capsys, "--version")[:2] == (0, f"fairpg-lite {fl.__version__}\n")


def test_quiet_says_nothing(here, capsys):
    assert run(capsys, "fit", "train.txt", *QUICK, "--out", "m", "-q") == (0, "", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bars_are_for_terminals(monkeypatch):
    args = argparse.Namespace(quiet=False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert shows_progress(args)
    assert not shows_progress(argparse.Namespace(quiet=True))
    for stream in (io.StringIO(), None):  # None under pythonw
        monkeypatch.setattr(sys, "stderr", stream)
        assert not shows_progress(args)


def test_the_entry_point_is_main():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"fairpg-lite": "fairpg_lite.cli:main"}


# --- As a process ------------------------------------------------------------------------------


RUN = "import sys; from fairpg_lite.cli import main; sys.exit(main())"


def start(*argv, **pipes):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-c", RUN, *map(str, argv)]
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **pipes}
    return subprocess.Popen(command, env=environment, **settings)


@pytest.mark.slow
def test_exit_codes_of_the_process(here):
    calls = [["rank", "model", "test.txt"], ["rank", "model", "nil.txt"], ["rank", "--nonsense"]]
    processes = [start(*call) for call in calls]
    answers = [process.communicate(timeout=600) for process in processes]
    assert [process.returncode for process in processes] == [0, 1, 2]
    assert len(answers[0][0].splitlines()) == 30
    assert [err.count("\n") for _, err in answers] == [0, 1, 1]


@pytest.mark.slow
def test_a_reader_that_stops_reading_is_no_error(here):
    """`| head -n 1`: many more rankings than a pipe holds."""
    process = start("rank", "model", "test.txt", "--samples", "5000")
    assert json.loads(process.stdout.readline())["sample"] == 0
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=600) == 0
    process.stderr.close()


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_a_checkpoint(here):
    # Too few visits for Numba, whose compiling would take most of the time, but slow ones.
    process = start("fit", "train.txt", "--epochs", "400", "--samples", "20000", "--out", "m")
    until = time.monotonic() + 600
    while not list(here.glob("m/checkpoint.pt")):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "the same command continues" in err
    assert "Traceback" not in err
    assert list(here.glob("m/checkpoint.pt"))
    assert not (here / "m" / "model.json").exists()
