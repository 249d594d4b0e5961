"""Make the coursework's assignment from its solution: `python tools/make_coursework.py`.

`book/coursework/solution.md` is the only source. The assignment is what remains of it when
- code between `### BEGIN SOLUTION` and `### END SOLUTION` becomes a blank (nbgrader's markers; the
  blank raises where it stands in a function, and is a comment at the top level of a cell),
- cells with the tag `solution` are left out (as the scikit-learn course does): marking notes, and
  whatever only a teacher needs,
- text cells with the tag `answer` become an empty line to write on.
Then the assignment is run, blanks and all, so that the page shows what its checker says at first.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for place in (ROOT / "book" / "coursework", ROOT):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import jupytext  # noqa: E402
import nbformat  # noqa: E402

from checker.given import BLANK  # noqa: E402
from tools import run_chapters  # noqa: E402

SOLUTION = ROOT / "book" / "coursework" / "solution.md"
ASSIGNMENT = SOLUTION.with_name("assignment.md")
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
REGION = re.compile(rf"^([ ]*){BEGIN}\n(.*?)^[ ]*{END}$", re.M | re.S)
COMMENT = "# YOUR CODE HERE"
STUB = f'raise NotImplementedError("{BLANK}")'
LINE = "*Your answer here.*"
NOTE = "<!-- Made from solution.md by tools/make_coursework.py: edit that file, not this one. -->"


def blank(source: str) -> str:
    """Code with every solution replaced by a blank, indented as the solution was."""
    without = REGION.sub(_stub, source)
    if "BEGIN SOLUTION" in without or "END SOLUTION" in without:
        raise ValueError(
            f"make_coursework: {BEGIN} and {END} do not match in the cell\n{source}\n"
            "Each must stand on a line of its own, the first before the second."
        )
    return without


def _stub(region: re.Match[str]) -> str:
    indent = region[1]
    return f"{indent}{COMMENT}\n{indent}{STUB}" if indent else COMMENT


def student_cells(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The cells of the assignment, new ones: nothing of the solution's outputs or notes."""
    made = []
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        if "solution" in tags:
            continue
        if cell.cell_type == "code":
            new = nbformat.v4.new_code_cell(blank(cell.source))
        else:
            new = nbformat.v4.new_markdown_cell(LINE if "answer" in tags else cell.source)
        new.metadata = nbformat.from_dict(dict(cell.metadata))
        if "answer" in tags:
            new.metadata.pop("tags")
        made.append(new)
    return made


def assignment_text(solution: str) -> str:
    """The text of the assignment, from the text of the solution."""
    notebook = jupytext.reads(solution, fmt="md:myst")
    notebook.cells = student_cells(notebook.cells)
    notebook.cells[0].source = f"{notebook.cells[0].source}\n\n{NOTE}"
    text = jupytext.writes(notebook, fmt="md:myst")
    # The version of jupytext is no part of the text: it differs between machines.
    return re.sub(r"^    (format_version|jupytext_version):.*\n", "", text, flags=re.M)


def main() -> int:
    run_chapters.format_code(SOLUTION)
    text = assignment_text(SOLUTION.read_text(encoding="utf-8"))
    if not ASSIGNMENT.exists() or ASSIGNMENT.read_text(encoding="utf-8") != text:
        ASSIGNMENT.write_text(text, encoding="utf-8")
        print(f"{ASSIGNMENT.stem:<32} rewritten")
    stale = [t.stem for t in (SOLUTION, ASSIGNMENT) if not run_chapters.up_to_date(t)]
    return run_chapters.main(stale) if stale else 0


if __name__ == "__main__":
    sys.exit(main())
