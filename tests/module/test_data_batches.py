"""Padded batches: every document once, padding marked, order driven by the generator."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_data_dataset import make

from fairpg_lite.data import RankingDataset


@settings(deadline=None, max_examples=100)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=40),
    size=st.integers(1, 12),
    shuffle=st.booleans(),
    groups=st.booleans(),
)
def test_batches_hold_every_query_once(lengths, size, shuffle, groups):
    ds = make(lengths, groups=groups)
    batches = ds.batches(size, shuffle, torch.Generator().manual_seed(1))
    seen = []
    for batch in batches:
        assert batch.features.shape == (*batch.mask.shape, 3)
        assert batch.mask.any(0).all()  # no column of padding only
        for row, i in enumerate(batch.queries.tolist()):
            query, real = ds[i], batch.mask[row]
            assert real.tolist() == [True] * len(query.relevance) + [False] * int((~real).sum())
            assert torch.equal(batch.features[row][real], query.features)
            assert torch.equal(batch.relevance[row][real], query.relevance)
            assert (batch.features[row][~real] == 0).all()
            assert (batch.relevance[row][~real] == 0).all()
            if groups:
                assert torch.equal(batch.groups[row][real], query.groups)
                assert (batch.groups[row][~real] == 0).all()
            else:
                assert batch.groups is None
            seen.append(i)
    assert sorted(seen) == list(range(len(ds)))
    assert len(list(batches)) == len(batches)
    if not shuffle and size == 1:
        assert seen == list(range(len(ds)))


def test_one_query_at_a_time_copies_nothing():
    ds = make([3, 1, 2])
    for batch in ds.batches(1):
        i = int(batch.queries[0])
        assert batch.features.data_ptr() == ds[i].features.data_ptr()
        assert batch.relevance.data_ptr() == ds[i].relevance.data_ptr()
        assert batch.groups.data_ptr() == ds[i].groups.data_ptr()
        assert batch.mask.all()


def test_neighbours_of_equal_length_are_a_view():
    ds = make([4] * 6)
    (batch,) = ds.batches(6)
    assert batch.features.shape == (6, 4, 3)
    assert batch.features.data_ptr() == ds.features.data_ptr()


def test_the_generator_decides_the_order_and_every_epoch_differs():
    ds = make([1 + i % 7 for i in range(60)])

    def epochs(seed):
        batches = ds.batches(4, shuffle=True, generator=torch.Generator().manual_seed(seed))
        return [[batch.queries.tolist() for batch in batches] for _ in range(2)]

    assert epochs(1) == epochs(1)
    assert epochs(1) != epochs(2)
    first, second = epochs(1)
    assert first != second


def test_bucketing_saves_padding_and_keeps_batches_random():
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 100, (1000,), generator=generator).tolist()
    ds = make(lengths, d=1)

    batches = list(ds.batches(10, shuffle=True, generator=torch.Generator().manual_seed(0)))
    widths = [batch.mask.shape[1] for batch in batches]
    plain = sum(10 * max(lengths[i : i + 10]) for i in range(0, 1000, 10)) - sum(lengths)
    assert sum(int((~batch.mask).sum()) for batch in batches) < plain / 5
    assert widths != sorted(widths)  # long and short batches come mixed


def test_dtype_casts_numbers_and_leaves_groups():
    ds = make([2, 3], dtype=torch.float32)
    for size in (1, 2):
        for batch in ds.batches(size, dtype=torch.float64):
            assert batch.features.dtype == batch.relevance.dtype == torch.float64
            assert batch.groups.dtype == torch.int64


def test_edges():
    assert list(make([2])[0:0].batches(3)) == []
    assert len(make([2])[0:0].batches(3)) == 0
    with pytest.raises(ValueError, match="size is 0"):
        make([2]).batches(0)
    noncontiguous = RankingDataset(torch.ones(2, 6).T, torch.zeros(6), [0, 3, 6])
    assert next(iter(noncontiguous.batches(2))).features.shape == (2, 3, 2)


@pytest.mark.parametrize("dtype", [None, torch.float64])
def test_reused_memory_gives_the_same_batches(dtype):
    """Long batches before short ones and back: nothing of an earlier batch shines through."""
    ds = make([7, 1, 3, 9, 2, 2, 8, 1])
    plain = ds.batches(3, True, torch.Generator().manual_seed(2), dtype=dtype)
    reused = ds.batches(3, True, torch.Generator().manual_seed(2), dtype=dtype, reuse=True)
    for fresh, shared in zip(plain, reused, strict=True):
        for one, other in zip(fresh, shared, strict=True):
            assert (one is None and other is None) or torch.equal(one, other)
