"""What a teacher hands out and uploads: `python -m tools.for_teachers handout|nbgrader|gradescope`.

All three are made from `book/coursework/solution.md`, the coursework's only source:
- `handout` writes a zip for students, the whole assignment or one of four weeks: the notebook, as
  plain Jupyter shows it, the checker and the module, and nothing that grades or solves;
- `nbgrader` writes a course folder for `nbgrader generate_assignment`;
- `gradescope` writes an autograder zip whose run leaves `results.json` in Gradescope's format.
"""

from __future__ import annotations

import argparse
import re
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for place in (ROOT / "book" / "coursework", ROOT):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import jupytext  # noqa: E402
import nbformat  # noqa: E402
import yaml  # noqa: E402

from book._ext.offline import launchers, repository  # noqa: E402
from checker import TASKS  # noqa: E402
from tools import make_coursework  # noqa: E402

CHECKER = ROOT / "book" / "coursework" / "checker"
#: The tasks of each of four weekly assignments.
WEEKS = {1: (1, 2), 2: (3, 4), 3: (5, 6), 4: (7, 8)}
GRADING = {"grade.py", "sandbox.py", "__main__.py", "ruff.toml"}
README = """# Coursework: fair exposure from scratch

Open `{notebook}` in Jupyter, from this folder. It needs Python 3.11 or newer with
`pip install jupyterlab "torch>=2.2" "numpy>=1.26" matplotlib`. The rest is in this folder.
"""
# What later weeks use of earlier ones.
EARLIER = """# From the weeks before: an example, and the module's sampler.
example = torch.tensor([1.0, 0.0, 2.0, 0.5])


def sample_rankings(scores, samples, generator):
    return fpg.PlackettLuce(scores).sample((samples,), generator)"""


