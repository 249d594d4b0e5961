"""Sweeps: each cell stored once and whole, whatever happens in between."""

import errno
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import sweep_experiments as experiments
import torch
from hypothesis import given
from hypothesis import strategies as st
from sweep_experiments import Careless, Deadly, Failing, Plain, Returning

from fairpg_lite import _files
from fairpg_lite.sweeps import (
    Cell,
    collect,
    computing,
    grid,
    load_cells,
    provenance,
    run_cells,
    running,
    sweep,
    tables,
)
from fairpg_lite.sweeps.computing import compute
from fairpg_lite.sweeps.provenance import commit
from fairpg_lite.sweeps.records import key_of, read_record
from fairpg_lite.sweeps.settings import as_json
from fairpg_lite.sweeps.tables import read_table, write_table

HERE = Path(__file__).parent
COLUMNS = ("experiment", "lam", "seed", "seconds", "made")
NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def _no_calls():
    experiments.calls.clear()


def quiet(experiment, lams, seeds, out, **options):
    return sweep(experiment, lams, seeds, out, progress=False, **options)


def everything(out):
    """The failed cells as well."""
    files = [read_record(path) for path in sorted(out.rglob("lam=*.json"))]
    return sorted([*read_table(out).values(), *files], key=key_of)


def timeless(cells):
    return [{key: value for key, value in cell.items() if key != "seconds"} for cell in cells]


def contents(folder):
    """Every file below ``folder``, with the one value that may differ taken out.

    What a killed writer left under a name of its own is no file that anybody reads.
    """
    files = [p for p in Path(folder).rglob("*") if p.is_file() and p.suffix != ".part"]
    pattern = re.compile(r'^ "seconds": [^,]*,$', re.M)
    texts = {p.relative_to(folder).as_posix(): p.read_text() for p in files}
    assert all(len(pattern.findall(text)) == 1 for text in texts.values())
    return {name: pattern.sub("", text) for name, text in texts.items()}


# --- the grid ---


def test_every_lambda_with_every_seed():
    cells = grid(Plain(), (0.5, 2), range(3))
    assert [(c.lam, c.seed) for c in cells] == [(a, b) for a in (0.5, 2.0) for b in range(3)]


@pytest.mark.parametrize(
    ("lams", "seeds", "kind", "message"),
    [
        ([0, -1], [0], ValueError, "lam is -1; give a finite number, zero or more"),
        ([NAN], [0], ValueError, "lam is nan"),
        ([INF], [0], ValueError, "lam is inf"),
        (["much"], [0], TypeError, "lam is 'much'; give a number"),
        ([True], [0], TypeError, "lam is True"),
        ("12", [0], TypeError, "lam is '1'; give a number"),
        (1.0, [0], TypeError, "not iterable"),
        ([1], [-1], ValueError, "seed is -1"),
        ([1], [0.5], ValueError, r"seed is 0\.5; give a whole number"),
        ([1], [True], ValueError, "seed is True"),
        ([1], 5, TypeError, "not iterable"),
    ],
)
def test_a_wrong_axis_is_refused_by_name(lams, seeds, kind, message):
    with pytest.raises(kind, match=message):
        grid(Plain(), lams, seeds)


@pytest.mark.parametrize("timeout", [-1.0, NAN])
def test_a_timeout_is_no_less_than_nothing(tmp_path, timeout):
    with pytest.raises(ValueError, match=rf"timeout is {timeout}; give seconds"):
        quiet(Plain(), [0], [0], tmp_path / "out", timeout=timeout)


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "2", None, True])
def test_processes_are_counted_from_one(tmp_path, jobs):
    with pytest.raises(ValueError, match=rf"jobs is {jobs!r}; give .* processes"):
        quiet(Plain(), [0], [0], tmp_path / "out", jobs=jobs)
    assert not (tmp_path / "out").exists()


def test_a_sweep_of_nothing_is_refused(tmp_path):
    for lams, seeds in ([], [0]), ([0], []):
        with pytest.raises(ValueError, match=r"no cells.*give at least one lambda and one seed"):
            quiet(Plain(), lams, seeds, tmp_path)


