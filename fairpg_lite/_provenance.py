"""Where a number comes from: the versions that computed it and the commit of the code.

One implementation for sweeps, reproductions and benchmarks.
"""

import subprocess
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# Those that can change a result; each is named only where it is installed.
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "lightgbm")


@lru_cache
def _versions() -> tuple[tuple[str, str], ...]:
    from importlib import metadata

    from fairpg_lite._version import __version__

    found = [("python", sys.version.split()[0]), ("fairpg_lite", __version__)]
    for name in LIBRARIES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def versions() -> dict[str, str]:
    """Versions of Python, this package and the libraries whose change could change a result.

    >>> list(versions())[:4]
    ['python', 'fairpg_lite', 'torch', 'numpy']
    """
    return dict(_versions())


def commit(results: Iterable[str | Path] = ()) -> str:
    """Short hash of the checkout this package runs from, with "-dirty" if its files were changed.

    Changes below the directories ``results`` do not count: what a run writes may differ from the
    commit, what it runs may not. "unknown" where the package is installed rather than checked out:
    the commit of whatever repository surrounds an installation says nothing about it.
    """
    try:
        if _git("ls-files", "--error-unmatch", "--", __file__) is None:
            return "unknown"
        top, name = _git("rev-parse", "--show-toplevel"), _git("rev-parse", "--short", "HEAD")
    except OSError:  # no git on this machine
        return "unknown"
    if top is None or name is None:
        return "unknown"
    paths = [Path(result).resolve() for result in results]
    inside = [path.relative_to(top) for path in paths if Path(top) in path.parents]
    spared = [f":(exclude,top,literal){path.as_posix()}" for path in inside]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", *spared)
    return name + ("-dirty" if changed else "")


def _git(*words: str) -> str | None:
    """What git says, or None if it refuses."""
    done = subprocess.run(["git", *words], cwd=PACKAGE, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None
