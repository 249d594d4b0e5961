"""Sphinx extension: two repairs without which some readers are kept out.

The search page shows a summary of each hit, which it fetches; a browser forbids that for pages on
the reader's own disk, and complains for each. And the bibliography says that it is a list but has
no list items, so that a screen reader announces an empty list.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

NO_SUMMARIES = (
    "if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;"
)


def as_list(body: str) -> str:
    """Give the entries of a bibliography the role that their list needs.

    >>> as_list('<div role="list" class="citation-list"><div id="a" role="doc-biblioentry">x</div>')
    '<div role="list" class="citation-list"><div id="a" role="listitem">x</div>'
    """
    return re.sub(r'(<div\b[^>]*)role="doc-biblioentry"', r'\1role="listitem"', body)


def repair(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if page == "search":
        app.add_js_file(None, body=NO_SUMMARIES)
    if "citation-list" in context.get("body", ""):
        context["body"] = as_list(context["body"])


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", repair)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
