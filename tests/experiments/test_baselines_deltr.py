"""DELTR's loss by hand, against the package fairsearchdeltr, and its optimum."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from experiments.learners import GAPS, deltr_loss, top_exposure_gap
from experiments.learners import deltr as deltr_of
from fairpg_lite import LinearScorer
from fairpg_lite.data import RankingDataset, synthetic


def deltr(data, lam, scorer=None, **how):
    """From the same linear scorer each time, unless there is one."""
    begin = {"generator": torch.Generator().manual_seed(0), "dtype": data.features.dtype}
    return deltr_of(data, lam, scorer=scorer or LinearScorer(data.n_features, **begin), **how)


STORED = json.loads(
    (Path(__file__).resolve().parents[1] / "fixtures" / "fairsearchdeltr.json").read_text()
)


def by_hand(scores, relevance, groups, lam, gap):
    top = [math.exp(s) for s in scores]
    top = [t / sum(top) for t in top]
    aim = [math.exp(r) for r in relevance]
    aim = [a / sum(aim) for a in aim]
    loss = -sum(a * math.log(t) for a, t in zip(aim, top, strict=True))
    ours = [t for t, g in zip(top, groups, strict=True) if g == 1]
    others = [t for t, g in zip(top, groups, strict=True) if g == 0]
    behind = sum(others) / len(others) - sum(ours) / len(ours)
    counted = {
        "one-sided": max(0.0, behind),
        "two-sided": behind,
        "reversed": max(0.0, -behind),
    }[gap]
    return loss + lam * counted**2


@pytest.mark.parametrize("gap", list(GAPS))
def test_the_loss_by_hand_in_a_padded_batch(gap, generator):
    scores = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    relevance = torch.rand(3, 6, generator=generator, dtype=torch.float64)
    groups = torch.tensor([[0, 1, 0, 1, 1, 0]] * 3)
    mask = torch.arange(6) < torch.tensor([[6], [4], [2]])
    scores.requires_grad_()
    losses = deltr_loss(scores, relevance, groups, 7.0, mask, gap=gap)
    for q, n in enumerate((6, 4, 2)):
        row = (x[q, :n].tolist() for x in (scores, relevance, groups))
        assert losses[q].item() == pytest.approx(by_hand(*row, 7.0, gap))
    (gradient,) = torch.autograd.grad(losses.sum(), scores)
    assert torch.isfinite(gradient).all()
    assert (gradient[~mask] == 0).all()


def test_one_sided_and_reversed_share_the_two_sided_square(generator):
    scores = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    groups = torch.tensor([0, 0, 1, 1]).expand(50, 4)
    plain = deltr_loss(scores, scores, groups, 0.0)
    parts = {gap: deltr_loss(scores, scores, groups, 3.0, gap=gap) - plain for gap in GAPS}
    torch.testing.assert_close(parts["one-sided"] + parts["reversed"], parts["two-sided"])
    behind = top_exposure_gap(scores, groups) > 0
    assert (parts["one-sided"][behind] > 0).all()
    assert (parts["one-sided"][~behind] == 0).all()
    assert (parts["reversed"][behind] == 0).all()


def test_queries_without_two_sides_have_no_gap():
    one = torch.tensor([[1.3]])
    assert deltr_loss(one, one, torch.tensor([[1]]), 1e6).tolist() == [0.0]
    scores, relevance = torch.tensor([2.0, 0.0]), torch.tensor([0.0, 0.0])
    for group in (0, 1):
        groups = torch.tensor([group, group])
        assert top_exposure_gap(scores, groups) == 0
        assert deltr_loss(scores, relevance, groups, 1e6) == deltr_loss(
            scores, relevance, groups, 0.0
        )
    nothing = deltr_loss(scores, relevance, torch.tensor([0, 0]), 1.0, target="relevance")
    assert nothing == 0


def test_the_authors_target_is_relevance_itself():
    scores, relevance = torch.tensor([0.3, -0.2, 0.0]), torch.tensor([2.0, 0.0, 1.0])
    expected = -(relevance * scores.log_softmax(-1)).sum()
    got = deltr_loss(scores, relevance, torch.tensor([0, 1, 0]), 0.0, target="relevance")
    torch.testing.assert_close(got, expected)


# fairsearchdeltr 1.0.2. Its loss of a query is the cross-entropy over log(number of documents in
# the whole dataset) plus gamma times the squared gap of exposures with v_1 = 1/ln 2.


def ours(case, gamma):
    """The package's loss of the first query from our loss, and its slope in the weights."""
    weights = torch.tensor(case["weights"], dtype=torch.float64, requires_grad=True)
    first = torch.tensor(case["queries"]) == 1
    x = torch.tensor(case["features"], dtype=torch.float64)[first]
    y = torch.tensor(case["judgements"], dtype=torch.float64)[first]
    groups, scores = x[:, 0].long(), x @ weights
    fidelity = deltr_loss(scores, y, groups, 0.0)
    penalty = deltr_loss(scores, y, groups, 1.0) - fidelity
    loss = fidelity / math.log(len(case["queries"])) + gamma * penalty / math.log(2) ** 2
    (slope,) = torch.autograd.grad(loss, weights)
    gap = float(top_exposure_gap(scores, groups).detach().relu()) / math.log(2)
    return float(loss.detach()), gap, slope.tolist()


