"""save and load: nothing lost, memory-mapped, and every kind of damage named."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from test_data_dataset import as_lists, make

from fairpg_lite.data import RankingDataset, storage


def the(path, name):
    """The file of an array, which has a name of its own for every version."""
    (file,) = path.glob(f"{name}.*.npy")
    return file


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_round_trip(tmp_path, mmap, dtype):
    ds = make([2, 1, 4], dtype=dtype).replace(info={"name": "x", "list": [1, 2]})
    ds = ds.replace(documents=["a", "", "ü b", "d", "e", "f", ""])
    ds.save(tmp_path / "sub" / "data")
    again = RankingDataset.load(tmp_path / "sub" / "data", mmap=mmap)
    assert as_lists(again) == as_lists(ds)
    assert again.features.dtype == dtype
    assert again.document_ids.tolist() == ds.document_ids.tolist()
    assert again.documents == ds.documents
    assert again.info == ds.info
    ds.replace(query_ids=["x y", "z", ""]).save(tmp_path / "text")
    assert RankingDataset.load(tmp_path / "text").query_ids.tolist() == ["x y", "z", ""]
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
    assert RankingDataset.load(tmp_path / "a", mmap=False).features[0, 0] == ds.features[0, 0]


def test_no_pickle_anywhere(tmp_path):
    make([3]).save(tmp_path / "a")
    for file in (tmp_path / "a").glob("*.npy"):
        np.load(file, allow_pickle=False)
    np.save(the(tmp_path / "a", "relevance"), np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"is damaged: .*plain"):
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

    def broken(*_args, **_how):
        raise OSError("disk full")

    monkeypatch.setattr(storage.np, "save", broken)
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


def claim(path, name, shape):
    """Header and meta.json agree on a shape that the file's bytes do not bear out."""
    file = the(path, name)
    edit_meta(path, lambda meta: meta["arrays"][name].update(shape=list(shape)))
    with file.open("wb") as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(bytes(80))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: (p / "meta.json").unlink(), "not written by"),
        (lambda p: (p / "meta.json").write_text("{"), "not written by"),
        (lambda p: (p / "meta.json").write_text("[1]"), "not written by"),
        (lambda p: edit_meta(p, lambda m: m.update(format="other")), "not written by"),
        (lambda p: (p / "meta.json").write_text("[" * 100_000), "not written by"),
        (lambda p: edit_meta(p, lambda m: m.update(version=3)), "version 3"),
        (lambda p: edit_meta(p, lambda m: m.update(info=5)), "damaged"),
        (lambda p: edit_meta(p, lambda m: m.update(arrays=[1])), "damaged"),
        (lambda p: edit_meta(p, lambda m: m["arrays"].pop("offsets")), "damaged"),
        (lambda p: edit_meta(p, lambda m: m["arrays"]["offsets"].pop("crc32")), "damaged"),
        (lambda p: edit_meta(p, lambda m: m["arrays"].update({"../x": {}})), "damaged"),
        (lambda p: the(p, "features").unlink(), "is damaged: FileNotFoundError"),
        (lambda p: truncate(the(p, "features")), "meta.json says otherwise"),
        (lambda p: truncate(the(p, "relevance")), "meta.json says otherwise"),
        (lambda p: flip(the(p, "relevance")), "checksum"),
        (lambda p: np.save(the(p, "features"), np.zeros((2, 2))), "meta.json says otherwise"),
        (lambda p: the(p, "offsets").write_bytes(b""), "no .npy array"),
        (
            lambda p: the(p, "offsets").write_bytes(b"\x93NUMPY\x02\0" + b"\xff" * 4),
            "no .npy array",
        ),
        (lambda p: the(p, "offsets").write_bytes(b"\x93NUMPY\x01\0\x02\0[["), "no .npy array"),
        (lambda p: np.save(the(p, "features"), np.ones((5, 3), np.longdouble)), "plain numbers"),
        (lambda p: np.save(the(p, "features"), np.array(["x"])), "plain numbers"),
        (lambda p: claim(p, "relevance", (1 << 40,)), "meta.json says otherwise"),
        (lambda p: claim(p, "features", (1 << 40, 3)), "meta.json says otherwise"),
    ],
)
def test_damage_is_named(tmp_path, damage, message):
    make([2, 3]).save(tmp_path / "a")
    damage(tmp_path / "a")
    tracemalloc.start()
    with pytest.raises(ValueError, match=message):
        RankingDataset.load(tmp_path / "a")
    assert tracemalloc.get_traced_memory()[1] < 5e7  # nothing is allocated on a file's word
    tracemalloc.stop()


