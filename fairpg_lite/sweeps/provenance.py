"""Where a number comes from: the versions and the commit of the code that computed it."""

import subprocess
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import torch

from fairpg_lite._version import __version__

#: Libraries that can change a result, where they are installed.
LIBRARIES = ("numpy", "numba", "scipy", "scikit-learn", "lightgbm")


@lru_cache
def versions() -> dict[str, str]:
    """Versions of Python, of this package, and of the installed libraries that can change a result.

    Returns:
        The versions by name.

    >>> versions()["torch"] == torch.__version__
    True
    """
    installed = {"python": sys.version.split()[0], "fairpg_lite": __version__}
    # torch itself knows its build (+cpu, +cu130); the package's metadata may not.
    installed["torch"] = str(torch.__version__)
    for name in LIBRARIES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


@lru_cache
def commit() -> str:
    """The commit of the checkout that this process runs, as it was when it was first asked for.

    Returns:
        The short hash, with "-dirty" if code was changed since. "unknown" where the package is
        installed: a repository around it says nothing about it.
    """
    try:
        _git("ls-files", "--error-unmatch", "--", __file__)
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/*.py", ".")
        short = _git("rev-parse", "--short", "HEAD").strip()
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository of ours
        return "unknown"
    return f"{short}-dirty" if changed else short


def _git(*words: str) -> str:
    """What git answers in the folder of this file."""
    return subprocess.check_output(
        ["git", *words], cwd=Path(__file__).parent, stderr=subprocess.DEVNULL, text=True
    )
