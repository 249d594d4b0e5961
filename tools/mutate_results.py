"""Would a chapter notice if its stored numbers said something else?

The tool changes one quantity of one method in what a chapter reads of ``results``, runs the
chapter's code, and looks whether a check turns red. Nothing is written. A change that the chapter
shows (in what it prints, in a figure, in a table of verdicts) and that no check notices is a
sentence that nobody guards.

    python -m tools.mutate_results 12                     # every mutation of the tables it reads
    python -m tools.mutate_results 12 --only sex-text     # those whose name contains these words
    python -m tools.mutate_results 12 --list              # their names
    python -m tools.mutate_results 12 --all               # those that were noticed, too, and where

Cells that do not depend on stored numbers are run once. The others are run for each mutation, in a
process of its own. A statement that raises an error counts as a check that turned red.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import multiprocessing
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
import numpy as np

from fairpg_lite import sweeps
from tools.run_chapters import ROOT, chapters, select

#: Code with one of these reads stored numbers.
SOURCES = ('"../results', "Verdicts(", "load_results(", "print_verdicts(")
#: What `experiments.claims` reads for a chapter that names no table of its own.
ALL_TABLES = ("synthetic", "german", "mslr", "yahoo-stand-in", "rich-get-richer")
#: By how much NDCG and ERR are moved, and by what a disparity is multiplied.
SHIFT = 0.03
FACTOR = 1.6

Row = dict[str, Any]
Rows = list[Row]
Change = Callable[[Rows], None]


# Mutations


@dataclass(frozen=True)
class Mutation:
    """One change of one table."""

    directory: str
    experiment: str
    words: str
    """What is changed, such as "disparity x 1.6"."""
    change: Change
    """Changes the experiment's rows in place."""

    @property
    def name(self) -> str:
        """Its name in the report."""
        return f"{self.directory}/{self.experiment}: {self.words}"


def is_utility(column: str) -> bool:
    """Whether a column holds NDCG or ERR."""
    return "ndcg" in column or re.search(r"(^|_)err(_|$)", column) is not None


def is_disparity(column: str) -> bool:
    """Whether a column holds a disparity, a lead or a gap."""
    words = ("d_group", "d_ind", "gap", "luck", "inequality", "leads", "unfair")
    return any(word in column for word in words)


#: Families of columns that are changed together.
FAMILIES: dict[str, Callable[[str], bool]] = {
    "": lambda column: not column.startswith(("sorted_", "train_")) and "estimate" not in column,
    "sorted lists' ": lambda column: column.startswith("sorted_"),
    "training ": lambda column: column.startswith("train_"),
    "estimated ": lambda column: "estimate" in column,
}


