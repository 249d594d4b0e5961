"""The rules that every chapter keeps: `python tools/check_chapters.py` prints what breaks one.

nbval compares outputs, but a cell that was never run, a figure without words, or an exercise
without a solution passes it silently. Each rule here is one small function that yields sentences.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import jupytext  # noqa: E402
import nbformat  # noqa: E402
import yaml  # noqa: E402
from jupytext.compare import NotebookDifference, compare_notebooks  # noqa: E402

from tools.run_chapters import chapters  # noqa: E402

COLUMNS = 68  # what a page shows without scrolling, inside a folded solution too
PRINTED = 77  # longer lines of an output wrap
PICTURES = {"image/png", "image/svg+xml"}
LARGEST = 1_500_000  # bytes
UNPUBLISHED = {"book/coursework/solution"}  # run and tested, but no page of the book
EXERCISE = re.compile(r"^(?:```|:::)+\{exercise(?:-start)?\}.*?^:label:\s*(\S+)", re.M | re.S)
SOLUTION = re.compile(r"^(?:```|:::)+\{solution(?:-start)?\}\s+(\S+)", re.M)
Cells = list[nbformat.NotebookNode]


def code(cells: Cells) -> Cells:
    return [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]


def tags(cell: nbformat.NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def drift(text: Path, stored: nbformat.NotebookNode) -> Iterator[str]:
    try:
        compare_notebooks(stored, jupytext.read(text), fmt="md:myst")
    except NotebookDifference as difference:
        yield f"text and notebook differ; `make run-chapters` brings them together:\n{difference}"


def not_run(cells: Cells) -> Iterator[str]:
    counts = [cell.execution_count for cell in code(cells)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"was not run from top to bottom in one go (execution counts {counts})"


def errors(cells: Cells) -> Iterator[str]:
    for cell in code(cells):
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"cell {cell.execution_count} ends in an error: {output.ename}"
            if output.get("name") == "stderr":
                yield f"cell {cell.execution_count} writes to stderr: {output.text[:80]!r}"


def unchecked_outputs(cells: Cells) -> Iterator[str]:
    """The tag that turns nbval off is for live widgets, whose output no page shows."""
    for cell in code(cells):
        off = tags(cell) & {"nbval-ignore-output", "nbval-skip", "raises-exception"}
        marked = re.search(r"#\s*(NBVAL_(IGNORE_OUTPUT|SKIP)|PYTEST_VALIDATE_IGNORE)", cell.source)
        live = "live(" in cell.source and "print(" not in cell.source
        if (off or marked) and not (live and "remove-output" in tags(cell)):
            yield f"cell {cell.execution_count} is hidden from nbval, but is no live widget"


def no_assert(cells: Cells) -> Iterator[str]:
    if not any(re.search(r"^\s*assert\b", cell.source, re.M) for cell in code(cells)):
        yield "checks nothing: there is no assert"


def wordless_figures(cells: Cells) -> Iterator[str]:
    for cell in code(cells):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        for output in cell.outputs:
            data = output.get("data", {})
            if PICTURES & set(data) and len(alt.split()) < 5:
                yield f"cell {cell.execution_count}'s figure has no alt text (mystnb: image: alt:)"
            for image in re.findall(r"<img\b[^>]*>", data.get("text/html", "")):
                if not re.search(r'\balt="[^"]{10,}"', image):
                    yield f"a picture in the HTML of cell {cell.execution_count} has no alt text"


def wide_code(cells: Cells) -> Iterator[str]:
    for cell in code(cells):
        longest = max(len(line) for line in cell.source.splitlines())
        if longest > COLUMNS and not tags(cell) & FOLDED:
            yield f"cell {cell.execution_count} has a line of {longest} > {COLUMNS} columns"


def wide_outputs(cells: Cells) -> Iterator[str]:
    for cell in code(cells):
        for output in cell.outputs:
            lines = (output.get("text") or "").splitlines()
            longest = max(map(len, lines), default=0)
            if longest > PRINTED:
                yield f"cell {cell.execution_count} prints a line of {longest} > {PRINTED} columns"


def exercises(text: Path) -> Iterator[str]:
    """Exercises, each with a folded solution, and one at least whose solution runs."""
    source = text.read_text(encoding="utf-8")
    asked = EXERCISE.findall(source)
    solved = SOLUTION.findall(source)
    for label in sorted(set(asked) - set(solved)):
        yield f"exercise {label} has no solution"
    for label in sorted(set(solved) - set(asked)):
        yield f"solution for {label}, which is no exercise here"
    runnable = re.findall(r"\{solution-start\}.*?\{solution-end\}", source, re.S)
    if not any("{code-cell}" in part for part in runnable):
        yield "has no exercise whose solution is code that runs"
    for part in re.findall(r"\{solution(?:-start)?\}[^\n]*\n(?::[^\n]*\n)*", source):
        if ":class: dropdown" not in part:
            yield f"a solution is not folded (:class: dropdown): {part.splitlines()[0]}"


FOLDED = {"hide-input", "hide-cell", "remove-cell", "remove-input"}
REMEMBER = "\n## Three things to remember\n"


def size(text: Path) -> dict[str, float]:
    """Words of main text, visible lines of code, longest and median cell, visible asserts.

    Folded boxes, solutions and the back of a chapter do not count: a reader may leave them.
    """
    cells = jupytext.read(text).cells
    words, lines, folded, asserts = 0, [], False, 0
    for cell in cells:
        if cell.cell_type == "markdown":
            # One cell may end a solution and begin the next.
            for part in re.split(r"(\{solution-(?:start|end)\})", cell.source):
                if part.startswith("{solution-"):
                    folded = part == "{solution-start}"
                words += 0 if folded else len(main_text(part).split())
        elif cell.cell_type == "code" and not folded and not tags(cell) & FOLDED:
            source = cell.source.strip().splitlines()  # blank lines count: a reader scrolls them
            lines.append(len(source))
            asserts += sum(line.lstrip().startswith("assert ") for line in source)
    return {
        "words": words,
        "visible lines": sum(lines),
        "longest cell": max(lines, default=0),
        "median cell": statistics.median(lines or [0]),
        "visible asserts": asserts,
    }


def main_text(source: str) -> str:
    """Prose without folded boxes, formulas and directives' options."""
    source = re.sub(r"^(`{3,}|:{3,})\{(dropdown|solution)\}.*?^\1$", "", source, flags=re.M | re.S)
    source = re.sub(
        r"^(`{3,}|:{3,})\{[\w-]+\}[^\n]*\n.*?:class:[^\n]*dropdown.*?^\1$",
        "",
        source,
        flags=re.M | re.S,
    )
    return re.sub(r"\$\$.*?\$\$(?: *\([\w-]+\))?|^:\w+:.*$|^%.*$", "", source, flags=re.M | re.S)


