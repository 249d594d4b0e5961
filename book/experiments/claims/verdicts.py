"""How a verdict is made: a number with its interval, a region for it, one rule (chapter 13).

A claim of the paper is a sentence and one or more checks. A check measures a number on stored
cells and says in which region the claim puts it. Nobody types a verdict: `decide` makes it, by the
rule of `experiments.protocol`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from experiments.cells import Cells, MissingCellsError
from experiments.protocol import p_value, rejected

#: Stored cells by the name of their result directory.
Results = Mapping[str, Cells]
Outcome = Literal["yes", "no", "open", "missing"]
Verdict = Literal[
    "holds", "holds in part", "cannot be told", "does not hold", "cannot be tested here"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    """Lower end of the interval; nan where there is none."""
    high: float
    over: str
    """What the interval is over, such as "40 repetitions"."""
    error: float = math.nan
    """The standard error, nan where there is none."""
    freedom: int = 0
    """Degrees of freedom of the standard error."""


#: Something to measure on stored cells; `experiments.claims.quantities` makes them.
Quantity = Callable[[Cells], Estimate]


@dataclass(frozen=True)
class Check:
    """One measurement, and the region in which the claim puts it."""

    words: str
    """What is measured."""
    measure: Quantity
    low: float = -math.inf
    """The claim says that the number is above this,"""
    high: float = math.inf
    """and below this."""
    digits: int = 4
    """Decimals to print."""

    @property
    def region(self) -> str:
        """The criterion in words, such as "above 0"."""
        low = f"{self.low:g}".replace("-", "−")
        high = f"{self.high:g}".replace("-", "−")
        if math.isinf(self.low):
            return f"below {high}"
        if math.isinf(self.high):
            return f"above {low}"
        return f"between {low} and {high}"

    def has(self, value: float) -> bool:
        """Whether a number lies in the region."""
        return self.low < value < self.high

    def p_value(self, estimate: Estimate) -> float:
        """How well the data tell on which side of the region's edges the number lies.

        Args:
            estimate: What was measured.

        Returns:
            The two-sided p-value of the edge that was crossed, or, inside the region, the larger
            one of both edges.
        """

        def edge(place: float) -> float:
            return p_value(estimate.value, place, estimate.error, estimate.freedom)

        if self.has(estimate.value):
            return max(edge(self.low), edge(self.high))
        return edge(self.low if estimate.value <= self.low else self.high)


Checks = tuple[Check, ...]


class Beside(NamedTuple):
    """Checks of another reading, or on other data, that stand beside a verdict."""

    label: str
    data: str
    """The result directory that is asked."""
    checks: Checks


@dataclass(frozen=True)
class Claim:
    """One empirical sentence of the paper.

    It has either checks on the cells of ``data``, or ``parts``.
    """

    id: str
    where: str
    """The place in the paper."""
    quote: str
    """Its sentence."""
    words: str
    """What we take it to say."""
    rule: str
    """How that became numbers."""
    data: str = ""
    """The result directory that decides."""
    checks: Checks = ()
    code: str = ""
    """What the authors' code does otherwise, if it differs from the text."""
    coded: Checks = ()
    """The same checks on runs of that."""
    parts: tuple[str, ...] = ()
    """The ids of the claims that it sums up."""
    published: str = ""
    """The authors' numbers, of one unseeded run."""
    beside: tuple[Beside, ...] = ()
    """What is asked elsewhere; never part of the verdict."""
    source: str = ""
    """Whose sentence it is, if it is not the paper's."""

    @property
    def is_counted(self) -> bool:
        """Whether it is one of the paper's claims, and not a sum of others."""
        return bool(self.checks) and not self.source


class Finding(NamedTuple):
    """What one check found."""

    check: Check
    estimate: Estimate | None
    outcome: Outcome
    p: float = math.nan
    """The p-value that Holm's rule compared."""
    why: str = ""
    """What is missing, if there is no estimate."""


@dataclass(frozen=True)
class Judged:
    """A claim with its numbers and its verdict."""

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    coded: tuple[Finding, ...] = ()
    coded_verdict: Verdict | None = None
    """By the authors' code, where it differs."""
    parts: tuple["Judged", ...] = ()
    beside: tuple[tuple[str, tuple[Finding, ...]], ...] = ()
    """A label, and what was found there."""


