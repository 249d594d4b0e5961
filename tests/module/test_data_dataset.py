"""RankingDataset: views, slices, splits, normalisation."""

import pickle
from itertools import pairwise

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fairpg_lite.data import RankingDataset
from fairpg_lite.data.arrays import FIELDS


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
        with pytest.raises(IndexError):
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
    with pytest.raises(IndexError, match="boolean"):
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


GOOD = {"features": torch.ones(3, 2), "relevance": torch.ones(3), "offsets": [0, 2, 3]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": torch.ones(3)}, r"features has shape \(3,\)"),
        ({"features": torch.ones(3, 2, dtype=torch.int64)}, "features is torch.int64"),
        ({"features": np.ones((3, 2), np.longdouble)}, "features cannot become a tensor"),
        ({"features": pandas.DataFrame({"x": [1.0]})}, "features is a DataFrame; .*from_pandas"),
        ({"relevance": np.array([None, 1, 2])}, "relevance cannot become a tensor"),
        ({"relevance": torch.ones(2)}, r"relevance has shape \(2,\), and features has 3 rows"),
        ({"relevance": torch.tensor([1.0, -1.0, 0.0])}, r"relevance\[1\] is -1; .* zero or more"),
        (
            {"relevance": torch.tensor([1.0, float("nan"), 0.0])},
            r"relevance\[1\] is nan; .* finite",
        ),
        ({"relevance": [0, 0, float("inf")]}, r"relevance\[2\] is inf; .* finite"),
        ({"relevance": np.array([1e60, 0, 0])}, r"relevance\[0\] is 1e\+60, which torch.float32"),
        ({"offsets": [0.0, 1.5, 3.0]}, r"offsets\[1\] is 1.5; .* whole numbers"),
        ({"offsets": [[0, 3]]}, r"offsets has shape \(1, 2\)"),
        ({"offsets": []}, "offsets is empty"),
        ({"offsets": [1, 3]}, r"offsets\[0\] is 1; .* begin with 0"),
        ({"offsets": [0, 2, 2, 3]}, r"offsets\[2\] is 2, after 2; .* rise"),
        ({"offsets": [0, 3, 2, 3]}, r"offsets\[2\] is 2, after 3; .* rise"),
        ({"offsets": [0, 2]}, "offsets ends with 2, and features has 3 rows"),
        ({"groups": torch.zeros(4)}, r"groups has shape \(4,\), and features has 3 rows"),
        ({"groups": torch.tensor([0, 1, -1])}, r"groups\[2\] is -1; labels are 0, 1, …"),
        ({"groups": [0.0, 0.5, 1.0]}, r"groups\[1\] is 0.5; give a label"),
        ({"groups": ["f", "m", "f"]}, "groups holds texts.*from_pandas"),
        ({"query_ids": [1, 2, 3]}, r"query_ids has shape \(3,\), and offsets make 2 queries"),
        ({"query_ids": [0.5, 1.0]}, r"query_ids\[0\] is 0.5; give whole numbers or texts"),
        ({"query_ids": ["a", None]}, r"query_ids\[1\] is None; give whole numbers or texts"),
        ({"query_ids": ["a", "b\nc"]}, r"query_ids\[1\] is 'b\\nc', which has a line break"),
        ({"query_ids": [[1], [2, 3]]}, "query_ids cannot become a tensor"),
        (
            {"document_ids": ["a", "b", "c"]},
            "document_ids holds texts; .* names go into documents=",
        ),
        ({"document_ids": [1, 2]}, r"document_ids has shape \(2,\), and features has 3 rows"),
        ({"documents": ["a", "b"]}, r"documents has shape \(2,\), and features has 3 rows"),
        ({"documents": [1, 2, 3]}, r"documents\[0\] is 1; give a text for each document"),
        ({"documents": 7}, "documents is 7; give a text for each document"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change, message):
    RankingDataset(**GOOD)
    with pytest.raises(ValueError, match=f"^RankingDataset: {message}"):
        RankingDataset(**{**GOOD, **change})


def test_from_queries_round_trip():
    ds = make([2, 1, 4])
    again = RankingDataset.from_queries(list(ds)).replace(query_ids=ds.query_ids)
    assert as_lists(again) == as_lists(ds)
    assert again.info == {}
    with pytest.raises(
        ValueError, match="from_queries: only one of query 0 and query 1 has groups"
    ):
        RankingDataset.from_queries([tuple(ds[0]), tuple(ds[1])[:2]])
    with pytest.raises(ValueError, match="from_queries: query 1 has 1 entries"):
        RankingDataset.from_queries([tuple(ds[0]), tuple(ds[1])[:1]])


def test_from_queries_refuses_rows_that_belong_to_another_query():
    """2 + 3 rows of features and 3 + 2 grades have the same sum, and used to be joined."""
    queries = [(torch.ones(2, 1), torch.zeros(3)), (torch.ones(3, 1), torch.zeros(2))]
    with pytest.raises(ValueError, match=r"query 0: relevance has shape \(3,\)"):
        RankingDataset.from_queries(queries)
    good = (torch.ones(2, 1), torch.zeros(2), torch.zeros(2))
    with pytest.raises(ValueError, match=r"query 1: groups has shape \(1,\)"):
        RankingDataset.from_queries([good, (*good[:2], torch.zeros(1))])


def test_minmax_works_within_each_query():
    ds = make([5, 1, 3], d=4)
    scaled = ds.normalize()
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


class OneDevice(TorchDispatchMode):
    """Fails on any operation whose tensors lie on two devices, copies between them apart."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        devices = {x.device.type for x in tensors}
        moving = func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
        assert len(devices) <= 1 or moving, f"{func} mixes {devices}"
        return func(*args, **(kwargs or {}))


def test_a_dataset_on_another_device_stays_there_whole():
    """The meta device stands for a GPU: it has no values, so a call that needs them fails too."""
    moved = make([3, 1, 2, 2]).to(torch.float32, device="meta")
    names = ("features", "relevance", "offsets", "groups", "query_ids", "document_ids")
    assert {getattr(moved, name).device.type for name in names} == {"meta"}
    with OneDevice():
        for size in (1, 2, 3):
            for reuse in (True, False):
                for batch in moved.batches(size, shuffle=True, reuse=reuse, dtype=torch.float64):
                    assert {x.device.type for x in batch[:4]} == {"meta"}
                    assert batch.queries.device.type == "cpu"
        assert moved[1].features.shape == (1, 3)
        moved.normalize()
    with pytest.raises(AssertionError, match="mixes"), OneDevice():  # the check can fail
        moved.relevance + torch.ones(8)


def test_texts_as_ids_and_names():
    ds = make([2, 1]).replace(query_ids=["q b", "a"], documents=["x", "", "z"])
    assert ds.query_ids.tolist() == ["q b", "a"]
    part = ds.subset([1, 0])
    assert (part.query_ids.tolist(), part.documents.tolist()) == (["a", "q b"], ["z", "x", ""])
    assert ds[1:].documents.tolist() == ["z"]
    again = pickle.loads(pickle.dumps(ds))
    assert (again.query_ids.tolist(), again.documents.tolist()) == (["q b", "a"], ["x", "", "z"])


def test_the_fingerprint_is_of_the_data_and_nothing_else(tmp_path):
    ds = make([2, 3])
    same = ds.replace(info={"name": "other"}, features=ds.features.T.contiguous().T)
    assert (
        ds.fingerprint()
        == same.fingerprint()
        == make([5, 2, 3])[1:].replace(**{name: getattr(ds, name) for name in FIELDS}).fingerprint()
    )
    ds.save(tmp_path / "a")
    assert RankingDataset.load(tmp_path / "a").fingerprint() == ds.fingerprint()
    other = ds.features.clone()
    other[-1, -1] += 1e-12
    changes = [
        {"features": other},
        {"relevance": ds.relevance + 1},
        {"groups": None},
        {"groups": 1 - ds.groups},
        {"offsets": [0, 3, 5]},
        {"query_ids": [1, 2]},
        {"query_ids": ["1", "2"]},
        {"document_ids": None},
        {"documents": list("abcde")},
        {"documents": ["ab", "", "c", "d", "e"]},
    ]
    found = {ds.replace(**change).fingerprint() for change in changes}
    assert len(found | {ds.fingerprint(), ds.to(torch.float32).fingerprint()}) == len(changes) + 2


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_shards_are_a_partition_into_views(world, tmp_path):
    make([1 + i % 3 for i in range(7)]).save(tmp_path / "a")
    ds = RankingDataset.load(tmp_path / "a")
    shards = [ds.shard(rank, world) for rank in range(world)]
    assert [row for shard in shards for row in as_lists(shard)] == as_lists(ds)
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1
    start = ds.features.data_ptr()
    assert all(start <= s.features.data_ptr() < start + ds.features.nbytes for s in shards)
    for rank in (world, -1):
        with pytest.raises(ValueError, match=f"rank is {rank}"):
            ds.shard(rank, world)


@settings(deadline=None, max_examples=30)
@given(cuts=st.lists(st.integers(1, 4), min_size=1, max_size=4), texts=st.booleans())
def test_concat_joins_what_slicing_took_apart(cuts, texts):
    ds = make([1 + i % 4 for i in range(sum(cuts))]).replace(info={"name": "x"})
    ds = ds.replace(documents=[f"d{i}" for i in range(ds.n_documents)])
    if texts:
        ds = ds.replace(query_ids=[f"q{i}" for i in range(len(ds))])
    ends = np.cumsum([0, *cuts]).tolist()
    joined = RankingDataset.concat([ds[a:b] for a, b in pairwise(ends)])
    assert joined.fingerprint() == ds.fingerprint()
    assert joined.info["name"] == " + ".join(["x"] * len(cuts))


def test_concat_refuses_what_does_not_fit():
    a, b = make([2, 1]), make([3])
    for other, message in (
        (make([3], d=2), "dataset 1 has 2 features, dataset 0 has 3"),
        (b.replace(groups=None), "only one of dataset 0 and dataset 1 has groups"),
        (b.replace(documents=list("xyz")), "only one of dataset 0 and dataset 1 has documents"),
        (b.replace(query_ids=["a"]), "query_ids are numbers in one of .* and texts in the other"),
    ):
        with pytest.raises(ValueError, match=f"RankingDataset.concat: {message}"):
            RankingDataset.concat([a, other])


def table(ds, seed=0):
    """The dataset as a shuffled pandas table, by hand."""
    rows = [
        {"qid": f"q{i}", "y": float(y), "sex": "fm"[int(g)], "doc": f"d{int(start) + j}"}
        | {f"x{k}": float(v) for k, v in enumerate(x)}
        for i, (query, start) in enumerate(zip(ds, ds.offsets, strict=False))
        for j, (x, y, g) in enumerate(zip(*query, strict=True))
    ]
    return pandas.DataFrame(rows).sample(frac=1, random_state=seed)


ROLES = {"query": "qid", "relevance": "y", "group": "sex", "document": "doc"}


def test_from_pandas_gathers_the_rows_of_each_query():
    ds = make([2, 1, 4, 3])
    frame = table(ds)
    got = RankingDataset.from_pandas(frame, **ROLES)
    assert sorted(got.query_ids.tolist()) == ["q0", "q1", "q2", "q3"]
    assert got.info["group_names"] == ["f", "m"]
    by_name = {f"d{i}": i for i in range(ds.n_documents)}
    rows = [by_name[name] for name in got.documents]
    for name in ("features", "relevance", "groups"):
        assert torch.equal(getattr(got, name), getattr(ds.to(torch.float32), name)[rows])
    query = ds.query_ids.repeat_interleave(ds.lengths)[rows] // 10
    expected = [int(q[1:]) for q in got.query_ids.repeat(got.lengths.tolist())]
    assert query.tolist() == expected
    assert frame["doc"].iloc[got.document_ids.tolist()].tolist() == got.documents.tolist()
    orderly = RankingDataset.from_pandas(
        frame.sort_values("doc"), query="qid", relevance="y", features=["x1"]
    )
    assert torch.equal(orderly.features[:, 0], ds.features[:, 1].float())
    assert orderly.groups is None
    assert orderly.documents is None


def test_from_pandas_keeps_numbers_as_ids():
    frame = pandas.DataFrame({"q": [7, 3, 7], "y": [1, 0, 2], "x": [1, 2, 3]})
    got = RankingDataset.from_pandas(frame, query="q", relevance="y")
    assert got.query_ids.tolist() == [7, 3]
    assert isinstance(got.query_ids, torch.Tensor)
    assert got.features.tolist() == [[1], [3], [2]]


@pytest.mark.parametrize(
    ("change", "roles", "message"),
    [
        ({}, {"query": "query"}, "frame has no column 'query'; its columns are"),
        ({}, {"features": ["x0", "x9"]}, "frame has no column 'x9'; its columns are"),
        ({"x1": "tall"}, {}, "column 'x1' does not hold numbers .*tall"),
        ({"y": "good"}, {}, "column 'y' does not hold numbers .*good"),
        ({"x1": [0, np.nan, 0]}, {}, "column 'x1' is missing in row 1; .*fillna"),
        ({"x0": pandas.array([None] * 3, "Int64")}, {}, "column 'x0' is missing in row 0"),
        ({"qid": None}, {}, "column 'qid' is missing in row 0"),
        ({"sex": None}, {}, "column 'sex' is missing in row 0"),
        ({"y": np.inf}, {}, r"relevance\[0\] is inf; .* finite"),
        ({"y": -1.0}, {}, r"relevance\[0\] is -1; .* zero or more"),
    ],
)
def test_from_pandas_says_what_is_wrong(change, roles, message):
    frame = table(make([2, 1])).assign(**change)
    with pytest.raises(ValueError, match=message):
        RankingDataset.from_pandas(frame, **{**ROLES, **roles})
