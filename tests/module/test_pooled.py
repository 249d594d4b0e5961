"""Measures over many queries, each against a loop over its definition."""

import dataclasses
import itertools
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test
from torch.testing import assert_close

from fairpg_lite import (
    LinearScorer,
    Mixture,
    PlackettLuce,
    RankingDataset,
    TrainConfig,
    evaluate,
    fit,
    fit_to_budget,
    german_credit,
    group_disparity,
    individual_disparity,
    pooling,
    resampling,
    synthetic,
)
from fairpg_lite.batch import Batch
from fairpg_lite.fair_division import dominance_shortfall, envy
from fairpg_lite.measures import MEASURES
from fairpg_lite.policy import FixedRanking
from fairpg_lite.pooling import Pool, PooledValue, pooled_disparity
from fairpg_lite.resampling import drawn_indices, fair_coins
from fairpg_lite.training.run import Run
from fairpg_lite.training.validation import objective_on

# Everything but what compares with an ideal ranking, which only one query has.
POOLABLE = [
    name
    for name, row in MEASURES.items()
    if row.function is not None and name not in ("ee_l", "ee_r")
]
TRAINABLE = [name for name in POOLABLE if MEASURES[name].disparity is not None]
PRODUCTS = ("clicks", "nash", "gini_welfare", "envy", "dominance")


def random_queries(rng, n_queries=4, n_items=5, n_groups=2, longest=4):
    """Queries as lists of (item, group, exposure, merit), no item twice in a query."""
    group_of_item = rng.integers(0, n_groups, n_items).tolist()
    queries = []
    for _ in range(n_queries):
        items = rng.permutation(n_items)[: rng.integers(1, longest + 1)].tolist()
        queries.append(
            [
                (item, group_of_item[item], float(rng.uniform(0.1, 1.0)), float(rng.integers(0, 4)))
                for item in items
            ]
        )
    return queries


