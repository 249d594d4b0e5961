"""From the lists that a ranker has shown to a report: who gets attention, and who merits it.

`audit` reads files or tables, `audit_policies` takes policies; `Audit.save` writes the report. The
folder is not called audit, because the function is.
"""

from fairpg_lite.auditing.bracket import lists_for_width, lower_end
from fairpg_lite.auditing.findings import (
    Findings,
    Found,
    GroupFound,
    MeasureFound,
    PairFound,
    QueryFound,
)
from fairpg_lite.auditing.joining import Counts
from fairpg_lite.auditing.report import Audit
from fairpg_lite.auditing.running import audit, audit_policies
from fairpg_lite.auditing.shown_lists import ShownLists

__all__ = [
    "Audit",
    "Counts",
    "Findings",
    "Found",
    "GroupFound",
    "MeasureFound",
    "PairFound",
    "QueryFound",
    "ShownLists",
    "audit",
    "audit_policies",
    "lists_for_width",
    "lower_end",
]
