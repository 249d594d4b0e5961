"""An audit of shown lists: the numbers by a second way, and every kind of bad input by its name."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpg_lite import PlackettLuce, audit, evaluate, position_bias, synthetic
from fairpg_lite.auditing import ShownLists, audit_policies
from fairpg_lite.auditing.reading import read_log
from fairpg_lite.auditing.words import summary
from fairpg_lite.cli import main

# --- an audit as loops over the definitions -------------------------------------------------------


def by_hand(lists, grades, groups, bias):
    """The measures of one query from its lists of names, in plain Python."""
    documents = sorted({d for shown in lists for d in shown} | set(grades))
    merit = {d: max(0.0, grades.get(d, 0.0)) for d in documents}
    exposure = dict.fromkeys(documents, 0.0)
    for shown in lists:
        for position, d in enumerate(shown):
            exposure[d] += bias(position + 1) / len(lists)
    sums = {}
    for d in documents:
        if d in groups:
            row = sums.setdefault(groups[d], [0.0, 0.0, 0])
            row[0] += exposure[d]
            row[1] += merit[d]
            row[2] += 1
    values = {"d_ind": 0.0, "exposure": exposure}
    pairs = 0
    for i in documents:
        for j in documents:
            if merit[i] >= merit[j] > 0:
                pairs += 1
                values["d_ind"] += max(0.0, exposure[i] / merit[i] - exposure[j] / merit[j])
    values["d_ind"] = values["d_ind"] / pairs if pairs else math.nan
    (a, b) = (sums.get(name) for name in ("a", "b"))
    values["parity"] = abs(a[0] / a[2] - b[0] / b[2]) if a and b else math.nan
    gap = a[0] / a[1] - b[0] / b[1] if a and b and a[1] > 0 and b[1] > 0 else math.nan
    values["signed_gap"] = gap
    values["group_gap"] = abs(gap)
    values["d_group"] = gap
    if not math.isnan(gap):
        first, second = a[1] / a[2], b[1] / b[2]
        ahead = abs(gap) if first == second else gap if first > second else -gap
        values["d_group"] = max(0.0, ahead)
    return values


def random_log(seed, queries=5, draws=1, depth=6):
    """A table of lists, grades and groups; some documents lack a grade, a group or a place."""
    rng = np.random.default_rng(seed)
    names = [f"d{i}" for i in range(9)]
    rows = []
    grades = {}
    lists = {}
    for q in range(queries):
        judged = rng.choice(names, size=7, replace=False)
        grades[f"q{q}"] = {str(d): float(rng.integers(-1, 4)) for d in judged}
        for draw in range(draws):
            shown = [str(d) for d in rng.permutation(names)[:depth]]
            lists.setdefault(f"q{q}", []).append(shown)
            for rank, document in enumerate(shown, 1):
                rows.append({"query": f"q{q}", "document": document, "rank": rank, "draw": draw})
    groups = {name: "a" if i % 3 else "b" for i, name in enumerate(names[:-1])}
    return pd.DataFrame(rows), grades, groups, lists


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), draws=st.sampled_from([1, 2, 3]), k=st.sampled_from([None, 3]))
def test_measures_are_those_of_loops(seed, draws, k):
    frame, grades, groups, lists = random_log(seed, draws=draws)
    found = audit(frame, grades, groups, k=k)

    def bias(position):
        return 1 / math.log2(1 + position) if k is None or position <= k else 0.0

    expected = {q: by_hand(lists[q], grades[q], groups, bias) for q in lists}
    for name in ("signed_gap", "d_group", "group_gap", "parity", "d_ind"):
        answers = [values[name] for values in expected.values()]
        per_query = [found.per_query[q][name] for q in expected]
        assert per_query == pytest.approx(answers, nan_ok=True)
        defined = [value for value in answers if not math.isnan(value)]
        assert found.measures[name].queries == len(defined)
        mean = sum(defined) / len(defined) if defined else math.nan
        assert found.measures[name].value == pytest.approx(mean, nan_ok=True)


@pytest.mark.parametrize("order", ["rank", "score"])
@pytest.mark.parametrize("k", [None, 3])
def test_utilities_are_those_of_trec_eval(tmp_path, order, k):
    """Two runs: unjudged documents, judged ones that are not shown, ties, nothing relevant."""
    rng = np.random.default_rng(7)
    names = [f"d{i}" for i in range(12)]
    qrels = {f"q{q}": {d: int(rng.integers(0, 3)) for d in names[:8]} for q in range(20)}
    qrels["q3"] = dict.fromkeys(names[:8], 0)
    files = []
    means = {}
    for number in range(2):
        run = {}
        for query in qrels:
            shown = [str(d) for d in rng.permutation(names)[:6]]
            scores = [6, 5, 4, 3, 2, 1] if order == "rank" else rng.integers(0, 4, 6).tolist()
            run[query] = {d: float(s) for d, s in zip(shown, scores, strict=True)}
        files.append(tmp_path / f"run.{number}.txt")
        lines = []
        for query, row in run.items():
            for rank, (document, score) in enumerate(row.items(), 1):
                lines.append(f"{query} Q0 {document} {rank} {score} x")
        files[-1].write_text("\n".join(lines))
        cut = "" if k is None else f"_cut_{k}"
        measures = {f"ndcg{cut}", f"map{cut}", "recip_rank"}
        judge = pytrec_eval.RelevanceEvaluator(
            qrels, {m.replace("_cut_", "_cut.") for m in measures}
        )
        for values in judge.evaluate(run).values():
            for ours, theirs in (("ndcg", f"ndcg{cut}"), ("ap", f"map{cut}"), ("rr", "recip_rank")):
                means.setdefault(ours, []).append(values[theirs])
    groups = {d: "ab"[i % 2] for i, d in enumerate(names)}
    found = audit(files, qrels, groups, order=order, k=k)
    names_compared = ["ndcg", "ap"] if k else ["ndcg", "ap", "rr"]  # trec_eval has no RR at k
    for name in names_compared:
        assert found.utilities[name].value == pytest.approx(np.mean(means[name]), abs=1e-12)


def test_a_run_that_stops_early_is_not_completed():
    """The case of a production ranker that keeps 20 results: what is not shown gets nothing."""
    data = synthetic(n_queries=30, n_docs=30, seed=5, dtype=torch.float64)
    rows, grades, groups = [], {}, {}
    run = {}
    for number, query in enumerate(data):
        order = query.features.sum(-1).argsort(descending=True)[:20].tolist()
        run[f"q{number}"] = {f"d{d}": 100.0 - rank for rank, d in enumerate(order)}
        for rank, document in enumerate(order, 1):
            rows.append({"query": f"q{number}", "document": f"d{document}", "rank": rank})
        grades[f"q{number}"] = {f"d{d}": int(g) for d, g in enumerate(query.relevance.round())}
        for d, group in enumerate(query.groups.tolist()):
            groups[f"q{number}", f"d{d}"] = "ab"[group]
    found = audit(pd.DataFrame(rows), grades, groups)
    theirs = pytrec_eval.RelevanceEvaluator(grades, {"ndcg"}).evaluate(run)
    mean = np.mean([values["ndcg"] for values in theirs.values()])
    assert found.utilities["ndcg"].value == pytest.approx(mean, abs=1e-12)
    assert found.counts.not_shown == 300


@pytest.mark.parametrize("k", [2, None])
def test_ndcg_with_an_exponential_gain_is_that_of_a_loop(k):
    frame, grades, groups, lists = random_log(11)
    found = audit(frame, grades, groups, gain="exponential", k=k)
    for query, (shown,) in lists.items():
        gains = {d: 2.0 ** max(0.0, g) - 1.0 for d, g in grades[query].items()}
        best = sorted(gains.values(), reverse=True)[:k]
        ideal = sum(gain / math.log2(2 + place) for place, gain in enumerate(best))
        gained = sum(gains.get(d, 0.0) / math.log2(2 + j) for j, d in enumerate(shown[:k]))
        assert found.per_query[query]["ndcg"] == pytest.approx(gained / ideal if ideal else 0.0)


def test_the_policy_of_shown_lists():
    shown = ShownLists([[2, 0], [2]], n=4)
    bias = position_bias(4, dtype=torch.float64)
    assert torch.allclose(shown.exposure(), shown.position_probs() @ bias)
    assert shown.mode[0] == 2
    drawn = shown.sample((50,), torch.Generator().manual_seed(0))
    assert {tuple(row) for row in drawn.tolist()} == {(2, 0, 1, 3)}
    with pytest.raises(ValueError, match="document 2 twice"):
        ShownLists([[2, 2]], n=4)
    with pytest.raises(ValueError, match="there are 4"):
        ShownLists([[4]], n=4)
    with pytest.raises(ValueError, match="no list"):
        ShownLists([], n=4)


def test_ten_candidates_in_words():
    """Chapter 1: the women get 46 % less than the men, and 29 % less than their merit is due."""
    names = [f"m{i}" for i in range(5)] + [f"w{i}" for i in range(5)]
    run = pd.DataFrame({"query": 1, "document": names, "rank": range(1, 11)})
    grades = {1: {n: 0.89 if n[0] == "m" else 0.88 for n in names}}
    found = audit(run, grades, {n: "men" if n[0] == "m" else "women" for n in names})
    text = summary(found)[0]
    assert "“women” gets 46 % less attention than one of group “men”" in text
    assert "29 % less than its merit would give it" in text
    women = found.groups[1]
    assert math.isnan(women.to_merit.low)  # one query says nothing about others
    exposure = [1 / math.log2(1 + j) for j in range(1, 11)]
    assert women.attention_share == pytest.approx(sum(exposure[5:]) / sum(exposure))
    assert women.merit_share == pytest.approx(0.88 / (0.88 + 0.89))


def test_groups_are_compared_within_queries():
    """A group of the long queries is not worse off if every query treats it as well."""
    rows, grades, groups = [], {}, {}
    for q, n in enumerate((2, 40)):
        for i in range(n):
            rows.append({"query": q, "document": f"{q}-{i}", "rank": i + 1})
            grades.setdefault(q, {})[f"{q}-{i}"] = 1
            groups[f"{q}-{i}"] = "a" if i == 0 or (q == 1 and i != 39) else "b"
    found = audit(pd.DataFrame(rows), grades, groups, position_bias=torch.ones(40).double())
    assert found.pairs[0].relative.value == pytest.approx(0.0)
    assert found.groups[0].to_merit.value == pytest.approx(0.0)


def test_intervals_are_those_of_another_bootstrap():
    frame, grades, groups, _ = random_log(0, queries=60)
    found = audit(frame, grades, groups)
    parity = np.array([values["parity"] for values in found.per_query.values()])
    theirs = scipy.stats.bootstrap((parity,), np.mean, method="percentile", rng=0)
    ours = found.measures["parity"]
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.1 * width)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.1 * width)


def test_known_policies_are_audited_exactly():
    data = synthetic(n_queries=20, seed=2, dtype=torch.float64)
    data = data.replace(info={"group_names": ["majority", "minority"]})
    policies = [PlackettLuce(query.features.sum(-1)) for query in data]
    found = audit_policies(policies, data, k=4)
    bias = position_bias(10, k=4, dtype=torch.float64)
    expected = evaluate(policies, data, ("d_group",), position_bias=bias, undefined="skip")
    assert found.measures["d_group"].value == pytest.approx(expected.d_group)
    assert found.measures["d_group"].lower_end is None
    assert [group.name for group in found.groups] == ["majority", "minority"]
    with pytest.raises(ValueError, match="19 policies for 20 queries"):
        audit_policies(policies[1:], data)
    with pytest.raises(ValueError, match="has no groups"):
        audit_policies(policies, data.replace(groups=None))


# --- forms of the same input ----------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """A log of two draws as TREC runs, as JSON lines and as a table, with qrels and groups."""
    frame, grades, groups, lists = random_log(3, draws=2)
    frame["score"] = -frame["rank"].astype(float)
    for draw, part in frame.groupby("draw"):
        lines = [f"{r.query} Q0 {r.document} {r.rank} {r.score} t" for r in part.itertuples()]
        (tmp_path / f"run.{draw}.txt").write_text("\n".join(lines))
    records = []
    for query, shown in lists.items():
        for draw, ranking in enumerate(shown):
            records.append(json.dumps({"query": query, "sample": draw, "ranking": ranking}))
    (tmp_path / "draws.jsonl").write_text("\n".join(records))
    lines = [f"{q} 0 {d} {g:g}" for q, row in grades.items() for d, g in row.items()]
    (tmp_path / "qrels.txt").write_text("\n".join(lines))
    (tmp_path / "groups.txt").write_text("\n".join(f"{d} {g}" for d, g in groups.items()))
    csv_lines = ["document,group", *(f"{d},{g}" for d, g in groups.items())]
    (tmp_path / "groups.csv").write_text("\n".join(csv_lines))
    return tmp_path, frame, grades, groups


def numbers_of(found):
    """Everything but where it came from."""
    plain = found.to_dict()
    del plain["sources"], plain["origin"]
    return json.dumps(plain)


def test_all_forms_give_the_same_report(files):
    folder, frame, grades, groups = files
    runs = [folder / "run.0.txt", folder / "run.1.txt"]
    expected = numbers_of(audit(frame, grades, groups))
    assert numbers_of(audit(runs, folder / "qrels.txt", folder / "groups.txt")) == expected
    assert numbers_of(audit(str(folder / "draws.jsonl"), grades, folder / "groups.csv")) == expected
    table = [(q, d, g) for q, row in grades.items() for d, g in row.items()]
    qrels = pd.DataFrame(table, columns=["query", "document", "grade"])
    by_document = pd.DataFrame({"document": list(groups), "group": list(groups.values())})
    assert numbers_of(audit(frame, qrels, by_document)) == expected
    by_query = {(q, d): g for q in grades for d, g in groups.items()}
    assert numbers_of(audit(frame, qrels, by_query)) == expected
    pairs = [(q, d, g) for (q, d), g in by_query.items()]
    by_query_table = pd.DataFrame(pairs, columns=["query", "document", "group"])
    assert numbers_of(audit(frame, qrels, by_query_table)) == expected


@pytest.mark.parametrize(
    ("words", "bias"),
    [
        ([], [1.0, 0.63092975, 0.5, 0.43067656]),
        (["--position-bias", "reciprocal"], [1, 1 / 2, 1 / 3, 1 / 4]),
        (["--position-bias", "geometric:0.8", "--k", "3"], [1, 0.8, 0.64, 0]),
        (["--position-bias", "bias.txt"], [1, 0.5, 0, 0]),
    ],
)
def test_the_command_is_the_function(files, capsys, monkeypatch, words, bias):
    folder, frame, grades, groups = files
    monkeypatch.chdir(folder)
    (folder / "bias.txt").write_text("1\n0.5\n")
    call = ["audit", "run.0.txt", "run.1.txt", "--qrels", "qrels.txt", "--groups", "groups.csv"]
    assert main([*call, "--out", "report", *words]) == 0
    shown = capsys.readouterr()
    assert "gets" in shown.out
    assert "report.html" in shown.err
    written = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))
    assert written["position_bias"][:4] == pytest.approx(bias)
    k = 3 if "--k" in words else None
    vector = torch.tensor(bias + [0.0] * 5) if words else None
    if words[-1:] == ["reciprocal"]:
        vector = 1 / torch.arange(1.0, 10.0)
    expected = audit(frame, grades, groups, position_bias=vector, k=k)
    for name, measure in expected.measures.items():
        assert written["measures"][name]["value"] == pytest.approx(measure.value, rel=1e-6)
    assert len(written["origin"]["sha256"]) == 4
    assert main([*call, "--out", "report", *words]) == 2  # it is there already
    assert "--overwrite" in capsys.readouterr().err
    assert main([*call, "--out", "report", "--overwrite", "-q", *words]) == 0


# --- bad input: an error, or a counted line -------------------------------------------------------

GOOD = {
    "run": "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 3 1 t\n",
    "qrels": "q 0 a 1\nq 0 b 1\nq 0 c 0\n",
    "groups": "a x\nb y\nc x\n",
}
ERRORS = {
    "no judgements": ({"qrels": "other 0 a 1\n"}, "no query that was shown has judgements"),
    "no groups": ({"groups": "z x\n"}, "none of the documents has a group"),
    "a document twice": ({"run": GOOD["run"] + "q Q0 a 4 0 t\n"}, "line 4: document 'a' is in"),
    "a rank twice": ({"run": GOOD["run"] + "q Q0 d 3 0 t\n"}, "both have rank 3"),
    "rank 0": ({"run": "q Q0 a 0 3 t\n"}, "the rank is 0, and ranks begin at 1"),
    "no rank": ({"run": "q Q0 a first 3 t\n"}, "the rank 'first' is not a whole number"),
    "half a rank": ({"run": "q Q0 a 1.5 3 t\n"}, "the rank '1.5' is not a whole number"),
    "infinite rank": ({"run": "q Q0 a inf 3 t\n"}, "the rank 'inf' is not a whole number"),
    "no score": ({"run": "q Q0 a 1 high t\n"}, "the score 'high' is not a finite number"),
    "an empty run": ({"run": "\n"}, "the file is empty"),
    "empty qrels": ({"qrels": ""}, "the file is empty"),
    "empty groups": ({"groups": ""}, "the file is empty"),
    "too few columns": ({"run": "q Q0 a 1\n"}, "4 columns"),
    "a grade twice": ({"qrels": GOOD["qrels"] + "q 0 a 2\n"}, "was there before"),
    "a group twice": ({"groups": GOOD["groups"] + "a y\n"}, "the group of 'a' was there before"),
    "no JSON": ({"run": '{"query": 1\n'}, "line 1: no JSON"),
    "no ranking": ({"run": '{"query": 1}\n'}, '"ranking"'),
    "a draw twice": (
        {"run": '{"query": "q", "ranking": ["a"]}\n{"query": "q", "ranking": ["b"]}\n'},
        "draw 0 of query 'q' was there before",
    ),
    "only empty draws": ({"run": '{"query": "q", "ranking": []}\n'}, "no line shows a document"),
}


def written(folder, **changes):
    """The good files with some of them changed, as arguments of `audit`."""
    paths = []
    for name, text in (GOOD | changes).items():
        path = folder / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_right_is_refused(tmp_path, name):
    changes, message = ERRORS[name]
    paths = written(tmp_path, **changes)
    with pytest.raises(ValueError, match=re.escape(message)):
        audit(*paths)


COUNTED = {
    "unjudged": (
        {"run": GOOD["run"] + "q Q0 d 4 0 t\n", "groups": GOOD["groups"] + "d y\n"},
        ["q d"],
    ),
    "without_group": ({"groups": "a x\nb y\n"}, ["q c"]),
    "only_shown": ({"run": GOOD["run"] + "r Q0 a 1 0 t\n"}, ["r"]),
    "only_judged": ({"qrels": GOOD["qrels"] + "s 0 a 1\n"}, ["s"]),
    "with_gaps": ({"run": "q Q0 a 1 3 t\nq Q0 b 5 2 t\n"}, ["q (draw 0)"]),
    "contradicting": ({"run": "q Q0 a 1 1 t\nq Q0 b 2 2 t\n"}, ["q (draw 0)"]),
    "empty_draws": (
        {"run": '{"query": "q", "ranking": ["a"]}\n{"query": "q", "sample": 1, "ranking": []}\n'},
        ["q (draw 1)"],
    ),
    "without_relevant": ({"qrels": "q 0 a 0\nq 0 b 0\n"}, ["q"]),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_may_be_right_is_counted_and_named(tmp_path, name):
    changes, names = COUNTED[name]
    found = audit(*written(tmp_path, **changes))
    counts = found.to_dict()["counts"]
    assert counts[name] == names
    found.save(tmp_path / "report")
    assert names[0] in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    for other in COUNTED:
        if other != name and (name, other) != ("without_relevant", "unjudged"):
            assert counts[other] == []


def test_a_run_that_lacks_a_query_is_counted(tmp_path):
    _, qrels, groups = written(tmp_path, qrels="q 0 a 1\nr 0 b 1\n")
    first, second = tmp_path / "one.txt", tmp_path / "two.txt"
    first.write_text("q Q0 a 1 1 t\nr Q0 b 1 1 t\n")
    second.write_text("q Q0 b 1 1 t\n")
    found = audit([first, second], qrels, groups)
    assert found.counts.empty_draws == ["r (two.txt)"]
    assert found.lists == (1, 2)


def test_a_document_without_a_group_changes_no_comparison(tmp_path):
    """It keeps its place, and so do the others."""
    run, qrels, groups = written(tmp_path, groups="a x\nc y\n")
    qrels.write_text("q 0 a 1\nq 0 b 1\nq 0 c 2\n")
    found = audit(run, qrels, groups)
    assert found.per_query["q"]["signed_gap"] == pytest.approx(1 / 1 - 0.5 / 2)


def test_order_of_scores_looks_at_no_rank(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("q Q0 a 0 1 t\nq Q0 b 0 2 t\nq Q0 c 0 1 t\n")
    assert read_log(path, "score").lists == {"q": [["b", "c", "a"]]}
    with pytest.raises(ValueError, match="order is 'random'"):
        read_log(path, "random")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"query": ["q"], "document": ["a"]}, "no column rank"),
        ({"query": ["q"], "document": [None], "rank": [1]}, "row 0: there is no document"),
        ({"query": [], "document": [], "rank": []}, "has no row"),
        ({"query": ["q"], "document": ["a"], "rank": [0]}, "runs, row 0: the rank is 0"),
    ],
)
def test_a_table_that_cannot_be_right_is_refused(frame, message):
    with pytest.raises(ValueError, match=message):
        audit(pd.DataFrame(frame), {"q": {"a": 1}}, {"a": "x"})


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"merit": "cube"}, "merit is 'cube'"),
        ({"gain": "cube"}, "gain is 'cube'"),
        ({"position_bias": torch.zeros(3)}, "somebody must look"),
        ({"position_bias": -torch.ones(3)}, "not negative"),
    ],
)
def test_choices_are_looked_at_first(choice, message):
    with pytest.raises(ValueError, match=message):
        audit("there is no such file", {}, {}, **choice)
