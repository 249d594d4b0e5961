"""The tools for whoever works on the repository: what they find."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch

from tools import fragile, portable

ROOT = Path(__file__).resolve().parents[2]
WORDS = "tests look at the built pages in a browser and were left out"


def run_pytest(path, *words):
    """What a test run says with this PATH, in its last line and before it."""
    run = [sys.executable, "-m", "pytest", "-q", *words]
    done = subprocess.run(run, cwd=ROOT, env={"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    *before, last = done.stdout.splitlines()
    return last, "\n".join(before)


@pytest.mark.thorough
@pytest.mark.slow
def test_the_last_line_says_that_there_was_no_browser(tmp_path):
    """With a PATH that has no Chromium."""
    last, _ = run_pytest(
        str(tmp_path), "-p", "no:cacheprovider", "tests/book/test_browser_checks.py"
    )
    assert WORDS in last
    assert last.split()[0].isdigit()


@pytest.mark.thorough
@pytest.mark.slow
def test_a_checkout_that_cannot_be_written_and_no_test_left_out(tmp_path):
    """The cache has no place: that is said, and nothing fails. Nor is a word said of browsers."""
    test = "tests/module/test_import.py::test_no_module_imports_itself_by_a_detour"
    last, before = run_pytest(str(tmp_path), "-o", "cache_dir=/dev/null/none", test)
    assert WORDS not in last
    assert "could not create cache path" in before


# --- other machines ---


@pytest.mark.parametrize(
    ("level", "able"),
    [("DEFAULT", set()), ("NEON", set()), ("AVX2", {"avx2"}), ("AVX512", {"avx2", "avx512"})],
)
def test_a_processor_imitates_only_what_it_can_do(level, able):
    for name, profile in portable.PROFILES.items():
        kind = name.split(",")[0]
        assert portable.can_run(profile, level) == (kind not in ("avx2", "avx512") or kind in able)


def test_the_environment_of_a_profile(monkeypatch):
    """Only features that NumPy has here are switched off, and nobody else's switches stay."""
    monkeypatch.setenv("MKL_CBWR", "AVX")
    found = portable.environment(portable.PROFILES["avx2, 2 threads"], ["AVX2", "AVX512F"])
    assert found["NPY_DISABLE_CPU_FEATURES"] == "AVX512F"
    assert found["FAIRPG_TEST_THREADS"] == "2"
    assert "MKL_CBWR" not in found
    old = portable.environment(portable.PROFILES["old"], ["AVX2", "AVX512F"])
    assert old["NPY_DISABLE_CPU_FEATURES"] == "AVX2 AVX512F"
    assert "NPY_DISABLE_CPU_FEATURES" not in portable.environment(portable.PROFILES["old"], [])


def test_a_changed_cell_is_named_in_the_table(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase classname='book.11_x' name='Cell 7'/>"
        "<testcase classname='book.11_x' name='Cell 8'><failure/></testcase>"
        "<testcase classname='tests.a' name='b'><skipped/></testcase></testsuite></testsuites>"
    )
    found = portable.read_report(report)
    assert (found.passed, found.failed) == (1, ["11_x: Cell 8"])
    assert "under old: 11_x: Cell 8" in portable.table({"old": (found, portable.Outcome())})


def test_what_cannot_be_run_is_said_and_an_unknown_profile_refused(monkeypatch, capsys):
    monkeypatch.setattr(portable, "machine", lambda: ("AVX2", ["AVX2"]))
    monkeypatch.setattr(portable, "run", lambda arguments, env: portable.Outcome(passed=3))
    assert portable.main(["--profiles", "avx512", "native", "--tests"]) == 0
    said = capsys.readouterr().out
    assert "Left out: avx512 needs AVX512" in said
    assert "Nothing changes under any profile. 1 profiles could not be tried here." in said
    with pytest.raises(SystemExit, match="no profile 'pentium'"):
        portable.main(["--profiles", "pentium"])


# --- fragile numbers ---


def test_moved_by_one_part_and_no_more():
    x = torch.tensor([0.1, 0.1, 2.0, 0.0, -0.7, 1e9 + 0.5], dtype=torch.float64)
    new = fragile.moved(x)
    assert new[0] == new[1] != x[0]
    assert new[2:4].tolist() == [2.0, 0.0]
    assert ((new - x).abs() <= 1e-12 * x.abs()).all()
    single = torch.rand(1000)
    assert 100 < int((fragile.moved(single) != single).sum()) <= 1000
    assert torch.allclose(fragile.moved(single), single, rtol=2e-7, atol=0)
    assert fragile.moved(torch.arange(3)).tolist() == [0, 1, 2]


def book_of(*printed):
    cell = nbformat.v4.new_code_cell
    out = nbformat.v4.new_output
    return nbformat.v4.new_notebook(
        cells=[cell("x", outputs=[out("stream", text=text)]) for text in printed]
    )


def test_a_number_that_moved_is_named():
    found = fragile.compare(book_of("a .66 of 1,024", "-2e-5"), book_of("a .65 of 1,024", "-2e-5"))
    assert (found.numbers, found.moved) == (3, ["cell 0: .66 became .65"])
    assert fragile.compare(book_of("yes 1"), book_of("no 1")).moved == ["cell 0: other words"]


@pytest.mark.thorough
@pytest.mark.slow
def test_a_fragile_chapter_is_found(tmp_path, capsys):
    """Two numbers from the same input: one survives, of the other too many digits are printed."""
    source = 'import torch\nx = torch.tensor([0.3], dtype=torch.float64)\nprint(f"{x[0]:.4f}")'
    cells = [source, 'print(f"{1e11 * (x[0] - 0.3):.4f}")', "assert x[0] == 0.3"]
    there = "import torch; assert torch.tensor(0.3, dtype=torch.float64) == 0.3"  # a worker
    start = f'subprocess.check_call([sys.executable, "-c", "{there}"])'
    cells.append(f"import subprocess, sys\n{start}")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    for cell, text in zip(book.cells, ("0.3000\n", "0.0000\n", "", ""), strict=True):
        cell.outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
    nbformat.write(book, tmp_path / "01_a.ipynb")
    (tmp_path / "01_a.md").touch()
    assert fragile.main([], tmp_path) == 1
    said = capsys.readouterr().out
    assert "2 printed numbers, 1 moved; 2 cells failed a check of their own." in said
    assert "cell 1: 0.0000 became" in said
