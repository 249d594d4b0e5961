"""Races with scores far apart: a window of documents at a time is as good as all of them."""

import pytest
import torch
from oracles import log2_bias
from torch.testing import assert_close

from fairpg_lite import PlackettLuce
from fairpg_lite.exact import exact_err

SAME = {"rtol": 0, "atol": 1e-14}


def found_with(cells, monkeypatch, scores, satisfied, mask):
    """Everything exact, with windows from so many cells on."""
    monkeypatch.setattr("fairpg_lite.far_apart._MANY_CELLS", cells)
    leaf = scores.clone().requires_grad_()
    exposure = PlackettLuce(leaf, mask).exposure()
    (grad,) = torch.autograd.grad((exposure * satisfied).sum(), leaf)
    probs = PlackettLuce(scores, mask).position_probs(1e-6)
    return exposure.detach(), grad, exact_err(scores, satisfied, mask), probs


@pytest.mark.parametrize("scale", [300.0, 3000.0])
def test_windows_change_nothing(scale, monkeypatch):
    """Queries that differ in spread and length; a reader who is satisfied for certain."""
    g = torch.Generator().manual_seed(0)
    scores = scale * torch.randn(3, 30, generator=g, dtype=torch.float64)
    scores[0] /= 100
    mask = torch.ones(3, 30, dtype=torch.bool)
    mask[1, 20:] = False
    satisfied = torch.rand(3, 30, generator=g, dtype=torch.float64) * mask
    satisfied[2] = satisfied[2].round()
    whole = found_with(10**12, monkeypatch, scores, satisfied, mask)
    monkeypatch.setattr("fairpg_lite.far_apart._MANY_LOOKS", 100)
    cut = found_with(0, monkeypatch, scores, satisfied, mask)
    for one, other in zip(whole, cut, strict=True):
        assert_close(other, one, **SAME)


def test_a_thousand_scores_far_apart():
    """The list is certain: exposure is the position bias, and RR that of the first relevant."""
    n = 1000
    scores = torch.linspace(1e5, -1e5, n, dtype=torch.float64)
    assert_close(PlackettLuce(scores).exposure(tolerance=1e-6), log2_bias(n), rtol=0, atol=1e-5)
    satisfied = torch.zeros(n, dtype=torch.float64)
    satisfied[[7, 500]] = 1.0
    assert_close(float(exact_err(scores, satisfied, tolerance=1e-6)), 1 / 8, rtol=0, atol=1e-5)
