"""An audit that can be written down."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from fairpg_lite._files import write_whole
from fairpg_lite.auditing.findings import Findings
from fairpg_lite.auditing.page import page_of


@dataclass(frozen=True)
class Audit(Findings):
    """What `audit` found, and how to write it down.

    >>> import pandas
    >>> from fairpg_lite import audit
    >>> run = pandas.DataFrame({"query": "q", "document": ["a", "b"], "rank": [1, 2]})
    >>> found = audit(run, {"q": {"a": 1, "b": 1}}, {"a": "old", "b": "new"})
    >>> f"{found.measures['d_group'].value:.4f}"
    '0.3691'
    >>> [group.name for group in found.groups]
    ['new', 'old']
    """

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``report.html`` and ``report.json``.

        Args:
            folder: Where to; it is made if it is not there.

        Returns:
            The path of the page.
        """
        place = Path(folder)
        numbers = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        write_whole(place / "report.json", numbers + "\n")
        return write_whole(place / "report.html", page_of(self))
