"""Models come back bit for bit, without pickle; what is foreign, damaged or newer is refused."""

import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import fairpg_lite as fl
from fairpg_lite import (
    LinearScorer,
    MLPScorer,
    RankingDataset,
    TrainConfig,
    fit,
    load_model,
    save_model,
    synthetic,
)
from fairpg_lite.models import Preparation


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def dataset(features, **rest):
    features = torch.as_tensor(features)
    n = len(features)
    return RankingDataset(features, torch.ones(n), [0, n], info={"name": "table.txt"}, **rest)


class Custom(nn.Module):
    def __init__(self, n_features, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_features, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, features):
        return self.layers(features).squeeze(-1)


# --- Round trips -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "make",
    [
        lambda **k: LinearScorer(4, **k),
        lambda **k: LinearScorer(4, bias=True, **k),
        lambda **k: MLPScorer(4, 7, **k),
    ],
    ids=["linear", "with bias", "neural"],
)
def test_a_model_comes_back_bit_for_bit(tmp_path, make, dtype):
    scorer = make(generator=seeded(), dtype=dtype)
    save_model(scorer, tmp_path / "new" / "model")
    again = load_model(tmp_path / "new" / "model").scorer
    features = torch.randn(3, 5, 4, generator=seeded(1), dtype=dtype)
    assert type(again) is type(scorer)
    assert again(features).dtype == dtype
    assert torch.equal(again(features), scorer(features))
    assert os.listdir(tmp_path / "new" / "model") == ["model.json"]


def test_the_file_speaks_for_itself(tmp_path):
    """Readable without this package: JSON, a SHA-256 of its weights, plain decimal numbers."""
    data = synthetic(n_queries=5)
    config = TrainConfig(lam=2.0, method="exact", lr=0.1, epochs=3)
    scorer = LinearScorer(2, generator=seeded())
    history = fit(scorer, data, config, data, progress=False)
    save_model(scorer, tmp_path, config=config, history=history, notes={"asked by": "a regulator"})
    meta = json.loads((tmp_path / "model.json").read_text())
    assert meta["format"] == "fairpg_lite.model 1"
    assert meta["fairpg_lite"] == fl.__version__
    assert meta["kind"] == "linear"
    assert meta["training"]["lam"] == 2.0
    assert meta["history"]["epochs"] == 3
    assert meta["history"]["disparity"] == history.disparity[-1]
    assert meta["notes"] == {"asked by": "a regulator"}
    assert meta["dtype"] == "float32"
    assert meta["weights"] == {"linear.weight": scorer.linear.weight.tolist()}
    content = json.dumps(meta["weights"], sort_keys=True).encode()
    assert meta["sha256"] == hashlib.sha256(content).hexdigest()


def test_equal_runs_give_equal_files(tmp_path):
    for name in ("a", "b"):
        scorer, config = LinearScorer(2, generator=seeded()), TrainConfig(epochs=1)
        history = fit(scorer, synthetic(n_queries=3), config, progress=False)
        save_model(scorer, tmp_path / name, config=config, history=history)
    assert (tmp_path / "a/model.json").read_bytes() == (tmp_path / "b/model.json").read_bytes()


# --- Scorers of one's own ----------------------------------------------------------------------


def test_unknown_classes_are_refused_with_a_way_out(tmp_path):
    class Steeper(LinearScorer):
        def forward(self, features):
            return 2.0 * super().forward(features)

    for scorer in (Custom(3, 4), Steeper(3)):
        with pytest.raises(TypeError, match=r"neither LinearScorer.*state_dict"):
            save_model(scorer, tmp_path / "model")
    assert not (tmp_path / "model").exists()


# --- Damage ------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    save_model(MLPScorer(3, 4, generator=seeded()), tmp_path / "model")
    return tmp_path / "model"


def test_a_changed_digit_is_noticed(saved):
    content = (saved / "model.json").read_text()
    place = content.index("[[", content.index('"weights": ')) + 8
    digit = str((int(content[place]) + 1) % 10)
    (saved / "model.json").write_text(content[:place] + digit + content[place + 1 :])
    with pytest.raises(ValueError, match=r"damaged: the SHA-256 of its weights"):
        load_model(saved)


def test_every_truncation_is_noticed(saved):
    content = (saved / "model.json").read_bytes()
    for length in range(0, len(content) - 1, 7):
        (saved / "model.json").write_bytes(content[:length])
        with pytest.raises(ValueError, match="no model for this"):
            load_model(saved)


def rewrite(folder, change=None, **meta_changes):
    """Other weights, with the checksum that belongs to them: only their content is odd."""
    meta = json.loads((folder / "model.json").read_text())
    if change is not None:
        change(meta["weights"])
    content = json.dumps(meta["weights"], sort_keys=True).encode()
    meta = {**meta, "sha256": hashlib.sha256(content).hexdigest(), **meta_changes}
    (folder / "model.json").write_text(json.dumps(meta))


