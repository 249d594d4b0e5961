"""A progress bar on stderr: tqdm's where tqdm is installed, one line of our own where it is not."""

import sys
import time
from typing import Any, Self

Bar = Any  # anything with update(n), as a context manager


class _Line:
    """Rewrites one line on stderr, at most ten times a second; of no unit, nothing at all."""

    def __init__(self, text: str, total: int, unit: str):
        self.text, self.total, self.unit, self.done, self.last = text, total, unit, 0, 0.0

    def update(self, n: int = 1, end: str = "") -> None:
        self.done += n
        if self.unit and (end or time.monotonic() - self.last > 0.1):
            self.last, share = time.monotonic(), self.done / max(self.total, 1)
            line = f"\r{self.text}: {share:4.0%} of {self.total:,} {self.unit}"
            print(line, end=end, file=sys.stderr, flush=True)

    def set_postfix(self, **shown: Any) -> None:
        """What tqdm shows behind its bar."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.update(0, "\n")


def progress_bar(description: str, total: int, unit: str = "it", enabled: bool = True) -> Bar:
    """A progress bar over ``total`` units; nothing at all is shown when ``enabled`` is False."""
    if not enabled:
        return _Line(description, total, unit="")
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        return _Line(description, total, unit)
    return tqdm(total=total, desc=description, unit=unit, unit_scale=True, file=sys.stderr)
