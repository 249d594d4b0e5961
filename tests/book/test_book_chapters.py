"""Every chapter keeps the rules of tools/check_chapters.py, and each rule catches its violation."""

import re
import shutil

import nbformat
import pytest

from tools.check_chapters import PICTURES, ROOT, files_in, problems
from tools.run_chapters import chapters

CHAPTERS = chapters()
SAMPLE = ROOT / "book" / "01_ten_candidates.md"


@pytest.mark.parametrize("text", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_keeps_the_rules(text):
    assert problems(text) == []


def test_every_notebook_has_its_text():
    notebooks = {p.with_suffix("") for p in (ROOT / "book").rglob("*.ipynb")}
    unpaired = {p for p in notebooks if ".ipynb_checkpoints" not in p.parts}
    assert unpaired == {p.with_suffix("") for p in CHAPTERS}


def test_no_backtick_in_the_first_line_of_a_directive():
    """With one, three backticks open no fence: the page shows the source, and nothing warns."""
    for page in sorted((ROOT / "book").rglob("*.md")):
        for line in page.read_text(encoding="utf-8").splitlines():
            title = re.sub(r"^ *`{3,}(?=[{])", "", line)
            assert title == line or "`" not in title, f"{page.name}: {line}"


@pytest.fixture
def copy(tmp_path):
    """Chapter 1 in a checkout of its own, where it may be spoilt."""
    (tmp_path / "book").mkdir()
    for suffix in (".md", ".ipynb"):
        shutil.copy(SAMPLE.with_suffix(suffix), tmp_path / "book")
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    return tmp_path


def spoil_notebook(root, change):
    path = root / "book" / "01_ten_candidates.ipynb"
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    nbformat.write(notebook, path)
    return problems(path.with_suffix(".md"), root)


def spoil_text(root, pattern, replacement, count=1):
    path = root / "book" / "01_ten_candidates.md"
    changed, hits = re.subn(pattern, replacement, path.read_text(), count=count, flags=re.S)
    assert hits, "the plant did not take"
    path.write_text(changed)
    return problems(path, root)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def with_picture(notebook):
    return next(
        c for c in code_cells(notebook) if any(PICTURES & set(o.get("data", {})) for o in c.outputs)
    )


def with_slider(notebook):
    return next(
        c for c in code_cells(notebook) if any("text/html" in o.get("data", {}) for o in c.outputs)
    )


def test_an_unspoilt_copy_is_clean(copy):
    assert problems(copy / "book" / SAMPLE.name, copy) == []


def never_run(notebook):
    code_cells(notebook)[3].execution_count = None


def error_output(notebook):
    output = nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[])
    code_cells(notebook)[1].outputs.append(output)


def warning_output(notebook):
    output = nbformat.v4.new_output("stream", name="stderr", text="UserWarning")
    code_cells(notebook)[1].outputs.append(output)


def changed_code(notebook):
    code_cells(notebook)[0].source += "\nx = 1"


def changed_prose(notebook):
    notebook.cells[0].source += "\n\nAnother sentence."


def ignored_by_tag(notebook):
    code_cells(notebook)[0].metadata["tags"] = ["nbval-ignore-output"]


def ignored_by_comment(notebook):
    code_cells(notebook)[0].source += "\n# NBVAL_IGNORE_OUTPUT"


def no_asserts(notebook):
    for cell in code_cells(notebook):
        cell.source = re.sub(r"\bassert\b", "bool", cell.source)


def no_alt(notebook):
    with_picture(notebook).metadata["mystnb"]["image"]["alt"] = ""


def no_alt_in_html(notebook):
    for output in with_slider(notebook).outputs:
        output.data["text/html"] = re.sub(r'alt="[^"]*"', 'alt=""', output.data["text/html"])


def too_wide(notebook):
    code_cells(notebook)[1].source += "\n# " + "w" * 90


def too_wide_output(notebook):
    output = nbformat.v4.new_output("stream", name="stdout", text="narrow\n" + "w" * 78)
    code_cells(notebook)[1].outputs.append(output)


def widget_state(notebook):
    notebook.metadata["widgets"] = {}


@pytest.mark.parametrize(
    ("plant", "complaint"),
    [
        (never_run, "not run from top to bottom"),
        (error_output, "ends in an error"),
        (warning_output, "writes to stderr"),
        (changed_code, "text and notebook differ"),
        (changed_prose, "text and notebook differ"),
        (ignored_by_tag, "hidden from nbval"),
        (ignored_by_comment, "hidden from nbval"),
        (no_asserts, "no assert"),
        (no_alt, "no alt text"),
        (no_alt_in_html, "no alt text"),
        (too_wide, "has a line of"),
        (too_wide_output, "prints a line of 78"),
        (widget_state, "state of widgets"),
    ],
)
def test_a_spoilt_notebook_is_caught(copy, plant, complaint):
    assert any(complaint in problem for problem in spoil_notebook(copy, plant))


@pytest.mark.parametrize(
    ("pattern", "replacement", "count", "complaint"),
    [
        (
            r"\{solution-start\} ex-01-coin",
            "{solution-start} ex-01-coyn",
            1,
            "ex-01-coin has no solution",
        ),
        (r":class: dropdown", ":class: tip", 1, "not folded"),
        (r"\{code-cell\}", "{code-block}", 0, "no exercise whose solution is code"),
        (r"tags: \[hide-input\]", "tags: [hide-output]", 1, "differ"),
        (r"\*\*Takeaway\.\*\*", "Takeaway", 1, "question and takeaway"),
        (r"(remember\n\n)- [^\n]*\n", r"\1", 1, "three things"),
        (r"## Three things to remember", "## Summary", 1, "three things"),
    ],
)
def test_a_spoilt_text_is_caught(copy, pattern, replacement, count, complaint):
    assert any(complaint in p for p in spoil_text(copy, pattern, replacement, count))


def test_a_chapter_outside_the_contents_is_caught(copy):
    toc = copy / "_toc.yml"
    toc.write_text(toc.read_text().replace("book/01_ten_candidates", "book/notation"))
    assert any("_toc.yml" in p for p in problems(copy / "book" / SAMPLE.name, copy))


def test_a_missing_notebook_is_caught(copy):
    (copy / "book" / "01_ten_candidates.ipynb").unlink()
    assert "has no notebook" in problems(copy / "book" / SAMPLE.name, copy)[0]


def test_files_in_reads_nested_contents():
    toc = {"root": "a", "parts": [{"chapters": [{"file": "b", "sections": [{"file": "c"}]}]}]}
    assert files_in(toc) == {"a", "b", "c"}
