"""The scoreboard: results read, verdicts counted, a table that a phone can show (chapter 13)."""

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.claims.verdicts import (
    VERDICTS,
    Cells,
    Claim,
    Finding,
    Judged,
    Results,
    Verdict,
    judge_all,
)
from fairpg_lite.sweep import load_cells

#: Where the repository keeps its results.
RESULTS = Path(__file__).resolve().parents[3] / "results"
#: Result directories that decide or stand beside. "yahoo" is a reader's own run; none is shipped.
DIRECTORIES = ("synthetic", "german", "mslr", "yahoo-stand-in", "yahoo")
#: A mark besides the colour, so that verdicts can be told apart without it.
MARKS: dict[Verdict, str] = {
    "holds": "✓",
    "holds in part": "◐",
    "does not hold": "✗",
    "cannot be tested here": "?",
}
#: What the first letter of an id stands for.
SECTIONS = {
    "A": "What the paper says in sum (abstract, introduction, conclusion)",
    "T": "Section 4.1: PG-Rank as a ranker (Table 1)",
    "S": "Section 4.2: synthetic data (Figure 1)",
    "F": "Section 4.3: individual fairness (Figure 2)",
    "G": "Section 4.3 and appendix: German Credit (Figure 3)",
}
_OUTCOMES = {"yes": "✓", "no": "✗", "open": "undecided", "missing": "no data"}


def load_results(root: str | Path = RESULTS) -> dict[str, Cells]:
    """The stored cells below ``root`` by directory; those that are not there are left out."""
    found = {name: Path(root) / name for name in DIRECTORIES}
    return {name: load_cells(path) for name, path in found.items() if path.is_dir()}


def with_seeds(results: Results, count: int) -> dict[str, Cells]:
    """The same results as if only seeds below ``count`` had been run."""
    return {
        name: [cell for cell in cells if cell["seed"] < count] for name, cells in results.items()
    }


def seeds_needed(
    claims: Sequence[Claim], results: Results, most: int = 20
) -> dict[str, tuple[int, list[Verdict]]]:
    """For every claim the smallest number of seeds from which its verdict stays, and all verdicts
    from 2 seeds to ``most``.
    """
    history: dict[str, list[Verdict]] = {claim.id: [] for claim in claims}
    counts = range(2, most + 1)
    claims = [replace(claim, beside=()) for claim in claims]  # they decide nothing
    for count in counts:
        for judged in judge_all(claims, with_seeds(results, count)):
            history[judged.claim.id].append(judged.verdict)
    found = {}
    for name, verdicts in history.items():
        changes = [k for k in range(1, len(verdicts)) if verdicts[k] != verdicts[k - 1]]
        found[name] = (counts[changes[-1]] if changes else counts[0], verdicts)
    return found


def tally(board: Iterable[Judged]) -> dict[Verdict, int]:
    """How many claims got each verdict."""
    given = [judged.verdict for judged in board]
    return {verdict: given.count(verdict) for verdict in VERDICTS}


def number(finding: Finding) -> str:
    """A measured number with its interval, as the table prints it."""
    found = finding.estimate
    if found is None:
        return finding.why
    shape = f"{{:.{finding.check.digits}f}}"

    def text(value: float) -> str:
        return shape.format(value + 0.0).replace("-", "−")

    if not found.has_interval:
        return f"{text(found.value)} (one run: no interval)"
    return f"{text(found.value)} [{text(found.low)}, {text(found.high)}]"


def print_verdicts(*names: str, results: Results | None = None, numbers: bool = True) -> None:
    """Print what the scoreboard says of some claims, "S1" or "G4": chapters 9 to 12 do.

    Verdict, the claim, then every check with its number, its interval and what the claim asks for;
    without ``numbers`` verdict and claim only.
    """
    from experiments.claims import CLAIMS

    known = {claim.id: claim for claim in CLAIMS}
    asked = [known[name] for name in names]
    needed = asked + [known[part] for claim in asked for part in claim.parts]
    board = judge_all(dict.fromkeys(needed), results or load_results())
    for judged in board[: len(asked)]:
        print(f"{judged.claim.id}  {MARKS[judged.verdict]} {judged.verdict}")
        print(textwrap.indent(textwrap.fill(judged.claim.words, 74), "    "))
        for part in judged.parts:
            print(f"    - {part.claim.id}: {part.verdict}")
        if not numbers:
            continue
        if any(finding.outcome != "missing" for finding in judged.findings):
            _print_findings(judged.findings)
        else:  # no results on these data: what others show
            for beside, found in judged.beside:
                if any(finding.outcome != "missing" for finding in found):
                    print(f"    {beside.label}:")
                    _print_findings(found)


