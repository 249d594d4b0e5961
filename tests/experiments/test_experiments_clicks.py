"""The experiments of chapter 17 against loops and expectations, and what they tell the board."""

import math

import numpy as np
import pytest
import torch

from experiments import from_clicks, rich_get_richer
from experiments.from_clicks import FromClicks, load, log_of, mean_exposure
from experiments.rich_get_richer import (
    LAMS,
    SHARES,
    STOPS,
    Loop,
    Twins,
    lead_against_pg_rank,
    lead_of_the_lucky,
    ndcg_against_mixture,
)
from fairpg_lite import PlackettLuce, position_bias, synthetic


def test_weighted_clicks_are_relevance_on_average():
    data = synthetic(3, n_docs=5, seed=1, dtype=torch.float64)
    data = data.replace(relevance=data.relevance / 5)
    scores = 2 * data.features[:, 1]
    lists = 20_000
    clicks, exposure = log_of(data, scores, lists, torch.Generator().manual_seed(0))
    for number, query in enumerate(data):
        rows = slice(5 * number, 5 * number + 5)
        policy = PlackettLuce(scores[rows])
        wanted = policy.position_probs() @ position_bias(5, dtype=torch.float64)
        assert torch.allclose(exposure[rows], wanted, atol=1e-8)
        chance = query.relevance * wanted
        error = (chance * (1 - chance) / lists).sqrt() / wanted
        gap = (clicks[rows] / lists / exposure[rows] - query.relevance).abs()
        assert (gap < 5 * error + 1e-12).all()
    assert mean_exposure(data).tolist() == pytest.approx(
        [float(position_bias(5).mean())] * 15, rel=1e-6
    )


def test_repetitions_share_no_query_with_their_test():
    for name in ("synthetic", "mslr"):
        splits = load(name, 3)
        seen = {tuple(row) for row in splits.train.features.tolist()}
        assert float(splits.train.relevance.min()) >= 0
        assert float(splits.train.relevance.max()) <= 1
        shared = [row for row in splits.test.features.tolist() if tuple(row) in seen]
        assert len(shared) < 0.02 * len(splits.test.features)
    assert load("synthetic", 3).train.features[0, 0] != load("synthetic", 4).train.features[0, 0]


@pytest.mark.slow
def test_a_run_is_fixed_by_its_seed_and_labels_need_no_log():
    cell = FromClicks("synthetic", "weighted", 2, epochs=1)
    first = cell(5.0, 0)
    assert first == cell(5.0, 0)
    assert first != cell(5.0, 1)
    assert set(first) == {"ndcg", "d_group", "d_ind", "seen_disparity"}
    names = {c.experiment.name for c in from_clicks.plan()}
    assert {"labels-synthetic", "weighted-100-mslr", "rate-100-synthetic"} <= names


def test_the_lead_by_a_loop():
    g = torch.Generator().manual_seed(0)
    exposure = torch.rand(4, 6, generator=g)
    clicks = torch.randint(0, 3, (4, 6), generator=g).double()
    leads = []
    for q in range(4):
        for a in (0, 2, 4):
            if clicks[q, a] == clicks[q, a + 1]:
                continue
            rich, poor = (a, a + 1) if clicks[q, a] > clicks[q, a + 1] else (a + 1, a)
            total = exposure[q, rich] + exposure[q, poor]
            leads.append(float((exposure[q, rich] - exposure[q, poor]) / total))
    found = lead_of_the_lucky(exposure, Twins(torch.ones(4, 6), clicks))
    assert found == pytest.approx(np.mean(leads), abs=1e-6)


def test_rankers_of_the_loop():
    """No memory without learning; sorting remembers; a full share of random lists forgets."""
    small = {"n_queries": 6, "rounds": 5}
    uniform = Loop("uniform", "rate", **small)(0.0, 0)
    assert abs(uniform["luck"]) < 1e-9
    assert uniform["d_ind"] == pytest.approx(0, abs=1e-9)
    sorting = Loop("sorting", "rate", **small)(0.0, 0)
    assert sorting["luck"] > 0.05
    assert sorting["ndcg"] > uniform["ndcg"]
    assert sorting == Loop("sorting", "rate", **small)(0.0, 0)
    forgetful = Loop("mixed_sorting", "rate", **small)(1.0, 0)
    assert abs(forgetful["luck"]) < 1e-9
    with pytest.raises(ValueError, match="no ranker"):
        Loop("best", "rate", **small)(0.0, 0)
    with pytest.raises(ValueError, match="estimate is"):
        Loop("sorting", "none", **small)(0.0, 0)


def made_up(fair_leads, fair_ndcg):
    """Cells of a world where mixing halves the lead for a tenth of NDCG."""
    cells = []

    def add(name, lam, lead, ndcg):
        for seed in range(8):
            wobble = 0.001 * math.sin(seed + lam)
            result = {"luck": lead + wobble, "ndcg": ndcg, "leads": [lead + wobble] * len(STOPS)}
            cells.append(
                {
                    "experiment": f"{name}-rate", "lam": lam, "seed": seed,
                    "status": "done", "result": result,
                }
            )  # fmt: skip

    add("pg_rank", 0.0, 0.2, 1.0)
    add("uniform", 0.0, 0.0, 0.8)
    for share in SHARES:
        add("mixed_pg_rank", share, 0.2 * (1 - share), 1.0 - 0.2 * share)
    for lam, lead, ndcg in zip(LAMS, fair_leads, fair_ndcg, strict=True):
        add("fair_pg_rank", lam, lead, ndcg)
    return cells


def test_the_claim_can_be_passed_and_can_fail():
    falling = [0.15, 0.1, 0.05, 0.02, 0.01]
    good = made_up(falling, [0.99, 0.98, 0.97, 0.96, 0.95])
    found = lead_against_pg_rank(good, "rate")
    assert found.value == pytest.approx(np.mean(falling) - 0.2, abs=0.002)
    assert found.high < 0
    at_half = ndcg_against_mixture(good, "rate", 0.5)
    assert at_half.value == pytest.approx(0.98 - 0.9, abs=0.003)
    assert at_half.low > 0
    bad = made_up([0.22, 0.23, 0.24, 0.25, 0.26], [0.85] * 5)
    assert lead_against_pg_rank(bad, "rate").low > 0
    assert ndcg_against_mixture(bad, "rate", 0.5).high < 0


def test_plans_hold_every_ranker_and_estimate():
    names = {cell.experiment.name for cell in rich_get_richer.plan()}
    assert len(names) == 10
    assert len(rich_get_richer.plan(quick=True)) < len(rich_get_richer.plan())
