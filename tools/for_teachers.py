"""What a teacher hands out and uploads: `python -m tools.for_teachers handout|nbgrader|gradescope`.

All three are made from `book/coursework/solution.md`, the coursework's only source:
- `handout` writes a zip for students, the whole assignment or one of four weeks: the notebook, as
  plain Jupyter shows it, the checker and the module, and nothing that grades or solves; with
  `--seed` all numbers are others, with `--students` everybody gets a zip with other numbers;
- `nbgrader` writes a course folder for `nbgrader generate_assignment`;
- `gradescope` writes an autograder zip whose run leaves `results.json` in Gradescope's format.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import sys
import zipfile
from collections.abc import Iterable
from functools import lru_cache
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
from checker import TASKS, WEEKS, tasks_of, written_of  # noqa: E402
from checker.names import as_cell, as_file_name, as_text  # noqa: E402
from tools import make_coursework  # noqa: E402

CHECKER = ROOT / "book" / "coursework" / "checker"
#: What only a teacher needs.
GRADING = {
    "__main__.py",
    "bubblewrap.py",
    "collect.py",
    "grade.py",
    "names.py",
    "report.py",
    "ruff.toml",
    "sandbox.py",
}
SEED = "SEED = 2026"
README = """# Coursework: fair exposure from scratch

Open `{notebook}` in Jupyter, from this folder:

    python -m venv venv
    venv/bin/python -m pip install jupyterlab torch numpy matplotlib
    venv/bin/python -m jupyterlab {notebook}

(on Windows `venv\\Scripts\\python` instead of `venv/bin/python`). Python must be 3.11 or newer. The
rest, the checker and the module, is in this folder; nothing else is downloaded.
The chapters that the tasks name are those of the book{book}.
Hand in the notebook `{notebook}`, saved with its outputs, and nothing else.
"""
# What later weeks use of earlier ones.
EARLIER = """# From the weeks before: an example, and the module's sampler.
example = torch.tensor([1.0, 0.0, 2.0, 0.5])


def sample_rankings(scores, samples, generator):
    return fpg.PlackettLuce(scores).sample((samples,), generator)"""


def plain(text: str) -> str:
    """MyST as plain Jupyter shows it: no roles, no directives.

    >>> plain("See {doc}`chapter 3 <../03_pl>`, {eq}`eq-03-pl` and {py:func}`~a.b.fit`.")
    'See chapter 3, equation (3.1) and `fit`.'
    """
    text = re.sub(r"^:{3,}\{admonition\} For teachers\n.*?^:{3,}$\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"^<!--.*?-->\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"\{(?:doc|ref|term)\}`([^`<]+?) *<[^`>]*>`", r"\1", text)
    text = re.sub(r"\{eq\}`([^`]*)`", lambda found: f"equation {equation(found[1])}", text)
    text = re.sub(r"\{py:\w+\}`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"\{\w+\}`([^`]*)`", r"\1", text)


@lru_cache(maxsize=64)
def equation(label: str) -> str:
    """The number that the book prints for an equation.

    >>> equation("eq-06-trick")
    '(6.2)'
    """
    chapter = label.split("-")[1]
    (text,) = (ROOT / "book").glob(f"{chapter}_*.md")
    labels = re.findall(r"^\$\$ \((eq-[\w-]+)\)$", text.read_text(encoding="utf-8"), re.M)
    return f"({int(chapter)}.{1 + labels.index(label)})"


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
    cells = [cell for cell in cells if "book-only" not in cell.metadata.get("tags", [])]
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
    kept[0].source = f"# Week {week}: fair exposure from scratch\n\n{announcement(week)}"
    for cell in kept:
        cell.source = cell.source.replace("begin(seed=SEED)", f"begin(seed=SEED, week={week})")
    return kept


def announcement(week: int) -> str:
    """What a week's notebook says at its top.

    >>> announcement(2)
    'Tasks 3 and 4, 38 points, and the written answer A.'
    """
    first, second = WEEKS[week]
    points = sum(TASKS[name].points for name in tasks_of(week))
    text = f"Tasks {first} and {second}, {points} points"
    written = written_of(week)
    if written:
        many = "answers" if len(written) > 1 else "answer"
        text += f", and the written {many} {' and '.join(written)}"
    return f"{text}."


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


def student_notebook(week: int | None = None, seed: int | None = None) -> str:
    """The notebook with its blanks; ``seed`` changes all of its numbers."""
    cells = make_coursework.student_cells(parts(week))
    if seed is not None:
        for cell in cells:
            cell.source = cell.source.replace(SEED, f"SEED = {seed}")
    return notebook(cells)


def solved_notebook(week: int | None = None) -> nbformat.NotebookNode:
    """The same notebook with the solutions in it, as a very good student hands it in."""
    cells = [cell for cell in parts(week) if "solution" not in cell.metadata.get("tags", [])]
    return nbformat.reads(notebook(cells), as_version=4)


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


def handout(target: Path, week: int | None = None, seed: int | None = None) -> Path:
    """Write the zip for students."""
    name = "assignment.ipynb" if week is None else f"week_{week}.ipynb"
    files: dict[str, bytes | str] = {**module_files(GRADING), name: student_notebook(week, seed)}
    address = repository()
    readme = README.format(notebook=name, book=f", {address}" if address else "")
    return write_zip(target, {**files, "README.md": readme})


def read_students(path: Path) -> list[str]:
    """The names in the column ``student`` of a table, or one name on each line."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    lines = [line for line in lines if line]
    mark = next((mark for mark in (";", "\t", ",") if lines and mark in lines[0]), None)
    if mark is not None:
        rows = csv.DictReader(lines, delimiter=mark)
        names = {name.strip().lower(): name for name in rows.fieldnames or []}
        if "student" not in names:
            raise ValueError(f"{path}: the first line is {lines[0]!r}; name a column student.")
        lines = [str(row[names["student"]]).strip() for row in rows]
    elif lines and lines[0].lower() == "student":
        lines = lines[1:]
    if not lines:
        raise ValueError(f"{path}: there is no name in it.")
    repeated = sorted({name for name in lines if lines.count(name) > 1})
    if repeated:
        raise ValueError(f"{path}: {as_text(repeated[0])} is there twice; give everybody a name.")
    return lines


