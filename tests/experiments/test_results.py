"""The committed results are what the code makes: deleted and run again they come back.

Recomputing everything takes hours. So every directory is compared with its plan and its summary
as a whole, and from each experiment the cheapest cell is computed anew by the experiment itself.
"""

import json
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from experiments import reproduction
from experiments.summary import summarise, write_summary
from fairpg_lite.sweeps import load_cells, run_cells

RESULTS = Path(__file__).resolve().parents[2] / "results"


def _is_reproduction(folder):
    """Whether one of the plans made it; other results have tests of their own."""
    sidecar = folder / "table.json"
    if not sidecar.is_file():
        return False
    command = json.loads(sidecar.read_text("utf-8"))["command"]
    return command.startswith("python -m experiments ")


NAMES = sorted(path.name for path in RESULTS.iterdir() if _is_reproduction(path))
#: Cells that took longer when they were stored are not computed again here. The full-size
#: stand-in has none so short: its data alone take 2 GB.
SECONDS = 6.0
# Stored with six digits: rounding may fall on either side of a half.
TOLERANCE = 2e-6
"""Runs with equal versions agree in every digit. Another processor adds in another order, an error
of about 1e-16 that training carries along; tables print four decimals."""


@cache
def stored(name):
    return load_cells(RESULTS / name)


@cache
def about(name):
    """The sidecar of the table."""
    return json.loads((RESULTS / name / "table.json").read_text("utf-8"))


@cache
def planned(name):
    """The module and its cells, from the command that the sidecar names."""
    words = shlex.split(about(name)["command"])
    assert words[:3] == ["python", "-m", "experiments"]
    module = reproduction(words[3])
    options = {}
    if "--seeds" in words:
        options["seeds"] = int(words[words.index("--seeds") + 1])
    if "--stand-in" in words:
        options["stand_in"] = True
    assert "--quick" not in words
    return module, module.plan(**options)


def key(cell):
    """Of a planned or of a stored cell."""
    if isinstance(cell, dict):
        return cell["experiment"], cell["lam"], cell["seed"]
    return cell.experiment.name, cell.lam, cell.seed


def test_there_are_results_of_every_open_experiment():
    assert {"synthetic", "german", "mslr"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_plan_and_stored_cells_are_the_same_cells(name):
    _, cells = planned(name)
    plan = {key(cell): cell.config for cell in cells}
    assert {key(cell): cell["config"] for cell in stored(name)} == plan
    assert about(name)["runs"] == len(plan)
    assert about(name)["experiments"] == {cell.experiment.name: cell.config for cell in cells}


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_finished_and_says_where_it_comes_from(name):
    for cell in stored(name):
        assert cell["status"] == "done"
        assert re.fullmatch(r"[0-9a-f]{7,40}", cell["commit"]), "from a commit, nothing changed"
        assert {"python", "fairpg_lite", "torch", "numpy"} <= set(cell["versions"])
        assert cell["seconds"] >= 0


@pytest.mark.parametrize("name", NAMES)
def test_summaries_are_those_of_the_cells(name, tmp_path):
    module, cells = planned(name)
    by_key = {key(cell): cell for cell in stored(name)}
    records = [by_key[key(cell)] for cell in cells]
    data = module.describe_data(records)
    assert about(name)["data"] == data
    head = {"command": about(name)["command"], "data": data}
    path = write_summary(records, tmp_path, head, module.COLUMNS)
    assert path.read_text("utf-8") == (RESULTS / name / "summary.md").read_text("utf-8")


def test_a_changed_number_changes_the_summary():
    """The comparison above can fail."""
    cells = [dict(cell) for cell in stored("synthetic")]
    before = summarise(cells)
    cells[0]["result"] = cells[0]["result"] | {"ndcg": cells[0]["result"]["ndcg"] + 1e-9}
    assert summarise(cells) != before


def cheap(name):
    """From each experiment the cell that was quickest, if it was quick."""
    best = {}
    for cell in stored(name):
        if cell["seconds"] < best.get(cell["experiment"], {"seconds": SECONDS})["seconds"]:
            best[cell["experiment"]] = cell
    return list(best.values())


def chosen():
    return [(name, cell) for name in NAMES for cell in cheap(name)]


def test_the_subset_is_spread_over_methods():
    for name in ("synthetic", "german"):
        assert {c["experiment"] for c in cheap(name)} == {c["experiment"] for c in stored(name)}
    assert len(cheap("mslr")) >= 4


@pytest.mark.parametrize(
    ("name", "cell"),
    chosen(),
    ids=lambda x: x if isinstance(x, str) else f"{x['experiment']}-{x['lam']:g}-{x['seed']}",
)
def test_a_deleted_cell_comes_back(name, cell, tmp_path):
    _, cells = planned(name)
    (again,) = [planned_cell for planned_cell in cells if key(planned_cell) == key(cell)]
    (found,) = run_cells([again], tmp_path, progress=False)
    assert found["config"] == cell["config"]
    assert json.loads(again.path(tmp_path).read_text("utf-8"))["result"] == found["result"]
    # Compiled or by autograd: the numbers are the same, and the plan may choose the other way now.
    close(found["result"] | {"compiled": None}, cell["result"] | {"compiled": None})


def close(found, expected, where="result"):
    """The same structure, text equal, numbers equal up to the tolerance."""
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name in expected:
            close(found[name], expected[name], f"{where}[{name!r}]")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for k, (a, b) in enumerate(zip(found, expected, strict=True)):
            close(a, b, f"{where}[{k}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=TOLERANCE, rel=TOLERANCE), where
    else:
        assert found == expected, where


def test_the_comparison_sees_a_small_change():
    result = cheap("synthetic")[0]["result"]
    close(result, result)
    with pytest.raises(AssertionError, match=r"result\['ndcg'\]"):
        close(result | {"ndcg": result["ndcg"] + 1e-5}, result)
