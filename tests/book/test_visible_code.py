"""The code that a reader sees runs by itself, in every chapter.

A chapter has three kinds of code cells. *Visible* cells stand open on the page (those of a solution
too: opening it shows them). *Figure* cells are folded, and the page shows what they draw. *Check*
cells are folded with all they print, and a reader may skip them. Hence two rules:

1. no visible cell and no figure cell needs a name that only a check cell defines;
2. no visible cell needs a name that only a figure cell defines.

A name that a check binds again belongs to the check from there on: who skipped it has another
value. The names of all chapters are read in a second, without running anything. The visible cells
of some chapters are also executed alone, and must print what the page shows.
"""

import ast
import builtins
import contextlib
import io
import symtable
import warnings

import jupytext
import nbformat
import pytest
import torch

from tools.check_chapters import ROOT, tags
from tools.run_chapters import chapters

# The visible cells of chapters 7, 12 and 14 take too long to be run twice in one suite.
LONG = ("07", "12", "14")
EXECUTED = [path for path in chapters() if path.stem[0].isdigit() and path.stem[:2] not in LONG]

CHECK = {"hide-cell", "remove-cell"}
FIGURE = {"hide-input", "remove-input"}
RUNS_WHERE_IT_STANDS = {"listcomp", "setcomp", "dictcomp", "genexpr"}
ALWAYS_THERE = {*dir(builtins), "__name__", "display", "get_ipython"}


def kind(cell):
    """What a code cell is to the reader."""
    if tags(cell) & CHECK:
        return "check"
    return "figure" if tags(cell) & FIGURE else "visible"


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def names_of(source):
    """The names that a cell binds, needs at once, and needs when its functions are called."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    module = symtable.symtable("\n".join(lines), "cell", "exec")
    bound = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    needed_at_once = set()
    needed_later = set()

    def visit(table, is_called_later):
        for symbol in table.get_symbols():
            is_of_the_module = table is module or symbol.is_global()
            if is_of_the_module and symbol.is_referenced():
                needed = needed_later if is_called_later else needed_at_once
                needed.add(symbol.get_name())
        for child in table.get_children():
            runs_here = child.get_type() == "class" or child.get_name() in RUNS_WHERE_IT_STANDS
            visit(child, is_called_later or not runs_here)

    visit(module, is_called_later=False)
    own = bound - read_before_bound("\n".join(lines))
    # What `x += 1` reads is no reference to the symbol table.
    needed_at_once |= bound - own
    return bound, needed_at_once - own, needed_later - own


SCOPES = (
    *(ast.FunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def outside_scopes(node):
    """The nodes of a statement that belong to the cell itself, not to a function in it."""
    if not isinstance(node, SCOPES):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from outside_scopes(child)


def read_before_bound(source):
    """The names whose first use in a cell stands before the cell binds them, as in `x = x + 1`."""
    first_read = {}
    first_bound = {}

    def keep(first, name, place):
        first[name] = min(place, first.get(name, place))

    for statement in ast.parse(source).body:
        for node in outside_scopes(statement):
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                end = (node.end_lineno, node.end_col_offset)
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)):
                    keep(first_bound, name, end)
                    if isinstance(node, ast.AugAssign):
                        keep(first_read, name, (node.lineno, node.col_offset))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                keep(first_read, node.id, (node.lineno, node.col_offset))
            elif isinstance(node, (ast.For, ast.With)):
                for n in ast.walk(node):
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                        keep(first_bound, n.id, (node.lineno, node.col_offset))
    return {name for name, place in first_read.items() if place < first_bound.get(name, place)}


def faults(cells, folded=("check",)):
    """A sentence for each name that an open cell needs and that only a `folded` cell gives it."""
    kinds = [kind(cell) for cell in cells]
    names = [names_of(cell.source) for cell in cells]
    open_somewhere = set()
    for sort, (bound, _, _) in zip(kinds, names, strict=True):
        if sort not in folded:
            open_somewhere |= bound
    last_bound_by = {}
    found = []
    for number, (sort, (bound, at_once, later)) in enumerate(zip(kinds, names, strict=True), 1):
        if sort not in folded:
            for name in sorted((at_once | later) - ALWAYS_THERE):
                where = f"{sort} cell {number} needs `{name}`"
                if last_bound_by.get(name) in folded:
                    found.append(f"{where}, which a {last_bound_by[name]} cell bound last")
                elif name not in last_bound_by and not (name in later and name in open_somewhere):
                    found.append(f"{where}, which no cell before it defines")
        for name in bound:
            last_bound_by[name] = sort
    return found


@pytest.mark.parametrize("text", chapters(), ids=lambda path: path.stem)
def test_no_open_cell_needs_a_check(text):
    found = faults(code_cells(jupytext.read(text)))
    assert found == []


@pytest.mark.parametrize("text", chapters(), ids=lambda path: path.stem)
def test_no_visible_cell_needs_a_folded_figure(text):
    found = faults(code_cells(jupytext.read(text)), folded=("check", "figure"))
    assert found == []


@pytest.fixture
def as_in_a_new_kernel(monkeypatch):
    """A chapter sets the default dtype and runs in its own folder; afterwards all is as before."""
    monkeypatch.chdir(ROOT / "book")
    before = torch.get_default_dtype()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pytest would make them errors; a kernel does not
        yield
    torch.set_default_dtype(before)


def printed(cell):
    """What the page shows of a cell's printed text."""
    return "".join(out.text for out in cell.outputs if out.output_type == "stream")


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("text", EXECUTED, ids=lambda path: path.stem)
def test_the_visible_cells_print_what_the_page_shows(text, as_in_a_new_kernel):
    stored = nbformat.read(text.with_suffix(".ipynb"), as_version=4)
    namespace = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(stored), 1):
        if kind(cell) == "visible":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(cell.source, f"{text.stem}, cell {number}", "exec"), namespace)
            assert said.getvalue() == printed(cell), f"cell {number} prints something else"


