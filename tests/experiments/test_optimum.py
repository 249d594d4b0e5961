"""The optimum of U - lam * D by a plain grid, and what it says of the book's data."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch

from experiments import optimum
from experiments.optimum import STORED, best_row, measured, optimum_path, sorted_lists
from fairpg_lite import LinearScorer, evaluate, synthetic

LAMS = [20.0, 3.0, 8.0]


@pytest.fixture(scope="module")
def small():
    return synthetic(n_queries=6, n_docs=5, seed=4, dtype=torch.float64)


@pytest.fixture(scope="module")
def path(small):
    return optimum_path(small, LAMS, [(4.0, 3.0), (0.5, 0.2)])


def test_what_is_measured_is_what_evaluate_says(small):
    batch = next(iter(small.batches(len(small), dtype=torch.float64)))
    weights = torch.tensor([1.5, -0.4], dtype=torch.float64)
    scorer = LinearScorer(2, dtype=torch.float64)
    with torch.no_grad():
        scorer.linear.weight.copy_(weights)
    judged = evaluate(scorer, small)
    ndcg, d_group = measured(batch, weights)
    assert math.isclose(ndcg, judged.ndcg, abs_tol=1e-7)
    assert math.isclose(d_group, judged.d_group, abs_tol=1e-7)


def test_no_point_of_a_grid_is_better(small, path):
    batch = next(iter(small.batches(len(small), dtype=torch.float64)))
    angles, lengths = np.linspace(-0.6, 1.2, 19), np.geomspace(0.05, 40, 25)
    grid = [(r * math.cos(a), r * math.sin(a)) for a in angles for r in lengths]
    found = torch.tensor(
        [[float(x) for x in measured(batch, torch.tensor(w, dtype=torch.float64))] for w in grid]
    ).double()
    for lam, best in path.items():
        on_grid = (found[:, 0] - lam * found[:, 1]).max().item()
        assert best.ndcg - lam * best.d_group > on_grid - 1e-5


def test_a_higher_price_never_buys_more_disparity(path):
    """True of global optima, by adding up two inequalities; a local one can break it."""
    assert list(path) == sorted(LAMS)
    d_group = [best.d_group for best in path.values()]
    ndcg = [best.ndcg for best in path.values()]
    assert all(a >= b - 1e-6 for a, b in itertools.pairwise(d_group))
    assert all(a >= b - 1e-6 for a, b in itertools.pairwise(ndcg))


@pytest.mark.parametrize("seed", [0, 3])
def test_stored_optima_beat_their_neighbours_and_every_sorted_list(seed):
    """Chapter 9 draws them; finding them takes a quarter of an hour, checking them a second."""
    dataset = synthetic(seed=seed, dtype=torch.float64)
    batch = next(iter(dataset.batches(len(dataset), dtype=torch.float64)))
    lists = sorted_lists(dataset, angles=73)
    stored = pd.read_csv(STORED)
    rows = stored[stored.seed == seed]
    assert sorted(rows.lam) == [0.0, *optimum.LAMS]
    for row in rows.itertuples():
        best = row.ndcg - row.lam * row.d_group
        assert (lists.ndcg - row.lam * lists.d_group).max() < best + 1e-7
        if row.length > 50:
            continue  # exposure of a list that is almost sorted takes long
        weights = torch.tensor([row.theta1, row.theta2], dtype=torch.float64)
        assert np.allclose(measured(batch, weights), (row.ndcg, row.d_group), atol=1e-6)
        for factor in (0.9, 1.1):
            ndcg, d_group = measured(batch, factor * weights)
            assert ndcg - row.lam * d_group < best + 1e-5


def test_a_sorted_list_takes_the_place_of_worse_weights(small):
    lists = sorted_lists(small, angles=19)
    useful = lists.loc[lists.ndcg.idxmax()]
    row = best_row(small, 0.0, [0.1, -0.2], lists)
    assert (row["angle"], row["ndcg"], row["length"]) == (useful.angle, useful.ndcg, math.inf)
    row = best_row(small, 100.0, [0.1, 0.05], lists)
    assert row["length"] == pytest.approx(math.hypot(0.1, 0.05))
    assert row["angle"] == pytest.approx(math.degrees(math.atan2(0.05, 0.1)))
