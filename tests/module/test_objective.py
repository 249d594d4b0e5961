"""The objective of a batch against its definition, query by query, and what it refuses."""

import pytest
import torch
from torch.testing import assert_close

from fairpg_lite import (
    Mixture,
    PlackettLuce,
    RankingDataset,
    TrainConfig,
    average_precision,
    err,
    evaluate,
    fit,
    group_disparity,
    group_gap,
    ndcg,
    synthetic,
)
from fairpg_lite.batch import Batch
from fairpg_lite.objective import Objective, ideals
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
        ({"samples": 1}, "samples is 1; baseline='mean' needs at least two"),
        ({"reward_to_go": 1.5}, "reward_to_go is 1.5; choose one of True, False"),
        ({"reward_to_go": True, "utility": err}, "reward_to_go is True; utility .* no function of"),
        ({"reward_to_go": True, "method": "exact"}, "reward_to_go is True; method is 'exact'"),
        ({"baseline": "uniform"}, "baseline is 'uniform'; .* reward_to_go=True"),
    ],
)
def test_settings_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=f"TrainConfig: {message}"):
        TrainConfig(**changes)


def test_one_ranking_is_enough_for_the_uniform_baseline():
    assert TrainConfig(samples=1, baseline="uniform", reward_to_go=True).samples == 1


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


def half_random(scores, mask):
    """A lottery between the policy of the scores and that of all scores halved."""
    return Mixture([PlackettLuce(scores, mask), PlackettLuce(scores / 2, mask)], [0.5, 0.5])


def sharp_and_flat(scores, mask):
    return Mixture([PlackettLuce(3 * scores, mask), PlackettLuce(scores, mask)], [0.3, 0.7])


def test_a_mixture_is_trained_by_the_gradient_of_its_exposure():
    """Finite differences of the objective in the scores."""
    data = synthetic(n_queries=3, n_docs=5, seed=0, minority=0.4, dtype=torch.float64)
    batch = next(iter(data.batches(3)))
    objective = Objective(lam=2.0, method="exact", tolerance=1e-10, policy=sharp_and_flat)
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 5, generator=g, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: objective.total(objective.terms(s, batch)), scores, atol=1e-6
    )


def test_a_policy_of_ones_own_trains_and_is_judged():
    data = synthetic(n_queries=20, seed=0, dtype=torch.float64)
    values = []
    for lam in (0.0, 20.0):
        scorer = LinearScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        config = TrainConfig(
            lam=lam, method="exact", policy=half_random, lr=0.2, epochs=10, batch_size=10
        )
        fit(scorer, data, config, progress=False)
        values.append(evaluate(scorer, data, policy=half_random))
    assert values[1].d_group < values[0].d_group
    plain = evaluate(scorer, data)
    assert plain.ndcg != values[1].ndcg


def test_an_estimator_of_ones_own_trains():
    """The paper's estimator, handed over as a function, is the one by name."""
    data = synthetic(n_queries=10, seed=0, dtype=torch.float64)

    def paper(policy, position_bias, generator):
        return policy.sampled_exposure(position_bias, samples=10, generator=generator)

    weights = []
    for method in ("sample", paper):
        scorer = LinearScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        fit(scorer, data, TrainConfig(method=method, epochs=2, lr=0.1), progress=False)
        weights.append(scorer.linear.weight)
    assert torch.equal(*weights)


def test_an_optimizer_of_ones_own_trains():
    data = synthetic(n_queries=10, seed=0, dtype=torch.float64)
    weights = []
    for optimizer in ("adam", torch.optim.AdamW, torch.optim.Adam):
        scorer = LinearScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        config = TrainConfig(optimizer=optimizer, weight_decay=0.1, epochs=3, lr=0.1)
        fit(scorer, data, config, progress=False)
        weights.append(scorer.linear.weight.detach())
    assert torch.allclose(weights[0], weights[2], rtol=0, atol=1e-12)
    assert not torch.allclose(weights[0], weights[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "sample"}, r"needs a Plackett-Luce policy.*makes a Mixture"),
        ({"entropy": 0.1}, r"entropy is 0\.1.*makes a Mixture"),
        ({"utility": average_precision}, r"a utility of your own.*makes a Mixture"),
    ],
)
def test_what_only_plackett_luce_can_do_is_said(changes, message):
    data = synthetic(n_queries=4, seed=0)
    config = TrainConfig(**({"method": "exact", "policy": half_random} | changes))
    with pytest.raises(TypeError, match=message):
        fit(LinearScorer(2), data, config, progress=False)


def test_the_compiled_way_says_why_it_does_not_serve():
    data = synthetic(n_queries=4, seed=0)
    for changes, reason in (
        ({"policy": half_random, "method": "exact"}, "policy is"),
        ({"optimizer": torch.optim.AdamW}, "the optimizer is a AdamW"),
    ):
        with pytest.raises(ValueError, match=f"compiled=True, but {reason}"):
            fit(LinearScorer(2), data, TrainConfig(compiled=True, **changes), progress=False)
