"""Yahoo's Learning to Rank Challenge, Set 1: read from the files that its licensees receive."""

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.letor import load_letor

# (queries, documents), as published with the challenge (Chapelle & Chang 2011).
PUBLISHED_COUNTS: Mapping[str, tuple[int, int]] = {
    "train": (19_944, 473_134),
    "valid": (2_994, 71_083),
    "test": (6_983, 165_660),
}
N_FEATURES = 699
HOW_TO_OBTAIN = (
    "The data is dataset C14, 'Learning to Rank Challenge', of Yahoo's Webscope programme: its "
    "licence does not let us ship it, researchers apply for it themselves. Unpack the archive in "
    "one directory and pass that, or set FAIRPG_YAHOO to it."
)


class YahooSets(NamedTuple):
    """The three parts of Set 1.

    Chapters 10 and 11.
    """

    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


def yahoo(
    root: str | os.PathLike[str] | None = None,
    *,
    cache: str | os.PathLike[str] | None = None,
    expected_counts: Mapping[str, tuple[int, int]] | None = PUBLISHED_COUNTS,
    n_features: int = N_FEATURES,
    progress: bool = True,
) -> YahooSets:
    """`(train, valid, test)` of Set 1, memory-mapped.

    Args:
        root: the directory, searched with its sub-directories; FAIRPG_YAHOO if not given.
            `set1.{train,valid,test}.txt` may be plain, .gz, .bz2 or .xz.
        cache: where the arrays go on the first load (about 2 GB for the full set): next to the
            data in `.fairpg_lite`, or, if that cannot be written, the user's cache directory.
            Later loads only map the files, as long as the text keeps its size and time of change.
        expected_counts: (queries, documents) of each part; a part that has others is refused.
            None switches the check off.
        n_features: the number of columns.
        progress: show a bar while text is read.

    Errors say which file is wrong or missing, and how the data is obtained.

    Chapters 10 and 11; appendix B.1 of the paper.
    """
    root = root or os.environ.get("FAIRPG_YAHOO")
    if not root:
        raise FileNotFoundError(f"yahoo: no directory was given. {HOW_TO_OBTAIN}")
    base = Path(root).expanduser()
    if not base.is_dir():
        what = "is a file; unpack it" if base.is_file() else "does not exist"
        raise FileNotFoundError(f"yahoo: {base} {what}. {HOW_TO_OBTAIN}")
    files = {part: _find(base, part) for part in PUBLISHED_COUNTS}
    missing = [f"set1.{part}.txt" for part, file in files.items() if file is None]
    if missing:
        raise FileNotFoundError(
            f"yahoo: {', '.join(missing)} not found in {base} or its sub-directories. "
            f"{HOW_TO_OBTAIN}"
        )
    directory = _cache_directory(base) if cache is None else Path(cache)
    parts = {}
    for part, file in files.items():
        assert file is not None
        parts[part] = _part(part, file, directory, n_features, expected_counts, progress)
    return YahooSets(**parts)


def _find(base: Path, part: str) -> Path | None:
    """The part's file, plain or compressed; the shorter path wins."""
    names = {f"set1.{part}.txt{suffix}" for suffix in ("", ".gz", ".bz2", ".xz")}
    found = [p for p in base.rglob(f"set1.{part}.txt*") if p.name in names and p.is_file()]
    return min(found, key=lambda p: (len(p.parts), p.name), default=None)


def user_cache_directory() -> Path:
    """The user's cache directory for fairpg-lite, as the operating system has it."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = str(Path.home() / "Library" / "Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "fairpg-lite"


def _cache_directory(base: Path) -> Path:
    """Beside the data, or, for data on a read-only disk, one for it in the user's cache."""
    beside = base / ".fairpg_lite"
    with suppress(OSError):
        beside.mkdir(exist_ok=True)
    if os.access(beside, os.W_OK) and beside.is_dir():
        return beside
    return user_cache_directory() / f"yahoo-{sha256(str(base.resolve()).encode()).hexdigest()[:16]}"


def _part(
    part: str,
    file: Path,
    directory: Path,
    n_features: int,
    expected: Mapping[str, tuple[int, int]] | None,
    progress: bool,
) -> RankingDataset:
    """The part from the cache, or from the text, which then fills the cache."""
    stat = file.stat()
    # Changes when the file does; looks at its size and time, not at its content.
    key = sha256(f"{file} {stat.st_size} {stat.st_mtime_ns} {n_features}".encode()).hexdigest()

    def checked(dataset: RankingDataset) -> RankingDataset:
        found = (len(dataset), dataset.n_documents)
        if expected is not None and found != tuple(expected[part]):
            raise ValueError(
                f"yahoo: {file} has {found[0]:,} queries and {found[1]:,} documents, published are "
                "{:,} and {:,}; the file is cut or is another set. ".format(*expected[part])
                + HOW_TO_OBTAIN
            )
        return dataset

    def make() -> RankingDataset:
        made = checked(load_letor(file, n_features=n_features, progress=progress))
        made.info.update(name=f"Yahoo Set 1, {part}", fingerprint=key)
        return made

    target = directory / f"set1.{part}"
    return checked(remembered(target, make, lambda d: d.info.get("fingerprint") == key))


def remembered(
    target: Path,
    make: Callable[[], RankingDataset],
    current: Callable[[RankingDataset], bool],
) -> RankingDataset:
    """The dataset at `target`, memory-mapped, if it is `current`; otherwise made and stored there.

    Where it cannot be stored, a warning says so and it stays in memory.
    """

    def stored() -> RankingDataset | None:
        try:
            dataset = RankingDataset.load(target)
        except (OSError, ValueError):  # absent, or damaged: made again
            return None
        return dataset if current(dataset) else None

    found = stored()
    if found is None:
        made = make()
        try:
            made.save(target, overwrite=True)
        except OSError as error:
            if stored() is None:  # else another process was first, and its files serve
                warnings.warn(f"{target} could not be written ({error}).", stacklevel=2)
        found = stored() or made
    return found
