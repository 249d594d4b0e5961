"""Optional packages are imported where they are used, and say how to get them if absent.

Without tqdm a progress bar is one line of our own.
"""

import importlib
import sys
import time
from types import ModuleType
from typing import Any, Self


def require(module: str, extra: str) -> ModuleType:
    """Import an optional `module`, or raise ImportError naming the `extra` that brings it.

    >>> require("json", "experiments").dumps([1])
    '[1]'
    >>> require("no_such_module", "experiments")
    Traceback (most recent call last):
    ...
    ImportError: no_such_module is needed here and is not installed; \
pip install "fairpg-lite[experiments]" brings it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A broken installation (some other module missing) must not be disguised as an absent one.
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ImportError(
            f"{module.partition('.')[0]} is needed here and is not installed; "
            f'pip install "fairpg-lite[{extra}]" brings it.'
        ) from error


class Bar:
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


def progress_bar(description: str, total: int, unit: str = "it", enabled: bool = True) -> Any:
    """A progress bar on stderr over ``total`` units; nothing at all unless ``enabled``."""
    if not enabled:
        return Bar(description, total, unit="")
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        return Bar(description, total, unit)
    return tqdm(total=total, desc=description, unit=unit, unit_scale=True, file=sys.stderr)
