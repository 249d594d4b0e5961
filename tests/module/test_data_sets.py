"""The synthetic set, German Credit and the MSLR sample against their published figures."""

import hashlib
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest
import torch
from scipy.stats import binom

from fairpg_lite.data import german_credit, mslr, mslr_sample, resources, synthetic
from fairpg_lite.data.german import encode, german_rows

# --- synthetic (Section 4.2) ---------------------------------------------------------------------


def test_synthetic_has_the_shape_of_the_paper():
    ds = synthetic()
    assert (len(ds), ds.n_documents, ds.n_features) == (100, 1000, 2)
    assert (ds.lengths == 10).all()
    assert ds.features.min() >= 0
    assert ds.features.max() < 3


@pytest.mark.parametrize("clip", [5.0, 4.0])
def test_synthetic_relevance_is_the_clipped_sum_before_corruption(clip):
    ds = synthetic(n_queries=2000, clip=clip, dtype=torch.float64)
    majority, minority = ds.groups == 0, ds.groups == 1
    total = ds.features[majority].sum(1)
    torch.testing.assert_close(ds.relevance[majority], total.clamp(max=clip), rtol=0, atol=0)
    assert (ds.features[minority, 1] == 0).all()
    # For G1 relevance must still hold the hidden x2, uniform on (0, 3) where nothing is clipped.
    hidden = (ds.relevance - ds.features[:, 0])[minority]
    unclipped = ds.features[minority, 0] < clip - 3
    assert hidden[unclipped].min() >= 0
    assert hidden[unclipped].max() < 3
    n = int(unclipped.sum())
    # Mean of n uniforms on (0, 3): five standard deviations of sqrt(9 / 12 / n).
    assert abs(float(hidden[unclipped].mean()) - 1.5) < 5 * (0.75 / n) ** 0.5
    assert ds.relevance.max() == clip


@pytest.mark.parametrize("minority", [0.0, 0.2, 0.5, 1.0])
def test_synthetic_minority_is_an_independent_draw_for_each_document(minority):
    ds = synthetic(n_queries=1000, minority=minority)
    low, high = binom.interval(1 - 1e-7, ds.n_documents, minority)
    assert low <= int(ds.groups.sum()) <= high
    counts = ds.groups.view(1000, 10).sum(1).double()
    # Binomial within queries, not a fixed number: variance 10 p (1 - p); 6 of its deviations.
    expected = 10 * minority * (1 - minority)
    assert abs(float(counts.var()) - expected) <= 6 * expected * (2 / 999) ** 0.5


def test_synthetic_draws_depend_on_the_seed_alone():
    a, b = synthetic(seed=3, dtype=torch.float64), synthetic(seed=3, clip=4.0, dtype=torch.float64)
    assert torch.equal(a.features, b.features)
    assert torch.equal(a.relevance.clamp(max=4.0), b.relevance)
    assert not torch.equal(a.features, synthetic(seed=4, dtype=torch.float64).features)
    more = synthetic(seed=3, minority=0.9, dtype=torch.float64)
    assert torch.equal(a.features[:, 0], more.features[:, 0])
    assert ((more.groups - a.groups) >= 0).all()
    state = torch.random.get_rng_state()
    synthetic()
    assert torch.equal(state, torch.random.get_rng_state())  # the global stream is left alone


def test_default_dtype_is_torch_default():
    assert synthetic().features.dtype == torch.get_default_dtype()
    assert german_credit(dtype=torch.float64)[0].features.dtype == torch.float64


# --- the packaged files --------------------------------------------------------------------------


def test_checksums_cover_every_data_file():
    directory = files("fairpg_lite") / "_data"
    sums = dict(
        reversed(line.split()) for line in (directory / "SHA256SUMS").read_text().splitlines()
    )
    others = {"README.md", "SHA256SUMS", ".gitattributes", "figures.mplstyle"}
    names = {p.name for p in directory.iterdir()} - others
    assert set(sums) == names
    for name, digest in sums.items():
        assert hashlib.sha256((directory / name).read_bytes()).hexdigest() == digest
        assert name in (directory / "README.md").read_text()
    assert sums["german.data"] == "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
    assert (directory / "README.md").read_text().count("CC BY 4.0") == 2


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    data = tmp_path / "_data"
    data.mkdir()
    original = files("fairpg_lite") / "_data"
    (data / "SHA256SUMS").write_bytes((original / "SHA256SUMS").read_bytes())
    (data / "german.data").write_bytes((original / "german.data").read_bytes()[:-1])
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path)
    with pytest.raises(ValueError, match=r"german\.data has sha256 .* reinstall"):
        resources.read_resource.__wrapped__("german.data")