def decide(outcomes: Iterable[Outcome]) -> Verdict:
    """The one rule, from the outcomes of all checks of a claim. It treats yes and no alike.

    All yes: holds. All no: does not hold. Some yes and some no: holds in part. Otherwise some are
    open, and those that are not agree: cannot be told. Without data it cannot be tested here.

    >>> decide(["yes", "yes"]), decide(["no", "no"])
    ('holds', 'does not hold')
    >>> decide(["yes", "no", "open"]), decide(["yes", "open"]), decide(["no", "open"])
    ('holds in part', 'cannot be told', 'cannot be told')
    """
    kinds = set(outcomes)
    if not kinds:
        raise ValueError("decide: there are no outcomes; give at least one check.")
    if kinds == {"yes"}:
        return "holds"
    if kinds == {"no"}:
        return "does not hold"
    if kinds == {"missing"}:
        return "cannot be tested here"
    if {"yes", "no"} <= kinds:
        return "holds in part"
    return "cannot be told"


def judge(claim: Claim, results: Results) -> Judged:
    """The verdict on a claim with checks, from stored cells."""
    cells = results.get(claim.data)
    findings = look(claim.checks, cells)
    coded = look(claim.coded, cells)
    beside = []
    for label, data, checks in claim.beside:
        beside.append((label, look(checks, results.get(data))))
    return Judged(
        claim,
        decide(finding.outcome for finding in findings),
        findings,
        coded=coded,
        coded_verdict=decide(finding.outcome for finding in coded) if coded else None,
        beside=tuple(beside),
    )


def judge_all(claims: Iterable[Claim], results: Results) -> list[Judged]:
    """All verdicts, in the order of the claims.

    Args:
        claims: Claims, and those that they sum up.
        results: Stored cells by result directory, of `load_results`.

    Returns:
        The claims with their numbers; the verdicts on its parts decide a summing-up.
    """
    claims = list(claims)
    judged = {claim.id: judge(claim, results) for claim in claims if not claim.parts}
    for claim in claims:
        if claim.parts:
            parts = tuple(judged[part] for part in claim.parts)
            judged[claim.id] = Judged(claim, sum_up([part.verdict for part in parts]), parts=parts)
    return [judged[claim.id] for claim in claims]


def sum_up(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a sentence that sums up others, by the same rule one level up."""
    as_outcomes: dict[Verdict, tuple[Outcome, ...]] = {
        "holds": ("yes",),
        "holds in part": ("yes", "no"),
        "cannot be told": ("open",),
        "does not hold": ("no",),
        "cannot be tested here": ("missing",),
    }
    outcomes: list[Outcome] = []
    for verdict in verdicts:
        outcomes.extend(as_outcomes[verdict])
    return decide(outcomes)


def look(checks: Checks, cells: Cells | None) -> tuple[Finding, ...]:
    """What checks find in some cells, decided together by Holm's rule; None: no cells."""
    estimates = [_estimate(check, cells) for check in checks]
    p_values = {}
    for place, (check, estimate) in enumerate(zip(checks, estimates, strict=True)):
        if isinstance(estimate, Estimate):
            p_values[place] = check.p_value(estimate)
    decided = dict(zip(p_values, rejected(list(p_values.values())), strict=True))
    findings = []
    for place, (check, estimate) in enumerate(zip(checks, estimates, strict=True)):
        if isinstance(estimate, str):
            findings.append(Finding(check, None, "missing", why=estimate))
            continue
        outcome: Outcome = "open"
        if decided[place]:
            outcome = "yes" if check.has(estimate.value) else "no"
        findings.append(Finding(check, estimate, outcome, p_values[place]))
    return tuple(findings)


def _estimate(check: Check, cells: Cells | None) -> Estimate | str:
    """What a check measures, or what is missing for it."""
    if cells is None:
        return "there are no results"
    try:
        return check.measure(cells)
    except MissingCellsError as missing:
        return str(missing)
