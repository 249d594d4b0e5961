"""Sphinx extension: the role `chapter`, a link to a chapter by its number.

``{chapter}`chapter 5` `` shows "chapter 5" and leads there. A chapter that the book announces and
does not have yet stays plain text, so that the sentence is right now and the link comes with the
chapter. A number that is none of the book's chapters is a warning, and so fails the build.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from docutils import nodes
from sphinx.application import Sphinx
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


def setup(app: Sphinx) -> dict:
    app.add_role("chapter", Chapter())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
