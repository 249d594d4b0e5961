"""Files of TREC as a dataset, tables of pandas and back."""

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
import torch

from fairpg_lite import RankingDataset, evaluate, from_trec, position_bias, synthetic

RUN = """\
q1 Q0 apple 1 3.0 bm25
q1 Q0 pear 2 1.0 bm25
q1 Q0 fig 3 2.0 bm25

q2 Q0 pear 1 0.5 bm25
q9 Q0 pear 1 0.5 bm25
"""
QRELS = """\
q1 0 pear 2
q1 0 plum 1
q1 0 apple -1
q2 0 pear 1
q3 0 pear 1
q4 0 pear 1
"""


@pytest.fixture
def files(tmp_path):
    """Paths of a run, of judgements and of groups by document."""
    texts = {"run": RUN, "qrels": QRELS, "groups": "apple old\npear new\nfig old\nplum new\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return {name: tmp_path / f"{name}.txt" for name in texts}


def test_judged_documents_that_were_not_retrieved_come_last(files):
    data = from_trec(files["run"], files["qrels"])
    assert data.query_ids.tolist() == ["q1", "q2"]
    assert data.documents.tolist() == ["apple", "pear", "fig", "plum", "pear"]
    assert data.features[:, 0].tolist() == [3.0, 1.0, 2.0, -999.0, 0.5]
    assert data.relevance.tolist() == [0.0, 2.0, 0.0, 1.0, 1.0]
    assert data.document_ids.tolist() == [0, 1, 2, 3, 1]
    assert data.groups is None
    assert data.info == {
        "name": "run.txt",
        "unjudged": 1,
        "only_in_run": 1,
        "only_in_qrels": 2,
        "depth": 3,
    }


def test_groups_of_documents_or_of_documents_in_a_query(files):
    data = from_trec(files["run"], files["qrels"], files["groups"])
    assert data.info["group_names"] == ["new", "old"]
    assert data.groups.tolist() == [1, 0, 1, 0, 0]
    lines = ["q1 apple a", "q1 pear a", "q1 fig b", "q1 plum b", "q2 pear b", "q7 kiwi c"]
    files["groups"].write_text("\n".join(lines))
    assert from_trec(**files).groups.tolist() == [0, 0, 1, 1, 1]


def test_cut_off_at_its_depth_a_run_exposes_nothing_else(files):
    data = from_trec(**files)
    assert len(data[0].relevance) == 4
    bias = position_bias(4, k=data.info["depth"], dtype=torch.float64)
    ndcg = evaluate(data.features[:, 0], data, deterministic=True, position_bias=bias).per_query
    gains = {"pear": 3.0, "plum": 1.0}
    third = gains["pear"] / np.log2(4)
    ideal = gains["pear"] + gains["plum"] / np.log2(3)
    assert ndcg["ndcg"].tolist() == pytest.approx([third / ideal, 1.0])


def test_trec_eval_finds_the_same_ndcg(tmp_path):
    """A run of the first five of each query, against all judgements."""
    data = synthetic(n_queries=12, seed=3)
    generator = np.random.default_rng(0)
    run = {}
    qrels = {}
    for number, query in enumerate(data):
        names = [f"d{i}" for i in range(len(query.relevance))]
        scores = generator.normal(size=len(names))
        first_five = np.argsort(-scores)[:5]
        run[f"q{number}"] = {names[i]: float(scores[i]) for i in first_five}
        grades = query.relevance.round().int().tolist()
        qrels[f"q{number}"] = dict(zip(names, grades, strict=True))
    run_file = tmp_path / "run.txt"
    qrels_file = tmp_path / "qrels.txt"
    run_lines = [
        f"{q} Q0 {d} {i} {s!r} x" for q, row in run.items() for i, (d, s) in enumerate(row.items())
    ]
    qrels_lines = [f"{q} 0 {d} {g}" for q, row in qrels.items() for d, g in row.items()]
    run_file.write_text("\n".join(run_lines))
    qrels_file.write_text("\n".join(qrels_lines))
    dataset = from_trec(run_file, qrels_file)
    measures = {"ndcg_cut_5", "ndcg_cut_3"}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    for k in (3, 5):
        evaluation = evaluate(
            dataset.features[:, 0],
            dataset,
            ("ndcg_at_k",),
            k=k,
            gain="linear",
            deterministic=True,
            undefined={"ndcg_at_k": 0.0},
        )
        table = evaluation.to_pandas()
        assert table.index.tolist() == list(run)
        for query, values in expected.items():
            assert table.loc[query, "ndcg_at_k"] == pytest.approx(values[f"ndcg_cut_{k}"])


FAULTS = {
    "columns of a run": (
        "run",
        RUN + "q1 Q0 kiwi 4 0.1\n",
        "run.txt, line 7: 5 columns; a line is 'qid Q0 doc rank score tag', 6 columns.",
    ),
    "columns of qrels": (
        "qrels",
        "q1 pear 2\n",
        "qrels.txt, line 1: 3 columns; a line is 'qid 0 doc grade', 4 columns.",
    ),
    "a document twice in a run": (
        "run",
        RUN + "q2 Q0 pear 2 0.1 bm25\n",
        "run.txt, line 7: document 'pear' of query 'q2' was there before",
    ),
    "a document twice in qrels": (
        "qrels",
        QRELS + "q1 0 plum 1\n",
        "qrels.txt, line 7: document 'plum' of query 'q1' was there before",
    ),
    "a grade": (
        "qrels",
        QRELS + "q1 0 kiwi good\n",
        "qrels.txt, line 7: the grade 'good' is not a finite number.",
    ),
    "a score": (
        "run",
        "q1 Q0 kiwi 1 nan bm25\n",
        "run.txt, line 1: the score 'nan' is not a finite number.",
    ),
    "no run": ("run", "\n", "run.txt: the file is empty; give lines 'qid Q0 doc rank score tag'."),
    "no query in common": ("qrels", "1 0 pear 1\n", "have no query in common"),
    "no group": (
        "groups",
        "apple old\npear new\nfig old\n",
        "groups.txt: there is no group of document 'plum' of query 'q1'; give one",
    ),
    "a group twice": (
        "groups",
        "apple old\npear new\napple new\n",
        "groups.txt, line 3: the group of 'apple' was there before; give it once.",
    ),
    "columns of groups": (
        "groups",
        "apple old\nq1 pear new\n",
        "groups.txt, line 2: 3 columns; a line is 'doc label', 2 columns.",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_line(files, fault):
    name, text, message = FAULTS[fault]
    files[name].write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as error:  # noqa: PT011
        from_trec(**files)
    assert message in str(error.value)


def test_bytes_that_are_no_text_are_refused(files):
    files["qrels"].write_bytes(QRELS.encode() + b"q1 0 p\xe4ra 1\n")
    with pytest.raises(ValueError, match=r"qrels.txt, line 7: not UTF-8 text"):
        from_trec(**files)


def test_a_table_comes_back_as_it_went(files):
    data = from_trec(**files)
    table = data.to_pandas()
    assert table.index.tolist() == data.document_ids.tolist()
    back = RankingDataset.from_pandas(
        table, query="query", relevance="relevance", group="group", document="document"
    )
    assert (
        back.to_pandas()
        .reset_index(drop=True)
        .equals(
            table.reset_index(drop=True).astype({"feature_1": "float32", "relevance": "float32"})
        )
    )
    assert back.info["group_names"] == ["new", "old"]
    plain = synthetic(n_queries=3).replace(groups=None, document_ids=None)
    assert list(plain.to_pandas().columns) == ["query", "relevance", "feature_1", "feature_2"]
    named = plain.replace(info={"feature_names": ["height", "width"]})
    assert list(named.to_pandas().columns[2:]) == ["height", "width"]
    assert plain.to_pandas().groupby("query").size().tolist() == plain.lengths.tolist()


def test_an_evaluation_is_a_row_for_each_query():
    data = synthetic(n_queries=4).replace(query_ids=["a", "b", "c", "d"])
    evaluation = evaluate(data.relevance, data, ("ndcg", "d_ind"))
    table = evaluation.to_pandas()
    assert isinstance(table, pd.DataFrame)
    assert table.index.tolist() == ["a", "b", "c", "d"]
    assert table.index.name == "query"
    assert list(table.columns) == ["ndcg", "d_ind"]
    assert table.mean().to_dict() == pytest.approx(evaluation.means)
    pooled = evaluate(data.relevance, data, ("ndcg", "d_ind"), pooled="dataset").to_pandas()
    assert list(pooled.columns) == ["ndcg"]
    assert pooled.index.tolist() == ["a", "b", "c", "d"]
