"""What an audit found: means over queries with their intervals."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fairpg_lite.auditing.joining import Counts


@dataclass(frozen=True)
class Found:
    """A number with its 95 % interval over queries."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MeasureFound:
    """A measure as a mean over the queries that have an answer."""

    name: str
    label: str
    value: float
    """The mean; of drawn lists, the upper end, which is too high on average."""
    lower_end: float | None
    """The other end, which is too low on average; None if nothing was drawn."""
    low: float
    """Lower end of the 95 % interval over queries; of drawn lists, that of the lower end."""
    high: float
    """Upper end of the interval."""
    queries: int
    """How many queries have an answer."""
    lists_for_narrow: int | None
    """How many lists per query would make the bracket narrow; None if nothing was drawn."""


@dataclass(frozen=True)
class GroupFound:
    """A group: shares of documents, merit and attention, each a mean over queries."""

    name: str
    documents: int
    """A document of two queries is counted twice."""
    queries: int
    """Queries in which the group has a document."""
    document_share: float
    merit_share: float
    attention_share: float
    to_merit: Found
    """Share of attention over share of merit, less 1; -0.29 is 29 % less than is due."""


@dataclass(frozen=True)
class PairFound:
    """Two groups: the attention to a document of the first over one of the second, less 1."""

    first: str
    second: str
    queries: int
    """Queries that have both groups."""
    relative: Found


@dataclass(frozen=True)
class QueryFound:
    """A query, for the table of those where it is worst."""

    name: str
    documents: int
    group_gap: float
    signed_gap: float
    d_group: float
    ndcg: float


@dataclass(frozen=True)
class Findings:
    """All numbers of an audit."""

    sources: list[str]
    """The files that were audited."""
    counts: Counts
    """What the data have and lack."""
    groups: list[GroupFound]
    """The groups that have a document."""
    pairs: list[PairFound]
    """All pairs of groups that meet in a query."""
    measures: dict[str, MeasureFound]
    """The measures by name, as in `fairpg_lite.measures`."""
    utilities: dict[str, Found]
    """Usefulness to the reader, by the names "ndcg", "ap" and "rr"."""
    worst: list[QueryFound]
    """All queries with an answer, the largest two-sided gap first."""
    lists: tuple[int, int]
    """The least and the largest number of lists of a query; 0 if the policy itself was audited."""
    position_bias: list[float]
    """Attention to each position that a list has."""
    k: int | None
    """The position below which nobody looks, or None."""
    merit: str
    """What merit is of a grade."""
    gain: str
    """What the gain in NDCG is of a grade."""
    per_query: dict[str, dict[str, float]] = field(repr=False, default_factory=dict)
    """Each measure of each query, NaN where it has no answer."""
    origin: dict[str, Any] = field(repr=False, default_factory=dict)
    """The command, the versions, and a checksum of each file."""

    @property
    def is_drawn(self) -> bool:
        """Whether lists are draws of a policy, so that measures have two ends."""
        return self.lists[1] > 1

    def to_dict(self) -> dict[str, Any]:
        """Every number, ready for JSON.

        Returns:
            Plain values by name; None where there is no answer.
        """
        return dict(_without_nan(asdict(self)))


def _without_nan(value: Any) -> Any:
    """The same with None in the place of NaN, deep inside."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_nan(inner) for inner in value]
    return value