def apply(value: Any, function: Callable[[float], float]) -> Any:
    """The function of a number, or of every number of a list."""
    if isinstance(value, list):
        return [apply(each, function) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return function(value)
    return value


def moved(columns: Sequence[str], function: Callable[[float], float]) -> Change:
    """Every number of these columns replaced by a function of it."""

    def change(rows: Rows) -> None:
        for row in rows:
            for column in columns:
                if column in row:
                    row[column] = apply(row[column], function)

    return change


def rearranged(columns: Sequence[str], order: Callable[[list[float]], list[float]]) -> Change:
    """At every lambda what was measured at another one, seed by seed.

    Args:
        columns: The columns that are rearranged.
        order: From the lambdas to those whose numbers stand in their places.
    """

    def change(rows: Rows) -> None:
        lams = sorted({row["lam"] for row in rows})
        taken_from = dict(zip(lams, order(lams), strict=True))
        old = {(row["lam"], row["seed"]): dict(row) for row in rows}
        for row in rows:
            source = old.get((taken_from[row["lam"]], row["seed"]))
            if source is not None:
                row.update({column: source[column] for column in columns if column in source})

    return change


def spread(columns: Sequence[str], factor: float = 6.0) -> Change:
    """Farther from the mean over seeds, which stays: what was clear becomes open."""

    def change(rows: Rows) -> None:
        for lam in {row["lam"] for row in rows}:
            here = [row for row in rows if row["lam"] == lam]
            for column in columns:
                found = [row[column] for row in here if isinstance(row.get(column), float)]
                if len(found) == len(here):
                    centre = float(np.mean(found))
                    # Seeds in turn up and down, so that pairs of methods differ as well.
                    for row in here:
                        row[column] = centre + factor * (row[column] - centre)

    return change


def mutations_of(directory: str, tables: dict[str, Rows]) -> Iterator[Mutation]:
    """All changes of one table.

    Args:
        directory: Its name below ``results``.
        tables: Its rows by experiment.
    """
    names = list(tables)
    for place, experiment in enumerate(names):
        rows = tables[experiment]
        columns = sorted({column for row in rows for column in row} - {"lam", "seed"})
        for family, belongs in FAMILIES.items():
            utility = [c for c in columns if belongs(c) and is_utility(c)]
            disparity = [c for c in columns if belongs(c) and is_disparity(c)]
            if utility:
                up = moved(utility, lambda x: x + SHIFT)
                down = moved(utility, lambda x: x - SHIFT)
                yield Mutation(directory, experiment, f"{family}NDCG + {SHIFT}", up)
                yield Mutation(directory, experiment, f"{family}NDCG - {SHIFT}", down)
            if disparity:
                more = moved(disparity, lambda x: x * FACTOR)
                less = moved(disparity, lambda x: x / FACTOR)
                yield Mutation(directory, experiment, f"{family}disparity x {FACTOR}", more)
                yield Mutation(directory, experiment, f"{family}disparity / {FACTOR}", less)
        weights = [column for column in columns if column.startswith("theta")]
        if "theta1" in weights and "theta2" in weights:
            yield Mutation(directory, experiment, "theta2 x 1.5", moved(["theta2"], _half_more))
        measured = [c for c in columns if is_utility(c) or is_disparity(c) or c in weights]
        if len({row["lam"] for row in rows}) > 1:
            back = rearranged(measured, lambda lams: lams[::-1])
            flat = rearranged(measured, lambda lams: [lams[0]] * len(lams))
            yield Mutation(directory, experiment, "lambda reversed", back)
            yield Mutation(directory, experiment, "all lambdas as the first", flat)
        yield Mutation(directory, experiment, "spread over seeds x 6", spread(measured))
        other = names[(place + 1) % len(names)]
        yield Mutation(
            directory, experiment, f"results of {other}", _taken_over(measured, tables[other])
        )


def _half_more(x: float) -> float:
    return 1.5 * x


def _taken_over(columns: Sequence[str], others: Rows) -> Change:
    """The numbers of another experiment, by the places of lambda and seed."""

    def change(rows: Rows) -> None:
        mine, theirs = (sorted({row["lam"] for row in part}) for part in (rows, others))
        seeds = sorted({row["seed"] for row in others})
        found = {(row["lam"], row["seed"]): row for row in others}
        for row in rows:
            lam = theirs[min(mine.index(row["lam"]), len(theirs) - 1)]
            source = found.get((lam, seeds[row["seed"] % len(seeds)]), {})
            row.update({c: source[c] for c in columns if c in source and c in row})

    return change


# Tables


class Tables:
    """The stored runs, read once, of which an experiment may be changed.

    A chapter reads them by `fairpg_lite.sweeps.load_cells`, which `installed` replaces.
    """

    def __init__(self) -> None:
        self.records: dict[Path, list[dict[str, Any]]] = {}
        self.read = sweeps.load_cells

    def load(self, path: str | Path) -> list[dict[str, Any]]:
        """What `load_cells` returns, from memory."""
        place = Path(path).resolve()
        if place not in self.records:
            self.records[place] = self.read(place)
        return self.records[place]

    def install(self) -> None:
        """Let every module read from memory, also those that are imported from now on."""
        _exchange("load_cells", self.read, self.load)

    def remove(self) -> None:
        """Let every module read files again."""
        _exchange("load_cells", self.load, self.read)

    def change(self, mutation: Mutation) -> None:
        """Put the changed rows of an experiment in the place of the stored ones."""
        place = (ROOT / "results" / mutation.directory).resolve()
        records = []
        changed = []
        for record in self.load(place):
            if record["experiment"] == mutation.experiment:
                row = {"lam": record["lam"], "seed": record["seed"], **record["result"]}
                record = {**record, "result": row}
                changed.append(row)
            records.append(record)
        mutation.change(changed)
        for row in changed:
            del row["lam"], row["seed"]
        self.records[place] = records


def _exchange(name: str, old: Any, new: Any) -> None:
    """Replace one thing by another in all modules that have it by a name."""
    for module in list(sys.modules.values()):
        if getattr(module, name, None) == old:
            setattr(module, name, new)


def by_experiment(records: Iterable[dict[str, Any]]) -> dict[str, Rows]:
    """Rows with lambda, seed and measures by experiment."""
    tables: dict[str, Rows] = {}
    for record in records:
        row = {"lam": record["lam"], "seed": record["seed"], **record["result"]}
        tables.setdefault(record["experiment"], []).append(row)
    return tables


# The chapter's code


@dataclass
class CodeCell:
    """A code cell: its statements, and which names they need, make and change."""

    label: str
    statements: list[ast.stmt]
    is_check: bool
    reads: bool
    """Whether it depends on stored numbers."""
    needs: set[str] = field(default_factory=set)
    makes: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    """Names of things that it may change through a method or an index."""
    made: dict[str, Any] = field(default_factory=dict)
    """What it made, if it does not depend on stored numbers."""


def code_cells(chapter: Path) -> list[CodeCell]:
    """The code cells of a chapter's text, in order."""
    found = []
    for cell in jupytext.read(chapter).cells:
        if cell.cell_type != "code":
            continue
        statements = ast.parse(cell.source).body
        tags = cell.metadata.get("tags", [])
        prompt = cell.metadata.get("mystnb", {}).get("code_prompt_show")
        figure = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        first = cell.source.strip().splitlines()[0] if cell.source.strip() else ""
        one = CodeCell(
            label=prompt or figure or first[:50],
            statements=statements,
            is_check="hide-cell" in tags or "remove-cell" in tags,
            reads=any(is_source(statement) for statement in statements),
        )
        one.needs, one.makes = names_of(statements, set())
        one.changes = changed_names(statements) - imported_names(statements)
        found.append(one)
    spread_dependence(found)
    return found


def is_source(statement: ast.stmt) -> bool:
    """Whether a statement reads stored numbers itself."""
    text = ast.unparse(statement).replace("'", '"')
    return any(source in text for source in SOURCES)


def imported_names(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that imports bind."""
    found = set()
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    return found


def names_of(statements: Iterable[ast.stmt], known: set[str]) -> tuple[set[str], set[str]]:
    """The names that statements need from before, and those that they make.

    Args:
        statements: Run one after the other.
        known: Names that are made already.
    """
    needs: set[str] = set()
    made = set(known)
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            made |= imported_names([statement])
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            inner = {
                argument.arg for argument in ast.walk(statement) if isinstance(argument, ast.arg)
            }
            needs |= names_of(statement.body, inner)[0] - made - {statement.name}
            made.add(statement.name)
        elif isinstance(statement, ast.For | ast.While | ast.If | ast.With):
            heads = [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)]
            for head in heads:
                needs |= loaded_names(head) - made
                made |= stored_names(head)
            for body in (statement.body, getattr(statement, "orelse", [])):
                inner_needs, inner_made = names_of(body, made)
                needs |= inner_needs
                made |= inner_made
        else:
            needs |= loaded_names(statement) - made
            made |= stored_names(statement)
    return needs, made - known


def loaded_names(tree: ast.AST) -> set[str]:
    """Names that code reads, without the variables of its comprehensions and lambdas."""
    local = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            local |= stored_names(node.target)
        elif isinstance(node, ast.arg):
            local.add(node.arg)
    names = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    return names - local


def stored_names(tree: ast.AST) -> set[str]:
    """Names that code assigns."""
    return {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def changed_names(statements: Iterable[ast.stmt]) -> set[str]:
    """Names of things that are changed by an index, an attribute or a method."""
    found: set[str] = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
                found |= loaded_names(node.value)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                called = node.value.func
                found |= loaded_names(called.value) if isinstance(called, ast.Attribute) else set()
    return found


def spread_dependence(cells: Sequence[CodeCell]) -> None:
    """Mark every cell that depends on a cell that reads stored numbers."""
    again = True
    while again:
        again = False
        dependent: set[str] = set()
        maker: dict[str, CodeCell] = {}
        for cell in cells:
            if not cell.reads and (cell.needs | cell.changes) & dependent:
                cell.reads = again = True
            for name in cell.changes if cell.reads else ():
                # What it changes has to be made anew for it.
                if name in maker and not maker[name].reads:
                    maker[name].reads = again = True
            for statement in cell.statements:
                needs, makes = names_of([statement], set())
                if is_source(statement) or (needs | changed_names([statement])) & dependent:
                    dependent |= makes | (changed_names([statement]) & cell.makes)
                else:
                    dependent -= makes
            maker.update(dict.fromkeys(cell.makes, cell))


# Running it


@dataclass
class Outcome:
    """What a run of the dependent cells showed."""

    red: list[str] = field(default_factory=list)
    """Where a statement raised an error."""
    shown: dict[str, str] = field(default_factory=dict)
    """What every visible cell printed or drew."""


def fingerprint() -> str:
    """The numbers and words of all open figures, which are then closed."""
    import matplotlib.pyplot as plt

    parts: list[str] = []
    for number in plt.get_fignums():
        for ax in plt.figure(number).axes:
            for line in ax.lines:
                parts.append(_digits(line.get_xydata()))
            for patch in ax.patches:
                parts.append(_digits(patch.get_path().vertices))
            for drawn in ax.collections:
                parts.append(_digits(drawn.get_offsets()))
                parts += [_digits(path.vertices) for path in drawn.get_paths()]
            parts += [text.get_text() for text in ax.texts]
            parts += [label.get_text() for label in ax.get_yticklabels() + ax.get_xticklabels()]
    plt.close("all")
    return "\n".join(parts)


def _digits(numbers: Any) -> str:
    return np.array2string(np.asarray(numbers, float), precision=5, threshold=sys.maxsize)


def run_cells(
    cells: Iterable[CodeCell],
    names: dict[str, Any],
    chapter: str,
    *,
    first: bool = False,
    stop: bool = False,
) -> Outcome:
    """Execute cells one after the other.

    Args:
        cells: All cells of the chapter.
        names: The chapter's names; it gets new ones.
        chapter: The file that a traceback names.
        first: Run all of them and keep what the independent ones made. Otherwise these are not run.
        stop: End with the first statement that raises an error.
    """
    outcome = Outcome()
    for count, cell in enumerate(cells):
        if not first and not cell.reads:
            names.update(cell.made)
            continue
        out = io.StringIO()
        values = []
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            for statement in cell.statements:
                try:
                    values.append(_run(statement, names, chapter))
                except Exception as error:
                    outcome.red.append(f"{cell.label}: {_where(error, statement)}")
                    if stop:
                        fingerprint()
                        return outcome
            drawn = fingerprint()
        if first and not cell.reads:
            cell.made = {name: names[name] for name in cell.makes if name in names}
        if cell.reads and not cell.is_check:
            outcome.shown[f"{count} {cell.label}"] = out.getvalue() + drawn + "".join(values)
    return outcome


def _run(statement: ast.stmt, names: dict[str, Any], chapter: str) -> str:
    """Run one statement; returns what a page would show of an expression."""
    if isinstance(statement, ast.Expr):
        value = eval(compile(ast.Expression(statement.value), chapter, "eval"), names)
        as_html = getattr(value, "_repr_html_", None)
        return "" if value is None else str(as_html() if as_html else repr(value))
    exec(compile(ast.Module([statement], []), chapter, "exec"), names)
    return ""


def _where(error: Exception, statement: ast.stmt) -> str:
    source = " ".join(ast.unparse(statement).split())
    return f"{type(error).__name__} at {source[:70]}"


def in_child(task: Callable[[], Outcome]) -> Outcome:
    """Run a task in a fork of this process, so that it changes nothing here."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        try:
            sender.send(task())
        except BaseException:
            sender.send(Outcome(red=[f"the chapter ended: {traceback.format_exc(limit=-1)}"]))

    process = context.Process(target=work)
    process.start()
    outcome: Outcome = receiver.recv()
    process.join()
    return outcome


class Laboratory:
    """A chapter that can be run again and again with changed results."""

    def __init__(self, chapter: Path, tables: Tables):
        self.chapter = chapter
        self.tables = tables
        self.cells = code_cells(chapter)
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def first_run(self) -> Outcome:
        """Run the chapter with its own results."""
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt
        import torch

        torch.set_num_threads(1)
        plt.show = lambda *_, **__: None
        os.chdir(ROOT / "book")
        self.tables.install()
        return run_cells(self.cells, self.names, self.chapter.name, first=True)

    def outcome(self, mutation: Mutation, *, stop: bool = True) -> Outcome:
        """What the dependent cells show of a mutation, all of them or up to the first red one."""

        def task() -> Outcome:
            self.tables.change(mutation)
            return run_cells(self.cells, self.names, self.chapter.name, stop=stop)

        return in_child(task)


def tables_of(chapter: Path) -> list[str]:
    """The result directories that a chapter reads."""
    text = chapter.read_text("utf-8")
    named = dict.fromkeys(re.findall(r'"\.\./results/([\w-]+)', text))
    return [name for name in named or ALL_TABLES if (ROOT / "results" / name).is_dir()]


def main(argv: Sequence[str] | None = None) -> int:
    """Try the mutations of one chapter; the exit code is 1 if one of them passed unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("chapter", help="such as 12")
    parser.add_argument("--only", default="", help="mutations whose name contains this")
    parser.add_argument("--without", default="", help="leave out those whose name contains this")
    parser.add_argument("--list", action="store_true", help="print their names")
    parser.add_argument("--all", action="store_true", help="print those that were noticed, too")
    args = parser.parse_args(argv)
    (chapter,) = select([args.chapter], chapters())
    stored = Tables()
    mutations = []
    for directory in tables_of(chapter):
        tables = by_experiment(stored.load(ROOT / "results" / directory))
        mutations += [m for m in mutations_of(directory, tables) if args.only in m.name]
    if args.without:
        mutations = [m for m in mutations if args.without not in m.name]
    if args.list:
        print("\n".join(mutation.name for mutation in mutations))
        return 0
    laboratory = Laboratory(chapter, stored)
    return report(laboratory, mutations, show_all=args.all)


def report(laboratory: Laboratory, mutations: Sequence[Mutation], *, show_all: bool) -> int:
    """Print what every mutation did; returns the exit code."""
    usual = laboratory.first_run()
    if usual.red:
        print("The chapter is red with its own results:", *usual.red, sep="\n  ")
        return 2
    unnoticed = noticed = elsewhere = 0
    print(f"{laboratory.chapter.stem}: {len(mutations)} mutations", flush=True)
    for mutation in mutations:
        outcome = laboratory.outcome(mutation, stop=not show_all)
        changed = [k for k, text in outcome.shown.items() if usual.shown.get(k) != text]
        if outcome.red:
            noticed += 1
            if show_all:
                print(f"red        {mutation.name}", *outcome.red[:3], sep="\n             ")
        elif changed:
            unnoticed += 1
            places = "; ".join(name.split(" ", 1)[1] for name in changed)
            print(f"UNNOTICED  {mutation.name}\n             shows in: {places}", flush=True)
        else:
            elsewhere += 1
            if show_all:
                print(f"not shown  {mutation.name}")
    print(f"{noticed} noticed, {unnoticed} unnoticed, {elsewhere} not shown in this chapter")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
