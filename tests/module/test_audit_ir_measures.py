"""Every utility of a report beside ir_measures, which also has RR at a cut-off."""

import ir_measures
import numpy as np
import pandas as pd
import pytest

from fairpg_lite import audit


@pytest.mark.parametrize("k", [1, 3, 10])
def test_utilities_are_those_of_ir_measures(k):
    rng = np.random.default_rng(k)
    names = [f"d{i}" for i in range(14)]
    qrels = {f"q{q}": {d: int(rng.integers(0, 4)) for d in names[:10]} for q in range(15)}
    qrels["q4"] = dict.fromkeys(names[:10], 0)
    rows = []
    run = {}
    for query in qrels:
        for rank, document in enumerate(rng.permutation(names)[:8], 1):
            rows.append((query, str(document), rank))
            run.setdefault(query, {})[str(document)] = 100.0 - rank
    frame = pd.DataFrame(rows, columns=["query", "document", "rank"])
    groups = {d: "ab"[i % 2] for i, d in enumerate(names)}
    found = audit(frame, qrels, groups, k=k)
    theirs = {
        "ndcg": ir_measures.nDCG @ k,
        "ap": ir_measures.AP @ k,
        "rr": ir_measures.RR @ k,
    }
    judgements = [
        ir_measures.Qrel(query, document, grade)
        for query, row in qrels.items()
        for document, grade in row.items()
    ]
    shown = [
        ir_measures.ScoredDoc(query, document, score)
        for query, row in run.items()
        for document, score in row.items()
    ]
    for name, measure in theirs.items():
        expected = ir_measures.calc_aggregate([measure], judgements, shown)[measure]
        assert found.utilities[name].value == pytest.approx(expected, abs=1e-9), name
