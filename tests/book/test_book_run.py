"""tools/run_chapters.py: repeatable notebooks, written only on change, failures that say where."""

import base64

import nbformat
import pytest

from tools import run_chapters

pytestmark = pytest.mark.build

HEADER = """---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A chapter

"""
CELL = "```{{code-cell}} ipython3\n{}\n```\n\n"


def chapter(book, name, *cells):
    path = book / f"{name}.md"
    path.write_text(HEADER + "".join(CELL.format(cell) for cell in cells))
    return path


@pytest.fixture
def quiet_format(monkeypatch):
    """Leave out ruff where the text's format is not the point."""
    monkeypatch.setattr(run_chapters, "format_code", lambda text: None)


def test_a_run_is_repeatable_and_written_once(tmp_path, capsys):
    drawing = "import matplotlib.pyplot as plt\n\nplt.plot([1, 2])\nplt.show()"
    text = chapter(tmp_path, "01_a", "print(hash('x') == hash('x'))", drawing)
    assert run_chapters.main([], tmp_path) == 0
    notebook = text.with_suffix(".ipynb")
    first = notebook.read_bytes()
    stamp = notebook.stat().st_mtime_ns
    assert "written" in capsys.readouterr().out

    assert run_chapters.main([], tmp_path) == 0
    assert "as stored" in capsys.readouterr().out
    assert run_chapters.main(["--all"], tmp_path) == 0
    assert "unchanged" in capsys.readouterr().out
    assert notebook.read_bytes() == first
    assert notebook.stat().st_mtime_ns == stamp

    stored = nbformat.reads(first.decode(), as_version=4)
    assert set(stored.metadata) <= {"kernelspec", "jupytext"}
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2]
    assert all(set(cell.metadata) <= {"tags", "mystnb"} for cell in stored.cells)
    png = base64.b64decode(code[1].outputs[0].data["image/png"])
    assert b"matplotlib" not in png.lower()
    assert b"tEXt" not in png


def test_a_changed_text_is_run_again(tmp_path, capsys, quiet_format):
    text = chapter(tmp_path, "01_a", "print(1)")
    other = chapter(tmp_path, "02_b", "print(2)")
    assert run_chapters.main([], tmp_path) == 0
    text.write_text(text.read_text().replace("print(1)", "print(3)"))
    capsys.readouterr()
    assert run_chapters.main([], tmp_path) == 0
    said = capsys.readouterr().out.splitlines()
    assert "written" in said[0]
    assert "as stored" in said[1]
    assert '"3\\n"' in text.with_suffix(".ipynb").read_text()
    assert not run_chapters.up_to_date(chapter(tmp_path, other.stem, "print(4)"))


def test_a_failing_cell_is_named(tmp_path, capsys, quiet_format):
    text = chapter(tmp_path, "01_a", "good = 1", "assert good == 2, 'not two'", "print('never')")
    assert run_chapters.main([], tmp_path) == 1
    said = capsys.readouterr().err
    assert "FAILED 01_a" in said
    assert "assert good == 2" in said
    assert "AssertionError: not two" in said
    assert "\x1b" not in said
    assert not text.with_suffix(".ipynb").exists()


def test_ids_come_from_the_text_of_the_cells():
    def ids(*sources):
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        notebook = nbformat.v4.new_notebook(cells=cells)
        run_chapters.with_fixed_ids(notebook)
        nbformat.validate(notebook)
        return [cell.id for cell in cells]

    before, after = ids("a", "b"), ids("a", "new", "b")
    assert before == [after[0], after[2]]
    assert len(set(ids("a", "a", "a"))) == 3


def test_the_code_of_a_text_is_formatted_and_nothing_else(tmp_path):
    text = chapter(tmp_path, "01_a", "x=[1,2]")
    text.write_text(text.read_text() + "Prose with  two spaces and x=[1,2].\n")
    run_chapters.format_code(text)
    after = text.read_text()
    assert "\nx = [1, 2]\n```" in after
    assert "two spaces and x=[1,2]." in after
    assert after.startswith(HEADER)


def test_chapters_are_chosen_by_number_name_or_path(tmp_path):
    known = [tmp_path / "01_a.md", tmp_path / "02_b.md", tmp_path / "coursework" / "week_1.md"]
    assert run_chapters.select(["02"], known) == [known[1]]
    assert run_chapters.select(["01_a", "book/02_b.ipynb"], known) == known[:2]
    assert run_chapters.select(["week_1"], known) == [known[2]]
    with pytest.raises(SystemExit, match=r"no chapter called '07'.*01_a, 02_b"):
        run_chapters.select(["07"], known)


def test_a_live_widget_leaves_no_output(tmp_path, quiet_format):
    cell = (
        ":tags: [remove-output, nbval-ignore-output]\n\n"
        "from explorables.sliders import live\n\nlive(lambda x: print(x), x=(0, 3))"
    )
    text = chapter(tmp_path, "01_a", cell)
    assert run_chapters.main([], tmp_path) == 0
    stored = nbformat.read(text.with_suffix(".ipynb"), as_version=4)
    assert stored.cells[-1].outputs == []
    assert "widgets" not in stored.metadata
