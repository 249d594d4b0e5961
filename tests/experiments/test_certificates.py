"""The experiment on certificates: the rival's policy, its test, and what the stored tables say."""

import json
import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom

from experiments import certificates
from fairpg_lite import PlackettLuce, position_bias

STORED = Path(__file__).resolve().parents[2] / "results" / "certificates"


def exposure_by_lists(scores, threshold):
    """Over all lists: at each place the allowed documents share out their probability."""
    n = len(scores)
    bias = position_bias(n, dtype=torch.float64)
    exposure = torch.zeros(n, dtype=torch.float64)
    for ranking in permutations(range(n)):
        chance = 1.0
        for place in range(n):
            left = ranking[place:]
            weights = scores[list(left)].softmax(-1)
            allowed = (weights >= threshold) | (weights == weights.max())
            share = weights * allowed
            chance *= float(share[0] / share.sum())
        for place, document in enumerate(ranking):
            exposure[document] += chance * bias[place]
    return exposure


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, 1.0])
def test_the_rivals_exposure_is_that_of_all_lists(threshold):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    found = certificates.thresholded_exposure(scores, threshold)
    for row, exposure in zip(scores, found, strict=True):
        torch.testing.assert_close(exposure, exposure_by_lists(row, threshold))
    if threshold == 0.0:
        torch.testing.assert_close(found, PlackettLuce(scores).exposure(), atol=1e-8, rtol=0)


def test_hoeffding_and_bentkus_by_their_formulas():
    values = np.array([[0.0, 0.1, 0.3, 0.0] * 25, [0.5] * 100])
    delta, alpha = 0.2, 0.1
    expected = []
    for mean in values.mean(1):
        below = min(mean, delta)
        entropy = below * math.log(below / delta)
        entropy += (1 - below) * math.log((1 - below) / (1 - delta))
        bentkus = math.e * binom.cdf(math.ceil(100 * mean - 1e-9), 100, delta)
        expected.append(min(math.exp(-100 * entropy), bentkus) <= alpha)
    found = certificates.by_hoeffding_bentkus(values, delta, alpha, 1.0)
    assert found.tolist() == expected == [True, False]


def test_the_last_before_the_first_that_fails_is_chosen():
    d_group = np.array([[0.0], [0.1], [0.9], [0.2]])
    draws = np.zeros((2, 7), dtype=int)

    def test(values, delta, alpha, cap):
        return values.mean(1) <= delta

    assert certificates.chosen(d_group, draws, test, 0.5, 0.1, 1.0).tolist() == [1, 1]
    assert certificates.chosen(d_group + 1, draws, test, 0.5, 0.1, 1.0).tolist() == [-1, -1]


def test_the_stored_tables_are_whole_and_the_promise_was_kept():
    about = json.loads((STORED / "table.json").read_text("utf-8"))
    assert about["command"] == certificates.COMMAND
    assert about["commit"]
    assert "dirty" not in about["commit"]
    assert about["seeds"] == list(range(certificates.POPULATIONS))
    table = pd.read_csv(STORED / "table.csv", dtype={"cap": str})
    bounds = pd.read_csv(STORED / "bounds.csv")
    total = certificates.POPULATIONS * certificates.DRAWS
    assert total == 2000
    assert (table.draws == total).all()
    assert (bounds.draws == total).all()
    assert set(table.queries) == set(certificates.SIZES)
    promised = table[table.test != "normal interval"]
    assert (promised.violations <= promised.alpha * total).all()
    by_betting = bounds[bounds.bound.str.startswith("betting")]
    assert (by_betting.wrong <= by_betting.alpha * total).all()
