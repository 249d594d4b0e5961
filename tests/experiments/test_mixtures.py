"""Lotteries with random lists and temperature: stored numbers against the evaluator itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fairpg_lite as fl
from experiments import mixtures, plots
from experiments.catalogue import CLIPPED_AT_5, FAIR_PG_RANK, UNIFORM
from experiments.cells import MissingCellsError
from experiments.mixtures import (
    CHANCES,
    COLDER,
    TEMPERATURES,
    WARMER,
    lottery_line,
    temperature_line,
)
from experiments.optimum import whole_batch
from experiments.problems import GermanData, SyntheticData
from fairpg_lite.policy import FixedRanking

FAIR = FAIR_PG_RANK.on(CLIPPED_AT_5)
PROBLEMS = [SyntheticData(n_queries=9), GermanData(n_train=12, n_test=9)]


def scorer_of(dataset, seed=0, scale=3.0):
    model = fl.LinearScorer(dataset.n_features, dtype=torch.float64)
    with torch.no_grad():
        draw = torch.randn(
            model.linear.weight.shape,
            generator=torch.Generator().manual_seed(seed),
            dtype=torch.float64,
        )
        model.linear.weight.copy_(scale * draw)
    return model


def policies_of(scorer, dataset, ranking):
    """One policy per query: the scorer's own, or its most probable ranking."""
    policies = [fl.PlackettLuce(scorer(query.features).detach()) for query in dataset]
    if not ranking:
        return policies
    return [FixedRanking(policy.mode, dtype=torch.float64) for policy in policies]


def mixed_with_random_lists(policies, share):
    lotteries = []
    for policy in policies:
        uniform = fl.DoublyStochastic.uniform(policy.mode.shape[-1], torch.float64)
        lotteries.append(fl.Mixture([policy, uniform], [1 - share, share]))
    return lotteries


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.variant.name)
@pytest.mark.parametrize("ranking", [False, True], ids=["policy", "sorted"])
def test_a_lottery_is_what_the_evaluator_says_of_a_mixture(problem, ranking):
    dataset = problem.load(1).test
    scorer = scorer_of(dataset)
    stored = mixtures.lotteries(scorer, dataset)["sorted_" * ranking + "lottery_d_group"]
    policies = policies_of(scorer, dataset, ranking)
    for k in (0, 6, 18):
        both = mixed_with_random_lists(policies, CHANCES[k])
        assert stored[k] == pytest.approx(fl.evaluate(both, dataset).d_group, abs=1e-8)
    exposure = torch.stack([policy.exposure() for policy in policies])
    by_exposure = mixtures.lottery_of(exposure, whole_batch(dataset))
    assert stored == pytest.approx(by_exposure["lottery_d_group"], abs=1e-7)
    assert by_exposure["ndcg"] == pytest.approx(fl.evaluate(policies, dataset).ndcg, abs=1e-7)
    if ranking:  # sorting a sorted list changes nothing
        assert by_exposure["sorted_lottery_d_group"] == by_exposure["lottery_d_group"]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), st.floats(0.1, 8.0))
def test_the_disparity_of_a_lottery_is_convex_and_at_most_the_chord(seed, scale):
    dataset = PROBLEMS[seed % 2].load(0).test
    scorer = scorer_of(dataset, seed, scale)
    start = fl.evaluate(scorer, dataset).d_group
    line = np.array([start, *mixtures.lotteries(scorer, dataset)["lottery_d_group"], 0.0])
    chord = start * (1 - np.array([0.0, *CHANCES, 1.0]))
    assert np.all(line <= chord + 1e-7)
    assert np.all(np.diff(line, 2) >= -1e-7)


