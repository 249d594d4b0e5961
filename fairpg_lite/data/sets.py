"""The sets: the paper's synthetic one, a sample of MSLR-WEB10K, and Yahoo's, for who has the files.

German Credit has a file of its own, `german.py`.
"""

import hashlib
import io
import lzma
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache as remember
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fairpg_lite import _check
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.letor import load_letor

# (queries, documents) of Yahoo's Set 1, as published with the challenge (Chapelle & Chang 2011).
PUBLISHED_COUNTS: Mapping[str, tuple[int, int]] = {
    "train": (19_944, 473_134),
    "valid": (2_994, 71_083),
    "test": (6_983, 165_660),
}
HOW_TO_OBTAIN = (
    "The data is dataset C14, 'Learning to Rank Challenge', of Yahoo's Webscope programme: its "
    "licence does not let us ship it, researchers apply for it themselves. Unpack the archive in "
    "one directory and pass that, or set FAIRPG_YAHOO to it."
)


def _checksums() -> dict[str, str]:
    lines = (files("fairpg_lite") / "_data" / "SHA256SUMS").read_text("ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


@remember
def read_resource(name: str) -> bytes:
    """The bytes of `fairpg_lite/_data/<name>`, checked against SHA256SUMS; read once."""
    content = (files("fairpg_lite") / "_data" / name).read_bytes()
    expected, found = _checksums().get(name), hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ValueError(
            f"fairpg_lite/_data/{name} has sha256 {found}, SHA256SUMS says {expected}: the file "
            "was changed or damaged; reinstall fairpg-lite."
        )
    return content


def synthetic(
    n_queries: int = 100,
    n_docs: int = 10,
    seed: int = 0,
    clip: float = 5.0,
    minority: float = 0.2,
    *,
    dtype: torch.dtype | None = None,
) -> RankingDataset:
    """Two features, one of them hidden for the minority group.

    Every document is in G1 with probability `minority`; x1 and x2 are uniform on (0, 3), its
    relevance is x1 + x2 clipped to [0, clip], and only then is x2 replaced by 0 for G1. features
    (n_queries * n_docs, 2) are (x1, x2). The authors' notebook clips at 4 where the paper says 5.

    One generator gives first the draws for membership, then those for (x1, x2), in float64: the
    same seed with another `clip`, `minority` or `dtype` (torch's default) keeps the same draws.

    Chapters 7 and 9; section 4.2 of the paper.

    >>> synthetic()
    RankingDataset(100 queries, 1000 documents, 2 features, groups 0/1)
    """
    if n_queries < 1 or n_docs < 1 or not 0 <= minority <= 1 or not clip > 0:
        raise ValueError(
            f"synthetic: n_queries is {n_queries}, n_docs is {n_docs}, minority is {minority}, "
            f"clip is {clip}; give 1 or more of both, a share in [0, 1], and a clip above 0."
        )
    generator = torch.Generator().manual_seed(_check.seed("synthetic: seed", seed))
    n = n_queries * n_docs
    groups = (torch.rand(n, generator=generator, dtype=torch.float64) < minority).long()
    x = 3 * torch.rand(n, 2, generator=generator, dtype=torch.float64)
    relevance = x.sum(1).clamp(0.0, clip)
    x[groups == 1, 1] = 0.0
    return RankingDataset(
        x.to(dtype or torch.get_default_dtype()),
        relevance,
        torch.arange(0, n + 1, n_docs),
        groups=groups,
        info={"name": "synthetic", "seed": seed, "clip": clip, "minority": minority},
    )


def mslr_sample(
    *, normalize: bool = True, dtype: torch.dtype | None = None
) -> tuple[RankingDataset, RankingDataset]:
    """`(train, test)`: the first 42 + 42 complete queries of MSLR-WEB10K, Fold 1.

    136 features, grades 0 to 4. `normalize` brings each feature to [0, 1] within its query; without
    it the values are those of Microsoft's text (exactly so with dtype=torch.float64). Data: Qin &
    Liu, "Introducing LETOR 4.0 Datasets", arXiv:1306.2597, CC BY 4.0.

    Chapters 2 and 10.

    >>> mslr_sample()[0]
    RankingDataset(42 queries, 4955 documents, 136 features, no groups)
    """
    parts = [_mslr_part("train"), _mslr_part("test")]
    if normalize:
        parts = [part.normalize("minmax") for part in parts]
    train, test = (part.to(dtype or torch.get_default_dtype()) for part in parts)
    return train, test


def _mslr_part(part: str) -> RankingDataset:
    content = lzma.decompress(read_resource(f"mslr_web10k_fold1_{part}.npz.xz"))
    info = {"name": f"MSLR-WEB10K Fold 1, {part}, first 42 queries"}
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        # Stored with the documents of a feature side by side, which compresses to half the size.
        features, *rest = (arrays[name] for name in ("features", "relevance", "offsets"))
        features = torch.from_numpy(np.ascontiguousarray(features.T))
        return RankingDataset(features, *rest, query_ids=arrays["query_ids"], info=info)


class YahooSets(NamedTuple):
    """The three parts of Yahoo's Set 1.

    Chapters 10 and 11.
    """

    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


def yahoo(
    root: str | os.PathLike[str] | None = None,
    *,
    expected_counts: Mapping[str, tuple[int, int]] | None = PUBLISHED_COUNTS,
    progress: bool = True,
) -> YahooSets:
    """`(train, valid, test)` of Yahoo's Learning to Rank Challenge, Set 1, memory-mapped.

    `set1.{train,valid,test}.txt` in `root` (or FAIRPG_YAHOO) or below it may be plain, .gz, .bz2 or
    .xz. The first load stores about 2 GB in `.fairpg_lite` beside the data, or, if that cannot be
    written, in the user's cache directory; later loads map that, as long as the text keeps its size
    and time of change. A part with other (queries, documents) than `expected_counts` is refused.

    Chapters 10 and 11; appendix B.1 of the paper.
    """
    given = root or os.environ.get("FAIRPG_YAHOO")
    if not given:
        raise FileNotFoundError(f"yahoo: no directory was given. {HOW_TO_OBTAIN}")
    base, parts = Path(given).expanduser(), {}
    for part in PUBLISHED_COUNTS:
        names = {f"set1.{part}.txt{suffix}" for suffix in ("", ".gz", ".bz2", ".xz")}
        found = [p for p in base.rglob(f"set1.{part}.txt*") if p.name in names and p.is_file()]
        if not found:
            what = f"set1.{part}.txt not found in {base} or its sub-directories"
            if not base.is_dir():
                what = f"{base} {'is a file; unpack it' if base.exists() else 'does not exist'}"
            raise FileNotFoundError(f"yahoo: {what}. {HOW_TO_OBTAIN}")
        parts[part] = min(found, key=lambda p: (len(p.parts), p.name))
    place = _cache_directory(base)
    return YahooSets(
        **{
            part: _yahoo_part(part, p, place, expected_counts, progress)
            for part, p in parts.items()
        }
    )


def _cache_directory(base: Path) -> Path:
    """Beside the data, or, for data on a read-only disk, one for it in the user's cache."""
    with suppress(OSError):
        (base / ".fairpg_lite").mkdir(exist_ok=True)
        if os.access(base / ".fairpg_lite", os.W_OK):
            return base / ".fairpg_lite"
    digest = hashlib.sha256(str(base.resolve()).encode()).hexdigest()
    return user_cache_directory() / f"yahoo-{digest[:16]}"


def _yahoo_part(
    part: str,
    file: Path,
    place: Path,
    expected: Mapping[str, tuple[int, int]] | None,
    progress: bool,
) -> RankingDataset:
    """The part from the cache, or from the text, which then fills the cache."""

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
        return checked(load_letor(file, n_features=699, progress=progress))

    stat = file.stat()
    key = f"{file} {stat.st_size} {stat.st_mtime_ns}"  # changes when the file does
    return checked(remembered(place / f"set1.{part}.safetensors", key, make))


def user_cache_directory() -> Path:
    """Where what was computed once is kept, as in other projects: ~/.cache unless set elsewhere."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fairpg-lite"


def remembered(target: Path, key: str, make: Callable[[], RankingDataset]) -> RankingDataset:
    """The dataset at `target`, memory-mapped, if it was stored under `key`; otherwise made anew.

    Where it cannot be stored, a warning says so and it stays in memory.
    """

    def stored() -> RankingDataset | None:
        with suppress(OSError, ValueError):  # absent, or damaged: made again
            dataset = RankingDataset.load(target)
            return dataset if dataset.info.get("key") == key else None
        return None

    found = stored()
    if found is None:
        made = make()
        made.info["key"] = key
        try:
            made.save(target, overwrite=True)
        except OSError as error:
            if stored() is None:  # else another process was first, and its file serves
                warnings.warn(f"{target} could not be written ({error}).", stacklevel=2)
        found = stored() or made
    return found