def doubles(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def pool_of(queries):
    rows = [(*row, number) for number, query in enumerate(queries) for row in query]
    items, groups, exposure, merit, numbers = zip(*rows, strict=True)
    return Pool(
        doubles(exposure),
        doubles(merit),
        torch.tensor(groups),
        torch.tensor(items),
        torch.tensor(numbers),
    )


def summed_by_item(queries):
    """Exposure, merit and group of each item, in plain numbers."""
    sums = {}
    for item, group, exposure, merit in itertools.chain(*queries):
        total = sums.setdefault(item, [0.0, 0.0, group])
        total[0] += exposure
        total[1] += merit
    return [sums[item] for item in sorted(sums)]


def impact(queries, i, j):
    """What item i would get in the places of item j, by the table of queries and items."""
    total = 0.0
    for query in queries:
        merit = {item: m for item, _, _, m in query}
        exposure = {item: v for item, _, v, _ in query}
        total += merit.get(i, 0.0) * exposure.get(j, 0.0)
    return total / len(queries)


def by_loop(name, queries):
    """The measures that need the table, item by item."""
    items = sorted({row[0] for query in queries for row in query})
    if name == "envy":
        largest = [max(impact(queries, i, j) for j in items) - impact(queries, i, i) for i in items]
        return sum(largest) / len(items)
    if name == "dominance":
        shortfall = 0.0
        for i in items:
            at_random = 0.0
            for query in queries:
                mean = sum(v for _, _, v, _ in query) / len(query)
                at_random += sum(m * mean for item, _, _, m in query if item == i) / len(queries)
            shortfall += max(0.0, at_random - impact(queries, i, i))
        return shortfall / len(items)
    if name == "clicks":
        rates = []
        for group in sorted({row[1] for query in queries for row in query}):
            members = [row for query in queries for row in query if row[1] == group]
            total = sum(m for *_, m in members)
            if total > 0:
                rates.append(sum(v * m for _, _, v, m in members) / total)
        pairs = [abs(a - b) for a, b in itertools.combinations(rates, 2)]
        return sum(pairs) / len(pairs) if pairs else 0.0
    impacts = [impact(queries, i, i) * len(queries) for i in items]
    impacts = [y for i, y in zip(items, impacts, strict=True) if merit_of(queries, i) > 0]
    if not impacts:
        return 0.0
    if name == "nash":
        return -sum(np.log(y) for y in impacts) / len(impacts)
    assert name == "gini_welfare"
    mean = sum(impacts) / len(impacts)
    spread = sum(abs(a - b) for a in impacts for b in impacts) / (2 * len(impacts) ** 2)
    return spread - mean


def merit_of(queries, i):
    return sum(m for query in queries for item, _, _, m in query if item == i)


@pytest.mark.parametrize("name", POOLABLE)
@given(seed=st.integers(0, 10_000))
def test_the_pooled_value_is_the_function_of_sums_made_by_a_loop(name, seed):
    queries = random_queries(np.random.default_rng(seed))
    function = MEASURES[name].function
    if name in PRODUCTS:
        expected = by_loop(name, queries)
    else:
        exposure, merit, groups = zip(*summed_by_item(queries), strict=True)
        expected = function(doubles(exposure), doubles(merit), torch.tensor(groups))
    value = pooled_disparity(function, pool_of(queries), "item")
    assert value.shape == ()
    assert_close(float(value), float(expected), rtol=0, atol=1e-9)
    one_list = list(itertools.chain(*queries))
    _, groups, exposure, merit = zip(*one_list, strict=True)
    expected = function(doubles(exposure), doubles(merit), torch.tensor(groups))
    value = pooled_disparity(function, pool_of(queries), "dataset")
    assert_close(value, expected, rtol=0, atol=1e-12)


def test_d_group_of_a_dataset_is_total_exposure_over_total_merit():
    exposure = torch.tensor([1.0, 0.5, 1.0, 0.5])
    merit = torch.tensor([2.0, 0.0, 0.0, 1.0])
    groups = torch.tensor([0, 1, 0, 1])  # no query has merit in both groups
    pool = Pool(exposure, merit, groups, None, torch.tensor([0, 0, 1, 1]))
    assert pooled_disparity(group_disparity, pool, "dataset") == 2.0 / 2.0 - 1.0 / 1.0
    by_query = group_disparity(
        exposure.view(2, 2), merit.view(2, 2), groups.view(2, 2), undefined=torch.nan
    )
    assert by_query.isnan().all()


@pytest.mark.parametrize("function", [envy, dominance_shortfall])
@given(seed=st.integers(0, 10_000))
def test_one_query_needs_no_ids(function, seed):
    g = torch.Generator().manual_seed(seed)
    exposure = torch.rand(6, generator=g, dtype=torch.float64)
    merit = torch.randint(0, 3, (6,), generator=g).double()
    mask = torch.rand(6, generator=g) < 0.7
    by_ids = function(exposure, merit, mask=mask, document_ids=torch.randperm(6, generator=g))
    assert_close(function(exposure, merit, mask=mask), by_ids, rtol=0, atol=1e-12)
    real = function(exposure[mask], merit[mask]) if mask.any() else torch.zeros(())
    assert_close(by_ids, real.double(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("pooled", ["item", "dataset"])
@pytest.mark.parametrize("name", TRAINABLE)
def test_gradient_by_finite_differences(name, pooled):
    pool = pool_of(random_queries(np.random.default_rng(5), n_queries=6, n_items=7))
    pool = dataclasses.replace(pool, merit=pool.merit + 0.5)

    def value(exposure):
        moved = dataclasses.replace(pool, exposure=exposure)
        return pooled_disparity(MEASURES[name].function, moved, pooled)

    assert torch.autograd.gradcheck(value, pool.exposure.requires_grad_())


def repeating_data(n_queries=12, n_items=9, seed=0):
    """Queries of different lengths that draw from the same items."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 6, n_queries)
    ids = np.concatenate([rng.permutation(n_items)[:n] for n in lengths])
    quality = rng.uniform(0, 1, n_items)
    group = np.arange(n_items) % 2
    features = np.stack([quality[ids], group[ids], rng.normal(size=len(ids))], -1)
    return RankingDataset(
        torch.from_numpy(features),
        torch.from_numpy(rng.integers(0, 3, len(ids)).astype(float)),
        [0, *lengths.cumsum().tolist()],
        groups=group[ids],
        document_ids=ids,
    )


def scorer_for(data, seed=0):
    return LinearScorer(
        data.n_features,
        init=1.0,
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(seed),
    )


def queries_of(data, scorer, numbers=None):
    """The queries of a dataset as this file writes them, with exact exposure."""
    queries = []
    for number in range(len(data)) if numbers is None else numbers:
        rows = slice(int(data.offsets[number]), int(data.offsets[number + 1]))
        exposure = PlackettLuce(scorer(data.features[rows]).detach()).exposure()
        queries.append(
            list(
                zip(
                    data.document_ids[rows].tolist(),
                    data.groups[rows].tolist(),
                    exposure.tolist(),
                    data.relevance[rows].tolist(),
                    strict=True,
                )
            )
        )
    return queries


@pytest.mark.parametrize("pooled", ["item", "dataset"])
def test_evaluate_pools_disparities_and_leaves_utilities(pooled):
    data = repeating_data()
    scorer = scorer_for(data)
    result = evaluate(scorer, data, ("ndcg", *POOLABLE), pooled=pooled)
    assert list(result.means) == ["ndcg", *POOLABLE]
    assert list(result.per_query) == ["ndcg"]
    assert result.ndcg == evaluate(scorer, data, ("ndcg",)).ndcg
    pool = pool_of(queries_of(data, scorer))
    for name in POOLABLE:
        expected = pooled_disparity(MEASURES[name].function, pool, pooled)
        assert_close(result.means[name], float(expected), rtol=0, atol=1e-9)
        assert result.defined[name] == 12
    assert "queries=12" in repr(evaluate(scorer, data, ("envy",), pooled=pooled))
    assert pickle.loads(pickle.dumps(result)).interval("d_ind") == result.interval("d_ind")


def test_a_pool_does_not_depend_on_the_order_of_queries_or_the_kind_of_ranker():
    data = repeating_data()
    scorer = scorer_for(data)
    expected = evaluate(scorer, data, POOLABLE, pooled="item")
    turned = evaluate(scorer, data.subset(list(range(len(data)))[::-1]), POOLABLE, pooled="item")
    policies = [PlackettLuce(scorer(query.features).detach()) for query in data]
    given = evaluate(policies, data, POOLABLE, pooled="item")
    for name in POOLABLE:
        assert_close(turned.means[name], expected.means[name], rtol=0, atol=1e-12)
        assert_close(given.means[name], expected.means[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("pooled", ["item", "dataset"])
@pytest.mark.parametrize("name", ["d_group", "d_ind", "nash", "clicks", "envy", "dominance"])
def test_the_interval_is_that_of_datasets_of_drawn_queries(name, pooled):
    """Each draw again as a dataset of its own, in which a query may occur twice."""
    data = repeating_data()
    scorer = scorer_for(data)
    result = evaluate(scorer, data, (name,), pooled=pooled)
    values = result.pooled[name]._redrawn()
    assert values.shape == (2000,)
    for number, draw in enumerate(itertools.islice(drawn_indices(len(data)), 20)):
        again = evaluate(scorer, data.subset(draw), (name,), pooled=pooled)
        assert_close(float(values[number]), again.means[name], rtol=0, atol=1e-9)
    if pooled == "item" and name in PRODUCTS:
        values = values + result.means[name] - values.mean()
    low, high = result.interval(name)
    assert_close(low, float(values.quantile(0.025)))
    assert_close(high, float(values.quantile(0.975)))


@pytest.mark.parametrize("pooled", ["item", "dataset"])
@pytest.mark.parametrize("name", ["d_ind", "envy", "parity"])
def test_compare_exchanges_the_rankers_query_by_query(name, pooled):
    data = repeating_data()
    rankers = [scorer_for(data, seed) for seed in (1, 2)]
    first, second = (evaluate(ranker, data, (name,), pooled=pooled) for ranker in rankers)
    difference = first.compare(second, name)
    assert_close(difference.mean, first.means[name] - second.means[name])
    assert difference.queries == len(data)
    redrawn = first.pooled[name]._redrawn() - second.pooled[name]._redrawn()
    if pooled == "item" and name in PRODUCTS:
        redrawn = redrawn + difference.mean - redrawn.mean()
    assert_close(difference.low, float(redrawn.quantile(0.025)))
    both = [queries_of(data, ranker) for ranker in rankers]
    function = MEASURES[name].function
    as_far = 0
    coins = list(itertools.islice(fair_coins(len(data)), 50))
    for kept in coins:
        one = [both[0 if k else 1][q] for q, k in enumerate(kept.tolist())]
        other = [both[1 if k else 0][q] for q, k in enumerate(kept.tolist())]
        values = [pooled_disparity(function, pool_of(queries), pooled) for queries in (one, other)]
        as_far += abs(float(values[0] - values[1])) >= abs(difference.mean) * (1 - 1e-9)
    share = as_far / len(coins)
    assert abs(share - difference.p_value) < 0.25  # 50 exchanges against 2000


def test_the_p_value_of_a_pooled_mean_is_scipys():
    """Exchanging rankers and flipping signs are the same for what is additive over queries."""
    data = repeating_data(n_queries=10)
    scorers = [scorer_for(data, seed) for seed in (1, 2)]

    def total_waste(exposure, merit, groups=None, mask=None):
        wasted = exposure * (merit == 0)
        return (wasted if mask is None else wasted * mask).sum(-1)

    measures = {"waste": total_waste}
    pooled = [evaluate(scorer, data, measures, pooled="dataset") for scorer in scorers]
    by_query = [evaluate(scorer, data, measures).per_query["waste"] for scorer in scorers]
    assert_close(pooled[0].waste, float(by_query[0].sum()))
    exact = permutation_test(
        [(by_query[0] - by_query[1]).numpy()], np.sum, permutation_type="samples", n_resamples=2000
    )
    assert abs(pooled[0].compare(pooled[1], "waste").p_value - exact.pvalue) < 0.03


def test_undefined_pools():
    data = repeating_data().replace(groups=np.zeros(len(repeating_data().relevance), dtype=int))
    for undefined, value in ((None, 0.0), ({"d_group": 7.0}, 7.0)):
        result = evaluate(data.relevance, data, ("d_group",), pooled="dataset", undefined=undefined)
        assert result.d_group == value
        assert result.defined == {"d_group": 0}
        assert result.interval("d_group") == (value, value)
    skipped = evaluate(data.relevance, data, ("d_group",), pooled="item", undefined="skip")
    assert np.isnan(skipped.d_group)
    assert np.isnan(skipped.interval("d_group")).all()
    assert np.isnan(skipped.compare(skipped, "d_group").p_value)


def test_what_cannot_be_pooled_is_said():
    data = repeating_data()
    without = data.replace(document_ids=None)
    with pytest.raises(ValueError, match="evaluate: pooled is 'items'; choose from query, item"):
        evaluate(data.relevance, data, ("d_ind",), pooled="items")
    with pytest.raises(ValueError, match="TrainConfig: pooled is 'items'; choose one of 'query'"):
        TrainConfig(pooled="items")
    for dataset in (without, data.replace(groups=None, document_ids=None)):
        with pytest.raises(ValueError, match=r"evaluate: .* the data have no document_ids; give"):
            evaluate(data.relevance, dataset, ("d_ind",), pooled="item")
    config = TrainConfig(lam=1.0, disparity="d_ind", pooled="item")
    with pytest.raises(ValueError, match=r"fit: .* the data have no document_ids; give"):
        fit(scorer_for(data), without, config, progress=False)
    with pytest.raises(ValueError, match=r"fit: .* the data have no document_ids; give"):
        fit(scorer_for(data), data, config, without, progress=False)
    groups = data.groups.clone()
    groups[(data.document_ids == 3).nonzero()[1]] = 4
    message = r"document_ids 3 is in groups \d and \d; an item must have one group"
    with pytest.raises(ValueError, match=message):
        evaluate(data.relevance, data.replace(groups=groups), ("d_ind",), pooled="item")
    evaluate(data.relevance, data.replace(groups=groups), ("d_ind",), pooled="dataset")
    with pytest.raises(ValueError, match="evaluate: ee_l compares with a ranking of one query"):
        evaluate(data.relevance, data, ("ee_l",), pooled="item")
    with pytest.raises(ValueError, match="TrainConfig: ee_l compares with a ranking of one query"):
        TrainConfig(disparity="ee_l", pooled="dataset")
    pooled = evaluate(data.relevance, data, ("d_ind",), pooled="item")
    with pytest.raises(ValueError, match="compare: d_ind is pooled in one evaluation and not"):
        pooled.compare(evaluate(data.relevance, data, ("d_ind",)), "d_ind")
    with pytest.raises(ValueError, match="compare: d_ind is pooled in one evaluation and not"):
        pooled.compare(evaluate(data.relevance, data, ("d_ind",), pooled="dataset"), "d_ind")
    with pytest.raises(KeyError, match="'envy' was not computed; there are d_ind"):
        pooled.compare(pooled, "envy")


def one_batch(data):
    (batch,) = data.batches(len(data))
    return batch


@pytest.mark.parametrize("pooled", ["item", "dataset"])
def test_the_terms_of_a_batch_are_those_of_its_pool(pooled):
    data = repeating_data()
    scorer = scorer_for(data)
    batch = one_batch(data)
    assert not bool(batch.mask.all())
    config = TrainConfig(1.0, "d_ind", method="exact", tolerance=1e-12, pooled=pooled)
    scores = scorer(batch.features).detach().requires_grad_()
    terms = config.terms(scores, batch)
    expected = evaluate(scorer, data, ("d_ind",), pooled=pooled).d_ind
    assert_close(terms.disparity, doubles([expected] * 12), rtol=0, atol=1e-9)
    # The mean over the batch, along which an update goes, has the gradient of the pooled value.
    (slope,) = torch.autograd.grad(terms.disparity.mean(), scores)
    step = 1e-5
    for row, column in ((0, 0), (5, 1), (11, 1)):
        ends = []
        for sign in (1, -1):
            moved = scores.detach().clone()
            moved[row, column] += sign * step
            ends.append(float(config.terms(moved, batch).disparity[0]))
        assert_close(float(slope[row, column]), (ends[0] - ends[1]) / (2 * step), rtol=0, atol=1e-7)


def test_a_batch_has_document_ids_and_padding_changes_nothing():
    data = repeating_data()
    batch = one_batch(data)
    in_order = torch.cat([batch.document_ids[i][batch.mask[i]] for i in batch.queries.argsort()])
    assert torch.equal(in_order, data.document_ids)
    assert (batch.document_ids[~batch.mask] == 0).all()
    assert one_batch(data.replace(document_ids=None)).document_ids is None
    scores = scorer_for(data)(batch.features).detach()
    other = Batch(*batch[:5], torch.where(batch.mask, batch.document_ids, 777))
    for name in TRAINABLE:
        config = TrainConfig(1.0, name, method="exact", pooled="item")
        assert torch.equal(
            config.terms(scores, batch).disparity, config.terms(scores, other).disparity
        )
    with pytest.raises(ValueError, match=r"TrainConfig: .* the data have no document_ids"):
        config.terms(scores, batch._replace(document_ids=None))


@pytest.mark.parametrize("method", ["exact", "sample"])
@pytest.mark.parametrize("name", ["d_group", "inequity", "envy", "dominance", "nash"])
def test_training_lowers_it(name, method):
    data = repeating_data(n_queries=20, seed=1)
    values = []
    for lam in (0.0, 50.0):
        scorer = scorer_for(data)
        config = TrainConfig(
            lam=lam,
            disparity=name,
            method=method,
            pooled="item",
            lr=0.1,
            epochs=15,
            batch_size=len(data),
            samples=20,
        )
        fit(scorer, data, config, progress=False)
        values.append(evaluate(scorer, data, (name,), pooled="item").means[name])
    assert values[1] < values[0]


def test_validation_pools_all_batches():
    data = repeating_data(n_queries=150)
    scorer = scorer_for(data)
    config = TrainConfig(1.0, "d_ind", pooled="item", lr=0.1, epochs=2, batch_size=50)
    expected = evaluate(scorer, data, ("ndcg", "d_ind"), pooled="item")
    utility, disparity = objective_on(scorer, data, config)
    assert_close(utility, expected.ndcg, rtol=0, atol=1e-6)
    assert_close(disparity, expected.d_ind, rtol=0, atol=1e-6)
    history = fit(scorer, data, config, data, progress=False)
    assert len(history.valid_disparity) == 2


def test_training_to_a_budget():
    data = repeating_data(n_queries=20, seed=1)
    scorer = scorer_for(data)
    config = TrainConfig(
        disparity="inequity", method="exact", pooled="item", lr=0.2, epochs=10, batch_size=20
    )
    fit(scorer, data, config, progress=False)
    start = evaluate(scorer, data, ("inequity",), pooled="item").inequity
    fit_to_budget(scorer, data, 0.9 * start, config, slack=0.2, progress=False)
    assert evaluate(scorer, data, ("inequity",), pooled="item").inequity <= 0.9 * start + 1e-4


def test_small_batches_estimate_another_mean():
    """A batch of half the queries is not half of the pooled value: the bias that is documented."""
    data = repeating_data(n_queries=20)
    scorer = scorer_for(data)
    whole = evaluate(scorer, data, ("parity",), pooled="dataset").parity
    halves = []
    for draw in itertools.islice(itertools.combinations(range(20), 10), 0, 184_756, 923):
        part = data.subset(list(draw))
        halves.append(evaluate(scorer, part, ("parity",), pooled="dataset").parity)
    assert np.mean(halves) > whole + 0.001


def test_the_compiled_way_says_that_it_does_not_pool():
    data = repeating_data()
    config = TrainConfig(1.0, "d_ind", pooled="item", compiled=True)
    with pytest.raises(ValueError, match="compiled=True, but pooled is 'item'"):
        fit(scorer_for(data), data, config, progress=False)


@settings(max_examples=5)
@given(seed=st.integers(0, 100))
def test_a_function_of_ones_own_is_pooled(seed):
    data = repeating_data(seed=seed)

    def spread(exposure, merit, groups=None, mask=None):
        is_real = torch.ones_like(exposure) if mask is None else mask.double()
        mean = (exposure * is_real).sum(-1, keepdim=True) / is_real.sum(-1, keepdim=True)
        return ((exposure - mean).square() * is_real).sum(-1)

    result = evaluate(data.relevance, data, {"spread": spread}, pooled="item")
    totals = torch.zeros(9, dtype=torch.float64)
    for number, query in enumerate(data):
        start = int(data.offsets[number])
        ids = data.document_ids[start : start + len(query.relevance)]
        totals.index_add_(0, ids, PlackettLuce(query.relevance).exposure())
    totals = totals[data.document_ids.unique()]
    assert_close(result.spread, float(((totals - totals.mean()) ** 2).sum()), rtol=0, atol=1e-9)
    low, high = result.interval("spread")
    assert low < high


def test_amortised_attention_is_fair_where_no_single_query_is():
    """Two equals take turns: every ranking is unfair, and both get the same in the end."""
    features = torch.tensor([[1.0], [0.0], [0.0], [1.0]], dtype=torch.float64)
    data = RankingDataset(
        features, torch.ones(4, dtype=torch.float64), [0, 2, 4], document_ids=[0, 1, 0, 1]
    )
    turns = [FixedRanking(torch.tensor([0, 1])), FixedRanking(torch.tensor([1, 0]))]
    names = ("inequity", "envy", "dominance")
    by_query = evaluate(turns, data, names)
    amortised = evaluate(turns, data, names, pooled="item")
    for name in names:
        assert by_query.means[name] > 0.05
        assert_close(amortised.means[name], 0.0, rtol=0, atol=1e-7)


def test_german_credit_can_be_pooled_by_person():
    _, data = german_credit()
    result = evaluate(data.relevance, data, ("d_ind", "inequity", "envy"), pooled="item")
    sums = {}
    for number, query in enumerate(data):
        exposure = PlackettLuce(query.relevance.double()).exposure()
        start = int(data.offsets[number])
        for place, value in enumerate(exposure.tolist()):
            total = sums.setdefault(int(data.document_ids[start + place]), [0.0, 0.0])
            total[0] += value
            total[1] += float(query.relevance[place])
    exposure, merit = torch.tensor(list(sums.values()), dtype=torch.float64).T
    assert_close(result.d_ind, float(individual_disparity(exposure, merit)), rtol=0, atol=1e-6)


def test_exposure_does_not_tell_fair_lists_from_unfair_ones():
    """What no row of the table can see: whether every single list is fair (Gorantla et al. 2023).

    Each policy draws one of four lists, and shows every document equally often at every position.
    The lists of the one have a document of each group among the first two, those of the other
    never.
    """
    groups = torch.tensor([0, 0, 1, 1])
    fair = [[0, 2, 1, 3], [2, 1, 3, 0], [1, 3, 0, 2], [3, 0, 2, 1]]
    unfair = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]
    policies = []
    for lists in (fair, unfair):
        rankings = [FixedRanking(torch.tensor(r), dtype=torch.float64) for r in lists]
        policies.append(Mixture(rankings, [0.25] * 4))
    assert all(len(set(groups[r[:2]].tolist())) == 2 for r in fair)
    assert all(len(set(groups[r[:2]].tolist())) == 1 for r in unfair)
    assert torch.equal(policies[0].position_probs(), policies[1].position_probs())
    assert torch.equal(policies[0].exposure(), policies[1].exposure())
    data = RankingDataset(
        torch.zeros(4, 1, dtype=torch.float64),
        torch.tensor([3.0, 1.0, 0.0, 2.0], dtype=torch.float64),
        [0, 4],
        groups=groups,
    )
    names = [name for name, row in MEASURES.items() if row.function is not None]
    results = [evaluate([policy], data, names) for policy in policies]
    assert results[0].means == results[1].means


def test_synthetic_data_have_no_items_in_common():
    with pytest.raises(ValueError, match="no document_ids"):
        evaluate(LinearScorer(2), synthetic(n_queries=3), ("envy",), pooled="item")


# --- running sums ------------------------------------------------------------------------------


def german_queries(n_queries=12):
    """Queries in which eleven items recur."""
    train, _ = german_credit(0, n_train=n_queries, n_docs=5, dtype=torch.float64)
    items = train.document_ids % 11
    return train.replace(document_ids=items, groups=items % 2)


def gradient_of(config, scorer, dataset, batch_size, others=None):
    """The mean over batches of the gradient of the disparity."""
    total = torch.zeros_like(scorer.linear.weight)
    batches = list(dataset.batches(batch_size))
    for batch in batches:
        scores = scorer(batch.features)
        terms, _ = config.terms_and_exposure(scores, batch, others=others)
        (slope,) = torch.autograd.grad(terms.disparity.mean(), scorer.linear.weight)
        total += slope / len(batches)
    return total


@pytest.mark.parametrize("name", ["d_group", "inequity", "clicks", "envy"])
@pytest.mark.parametrize("pooled", ["item", "dataset"])
def test_running_sums_have_the_gradient_of_all_queries(name, pooled):
    """While the weights stand still; batches by themselves have another gradient."""
    data = german_queries()
    generator = torch.Generator().manual_seed(3)
    scorer = LinearScorer(data.n_features, init=0.3, generator=generator, dtype=torch.float64)
    config = TrainConfig(
        disparity=name, lam=1.0, pooled=pooled, running=True, method="exact", tolerance=1e-9
    )
    whole = gradient_of(config, scorer, data, len(data))
    others = Run(scorer, data, config).others
    assert_close(gradient_of(config, scorer, data, 3, others), whole)
    (everything,) = data.batches(len(data))
    terms, _ = config.terms_and_exposure(scorer(everything.features), everything)
    for batch in data.batches(3):
        remembered, _ = config.terms_and_exposure(scorer(batch.features), batch, others=others)
        assert_close(remembered.disparity, terms.disparity[:3])
    if name == "clicks":
        assert not torch.allclose(gradient_of(config, scorer, data, 3), whole, rtol=1e-2)


def test_a_batch_of_all_queries_needs_no_running_sums():
    data = german_queries()
    scorers = []
    for running in (False, True):
        scorer = LinearScorer(data.n_features, init=0.0, dtype=torch.float64)
        config = TrainConfig(
            disparity="inequity",
            lam=5.0,
            pooled="item",
            running=running,
            method="exact",
            batch_size=len(data),
            epochs=4,
            lr=0.1,
        )
        fit(scorer, data, config, progress=False)
        scorers.append(scorer)
    assert_close(scorers[0].linear.weight, scorers[1].linear.weight)


def test_what_is_remembered_is_what_was_seen_last():
    data = german_queries(4)
    scorer = LinearScorer(data.n_features, init=0.3, dtype=torch.float64)
    config = TrainConfig(disparity="inequity", pooled="item", running=True, method="exact")
    others = Run(scorer, data, config).others
    before = others.pool.exposure.clone()
    batch = next(iter(data.batches(2)))
    exposure = torch.rand(batch.mask.shape, dtype=torch.float64)
    others.remember(exposure, batch.mask, batch.queries)
    expected = before.clone()
    for place, query in enumerate(batch.queries.tolist()):
        expected[data.offsets[query] : data.offsets[query + 1]] = exposure[place]
    assert torch.equal(others.pool.exposure, expected)


def test_a_training_with_running_sums_goes_on_from_its_checkpoint(tmp_path):
    data = german_queries()
    config = TrainConfig(
        disparity="inequity",
        lam=5.0,
        pooled="item",
        running=True,
        method="exact",
        batch_size=3,
        epochs=4,
        lr=0.1,
    )
    whole = LinearScorer(data.n_features, init=0.0, dtype=torch.float64)
    fit(whole, data, config, progress=False)
    parted = LinearScorer(data.n_features, init=0.0, dtype=torch.float64)
    half = dataclasses.replace(config, epochs=2)
    fit(parted, data, half, progress=False, checkpoint=tmp_path / "state.pt")
    again = LinearScorer(data.n_features, init=0.0, dtype=torch.float64)
    fit(again, data, config, progress=False, checkpoint=tmp_path / "state.pt")
    assert torch.equal(whole.linear.weight, again.linear.weight)


def test_running_sums_need_a_pool():
    with pytest.raises(ValueError, match="there is no pool"):
        TrainConfig(running=True)


def random_pool(seed, n_queries=20, n_items=60, length=5):
    """Items of few queries, some of which are better than others in all of them."""
    generator = torch.Generator().manual_seed(seed)
    quality = torch.randn(n_items, generator=torch.Generator().manual_seed(0)).double()
    rows = [torch.randperm(n_items, generator=generator)[:length] for _ in range(n_queries)]
    items = torch.stack(rows)
    noise = torch.randn(n_queries, length, generator=generator).double()
    merit = (0.5 * quality[items] + 0.5 * noise).exp()
    place = merit.argsort(-1, descending=True).argsort(-1)
    return Pool(
        (1.0 / torch.log2(2.0 + place)).flatten().double(),
        merit.flatten(),
        None,
        items.flatten(),
        torch.arange(n_queries).repeat_interleave(length),
    )


@pytest.mark.parametrize("name", ["envy", "dominance", "nash"])
def test_intervals_of_single_items_cover_what_other_queries_give(name, monkeypatch):
    """Not more than three of twenty miss the mean over fresh queries."""
    monkeypatch.setattr(resampling, "RESAMPLES", 200)
    monkeypatch.setattr(pooling, "RESAMPLES", 200)
    function = MEASURES[name].function
    fresh = [float(pooled_disparity(function, random_pool(1000 + s), "item")) for s in range(100)]
    expected = float(np.mean(fresh))
    covered = 0
    for seed in range(20):
        low, high = PooledValue(function, "item", random_pool(seed), 0.0).interval()
        covered += low <= expected <= high
    assert covered >= 17
