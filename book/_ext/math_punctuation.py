"""Sphinx extension: the full stop after a formula stays on the formula's line.

A formula inside a sentence is drawn as a picture, and browsers may break a line between a picture
and the comma behind it. Here the two are kept together.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

MARKS = re.compile(r"[.,;:!?)\]’”]+")


def keep_together(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for formula in list(doctree.findall(nodes.math)):
        parent, place = formula.parent, formula.parent.index(formula)
        behind = parent[place + 1] if place + 1 < len(parent) else None
        marks = MARKS.match(behind.astext()) if isinstance(behind, nodes.Text) else None
        if marks is None:
            continue
        # By place: equal texts are equal to docutils, and a sentence may have two full stops.
        parent[place + 1] = nodes.Text(behind.astext()[marks.end() :])
        parent[place] = nodes.inline("", "", formula, nodes.Text(marks[0]), classes=["nowrap"])


def setup(app: Sphinx) -> dict:
    app.connect("doctree-resolved", keep_together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
