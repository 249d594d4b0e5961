"""The scoreboard: claims and results read, verdicts counted, a table for phones (chapter 13)."""

import html
import math
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.cells import Cells
from experiments.claims import german, luck, rivals, synthetic, yahoo
from experiments.claims.verdicts import (
    VERDICTS,
    Beside,
    Checks,
    Claim,
    Finding,
    Judged,
    Outcome,
    Verdict,
    judge_all,
)
from experiments.protocol import load_table
from fairpg_lite.sweeps import load_cells

#: Where the repository keeps its results.
RESULTS = Path(__file__).resolve().parents[3] / "results"
#: Result directories that decide or stand beside. "yahoo" is a reader's own run; none is shipped.
DIRECTORIES = ("synthetic", "german", "mslr", "yahoo-stand-in", "yahoo")
#: A simulation, which compares no methods at equal disparity, so its table names no protocol.
SIMULATION = "rich-get-richer"
#: A mark besides the colour, so that verdicts can be told apart without it.
MARKS: dict[Verdict, str] = {
    "holds": "✓",
    "holds in part": "◐",
    "cannot be told": "≈",
    "does not hold": "✗",
    "cannot be tested here": "?",
}
#: What the first letter of an id stands for.
SECTIONS = {
    "A": "What the paper says in sum (not counted: the claims below decide)",
    "R": "Section 2.2: what the constraint is for (simulated clicks)",
    "T": "Section 4.1: PG-Rank as a ranker (Table 1)",
    "V": "Section 4.1: what would improve PG-Rank, and what another paper says of its own way",
    "S": "Section 4.2: synthetic data (Figure 1)",
    "F": "Section 4.3: individual fairness (Figure 2)",
    "G": "Section 4.3 and appendix: German Credit (Figure 3)",
}
_OUTCOMES: dict[Outcome, str] = {
    "yes": "✓",
    "no": "✗",
    "open": "undecided",
    "missing": "no data",
}


# Claims and results


def read_claims() -> tuple[Claim, ...]:
    """The sentences of claims.toml, in their order, with what decides them."""
    text = (Path(__file__).parent / "claims.toml").read_text(encoding="utf-8")
    deciding = {
        SIMULATION: luck,
        "yahoo": yahoo,
        rivals.NAME: rivals,
        "synthetic": synthetic,
        "german": german,
    }
    directory_of = {}
    checks_of = {}
    code_of: dict[str, tuple[str, Checks]] = {}
    beside: dict[str, list[Beside]] = {}
    for directory, module in deciding.items():
        for claim_id, checks in module.CHECKS.items():
            directory_of[claim_id] = directory
            checks_of[claim_id] = checks
        code_of |= module.CODED
        beside |= module.BESIDE
    claims = []
    for claim_id, words in tomllib.loads(text).items():
        claim = Claim(
            claim_id,
            where=words["where"],
            quote=words["quote"],
            words=words["words"],
            rule=words["rule"],
            data=directory_of.get(claim_id, ""),
            checks=checks_of.get(claim_id, ()),
            code=code_of.get(claim_id, ("", ()))[0],
            coded=code_of.get(claim_id, ("", ()))[1],
            parts=tuple(words.get("parts", ())),
            published=words.get("published", ""),
            beside=tuple(beside.get(claim_id, ())),
            source=words.get("source", ""),
        )
        claims.append(claim)
    return tuple(claims)


#: All claims, by section of the paper.
CLAIMS = read_claims()


def load_results(root: str | Path = RESULTS) -> dict[str, Cells]:
    """The stored cells below ``root`` by directory; those that are not there are left out.

    A table of an earlier protocol is refused, with the command that makes the new one. The courses
    of training that ``benchmarks.rivals`` stored beside ``root`` are read as cells, too.
    """
    results: dict[str, Cells] = {}
    for name in DIRECTORIES:
        path = Path(root) / name
        if path.is_dir():
            results[name] = load_table(path)
    if (Path(root) / SIMULATION).is_dir():
        results[SIMULATION] = load_cells(Path(root) / SIMULATION)
    courses = Path(root).parent / rivals.FILE
    if courses.exists():
        results[rivals.NAME] = rivals.read_cells(courses)
    return results


def verdicts_by_count(
    claims: Sequence[Claim], results: Mapping[str, Cells], counts: Sequence[int]
) -> dict[str, list[Verdict]]:
    """What the verdicts would be with fewer repetitions.

    Args:
        claims: Claims with checks.
        results: Stored cells by result directory.
        counts: How many repetitions, the first of each experiment.

    Returns:
        For every claim its verdict with each of ``counts``.
    """
    # What stands beside decides nothing.
    alone = [replace(claim, beside=(), coded=()) for claim in claims if claim.checks]
    verdicts: dict[str, list[Verdict]] = {claim.id: [] for claim in alone}
    for count in counts:
        fewer = {}
        for name, cells in results.items():
            fewer[name] = [cell for cell in cells if cell["seed"] < count]
        for judged in judge_all(alone, fewer):
            verdicts[judged.claim.id].append(judged.verdict)
    return verdicts