# --- German Credit -------------------------------------------------------------------------------


def test_german_file_has_the_published_figures():
    rows = german_rows()
    assert len(rows) == 1000
    assert {len(row) for row in rows} == {21}
    assert Counter(row[20] for row in rows) == {"1": 700, "2": 300}
    assert Counter(row[8] for row in rows) == {"A91": 50, "A92": 310, "A93": 548, "A94": 92}


def test_german_attributes_become_the_right_features():
    rows = german_rows()
    x, names = encode(rows, 20, np.arange(1000))
    assert x.shape == (1000, len(names)) == (1000, 61)
    columns = list(dict.fromkeys(name.partition("=")[0] for name in names))
    assert len(columns) == 20
    columns_of = {k: np.array([int(r[k]) for r in rows]) for k in range(20) if rows[0][k].isdigit()}
    # Decoded by name, every cell must give back the file's code.
    for place, column in enumerate(columns):
        own = [j for j, name in enumerate(names) if name.partition("=")[0] == column]
        for i, row in enumerate(rows):
            if len(own) == 1:
                numbers = columns_of[place]
                assert np.isclose(x[i, own[0]] * numbers.std() + numbers.mean(), int(row[place]))
            else:
                assert x[i, own].sum() == 1
                assert x[i, names.index(f"{column}={row[place]}")] == 1
    # In the documentation's order, ten purposes with A410 as the last.
    assert [name for name in names if name.startswith("purpose")] == [
        f"purpose=A4{k}" for k in (0, 1, 2, 3, 4, 5, 6, 8, 9, 10)
    ]


def test_nine_attributes_are_those_of_the_authors():
    rows = german_rows()
    x, names = encode(rows, 9, np.arange(1000))
    assert len(names) == 29
    # The row that the authors' preprocessing notebook prints (their row 10, standardised by all).
    np.testing.assert_allclose(x[10, :3], [-0.92754658, -0.70047155, -0.73866754], atol=5e-9)
    assert np.flatnonzero(x[10, 3:]).tolist() == [0, 4, 8, 10, 16, 19]
    counts = dict(zip(names, x.sum(0).round().astype(int), strict=True))
    assert counts["sex=female"] == 310
    assert [counts[f"job={k}"] for k in range(4)] == [22, 200, 630, 148]
    # The re-release's purposes, as its users publish them.
    purposes = {name.partition("=")[2]: n for name, n in counts.items() if "purpose" in name}
    assert purposes == {
        "business": 97,
        "car": 337,
        "domestic appliances": 12,
        "education": 59,
        "furniture/equipment": 181,
        "radio/TV": 280,
        "repairs": 22,
        "vacation/others": 12,
    }


@pytest.mark.parametrize("attributes", [20, 9])
@pytest.mark.parametrize("split", ["random", "rows"])
@pytest.mark.parametrize("ratio", ["exact", "weights"])
def test_german_queries(attributes, split, ratio):
    rows = german_rows()
    train, test = german_credit(
        seed=2, attributes=attributes, split=split, ratio=ratio, dtype=torch.float64
    )
    assert (len(train), len(test)) == (500, 100)
    assert (train.lengths == 10).all()
    assert train.n_features == test.n_features == (61 if attributes == 20 else 29)
    persons = [set(part.document_ids.tolist()) for part in (train, test)]
    assert not persons[0] & persons[1]
    if split == "rows":
        assert max(persons[0]) < 800 <= min(persons[1])
    for part in (train, test):
        ids = part.document_ids.tolist()
        assert part.relevance.tolist() == [float(rows[i][20] == "1") for i in ids]
        assert part.groups.tolist() == [int(rows[i][8] == "A92") for i in ids]
        if ratio == "exact":
            assert {float(q.relevance.sum()) for q in part} == {2.0}
            by_query = part.document_ids.view(-1, 10).tolist()
            assert all(len(set(query)) == 10 for query in by_query)


