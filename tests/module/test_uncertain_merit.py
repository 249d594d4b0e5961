"""phi-fairness against enumeration, and what it refuses."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from fairpg_lite import DoublyStochastic, Mixture, PlackettLuce, RankingDataset, evaluate, synthetic
from fairpg_lite.uncertain_merit import phi_fairness, top_k_probs


def top_k_by_enumeration(posterior):
    """The share of draws and of orders sorted by them in which each is among the k best."""
    n = len(posterior[0])
    probs = np.zeros((n, n))
    for draw in posterior:
        orders = [
            order
            for order in itertools.permutations(range(n))
            if all(draw[a] >= draw[b] for a, b in itertools.pairwise(order))
        ]
        for order in orders:
            for place, document in enumerate(order):
                probs[document, place:] += 1.0 / len(orders) / len(posterior)
    return probs


def phi_by_loop(position_probs, posterior):
    deserved = top_k_by_enumeration(posterior)
    phi = 1.0
    for i, k in itertools.product(range(len(deserved)), repeat=2):
        if deserved[i, k] > 0:
            phi = min(phi, sum(position_probs[i][: k + 1]) / deserved[i, k])
    return phi


def random_posterior(seed, n, draws=5):
    """Draws with many ties."""
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, 3, (draws, n), generator=g).double()


@given(seed=st.integers(0, 10_000), n=st.integers(1, 5))
def test_against_enumeration_and_padding_changes_nothing(seed, n):
    posterior = random_posterior(seed, n)
    scores = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    probs = PlackettLuce(scores).position_probs()
    expected = top_k_by_enumeration(posterior.tolist())
    assert_close(top_k_probs(posterior), torch.from_numpy(expected), rtol=0, atol=1e-12)
    phi = phi_fairness(probs, posterior)
    assert_close(float(phi), phi_by_loop(probs.tolist(), posterior.tolist()), rtol=0, atol=1e-9)
    mask = torch.arange(n + 2) < n
    padded = PlackettLuce(torch.cat([scores, torch.ones(2).double()]), mask).position_probs()
    longer = torch.cat([posterior, torch.full((len(posterior), 2), 9.0).double()], -1)
    assert_close(phi_fairness(padded, longer, mask), phi, rtol=0, atol=1e-9)


def test_ranking_by_a_draw_is_fair_and_half_of_it_is_half_fair():
    posterior = torch.tensor([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]).double()
    lottery = torch.zeros(3, 3, dtype=torch.float64)
    for draw in posterior:
        for place, document in enumerate(draw.argsort(descending=True)):
            lottery[document, place] += 1 / 3
    assert_close(phi_fairness(lottery, posterior), torch.tensor(1.0).double())
    best_first = DoublyStochastic(torch.eye(3, dtype=torch.float64))
    mixed = Mixture([DoublyStochastic(lottery), best_first], [0.5, 0.5])
    # Document 2 is best in a third of the draws, and first in a sixth of the lists.
    assert_close(phi_fairness(mixed.position_probs(), posterior), torch.tensor(0.5).double())


def test_gradient_by_finite_differences():
    posterior = torch.stack([random_posterior(seed, 4, 7) for seed in range(3)], 1)
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 4, generator=g, dtype=torch.float64)
    matrix = PlackettLuce(scores).position_probs()
    assert torch.autograd.gradcheck(lambda p: phi_fairness(p, posterior), matrix.requires_grad_())


def test_scores_can_be_trained_for_it():
    posterior = torch.stack([random_posterior(seed, 4, 20) for seed in range(3)], 1)
    scores = torch.tensor([3.0, 1.0, -1.0, -3.0]).double().repeat(3, 1).requires_grad_()
    optimizer = torch.optim.Adam([scores], lr=0.1)
    losses = []
    for _ in range(60):
        loss = (1.0 - phi_fairness(PlackettLuce(scores).position_probs(), posterior)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 0.8
    assert losses[-1] < 0.3


def test_evaluate_reports_it_for_queries_of_any_length():
    lengths = [3, 5, 1, 4]
    n = sum(lengths)
    g = torch.Generator().manual_seed(0)
    data = RankingDataset(
        torch.randn(n, 2, generator=g, dtype=torch.float64),
        torch.randint(0, 3, (n,), generator=g).double(),
        [0, *np.cumsum(lengths).tolist()],
    )
    posterior = torch.randint(0, 3, (6, n), generator=g).double()
    scores = torch.randn(n, generator=g, dtype=torch.float64)
    result = evaluate(scores, data, ("ndcg", "phi"), posterior=posterior)
    for number, (start, end) in enumerate(itertools.pairwise(data.offsets.tolist())):
        probs = PlackettLuce(scores[start:end]).position_probs()
        expected = phi_by_loop(probs.tolist(), posterior[:, start:end].tolist())
        assert_close(float(result.per_query["phi"][number]), expected, rtol=0, atol=1e-9)
    low, high = result.interval("phi")
    assert low <= result.phi <= high
    fixed = evaluate(scores, data, ("phi",), posterior=posterior, deterministic=True)
    assert fixed.phi <= result.phi
    float32 = evaluate(scores, data, ("phi",), posterior=posterior.float())
    assert_close(float32.phi, result.phi)


def test_bad_input_is_said():
    data = synthetic(n_queries=3, n_docs=4, seed=0)
    with pytest.raises(ValueError, match=r"phi needs draws .* posterior= of shape \(D, 12\)"):
        evaluate(data.relevance, data, ("phi",))
    with pytest.raises(ValueError, match=r"posterior has shape \(5, 4\), and the dataset has 12"):
        evaluate(data.relevance, data, ("phi",), posterior=torch.rand(5, 4))
    with pytest.raises(ValueError, match=r"posterior has shape \(12,\), and the dataset has 12"):
        evaluate(data.relevance, data, ("phi",), posterior=torch.rand(12))
    with pytest.raises(ValueError, match="posterior holds no draw"):
        evaluate(data.relevance, data, ("phi",), posterior=torch.rand(0, 12))
    with pytest.raises(TypeError, match=r"posterior is torch\.int64; give a tensor of numbers"):
        evaluate(data.relevance, data, ("phi",), posterior=torch.ones(5, 12, dtype=torch.int64))
    broken = torch.rand(5, 12)
    broken[2, 7] = torch.nan
    with pytest.raises(ValueError, match=r"posterior\[2, 7\] is nan"):
        evaluate(data.relevance, data, ("phi",), posterior=broken)
    with pytest.raises(ValueError, match=r"posterior has shape \(5, 3\) for documents \(4,\)"):
        phi_fairness(torch.eye(4), torch.rand(5, 3))
    with pytest.raises(TypeError, match="posterior is a list"):
        phi_fairness(torch.eye(4), [[1.0] * 4])
    with pytest.raises(ValueError, match=r"position_probs has shape \(4, 3\)"):
        phi_fairness(torch.rand(4, 3), torch.rand(5, 4))
    with pytest.raises(ValueError, match=r"posterior has shape \(4,\); give draws first"):
        top_k_probs(torch.rand(4))
