"""Where a number comes from: the versions and the code that computed it, and the code's commit."""

import hashlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import torch

from fairpg_lite._version import __version__

PACKAGE = Path(__file__).resolve().parent
# Those that can change a result; each is named only where it is installed.
LIBRARIES = ("numpy", "numba", "scipy", "scikit-learn", "lightgbm")


@lru_cache
def versions() -> dict[str, str]:
    """Versions of Python, this package and the libraries whose change could change a result.

    >>> list(versions())[:4]
    ['python', 'fairpg_lite', 'torch', 'numpy']
    """
    found = {"python": sys.version.split()[0], "fairpg_lite": __version__}
    # torch itself knows its build (+cpu, +cu130); the package's metadata may not.
    found["torch"] = str(torch.__version__)
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


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
    found = dict(versions())
    for name in ("fairpg_lite", *packages):
        found[f"{name} source"] = "missing"
        with suppress(ImportError):
            found[f"{name} source"] = source_hash(name)
    return found


def commit(results: Iterable[str | Path] = ()) -> str:
    """Short hash of the checkout this package runs from, with "-dirty" if its files were changed.

    Changes below the directories ``results`` do not count: what a run writes may differ from the
    commit, what it runs may not. "unknown" where the package is installed, not checked out: the
    commit of whatever repository surrounds an installation says nothing about it.
    """
    try:
        _git("ls-files", "--error-unmatch", "--", __file__)
        top, name = _git("rev-parse", "--show-toplevel"), _git("rev-parse", "--short", "HEAD")
        paths = [Path(result).resolve() for result in results]
        inside = [path.relative_to(top) for path in paths if Path(top) in path.parents]
        spared = [f":(exclude,top,literal){path.as_posix()}" for path in inside]
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", *spared)
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository of ours
        return "unknown"
    return name + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    how: Any = {"cwd": PACKAGE, "capture_output": True, "text": True, "check": True}
    return subprocess.run(["git", *words], **how).stdout.strip()
