"""`{scoreboard} S5 G1`: these claims of chapter 13 as lines, and all of them as a strip of marks.

The landing page has no cells; this keeps its numbers those of `experiments.claims`.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

BOOK = Path(__file__).resolve().parents[1]
COLOURS = ("#00694d", "#8a5a00", "#2c5f8a", "#a63f00", "#5f6670")


def parts(claim_ids: list[str]) -> tuple[str, str, str]:
    """The claims named, as lines; the sentence that counts all; a strip with a mark for each."""
    if str(BOOK) not in sys.path:
        sys.path.insert(0, str(BOOK))
    from experiments.claims import CLAIMS, VERDICTS, board_html, judge_all, load_results, summary
    from experiments.claims.board import MARKS

    board = judge_all(CLAIMS, load_results())
    known = {entry.claim.id: entry for entry in board}
    lines = board_html([known[name] for name in claim_ids], headings=False)
    boxes = [
        f"<a href='13_scoreboard.html#claim-{entry.claim.id}' style='background:{colour}' "
        f"title='{html.escape(entry.claim.words, quote=True)}'>{MARKS[word]} {entry.claim.id}</a>"
        for word, colour in zip(VERDICTS, COLOURS, strict=True)
        for entry in board
        if entry.verdict == word and entry.claim.is_counted
    ]
    return lines, summary(board), f"<div class='scoreboard'>{''.join(boxes)}</div>"


class Scoreboard(Directive):
    """Lines and strip on a page; the sentence everywhere."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        names = self.arguments[0].split() if self.arguments else []
        lines, said, boxes = parts(names)
        shown: list[nodes.Node] = []
        if names:
            shown.append(nodes.raw("", lines, format="html"))
        shown.append(nodes.paragraph("", said))
        shown.append(nodes.raw("", boxes, format="html"))
        return shown


def setup(app):  # type: ignore[no-untyped-def]
    app.add_directive("scoreboard", Scoreboard)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