def plain(text: str) -> str:
    """MyST as plain Jupyter shows it: no roles, no directives.

    >>> plain("See {doc}`chapter 3 <../03_pl>`, {eq}`eq-03-pl` and {py:func}`~a.b.fit`.")
    'See chapter 3, equation `eq-03-pl` and `fit`.'
    """
    text = re.sub(r"^:{3,}\{admonition\} For teachers\n.*?^:{3,}$\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"^<!--.*?-->\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"\{(?:doc|ref|term)\}`([^`<]+?) *<[^`>]*>`", r"\1", text)
    text = re.sub(r"\{eq\}`([^`]*)`", r"equation `\1`", text)
    text = re.sub(r"\{py:\w+\}`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"\{\w+\}`([^`]*)`", r"\1", text)


def macros() -> str:
    """The book's LaTeX macros as a line that Jupyter's MathJax reads."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    defined = config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    lines = []
    for name, value in defined.items():
        body, count = (value, 0) if isinstance(value, str) else value
        lines.append(f"\\newcommand{{\\{name}}}{f'[{count}]' if count else ''}{{{body}}}")
    return f"${''.join(lines)}$"


def links(path: str, address: str | None) -> str:
    """Where the notebook at ``path`` of the repository opens with a kernel; empty without one.

    >>> links("a.ipynb", None)
    ''
    """
    if address is None or not address.startswith("https://github.com/"):
        return ""
    places, name = launchers(address), address.removeprefix("https://github.com/")
    binder = f"{places['binderhub_url']}/v2/gh/{name}/main?labpath={path}"
    colab = f"{places['colab_url']}/github/{name}/blob/main/{path}"
    return f"[Open on Binder]({binder}) · [Open in Colab]({colab})"


def parts(week: int | None) -> list[nbformat.NotebookNode]:
    """The cells of the solution that belong to a week, each heading at the start of its cell."""
    cells: list[nbformat.NotebookNode] = []
    for cell in jupytext.read(make_coursework.SOLUTION).cells:
        pieces = [cell.source]
        if cell.cell_type == "markdown":
            pieces = re.split(r"\n+(?=## )", cell.source)
        for piece in pieces:
            made = nbformat.from_dict({**cell, "source": piece})
            cells.append(made)
    if week is None:
        return cells
    kept, current = [], 0
    for cell in cells:
        heading = re.match(r"## (?:Task (\d))?", cell.source) if cell.cell_type != "code" else None
        if heading:
            current = int(heading[1]) if heading[1] else 0
        if current == 0 or current in WEEKS[week]:
            kept.append(cell)
    first = next(k for k, cell in enumerate(kept) if cell.source.startswith("## Task"))
    if week > 1:
        kept.insert(first, nbformat.v4.new_code_cell(EARLIER))
    kept[0].source = kept[0].source.replace("# Coursework:", f"# Week {week}:", 1)
    return kept


def notebook(cells: Iterable[nbformat.NotebookNode]) -> str:
    """The text of a notebook of these cells, without outputs."""
    made = nbformat.v4.new_notebook()
    made.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    for number, cell in enumerate(cells):
        new = (
            nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
        )
        kept = {k: v for k, v in cell.metadata.items() if k == "nbgrader"}
        source = cell.source if cell.cell_type == "code" else plain(cell.source)
        if source.strip():
            made.cells.append(new(source, id=f"cell-{number}", metadata=kept))
    made.cells[0].source = "\n\n".join(
        part
        for part in (
            made.cells[0].source,
            links("book/coursework/assignment.ipynb", repository()),
            macros(),
        )
        if part
    )
    return nbformat.writes(made)


def student_notebook(week: int | None = None) -> str:
    return notebook(make_coursework.student_cells(parts(week)))


def module_files(without: set[str]) -> dict[str, bytes]:
    """The checker and the module, by their path in a zip."""
    files = [p for p in sorted(CHECKER.iterdir()) if p.suffix in (".py", ".toml")]
    found = {f"checker/{path.name}": path for path in files if path.name not in without}
    for path in sorted((ROOT / "fairpg_lite").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            found[str(path.relative_to(ROOT))] = path
    return {name: path.read_bytes() for name, path in found.items()}


def write_zip(target: Path, files: dict[str, bytes | str]) -> Path:
    """The same bytes for the same files, whenever it is made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name)
            runs = name == "run_autograder" or name.endswith(".sh")
            entry.external_attr = (0o755 if runs else 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return target


def handout(target: Path, week: int | None = None) -> Path:
    name = "assignment.ipynb" if week is None else f"week_{week}.ipynb"
    files: dict[str, bytes | str] = {**module_files(GRADING), name: student_notebook(week)}
    return write_zip(target, {**files, "README.md": README.format(notebook=name)})


# --- nbgrader -----------------------------------------------------------------------------------


def graded(name: str, points: int | None, *, answer: bool) -> dict[str, Any]:
    """nbgrader's mark on a cell: something to answer, something to grade, or both."""
    mark = {"schema_version": 3, "grade_id": name, "grade": points is not None, "task": False}
    mark |= {"solution": answer, "locked": points is not None and not answer}
    return {"nbgrader": mark | ({"points": points} if points is not None else {})}


def nbgrader_cells(cells: Iterable[nbformat.NotebookNode]) -> Iterable[nbformat.NotebookNode]:
    """Answers and checks in cells of their own: a check's last line is the number of points."""
    written = iter("ABC")
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        asked = re.search(r'\n+points = (check\("(task\w+)", .*\))$', cell.source)
        if "solution" in tags:
            continue
        if "answer" in tags:
            name = f"written-{next(written)}"
            text = make_coursework.LINE
            mark = graded(name, 4, answer=True)
            yield nbformat.v4.new_markdown_cell(text, metadata=mark)
        elif cell.cell_type == "code" and asked and make_coursework.BEGIN in cell.source:
            answer, task = cell.source[: asked.start()], asked[2]
            mark = graded(f"{task}-answer", None, answer=True)
            yield nbformat.v4.new_code_cell(answer, metadata=mark)
            mark = graded(task, TASKS[task].points, answer=False)
            yield nbformat.v4.new_code_cell(asked[1], metadata=mark)
        else:
            yield cell


def nbgrader(target: Path, week: int | None = None) -> Path:
    """A course folder: `source/NAME/NAME.ipynb`, with checker and module beside the notebook."""
    name = "fairpg" if week is None else f"fairpg_week_{week}"
    folder = target / "source" / name
    for path, content in module_files(GRADING).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    text = notebook(nbgrader_cells(parts(week)))
    (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
    settings = f'c = get_config()\nc.CourseDirectory.course_id = "{name}"\n'
    (target / "nbgrader_config.py").write_text(settings, encoding="utf-8")
    return folder


# --- Gradescope -----------------------------------------------------------------------------------

SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, to make the image.
set -eu
apt-get update && apt-get install -y python3 python3-pip python3-venv
python3 -m venv /autograder/venv
/autograder/venv/bin/pip install -r /autograder/source/requirements.txt
"""
RUN = """#!/usr/bin/env bash
# Gradescope runs this for each submission; PYTHON, SOURCE, ... are for trying it elsewhere.
cd "${SOURCE:-/autograder/source}"
exec "${PYTHON:-/autograder/venv/bin/python}" gradescope_run.py \\
  "${SUBMISSION:-/autograder/submission}" "${RESULTS:-/autograder/results/results.json}"
"""


def gradescope(target: Path) -> Path:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lock if re.match(r"(torch|numpy|matplotlib)==", line)]
    files: dict[str, bytes | str] = {
        **module_files({"ruff.toml"}),
        "setup.sh": SETUP,
        "run_autograder": RUN,
        "requirements.txt": "\n".join([*pinned, ""]),
        "gradescope_run.py": Path(__file__).with_name("gradescope_run.py").read_bytes(),
    }
    return write_zip(target, files)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.for_teachers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=["handout", "nbgrader", "gradescope"])
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "coursework", help="a folder")
    parser.add_argument("--week", type=int, choices=sorted(WEEKS), help="one of four assignments")
    given = parser.parse_args(arguments)
    name = "assignment" if given.week is None else f"week_{given.week}"
    if given.what == "handout":
        made = handout(given.out / f"{name}.zip", given.week)
    elif given.what == "nbgrader":
        made = nbgrader(given.out / "nbgrader", given.week)
    else:
        made = gradescope(given.out / "autograder.zip")
    print(f"Made {made}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
