"""A checkpoint continues its own run, bit by bit, and no other."""

import dataclasses
import errno
import os
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch

from fairpg_lite import LinearScorer, MLPScorer, TrainConfig, fit, synthetic


def linear(seed=0):
    return LinearScorer(2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def theta(scorer):
    return scorer.linear.weight.detach().flatten().clone()


def quick(**changes):
    settings = {"lr": 0.1, "lr_decay": 0.5, "epochs": 3, "batch_size": 1, "lam": 5.0}
    return TrainConfig(**{**settings, **changes})


@pytest.mark.parametrize("method", ["sample", "exact"])
def test_resuming_gives_the_same_bits(tmp_path, method):
    data, valid = synthetic(n_queries=20, seed=0), synthetic(n_queries=10, seed=1)
    config = quick(method=method, epochs=6, batch_size=4)
    whole = linear()
    history = fit(whole, data, config, valid, progress=False)
    path = tmp_path / "run.ckpt"
    part = linear()
    fit(part, data, dataclasses.replace(config, epochs=3), valid, progress=False, checkpoint=path)
    resumed = linear(seed=9)
    again = fit(resumed, data, config, valid, progress=False, checkpoint=path)
    assert torch.equal(theta(whole), theta(resumed))
    assert again.utility == history.utility
    assert again.valid_disparity == history.valid_disparity
    assert len(again) == 6


def test_checkpoints_hold_no_code(tmp_path):
    path = tmp_path / "run.ckpt"
    fit(linear(), synthetic(n_queries=5), quick(epochs=1), progress=False, checkpoint=path)
    assert torch.load(path, weights_only=True)["format"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["run.ckpt"]


def test_foreign_and_damaged_checkpoints_are_refused(tmp_path):
    data = synthetic(n_queries=5)
    path = tmp_path / "run.ckpt"
    fit(linear(), data, quick(epochs=1), progress=False, checkpoint=path)
    with pytest.raises(ValueError, match="other setting lam"):
        fit(linear(), data, quick(epochs=1, lam=1.0), progress=False, checkpoint=path)
    scorer = MLPScorer(2, dtype=torch.float64)
    with pytest.raises(ValueError, match="other scorer"):
        fit(scorer, data, quick(epochs=1), progress=False, checkpoint=path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="cannot be read as a checkpoint, it may be cut off"):
        fit(linear(), data, quick(epochs=1), progress=False, checkpoint=path)
    torch.save({"format": 99}, path)
    with pytest.raises(ValueError, match=r"checkpoint of format 99, this version.*reads format 1"):
        fit(linear(), data, quick(epochs=1), progress=False, checkpoint=path)
    torch.save(linear().state_dict(), path)
    with pytest.raises(ValueError, match="is not a checkpoint; choose another file"):
        fit(linear(), data, quick(epochs=1), progress=False, checkpoint=path)


def test_a_checkpoint_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path, monkeypatch):
    """2 MB took 2 GB: what its headers announce is compared with the file before torch reads it."""
    path = tmp_path / "run.ckpt"
    fit(linear(), synthetic(n_queries=5), quick(epochs=1), progress=False, checkpoint=path)
    with ZipFile(path) as whole, ZipFile(tmp_path / "bomb", "w", ZIP_DEFLATED) as bomb:
        for name in whole.namelist():
            content = b"\0" * 10_000_000 if name.endswith("/data/0") else whole.read(name)
            bomb.writestr(name, content)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it is unpacked"))
    refused(tmp_path / "bomb", r"it unpacks to 10,\d\d\d,\d\d\d bytes")


@pytest.fixture
def path(tmp_path):
    """The checkpoint of a run of two epochs."""
    fit(
        linear(), synthetic(n_queries=5), quick(epochs=2), progress=False, checkpoint=tmp_path / "c"
    )
    return tmp_path / "c"


def refused(path, message, data=None, config=None, valid=None, scorer=None):
    before, scorer = path.read_bytes(), scorer or linear(seed=4)
    start = [p.detach().clone() for p in scorer.parameters()]
    data = synthetic(n_queries=5) if data is None else data
    with pytest.raises(ValueError, match=message):
        fit(scorer, data, config or quick(epochs=2), valid, progress=False, checkpoint=path)
    assert path.read_bytes() == before
    assert all(map(torch.equal, start, scorer.parameters()))


def test_other_data_is_refused(path):
    data = synthetic(n_queries=5)
    refused(path, "other training data", synthetic(n_queries=5, seed=1))
    refused(path, "other training data", data.replace(groups=1 - data.groups))
    refused(path, "other training data", data.replace(relevance=data.relevance.flip(0)))
    refused(path, "other validation data", valid=data)


def test_fewer_epochs_than_done_are_refused_and_more_continue(path):
    refused(path, "2 epochs, more than the 1 asked for", config=quick(epochs=1))
    data = synthetic(n_queries=5)
    more, whole = linear(seed=4), linear()
    assert len(fit(more, data, quick(epochs=4), progress=False, checkpoint=path)) == 4
    fit(whole, data, quick(epochs=4), progress=False)
    assert torch.equal(theta(more), theta(whole))


def test_a_function_cannot_be_told_from_another(tmp_path):
    """Not by its name: all lambdas have one."""
    config, path = quick(epochs=1, disparity=lambda e, m, g, k: e.sum(-1)), tmp_path / "c"
    with pytest.raises(ValueError, match=r"disparity is <function.*a checkpoint cannot tell"):
        fit(linear(), synthetic(n_queries=5), config, progress=False, checkpoint=path)
    assert not path.exists()


def test_a_position_bias_is_compared_by_its_numbers(tmp_path):
    data, path = synthetic(n_queries=5, n_docs=4), tmp_path / "c"
    bias = torch.tensor([1.0, 0.5, 0.25, 0.0], dtype=torch.float64)
    config = quick(epochs=1, position_bias=bias)
    fit(linear(), data, config, progress=False, checkpoint=path)
    refused(path, "other setting position_bias", data, quick(epochs=1, position_bias=bias**2))
    again = dataclasses.replace(config, position_bias=bias.clone())
    fit(linear(), data, again, progress=False, checkpoint=path)


@pytest.mark.parametrize(
    "key",
    [
        "identity",
        "history",
        "scorer",
        "optimizer",
        "order_generator",
        "sampling_generator",
        "best",
    ],
)
def test_a_checkpoint_without_a_part_is_refused(path, key):
    state = torch.load(path, weights_only=True)
    torch.save({k: v for k, v in state.items() if k != key}, path)
    refused(path, f"checkpoint .* is damaged: no {key!r}")


@pytest.mark.parametrize("key", ["scorer", "optimizer", "order_generator", "sampling_generator"])
def test_a_checkpoint_with_a_wrong_part_is_refused(path, key):
    torch.save({**torch.load(path, weights_only=True), key: {"odd": torch.ones(3)}}, path)
    with pytest.raises(ValueError, match=r"checkpoint .* is damaged"):
        fit(linear(), synthetic(n_queries=5), quick(epochs=2), progress=False, checkpoint=path)


def test_a_full_disk_is_said_with_the_name_of_the_file(tmp_path, monkeypatch):
    def full(*names):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*run\.ckpt'"):
        fit(
            linear(),
            synthetic(n_queries=5),
            quick(epochs=1),
            progress=False,
            checkpoint=tmp_path / "run.ckpt",
        )
