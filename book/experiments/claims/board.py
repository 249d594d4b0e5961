"""The scoreboard: claims and results read, verdicts counted, a table for phones (chapter 13)."""

import html
import math
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.claims import groups, yahoo
from experiments.claims.verdicts import VERDICTS, Claim, Finding, Judged, Verdict, judge_all
from experiments.summary import Cells
from fairpg_lite.sweeps.records import load_cells

#: Where the repository keeps its results.
RESULTS = Path(__file__).resolve().parents[3] / "results"
#: Result directories that decide or stand beside. "yahoo" is a reader's own run; none is shipped.
DIRECTORIES = ("synthetic", "german", "mslr", "yahoo-stand-in", "yahoo")
#: A mark besides the colour, so that verdicts can be told apart without it.
MARKS: dict[Verdict, str] = dict(zip(VERDICTS, "✓◐✗?", strict=True))
#: What the first letter of an id stands for.
SECTIONS = {
    "A": "What the paper says in sum (abstract, introduction, conclusion)",
    "T": "Section 4.1: PG-Rank as a ranker (Table 1)",
    "S": "Section 4.2: synthetic data (Figure 1)",
    "F": "Section 4.3: individual fairness (Figure 2)",
    "G": "Section 4.3 and appendix: German Credit (Figure 3)",
}
_HEAD = ("claim", "ours", "authors", "verdict")
_OUTCOMES = {"yes": "✓", "no": "✗", "open": "undecided", "missing": "no data"}


def read_claims() -> tuple[Claim, ...]:
    """The sentences of claims.toml, in their order, with what decides them."""
    text = (Path(__file__).parent / "claims.toml").read_text(encoding="utf-8")
    said: dict[str, dict[str, Any]] = tomllib.loads(text)
    decided = {"yahoo": yahoo.CHECKS, "synthetic": groups.SYNTHETIC, "german": groups.GERMAN}
    elsewhere = yahoo.ELSEWHERE | {groups.ON_GERMAN: "german"}
    for data, by_name in decided.items():
        for name, (checks, others) in by_name.items():
            beside = tuple((of, elsewhere.get(of, data), asked) for of, asked in others.items())
            said[name] |= {"data": data, "checks": checks, "beside": beside}
    return tuple(
        Claim(name, **of | {"parts": tuple(of.get("parts", ()))}) for name, of in said.items()
    )


#: All claims, by section of the paper.
CLAIMS = read_claims()


def load_results(root: str | Path = RESULTS) -> dict[str, Cells]:
    """The stored cells below ``root`` by directory; those that are not there are left out."""
    found = {name: Path(root) / name for name in DIRECTORIES}
    return {name: load_cells(path) for name, path in found.items() if path.is_dir()}


def seeds_needed(
    claims: Sequence[Claim], results: Mapping[str, Cells], most: int = 20
) -> dict[str, tuple[int, list[Verdict]]]:
    """For every claim the number of seeds from which its verdict stays, and all verdicts from 2."""
    alone = [replace(claim, beside=()) for claim in claims]  # what stands beside decides nothing
    verdicts: dict[str, list[Verdict]] = {claim.id: [] for claim in claims}
    for count in range(2, most + 1):
        fewer = {name: [c for c in cells if c["seed"] < count] for name, cells in results.items()}
        for judged in judge_all(alone, fewer):
            verdicts[judged.claim.id].append(judged.verdict)
    found = {}
    for name, given in verdicts.items():
        changes = [i for i in range(1, len(given)) if given[i] != given[i - 1]]
        found[name] = (2 + max(changes, default=0), given)
    return found


def summary(board: Iterable[Judged]) -> str:
    """The four counts in one sentence: README, landing page and chapter 13 have it from here."""
    given = [judged.verdict for judged in board]
    holds, part, fails, untested = (given.count(verdict) for verdict in VERDICTS)
    return (
        f"Of {len(given)} claims {holds} hold, {part} hold in part, {fails} do not, and "
        f"{untested} cannot be tested here."
    )


