"""save and load: nothing lost, memory-mapped, and every kind of damage named."""

import json

import numpy as np
import pytest
import torch
from test_data_dataset import as_lists, make

from fairpg_lite.data import RankingDataset, storage


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_round_trip(tmp_path, mmap, dtype):
    ds = make([2, 1, 4], dtype=dtype).replace(info={"name": "x", "list": [1, 2]})
    ds.save(tmp_path / "sub" / "data")
    again = RankingDataset.load(tmp_path / "sub" / "data", mmap=mmap)
    assert as_lists(again) == as_lists(ds)
    assert again.features.dtype == dtype
    assert again.document_ids.tolist() == ds.document_ids.tolist()
    assert again.info == ds.info
    assert sorted(p.name for p in (tmp_path / "sub").iterdir()) == ["data"]  # nothing temporary


def test_optional_arrays_stay_absent_and_empty_sets_load(tmp_path):
    make([2], groups=False).replace(document_ids=None).save(tmp_path / "a")
    again = RankingDataset.load(tmp_path / "a")
    assert again.groups is None
    assert again.document_ids is None
    make([2])[0:0].save(tmp_path / "empty")
    assert len(RankingDataset.load(tmp_path / "empty")) == 0


def test_memory_mapped_features_can_be_written_without_touching_the_file(tmp_path):
    ds = make([3])
    ds.save(tmp_path / "a")
    mapped = RankingDataset.load(tmp_path / "a")
    assert mapped.features.untyped_storage().data_ptr() != ds.features.untyped_storage().data_ptr()
    mapped.features[0, 0] = 99.0
    assert RankingDataset.load(tmp_path / "a", verify=True).features[0, 0] == ds.features[0, 0]


def test_no_pickle_anywhere(tmp_path):
    make([3]).save(tmp_path / "a")
    for file in (tmp_path / "a").glob("*.npy"):
        np.load(file, allow_pickle=False)
    np.save(tmp_path / "a" / "relevance.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"relevance\.npy is missing or damaged"):
        RankingDataset.load(tmp_path / "a")


def test_overwrite_only_when_asked_and_only_our_own(tmp_path):
    first, second = make([3], seed=1), make([2, 2], seed=2)
    first.save(tmp_path / "a")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        second.save(tmp_path / "a")
    assert as_lists(RankingDataset.load(tmp_path / "a")) == as_lists(first)
    second.save(tmp_path / "a", overwrite=True)
    assert as_lists(RankingDataset.load(tmp_path / "a")) == as_lists(second)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="not a dataset"):
        second.save(tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_a_failed_save_leaves_the_old_one(tmp_path, monkeypatch):
    first = make([3], seed=1)
    first.save(tmp_path / "a")

    def broken(*_args):
        raise OSError("disk full")

    monkeypatch.setattr(storage, "_checksum", broken)
    with pytest.raises(OSError, match="disk full"):
        make([4]).save(tmp_path / "a", overwrite=True)
    monkeypatch.undo()
    assert as_lists(RankingDataset.load(tmp_path / "a")) == as_lists(first)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def edit_meta(path, change):
    meta = json.loads((path / "meta.json").read_text())
    change(meta)
    (path / "meta.json").write_text(json.dumps(meta))


def truncate(file):
    file.write_bytes(file.read_bytes()[:-4])


def flip(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: (p / "meta.json").unlink(), "not written by"),
        (lambda p: (p / "meta.json").write_text("{"), "not written by"),
        (lambda p: (p / "meta.json").write_text("[1]"), "not written by"),
        (lambda p: edit_meta(p, lambda m: m.update(format="other")), "not written by"),
        (lambda p: edit_meta(p, lambda m: m.update(version=2)), "version 2"),
        (lambda p: edit_meta(p, lambda m: m["arrays"].pop("offsets")), "damaged"),
        (lambda p: edit_meta(p, lambda m: m["arrays"]["offsets"].pop("crc32")), "damaged"),
        (lambda p: edit_meta(p, lambda m: m["arrays"].update({"../x": {}})), "damaged"),
        (lambda p: (p / "features.npy").unlink(), "features.npy is missing or damaged"),
        (lambda p: truncate(p / "features.npy"), "features.npy is missing or damaged"),
        (lambda p: truncate(p / "relevance.npy"), "relevance.npy is missing or damaged"),
        (lambda p: flip(p / "relevance.npy"), "checksum"),
        (lambda p: np.save(p / "features.npy", np.zeros((2, 2))), "meta.json says"),
    ],
)
def test_damage_is_named(tmp_path, damage, message):
    make([2, 3]).save(tmp_path / "a")
    damage(tmp_path / "a")
    with pytest.raises(ValueError, match=message):
        RankingDataset.load(tmp_path / "a")


def test_verify_reads_memory_mapped_features(tmp_path):
    make([2, 3]).save(tmp_path / "a")
    flip(tmp_path / "a" / "features.npy")
    with pytest.raises(ValueError, match=r"features\.npy does not have the checksum"):
        RankingDataset.load(tmp_path / "a", verify=True)
    with pytest.raises(FileNotFoundError, match="no directory"):
        RankingDataset.load(tmp_path / "b")
