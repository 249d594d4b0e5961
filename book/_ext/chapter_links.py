"""Sphinx extension: the role `chapter`, a link to a chapter by its number, also in docstrings,
and the numbers of figures, formulas and exercises on pages that are no chapters.

``{chapter}`chapter 5` `` shows "chapter 5" and leads there. The chapters are the numbered pages of
_toc.yml. A number that is none of them is a warning, and so fails the build.

In a docstring chapters and labels of equations stand as plain words, `Chapter 5, eq-05-dind`, which
is what `help()` should show; on the page they become links.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

logger = logging.getLogger(__name__)


def chapter_pages(contents: dict[str, Any]) -> dict[int, str]:
    """The page of each chapter: the files of the numbered parts, by the number in their name.

    >>> part = {"numbered": 2, "chapters": [{"file": "book/05_merit"}]}
    >>> rest = {"chapters": [{"file": "book/90_differences"}]}
    >>> chapter_pages({"root": "book/intro", "parts": [part, rest]})
    {5: 'book/05_merit'}
    """
    pages = {}
    for part in contents.get("parts", []):
        if not part.get("numbered"):
            continue
        for chapter in part["chapters"]:
            number = re.match(r"\d+(?=_)", Path(chapter["file"]).name)
            if number:
                pages[int(number[0])] = chapter["file"]
    return pages


@cache
def read_chapters(folder: str) -> dict[int, str]:
    """The chapters of the book in ``folder``, read once for all roles and docstrings."""
    contents = Path(folder, "_toc.yml").read_text(encoding="utf-8")
    return chapter_pages(yaml.safe_load(contents))


class Chapter(SphinxRole):
    """A link to a chapter; plain words and a warning where there is none of that number."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        text = nodes.inline("", self.text.replace(" ", "\N{NO-BREAK SPACE}"))
        pages = read_chapters(str(self.env.srcdir))
        number = re.fullmatch(r"(?:[Cc]hapter )?(\d+)", self.text)
        if number is None or int(number[1]) not in pages:
            logger.warning(
                "chapter: %r is none of the chapters of _toc.yml, which are %s; write the number",
                self.text,
                ", ".join(map(str, sorted(pages))),
                location=self.get_location(),
            )
            return [text], []
        builder = self.env.app.builder
        page = pages[int(number[1])]
        return [make_refnode(builder, self.env.docname, page, "", text)], []


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


def link_docstring(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    chapters = read_chapters(str(app.srcdir))
    for k, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[k] = linked(line, chapters)


TUPLE_FIELD = type(NamedTuple("Pair", [("first", int)]).first)


def leave_out(
    app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """What other libraries put into our classes: their docstrings refer to pages of their own.

    Fields of a named tuple, "Alias for field number 0", and scikit-learn's ``set_fit_request``.

    >>> from collections import namedtuple
    >>> leave_out(None, "class", "x", namedtuple("Point", "x y").x, False, None)
    True
    """
    module = getattr(thing, "__module__", None) or ""
    return True if isinstance(thing, TUPLE_FIELD) or module.startswith("sklearn.") else None


def own_numbers(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Figure A1.1 in an appendix, and from 1 on each other page without a number of its own.

    Sphinx counts through all unnumbered pages: Fig. 3 would be the first one of appendix A2.

    >>> from types import SimpleNamespace
    >>> found = {"book/A2_speed": {"figure": {"time": (3,), "scaling": (4,)}}}
    >>> own_numbers(None, SimpleNamespace(toc_fignumbers=found))
    ['book/A2_speed']
    >>> found["book/A2_speed"]["figure"]
    {'time': ('A2', 1), 'scaling': ('A2', 2)}
    """
    changed = []
    for page, kinds in env.toc_fignumbers.items():
        appendix = re.search(r"/(A\d)_\w+$", page)
        front = (appendix[1],) if appendix else ()
        for numbers in kinds.values():
            alone = sorted((n, key) for key, n in numbers.items() if len(n) == 1)
            numbers |= {key: (*front, k) for k, (_, key) in enumerate(alone, 1)}
            changed += [page] if alone else []
    return changed


def setup(app: Sphinx) -> dict:
    app.add_role("chapter", Chapter())
    app.connect("env-get-updated", own_numbers, priority=900)  # after Sphinx has counted
    app.connect("autodoc-process-docstring", link_docstring, priority=600)  # after napoleon
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
