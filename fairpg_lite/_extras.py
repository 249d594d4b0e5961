"""Optional packages are imported where they are used, and say how to get them if absent."""

import importlib
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any


def require(module: str, extra: str) -> ModuleType:
    """Import an optional `module`, or raise ImportError naming the `extra` that brings it."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A broken installation (some other module missing) must not be disguised as an absent one.
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise ImportError(
            f"{package} is needed here and is not installed; "
            f'pip install "fairpg-lite[{extra}]" brings it.'
        ) from error


def progress_bar(description: str, total: int, unit: str = "it", enabled: bool = True) -> Any:
    """A context with a progress bar on stderr; nothing to see unless ``enabled`` and with tqdm."""
    if enabled:
        try:
            from tqdm.auto import tqdm
        except ModuleNotFoundError:
            pass
        else:
            return tqdm(total=total, desc=description, unit=unit, unit_scale=True, file=sys.stderr)
    return nullcontext(SimpleNamespace(update=lambda n: None, set_postfix=lambda **shown: None))
