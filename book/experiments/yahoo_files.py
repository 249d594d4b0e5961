"""Yahoo's Learning to Rank Challenge, Set 1, for who has the files (appendix B.1 of the paper)."""

import hashlib
import os
import warnings
from contextlib import suppress
from pathlib import Path

from fairpg_lite.data import RankingDataset, load_letor

# (queries, documents) as published with the challenge (Chapelle & Chang 2011).
PUBLISHED_COUNTS = {"train": (19_944, 473_134), "valid": (2_994, 71_083), "test": (6_983, 165_660)}
HOW_TO_OBTAIN = (
    "Researchers apply to Yahoo's Webscope programme for dataset C14, Learning to Rank Challenge. "
    "Unpack the archive in one directory and pass that, data=PATH (--data PATH), or set "
    "FAIRPG_YAHOO to it; without the files there is a stand-in, stand_in=True (--stand-in)."
)


def yahoo(root: str | os.PathLike[str] | None = None) -> tuple[RankingDataset, ...]:
    """Read Yahoo's Set 1.

    The first load stores about 2 GB in the user's cache directory; later loads map that, as long as
    the text keeps its size and time of change.

    Args:
        root: The directory with `set1.{train,valid,test}.txt`, plain, .gz, .bz2 or .xz, in it or in
            a folder below; None is FAIRPG_YAHOO.

    Returns:
        Training, validation and test queries, memory-mapped.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: It has other than the published numbers of queries and documents.
    """
    base = Path(root or os.environ.get("FAIRPG_YAHOO") or "(none given)").expanduser()
    return tuple(_part(base, part) for part in PUBLISHED_COUNTS)


def _part(base: Path, part: str) -> RankingDataset:
    """The queries of one file, their number checked."""
    files = sorted(base.rglob(f"set1.{part}.txt*"), key=lambda path: (len(path.parts), path))
    if not files:
        raise FileNotFoundError(f"yahoo: no set1.{part}.txt in {base}. {HOW_TO_OBTAIN}")
    dataset = _remembered(f"yahoo-{part}", files[0])
    counts = (len(dataset), dataset.n_documents)
    published = PUBLISHED_COUNTS[part]
    if counts != published:
        raise ValueError(
            f"yahoo: {files[0]} has {counts} queries and documents, published are {published}; "
            f"the file is cut or is another set. {HOW_TO_OBTAIN}"
        )
    return dataset


def _remembered(name: str, text: Path) -> RankingDataset:
    """The documents of `text`, from the user's cache if they can be stored there."""
    stat = text.stat()
    key = f"{text.absolute()} {stat.st_size} {stat.st_mtime_ns}"  # changes with the file
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fairpg-lite"
    target = cache / f"{name}-{digest}.pt"
    with suppress(OSError, ValueError):  # absent, or damaged: made again
        return RankingDataset.load(target)
    dataset = load_letor(text, n_features=699)
    try:
        dataset.save(target)
        return RankingDataset.load(target)
    except OSError as error:
        warnings.warn(f"{target} could not be written ({error}).", stacklevel=2)
        return dataset