def test_what_is_read_into_memory_is_verified(tmp_path):
    make([2, 3]).save(tmp_path / "a")
    flip(the(tmp_path / "a", "features"))
    with pytest.raises(ValueError, match=r"features.* does not have the checksum"):
        RankingDataset.load(tmp_path / "a", mmap=False)
    with pytest.raises(FileNotFoundError, match="no directory"):
        RankingDataset.load(tmp_path / "b")


def test_version_1_is_still_read(tmp_path):
    ds = make([2, 3])
    ds.save(tmp_path / "a")
    for name in ("features", "relevance", "offsets", "query_ids", "groups", "document_ids"):
        the(tmp_path / "a", name).rename(tmp_path / "a" / f"{name}.npy")

    def as_it_was(meta):
        meta["version"] = 1
        for entry in meta["arrays"].values():
            del entry["file"]

    edit_meta(tmp_path / "a", as_it_was)
    assert RankingDataset.load(tmp_path / "a").fingerprint() == ds.fingerprint()


def test_a_path_in_meta_json_leads_nowhere_else(tmp_path):
    make([2]).save(tmp_path / "a")
    the(tmp_path / "a", "groups").rename(tmp_path / "groups.npy")
    edit_meta(tmp_path / "a", lambda meta: meta["arrays"]["groups"].update(file="../groups.npy"))
    with pytest.raises(ValueError, match="is damaged: FileNotFoundError"):
        RankingDataset.load(tmp_path / "a")


PROCESSES = """
import os, sys
from pathlib import Path
import torch
from fairpg_lite.data import RankingDataset
from fairpg_lite import _files

def data(k, n=4):
    ones = torch.full((n,), float(k))
    return RankingDataset(ones[:, None], ones, [0, n], groups=ones.long(), documents=[str(k)] * n)

def version(path):
    found = RankingDataset.load(path)
    values = {*found.features.flatten().tolist(), *found.relevance.tolist(), *found.groups.tolist()}
    values |= set(map(int, found.documents))
    assert len(values) == 1, values
    return int(values.pop())

def fork(action):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return child

def killed(step, target):
    # os._exit runs no clean-up, as kill -9: just before the step-th change of a name.
    count = 0
    def counting(real):
        def call(*args, **kwargs):
            nonlocal count
            count += 1
            if count == step:
                os._exit(9)
            return real(*args, **kwargs)
        return call
    os.replace, os.rename, os.unlink = map(counting, (os.replace, os.rename, os.unlink))
    data(2).save(target, overwrite=True)

root = Path(sys.argv[1])
"""

KILL = (
    PROCESSES
    + """
found, step, code = [], 0, 9
while code == 9:
    step += 1
    target = root / f"a{step}"
    os.waitpid(fork(lambda: data(1).save(target)), 0)
    code = os.waitstatus_to_exitcode(os.waitpid(fork(lambda: killed(step, target)), 0)[1])
    found.append(version(target))
    data(3).save(target, overwrite=True)
    assert version(target) == 3
    left = [p.name for p in root.iterdir() if p.name.startswith(".")]
    assert not left and len(list(target.iterdir())) == 7, (left, list(target.iterdir()))
print(code, *found)
"""
)

RACE = (
    PROCESSES
    + """
target = root / "a"
data(0).save(target)
def write(first):
    for k in range(first, first + 25):
        data(k).save(target, overwrite=True)
children, running = [fork(lambda: write(100)), fork(lambda: write(200))], 2
seen = set()
while running:
    seen.add(version(target))
    for child in list(children):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0
            children.remove(child)
            running -= 1
data(1).save(target, overwrite=True)
assert version(target) == 1 and len(list(target.iterdir())) == 7, list(target.iterdir())
print(len(seen) > 1)
"""
)


def run(code, directory):
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_a_killed_overwrite_leaves_the_old_or_the_new_whole(tmp_path):
    """Killed before every renaming in turn; the first edition left nothing between two of them."""
    code, *found = run(KILL, tmp_path)
    assert code == "0"
    assert found == sorted(found)  # the old version up to one step, from there the new
    assert set(found) == {"1", "2"}


def test_two_writers_and_a_reader_who_never_sees_a_half(tmp_path):
    assert run(RACE, tmp_path) == ["True"]
    assert not [p for p in Path(tmp_path).iterdir() if p.name.startswith(".")]