def shape(text: Path) -> Iterator[str]:
    """Question, takeaway and picture first, three things to remember: slides are made of these."""
    source = text.read_text(encoding="utf-8")
    if REMEMBER not in source:
        yield "does not end with three things to remember"
        return
    opening = source.split("\n## ")[0]
    if not ("> **Question.**" in opening and "> **Takeaway.**" in opening):
        yield "does not open with its question and takeaway"
    if not re.search(r"\{code-cell\}|\{explorable\}|\{figure\}", opening):
        yield "has no picture before its first section"
    if len(re.findall(r"^- ", source.split(REMEMBER)[1].split("\n## ")[0], re.M)) != 3:
        yield "does not name three things to remember"


def outside_toc(text: Path, root: Path) -> Iterator[str]:
    listed = (root / "_toc.yml").read_text(encoding="utf-8")
    name = text.relative_to(root).with_suffix("").as_posix()
    if (name in files_in(yaml.safe_load(listed))) == (name in UNPUBLISHED):
        fault = "must stay out of" if name in UNPUBLISHED else "is not in"
        yield f"{fault} _toc.yml (file: {name})"


def files_in(toc: object) -> set[str]:
    """Every page that the table of contents names."""
    if isinstance(toc, dict):
        own = {toc[key] for key in ("file", "root") if isinstance(toc.get(key), str)}
        return own.union(*(files_in(value) for value in toc.values()))
    return set().union(*(files_in(value) for value in toc)) if isinstance(toc, list) else set()


def numbered_pages(root: Path = ROOT) -> set[str]:
    """The pages of the numbered parts of the contents: the chapters proper."""
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = [part for part in contents.get("parts", []) if part.get("numbered")]
    return {chapter["file"] for part in parts for chapter in part["chapters"]}


def leftovers(stored: nbformat.NotebookNode, notebook: Path) -> Iterator[str]:
    if "widgets" in stored.metadata:
        yield "stores the state of widgets, which changes on each run"
    size = notebook.stat().st_size
    if size > LARGEST:
        yield f"is {size} bytes large; fewer frames or a lower dpi help (limit {LARGEST})"


RULES = (
    not_run,
    errors,
    unchecked_outputs,
    no_assert,
    wordless_figures,
    wide_code,
    wide_outputs,
)


def problems(text: Path, root: Path = ROOT) -> list[str]:
    """Everything that is wrong with the chapter whose text file this is."""
    notebook = text.with_suffix(".ipynb")
    if not notebook.exists():
        return ["has no notebook; `make run-chapters` makes it"]
    stored = nbformat.read(notebook, as_version=4)
    found = [*drift(text, stored), *outside_toc(text, root), *leftovers(stored, notebook)]
    for rule in RULES:
        found += rule(stored.cells)
    if text.parent.name != "coursework":  # coursework is one long exercise
        found += exercises(text)
        if text.relative_to(root).with_suffix("").as_posix() in numbered_pages(root):
            found += shape(text)
    return found


def print_sizes() -> None:
    """A table of what each chapter asks of a reader."""
    for number, text in enumerate(chapters()):
        measured = size(text)
        if number == 0:
            print(f"{'chapter':<28}" + "".join(f"{name:>16}" for name in measured))
        print(f"{text.stem:<28}" + "".join(f"{value:>16g}" for value in measured.values()))


def main() -> int:
    if "--sizes" in sys.argv:
        print_sizes()
        return 0
    found = [f"{text.stem} {problem}" for text in chapters() for problem in problems(text)]
    print("\n".join(found) if found else f"{len(chapters())} chapters keep the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