BIAS, WEIGHT = "hidden.bias", "hidden.weight"
CHANGES = {
    "NaN": (lambda w: w.update({BIAS: [float("nan"), 1, 2, 3]}), "not finite"),
    "infinity": (lambda w: w.update({BIAS: [0, 1, 2, float("inf")]}), "not finite"),
    "float32": (lambda w: w.update({BIAS: [0, 1, 2, 1e300]}), r"not finite torch\.float32"),
    "too big": (lambda w: w.update({BIAS: [10**400, 1, 2, 3]}), "damaged"),
    "words": (lambda w: w.update({BIAS: ["a", "b", "c", "d"]}), "damaged"),
    "objects": (lambda w: w.update({BIAS: [{}, 1]}), "damaged"),
    "count": (lambda w: w.update({BIAS: [0, 1, 2]}), "size mismatch"),
    "ragged": (lambda w: w.update({WEIGHT: [[1.0, 2.0, 3.0], [1.0]]}), "damaged"),
    "shape": (lambda w: w.update({WEIGHT: [[1.0, 2.0, 3.0, 4.0]] * 3}), "size mismatch"),
    "flat": (lambda w: w.update({WEIGHT: [1.0, 2.0]}), "damaged"),
    "missing": (lambda w: w.pop(BIAS), "Missing key"),
    "extra": (lambda w: w.update({"other": w[BIAS]}), "Unexpected key"),
    "no weights": (lambda w: w.pop(WEIGHT), "damaged: no 'hidden.weight'"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_wrong_arrays_are_refused_even_with_their_checksum(saved, name):
    change, message = CHANGES[name]
    rewrite(saved, change)
    with pytest.raises(ValueError, match=message):
        load_model(saved)


META = {
    "newer": ({"format": "fairpg_lite.model 2", "fairpg_lite": "9.0"}, r"2'.*fairpg_lite 9\.0"),
    "older": ({"format": "fairpg_lite.model", "version": 3}, r"no model for this.*train anew"),
    "version -1": ({"format": "fairpg_lite.model -1"}, "no model for this"),
    "version true": ({"format": True}, "no model for this"),
    "foreign": ({"format": "onnx"}, "no model for this"),
    "no version": ({"format": None}, "no model for this"),
    "kind": ({"kind": "forest"}, "kind 'forest'"),
    "kinds": ({"kind": ["linear"]}, r"kind \['linear'\]"),
    "dtype": ({"dtype": "int8"}, "damaged: no 'int8'"),
    "prepare": ({"prepare": {}}, "damaged: no 'group_values'"),
    "columns": ({"prepare": asdict(Preparation(9))}, "another number of features"),
    "scale": ({"prepare": {**asdict(Preparation(3)), "normalize": "standard"}}, "'standard'"),
}


@pytest.mark.parametrize("name", META)
def test_a_wrong_model_json_is_refused(saved, name):
    change, message = META[name]
    rewrite(saved, **change)
    with pytest.raises(ValueError, match=message):
        load_model(saved)


def test_what_is_no_model_at_all_is_said(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="no file"):
        load_model(saved / "model.json")
    for text in ("{", "[1]", "", "[" * 100_000, '{"format": "fairpg_lite.model"}', "9" * 5000):
        (saved / "model.json").write_text(text)
        with pytest.raises(ValueError, match="no model for this"):
            load_model(saved)


def test_a_model_that_cannot_rank_is_not_saved(tmp_path):
    scorer = LinearScorer(3)
    with torch.no_grad():
        scorer.linear.weight[0, 1] = float("nan")
    with pytest.raises(ValueError, match="not finite"):
        save_model(scorer, tmp_path / "model")
    with pytest.raises(ValueError, match="another number of features"):
        save_model(LinearScorer(3), tmp_path / "model", prepare=Preparation(4))
    assert not (tmp_path / "model").exists()


# --- All or nothing ----------------------------------------------------------------------------


def test_replaced_only_when_asked_and_only_our_own(saved, tmp_path):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save_model(LinearScorer(3), saved)
    save_model(LinearScorer(3), saved, overwrite=True)
    assert isinstance(load_model(saved).scorer, LinearScorer)
    (tmp_path / "model.json").write_text('{"format": "someone else\'s"}')
    with pytest.raises(ValueError, match="not ours"):
        save_model(LinearScorer(3), tmp_path, overwrite=True)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("kill", ["fsync", "replace", "never"])
def test_a_killed_save_leaves_the_old_model_or_the_new_one(saved, monkeypatch, kill):
    """Before all is on the disk, before the rename, or not at all."""
    old, new = load_model(saved).scorer, LinearScorer(3, generator=seeded(9))

    def killed(*args):
        raise Killed

    if kill != "never":
        monkeypatch.setattr(os, kill, killed)
    monkeypatch.setattr(Path, "unlink", lambda *args, **kwargs: None)  # the dead clear nothing up
    with pytest.raises(Killed) if kill != "never" else nullcontext():
        save_model(new, saved, overwrite=True)
    monkeypatch.undo()
    expected, found = (new if kill == "never" else old), load_model(saved).scorer
    features = torch.randn(4, 3, generator=seeded())
    assert torch.equal(found(features), expected(features))


def test_many_write_and_one_reads(saved):
    """Two save into one directory, over and over; a reader sees whole models only."""

    def save(size):
        for _ in range(40):
            save_model(LinearScorer(size), saved, overwrite=True)

    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(save, size) for size in (300, 301)]
        while not all(writer.done() for writer in writers):
            load_model(saved)
        for writer in writers:
            writer.result()
    assert os.listdir(saved) == ["model.json"]


def test_what_a_killed_save_left_is_cleared_an_hour_later(saved):
    """A process that is gone wrote half a file beside the model; one that writes is let alone."""
    script = (
        "import os, sys; from fairpg_lite._files import whole_file\n"
        "with whole_file(sys.argv[1]) as part:\n"
        "    part.write_text('half'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, str(saved / "model.json")], check=False)
    (half,) = saved.glob(".model.json.*.part")
    save_model(LinearScorer(3), saved, overwrite=True)
    assert half.exists()
    long_ago = time.time() - 3601
    os.utime(half, (long_ago, long_ago))
    save_model(LinearScorer(3), saved, overwrite=True)
    assert os.listdir(saved) == ["model.json"]


# --- Preparation -------------------------------------------------------------------------------


def test_groups_are_read_off_before_the_features_are_scaled(tmp_path):
    train = dataset(torch.randn(50, 3, generator=seeded(), dtype=torch.float64))
    train.features[:, 1] = torch.arange(50) % 3
    prepare = Preparation.learn(train, normalize="minmax", group_feature=2)
    save_model(LinearScorer(3), tmp_path, prepare=prepare)
    again = load_model(tmp_path).prepare
    assert (again.group_values, again.n_features) == ((0.0, 1.0, 2.0), 3)
    test = dataset(3.0 + torch.randn(20, 3, generator=seeded(1), dtype=torch.float64))
    test.features[:, 1] = torch.arange(20) % 3
    found = again(test)
    assert found.groups.tolist() == [i % 3 for i in range(20)]
    assert torch.equal(found.features, test.normalize().features)


@given(
    values=st.lists(st.floats(-9, 9, width=32), min_size=2, max_size=8),
    threshold=st.floats(-9, 9, width=32),
)
def test_a_threshold_splits_in_two(values, threshold):
    data = dataset(torch.tensor(values, dtype=torch.float32).unsqueeze(-1))
    prepare = Preparation.learn(data, group_feature=1, group_threshold=threshold)
    assert prepare(data).groups.tolist() == [int(value > threshold) for value in values]


def test_a_threshold_means_what_the_file_says():
    """0.1 is not above 0.1, although float32's 0.1 is above float64's."""
    data = dataset(torch.tensor([[0.1], [0.2]], dtype=torch.float32))
    assert Preparation.learn(data, group_feature=1, group_threshold=0.1)(data).groups.tolist() == [
        0,
        1,
    ]


def test_minmax_is_per_query_and_own_groups_are_kept():
    data = dataset(torch.rand(6, 2, generator=seeded()), groups=torch.tensor([0, 1] * 3))
    prepare = Preparation.learn(data, normalize="minmax")
    assert torch.equal(prepare(data).features, data.normalize().features)
    assert prepare(data).groups.tolist() == [0, 1] * 3
    assert prepare.groups_given


def test_preparation_refuses_what_does_not_fit():
    data = dataset(torch.arange(120.0).view(60, 2))
    with pytest.raises(ValueError, match=r"feature 1 takes 60 values.*give a group_threshold"):
        Preparation.learn(data, group_feature=1)
    for feature in (0, 3):
        with pytest.raises(ValueError, match=f"group feature is {feature}, there are 1 to 2"):
            Preparation.learn(data, group_feature=feature, group_threshold=0.0)
    with pytest.raises(ValueError, match="'zscore'"):
        Preparation.learn(data, normalize="zscore")
    with pytest.raises(ValueError, match="needs group_feature"):
        Preparation.learn(data, group_threshold=1.0)
    two = Preparation.learn(dataset([[0.0, 5.0], [1.0, 5.0]]), group_feature=1)
    with pytest.raises(ValueError, match=r"table\.txt: feature 1 is 3 somewhere;.*were 0, 1"):
        two(dataset([[1.0, 5.0], [3.0, 5.0]]))
    with pytest.raises(ValueError, match=r"table\.txt has 3 features, the model was trained on 2"):
        two(dataset(torch.ones(2, 3)))
