"""Optional packages are imported where they are used, and say how to get them if absent."""

import importlib
from types import ModuleType


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
