"""save and load: nothing lost, memory-mapped, and every kind of damage refused."""

import io
import os
import pickle
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from test_data_dataset import as_lists, make

from fairpg_lite.data import RankingDataset, storage


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_round_trip(tmp_path, dtype):
    ds = make([2, 1, 4], dtype=dtype).replace(info={"name": "x", "list": [1, 2]})
    ds = ds.replace(documents=["a", "", "ü b", "d", "e", "f", ""])
    ds.save(tmp_path / "sub" / "data")
    again = RankingDataset.load(tmp_path / "sub" / "data")
    assert as_lists(again) == as_lists(ds)
    assert again.features.dtype == dtype
    assert again.document_ids.tolist() == ds.document_ids.tolist()
    assert again.documents.tolist() == ds.documents.tolist()
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
    ds = make([300], d=1000)
    ds.save(tmp_path / "a")
    mapped = RankingDataset.load(tmp_path / "a")
    if Path("/proc/self/maps").exists():  # where the system tells
        assert str(tmp_path / "a") in Path("/proc/self/maps").read_text()
    assert mapped.features.numpy().ctypes.data % 64 == 0  # compiled code wants it aligned
    mapped.features[0, 0] = 99.0
    assert RankingDataset.load(tmp_path / "a").features[0, 0] == ds.features[0, 0]


def test_a_view_is_stored_without_the_rest(tmp_path):
    ds = make([100] * 50, d=20)
    ds[3:4].save(tmp_path / "part")
    ds.save(tmp_path / "all")
    assert (tmp_path / "part").stat().st_size < (tmp_path / "all").stat().st_size / 20


