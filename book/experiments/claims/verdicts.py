"""How a verdict is made: a number with its interval, a region for it, one rule (chapter 13).

A claim of the paper is a sentence and one or more checks. A check measures a number on stored
cells and says in which region the claim puts it. Nobody types a verdict: `decide` makes it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from experiments.summary import Cells, MissingCellsError

#: Stored cells by the name of their result directory.
Results = Mapping[str, Cells]
Outcome = Literal["yes", "no", "open", "missing"]
Verdict = Literal["holds", "holds in part", "does not hold", "cannot be tested here"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Estimate(NamedTuple):
    """A number, its 95 % interval (nan where there is none), and what the interval is over."""

    value: float
    low: float
    high: float
    over: str


@dataclass(frozen=True)
class Check:
    """One measurement and the region, from ``low`` to ``high``, in which the claim puts it."""

    words: str
    measure: Callable[[Cells], Estimate]
    low: float = -math.inf
    high: float = math.inf
    digits: int = 4

    @property
    def region(self) -> str:
        """The criterion in words, such as "above 0"."""
        low, high = (f"{end:g}".replace("-", "−") for end in (self.low, self.high))
        if math.isinf(self.low):
            return f"below {high}"
        return f"above {low}" if math.isinf(self.high) else f"between {low} and {high}"

    def outcome(self, found: Estimate) -> Outcome:
        """Whether all of the interval lies in the region ("yes"), none ("no"), or a part ("open").

        Without an interval nothing is decided: no comparison with nan is true.
        """
        if self.low < found.low and found.high < self.high:
            return "yes"
        return "no" if found.high <= self.low or found.low >= self.high else "open"


Checks = tuple[Check, ...]


@dataclass(frozen=True)
class Claim:
    """One empirical sentence of the paper: its ``quote``, what we take it to say (``words``), how
    that became numbers (``rule``), and the authors' numbers, of one unseeded run (``published``).

    Either ``checks`` on the cells of ``data``, or ``parts``: the ids of the claims it sums up. What
    is asked elsewhere stands ``beside``, never part of the verdict: a label, its data, its checks.
    """

    id: str
    where: str
    quote: str
    words: str
    rule: str
    data: str = ""
    checks: Checks = ()
    parts: tuple[str, ...] = ()
    published: str = ""
    beside: tuple[tuple[str, str, Checks], ...] = ()


class Finding(NamedTuple):
    """What one check found; ``why`` says what is missing."""

    check: Check
    estimate: Estimate | None
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim with its numbers and its verdict."""

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    parts: tuple["Judged", ...] = ()
    beside: tuple[tuple[str, tuple[Finding, ...]], ...] = ()


def decide(outcomes: Iterable[Outcome]) -> Verdict:
    """The one rule, from the outcomes of all checks of a claim.

    All yes: holds. Some yes: holds in part. None yes, some no: does not hold. All open or
    missing: the data at hand do not decide, so it cannot be tested here.

    >>> decide(["yes", "yes"]), decide(["yes", "open"]), decide(["no", "open"]), decide(["open"])
    ('holds', 'holds in part', 'does not hold', 'cannot be tested here')
    """
    found = set(outcomes)
    if not found:
        raise ValueError("decide: there are no outcomes; give at least one check.")
    if "yes" in found:
        return "holds" if found == {"yes"} else "holds in part"
    return "does not hold" if "no" in found else "cannot be tested here"


def judge(claim: Claim, results: Results) -> Judged:
    """The verdict on a claim with checks, from stored cells."""

    def found(data: str, checks: Checks) -> tuple[Finding, ...]:
        return tuple(look(check, results.get(data)) for check in checks)

    findings = found(claim.data, claim.checks)
    beside = tuple((label, found(data, checks)) for label, data, checks in claim.beside)
    return Judged(claim, decide(f.outcome for f in findings), findings, beside=beside)


def look(check: Check, cells: Cells | None) -> Finding:
    """What a check finds in some cells, None where there are none."""
    if cells is None:
        return Finding(check, None, "missing", "there are no results")
    try:
        found = check.measure(cells)
    except MissingCellsError as missing:
        return Finding(check, None, "missing", str(missing))
    return Finding(check, found, check.outcome(found))


def judge_all(claims: Iterable[Claim], results: Results) -> list[Judged]:
    """All verdicts, in the order of the claims; all checks of its parts decide a summing-up."""
    claims = list(claims)
    own = {claim.id: judge(claim, results) for claim in claims if not claim.parts}
    for claim in claims:
        if claim.parts:
            parts = tuple(own[part] for part in claim.parts)
            outcomes = (found.outcome for part in parts for found in part.findings)
            own[claim.id] = Judged(claim, decide(outcomes), parts=parts)
    return [own[claim.id] for claim in claims]
