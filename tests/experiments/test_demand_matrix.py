"""The matrix of demands: what is stored is what the plan makes, and what is read off it."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from experiments.demands import (
    CONTROLS,
    DATA,
    DEMANDS,
    Demand,
    load,
    main,
    matrix,
    plan,
)
from fairpg_lite.measures import MEASURES
from fairpg_lite.sweeps import load_cells, run_cells

OUT = Path(__file__).resolve().parents[2] / "results" / "demands"


@cache
def stored():
    return load_cells(OUT)


def test_every_cell_of_the_plan_is_stored():
    planned = {(c.experiment.name, c.seed): c.config for c in plan()}
    assert {(c["experiment"], c["seed"]): c["config"] for c in stored()} == planned
    assert json.loads((OUT / "table.json").read_text())["runs"] == len(planned)
    for cell in stored():
        assert cell["status"] == "done"
        assert set(cell["result"]) == {"ndcg", *DEMANDS, "lam_found", "paid"}


def test_demands_are_measures_that_can_be_trained():
    assert len(set(DEMANDS)) == len(DEMANDS) == 14
    assert all(MEASURES[name].disparity is not None for name in DEMANDS)


@pytest.mark.parametrize("row", ["mixed", "parity"])
def test_a_deleted_cell_comes_back(row, tmp_path):
    (cell,) = [c for c in plan(("german",), rows=(row,)) if c.seed == 0]
    (found,) = run_cells([cell], tmp_path, progress=False)
    (expected,) = [c for c in stored() if c["experiment"] == f"german-{row}" and c["seed"] == 0]
    for name, value in expected["result"].items():
        assert found["result"][name] == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("data", DATA)
def test_nobody_is_in_two_parts(data):
    parts = load(data, 1)
    rows = [{tuple(row) for row in part.features.tolist()} for part in parts]
    # Two persons of German Credit may have the same nine attributes.
    most = 40 if data == "german" else 0
    assert len(rows[0] & rows[2]) <= most
    assert len(rows[1] & rows[2]) <= most
    assert len(rows[0] & rows[1]) <= most
    other = {tuple(row) for row in load(data, 2).test.features.tolist()}
    assert other != rows[2]


def test_the_price_is_paid_on_the_validation_queries():
    for cell in stored():
        row = cell["experiment"].split("-", 1)[1]
        paid = cell["result"]["paid"]
        if row == "pg_rank":
            assert paid == 0
        else:
            assert paid <= 0.1 + 1e-9
        if row == "mixed":
            assert paid == pytest.approx(0.1)


def test_shares_by_a_loop():
    """Ratios of means over repetitions, of improvements on PG-Rank; 1 on the diagonal."""
    found = matrix(stored(), "synthetic")
    by_run = {(c["experiment"], c["seed"]): c["result"] for c in stored()}
    assert found.rows == ("mixed", *found.columns)
    for r, row in enumerate(found.rows):
        for c, column in enumerate(found.columns):
            gains = []
            own = []
            for seed in range(found.repetitions):
                before = by_run["synthetic-pg_rank", seed][column]
                gains.append(before - by_run[f"synthetic-{row}", seed][column])
                own.append(before - by_run[f"synthetic-{column}", seed][column])
            assert found.share[r, c] == pytest.approx(sum(gains) / sum(own))
            if found.is_gained[c]:
                assert found.low[r, c] <= found.share[r, c] <= found.high[r, c]
    assert np.allclose(np.diag(found.share[1:]), 1.0)


def test_a_killed_run_goes_on(tmp_path, capsys, monkeypatch):
    """One repetition, interrupted in the middle: the same call makes the table."""
    call = Demand.__call__
    done = []

    def interrupted(self, lam, seed):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(self.demand)
        return call(self, lam, seed)

    monkeypatch.setattr(plan, "__defaults__", (DATA, None, (*CONTROLS, "ee_d", "envy")))
    words = ["--data", "german", "--repetitions", "1", "--out", str(tmp_path), "-q"]
    with monkeypatch.context() as patch:
        patch.setattr(Demand, "__call__", interrupted)
        assert main(words) == 130
    assert len(done) == 3
    assert main(words) == 0
    assert len(load_cells(tmp_path)) == 4
    assert (tmp_path / "table.csv").exists()