@pytest.mark.parametrize(("lams", "seeds"), [([0, -0.0], [0]), ([1], [3, 3])])
def test_the_same_cell_twice_is_refused(tmp_path, lams, seeds):
    with pytest.raises(ValueError, match=r"plain at lam=\d and seed=\d is given twice; drop one"):
        quiet(Plain(), lams, seeds, tmp_path)


@given(
    st.lists(st.floats(0, allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    st.lists(st.integers(0, 2**61 - 1), min_size=2, max_size=2),
)
def test_cells_share_a_file_only_if_they_are_equal(lams, seeds):
    one, two = (Cell(Plain(), lam, seed) for lam, seed in zip(lams, seeds, strict=True))
    assert (one.path("out") == two.path("out")) == (one == two)
    assert float(re.search("lam=(.*)_seed", one.path("").name).group(1)) == one.lam


def test_an_experiment_is_a_dataclass_with_a_usable_name():
    assert Cell(Plain(), 0.1, 3).path("out").as_posix() == "out/plain/lam=0.1_seed=3.json"
    assert Cell(Plain(), 0.1, 3).config == {"class": "Plain", "factor": 3.0, "pause": 0.0}
    for no_instance in (lambda lam, seed: {}, Plain):
        with pytest.raises(TypeError, match="an instance of a frozen dataclass"):
            Cell(no_instance, 0, 0)
    for bad in ("", "../up", ".hidden", "a/b", None):
        with pytest.raises(TypeError, match="a name for a directory"):
            Cell(Named(bad), 0, 0)


@dataclass(frozen=True)
class Named:
    name: str
    tensor: object = None

    def __call__(self, lam, seed):
        return {}


def test_what_cannot_be_stored_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(TypeError, match=r"^x\['tensor'\] cannot be stored \(a object\)"):
        quiet(Named("x", object()), [0], [0], tmp_path)
    with pytest.raises(ValueError, match=r"factor is 3\.0 there and 2\.0 here; give them diff"):
        run_cells(grid(Plain(), [0], [0]) + grid(Plain(2.0), [0], [0]), tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- what is stored ---


def test_a_stored_cell(tmp_path):
    cells = quiet(Plain(), [0.1], [3], tmp_path)
    path = tmp_path / "plain" / "lam=0.1_seed=3.json"
    text = path.read_text()
    stored = json.loads(text)
    assert [stored] == cells
    assert text == json.dumps(stored, indent=1, sort_keys=True) + "\n"
    assert stored.pop("seconds") >= 0
    assert stored.pop("commit") == commit()
    versions = stored.pop("versions")
    assert versions["torch"] == torch.__version__
    assert versions["python"] == sys.version.split()[0]
    assert stored == {
        "format": 1,
        "experiment": "plain",
        "config": {"class": "Plain", "factor": 3.0, "pause": 0.0},
        "lam": 0.1,
        "seed": 3,
        "status": "done",
        "result": {"value": math.sqrt(3.0 * 0.1 + 3), "path": [0.1 / 3, 3, "text", None]},
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False).filter(
        math.isfinite
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@given(json_values)
def test_every_digit_comes_back(value):
    back = json.loads(json.dumps(as_json("result", {"value": value}), sort_keys=True))
    assert repr(back) == repr({"value": sort_keys(value)})


def sort_keys(value):
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return [sort_keys(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("nan", "result['theta'] cannot be stored"),
        ("numpy nan", "result['ndcg'] cannot be stored"),
        ("infinity", "result['ndcg'] cannot be stored"),
        ("list", "returned [1, 2]; return a dictionary"),
    ],
)
def test_a_result_that_json_cannot_hold_is_a_failure_that_names_it(tmp_path, key, message):
    with pytest.warns(RuntimeWarning, match="1 of 1 cells failed"):
        (cell,) = quiet(Returning(key), [0], [0], tmp_path)
    assert cell["status"] == "failed"
    assert message in cell["error"]["message"]

    def never(constant):
        raise AssertionError(f"{constant} is no JSON")

    json.loads((tmp_path / "returning" / "lam=0_seed=0.json").read_text(), parse_constant=never)


def test_numpy_scalars_are_numbers():
    import numpy as np

    values = as_json("x", {"y": [np.float32(0.1), np.int64(3), np.bool_(True)]})["y"]
    assert values == [float(np.float32(0.1)), 3, True]
    assert [type(v) for v in values] == [float, int, bool]


# --- going on ---


def test_a_repeated_sweep_computes_what_is_missing_and_touches_nothing_else(tmp_path):
    first = quiet(Plain(), [0, 1], range(2), tmp_path)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.rglob("*.json")}
    experiments.calls.clear()
    assert quiet(Plain(), [0, 1], range(2), tmp_path) == first
    assert experiments.calls == []
    more = quiet(Plain(), [1, 2], range(3), tmp_path)
    assert sorted(experiments.calls) == [(1, 2), (2, 0), (2, 1), (2, 2)]
    assert [(c["lam"], c["seed"]) for c in more] == [(a, b) for a in (1, 2) for b in range(3)]
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in before} == before


def test_overwrite_computes_anew(tmp_path):
    first = quiet(Plain(), [0], range(2), tmp_path)
    again = quiet(Plain(), [0], range(2), tmp_path, overwrite=True)
    assert experiments.calls == [(0, 0), (0, 1)] * 2
    assert timeless(first) == timeless(again)


def test_a_file_cut_off_anywhere_counts_as_missing(tmp_path):
    (cell,) = quiet(Plain(), [0], [0], tmp_path)
    path = tmp_path / "plain" / "lam=0_seed=0.json"
    whole = path.read_bytes()
    for length in range(len(whole) - 1):  # the last byte is the newline after the brace
        path.write_bytes(whole[:length])
        assert read_record(path) is None, length
    experiments.calls.clear()
    for rubbish in (b"", whole[:100], b"[]", b"{}", b"\xff\xfe", b'{"format": 1}', b"null"):
        path.write_bytes(rubbish)
        (again,) = quiet(Plain(), [0], [0], tmp_path)
        assert timeless([again]) == timeless([cell])
        assert contents(tmp_path) == {"plain/lam=0_seed=0.json": contents_of(whole)}
    assert len(experiments.calls) == 7


def contents_of(whole):
    return re.sub(r'(?m)^ "seconds": [^,]*,$', "", whole.decode())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda c: c["config"].update(factor=4.0), "factor is 4.0 there and 3.0 here"),
        (lambda c: c["config"].pop("pause"), "pause is 'absent' there and 0.0 here"),
        (lambda c: c["config"].update(depth=2), "depth is 2 there and 'absent' here"),
        (lambda c: c["config"].update({"class": "Other"}), "class is 'Other' there"),
        (lambda c: c.update(seed=1), "seed is 1 there and 0 here"),
        (lambda c: c.update(format=99), "its format is 99, not 1"),
    ],
)
def test_another_setting_is_an_error_with_a_way_out(tmp_path, change, field):
    (cell,) = quiet(Plain(), [0], [0], tmp_path)
    path = tmp_path / "plain" / "lam=0_seed=0.json"
    other = json.loads(path.read_text())
    change(other)
    path.write_text(json.dumps(other))
    with pytest.raises(ValueError, match=r"another `out`, or overwrite=True") as caught:
        quiet(Plain(), [0, 1], [0], tmp_path)
    assert field in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(experiments.calls) == 1  # nothing was computed, nothing overwritten
    assert json.loads(path.read_text()) == other
    assert timeless(quiet(Plain(), [0], [0], tmp_path, overwrite=True)) == timeless([cell])


