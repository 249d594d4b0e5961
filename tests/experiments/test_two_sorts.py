"""The programme by two sorts is the programme that HiGHS solves."""

import pytest
import torch

import fairpg_lite as fl
from experiments.learners import linear_regression
from experiments.problems import GermanData
from experiments.two_sorts import programme_exposure
from fairpg_lite.post_processing import group_rows, post_process
from fairpg_lite.relevance import exponential_gain, linear_gain

DATA = {
    "synthetic": fl.synthetic(40, seed=3, dtype=torch.float64),
    "german": GermanData(split="random", redrawn=True, n_train=40, n_test=40).load(1).test,
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(
    ("scaling", "gain"), [("definition", exponential_gain), ("authors", linear_gain)]
)
@pytest.mark.parametrize("lam", [0.0, 0.1, 0.95, 4.0, 1000.0])
def test_the_same_optimum_as_the_solver(name, scaling, gain, lam):
    data = DATA[name]
    estimate = linear_regression(data)(data.features).detach()
    found = programme_exposure(data, estimate, lam, scaling=scaling, gain=gain)
    policies = post_process(data, estimate, lam, scaling=scaling, gain=gain)
    bias = fl.position_bias(10, dtype=torch.float64)
    for query, policy in enumerate(policies):
        guess = estimate.view(-1, 10)[query]
        rows = group_rows(guess, data.groups.view(-1, 10)[query], scaling=scaling)
        values = []
        for exposure in (found[query], policy.matrix @ bias):
            values.append(gain(guess) @ exposure - lam * rows.disparity(exposure))
        assert torch.isclose(*values, rtol=1e-7, atol=1e-7)
        # No exposure of a mixture of lists can pay the top document more than the top position.
        assert found[query].sum() == pytest.approx(bias.sum().item())
        assert found[query].max() <= 1 + 1e-12


@pytest.mark.parametrize("name", DATA)
def test_the_same_measures_as_the_solver(name):
    """Where the optimum is unique, as with real-valued estimates, D_group and NDCG agree, too."""
    data = DATA[name]
    estimate = linear_regression(data)(data.features).detach()
    batch = next(iter(data.batches(40)))
    for scaling, gain in (("definition", exponential_gain), ("authors", linear_gain)):
        found = programme_exposure(data, estimate, 0.5, scaling=scaling, gain=gain)
        policies = post_process(data, estimate, 0.5, scaling=scaling, gain=gain)
        theirs = fl.evaluate(policies, data, measures=("ndcg", "d_group"))
        ndcg = fl.expected_ndcg(found, batch.relevance).mean()
        d_group = fl.group_disparity(found, batch.relevance, batch.groups).mean()
        assert ndcg.item() == pytest.approx(theirs.ndcg, abs=1e-6)
        assert d_group.item() == pytest.approx(theirs.d_group, abs=1e-6)


def test_equal_merit_is_charged_on_both_sides():
    relevance = torch.tensor([2.0, 1.0, 2.0, 1.0, 2.0, 1.0], dtype=torch.float64)
    groups = torch.tensor([0, 0, 0, 1, 1, 1])
    estimate = torch.tensor([3.0, 1.0, 0.5, 2.0, 1.5, 1.0], dtype=torch.float64)
    data = fl.RankingDataset(
        torch.zeros(6, 1, dtype=torch.float64), relevance, torch.tensor([0, 6]), groups=groups
    )
    found = programme_exposure(data, estimate, 50.0, scaling="definition", gain=linear_gain)
    (policy,) = post_process(data, estimate, 50.0, gain=linear_gain)
    bias = fl.position_bias(6, dtype=torch.float64)
    assert torch.allclose(found[0] @ estimate, policy.matrix @ bias @ estimate, atol=1e-7)
