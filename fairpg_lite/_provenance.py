"""Where a number comes from: the versions and the code that computed it, and the code's commit.

One implementation for sweeps, reproductions and benchmarks.
"""

import hashlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import metadata, resources
from pathlib import Path

import torch

from fairpg_lite._version import __version__

PACKAGE = Path(__file__).resolve().parent
# Those that can change a result; each is named only where it is installed.
LIBRARIES = ("numpy", "numba", "scipy", "scikit-learn", "lightgbm")


@lru_cache
def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str]:
    """Versions of Python, this package and the libraries whose change could change a result.

    >>> list(versions())[:4]
    ['python', 'fairpg_lite', 'torch', 'numpy']
    """
    # torch itself knows its build (+cpu, +cu130); the package's metadata may not.
    ours = {"python": sys.version.split()[0], "fairpg_lite": __version__}
    ours["torch"] = str(torch.__version__)
    return ours | {name: found for name in LIBRARIES if (found := _installed(name))}


def sources(package: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of every Python file of a package or module, from a folder or an archive."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    if spec.submodule_search_locations is None:
        yield f"{package}.py", spec.loader.get_data(spec.origin)  # type: ignore[union-attr]
        return
    folders = [(f"{package}/", resources.files(package))]
    for prefix, folder in folders:
        for entry in sorted(folder.iterdir(), key=lambda e: e.name):
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.endswith(".py"):
                yield prefix + entry.name, entry.read_bytes()


@lru_cache
def source_hash(package: str) -> str:
    """A short hash over the Python files of ``package``, the same wherever they lie."""
    told = hashlib.sha256()
    for name, content in sorted(sources(package)):
        told.update(f"{name} {len(content)}\n".encode() + content)
    return told.hexdigest()[:12]


def identity(packages: Iterable[str] = ()) -> dict[str, str]:
    """What must agree between machines that share a sweep: versions, and the code to the letter."""
    found = versions()
    for name in ("fairpg_lite", *packages):
        try:
            found[f"{name} source"] = source_hash(name)
        except ImportError:
            found[f"{name} source"] = "missing"
    return found


def commit(results: Iterable[str | Path] = ()) -> str:
    """Short hash of the checkout this package runs from, with "-dirty" if its files were changed.

    Changes below the directories ``results`` do not count: what a run writes may differ from the
    commit, what it runs may not. "unknown" where the package is installed rather than checked out:
    the commit of whatever repository surrounds an installation says nothing about it.
    """
    tracked = _git("ls-files", "--error-unmatch", "--", __file__) is not None
    top, name = _git("rev-parse", "--show-toplevel"), _git("rev-parse", "--short", "HEAD")
    if not tracked or top is None or name is None:
        return "unknown"
    paths = [Path(result).resolve() for result in results]
    inside = [path.relative_to(top) for path in paths if Path(top) in path.parents]
    spared = [f":(exclude,top,literal){path.as_posix()}" for path in inside]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", *spared)
    return name + ("-dirty" if changed else "")


def _git(*words: str) -> str | None:
    """What git says, or None if it refuses or is not there."""
    try:
        done = subprocess.run(["git", *words], cwd=PACKAGE, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
