"""A ready sweep for one's own data: the numbers of the calls it spares, and safe to kill."""

import json
from dataclasses import dataclass

import pandas as pd
import pytest
import torch

import fairpg_lite as fl
from fairpg_lite import (
    LinearScorer,
    TrainConfig,
    evaluate,
    fit,
    load_model,
    synthetic,
    tradeoff,
)
from fairpg_lite.sweeps import FairPGRank, Splits, sweep

TRAIN = synthetic(12, dtype=torch.float64)
TEST = synthetic(6, seed=1, dtype=torch.float64)
CONFIG = TrainConfig(epochs=2, lr=0.1, batch_size=4)


OPTIONS = {"k": 3, "measures": ("ndcg", "ndcg_at_k", "average_rank", "d_group")}


def run(out, lams=(0.0, 20.0), seeds=2, **options):
    options = {
        "config": CONFIG, "evaluate_options": OPTIONS, "progress": False, **options
    }  # fmt: skip
    return tradeoff(TRAIN, TEST, lams, seeds, out=out, **options)


def test_the_numbers_are_those_of_fit_and_evaluate(tmp_path):
    table = run(tmp_path)
    assert list(table.columns[:4]) == ["experiment", "lam", "seed", "ndcg"]
    assert set(table["experiment"]) == {"Fair-PG-Rank"}
    for row in table.to_dict("records"):
        g = torch.Generator().manual_seed(row["seed"])
        scorer = LinearScorer(2, dtype=torch.float64, generator=g)
        config = TrainConfig(**{**CONFIG.__dict__, "lam": row["lam"], "seed": row["seed"]})
        fit(scorer, TRAIN, config, progress=False)
        expected = evaluate(scorer, TEST, **OPTIONS).to_dict()
        assert {name: row[name] for name in expected} == expected  # every digit
        model = load_model(
            tmp_path / "models" / "Fair-PG-Rank" / f"lam={row['lam']:g}_seed={row['seed']}"
        )
        assert torch.equal(model.scorer.state_dict()["linear.weight"], scorer.linear.weight)
        assert model.meta["training"]["lam"] == row["lam"]
        assert model.meta["history"]["epochs"] == 2
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["models", "table.csv", "table.json"]
    about = json.loads((tmp_path / "table.json").read_text())
    problem = about["experiments"]["Fair-PG-Rank"]["problem"]
    assert problem["train"]["fingerprint"] == TRAIN.fingerprint()


