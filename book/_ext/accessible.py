"""Sphinx extension: names and roles that a screen reader needs, and the ticks of checked sentences.

The bibliography says that it is a list but has no list items. Each of some 300 folds is called
"Toggle hidden content", whatever it holds. And a fold that holds a check becomes a tick beside the
sentence above it, which opens the code. On a phone code that is open on a wide page waits behind a
quiet word.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

SUMMARY = re.compile(
    r'<details class="admonition hide [a-z-]+">\s*'
    r'<summary aria-label="Toggle hidden content">\s*'
    r'<p class="collapsed admonition-title">(?P<closed>.*?)</p>\s*'
    r'<p class="expanded admonition-title">.*?</p>\s*</summary>',
    re.S,
)


OPEN_CODE = re.compile(
    r'(?P<cell><div class="cell (?:tag_(?!hide)[\w-]+ )*docutils container"[^>]*>\s*)'
    r'(?=<div class="cell_input docutils container">(?P<code>.*?</pre>))',
    re.S,
)


def as_list(body: str) -> str:
    """Give the entries of a bibliography the role that their list needs.

    >>> as_list('<div role="list" class="citation-list"><div id="a" role="doc-biblioentry">x</div>')
    '<div role="list" class="citation-list"><div id="a" role="listitem">x</div>'
    """
    return re.sub(r'(<div\b[^>]*)role="doc-biblioentry"', r'\1role="listitem"', body)


def named_folds(body: str) -> str:
    """Folds with names of their own: a tick for a check, a quiet word for a figure's code."""

    def named(found: re.Match[str]) -> str:
        label = found["closed"].strip()
        if label.startswith("Check"):
            words = label.removeprefix("Check").lstrip(": ") or "the sentence above"
            return (
                '<details class="checked"><summary><span class="tick" aria-hidden="true">✓</span>'
                f'<span class="tick-words">Check: {words}</span></summary>'
            )
        return f'<details class="code-fold"><summary>{label}</summary>'

    return SUMMARY.sub(named, body)


def folds_for_phones(body: str) -> str:
    """A box to tick before each piece of open code; only a phone shows it, and needs no script."""
    count = 0

    def fold(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        lines = found["code"].strip().count("\n") + 1
        words = "1 line of code" if lines == 1 else f"{lines} lines of code"
        return (
            f'{found["cell"]}<input type="checkbox" class="code-toggle" id="code-{count}">'
            f'<label for="code-{count}">{words}</label>'
        )

    return OPEN_CODE.sub(fold, body)


def repair(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    body = context.get("body", "")
    if "citation-list" in body:
        body = as_list(body)
    if "Toggle hidden content" in body:
        body = named_folds(body)
    if "cell_input" in body:
        body = folds_for_phones(body)
    context["body"] = body


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", repair)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
