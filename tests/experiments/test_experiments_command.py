"""`python -m experiments`: from an empty directory to table and summary, and on again."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest

from experiments import __main__ as command
from experiments import methods, synthetic
from experiments.__main__ import main
from experiments.catalogue import CLIPPED_AT_5, FAIR_PG_RANK
from experiments.summary import summarise
from fairpg_lite.sweeps import grid, load_cells

pytestmark = pytest.mark.slow

FILES = ("table.csv", "summary.md")
FAIR = FAIR_PG_RANK.on(CLIPPED_AT_5)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A finished quick run; tests that change it must leave it whole."""
    out = tmp_path_factory.mktemp("synthetic")
    assert main(["synthetic", "--quick", "--out", str(out), "-q"]) == 0
    return out


def test_every_output_is_there_and_names_its_data_and_that_it_is_quick(quick):
    for name in ("table.json", "summary.md"):
        text = " ".join((quick / name).read_text().split())
        assert synthetic.describe_data([]) in text
        assert command.QUICK in text
        assert "python -m experiments synthetic --quick" in text
    planned = {(c.experiment.name, c.lam, c.seed) for c in synthetic.plan(quick=True)}
    assert {(c["experiment"], c["lam"], c["seed"]) for c in load_cells(quick)} == planned
    assert {path.name for path in quick.iterdir()} == {*FILES, "table.json"}


def test_the_summary_is_that_of_the_cells(quick):
    cells = load_cells(quick)
    row = next(r for r in summarise(cells) if r["experiment"] == FAIR)
    setting = (FAIR, row["lam"])
    values = [c["result"]["ndcg"] for c in cells if (c["experiment"], c["lam"]) == setting]
    assert len(values) == 2
    assert row["ndcg"].mean == pytest.approx(np.mean(values), rel=1e-14)
    assert f"| {row['ndcg']} |" in (quick / "summary.md").read_text("utf-8")


def test_a_table_of_an_earlier_protocol_is_refused(quick, tmp_path, capsys):
    """Runs of two protocols must not end in one table; --overwrite makes it anew."""
    out = shutil.copytree(quick, tmp_path / "out")
    sidecar = out / "table.json"
    earlier = json.loads(sidecar.read_text())
    assert earlier.pop("protocol") == 2
    sidecar.write_text(json.dumps(earlier))
    assert main(["synthetic", "--quick", "--out", str(out)]) == 2
    assert "python -m experiments synthetic --quick --overwrite" in capsys.readouterr().err


def test_a_second_run_computes_nothing_and_a_lost_cell_is_made_again(quick, monkeypatch, capsys):
    before = {name: (quick / name).read_bytes() for name in FILES}
    ran = []
    whole = methods.GroupFairPGRank.__call__

    def spy(self, lam, seed):
        ran.append((self.name, lam, seed))
        return whole(self, lam, seed)

    monkeypatch.setattr(methods.GroupFairPGRank, "__call__", spy)
    monkeypatch.setattr(methods.PostProcessing, "__call__", None)
    call = ["synthetic", "--quick", "--out", str(quick)]
    rows = before["table.csv"].decode().splitlines(keepends=True)
    lost = [row for row in rows if not row.startswith(f"{FAIR},8.0,1,")]
    assert len(lost) == len(rows) - 1
    (quick / "table.csv").write_text("".join(lost))
    assert main(call) == 0
    assert ran == [(FAIR, 8.0, 1)]

    def without_seconds(text):
        return [line.rsplit(",", 2)[0] for line in text.decode().splitlines()]

    after = (quick / "table.csv").read_bytes()
    assert without_seconds(after) == without_seconds(before["table.csv"])
    assert (quick / "summary.md").read_bytes() == before["summary.md"]
    assert str(quick / "summary.md") in capsys.readouterr().out


# Ctrl-C


def numbers(out):
    """What is stored of each cell, without what differs between two runs of it."""
    return {(c["experiment"], c["lam"], c["seed"]): c["result"] for c in load_cells(out)}


