"""The objective of a batch against its definition, query by query, and what it refuses."""

import pytest
import torch
from torch.testing import assert_close

from fairpg_lite import (
    PlackettLuce,
    RankingDataset,
    TrainConfig,
    fit,
    group_disparity,
    group_gap,
    ndcg,
    synthetic,
)
from fairpg_lite.batch import Batch
from fairpg_lite.objective import ideals
from fairpg_lite.scorers import LinearScorer


def ragged(lengths=(4, 2, 5), seed=0):
    """A padded batch, its scores, and the queries as they are without padding."""
    g = torch.Generator().manual_seed(seed)
    n, b = max(lengths), len(lengths)
    mask = torch.arange(n) < torch.tensor(lengths).unsqueeze(-1)
    relevance = torch.randint(0, 4, (b, n), generator=g).double() * mask
    groups = torch.arange(n).remainder(2).expand(b, n) * mask
    scores = torch.randn(b, n, generator=g, dtype=torch.float64)
    features = torch.zeros(b, n, 1, dtype=torch.float64)
    return scores, Batch(features, relevance, groups, mask, torch.arange(b))


@pytest.mark.parametrize("gain", ["exponential", "linear", "binary", lambda r: r**2])
@pytest.mark.parametrize(
    ("disparity", "function"), [("d_group", group_disparity), ("group_gap", group_gap)]
)
def test_terms_are_those_of_each_query_alone(gain, disparity, function):
    """Utility from enumerated positions, disparity from the plain function, no padding."""
    scores, batch = ragged()
    objective = TrainConfig(1.0, disparity, method="exact", tolerance=1e-12, gain=gain)
    terms = objective.terms(scores, batch)
    for i, real in enumerate(batch.mask):
        relevance = batch.relevance[i][real]
        policy = PlackettLuce(scores[i][real])
        rankings = torch.cartesian_prod(*[torch.arange(len(relevance))] * len(relevance))
        rankings = rankings[(rankings.sort(-1).values == torch.arange(len(relevance))).all(-1)]
        values = ndcg(rankings, relevance, gain=gain)
        mean = (policy.log_prob(rankings).exp() * values).sum()
        assert_close(terms.utility[i], mean, rtol=0, atol=1e-9)
        expected = function(policy.exposure(), relevance, batch.groups[i][real])
        assert_close(terms.disparity[i], expected, rtol=0, atol=1e-8)


def test_ideals_worked_out_once_give_the_terms_of_ideals_worked_out_again():
    lengths = (4, 2, 5)
    scores, batch = ragged(lengths)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    data = RankingDataset(batch.features[batch.mask], batch.relevance[batch.mask], offsets)
    bias = torch.tensor([1.0, 0.2, 0.7, 0.1, 0.0], dtype=torch.float64)
    objective = TrainConfig(method="exact", gain="linear", position_bias=bias)
    ideal = ideals(data, objective, torch.float64)
    turned = Batch(*(part.flip(0) for part in batch[:5]))
    for rows, b in ((scores, batch), (scores.flip(0), turned)):
        quick = objective.terms(rows, b, ideal=ideal)
        assert_close(quick.utility, objective.terms(rows, b).utility)


def test_no_gradient_is_made_where_none_is_wanted():
    scores, batch = ragged()
    with torch.no_grad():
        terms = TrainConfig(1.0, entropy=1.0).terms(scores.requires_grad_(), batch)
    assert not any(term.requires_grad for term in terms)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 10.0}, "samples is 10.0; give a whole number"),
        ({"samples": True}, "samples is True; give a whole number"),
        ({"samples": 0, "baseline": None}, "samples is 0; give a number above zero"),
        ({"gain": "cubic"}, "gain is 'cubic'; choose one of 'exponential', 'linear'"),
        ({"lam": float("inf")}, "lam is inf"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
    ],
)
def test_settings_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=f"TrainConfig: {message}"):
        TrainConfig(**changes)


def test_whole_numbers_may_come_from_numpy():
    np = pytest.importorskip("numpy")
    assert TrainConfig(samples=np.int64(7)).samples == 7
    with pytest.raises(ValueError, match=r"epochs is 2\.0"):
        TrainConfig(epochs=2.0)


def test_the_gap_is_closed_where_d_group_sees_nothing():
    """The group of lower merit is ahead: D_group is 0 and moves nothing, the gap closes."""
    relevance = torch.tensor([[2.0, 2.0, 1.0, 1.0]], dtype=torch.float64)
    groups, mask = torch.tensor([[0, 0, 1, 1]]), torch.ones(1, 4, dtype=torch.bool)
    batch = Batch(relevance.unsqueeze(-1), relevance, groups, mask, torch.tensor([0]))
    measured = {}
    for kind in ("d_group", "group_gap"):
        objective = TrainConfig(lam=1.0, disparity=kind, method="exact")
        scores = torch.tensor([[0.0, 0.0, 2.0, 2.0]], dtype=torch.float64, requires_grad=True)
        disparity = objective.terms(scores, batch).disparity
        (slope,) = torch.autograd.grad(disparity.sum(), scores)
        measured[kind] = disparity.item(), slope[0, 0].item()
    assert measured["d_group"] == (0.0, 0.0)
    assert measured["group_gap"][0] > 0.1
    assert measured["group_gap"][1] < -0.01


def test_the_gap_needs_groups():
    data = synthetic(n_queries=3, seed=0).replace(groups=None)
    with pytest.raises(ValueError, match="disparity='group_gap' with lam > 0 needs groups"):
        fit(LinearScorer(data.n_features), data, TrainConfig(lam=1.0, disparity="group_gap"))