def test_a_failed_save_leaves_the_old_one(tmp_path, monkeypatch):
    first = make([3], seed=1)
    first.save(tmp_path / "a")

    def broken(*_args, **_how):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        make([4]).save(tmp_path / "a")
    monkeypatch.undo()
    assert as_lists(RankingDataset.load(tmp_path / "a")) == as_lists(first)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_is_named_and_leaves_the_old_one(tmp_path):
    """Files may not grow beyond 100 kB here."""
    resource = pytest.importorskip("resource", reason="a system that limits the size of files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    first = make([3], seed=1)
    first.save(tmp_path / "a")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"too large.*a'"):
            make([400], d=100).save(tmp_path / "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert as_lists(RankingDataset.load(tmp_path / "a")) == as_lists(first)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


class Evil:
    """What a pickle runs when it is opened by somebody careless."""

    def __reduce__(self):
        return os.mkdir, (str(Path(tempfile.gettempdir()) / "fairpg_lite_evil"),)


def parts(path):
    """The features in a file, and the list [format, checksum, other arrays, info] behind them."""
    with path.open("rb") as file:
        features = np.load(file)
        return features, torch.load(io.BytesIO(file.read()))


def put_together(path, features, others):
    with path.open("wb") as file:
        np.save(file, features)
        torch.save(others, file)


def with_others(path, others):
    put_together(path, parts(path)[0], others)


def with_features(path, features):
    put_together(path, features, parts(path)[1])


def with_arrays(path, **changes):
    """The file with other arrays, and the checksum of the old ones."""
    features, (form, checksum, arrays, info) = parts(path)
    put_together(path, features, [form, checksum, {**arrays, **changes}, info])


NOT_OURS = "is damaged, or no file of RankingDataset.save"
CHECKSUM = "is damaged: its checksum is"
DAMAGE = {
    "empty": (lambda p: p.write_bytes(b""), NOT_OURS),
    "bytes": (lambda p: p.write_bytes(b"\xff" * 100), NOT_OURS),
    "cut": (lambda p: p.write_bytes(p.read_bytes()[:-4]), NOT_OURS),
    "no features": (lambda p: torch.save(parts(p)[1], p), NOT_OURS),
    "features only": (lambda p: p.write_bytes(p.read_bytes()[: 128 + 5 * 3 * 8]), NOT_OURS),
    "a list of one": (lambda p: with_others(p, [1]), NOT_OURS),
    "a later format": (
        lambda p: with_others(p, ["fairpg_lite.RankingDataset 2", "", {}, {}]),
        "has the format 'fairpg_lite.RankingDataset 2', and this version of fairpg-lite reads",
    ),
    "no array": (lambda p: with_others(p, [storage.FORMAT, "", {"offsets": 5}, {}]), NOT_OURS),
    "no arrays": (lambda p: with_others(p, [storage.FORMAT, "", 5, {}]), NOT_OURS),
    "code": (lambda p: with_others(p, [storage.FORMAT, "", {"offsets": Evil()}, {}]), NOT_OURS),
    "a pickle": (lambda p: p.write_bytes(pickle.dumps(Evil())), NOT_OURS),
    "code as features": (lambda p: with_features(p, np.array([[Evil()]] * 5)), NOT_OURS),
    "whole features": (lambda p: with_features(p, np.ones((5, 3), int)), NOT_OURS),
    "columns first": (lambda p: with_features(p, np.ones((3, 5)).T), NOT_OURS),
    "too few features": (lambda p: with_features(p, np.ones((4, 3))), NOT_OURS),
    "other grades": (lambda p: with_arrays(p, relevance=torch.zeros(5)), CHECKSUM),
    "no groups": (lambda p: with_arrays(p, groups=None), CHECKSUM),
    "one array more": (lambda p: with_arrays(p, extra=[1]), CHECKSUM),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_refused(tmp_path, damage):
    inflict, message = DAMAGE[damage]
    make([2, 3]).save(tmp_path / "a")
    inflict(tmp_path / "a")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"RankingDataset.load: .*a {message}"):
            RankingDataset.load(tmp_path / "a")
        assert tracemalloc.get_traced_memory()[1] < 5e7  # nothing is allocated on a file's word
    finally:
        tracemalloc.stop()
    assert not (Path(tempfile.gettempdir()) / "fairpg_lite_evil").exists()


def test_a_huge_array_is_not_believed(tmp_path):
    make([2, 3]).save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    other = content.replace(b"(5, 3), }      ", b"(5, 3000000), }", 1)
    assert other != content
    (tmp_path / "a").write_bytes(other)
    with pytest.raises(ValueError, match=NOT_OURS):
        RankingDataset.load(tmp_path / "a")


def test_numpy_reads_the_features_alone(tmp_path):
    ds = make([2, 3])
    ds.save(tmp_path / "a")
    assert np.load(tmp_path / "a").tolist() == ds.features.tolist()


def test_a_changed_bit_is_found_and_an_absent_file_named(tmp_path):
    ds = make([2, 3]).replace(document_ids=[7_777_777] * 5)
    ds.save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    stored = ds.document_ids.numpy().tobytes()
    assert content.count(stored) == 1
    other = content.replace(stored, b"\0" + stored[1:])
    (tmp_path / "a").write_bytes(other)
    with pytest.raises(ValueError, match="checksum"):
        RankingDataset.load(tmp_path / "a")
    with pytest.raises(FileNotFoundError, match="absent"):
        RankingDataset.load(tmp_path / "absent")


def test_no_cut_of_the_file_is_taken_for_the_whole(tmp_path):
    make([2, 3]).save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    for length in range(0, len(content), 29):
        (tmp_path / "a").write_bytes(content[:length])
        with pytest.raises(ValueError, match="damaged"):
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
    data(2).save(target)

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
    for part in root.glob(".*.part"):  # what a killed writer left goes when it is an hour old
        os.utime(part, (0, 0))
    data(3).save(target)
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
        data(k).save(target)
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
data(1).save(target)
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


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="a system with fork")


@needs_fork
@pytest.mark.slow
def test_a_killed_overwrite_leaves_the_old_or_the_new_whole(tmp_path):
    """Killed before every renaming in turn; what it leaves is cleared by a later writer."""
    code, *found = run(KILL, tmp_path)
    assert code == "0"
    assert found == sorted(found)  # the old version up to one step, from there the new
    assert set(found) == {"1", "2"}


@needs_fork
def test_two_writers_and_a_reader_who_never_sees_a_half(tmp_path):
    assert run(RACE, tmp_path) == ["True"]
    assert not [p for p in Path(tmp_path).iterdir() if p.name.startswith(".")]


def test_a_file_that_is_replaced_while_it_is_read_is_read_whole(tmp_path, monkeypatch):
    """Whatever takes the name meanwhile, all that is read is of the file that was opened."""
    target = tmp_path / "a"
    first, second = make([2, 1]), make([2, 1], seed=1)
    first.save(target)

    memmap = np.memmap

    def replaced_meanwhile(*args, **kwargs):
        array = memmap(*args, **kwargs)
        second.save(target)
        return array

    with monkeypatch.context() as patch:
        patch.setattr(np, "memmap", replaced_meanwhile)
        loaded = RankingDataset.load(target)
    assert loaded.fingerprint() == first.fingerprint()
    assert RankingDataset.load(target).fingerprint() == second.fingerprint()