def test_a_failure_is_recorded_and_does_not_stop_the_others(tmp_path):
    mended = tmp_path / "mended"
    failing = Failing(mended=str(mended))
    with pytest.warns(RuntimeWarning, match=r"2 of 6 cells failed.*lam=0_seed=1\.json: Arith"):
        cells = quiet(failing, [0, 5], range(3), tmp_path)
    assert [c["status"] for c in cells] == ["done", "failed", "done"] * 2
    error = cells[1]["error"]
    assert (error["type"], error["message"]) == ("ArithmeticError", "seed 1 does not converge")
    (frame,) = error["traceback"]
    assert re.fullmatch(
        r"(tests/)?sweep_experiments\.py:\d+ in __call__: raise Arithmetic.*", frame
    )
    assert str(HERE) not in json.dumps(cells)
    assert len(load_cells(tmp_path)) == 4
    assert len(everything(tmp_path)) == 6
    with pytest.warns(RuntimeWarning, match="2 of 6"):  # tried again, failed again
        assert timeless(quiet(failing, [0, 5], range(3), tmp_path)) == timeless(cells)
    mended.touch()
    again = quiet(failing, [0, 5], range(3), tmp_path)
    assert [c["result"]["value"] for c in again] == [0, 1, 2, 5, 6, 7]


