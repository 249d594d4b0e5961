"""The scoreboard as a page shows it: one line per claim, intervals drawn against their regions.

A line opens to the paper's words, the rule and the numbers. book/_static/board.css and board.js
give it its look and its filters; without them it is a list of folds.
"""

import html
import math
from collections.abc import Iterable, Sequence

from experiments.claims.board import (
    CLAIMS,
    MARKS,
    SECTIONS,
    board_numbers,
    load_results,
)
from experiments.claims.verdicts import Finding, Judged, judge_all

#: A strip: its width, and the height of one check.
WIDTH, HEIGHT = 150, 13


def strip(findings: Sequence[Finding]) -> str:
    """The intervals of a claim's checks, each against the region in which the claim puts it.

    Args:
        findings: What the checks found; those without a number are left out.

    Returns:
        An SVG with one row per check: the region shaded, the interval a bar, the value a dot. Empty
        where no check has a number.
    """
    shown = [finding for finding in findings if finding.estimate is not None]
    if not shown:
        return ""
    rows = [_row(finding, HEIGHT * k) for k, finding in enumerate(shown)]
    height = HEIGHT * len(shown)
    return (
        f"<svg class='claim-strip' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' "
        f"height='{height}' aria-hidden='true'>{''.join(rows)}</svg>"
    )


def _row(finding: Finding, top: float) -> str:
    """One check as a row of the strip."""
    estimate = finding.estimate
    if estimate is None:
        raise ValueError("component._row: the check found no number.")
    low = estimate.value if math.isnan(estimate.low) else estimate.low
    high = estimate.value if math.isnan(estimate.high) else estimate.high
    edges = [edge for edge in (finding.check.low, finding.check.high) if math.isfinite(edge)]
    first, last = min([low, *edges]), max([high, *edges])
    margin = 0.15 * (last - first) or 1.0
    first -= margin
    last += margin

    def place(value: float) -> float:
        inside = min(last, max(first, value))
        return round(WIDTH * (inside - first) / (last - first), 1)

    start, end = place(finding.check.low), place(finding.check.high)
    middle = top + HEIGHT / 2
    return (
        f"<rect class='claim-region' x='{start}' y='{top + 1}' width='{end - start:.1f}' "
        f"height='{HEIGHT - 2}'/>"
        f"<path class='claim-interval {finding.outcome}' d='M{place(low)} {middle}H{place(high)}'/>"
        f"<circle class='claim-value {finding.outcome}' cx='{place(estimate.value)}' "
        f"cy='{middle}' r='3.4'/>"
    )


def line(judged: Judged) -> str:
    """One claim: verdict, sentence and strip; below it, folded, what the board knows."""
    claim = judged.claim
    kind = judged.verdict.replace(" ", "-")
    words = html.escape(claim.words, quote=False)
    summary = (
        f"<span class='claim-mark' aria-hidden='true'>{MARKS[judged.verdict]}</span>"
        f"<span class='claim-words'><b>{claim.id}</b> {words}</span>"
        f"{strip(judged.findings)}<span class='claim-verdict'>{judged.verdict}</span>"
    )
    owner = f"<p><b>Not this paper’s: {claim.source}.</b></p>" if claim.source else ""
    inside = (
        f"{owner}<p><q>{html.escape(claim.quote, quote=False)}</q> "
        f"({html.escape(claim.where, quote=False)})</p>"
        f"<p><i>How decided.</i> {html.escape(claim.rule, quote=False)}</p>"
        f"{board_numbers(judged)}"
    )
    if claim.published:
        published = html.escape(claim.published, quote=False)
        inside += f"<p><i>The authors’ run.</i> {published}</p>"
    return (
        f"<details class='claim {kind}' id='claim-{claim.id}' data-verdict='{judged.verdict}' "
        f"data-part='{claim.id[0]}'><summary>{summary}</summary>"
        f"<div class='claim-body'>{inside}</div></details>"
    )


def board_html(board: Iterable[Judged], *, headings: bool = True) -> str:
    """The claims as a list of folds, by section of the paper.

    Args:
        board: Claims with their verdicts.
        headings: Whether each section has its name above it.

    Returns:
        A division that board.js gives its filters.
    """
    parts = []
    section = ""
    for judged in board:
        name = SECTIONS[judged.claim.id[0]]
        if headings and name != section:
            parts.append(f"<p class='claim-section'>{html.escape(name, quote=False)}</p>")
        section = name
        parts.append(line(judged))
    filters = " data-filters" if headings else ""
    return f"<div class='claims'{filters}>{''.join(parts)}</div>"


class Verdicts:
    """What a cell shows of some claims: the component on a page, their sentences in a terminal.

    Args:
        claim_ids: Such as "S1".
    """

    def __init__(self, *claim_ids: str) -> None:
        known = {claim.id: claim for claim in CLAIMS}
        chosen = [known[claim_id] for claim_id in claim_ids]
        self.board = judge_all(chosen, load_results())

    def _repr_html_(self) -> str:
        return board_html(self.board, headings=False)

    def __repr__(self) -> str:
        lines = []
        for judged in self.board:
            mark = MARKS[judged.verdict]
            lines.append(f"{judged.claim.id:<3} {mark} {judged.verdict}: {judged.claim.words}")
        return "\n".join(lines)
