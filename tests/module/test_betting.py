"""Betting bounds: the game as its definition has it, and how often it errs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpg_lite.betting import betting_bound, log_capital, queries_needed

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def capital_by_hand(values, mean, alpha):
    """The game one number after the other, stakes from the numbers before."""
    n = len(values)
    capital = best = 1.0
    running_sum, running_squares, count = 0.5, 0.25, 1
    for place, value in enumerate(values):
        variance = running_squares / count
        stake = math.sqrt(2 * math.log(1 / alpha) / (n * variance))
        stake = min(stake, 0.95 / (1 - mean))
        capital *= 1 - stake * (value - mean)
        best = capital if place == 0 else max(best, capital)
        running_sum += value
        count += 1
        running_squares += (value - running_sum / count) ** 2
    return best


@given(SHARES, st.floats(0.01, 0.99), st.sampled_from([0.01, 0.1, 0.5]))
@settings(max_examples=60, deadline=None)
def test_the_capital_is_that_of_the_game(values, mean, alpha):
    found = log_capital(torch.tensor(values, dtype=torch.float64), mean, alpha)
    assert float(found) == pytest.approx(math.log(capital_by_hand(values, mean, alpha)), abs=1e-9)


@given(SHARES, st.sampled_from([0.05, 0.3]))
@settings(max_examples=40, deadline=None)
def test_the_bound_is_the_least_mean_that_is_rejected(values, alpha):
    """Against a scan: all means above the bound are rejected, none below it."""
    sample = torch.tensor(values, dtype=torch.float64)
    bound = float(betting_bound(sample, alpha))
    for mean in np.linspace(0.013, 0.987, 40):
        is_rejected = float(log_capital(sample, mean, alpha)) >= math.log(1 / alpha)
        assert is_rejected == (mean > bound)


@pytest.mark.parametrize("cap", [0.2, 1.0, 5.0])
def test_units_do_not_matter(cap):
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(3, 50, generator=generator, dtype=torch.float64)
    by_unit = betting_bound(values, 0.1)
    torch.testing.assert_close(betting_bound(cap * values, 0.1, cap=cap), cap * by_unit)


def test_what_is_above_the_cap_counts_as_the_cap():
    values = torch.tensor([0.1, 3.0, 0.0, 0.2], dtype=torch.float64)
    assert torch.equal(
        betting_bound(values, 0.2, cap=0.5), betting_bound(values.clamp(max=0.5), 0.2, cap=0.5)
    )


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("draw", ["rare", "even", "two-valued"])
def test_the_bound_is_too_low_no_oftener_than_promised(draw, alpha):
    """4,000 samples of distributions on which intervals tend to fail."""
    generator = np.random.default_rng(1)
    shape = (4000, 60)
    if draw == "rare":  # one in fifty is large: the normal interval often sees none
        values = np.where(generator.random(shape) < 0.02, 1.0, 0.0)
        mean = 0.02
    elif draw == "even":
        values = generator.random(shape)
        mean = 0.5
    else:
        values = np.where(generator.random(shape) < 0.3, 0.9, 0.1)
        mean = 0.34
    bounds = betting_bound(torch.from_numpy(values), alpha).numpy()
    wrong = (bounds < mean).mean()
    assert wrong <= alpha + 4 * math.sqrt(alpha * (1 - alpha) / 4000)
    if draw == "rare":
        deviation = values.std(1, ddof=1) / math.sqrt(60)
        normal = values.mean(1) + 1.6449 * deviation
        assert (normal < mean).mean() > 0.25  # the test would notice


@pytest.mark.parametrize(
    ("delta", "alpha", "cap", "mean"), [(0.01, 0.1, 1.0, 0.0), (0.05, 0.05, 0.4, 0.02)]
)
def test_queries_needed_is_where_the_bound_gets_small_enough(delta, alpha, cap, mean):
    needed = queries_needed(delta, alpha, cap=cap, mean=mean)
    bounds = []
    for n in (needed - 1, needed):
        values = torch.full((n,), mean, dtype=torch.float64)
        bounds.append(float(betting_bound(values, alpha, cap=cap)))
    assert bounds[1] <= delta < bounds[0]
    rough = cap * math.log(1 / alpha) / (delta - mean)
    assert 0.9 * rough < needed < 1.6 * rough


def test_wrong_arguments_are_refused():
    values = torch.zeros(5)
    for call, words in (
        (lambda: betting_bound(values, 0.0), "alpha is 0"),
        (lambda: betting_bound(values, 0.1, cap=0.0), "cap is 0"),
        (lambda: betting_bound(values - 1, 0.1), r"values\[0\] is -1"),
        (lambda: betting_bound(values * math.nan, 0.1), r"values\[0\] is nan"),
        (lambda: betting_bound(torch.zeros(0), 0.1), "at least one"),
        (lambda: log_capital(values, 1.0, 0.1), "mean is 1"),
        (lambda: queries_needed(0.1, 0.1, mean=0.2), "mean is 0.2"),
        (lambda: queries_needed(2.0, 0.1), "delta is 2"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