def summary(board: Iterable[Judged]) -> str:
    """The five counts in one sentence: README, landing page and chapter 13 have it from here.

    Sentences that only sum up others, and those of other papers, are not counted.
    """
    verdicts = [judged.verdict for judged in board if judged.claim.is_counted]
    holds, in_part, untold, does_not, untested = (verdicts.count(verdict) for verdict in VERDICTS)
    return (
        f"Of {len(verdicts)} claims {holds} hold, {in_part} hold in part, {does_not} do not hold, "
        f"of {untold} it cannot be told, and {untested} cannot be tested here."
    )


# As text


def print_verdicts(*claim_ids: str, numbers: bool = True) -> None:
    """Print the verdict on some claims.

    Args:
        claim_ids: Such as "S1".
        numbers: Whether to print what their checks found, or, where there are no results on the
            claim's data, what the same checks found on others.
    """
    known = {claim.id: claim for claim in CLAIMS}
    chosen = [known[claim_id] for claim_id in claim_ids]
    for judged in judge_all(chosen, load_results()):
        print(f"{judged.claim.id:<3} {MARKS[judged.verdict]} {judged.verdict}")
        print(textwrap.indent(textwrap.fill(judged.claim.words, 74), "    "))
        if not numbers:
            continue
        if has_data(judged.findings):
            _print_findings(judged.findings)
            if judged.coded_verdict is not None:
                mark = MARKS[judged.coded_verdict]
                print(f"    by the code ({judged.claim.code}): {mark} {judged.coded_verdict}")
                _print_findings(judged.coded)
            continue
        for label, findings in judged.beside:
            if has_data(findings):
                print(f"    {label}:")
                _print_findings(findings)


def _print_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        criterion = f"(claim: {finding.check.region}) {_OUTCOMES[finding.outcome]}"
        text = f"{finding.check.words}: {number(finding)} {criterion}"
        print(textwrap.fill(text, 76, initial_indent="    - ", subsequent_indent="      "))


def number(finding: Finding) -> str:
    """A measured number with its interval, as the table prints it."""
    estimate = finding.estimate
    if estimate is None:
        return finding.why
    value, low, high = (
        f"{end + 0.0:.{finding.check.digits}f}".replace("-", "−")
        for end in (estimate.value, estimate.low, estimate.high)
    )
    if math.isnan(estimate.low):
        return f"{value} (one run: no interval)"
    return f"{value} [{low}, {high}]"


def p_text(p: float) -> str:
    """A p-value for people, such as "p = .012"."""
    if p < 0.001:
        return "p < .001"
    return f"p = {p:.3f}".replace("0.", ".")


def has_data(findings: Iterable[Finding]) -> bool:
    """Whether any check had cells to look at."""
    return any(finding.outcome != "missing" for finding in findings)


# As HTML


def board_numbers(judged: Judged) -> str:
    """What we found, as HTML: verdicts on the parts, or numbers, what stands beside folded."""
    if judged.parts:
        return _list(f"{part.claim.id}: {part.verdict}" for part in judged.parts)
    if has_data(judged.findings):
        text = _list(_finding(finding) for finding in judged.findings)
        if judged.coded_verdict is not None:
            mark = f"{MARKS[judged.coded_verdict]}&nbsp;{judged.coded_verdict}"
            code = _escaped(judged.claim.code)
            text += f"<p class='code'>By the code ({code}): <b>{mark}</b></p>"
            text += _list(_finding(finding) for finding in judged.coded)
    else:
        text = "<p>No results on this data.</p>"
    for label, findings in judged.beside:
        if has_data(findings):
            numbers = _list(_finding(finding) for finding in findings)
            text += f"<details><summary>{_escaped(label)}</summary>{numbers}</details>"
    return text


def _finding(finding: Finding) -> str:
    """What one check found, and what the claim asks."""
    criterion = f"claim: {finding.check.region} – {_OUTCOMES[finding.outcome]}"
    estimate = finding.estimate
    # Of one run `number` says already that it is one.
    if estimate is not None and not math.isnan(estimate.low):
        criterion += f", {p_text(finding.p)}, {estimate.over}"
    return f"{finding.check.words}: <b>{number(finding)}</b> <small>{criterion}</small>"


def _list(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