@pytest.mark.parametrize("attributes", [20, 9])
def test_german_features_are_standardised_by_the_training_persons(attributes):
    train, test = german_credit(
        seed=1, attributes=attributes, split="rows", n_train=4000, dtype=torch.float64
    )
    rows, names = german_rows(), train.info["feature_names"]
    columns = {"age": 12, "credit amount": 4, "duration": 1}
    for part in (train, test):
        for name, place in columns.items():
            values = np.array([float(row[place]) for row in rows])
            expected = (values - values[:800].mean()) / values[:800].std()
            found = part.features[:, names.index(name)].numpy()
            np.testing.assert_allclose(found, expected[part.document_ids], atol=1e-12)
    onehot = [j for j, name in enumerate(names) if "=" in name]
    assert set(train.features[:, onehot].unique().tolist()) == {0.0, 1.0}


def test_german_weights_give_the_share_that_the_authors_saw():
    train, _ = german_credit(ratio="weights", split="rows", n_train=20_000)
    good = sum(row[20] == "1" for row in german_rows()[:800])
    expected = 0.2 * good / (0.2 * good + 0.8 * (800 - good))
    assert 0.36 < expected < 0.39
    n = train.n_documents
    deviation = (expected * (1 - expected) / n) ** 0.5
    assert abs(float(train.relevance.mean()) - expected) < 5 * deviation


def test_german_exact_draws_are_even_and_in_random_order():
    train, _ = german_credit(n_train=5000)
    relevance = train.relevance.view(-1, 10).double()
    # Each place in the list is relevant in 1 of 5 queries: five binomial deviations.
    assert (relevance.mean(0) - 0.2).abs().max() < 5 * (0.16 / 5000) ** 0.5
    good = train.document_ids[train.relevance == 1].bincount(minlength=1000)
    drawn = good[good > 0].double()
    expected = 10_000 / len(drawn)
    assert (drawn - expected).abs().max() < 6 * expected**0.5


def test_german_groups_by_age():
    train, test = german_credit(group="age")
    ages = np.array([int(row[12]) for row in german_rows()])
    assert (ages <= 25).sum() == 190
    for part in (train, test):
        assert part.groups.tolist() == (ages[part.document_ids] <= 25).astype(int).tolist()


def test_german_seeds():
    a, b, c = german_credit(seed=0)[0], german_credit(seed=0)[0], german_credit(seed=1)[0]
    assert torch.equal(a.document_ids, b.document_ids)
    assert set(a.document_ids.tolist()) != set(c.document_ids.tolist())
    assert len(german_credit(n_docs=20, n_train=3)[0][0].relevance) == 20


# --- MSLR-WEB10K ---------------------------------------------------------------------------------


def test_mslr_has_the_published_figures():
    train, test = mslr.mslr_raw("train"), mslr.mslr_raw("test")
    for part, documents, first, last in ((train, 4955, 1, 616), (test, 4974, 13, 628)):
        assert (len(part), part.n_documents, part.n_features) == (42, documents, 136)
        assert set(part.relevance.tolist()) == {0, 1, 2, 3, 4}
        assert (int(part.query_ids[0]), int(part.query_ids[-1])) == (first, last)
        assert len(part.query_ids.unique()) == 42
        assert torch.isfinite(part.features).all()
        assert part.groups is None
    assert train.relevance.long().bincount().tolist() == [2758, 1448, 665, 54, 30]
    assert test.relevance.long().bincount().tolist() == [2826, 1440, 576, 98, 34]
    # The first line of Microsoft's training file, in part: the values are those of the text.
    known = {1: 3, 11: 156, 16: 6.931275, 17: 22.076928, 46: 0.019231, 82: 8.517343}
    assert {j: float(train.features[0, j - 1]) for j in known} == known
    assert train.relevance[0] == 2


def test_mslr_is_scaled_per_query_by_default():
    train, raw = mslr_sample()[0], mslr.mslr_raw("train")
    assert train.features.dtype == torch.float32
    for query, before in zip(train, raw, strict=True):
        low, high = query.features.aminmax(dim=0)
        constant = before.features.amin(0) == before.features.amax(0)
        assert (low == 0).all()
        assert torch.equal(high, (~constant).float())
