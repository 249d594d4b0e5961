"""Sphinx extension: the bibliography as a list.

It says that it is one but has no list items, so that a screen reader announces an empty list.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx


def as_list(body: str) -> str:
    """Give the entries of a bibliography the role that their list needs.

    >>> as_list('<div role="list" class="citation-list"><div id="a" role="doc-biblioentry">x</div>')
    '<div role="list" class="citation-list"><div id="a" role="listitem">x</div>'
    """
    return re.sub(r'(<div\b[^>]*)role="doc-biblioentry"', r'\1role="listitem"', body)


def repair(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "citation-list" in context.get("body", ""):
        context["body"] = as_list(context["body"])


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", repair)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
