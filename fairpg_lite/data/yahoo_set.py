"""Yahoo's Learning to Rank Challenge, Set 1: read from the files that its licensees receive."""

import os
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import torch

from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.letor import Source, decompressed, open_file, read_source

# (queries, documents), as published with the challenge (Chapelle & Chang 2011).
PUBLISHED_COUNTS: Mapping[str, tuple[int, int]] = {
    "train": (19_944, 473_134),
    "valid": (2_994, 71_083),
    "test": (6_983, 165_660),
}
N_FEATURES = 699
HOW_TO_OBTAIN = (
    "The data is dataset C14, 'Learning to Rank Challenge', of Yahoo's Webscope programme: its "
    "licence does not let us ship it, researchers apply for it themselves. Unpacked or as the "
    "archive, put it in one directory and pass that, or set FAIRPG_YAHOO to it. Without it, "
    "yahoo_like() makes a stand-in of the same shape."
)
_TAR, _ZIP = (".tgz", ".tar.gz", ".tar.bz2", ".tbz2", ".tar.xz", ".tar"), (".zip",)


class YahooSets(NamedTuple):
    """The three parts of Set 1.

    Chapters 10 and 11.
    """

    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


class _Found(NamedTuple):
    """A part's text: a file, or a member of an archive."""

    file: Path
    member: str | None = None

    @property
    def name(self) -> str:
        return str(self.file) if self.member is None else f"{self.file}!{self.member}"

    def fingerprint(self) -> str:
        """Changes when the file does; looks at its size and time, not at its content."""
        stat = self.file.stat()
        text = f"{self.name} {stat.st_size} {stat.st_mtime_ns}"
        return sha256(text.encode()).hexdigest()

    @contextmanager
    def open(self) -> Iterator[Any]:
        if self.member is None:
            with open_file(self.file) as text:
                yield text
        elif self.file.name.lower().endswith(_ZIP):
            with (
                zipfile.ZipFile(self.file) as zipped,
                zipped.open(self.member) as raw,
                decompressed(raw) as text,
            ):
                yield text
        else:
            with tarfile.open(self.file) as tarred:
                member = tarred.extractfile(self.member)
                assert member is not None  # _members lists regular files only
                with member, decompressed(member) as text:
                    yield text


def yahoo(
    root: str | os.PathLike[str] | None = None,
    *,
    cache: str | os.PathLike[str] | None = None,
    expected_counts: Mapping[str, tuple[int, int]] | None = PUBLISHED_COUNTS,
    n_features: int = N_FEATURES,
    progress: bool = True,
) -> YahooSets:
    """`(train, valid, test)` of Set 1, memory-mapped.

    root: the directory (searched with its sub-directories) or the archive; FAIRPG_YAHOO if not
        given. `set1.{train,valid,test}.txt` may be plain, .gz, .bz2 or .xz, or lie in a .tgz,
        .tar or .zip.
    cache: where the arrays go on the first load (about 2 GB for the full set): next to the data
        in `.fairpg_lite`, or, if that cannot be written, the user's cache directory. Later loads
        only map the files, as long as the text keeps its size and time of change.
    expected_counts: (queries, documents) of each part; a part that has others is refused. None
        switches the check off.

    Errors say which file is wrong or missing, and how the data is obtained.

    Chapters 10 and 11; appendix B.1 of the paper.
    """
    root = root or os.environ.get("FAIRPG_YAHOO")
    if not root:
        raise FileNotFoundError(f"yahoo: no directory was given. {HOW_TO_OBTAIN}")
    base = Path(root).expanduser()
    found = _find(base)
    directory = _cache_directory(base, cache)
    parts = {}
    for part in PUBLISHED_COUNTS:
        counts = None if expected_counts is None else expected_counts[part]
        parts[part] = _part(part, found[part], directory, counts, n_features, progress)
    return YahooSets(**parts)


