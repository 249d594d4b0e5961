"""Named columns of documents and weights of queries, from the dataset to the objective."""

import pickle

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from fairpg_lite import (
    LinearScorer,
    PlackettLuce,
    RankingDataset,
    TrainConfig,
    evaluate,
    fit,
    individual_disparity,
    position_bias,
)
from fairpg_lite.relevance import merit_of
from fairpg_lite.resampling import drawn_indices
from fairpg_lite.training.validation import objective_on


def dataset(lengths=(3, 1, 4, 2), seed=0, weights=True):
    generator = torch.Generator().manual_seed(seed)
    n = sum(lengths)
    return RankingDataset(
        torch.randn(n, 2, generator=generator, dtype=torch.float64),
        torch.randint(0, 4, (n,), generator=generator),
        np.concatenate([[0], np.cumsum(lengths)]),
        groups=torch.randint(0, 2, (n,), generator=generator),
        columns={
            "merit": torch.rand(n, generator=generator, dtype=torch.float64),
            "row": torch.arange(1, n + 1),
        },
        query_weights=torch.arange(1.0, len(lengths) + 1) if weights else None,
    )


def scorer(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return LinearScorer(2, init=0.5, generator=generator, dtype=torch.float64)


@settings(deadline=None, max_examples=30)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    size=st.integers(1, 4),
    shuffle=st.booleans(),
)
def test_a_batch_carries_the_rows_of_its_queries(lengths, size, shuffle):
    data = dataset(lengths)
    bounds = data.offsets.tolist()
    seen = []
    for batch in data.batches(size, shuffle, torch.Generator().manual_seed(0)):
        for place, query in enumerate(batch.queries.tolist()):
            seen.append(query)
            rows = slice(bounds[query], bounds[query + 1])
            for name, values in data.columns.items():
                is_real = batch.mask[place]
                assert torch.equal(batch.columns[name][place][is_real], values[rows])
                assert not batch.columns[name][place][~is_real].any()
            assert batch.query_weights[place] == query + 1
    assert sorted(seen) == list(range(len(lengths)))
    single = next(iter(data.batches(dtype=torch.float32)))
    assert single.columns["merit"].dtype == single.query_weights.dtype == torch.float32
    assert single.columns["row"].dtype == torch.int64


def rows_of(data):
    """All of a dataset as plain values, a row for each document."""
    rows = []
    for i, query in enumerate(data):
        start = int(data.offsets[i])
        for j in range(len(query.relevance)):
            row = {name: values[start + j].item() for name, values in data.columns.items()}
            rows.append((query.features[j].tolist(), row, float(data.query_weights[i])))
    return rows


def test_parts_copies_and_files_keep_them(tmp_path):
    data = dataset()
    rows = rows_of(data)
    by_query = [rows[0:3], rows[3:4], rows[4:8], rows[8:10]]
    assert rows_of(data[1:3]) == by_query[1] + by_query[2]
    assert rows_of(data.subset([3, 0, 3])) == by_query[3] + by_query[0] + by_query[3]
    first, second = data.split((0.5, 0.5), seed=1)
    assert sorted(map(str, rows_of(first) + rows_of(second))) == sorted(map(str, rows))
    assert rows_of(RankingDataset.concat([data[:2], data[2:]])) == rows
    assert rows_of(pickle.loads(pickle.dumps(data[1:]))) == rows_of(data[1:])
    data.save(tmp_path / "data")
    loaded = RankingDataset.load(tmp_path / "data")
    assert rows_of(loaded) == rows
    assert loaded.fingerprint() == data.fingerprint()
    single = data.to(torch.float32)
    assert single.columns["merit"].dtype == single.query_weights.dtype == torch.float32
    assert single.columns["row"].dtype == torch.int64
    assert data.replace(columns=None, query_weights=None).columns is None


def test_the_fingerprint_sees_names_values_and_weights():
    data = dataset()
    other_names = {"merits": data.columns["merit"], "row": data.columns["row"]}
    other_values = {"merit": data.columns["merit"] + 1e-9, "row": data.columns["row"]}
    prints = {
        changed.fingerprint()
        for changed in (
            data,
            data.replace(columns=None),
            data.replace(columns=other_names),
            data.replace(columns=other_values),
            data.replace(query_weights=None),
            data.replace(query_weights=[1.0, 2.0, 3.0, 5.0]),
        )
    }
    assert len(prints) == 6
    swapped = dict(reversed(data.columns.items()))
    assert data.replace(columns=swapped).fingerprint() == data.fingerprint()