def number(finding: Finding) -> str:
    """A measured number with its interval, as the table prints it."""
    if finding.estimate is None:
        return finding.why
    value, low, high = (
        f"{end + 0.0:.{finding.check.digits}f}".replace("-", "−") for end in finding.estimate[:3]
    )
    one_run = math.isnan(finding.estimate.low)
    return f"{value} (one run: no interval)" if one_run else f"{value} [{low}, {high}]"


def has_data(findings: Iterable[Finding]) -> bool:
    return any(finding.outcome != "missing" for finding in findings)


def print_verdicts(*names: str, numbers: bool = True) -> None:
    """Print the verdict on some claims, such as "S1", and with ``numbers`` what checks found."""
    known = {claim.id: claim for claim in CLAIMS}
    for judged in judge_all([known[name] for name in names], load_results()):
        print(f"{judged.claim.id:<3} {MARKS[judged.verdict]} {judged.verdict}")
        print(textwrap.indent(textwrap.fill(judged.claim.words, 74), "    "))
        if numbers and has_data(judged.findings):
            _print_findings(judged.findings)
        elif numbers:  # no results on these data: what others show
            for label, found in judged.beside:
                if has_data(found):
                    print(f"    {label}:")
                    _print_findings(found)


def _print_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        asks = f"(claim: {finding.check.region}) {_OUTCOMES[finding.outcome]}"
        text = f"{finding.check.words}: {number(finding)} {asks}"
        print(textwrap.fill(text, 76, initial_indent="    - ", subsequent_indent="      "))


def board_html(board: Iterable[Judged]) -> str:
    """All verdicts as one HTML table; below 700 pixels every claim becomes a block of its own."""
    head = "".join(f"<th scope='col'>{name}</th>" for name in _HEAD)
    rows, section = [], ""
    for judged in board:
        if SECTIONS[judged.claim.id[0]] != section:
            section = SECTIONS[judged.claim.id[0]]
            rows.append(f"<tr class='section'><th colspan='4' scope='colgroup'>{section}</th></tr>")
        rows.append(_row(judged))
    body = "\n".join(rows)
    style = (Path(__file__).parent / "board.css").read_text(encoding="utf-8")
    return (
        f"<style>\n{style}</style>\n<table class='board'>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


def _row(judged: Judged) -> str:
    claim, word = judged.claim, judged.verdict
    where, quote, words, rule, published = (
        html.escape(text, quote=False)
        for text in (claim.where, claim.quote, claim.words, claim.rule, claim.published or "–")
    )
    sentence = (
        f"<b>{claim.id}</b> {words}<small><q>{quote}</q> ({where})</small>"
        f"<small><i>How decided.</i> {rule}</small>"
    )
    verdict = f"<span class='verdict {word.replace(' ', '-')}'>{MARKS[word]}&nbsp;{word}</span>"
    cells = zip(_HEAD, (sentence, _ours(judged), published, verdict), strict=True)
    columns = "".join(f"<td data-label='{name}'>{text}</td>" for name, text in cells)
    return f"<tr id='claim-{claim.id}'>{columns}</tr>"


def _ours(judged: Judged) -> str:
    if judged.parts:
        return _list(f"{part.claim.id}: {part.verdict}" for part in judged.parts)
    own = _list(map(_finding, judged.findings)) if has_data(judged.findings) else ""
    return (own or "<p>No results on this data.</p>") + "".join(
        f"<details><summary>{html.escape(label, quote=False)}</summary>"
        f"{_list(map(_finding, found))}</details>"
        for label, found in judged.beside
        if has_data(found)
    )


def _list(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _finding(finding: Finding) -> str:
    found = finding.estimate  # of one run `number` says already that it is one
    over = "" if found is None or math.isnan(found.low) else f", {found.over}"
    asked = f"claim: {finding.check.region} – {_OUTCOMES[finding.outcome]}{over}"
    return f"{finding.check.words}: <b>{number(finding)}</b> <small>{asked}</small>"