def test_ctrl_c_in_a_training_stores_nothing_of_it(quick, tmp_path, monkeypatch, capsys):
    """A real SIGINT, in the second epoch of the fourth training."""
    trainings = []

    def initial_scorer(dataset, seed, start):
        scorer = whole(dataset, seed, start)
        trainings.append(0)

        def press_ctrl_c(*_):
            trainings[-1] += 1
            if len(trainings) == 4 and trainings[-1] == 18:
                signal.raise_signal(signal.SIGINT)

        scorer.register_forward_hook(press_ctrl_c)
        return scorer

    whole = methods.initial_scorer
    monkeypatch.setattr(methods, "initial_scorer", initial_scorer)
    call = ["synthetic", "--quick", "--out", str(tmp_path), "-q"]
    assert main(call) == 130
    assert len(capsys.readouterr().err.splitlines()) == 1
    undisturbed = numbers(quick)
    kept = numbers(tmp_path)
    assert len(kept) == 3
    assert kept.items() <= undisturbed.items()
    assert not (tmp_path / "summary.md").exists()
    monkeypatch.undo()
    assert main(call) == 0
    assert numbers(tmp_path) == undisturbed
    assert (tmp_path / "summary.md").read_bytes() == (quick / "summary.md").read_bytes()


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_from_a_terminal(quick, tmp_path, jobs):
    """`python -m experiments` in a process of its own, stopped when its first cells are there."""
    words = ["synthetic", "--quick", "--out", str(tmp_path), "--jobs", str(jobs)]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", *words], stderr=subprocess.PIPE, text=True
    )
    while not list(tmp_path.glob("*/lam=*.json")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    undisturbed = numbers(quick)
    kept = numbers(tmp_path)
    assert 0 < len(kept) < len(undisturbed)
    assert kept.items() <= undisturbed.items()
    assert main([*words, "-q"]) == 0
    assert numbers(tmp_path) == undisturbed


def test_german_quick(tmp_path, monkeypatch, capsys):
    """Into the repository's results/, seen from book/, with nothing on stdout but the files."""
    monkeypatch.setattr(command, "ROOT", tmp_path)
    (tmp_path / "book").mkdir()
    monkeypatch.chdir(tmp_path / "book")
    assert main(["german", "--quick", "--seeds", "1"]) == 0
    shown = capsys.readouterr().out.split()
    assert shown == [str(p) for p in (f"../results/german-quick/{name}" for name in FILES)]
    text = (tmp_path / "results" / "german-quick" / "summary.md").read_text()
    assert "--seeds 1 --quick" in text


@dataclass(frozen=True)
class Breaks:
    at: float = 1.0
    name = "breaks"

    def __call__(self, lam, seed):
        if lam == self.at:
            raise RuntimeError("as planned")
        return {"ndcg": lam + seed}


def test_failed_cells_are_named_and_the_exit_code_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "plan", lambda **_: grid(Breaks(), [0.0, 1.0], range(2)))
    with pytest.warns(RuntimeWarning, match="2 of 4 cells failed; .*RuntimeError: as planned"):
        assert main(["synthetic", "--out", str(tmp_path), "-q"]) == 1
    assert "2 finished, 2 failed" in (tmp_path / "summary.md").read_text()
    monkeypatch.setattr(synthetic, "plan", lambda **_: grid(Breaks(0.0), [0.0], [0]))
    with pytest.warns(RuntimeWarning, match="1 of 1 cells failed"):
        assert main(["synthetic", "--out", str(tmp_path / "all")]) == 1
    assert not (tmp_path / "all" / "summary.md").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "experiment"),
        ("nothing", "invalid choice"),
        ("synthetic --seeds 0", "0 is not a whole number, 1 to"),
        ("synthetic --jobs many", "whole number"),
        ("synthetic --stand-in", "belong to `yahoo`"),
        ("german --data somewhere", "belong to `yahoo`"),
        ("yahoo --data somewhere --stand-in", "not allowed with"),
    ],
)
def test_wrong_calls(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*words.split()]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_results_cannot_go_where_a_file_is(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["synthetic", "--quick", "--out", str(tmp_path / "taken")]) == 1
    assert "taken" in capsys.readouterr().err
