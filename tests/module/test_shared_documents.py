"""Intervals of queries that share documents: by explicit matrices, by simulation, at the edges."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fairpg_lite as fl
from fairpg_lite import RankingDataset, evaluate
from fairpg_lite.cli import main
from fairpg_lite.resampling import Membership, bootstrap_interval


def membership_of(ids):
    """The membership of a table of ids ``(Q, n)``."""
    count, n = ids.shape
    return Membership(torch.arange(count).repeat_interleave(n), ids.reshape(-1), count)


def widening_by_matrices(values, ids):
    """The definition with full matrices: the two variances solve two linear equations."""
    count = len(values)
    items = sorted(set(ids.flatten().tolist()))
    z = np.array([[row.tolist().count(item) for item in items] for row in ids], float)
    h = np.eye(count) - np.ones((count, count)) / count
    k = z @ z.T
    y = values.numpy()
    seen = [y @ h @ y, y @ h @ k @ h @ y]
    expected = [
        [np.trace(h @ k), np.trace(h)],
        [np.trace(h @ k @ h @ k), np.trace(h @ k @ h)],
    ]
    of_document, of_query = np.linalg.solve(expected, seen)
    if of_document <= 0:
        return 1.0
    if of_query < 0:
        of_document, of_query = seen[0] / expected[0][0], 0.0
    variance = (of_document * k.sum() + of_query * count) / count**2
    return max(1.0, math.sqrt(variance / (seen[0] / count**2)))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(4, 90),
    n=st.integers(1, 6),
    n_items=st.integers(3, 60),
)
def test_the_widening_is_that_of_full_matrices(seed, count, n, n_items):
    """Also where a list holds a document twice, and beyond the queries counted at once."""
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, n_items, (count, n), generator=g)
    effects = torch.randn(n_items, generator=g).double()
    values = effects[ids].sum(-1) + torch.randn(count, generator=g).double()
    membership = membership_of(ids)
    if not membership.is_shared:
        assert membership.widening(values) == 1.0
        return
    try:
        found = membership.widening(values)
    except ValueError:  # refused: all overlaps are alike but for a query with itself
        z = membership.occurrences.to_dense()
        h = torch.eye(count).double() - 1 / count
        k = h @ z @ z.T @ h
        alike = k.diagonal().mean() * count / (count - 1) * h
        assert torch.allclose(k, alike, atol=1e-6)
        return
    assert found == pytest.approx(widening_by_matrices(values, ids))


def test_intervals_cover_where_persons_stand_in_many_lists():
    """German Credit's structure: 100 lists of ten, drawn from 200 persons, so each in about five.

    What a new study would draw again is persons and lists. An interval over queries covers the
    mean NDCG far less often than it says, and one over documents about as often.
    """
    g = torch.Generator().manual_seed(0)
    persons, lists, n, studies = 200, 100, 10, 400
    relevance = (torch.rand(studies, persons, generator=g) < 0.4).double()
    scores = relevance + torch.randn(studies, persons, generator=g).double()
    ids = torch.randint(0, persons, (studies, lists * n), generator=g)
    of_lists = relevance.gather(1, ids).view(studies, lists, n)
    order = scores.gather(1, ids).view(studies, lists, n).argsort(-1, descending=True)
    values = fl.ndcg(order, of_lists)
    means = values.mean(-1)
    truth = float(means.mean())
    covered = {"queries": 0, "documents": 0}
    for study in range(studies):
        half = 1.96 * float(values[study].std()) / math.sqrt(lists)
        widening = membership_of(ids[study].view(lists, n)).widening(values[study])
        gap = abs(float(means[study]) - truth)
        covered["queries"] += gap < half
        covered["documents"] += gap < half * widening
    assert covered["queries"] < 0.75 * studies
    assert 0.91 * studies < covered["documents"] < 0.98 * studies


def shared_dataset(ids, seed=0):
    """Queries of items with features, relevance and a group of their own."""
    g = torch.Generator().manual_seed(seed)
    items = int(ids.max()) + 1
    features = torch.randn(items, 2, generator=g, dtype=torch.float64)
    relevance = torch.randint(0, 3, (items,), generator=g).double()
    rows = ids.reshape(-1)
    return RankingDataset(
        features[rows],
        relevance[rows],
        torch.arange(len(ids) + 1) * ids.shape[1],
        groups=(rows % 2),
        document_ids=rows,
    )


@pytest.fixture(scope="module")
def pair():
    """Two evaluations of thirty queries that share twenty documents; some have no answer."""
    ids = torch.randint(0, 20, (30, 4), generator=torch.Generator().manual_seed(5))
    data = shared_dataset(ids)
    return ids, [
        evaluate(data.features[:, column], data, ("ndcg", "d_group"), undefined="skip")
        for column in (0, 1)
    ]


def test_an_interval_over_documents_is_the_widened_one(pair):
    ids, (first, second) = pair
    assert first.has_shared_documents
    for measure in ("ndcg", "d_group"):
        values = first.per_query[measure]
        kept = ~values.isnan()
        widening = widening_by_matrices(values[kept], ids[kept])
        low, high = bootstrap_interval(values[kept])
        mean = float(values[kept].mean())
        wanted = (
            max(mean - widening * (mean - low), float(values[kept].min())),
            min(mean + widening * (high - mean), float(values[kept].max())),
        )
        assert first.interval(measure, over="documents") == pytest.approx(wanted)
        assert first.interval(measure) == (low, high)
    differences = first.per_query["ndcg"] - second.per_query["ndcg"]
    kept = ~differences.isnan()
    widening = widening_by_matrices(differences[kept], ids[kept])
    found = first.compare(second, "ndcg", over="documents")
    plain = first.compare(second, "ndcg")
    assert found.mean == plain.mean
    assert found.mean - found.low == pytest.approx(widening * (plain.mean - plain.low))
    error = widening * float(differences[kept].std(correction=0)) / math.sqrt(int(kept.sum()))
    assert found.p_value == pytest.approx(math.erfc(abs(found.mean) / error / math.sqrt(2)))
    assert first.compare(first, "ndcg", over="documents")[:4] == (0.0, 0.0, 0.0, 1.0)


def test_documents_of_one_query_each_change_nothing():
    data = shared_dataset(torch.arange(40).view(10, 4))
    result = evaluate(data.features[:, 0], data)
    assert not result.has_shared_documents
    assert result.interval("ndcg", over="documents") == result.interval("ndcg")


def test_what_has_no_interval_over_documents_is_said():
    data = shared_dataset(torch.arange(4).repeat(10, 1))
    result = evaluate(data.features[:, 0], data)
    with pytest.raises(ValueError, match="cannot be told from"):
        result.interval("ndcg", over="documents")
    with pytest.raises(ValueError, match="over is 'persons'"):
        result.interval("ndcg", over="persons")
    without = data.replace(document_ids=None)
    with pytest.raises(ValueError, match="no document_ids"):
        evaluate(data.features[:, 0], without).interval("ndcg", over="documents")
    pooled = evaluate(data.features[:, 0], data, pooled="item")
    with pytest.raises(ValueError, match="d_group is pooled"):
        pooled.interval("d_group", over="documents")


def test_the_command_knows_documents_by_their_names(tmp_path, monkeypatch, capsys):
    """Names in comments; the table without the option says that documents are shared."""
    monkeypatch.chdir(tmp_path)
    ids = torch.randint(0, 12, (20, 4), generator=torch.Generator().manual_seed(1))
    data = shared_dataset(ids)
    names = [f"person-{item}" for item in ids.reshape(-1).tolist()]
    fl.save_letor(data.replace(groups=None, documents=names), "named.txt")
    fl.save_letor(data.replace(groups=None), "nameless.txt")
    fit = ["fit", "named.txt", "--out", "m", "-q", "--method", "exact", "--epochs", "2"]
    assert main(fit) == 0
    capsys.readouterr()

    def printed(*words):
        assert main(["evaluate", "m", *words, "--measures", "ndcg"]) == 0
        out = capsys.readouterr().out
        row = next(line for line in out.splitlines() if line.startswith("NDCG"))
        low, high = re.search(r"(\d\.\d{4}) to (\d\.\d{4})", row).groups()
        return (float(low), float(high)), out.splitlines()[-1]

    read = fl.load_letor("named.txt").replace(document_ids=ids.reshape(-1))
    wanted = evaluate(fl.load_model("m").scorer, read, ("ndcg",))
    over_queries, warned = printed("named.txt")
    over_documents, _ = printed("named.txt", "--interval", "documents")
    assert over_queries == pytest.approx(wanted.interval("ndcg"), abs=6e-5)
    assert over_documents == pytest.approx(wanted.interval("ndcg", over="documents"), abs=6e-5)
    assert "--interval documents" in warned
    assert "--interval documents" not in printed("nameless.txt")[1]
    assert printed("nameless.txt", "--interval", "documents")[0] == over_queries
