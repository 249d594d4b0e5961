"""How a verdict is made: a number with its interval, a region for it, one rule (chapter 13).

A claim of the paper is a sentence and one or more checks. A check measures a number on stored
cells and says in which region the claim puts it. Nobody types a verdict: `decide` makes it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from experiments.cells import Cells, MissingCellsError

#: Stored cells by the name of their result directory.
Results = Mapping[str, Cells]
Outcome = Literal["yes", "no", "open", "missing"]
Verdict = Literal["holds", "holds in part", "does not hold", "cannot be tested here"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    """Lower end of the interval; nan where there is none."""
    high: float
    over: str
    """What the interval is over, such as "20 seeds"."""


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

    def outcome(self, estimate: Estimate) -> Outcome:
        """Whether all of the interval lies in the region ("yes"), none ("no"), or a part ("open").

        Without an interval nothing is decided: no comparison with nan is true.
        """
        if self.low < estimate.low and estimate.high < self.high:
            return "yes"
        if estimate.high <= self.low or estimate.low >= self.high:
            return "no"
        return "open"


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
    parts: tuple[str, ...] = ()
    """The ids of the claims that it sums up."""
    published: str = ""
    """The authors' numbers, of one unseeded run."""
    beside: tuple[Beside, ...] = ()
    """What is asked elsewhere; never part of the verdict."""


class Finding(NamedTuple):
    """What one check found."""

    check: Check
    estimate: Estimate | None
    outcome: Outcome
    why: str = ""
    """What is missing, if there is no estimate."""


@dataclass(frozen=True)
class Judged:
    """A claim with its numbers and its verdict."""

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    parts: tuple["Judged", ...] = ()
    beside: tuple[tuple[str, tuple[Finding, ...]], ...] = ()
    """A label, and what was found there."""


def decide(outcomes: Iterable[Outcome]) -> Verdict:
    """The one rule, from the outcomes of all checks of a claim.

    All yes: holds. Some yes: holds in part. None yes, some no: does not hold. All open or
    missing: the data at hand do not decide, so it cannot be tested here.

    >>> decide(["yes", "yes"]), decide(["yes", "open"])
    ('holds', 'holds in part')
    >>> decide(["no", "open"]), decide(["open"])
    ('does not hold', 'cannot be tested here')
    """
    kinds = set(outcomes)
    if not kinds:
        raise ValueError("decide: there are no outcomes; give at least one check.")
    if kinds == {"yes"}:
        return "holds"
    if "yes" in kinds:
        return "holds in part"
    if "no" in kinds:
        return "does not hold"
    return "cannot be tested here"


def judge(claim: Claim, results: Results) -> Judged:
    """The verdict on a claim with checks, from stored cells."""
    findings = _look(claim.checks, results.get(claim.data))
    verdict = decide(finding.outcome for finding in findings)
    beside = []
    for label, data, checks in claim.beside:
        beside.append((label, _look(checks, results.get(data))))
    return Judged(claim, verdict, findings, beside=tuple(beside))


def judge_all(claims: Iterable[Claim], results: Results) -> list[Judged]:
    """All verdicts, in the order of the claims.

    Args:
        claims: Claims, and those that they sum up.
        results: Stored cells by result directory, of `load_results`.

    Returns:
        The claims with their numbers; all checks of its parts decide a summing-up.
    """
    claims = list(claims)
    judged = {claim.id: judge(claim, results) for claim in claims if not claim.parts}
    for claim in claims:
        if claim.parts:
            parts = tuple(judged[part] for part in claim.parts)
            outcomes = [finding.outcome for part in parts for finding in part.findings]
            judged[claim.id] = Judged(claim, decide(outcomes), parts=parts)
    return [judged[claim.id] for claim in claims]


def _look(checks: Checks, cells: Cells | None) -> tuple[Finding, ...]:
    """What checks find in some cells, None where there are none."""
    return tuple(_finding(check, cells) for check in checks)


def _finding(check: Check, cells: Cells | None) -> Finding:
    if cells is None:
        return Finding(check, None, "missing", "there are no results")
    try:
        estimate = check.measure(cells)
    except MissingCellsError as missing:
        return Finding(check, None, "missing", str(missing))
    return Finding(check, estimate, check.outcome(estimate))