@pytest.mark.parametrize("name", ["common", "single"])
@pytest.mark.parametrize("gamma", [0.0, 2.0])
def test_our_loss_is_the_package_s_loss(name, gamma):
    stored = STORED[name][f"gamma={gamma}"]
    loss, gap, slope = ours(STORED[name], gamma)
    assert STORED["package"] == "fairsearchdeltr 1.0.2"
    assert loss == pytest.approx(stored["loss"], abs=1e-12)
    assert gap == pytest.approx(stored["gap"], abs=1e-12)
    # Finite differences of the package's own loss have our slope ...
    assert slope == pytest.approx(stored["differences"], abs=1e-8)


def test_where_the_package_s_gradient_is_that_of_its_loss():
    for name, gamma in (("common", 0.0), ("single", 0.0), ("single", 2.0)):
        stored = STORED[name][f"gamma={gamma}"]
        assert stored["gradient"] == pytest.approx(stored["differences"], abs=1e-8)


def test_where_it_is_not():
    """... but the direction it descends along is another as soon as the gap counts.

    Its derivative of a group's exposure sums over features what is one number for each feature,
    and counts a sum over the group once for each member; with one feature and one document on
    each side neither shows. Every query counts once for each of its documents.
    """
    stored = STORED["common"]["gamma=2.0"]
    error = np.abs(np.subtract(stored["gradient"], stored["differences"]))
    assert error.max() > 1.0
    x = np.array(STORED["common"]["features"])[:4]
    e = np.exp(x @ STORED["common"]["weights"])
    side, z = x[:, 0] == 1, e.sum()

    def theirs(chosen):
        own, everyone = e[chosen] @ x[chosen], (e @ x).sum()
        return own / z / math.log(2) - (e[chosen].mean() * everyone) / z**2 / math.log(2)

    wrong = 2 * 2.0 * stored["gap"] * (theirs(~side) - theirs(side))
    plain = STORED["common"]["gamma=0.0"]["gradient"]
    assert stored["gradient"] == pytest.approx((np.array(plain) + wrong).tolist(), abs=1e-12)
    assert stored["queries_in_the_sum"] == len(STORED["common"]["queries"])


# Training.


@pytest.fixture(scope="module")
def data():
    return synthetic(n_queries=30, seed=4, dtype=torch.float64)


def mean_loss(weights, data, lam, gap):
    losses = [deltr_loss(q.features @ weights, q.relevance, q.groups, lam, gap=gap) for q in data]
    return torch.stack(losses).mean()


@pytest.mark.parametrize("gap", list(GAPS))
def test_lbfgs_finds_what_another_optimiser_finds(gap, data):
    lam = 300.0

    def objective(w):
        weights = torch.tensor(w, dtype=torch.float64, requires_grad=True)
        loss = mean_loss(weights, data, lam, gap)
        (slope,) = torch.autograd.grad(loss, weights)
        return float(loss.detach()), slope.numpy()

    starts = [np.zeros(2), np.array([0.5, 0.5]), np.array([0.5, -0.5])]
    reference = min(minimize(objective, w, jac=True, method="BFGS").fun for w in starts)
    weights = deltr(data, lam, gap=gap).linear.weight[0].detach()
    assert float(mean_loss(weights, data, lam, gap)) == pytest.approx(reference, abs=1e-7)


def test_the_scorer_given_is_trained_and_never_made_worse(data):
    model = torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False), torch.nn.Flatten(-2)).double()
    assert deltr(data, 1.0, scorer=model) is model
    assert torch.allclose(model[0].weight, deltr(data, 1.0).linear.weight, atol=1e-5)
    best = model[0].weight.detach().clone()
    deltr(data, 1.0, scorer=model)
    assert float(mean_loss(model[0].weight[0].detach(), data, 1.0, "one-sided")) <= float(
        mean_loss(best[0], data, 1.0, "one-sided")
    )
    with torch.no_grad():
        model[0].weight.fill_(math.nan)
    assert deltr(data, 1.0, scorer=model)[0].weight.isnan().all()


def test_the_price_works_on_the_gap(data):
    """Where the protected group is behind, DELTR brings it forward; the reversed form does not."""

    def behind(gap, lam):
        model = deltr(data, lam, gap=gap)
        gaps = [top_exposure_gap(model(q.features), q.groups) for q in data]
        return float(torch.stack(gaps).relu().square().mean().detach())

    assert behind("one-sided", 1e3) < 0.2 * behind("one-sided", 0.0)
    assert behind("two-sided", 1e3) < 0.2 * behind("two-sided", 0.0)
    assert behind("reversed", 1e3) > behind("reversed", 0.0)


def test_errors_name_the_input(data):
    two = torch.zeros(2)
    with pytest.raises(ValueError, match="gap is 'other'"):
        deltr_loss(two, two, torch.tensor([0, 1]), 1.0, gap="other")
    with pytest.raises(ValueError, match="target is 'x'"):
        deltr_loss(two, two, torch.tensor([0, 1]), 1.0, target="x")
    with pytest.raises(ValueError, match="no groups"):
        deltr(data.replace(groups=None), 1.0)
    with pytest.raises(ValueError, match="lam is -1"):
        deltr(data, -1)
    single = RankingDataset(torch.ones(1, 2), torch.ones(1), [0, 1], groups=torch.tensor([0]))
    start = deltr(single, 5.0).linear.weight
    assert torch.equal(start, deltr(single, 0.0).linear.weight)  # nothing to gain, nothing moved