def notebook(*cells):
    """Code cells from pairs of a tag and a source."""
    made = []
    for tag, source in cells:
        metadata = {"tags": [tag]} if tag else {}
        made.append(nbformat.v4.new_code_cell(source, metadata=metadata))
    return made


VISIBLE, A_FIGURE, A_CHECK = "", "hide-input", "hide-cell"


@pytest.mark.parametrize(
    "cells",
    [
        [(A_CHECK, "x = 1"), (VISIBLE, "print(x)")],
        [(A_CHECK, "x = 1"), (A_FIGURE, "print(x)")],
        [("remove-cell", "import math"), (VISIBLE, "def f():\n    return math.pi")],
        [(VISIBLE, "x = 1"), (A_CHECK, "x = 2"), (VISIBLE, "print(x)")],
        [(A_CHECK, "n = 3"), (VISIBLE, "[n * k for k in range(3)]")],
        [(A_CHECK, "def f():\n    pass"), (VISIBLE, "class A:\n    g = f()")],
        [(VISIBLE, "print(x)"), (VISIBLE, "x = 1")],
        [(A_CHECK, "f = 1"), (VISIBLE, "lambda: f")],
        [(A_CHECK, "x = 1"), (VISIBLE, "x = x + 1")],
        [(A_CHECK, "x = 1"), (VISIBLE, "x += 1")],
    ],
)
def test_a_need_of_a_check_is_found(cells):
    assert len(faults(notebook(*cells))) == 1


@pytest.mark.parametrize(
    "cells",
    [
        [(VISIBLE, "x = 1"), (A_CHECK, "y = x"), (VISIBLE, "print(x)")],
        [(A_FIGURE, "x = 1"), (VISIBLE, "print(x)")],
        [(A_CHECK, "x = 1"), (VISIBLE, "x = 2\nprint(x)")],
        [(VISIBLE, "def f():\n    return x"), (VISIBLE, "x = 1"), (VISIBLE, "f()")],
        [(A_CHECK, "x = 1"), (VISIBLE, "def f(x):\n    return x"), (A_CHECK, "print(x, f)")],
        [(A_CHECK, "x = 1"), (VISIBLE, "for x in range(3):\n    print(x)")],
        [(A_CHECK, "x = 1"), (VISIBLE, "x = 1\nx = x + 1")],
        [(A_CHECK, "x = 1"), (VISIBLE, "print([x for x in range(3)])")],
        [(VISIBLE, "%matplotlib inline\nprint(len('a'))")],
    ],
)
def test_what_an_open_cell_defines_is_no_fault(cells):
    assert faults(notebook(*cells)) == []


def test_a_need_of_a_figure_is_found_where_it_is_asked_for():
    cells = notebook((A_FIGURE, "x = 1"), (VISIBLE, "print(x)"), (A_FIGURE, "print(x)"))
    assert faults(cells) == []
    assert len(faults(cells, folded=("check", "figure"))) == 1
