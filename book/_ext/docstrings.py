"""Sphinx extension: reads the module's docstrings the way they are written.

They are prose for people in a terminal. Parameters stand as `name: what it is` with an indented
second line, without a heading; properties are sentences. Sphinx and napoleon would read the first
as a definition list and the second as a type with a description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext import napoleon


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


def parameter_names(thing: Any) -> list[str]:
    try:
        return list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return []


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what in ("function", "method", "class"):
        lines[:] = parameters_as_fields(lines, parameter_names(thing))
    if what not in ("attribute", "data", "property"):
        napoleon._process_docstring(app, what, name, thing, options, lines)


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinx.ext.napoleon")
    event = "autodoc-process-docstring"
    theirs = [x for x in app.events.listeners[event] if x.handler is napoleon._process_docstring]
    for listener in theirs:
        app.disconnect(listener.id)
    app.connect(event, process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
