"""The Yahoo-shaped stand-in against the published figures, its signal, and its memory."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from experiments import stand_in
from experiments.stand_in import GRID, World, yahoo_like

QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]


@pytest.fixture(scope="module", params=[0, 7])
def sample(request):
    return yahoo_like(1500, seed=request.param)


def test_shape_and_lengths(sample):
    ds = sample
    lengths = ds.lengths.numpy()
    assert ds.n_features == 699
    assert ds.features.dtype == torch.float32
    assert int((ds.features != 0).any(0).sum()) == 519
    # Published mean 23.7; four standard errors (the lengths' deviation is about 15).
    assert abs(lengths.mean() - 23.7) < 4 * 15 / 1500**0.5
    assert lengths.min() == 1
    assert 80 < lengths.max() <= 139


def test_values_and_density(sample):
    ds = sample
    x = ds.features.numpy()
    values = x[x != 0]
    assert values.min() > 0
    assert values.max() <= 1
    assert abs(values.mean() - 0.65) < 0.01
    np.testing.assert_allclose(
        np.quantile(values, QUANTILES), [0.17, 0.48, 0.70, 0.86, 0.97], atol=0.01
    )
    per_document = (x != 0).sum(1).mean()
    assert abs(per_document - 223) < 0.03 * 223
    density = (x != 0).mean(0)
    np.testing.assert_allclose(
        np.quantile(density[density > 0], QUANTILES), [0.03, 0.15, 0.36, 0.66, 0.96], atol=0.02
    )


def test_grades(sample):
    ds = sample
    shares = ds.relevance.long().bincount(minlength=5).double() / ds.n_documents
    published = torch.tensor([0.261, 0.358, 0.286, 0.077, 0.019], dtype=torch.float64)
    assert (shares - published).abs().max() < 0.015
    assert abs(float(shares[4]) - 0.019) < 0.005


def test_correlations_with_the_grade(sample):
    ds = sample
    grade = rankdata(ds.relevance.numpy())
    columns = ds.features.numpy()[:, (ds.features != 0).any(0).numpy()].T
    rho = np.array([np.corrcoef(rankdata(column), grade)[0, 1] for column in columns])
    assert abs((np.abs(rho) > 0.2).mean() - 1 / 3) < 0.06
    assert abs(rho.min() - -0.33) < 0.06
    assert abs(rho.max() - 0.44) < 0.06


def signal_of(ds, seed=0):
    """The noise-free score (N,), worked out from the recorded features alone."""
    world = World(seed)
    latent = np.empty((ds.n_documents, len(world.causes)))
    for k, cause in enumerate(world.causes):
        recorded = ds.features[:, world.columns[cause]].numpy()
        # The lowest latent value that is recorded so: all that a reader of the file can know.
        latent[:, k] = GRID[np.searchsorted(world.table[cause], recorded)]
    return torch.from_numpy(world.score(latent))


def test_noise_is_as_told(monkeypatch):
    noisy = yahoo_like(400)
    monkeypatch.setattr(stand_in, "NOISE", 0.0)
    clean = yahoo_like(400)
    assert torch.equal(noisy.features, clean.features)
    signal = signal_of(clean)
    # The score that a reader of the features can work out is the one that made the grades:
    # without noise they follow it; with noise they cannot.
    order = signal.argsort()
    assert (clean.relevance[order].diff() >= 0).all()
    assert (noisy.relevance[order].diff() < 0).any()
    assert abs(float(signal.mean())) < 0.15
    assert abs(float(signal.std()) - 1) < 0.1
    monkeypatch.setattr(stand_in, "NOISE", 1.0)
    pure = yahoo_like(400)
    assert abs(float(torch.corrcoef(torch.stack([pure.relevance.double(), signal]))[0, 1])) < 0.05


def ndcg_at_10(scores, dataset):
    """Mean over the queries with a relevant document; written out, independent of the package."""
    values = []
    for k, query in enumerate(dataset):
        start = int(dataset.offsets[k])
        gain = 2.0 ** query.relevance.numpy().astype(float) - 1
        if gain.sum():
            discount = 1 / np.log2(np.arange(len(gain)) + 2)
            discount[10:] = 0
            order = np.argsort(-scores[start : start + len(gain)], kind="stable")
            values.append(gain[order] @ discount / (np.sort(gain)[::-1] @ discount))
    return float(np.mean(values)), float(np.std(values) / len(values) ** 0.5)


@pytest.mark.slow
def test_linear_scorers_and_trees_differ_and_both_learn():
    from lightgbm import LGBMRegressor
    from sklearn.linear_model import Ridge

    train = yahoo_like(500)
    test = yahoo_like(400, part="test")
    x, y = train.features.numpy(), train.relevance.numpy()
    trees = LGBMRegressor(
        n_estimators=100, learning_rate=0.1, min_child_samples=50, n_jobs=1, verbose=-1
    )
    scores = {
        "random": np.random.default_rng(0).random(test.n_documents),
        "linear": Ridge(alpha=300).fit(x, y).predict(test.features.numpy()),
        "trees": trees.fit(x, y).booster_.predict(test.features.numpy()),
        "best": signal_of(test).numpy(),
    }
    found = {name: ndcg_at_10(score, test) for name, score in scores.items()}
    # Each step is worth more than three standard errors of one of them.
    for worse, better in (("random", "linear"), ("linear", "trees"), ("trees", "best")):
        (a, _), (b, error) = found[worse], found[better]
        assert b > a + (3 * error if better != "best" else 0), found
    assert found["best"][0] < 0.95  # noise: nobody ranks perfectly


def test_fewer_queries_are_the_first_of_more_and_parts_differ():
    long, short = yahoo_like(600, seed=5), yahoo_like(300, seed=5)
    assert torch.equal(long[:300].features, short.features)
    assert torch.equal(long[:300].relevance, short.relevance)
    parts = [yahoo_like(30, seed=5, part=part) for part in ("train", "valid", "test")]
    assert not torch.equal(parts[0].lengths, parts[1].lengths)
    assert not torch.equal(parts[1].lengths, parts[2].lengths)
    active = [(part.features != 0).any(0) for part in (long, yahoo_like(600, 5, part="test"))]
    assert torch.equal(*active)  # the same world: the same 519 ids
    other = (yahoo_like(600, seed=6).features != 0).any(0)
    assert not torch.equal(active[0], other)


def test_chunks_and_parts_are_independent_draws():
    ds, test = yahoo_like(300), yahoo_like(256, part="test")
    start = int(ds.offsets[256])  # where the second chunk of queries begins
    first, second, other = ds.features[:900], ds.features[start:][:900], test.features[:900]
    mean = ds.features.mean(0)
    for a, b in ((first, second), (first, other)):
        # Documents at the same place would be alike if two streams were one.
        pair = torch.stack([(a - mean).flatten(), (b - mean).flatten()]).double()
        assert abs(float(torch.corrcoef(pair)[0, 1])) < 0.05


MEASURE = """
from benchmarks._timing import peak_memory as peak
from experiments.stand_in import yahoo_like
yahoo_like(2)
before = peak()
ds = yahoo_like(4_986)
made = peak()
for batch in ds.batches(64, shuffle=True):
    pass
print(len(ds), ds.n_documents, ds.features.nbytes, made - before, peak() - before)
"""


@pytest.mark.slow
def test_it_needs_little_more_than_its_array():
    """A quarter of the full size, which benchmarks/memory.py makes."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    queries, documents, array, made, used = map(int, done.stdout.split())
    assert queries == 19_944 / 4
    assert abs(documents - 473_134 / 4) < 0.02 * 473_134 / 4
    assert array == documents * 699 * 4
    assert 0.9 * array < made <= 1.2 * array  # less would mean that we measured wrongly
    assert used <= 1.2 * array  # an epoch of padded batches included