def test_sys_exit_in_an_experiment_is_its_own_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(Plain, "__call__", lambda self, lam, seed: sys.exit(3))
    with pytest.warns(RuntimeWarning, match="SystemExit: 3"):
        quiet(Plain(), [0], [0], tmp_path)


@pytest.mark.parametrize("table", [False, True])
def test_another_format_is_refused_by_the_name_of_its_file(tmp_path, table):
    quiet(Plain(), [0], [0], tmp_path)
    file = collect(tmp_path).with_suffix(".json") if table else next(tmp_path.rglob("*.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 2}))
    for read in (load_cells, collect, lambda out: quiet(Plain(), [0], [0], out)):
        with pytest.raises(
            ValueError, match=rf"{file.name} is of another version: its format is 2"
        ):
            read(tmp_path)


def test_load_cells_sorts_and_passes_over_what_is_no_cell(tmp_path):
    run_cells(grid(Plain(), [10, 2], [1, 0]) + grid(Careless(5), [3], [0]), tmp_path)
    (tmp_path / "plain" / "lam=99_seed=0.json").write_text('{"format": 1, "met')
    (tmp_path / "summary.json").write_text("{}")
    found = [(c["experiment"], c["lam"], c["seed"]) for c in load_cells(str(tmp_path))]
    assert found == [
        ("careless", 3, 0), ("plain", 2, 0), ("plain", 2, 1), ("plain", 10, 0), ("plain", 10, 1),
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError, match=r"load_cells: .*nowhere is not a directory"):
        load_cells(tmp_path / "nowhere")


def test_one_bar_for_the_whole(tmp_path, monkeypatch, capsys):
    quiet(Plain(), [0], range(2), tmp_path)
    assert capsys.readouterr().err == ""
    steps = []
    show = running.progress_bar

    def recording(description, total, unit, enabled):
        bar = show(description, total, unit, enabled)
        update = bar.update
        bar.update = lambda n=1: (steps.append((description, n, total)), update(n))
        return bar

    monkeypatch.setattr(running, "progress_bar", recording)
    cells = grid(Plain(), [0, 1], range(2)) + grid(Careless(5), [0], range(2))
    run_cells(cells, tmp_path)
    # What was there before counts from the start; then one step for each cell.
    assert steps == [("sweep", 2, 6)] + [("sweep", 1, 6)] * 4
    assert "sweep: 100%" in capsys.readouterr().err


# --- what cannot be written ---


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_directory_that_refuses_is_named(tmp_path, monkeypatch, code, step):
    """As root no permission binds, so the system calls themselves refuse."""

    def refuse(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "out" / "plain"))) as caught:
        quiet(Plain(), [0], range(3), tmp_path / "out")
    assert caught.value.errno == code
    assert os.strerror(code) in str(caught.value)
    assert experiments.calls == []  # the probe comes before hours of work
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    monkeypatch.undo()
    assert len(quiet(Plain(), [0], range(3), tmp_path / "out")) == 3


def test_an_out_below_a_file_is_named_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"Not a directory: .*file.out"):
        quiet(Plain(), [0], [0], tmp_path / "file" / "out")
    assert experiments.calls == []


def test_a_finished_sweep_can_be_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    cells = quiet(Plain(), [0], range(3), tmp_path)

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert quiet(Plain(), [0], range(3), tmp_path) == cells


