"""A progress bar: tqdm's where tqdm is installed, one line on stderr where it is not."""

import sys
import time
from typing import Any, Protocol, Self


class Bar(Protocol):
    """What a progress bar must do: count up, and close as a context manager."""

    def update(self, n: int = 1) -> Any: ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *exc: Any) -> Any: ...


class _Line:
    """Rewrites one line on stderr, at most ten times a second; shows nothing of no units."""

    def __init__(self, description: str, total: int, unit: str):
        self.description, self.total, self.unit = description, total, unit
        self.done, self.last = 0, 0.0

    def update(self, n: int = 1, end: str = "") -> None:
        self.done += n
        if self.unit and (end or time.monotonic() - self.last > 0.1):
            self.last = time.monotonic()
            share = 100.0 * self.done / self.total if self.total else 100.0
            text = f"\r{self.description}: {share:3.0f} % of {self.total:,} {self.unit}"
            print(text, end=end, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.update(0, "\n")


def progress_bar(description: str, total: int, unit: str = "it", enabled: bool = True) -> Bar:
    """A progress bar over `total` units; nothing at all is shown when `enabled` is False.

    >>> with progress_bar("reading", total=2, enabled=False) as bar:
    ...     bar.update(2)
    """
    if not enabled:
        return _Line(description, total, unit="")
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        return _Line(description, total, unit)
    return tqdm(total=total, desc=description, unit=unit, unit_scale=True, file=sys.stderr)
