"""`{scoreboard}`: the counts of chapter 13 in one strip, computed from the stored results.

The landing page has no cells; this keeps its numbers those of `experiments.claims`.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

BOOK = Path(__file__).resolve().parents[1]
COLOURS = ("#00694d", "#8a5a00", "#2c5f8a", "#a63f00", "#5f6670")  # as in board.css


def strip() -> tuple[str, str]:
    """The sentence, and the strip as HTML: one box for each claim, in the order of the verdicts."""
    if str(BOOK) not in sys.path:
        sys.path.insert(0, str(BOOK))
    from experiments.claims import CLAIMS, VERDICTS, judge_all, load_results, summary
    from experiments.claims.board import MARKS

    board = judge_all(CLAIMS, load_results())
    boxes = [
        f"<a href='13_scoreboard.html#claim-{entry.claim.id}' style='background:{colour}' "
        f"title='{html.escape(entry.claim.words, quote=True)}'>{MARKS[word]} {entry.claim.id}</a>"
        for word, colour in zip(VERDICTS, COLOURS, strict=True)
        for entry in board
        if entry.verdict == word and entry.claim.checks
    ]
    return summary(board), f"<div class='scoreboard'>{''.join(boxes)}</div>"


class Scoreboard(Directive):
    """The strip on a page, the sentence below it everywhere."""

    def run(self) -> list[nodes.Node]:
        said, boxes = strip()
        return [nodes.raw("", boxes, format="html"), nodes.paragraph("", said)]


def setup(app):  # type: ignore[no-untyped-def]
    app.add_directive("scoreboard", Scoreboard)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