def test_queries_of_different_lengths():
    """Padding takes no part, neither in a random list nor in the policy."""
    whole = PROBLEMS[0].load(0).test
    queries = [(q.features, q.relevance, q.groups) for q in whole]
    short = [
        tuple(part[:n] for part in query) for n, query in zip((10, 7, 8), queries, strict=False)
    ]
    sizes = torch.tensor([0, 10, 17, 25])
    features, relevance, groups = (torch.cat(parts) for parts in zip(*short, strict=True))
    dataset = fl.RankingDataset(features, relevance, sizes, groups=groups)
    scorer = scorer_of(dataset)
    both = mixed_with_random_lists(policies_of(scorer, dataset, False), 0.5)
    found = mixtures.lotteries(scorer, dataset)["lottery_d_group"][CHANCES.index(0.5)]
    assert found == pytest.approx(fl.evaluate(both, dataset).d_group, abs=1e-8)


def test_heat_divides_the_scores():
    dataset = PROBLEMS[0].load(2).test
    scorer = scorer_of(dataset)
    found = mixtures.heat(scorer, dataset)
    for k in (0, 8, len(TEMPERATURES) - 1):
        cool = scorer_of(dataset)
        with torch.no_grad():
            cool.linear.weight /= TEMPERATURES[k]
        wanted = fl.evaluate(cool, dataset)
        assert found["temperature_ndcg"][k] == pytest.approx(wanted.ndcg, abs=1e-8)
        assert found["temperature_d_group"][k] == pytest.approx(wanted.d_group, abs=1e-8)


def cell(experiment, seed, **result):
    return {"experiment": experiment, "lam": 0.0, "seed": seed, "status": "done", "result": result}


def cells_by_hand():
    even = [0.02 * (1 - a) ** 2 for a in CHANCES]
    hot = {"temperature_ndcg": [0.8] * len(TEMPERATURES)}
    hot |= {"temperature_d_group": [0.01] * len(TEMPERATURES)}
    own = {"lottery_d_group": even, "sorted_lottery_d_group": even, "sorted_ndcg": 0.95}
    return [
        *(cell(FAIR, s, ndcg=0.9, d_group=0.02, sorted_d_group=0.03, **own, **hot) for s in (0, 1)),
        cell(UNIFORM.on(CLIPPED_AT_5), 0, ndcg=0.5, d_group=0.0),
    ]


def test_lines_read_back():
    line = lottery_line(cells_by_hand(), FAIR)
    assert list(line.columns) == ["seed", "step", "ndcg", "d_group"]
    # The uniform policy of fixed queries is stored once and serves every seed.
    assert sorted(set(line["seed"])) == [0, 1]
    half = line[line["step"] == 0.5]
    assert half["ndcg"].tolist() == pytest.approx([0.7, 0.7])
    assert half["d_group"].tolist() == pytest.approx([0.005, 0.005])
    ends = line[line["seed"] == 1].iloc[[0, -1]]
    assert ends[["step", "ndcg", "d_group"]].to_numpy().ravel() == pytest.approx(
        [0, 0.9, 0.02, 1, 0.5, 0]
    )
    ranking = mixtures.lottery(cells_by_hand()[0]["result"], 0.5, "sorted_")
    assert ranking[:, 0] == pytest.approx([0.95, 0.03])
    heated = temperature_line(cells_by_hand(), FAIR)
    assert heated.iloc[0].tolist() == pytest.approx([0, 1.0, 0.9, 0.02])
    assert len(heated) == 2 * (1 + len(WARMER))
    whole = mixtures.heated(cells_by_hand()[0]["result"])
    assert whole.shape == (2, 1 + len(TEMPERATURES))
    assert whole[0].tolist().index(0.9) == len(COLDER)
    with pytest.raises(MissingCellsError):
        lottery_line(cells_by_hand(), "nobody", 3.0)


def test_the_baselines_are_drawn_as_lines():
    matplotlib = pytest.importorskip("matplotlib.figure")
    ax = matplotlib.Figure().subplots()
    plots.baseline_lines(ax, cells_by_hand())
    lottery, temperature = ax.get_lines()
    assert lottery.get_xdata()[0] == pytest.approx(0.02)
    assert lottery.get_ydata()[-1] == pytest.approx(0.5)
    assert len(temperature.get_xdata()) == 1 + len(WARMER)