def handouts(target: Path, students: Path, week: int | None, seed: int | None) -> Path:
    """A zip for each student with other numbers in it, and the table for `grade --seeds`."""
    names = read_students(students)
    draw = random.Random(seed)
    seeds = draw.sample(range(1, 10**6), len(names))
    for name, own in zip(names, seeds, strict=True):
        handout(target / f"{as_file_name(name)}.zip", week, own)
    table = target / "seeds.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["student", "seed"])
        writer.writerows(
            [as_cell(as_text(name)), own] for name, own in zip(names, seeds, strict=True)
        )
    return table


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
    settings = 'c = get_config()\nc.CourseDirectory.course_id = "fairpg"\n'
    (target / "nbgrader_config.py").write_text(settings, encoding="utf-8")
    return folder


# --- Gradescope -----------------------------------------------------------------------------------

SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, to make the image. Its default image is Ubuntu 22.04, whose python3 is
# 3.10; Ubuntu has 3.11 beside it.
set -eu
apt-get update
apt-get install -y python3 python3-venv
python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  apt-get install -y python3.11 python3.11-venv
  python=python3.11
fi
"$python" -m venv /autograder/venv
# PyTorch for processors only: the other one has gigabytes for graphics cards.
/autograder/venv/bin/pip install --extra-index-url https://download.pytorch.org/whl/cpu \\
  -r /autograder/source/requirements.txt
"""
RUN = """#!/usr/bin/env bash
# Gradescope runs this for each submission; PYTHON, SOURCE, ... are for trying it elsewhere.
cd "${{SOURCE:-/autograder/source}}"
exec "${{PYTHON:-/autograder/venv/bin/python}}" gradescope_run.py \\
  "${{SUBMISSION:-/autograder/submission}}" "${{RESULTS:-/autograder/results/results.json}}" {week}
"""


def gradescope(target: Path, week: int | None = None) -> Path:
    """Write the autograder's zip, for all tasks or for those of a week."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lock if re.match(r"(torch|numpy|matplotlib)==", line)]
    files: dict[str, bytes | str] = {
        **module_files({"ruff.toml"}),
        "setup.sh": SETUP,
        "run_autograder": RUN.format(week=week or ""),
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
    parser.add_argument("--seed", type=int, help="handout: another seed, so other numbers")
    parser.add_argument(
        "--students", type=Path, help="handout: a list of names; a zip with its own seed for each"
    )
    options = parser.parse_args(arguments)
    name = "assignment" if options.week is None else f"week_{options.week}"
    try:
        if options.what == "handout" and options.students:
            made = handouts(options.out / name, options.students, options.week, options.seed)
        elif options.what == "handout":
            made = handout(options.out / f"{name}.zip", options.week, options.seed)
        elif options.what == "nbgrader":
            made = nbgrader(options.out / "nbgrader", options.week)
        else:
            zipped = "autograder.zip" if options.week is None else f"autograder_{name}.zip"
            made = gradescope(options.out / zipped, options.week)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(f"Made {made}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
