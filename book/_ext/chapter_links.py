"""Sphinx extension: the role `chapter`, a link to a chapter by its number, also in docstrings,
and the numbers of figures, formulas and exercises on pages that are no chapters.

``{chapter}`chapter 5` `` shows "chapter 5" and leads there. A chapter that the book announces and
does not have yet stays plain text, so that the sentence is right now and the link comes with the
chapter. A number that is none of the book's chapters is a warning, and so fails the build.

In a docstring chapters and labels of equations stand as plain words, `Chapter 5, eq-05-dind`, which
is what `help()` should show; on the page they become links, as far as the book has the chapter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

CHAPTERS = range(1, 16)
logger = logging.getLogger(__name__)


def chapter_pages(documents: Iterable[str]) -> dict[int, str]:
    """The page of each chapter among the book's documents.

    >>> chapter_pages(["book/intro", "book/05_merit", "book/90_differences"])
    {5: 'book/05_merit'}
    """
    numbered = (re.search(r"(?:^|/)(\d\d)_\w+$", name) for name in documents)
    found = {int(match[1]): match.string for match in numbered if match}
    return {number: found[number] for number in CHAPTERS if number in found}


class Chapter(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        match = re.fullmatch(r"(?:[Cc]hapter )?(\d+)", self.text)
        number = int(match[1]) if match else 0
        if number not in CHAPTERS:
            message = "chapter: %r; write the number, from %s to %s"
            ends = (CHAPTERS[0], CHAPTERS[-1])
            logger.warning(message, self.text, *ends, location=self.get_location())
        text = nodes.inline("", self.text.replace(" ", "\N{NO-BREAK SPACE}"))
        page = chapter_pages(self.env.found_docs).get(number)
        if page is None:
            return [text], []
        builder = self.env.app.builder
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
    here = chapter_pages(app.env.found_docs)
    lines[:] = [x if x.lstrip().startswith((">>>", "...")) else linked(x, here) for x in lines]


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
