"""save and load: nothing lost, memory-mapped, and every kind of damage named."""

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from test_data_dataset import as_lists, make

from fairpg_lite.data import RankingDataset


def parts(path):
    """The header of a file, and the bytes behind it."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def write(path, header, rest):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + rest)


def edit(path, change):
    header, rest = parts(path)
    change(header)
    write(path, header, rest)


def about(path, **changes):
    edit(path, lambda header: header["__metadata__"].update(changes))


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


def test_the_file_is_one_of_safetensors(tmp_path):
    """By the format's own rules, so that other programs read it: JSON, then arrays without gaps."""
    ds = make([3, 2], dtype=torch.float32)
    ds.save(tmp_path / "a")
    header, rest = parts(tmp_path / "a")
    assert all(isinstance(value, str) for value in header.pop("__metadata__").values())
    end = 0
    for name, entry in header.items():
        begin, after = entry["data_offsets"]
        assert (begin, entry["shape"]) == (end, list(getattr(ds, name).shape))
        kind = {"F32": "<f4", "I64": "<i8"}[entry["dtype"]]
        values = np.frombuffer(rest[begin:after], kind).reshape(entry["shape"])
        assert np.array_equal(values, getattr(ds, name).numpy())
        end = after
    assert end == len(rest)
    mapped = RankingDataset.load(tmp_path / "a").features.numpy()
    assert mapped.ctypes.data % 64 == 0  # compiled code wants it aligned


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

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        make([4]).save(tmp_path / "a", overwrite=True)
    monkeypatch.undo()
    assert as_lists(RankingDataset.load(tmp_path / "a")) == as_lists(first)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def flip(path, name):
    """One bit of an array's last byte."""
    header, rest = parts(path)
    place = header[name]["data_offsets"][1] - 1
    write(path, header, rest[:place] + bytes([rest[place] ^ 1]) + rest[place + 1 :])


def entry(name, **changes):
    return lambda path: edit(path, lambda header: header[name].update(changes))


BOMB = 1 << 40


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p.write_bytes(b""), "not written by"),
        (lambda p: p.write_bytes(b"\xff" * 100), "not written by"),
        (lambda p: write(p, b"{", b""), "not written by"),
        (lambda p: write(p, b"[1]", b""), "not written by"),
        (lambda p: write(p, b"[" * 100_000, b""), "not written by"),
        (lambda p: write(p, {"__metadata__": 5}, b""), "not written by"),
        (lambda p: about(p, format="other"), "not written by"),
        (lambda p: about(p, version="4"), "version 4"),
        (lambda p: about(p, version=3), "version 3"),
        (lambda p: about(p, info="5"), "damaged"),
        (lambda p: about(p, info="[" * 100_000), "damaged"),
        (lambda p: about(p, **{"crc32 of offsets": 5}), "offsets does not have the checksum"),
        (
            lambda p: edit(p, lambda header: header["__metadata__"].pop("crc32 of offsets")),
            "KeyErr",
        ),
        (lambda p: edit(p, lambda header: header.pop("offsets")), "damaged: .*it has the arrays"),
        (lambda p: edit(p, lambda header: header.update({"../x": {}})), "it has the arrays"),
        (lambda p: edit(p, lambda header: header.update(groups=[1])), "damaged"),
        (lambda p: edit(p, lambda header: header["groups"].pop("shape")), "damaged"),
        (lambda p: p.write_bytes(p.read_bytes()[:-4]), "not what the file holds"),
        (lambda p: p.write_bytes(p.read_bytes()[:100]), "not written by"),
        (lambda p: flip(p, "relevance"), "relevance does not have the checksum"),
        (lambda p: flip(p, "groups"), "groups does not have the checksum"),
        (entry("features", shape=[2, 2]), "not what the file holds"),
        (entry("features", shape=[BOMB, 3]), "not what the file holds"),
        (entry("relevance", shape=[BOMB], data_offsets=[0, 8 * BOMB]), "not what the file holds"),
        (entry("relevance", data_offsets=[-40, 0]), "not what the file holds"),
        (entry("relevance", shape=[-5], data_offsets=[40, 0]), "not what the file holds"),
        (entry("relevance", shape=[5.0]), "not what the file holds"),
        (entry("relevance", data_offsets=[0]), "damaged"),
        (entry("relevance", dtype="BOOL"), "damaged: KeyError"),
        (entry("relevance", dtype="O"), "damaged: KeyError"),
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
    flip(tmp_path / "a", "features")
    with pytest.raises(ValueError, match=r"features.* does not have the checksum"):
        RankingDataset.load(tmp_path / "a", mmap=False)
    for place in ("b", ""):  # a directory was what the first edition wrote
        with pytest.raises(FileNotFoundError, match="no file"):
            RankingDataset.load(tmp_path / place)


def test_no_cut_of_the_file_is_taken_for_the_whole(tmp_path):
    make([2, 3]).save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    for length in range(0, len(content), 7):
        (tmp_path / "a").write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"not written by|damaged"):
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
    assert not left, left
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
assert version(target) == 1
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
