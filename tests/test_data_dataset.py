"""RankingDataset: views, slices, splits, normalisation, summary."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpg_lite.data import RankingDataset


def make(lengths, d=3, groups=True, seed=0, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    n = sum(lengths)
    return RankingDataset(
        torch.randn(n, d, generator=g, dtype=dtype),
        torch.randint(0, 5, (n,), generator=g).to(dtype),
        np.concatenate([[0], np.cumsum(lengths)]).tolist(),
        groups=torch.randint(0, 2, (n,), generator=g) if groups else None,
        query_ids=[10 * i for i in range(len(lengths))],
        document_ids=torch.arange(n),
    )


def as_lists(ds):
    return [
        (int(qid), q.features.tolist(), q.relevance.tolist(), q.groups.tolist())
        for qid, q in zip(ds.query_ids, ds, strict=True)
    ]


def test_indexing_gives_views_of_the_right_rows():
    ds = make([2, 1, 4])
    assert len(ds) == 3
    assert ds.n_documents == 7
    assert ds.lengths.tolist() == [2, 1, 4]
    features, relevance, groups = ds[1]
    assert features.data_ptr() == ds.features[2:].data_ptr()
    assert relevance.data_ptr() == ds.relevance[2:].data_ptr()
    assert groups.data_ptr() == ds.groups[2:].data_ptr()
    assert ds[-1].features.tolist() == ds.features[3:].tolist()
    assert [len(q.relevance) for q in ds] == [2, 1, 4]
    for wrong in (3, -4):
        with pytest.raises(IndexError, match=f"query {wrong} of 3"):
            ds[wrong]


@settings(deadline=None, max_examples=100)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    start=st.integers(-9, 9),
    stop=st.integers(-9, 9),
    step=st.sampled_from([None, 1, 2, -1, 3]),
)
def test_slices_agree_with_a_list_of_queries(lengths, start, stop, step):
    ds = make(lengths)
    assert as_lists(ds[start:stop:step]) == as_lists(ds)[start:stop:step]


def test_consecutive_slices_are_views_and_others_copies():
    ds = make([2, 1, 4, 3])
    assert ds[1:3].features.data_ptr() == ds.features[2:].data_ptr()
    assert ds[::2].features.untyped_storage().data_ptr() != ds.features.untyped_storage().data_ptr()


def test_subset_by_indices_mask_and_with_repetition():
    ds = make([2, 1, 4])
    everything = as_lists(ds)
    assert as_lists(ds.subset([2, 0, 2, -2])) == [everything[i] for i in (2, 0, 2, 1)]
    assert as_lists(ds.subset(torch.tensor([True, False, True]))) == [everything[0], everything[2]]
    assert ds.subset([2, 0]).document_ids.tolist() == [3, 4, 5, 6, 0, 1]
    assert len(ds[0:0]) == 0
    with pytest.raises(IndexError):
        ds.subset([3])
    with pytest.raises(ValueError, match="mask"):
        ds.subset(torch.tensor([True]))


def test_split_is_a_seeded_partition():
    ds = make([1 + i % 4 for i in range(50)])
    parts = ds.split((0.6, 0.2, 0.2), seed=3)
    assert [len(p) for p in parts] == [30, 10, 10]
    ids = [set(p.query_ids.tolist()) for p in parts]
    assert set.union(*ids) == set(ds.query_ids.tolist())
    assert sum(map(len, ids)) == len(ds)
    again = ds.split((0.6, 0.2, 0.2), seed=3)
    other = ds.split((0.6, 0.2, 0.2), seed=4)
    assert as_lists(parts[1]) == as_lists(again[1])
    assert as_lists(parts[1]) != as_lists(other[1])
    assert len(ds.split((0.1,))[0]) == 5


def test_split_without_shuffle_is_consecutive_views():
    ds = make([1, 2, 3, 4])
    first, second = ds.split((0.5, 0.5), shuffle=False)
    assert as_lists(first) + as_lists(second) == as_lists(ds)
    assert second.features.data_ptr() == ds.features[3:].data_ptr()


@pytest.mark.parametrize("fractions", [(), (0.5, 0.6), (0.5, 0.0), (0.99, 0.01)])
def test_split_refuses_impossible_fractions(fractions):
    with pytest.raises(ValueError, match="split"):
        make([1, 2, 3]).split(fractions)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": torch.ones(3)}, "features has shape"),
        ({"features": torch.ones(3, 2, dtype=torch.int64)}, "floating-point"),
        ({"relevance": torch.ones(2)}, "relevance has shape"),
        ({"groups": torch.zeros(4)}, "groups has shape"),
        ({"groups": torch.tensor([0, 1, -1])}, "negative"),
        ({"relevance": torch.tensor([1.0, -1.0, 0.0])}, "not negative"),
        ({"relevance": torch.tensor([1.0, float("nan"), 0.0])}, "finite"),
        ({"offsets": [0, 2]}, "rise to the number of documents"),
        ({"offsets": [0, 2, 2, 3]}, "at least one document"),
        ({"offsets": [1, 3]}, "begin with 0"),
        ({"query_ids": [1, 2, 3]}, "query_ids"),
    ],
)
def test_inconsistent_arguments_are_refused(change, message):
    good = {"features": torch.ones(3, 2), "relevance": torch.ones(3), "offsets": [0, 2, 3]}
    RankingDataset(**good)
    with pytest.raises(ValueError, match=message):
        RankingDataset(**{**good, **change})


def test_from_queries_round_trip():
    ds = make([2, 1, 4])
    again = RankingDataset.from_queries(list(ds), query_ids=ds.query_ids)
    assert as_lists(again) == as_lists(ds)
    with pytest.raises(ValueError, match="some queries have groups"):
        RankingDataset.from_queries([tuple(ds[0]), tuple(ds[1])[:2]])


def test_minmax_works_within_each_query():
    ds = make([5, 1, 3], d=4)
    scaled = ds.normalize("minmax")
    for before, after in zip(ds, scaled, strict=True):
        x = before.features.numpy()
        span = x.max(0) - x.min(0)
        expected = (x - x.min(0)) / np.where(span > 0, span, 1)
        np.testing.assert_allclose(after.features.numpy(), expected, atol=1e-15)
    assert (scaled[1].features == 0).all()  # one document: every feature is constant
    assert not torch.equal(scaled.features, ds.features)


def test_minmax_survives_the_largest_numbers():
    big = torch.finfo(torch.float32).max
    ds = RankingDataset(torch.tensor([[big], [-big], [0.0]]), torch.zeros(3), [0, 3])
    assert ds.normalize().features[:, 0].tolist() == [1.0, 0.0, 0.5]


def test_standard_is_fitted_on_the_named_set_only():
    train, test = make([40, 60], seed=1), make([30], seed=2)
    x = train.features.numpy()
    expected = (test.features.numpy() - x.mean(0)) / x.std(0)
    scaled = test.normalize("standard", fitted_on=train)
    np.testing.assert_allclose(scaled.features.numpy(), expected, rtol=1e-12)
    own = train.normalize("standard", fitted_on=train).features
    torch.testing.assert_close(own.mean(0), torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(own.var(0, correction=0), torch.ones(3, dtype=torch.float64))


def test_standard_of_a_constant_column_is_zero_and_float32_keeps_its_precision():
    values = torch.full((9, 2), 1.1)
    values[:, 1] = torch.arange(9) + 1e6
    ds = RankingDataset(values, torch.zeros(9), [0, 9])
    scaled = ds.normalize("standard", fitted_on=ds).features
    assert (scaled[:, 0] == 0).all()
    expected = (np.arange(9) - 4) / np.arange(9).std()
    np.testing.assert_allclose(scaled[:, 1].numpy(), expected, rtol=1e-6)


def test_normalize_says_what_it_wants():
    ds = make([3])
    for arguments in [("standard", None), ("minmax", ds), ("other", None)]:
        with pytest.raises(ValueError, match="fitted_on=train"):
            ds.normalize(*arguments)
    with pytest.raises(ValueError, match="3 features here, 2 in fitted_on"):
        ds.normalize("standard", fitted_on=make([3], d=2))


def test_summary_figures_and_table():
    ds = RankingDataset(
        torch.tensor([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [3.0, 0.0]]),
        torch.tensor([0.0, 1.0, 1.0, 4.0]),
        [0, 1, 4],
        groups=torch.tensor([0, 0, 1, 1]),
    )
    s = ds.summary()
    assert (s.queries, s.documents, s.features, s.active_features) == (2, 4, 2, 1)
    assert s.lengths == (1, 2.0, 3)
    assert s.density == 3 / 8
    assert s.grades == {0: 0.25, 1: 0.5, 4: 0.25}
    assert s.groups == {0: (0.5, 0.5), 1: (0.5, 2.5)}
    text = repr(s)
    for part in ("documents per query  1 to 3, mean 2.0", "4: 25.0 %", "group 1", "37.5 %"):
        assert part in text
    assert s._repr_html_().count("<tr>") == len(text.splitlines())


def test_summary_of_real_valued_relevance_shows_its_range():
    ds = RankingDataset(torch.ones(2, 1), torch.tensor([0.5, 2.0]), [0, 2])
    assert ds.summary().grades is None
    assert "0.5 to 2, mean 1.25" in repr(ds.summary())


def test_a_view_is_pickled_without_the_rest():
    ds = make([100] * 50, d=20)
    part = pickle.loads(pickle.dumps(ds[3:4]))
    assert as_lists(part) == as_lists(ds[3:4])
    assert len(pickle.dumps(ds[3:4])) < len(pickle.dumps(ds)) / 20


def test_to_and_replace():
    ds = make([2, 3])
    assert ds.to(torch.float32).features.dtype == torch.float32
    assert ds.to(torch.float32).relevance.dtype == torch.float32
    assert ds.replace(groups=None).groups is None
    assert ds.replace(groups=None).features.data_ptr() == ds.features.data_ptr()
    with pytest.raises(TypeError, match="colour"):
        ds.replace(colour=1)