# --- processes ---


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_processes_give_the_numbers_of_one(tmp_path, dtype):
    """Even for an experiment that leans on everything global."""
    torch.manual_seed(99)  # the workers know nothing of it
    torch.set_default_dtype(dtype)
    torch.set_num_threads(2)
    try:
        cells = grid(Careless(), [0.5, 3], range(3)) + grid(Plain(), [0.1], range(2))
        one = run_cells(cells, tmp_path / "one", progress=False)
        two = run_cells(cells, tmp_path / "two", progress=False, jobs=2)
        assert torch.get_default_dtype() == dtype
        assert torch.get_num_threads() == 2
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(1)
    assert timeless(one) == timeless(two)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert {c["result"]["dtype"] for c in one[:6]} == {str(dtype)}
    assert {c["result"]["threads"] for c in one[:6]} == {1}
    assert len({c["result"]["numpy"] for c in one[:6]}) == 3  # a stream per seed


def test_a_sweep_leaves_the_global_streams_as_it_found_them(tmp_path):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    quiet(Careless(), [1], range(2), tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_threads_of_one_worker_do_not_disturb_each_other():
    """Two threads, two number formats: each cell sees its own throughout."""
    cells = grid(Slow(), [1], range(4))
    got = {}

    def work(cell, dtype):
        got[cell.seed] = compute(cell, dtype).record["result"]["seen"]

    dtypes = [torch.float32, torch.float64] * 2
    threads = [threading.Thread(target=work, args=pair) for pair in zip(cells, dtypes, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {i: [str(dtype)] * 5 for i, dtype in enumerate(dtypes)}
    assert torch.get_default_dtype() == torch.float32


@dataclass(frozen=True)
class Slow:
    name = "slow"

    def __call__(self, lam, seed):
        seen = []
        for _ in range(5):
            time.sleep(0.002)
            seen.append(str(torch.get_default_dtype()))
        return {"seen": seen}


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_time(tmp_path):
    (tmp_path / "flag").touch()
    experiment = Deadly(str(tmp_path / "flag"))
    cells = quiet(experiment, [0, 1], range(3), tmp_path / "killed", jobs=2)
    assert not (tmp_path / "flag").exists()  # it did die
    assert [c["status"] for c in cells] == ["done"] * 6
    quiet(experiment, [0, 1], range(3), tmp_path / "alive")
    assert contents(tmp_path / "killed") == contents(tmp_path / "alive")


@pytest.mark.slow
def test_workers_that_always_die_are_given_up_and_not_blamed_on_the_cell(tmp_path, monkeypatch):
    rounds = []

    def all_but_one(pending, store, jobs, scheduler, timeout):
        rounds.append([cell.seed for cell in pending.values()])
        for label, cell in [*pending.items()]:
            if cell.seed != 1:
                store(label, compute(cell, torch.float32))
        return MemoryError("the worker is out of memory")

    monkeypatch.setattr(running, "compute_all", all_but_one)
    with pytest.raises(
        RuntimeError, match=r"1 cells could not be run.*MemoryError: the worker is out of.*seed=1"
    ):
        quiet(Plain(), [0], range(4), tmp_path, jobs=2)
    assert rounds == [[0, 1, 2, 3], [1], [1], [1]]
    assert [c["seed"] for c in everything(tmp_path)] == [0, 2, 3]


# --- killed and interrupted ---


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("process")
    command = [sys.executable, "-W", "error", str(HERE / "sweep_process.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["clock", "line"])
def test_killed_twenty_times_and_resumed(process, how):
    """kill -9 at random moments, and at random lines of the code that writes."""
    folder, report = process
    expected = contents(folder / "undisturbed")
    assert len(expected) == 12
    for trial, left in enumerate(report[how]):
        assert left["broken"] == [], "a half file under a cell's name"
        assert contents(folder / f"{how}{trial}") == expected
    assert len(report[how]) == 20
    assert sum(left["code"] == -signal.SIGKILL for left in report[how]) >= 10
    assert sum(0 < left["cells"] < 12 for left in report[how]) >= 5
    if how == "line":  # the seed is fixed: these kills do hit the moment between the two steps
        assert any(left["temporary"] for left in report[how])


def test_two_sweeps_on_one_directory(process):
    folder, report = process
    assert report["pairs"] == [0] * 12
    for trial in range(6):
        assert contents(folder / f"pair{trial}") == contents(folder / "undisturbed")


def test_a_full_disk_is_named_and_leaves_nothing_half(process):
    folder, report = process
    assert str(folder / "full" / "plain") in report["full"]
    assert os.strerror(errno.EFBIG) in report["full"]
    assert [p for p in (folder / "full").rglob("*") if p.is_file()] == []


def test_a_cell_that_another_sweep_finished_meanwhile_is_left_alone(tmp_path, monkeypatch):
    def slow(self, lam, seed):
        quiet(Other(), [0], [0], tmp_path)
        return {"value": 2}

    monkeypatch.setattr(Plain, "__call__", slow)
    (cell,) = quiet(Plain(), [0], [0], tmp_path)
    assert cell["result"] == {"value": 1}
    assert load_cells(tmp_path) == [cell]


def test_two_sweeps_may_try_the_directory_at_the_same_moment(tmp_path, monkeypatch):
    write = _files.write_whole

    def removed_by_the_other(path, content):
        written = write(path, content)
        if path.name == ".probe":
            path.unlink()
        return written

    monkeypatch.setattr(_files, "write_whole", removed_by_the_other)
    assert len(quiet(Plain(), [0], [0], tmp_path)) == 1


@dataclass(frozen=True)
class Other:
    factor: float = 3.0
    pause: float = 0.0
    name = "plain"

    def __call__(self, lam, seed):
        return {"value": 1}


Other.__name__ = "Plain"  # the same settings to the letter: a stand-in for the other process


def test_ctrl_c_keeps_what_is_finished(tmp_path, monkeypatch):
    run = Plain.__call__

    def interrupted(self, lam, seed):
        if seed == 2:
            raise KeyboardInterrupt
        return run(self, lam, seed)

    monkeypatch.setattr(Plain, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quiet(Plain(), [0], range(4), tmp_path)
    assert [c["seed"] for c in load_cells(tmp_path)] == [0, 1]


# --- where it comes from ---


def git(folder, *words):
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


def test_commit_of_a_checkout(tmp_path, monkeypatch):
    package, results, other = (tmp_path / name for name in ("package", "results", "other"))
    for file in (package / "file.py", package / "data.json", results / "a.csv", other / "file.py"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("1")
    monkeypatch.setattr(provenance, "__file__", str(package / "file.py"))
    commit = provenance.commit.__wrapped__  # each time anew
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # one above is not ours
    assert commit() == "unknown"
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "empty")
    # A checkout of something else around an installed package says nothing about the package.
    assert commit() == "unknown"
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "all")
    clean = commit()
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    (results / "a.csv").write_text("2")  # what a run writes is not what it runs
    assert commit() == clean
    for file in (package / "file.py", package / "data.json", other / "file.py"):
        file.write_text("2")
        assert commit() == f"{clean}-dirty"
        file.write_text("1")
    assert commit() == clean
    monkeypatch.setenv("PATH", "")
    assert commit() == "unknown"


# --- one table ---


@given(
    st.lists(
        st.tuples(
            st.dictionaries(
                st.text().filter(lambda t: t.isprintable() and t not in COLUMNS), json_values
            ),
            st.sampled_from(["a", "b-2"]),
            st.floats(0, allow_nan=False, allow_infinity=False),
            st.integers(0, 2**70),
        ),
        unique_by=lambda run: run[1:],
        max_size=6,
    )
)
def test_every_digit_comes_back_from_a_table(runs):
    """And what is absent stays apart from what is None."""
    records = []
    for i, (result, name, lam, seed) in enumerate(runs):
        about = {"format": 1, "experiment": name, "lam": lam, "seed": seed, "seconds": i / 7}
        made = {"commit": f"c{i % 2}", "versions": {"python": str(i % 2)}, "status": "done"}
        records.append({**about, **made, "config": {"class": name}, "result": result})
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder), records, {"command": "as given"})
        back = read_table(Path(folder))
    assert {repr_all(r) for r in back.values()} == {repr_all(r) for r in records}


def repr_all(value):
    return repr(sort_keys(value))


def test_a_collected_sweep_is_read_and_continued_like_any_other(tmp_path):
    cells = quiet(Plain(), [0, 0.1], range(2), tmp_path)
    table = collect(tmp_path, about={"command": "make all"})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["table.csv", "table.json"]
    assert load_cells(tmp_path) == cells
    about = json.loads((tmp_path / "table.json").read_text())
    assert about["command"] == "make all"
    assert about["runs"] == 4
    assert about["experiments"] == {"plain": cells[0]["config"]}
    rows = table.read_text().splitlines()
    assert rows[0] == "experiment,lam,seed,value,path,seconds,made"
    assert rows[4].startswith(f"plain,0.1,1,{math.sqrt(3.0 * 0.1 + 1)!r},")
    experiments.calls.clear()
    more = quiet(Plain(), [0, 0.1, 2], range(2), tmp_path)
    assert experiments.calls == [(2, 0), (2, 1)]
    assert load_cells(tmp_path) == more  # rows and files together
    collect(tmp_path)
    assert load_cells(tmp_path) == more
    with pytest.raises(ValueError, match=r"factor is 3\.0 there and 4\.0 here"):
        quiet(Plain(4.0), [0], [0], tmp_path)
    other = quiet(Plain(4.0), [1], [0], tmp_path, overwrite=True)
    collect(tmp_path)  # a table has one setting for an experiment: the later
    assert load_cells(tmp_path) == other


def test_a_failed_cell_is_no_row_and_stays_to_be_tried_again(tmp_path):
    mended = tmp_path / "mended"
    with pytest.warns(RuntimeWarning, match="1 of 3"):
        quiet(Failing(mended=str(mended)), [0], range(3), tmp_path)
    collect(tmp_path)
    assert [c["seed"] for c in load_cells(tmp_path)] == [0, 2]
    assert [c["status"] for c in everything(tmp_path)] == ["done", "failed", "done"]
    mended.touch()
    assert len(quiet(Failing(mended=str(mended)), [0], range(3), tmp_path)) == 3
    collect(tmp_path)
    assert len(load_cells(tmp_path)) == 3


@pytest.mark.parametrize("writes", range(3))
def test_killed_while_collecting(tmp_path, monkeypatch, writes):
    """After none, one or both of its two writes: nothing is lost, and the next one mends it."""
    monkeypatch.setattr(computing, "commit", lambda: "first")
    quiet(Plain(), [5], range(2), tmp_path)
    collect(tmp_path)
    monkeypatch.setattr(computing, "commit", lambda: "later")
    quiet(Careless(5), [0], range(2), tmp_path)  # another name and origin, before it in order
    cells = load_cells(tmp_path)
    write, count = tables.write_whole, []

    def killed(path, text):
        if len(count) == writes:
            raise KeyboardInterrupt
        count.append(path)
        return write(path, text)

    monkeypatch.setattr(tables, "write_whole", killed)
    monkeypatch.setattr(Path, "rmdir", lambda path: killed(path, ""))  # one file is already gone
    with pytest.raises(KeyboardInterrupt):
        collect(tmp_path)
    monkeypatch.undo()
    assert load_cells(tmp_path) == cells
    collect(tmp_path)
    assert load_cells(tmp_path) == cells


@pytest.mark.parametrize(
    ("name", "message"), [("seed", "is the name of a column; rename"), ("a\rb", "line breaks")]
)
def test_a_result_must_not_have_the_name_of_a_column(tmp_path, monkeypatch, name, message):
    monkeypatch.setattr(Plain, "__call__", lambda self, lam, seed: {name: 3})
    quiet(Plain(), [0], [0], tmp_path)
    with pytest.raises(ValueError, match=message):
        collect(tmp_path)
    assert len(load_cells(tmp_path)) == 1


def test_collecting_waits_for_another_and_outlives_a_killed_one(tmp_path):
    """The lock is a file: whoever has left one behind for long is gone."""
    records = quiet(Plain(), [0], range(2), tmp_path)
    with _files.locked(tmp_path):
        other = threading.Thread(target=collect, args=[tmp_path])
        other.start()
        other.join(0.2)
        assert other.is_alive()
        assert not (tmp_path / "table.csv").exists()
    other.join()
    assert load_cells(tmp_path) == records
    lock = tmp_path / ".lock"
    lock.touch()
    long_ago = time.time() - 31
    os.utime(lock, (long_ago, long_ago))
    collect(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv", "table.json"]