def test_a_table_and_back():
    data = dataset()
    table = data.to_pandas()
    assert table["query_weight"].tolist() == [1.0] * 3 + [2.0] + [3.0] * 4 + [4.0] * 2
    back = RankingDataset.from_pandas(
        table,
        query="query",
        relevance="relevance",
        group="group",
        columns=["merit", "row"],
        query_weight="query_weight",
    )
    assert back.n_features == 2
    assert_close(back.columns["merit"], data.columns["merit"].float())
    assert back.columns["row"].tolist() == data.columns["row"].tolist()
    assert back.query_weights.tolist() == data.query_weights.tolist()


FRAME = pandas.DataFrame(
    {"q": [1, 1, 2], "y": [0, 1, 1], "x": [0.1, 0.2, 0.3], "w": [1.0, 2.0, 1.0]}
)
FEW = (torch.zeros(2, 1), torch.ones(2), [0, 2])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RankingDataset(*FEW, columns=[1, 2]), "columns is a list"),
        (lambda: RankingDataset(*FEW, columns={"m": [1.0]}), r"columns\['m'\] has shape \(1,\)"),
        (lambda: RankingDataset(*FEW, columns={3: [1.0, 2.0]}), "the name 3"),
        (
            lambda: RankingDataset(*FEW, columns={"m": [1.0, float("nan")]}),
            r"columns\['m'\]\[1\] is nan",
        ),
        (lambda: RankingDataset(*FEW, query_weights=[1.0, 2.0]), "query_weights has shape"),
        (lambda: RankingDataset(*FEW, query_weights=[-1.0]), r"query_weights\[0\] is -1"),
        (lambda: RankingDataset(*FEW, query_weights=[0.0]), "all zero"),
        (
            lambda: RankingDataset.from_pandas(FRAME, query="q", relevance="y", query_weight="w"),
            "a query has one weight",
        ),
        (
            lambda: RankingDataset.concat([dataset(), dataset().replace(columns=None)]),
            "give all the same columns",
        ),
        (
            lambda: RankingDataset.concat([dataset(), dataset(weights=False)]),
            "has query_weights",
        ),
        (lambda: evaluate(scorer(), dataset(), ("d_ind",), merit="column:sales"), "'merit', 'row'"),
        (
            lambda: evaluate(scorer(), dataset().replace(columns=None), merit="column:merit"),
            "no columns",
        ),
        (
            lambda: evaluate(scorer(), dataset(), ("d_ind",), pooled="dataset"),
            "the data have query_weights",
        ),
        (lambda: fit(scorer(), dataset(), TrainConfig(pooled="dataset")), "query_weights"),
        (
            lambda: fit(scorer(), dataset(), TrainConfig(compiled=True)),
            "the dataset has query_weights",
        ),
        (
            lambda: fit(
                scorer(), dataset(weights=False), TrainConfig(compiled=True, merit="column:merit")
            ),
            "merit is 'column:merit'",
        ),
        (lambda: TrainConfig(disparity=with_columns, pooled="item"), "an argument columns"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def with_columns(exposure, merit, groups=None, mask=None, columns=None):
    """D_ind of a merit in a column, whatever merit is given."""
    return individual_disparity(exposure, columns["merit"], groups, mask)


def test_a_column_is_merit_while_relevance_is_gain():
    data = dataset()
    found = evaluate(scorer(), data, ("ndcg", "d_ind", "d_group"), merit="column:merit")
    by_merit = data.replace(relevance=data.columns["merit"])
    expected = evaluate(scorer(), by_merit, ("d_ind", "d_group"))
    assert_close(found.per_query["d_ind"], expected.per_query["d_ind"])
    assert_close(found.per_query["d_group"], expected.per_query["d_group"])
    assert_close(found.per_query["ndcg"], evaluate(scorer(), data, ("ndcg",)).per_query["ndcg"])
    policies = [PlackettLuce(scorer()(query.features).detach()) for query in data]
    matched = evaluate(policies, data, ("d_ind",), merit="column:merit")
    assert_close(matched.per_query["d_ind"], expected.per_query["d_ind"])
    own = evaluate(scorer(), data, {"mine": with_columns})
    assert_close(own.per_query["mine"], expected.per_query["d_ind"])


@pytest.mark.parametrize("method", ["exact", "sample"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_column_is_trained_as_merit(method, batch_size):
    """Once by name, and once by a disparity of one's own that is given the columns."""
    data = dataset(weights=False)
    settings = {"lam": 5.0, "method": method, "batch_size": batch_size, "epochs": 3, "lr": 0.1}
    by_name = scorer()
    fit(by_name, data, TrainConfig(disparity="d_ind", merit="column:merit", **settings))
    by_function = scorer()
    fit(by_function, data, TrainConfig(disparity=with_columns, **settings))
    by_relevance = scorer()
    fit(by_relevance, data, TrainConfig(disparity="d_ind", **settings))
    assert torch.equal(by_name.linear.weight, by_function.linear.weight)
    assert not torch.equal(by_name.linear.weight, by_relevance.linear.weight)
    assert torch.equal(
        merit_of(data.relevance, "column:merit", data.columns), data.columns["merit"]
    )


def clicks_per_propensity(rankings, relevance, *, mask=None, columns=None):
    """DCG of the row numbers, a column."""
    bias = position_bias(rankings.shape[-1], dtype=relevance.dtype)
    row = columns["row"].to(relevance.dtype).expand(rankings.shape)
    return (row.gather(-1, rankings) * bias).sum(-1)


def test_a_utility_of_ones_own_is_given_the_columns():
    data = dataset(weights=False)
    config = TrainConfig(utility=clicks_per_propensity, samples=400)
    found, _ = objective_on(scorer(), data, config)
    expected = 0.0
    for i, query in enumerate(data):
        start, end = data.offsets[i : i + 2]
        exposure = PlackettLuce(scorer()(query.features).detach()).exposure()
        expected += float((exposure * data.columns["row"][start:end]).sum()) / len(data)
    assert found == pytest.approx(expected, rel=0.05)


def test_a_weight_of_two_is_a_query_twice():
    """Means, objective and training, against a dataset in which queries are repeated."""
    data = dataset()
    repeated = data.replace(query_weights=None).subset([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    measures = ("ndcg", "err", "average_rank", "d_ind", "d_group")
    for undefined in (None, "skip"):
        weighted = evaluate(scorer(), data, measures, undefined=undefined)
        plain = evaluate(scorer(), repeated, measures, undefined=undefined)
        for name in measures:
            assert weighted.means[name] == pytest.approx(plain.means[name], nan_ok=True)
    settings = {"lam": 3.0, "method": "exact", "epochs": 4, "lr": 0.1}
    first = scorer()
    history = fit(first, data, TrainConfig(batch_size=4, **settings), valid=data)
    second = scorer()
    other = fit(second, repeated, TrainConfig(batch_size=10, **settings), valid=repeated)
    assert_close(first.linear.weight, second.linear.weight)
    assert_close(history.utility, other.utility)
    assert_close(history.disparity, other.disparity)
    assert_close(history.valid_utility, other.valid_utility)
    config = TrainConfig(**settings)
    assert_close(objective_on(first, data, config), objective_on(first, repeated, config))


def test_equal_weights_are_no_weights():
    data = dataset(weights=False)
    weighted = data.replace(query_weights=[3.0] * 4)
    settings = {"lam": 3.0, "method": "exact", "epochs": 3, "lr": 0.1}
    first = scorer()
    fit(first, data, TrainConfig(**settings))
    second = scorer()
    fit(second, weighted, TrainConfig(**settings))
    assert_close(first.linear.weight, second.linear.weight)
    one = evaluate(first, data)
    other = evaluate(second, weighted)
    assert other.interval("ndcg") == pytest.approx(one.interval("ndcg"))
    assert other.ndcg == pytest.approx(one.ndcg)


def test_intervals_and_differences_by_weight():
    """Against a loop over the same draws of queries."""
    data = dataset(lengths=(3, 2, 4, 2, 5))
    first = evaluate(scorer(0), data, ("ndcg",))
    second = evaluate(scorer(1), data, ("ndcg",))
    difference = (first.per_query["ndcg"] - second.per_query["ndcg"]).tolist()
    weights = data.query_weights.tolist()
    means = []
    for draw in drawn_indices(5):
        total = sum(weights[i] for i in draw.tolist())
        means.append(sum(weights[i] * difference[i] for i in draw.tolist()) / total)
    low, high = np.quantile(means, [0.025, 0.975])
    found = first.compare(second, "ndcg")
    total = sum(weights)
    expected = sum(w * x for w, x in zip(weights, difference, strict=True)) / total
    assert found[:3] == pytest.approx((expected, low, high))