def _print_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        asks = f"(claim: {finding.check.region}) {_OUTCOMES[finding.outcome]}"
        text = f"{finding.check.words}: {number(finding)} {asks}"
        print(textwrap.fill(text, 76, initial_indent="    - ", subsequent_indent="      "))


def board_html(board: Sequence[Judged]) -> str:
    """All verdicts as one HTML table; below 700 pixels every claim becomes a block of its own."""
    head = "".join(
        f"<th scope='col'>{name}</th>" for name in ("claim", "ours", "authors", "verdict")
    )
    rows, section = [], ""
    for judged in board:
        if SECTIONS[judged.claim.id[0]] != section:
            section = SECTIONS[judged.claim.id[0]]
            rows.append(f"<tr class='section'><th colspan='4' scope='colgroup'>{section}</th></tr>")
        rows.append(_row(judged))
    body = "\n".join(rows)
    return (
        f"{_STYLE}\n<table class='board'>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


def _row(judged: Judged) -> str:
    claim, word = judged.claim, judged.verdict
    sentence = (
        f"<b>{claim.id}</b> {html.escape(claim.words)}"
        f"<small>{html.escape(claim.where)}. {html.escape(claim.rule)}</small>"
    )
    published = html.escape(claim.published) or "–"
    kind = word.replace(" ", "-")
    verdict = f"<span class='verdict {kind}'>{MARKS[word]}&nbsp;{word}</span>"
    cells = {"claim": sentence, "ours": _ours(judged), "authors": published, "verdict": verdict}
    columns = "".join(f"<td data-label='{name}'>{text}</td>" for name, text in cells.items())
    return f"<tr id='claim-{claim.id}'>{columns}</tr>"


def _ours(judged: Judged) -> str:
    if judged.parts:
        return "<ul>" + "".join(
            f"<li>{part.claim.id}: {part.verdict}</li>" for part in judged.parts
        ) + "</ul>"  # fmt: skip
    missing = all(finding.outcome == "missing" for finding in judged.findings)
    own = "<p>No results on this data.</p>" if missing else _list(judged.findings)
    return own + "".join(
        f"<details><summary>{html.escape(beside.label)}</summary>{_list(found)}</details>"
        for beside, found in judged.beside
        if any(finding.outcome != "missing" for finding in found)
    )


def _list(findings: Sequence[Finding]) -> str:
    return "<ul>" + "".join(f"<li>{_finding(f)}</li>" for f in findings) + "</ul>"


def _finding(finding: Finding) -> str:
    words = f"{finding.check.words}: <b>{number(finding)}</b>"
    found = finding.estimate  # of one run `number` says already that it is one
    over = f", {found.over}" if found is not None and found.has_interval else ""
    asked = f"claim: {finding.check.region} – {_OUTCOMES[finding.outcome]}{over}"
    return f"{words} <small>{asked}</small>"


_STYLE = """<style>
table.board { width: 100%; border-collapse: collapse; font-size: .88em; table-layout: fixed; }
table.board th, table.board td { text-align: left !important; vertical-align: top; padding: .5em;
  border-bottom: 1px solid var(--pst-color-border, #bbb); overflow-wrap: anywhere;
  white-space: normal; }
table.board th:nth-child(1) { width: 29%; }
table.board th:nth-child(2) { width: 39%; }
table.board th:nth-child(3) { width: 16%; }
table.board th:nth-child(4) { width: 16%; }
table.board small { display: block; opacity: .8; }
table.board ul { margin: 0; padding-left: 1.1em; }
table.board tbody tr, table.board tbody tr:nth-child(odd) { background: transparent !important;
  color: inherit !important; }
table.board tr.section th { font-size: 1.1em; padding-top: 1.2em; }
table.board details { margin-top: .4em; }
table.board summary { cursor: pointer; }
table.board .verdict { display: inline-block; padding: .1em .5em; border-radius: 4px;
  font-weight: 600; color: #fff; overflow-wrap: normal; }
table.board .holds { background: #00694d; }
table.board .holds-in-part { background: #8a5a00; }
table.board .does-not-hold { background: #a63f00; }
table.board .cannot-be-tested-here { background: #5f6670; }
@media (max-width: 700px) {
  table.board, table.board tbody, table.board tr, table.board td, table.board tr.section th {
    display: block; width: 100%; }
  table.board thead { display: none; }
  table.board tr { border-bottom: 2px solid var(--pst-color-border, #bbb); padding: .6em 0; }
  table.board td { border: 0; padding: .2em 0; }
  table.board td[data-label=ours]::before, table.board td[data-label=authors]::before {
    content: attr(data-label) ": "; font-weight: 600; }
}
</style>"""