def test_killed_and_called_again(tmp_path, monkeypatch):
    train = FairPGRank.train
    calls = []

    def interrupted(self, lam, seed):
        calls.append((lam, seed))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(self, lam, seed)

    monkeypatch.setattr(FairPGRank, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed")
    table = run(tmp_path / "killed")
    assert calls == [(0.0, 0), (0.0, 1), (20.0, 0), (20.0, 0), (20.0, 1)]
    pd.testing.assert_frame_equal(table, run(tmp_path / "whole"))
    more = run(tmp_path / "killed", lams=[0.0, 5.0], seeds=[0, 1])
    assert calls[9:] == [(5.0, 0), (5.0, 1)]
    assert sorted(more["lam"]) == [0.0, 0.0, 5.0, 5.0]  # what was asked for, not all there is
    assert len(pd.read_csv(tmp_path / "killed" / "table.csv")) == 6


@pytest.mark.slow
def test_two_processes_and_a_hidden_layer(tmp_path):
    one = run(tmp_path / "one", hidden=3, valid=TEST)
    pd.testing.assert_frame_equal(one, run(tmp_path / "two", hidden=3, valid=TEST, jobs=2))


def test_other_data_or_settings_in_the_same_directory_are_refused(tmp_path):
    run(tmp_path, lams=[0], seeds=1)
    with pytest.raises(ValueError, match=r"other settings: problem\.train\.fingerprint is"):
        tradeoff(TEST, TEST, [0], 1, out=tmp_path, config=CONFIG, evaluate_options=OPTIONS)
    with pytest.raises(ValueError, match=r"other settings: config\.lr is 0\.1 there and 0\.001 h"):
        run(tmp_path, config=TrainConfig(epochs=2, batch_size=4))


def test_a_run_that_fails_is_named_and_the_others_stay(tmp_path):
    with pytest.raises(RuntimeError, match=r"1 of 2 runs failed, the first with Floating.*again"):
        run(tmp_path, lams=[0, 1e308], seeds=1)
    assert len(pd.read_csv(tmp_path / "table.csv")) == 1


def mean_exposure_gap(exposure, merit, groups=None, mask=None):
    return (exposure - merit).abs().mean(-1)


def test_a_disparity_of_ones_own_is_known_by_its_name(tmp_path):
    table = run(
        tmp_path, lams=[0], seeds=1, config=TrainConfig(disparity=mean_exposure_gap, epochs=1)
    )
    assert len(table) == 1
    stored = json.loads((tmp_path / "table.json").read_text())["experiments"]["Fair-PG-Rank"]
    assert stored["config"]["disparity"].endswith("test_tradeoff.mean_exposure_gap")
    with pytest.raises(TypeError, match="a function: one with a name of its own"):
        run(tmp_path, config=TrainConfig(disparity=lambda e, m, g, mask: e.sum(-1)))


@dataclass(frozen=True)
class Baseline:
    name = "baseline"

    def __call__(self, lam, seed):
        return {"ndcg": 0.5}


def test_other_experiments_join_the_table(tmp_path):
    """One's own experiment in the same directory gives further rows of the table."""
    sweep(Baseline(), [0], [0], tmp_path, progress=False)
    run(tmp_path, lams=[0], seeds=1)
    assert set(pd.read_csv(tmp_path / "table.csv")["experiment"]) == {"baseline", "Fair-PG-Rank"}


@dataclass(frozen=True)
class Drawn:
    """Queries that are drawn anew for each seed."""

    n_queries: int = 6

    def load(self, seed):
        data = synthetic(self.n_queries, seed=seed)
        return Splits(data, data)


@dataclass(frozen=True)
class Weights(FairPGRank):
    """Measures something of its own, and starts from weights of its own."""

    start: float = 0.0

    def new_scorer(self, train, seed):
        scorer = LinearScorer(train.n_features)
        torch.nn.init.constant_(scorer.linear.weight, self.start)
        return scorer

    def measure(self, run):
        return {"weights": run.scorer.linear.weight.flatten().tolist(), "seed of": run.config.seed}


def test_a_subclass_measures_and_starts_as_it_likes(tmp_path):
    """Its problem draws other queries for each seed; the models are saved all the same."""
    experiment = Weights(Drawn(), TrainConfig(epochs=1, lr=0.1), name="weights", start=1.0)
    records = sweep(experiment, [5.0], range(2), tmp_path, progress=False)
    settings = records[0]["config"]
    assert settings["class"] == "Weights"
    assert settings["problem"] == {"class": "Drawn", "n_queries": 6}
    assert settings["start"] == 1.0
    assert "prepare" not in settings
    first, second = (record["result"]["weights"] for record in records)
    assert first != second
    assert [record["result"]["seed of"] for record in records] == [0, 1]
    model = load_model(tmp_path / "models" / "weights" / "lam=5_seed=1")
    assert model.scorer.linear.weight.flatten().tolist() == second
    assert experiment(5.0, 0) == records[0]["result"]


def test_a_measure_without_an_answer_is_empty(tmp_path):
    """No document is relevant, so there is no average rank: None, which a table can hold."""
    blank = TEST.replace(relevance=torch.zeros_like(TEST.relevance))
    experiment = FairPGRank(
        Splits(TRAIN, blank), CONFIG, evaluate_options={"measures": ("ndcg", "average_rank")}
    )
    assert experiment(0.0, 0) == {"k": None, "ndcg": 1.0, "average_rank": None}


def softened(scores, mask):
    """A lottery between the policy of the scores and all rankings alike."""
    return fl.Mixture(
        [fl.PlackettLuce(scores, mask), fl.PlackettLuce(0 * scores, mask)], [0.7, 0.3]
    )


def test_a_run_is_judged_as_it_was_trained(tmp_path):
    """With the policy, the merit and the disparity of the training; classes are settings, too."""
    data = fl.synthetic(n_queries=10, seed=0)
    config = fl.TrainConfig(
        method="exact",
        disparity="gini",
        merit="sqrt",
        policy=softened,
        position_bias=fl.position_bias(10, "reciprocal"),
        optimizer=torch.optim.AdamW,
        epochs=1,
        lr=0.1,
    )
    table = fl.tradeoff(data, data, [2.0], 1, out=tmp_path, config=config, progress=False)
    scorer = fl.load_model(tmp_path / "models" / "Fair-PG-Rank" / "lam=2_seed=0").scorer
    expected = fl.evaluate(
        scorer,
        data,
        ("ndcg", "d_group", "gini"),
        merit="sqrt",
        policy=softened,
        position_bias=config.position_bias,
    )
    for name, value in expected.means.items():
        assert table[name][0] == pytest.approx(value, abs=1e-12)