def _find(base: Path) -> dict[str, _Found]:
    """Where each part lies; plain files win over archives, then the shorter path."""
    if not base.exists():
        raise FileNotFoundError(f"yahoo: {base} does not exist. {HOW_TO_OBTAIN}")
    files = [base] if base.is_file() else sorted(p for p in base.rglob("set1.*") if p.is_file())
    candidates = [_Found(file) for file in sorted(files, key=lambda p: (len(p.parts), p.name))]
    found = {part: _pick(candidates, part) for part in PUBLISHED_COUNTS}
    if not all(found.values()):
        inside = [member for archive in _archives(base) for member in _members(archive)]
        found = {part: found[part] or _pick(inside, part) for part in PUBLISHED_COUNTS}
    missing = [f"set1.{part}.txt" for part, where in found.items() if where is None]
    if missing:
        raise FileNotFoundError(
            f"yahoo: {', '.join(missing)} not found in {base}, its sub-directories or archives. "
            f"{HOW_TO_OBTAIN}"
        )
    return {part: where for part, where in found.items() if where is not None}


def _pick(candidates: list[_Found], part: str) -> _Found | None:
    names = {f"set1.{part}.txt{suffix}" for suffix in ("", ".gz", ".bz2", ".xz")}
    for candidate in candidates:
        if PurePosixPath(candidate.member or candidate.file.name).name in names:
            return candidate
    return None


def _archives(base: Path) -> list[Path]:
    files = [base] if base.is_file() else sorted(p for p in base.rglob("*") if p.is_file())
    return [file for file in files if file.name.lower().endswith(_TAR + _ZIP)]


def _members(archive: Path) -> list[_Found]:
    try:
        if archive.name.lower().endswith(_ZIP):
            with zipfile.ZipFile(archive) as opened:
                names = [name for name in opened.namelist() if not name.endswith("/")]
        else:
            with tarfile.open(archive) as opened_tar:
                names = [member.name for member in opened_tar if member.isfile()]
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"yahoo: the archive {archive} is cut or damaged ({error}).") from error
    return [_Found(archive, name) for name in names]


def user_cache_directory() -> Path:
    """The user's cache directory for fairpg-lite, as the operating system has it."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = str(Path.home() / "Library" / "Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "fairpg-lite"


def _cache_directory(base: Path, cache: str | os.PathLike[str] | None) -> Path:
    if cache is not None:
        return Path(cache)
    beside = (base.parent if base.is_file() else base) / ".fairpg_lite"
    try:
        beside.mkdir(exist_ok=True)
        (beside / f".writable.{os.getpid()}").touch()
        (beside / f".writable.{os.getpid()}").unlink()
    except OSError:  # data on a read-only disk
        # One directory per place of the data, so that two copies do not take turns.
        key = sha256(str(base.resolve()).encode()).hexdigest()[:16]
        return user_cache_directory() / f"yahoo-{key}"
    return beside


def _part(
    part: str,
    found: _Found,
    directory: Path,
    counts: tuple[int, int] | None,
    n_features: int,
    progress: bool,
) -> RankingDataset:
    """The part from the cache, or from the text, which then fills the cache."""
    target, key = directory / f"set1.{part}", f"{found.fingerprint()} {n_features}"
    dataset = _cached(target, key)
    if dataset is None:
        source = Source(found.name, found.open)
        dataset = read_source(
            source,
            n_features=n_features,
            dtype=torch.float32,
            zero_based=False,
            require_final_newline=True,
            progress=progress,
        )
        _check_counts(dataset, found.name, counts)
        dataset.info.update(name=f"Yahoo Set 1, {part}", fingerprint=key)
        try:
            dataset.save(target, overwrite=True)
        except OSError as error:
            if _cached(target, key) is None:  # else another process was first, and its files serve
                warnings.warn(f"yahoo: {target} could not be written ({error}).", stacklevel=3)
        dataset = _cached(target, key) or dataset
    _check_counts(dataset, found.name, counts)
    return dataset


def _cached(target: Path, key: str) -> RankingDataset | None:
    try:
        dataset = RankingDataset.load(target)
    except (OSError, ValueError):  # absent, or damaged: made again from the text
        return None
    return dataset if dataset.info.get("fingerprint") == key else None


def _check_counts(dataset: RankingDataset, name: str, counts: tuple[int, int] | None) -> None:
    found = (len(dataset), dataset.n_documents)
    if counts is not None and found != tuple(counts):
        raise ValueError(
            f"yahoo: {name} has {found[0]:,} queries and {found[1]:,} documents, published are "
            f"{counts[0]:,} and {counts[1]:,}; the file is cut or is another set. {HOW_TO_OBTAIN}"
        )
