"""Sphinx extension: reads the module's docstrings the way they are written.

They are prose for people in a terminal. Parameters stand as `name: what it is` with an indented
second line, without a heading; properties are sentences. Sphinx and napoleon would read the first
as a definition list and the second as a type with a description. Chapters and labels of equations
stand as plain words, `Chapter 5, eq-05-dind`, which is what `help()` should show; here they become
links, as far as the book has the chapter.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from sphinx.application import Sphinx
from sphinx.ext import napoleon

from chapter_links import chapter_pages


def parameters_as_fields(lines: list[str], names: Collection[str]) -> list[str]:
    """Mark lines `name: ...` as descriptions of the parameters among `names`.

    >>> lines = ["The sum.", "", "a: one", "    term.", "b: another.", "", "c: no."]
    >>> parameters_as_fields(lines, "ab")
    ['The sum.', '', ':param a: one', '    term.', ':param b: another.', '', 'c: no.']
    """

    def marked(line: str) -> str:
        match = re.match(r"(\w+): +(?=\S)", line)
        return f":param {line}" if match and match[1] in names else line

    return [marked(line) for line in lines]


MENTION = re.compile(r"\b([Cc]hapters?) (\d+(?:(?:, | and | to )\d+)*)")
EQUATION = re.compile(r"\beq-(\d\d)-\w+(?:-\w+)*")


def linked(line: str, chapters: Collection[int]) -> str:
    """Turn the chapters that a line names into links, and the equations of those among `chapters`.

    >>> linked("Chapter 5, eq-05-dind; equation (3) of the paper.", {5})
    ':chapter:`Chapter 5`, equation :eq:`eq-05-dind`; equation (3) of the paper.'
    >>> linked("As in chapters 5 and 9, eq-09-gap.", {5})
    'As in chapters :chapter:`5` and :chapter:`9`, eq-09-gap.'
    """

    def named(match: re.Match[str]) -> str:
        if match[2].isdecimal():
            return f":chapter:`{match[0]}`"
        return f"{match[1]} " + re.sub(r"(\d+)", r":chapter:`\1`", match[2])

    def equation(match: re.Match[str]) -> str:
        return f"equation :eq:`{match[0]}`" if int(match[1]) in chapters else match[0]

    return EQUATION.sub(equation, MENTION.sub(named, line))


def parameter_names(thing: Any) -> list[str]:
    try:
        return list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return []


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what in ("function", "method", "class"):
        lines[:] = parameters_as_fields(lines, parameter_names(thing))
    here = chapter_pages(app.env.found_docs)
    lines[:] = [x if x.lstrip().startswith((">>>", "...")) else linked(x, here) for x in lines]
    if what not in ("attribute", "data", "property"):
        napoleon._process_docstring(app, what, name, thing, options, lines)


TUPLE_FIELD = type(NamedTuple("Pair", [("first", int)]).first)


def leave_out(
    app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Fields of a named tuple, whose docstring is "Alias for field number 0": the class says more.

    >>> from collections import namedtuple
    >>> leave_out(None, "class", "x", namedtuple("Point", "x y").x, False, None)
    True
    """
    return True if isinstance(thing, TUPLE_FIELD) else None


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinx.ext.napoleon")
    event = "autodoc-process-docstring"
    theirs = [x for x in app.events.listeners[event] if x.handler is napoleon._process_docstring]
    for listener in theirs:
        app.disconnect(listener.id)
    app.connect(event, process)
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
