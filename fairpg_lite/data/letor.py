"""Reading and writing LETOR text (SVMlight with query ids): `<grade> qid:<q> <id>:<value> …`.

scikit-learn's SVMlight reader does the parsing. It is handed a few megabytes of whole lines at a
time, because it appends each query id to a growing array (quadratic on a large file), and
because an error then concerns few lines, which `letor_lines` reads again to name the line.

What scikit-learn accepts in silence and we refuse: NaN and infinity (also a number too large for
`dtype`), a line without a query id, `qidx:7`, digits grouped by underscores (`1_000`), a
negative grade, a file without documents. It refuses, and we say where: a missing colon, two
colons, ids that are not rising, not whole or below 1. We also refuse a last line without a line
end, the usual sign of a cut file, unless told otherwise. A file cut exactly between two lines
cannot be told from a whole one; `yahoo` compares counts for that reason.
"""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fairpg_lite._extras import require
from fairpg_lite._progress import Bar, progress_bar
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.letor_lines import LetorError, check_heads, first_error

BLOCK_BYTES = 4 << 20
# A stray id of 2147483647 would otherwise ask for a dense column for each of two billion ids.
MAX_INFERRED_FEATURES = 100_000


_DAMAGE = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    tarfile.TarError,
    zipfile.BadZipFile,
)


class Source(NamedTuple):
    """Where text comes from: a name for messages, and a function that opens the bytes."""

    name: str
    open: Callable[[], AbstractContextManager[Any]]


def load_letor(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    dtype: torch.dtype = torch.float32,
    zero_based: bool = False,
    require_final_newline: bool = True,
    progress: bool = False,
) -> RankingDataset:
    r"""Read LETOR text, plain or compressed (.gz, .bz2, .xz, told by content, not by name).

    Queries keep the order in which they first occur, documents the order of the file; a query
    whose lines are scattered is gathered, and `document_ids` then says which document of the
    file (from 0) each row is; without scattered queries it is None: the file's order. Text after
    `#` and empty lines are skipped. Feature ids may leave gaps (absent is 0) and begin at 1, or
    at 0 with `zero_based`. Column j of the features is id j + 1 (j with `zero_based`).

    n_features: the number of columns, for files whose largest id differs (train and test, say);
        without it, the largest id of this file.
    dtype: torch.float32 or torch.float64.
    require_final_newline: refuse a last line without a line end (see the module).

    Any fault raises LetorError (a ValueError) with the file, the line and the offending text.

    Chapter 10.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     file = pathlib.Path(directory) / "two.txt"
    ...     _ = file.write_text("2 qid:7 1:0.5 3:1 # a comment\n0 qid:9 2:4\n")
    ...     load_letor(file)
    RankingDataset(2 queries, 2 documents, 3 features, no groups)
    """
    return read_source(
        Source(os.fspath(path), lambda: open_file(path)),
        n_features=n_features,
        dtype=dtype,
        zero_based=zero_based,
        require_final_newline=require_final_newline,
        progress=progress,
    )


def read_source(
    source: Source,
    *,
    n_features: int | None,
    dtype: torch.dtype,
    zero_based: bool,
    require_final_newline: bool,
    progress: bool,
) -> RankingDataset:
    """`load_letor` from any Source: two passes, one to count lines and one to parse."""
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"load_letor: dtype is {dtype}; use torch.float32 or torch.float64.")
    if n_features is not None and n_features < 1:
        raise ValueError(f"load_letor: n_features is {n_features}; give 1 or more.")
    lines, size = _count_lines(source, require_final_newline)
    rows = _Rows(source.name, lines, n_features, np.dtype(str(dtype).removeprefix("torch.")))
    with progress_bar(f"reading {Path(source.name).name}", size, "B", progress) as bar:
        for number, block in _blocks(source, bar):
            rows.append(number, block, zero_based)
    return rows.dataset()


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The text of a file, decompressed if need be."""
    with open(path, "rb") as raw, decompressed(raw) as text:
        yield text


@contextmanager
def decompressed(raw: Any) -> Iterator[Any]:
    """The text behind a buffered reader, decompressed if its first bytes say so."""
    # peek, not read and seek: going back is slow inside a compressed archive.
    head = raw.peek(6)
    if head.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=raw) as text:
            yield text
    elif head.startswith(b"BZh"):
        with bz2.BZ2File(raw) as text:
            yield text
    elif head.startswith(b"\xfd7zXZ\x00"):
        with lzma.LZMAFile(raw) as text:
            yield text
    else:
        yield raw


def _chunks(source: Source) -> Iterator[bytes]:
    """The source's bytes, a block at a time, with damage reported as ours."""
    try:
        with source.open() as stream:
            while chunk := stream.read(BLOCK_BYTES):
                yield chunk
    except _DAMAGE as error:
        raise LetorError(
            source.name, None, f"the compressed file is cut or damaged ({error})"
        ) from error
    except OSError as error:
        if error.errno is not None:  # a real failure of the file system: not ours to rename
            raise
        raise LetorError(source.name, None, f"the compressed file is damaged ({error})") from error


def _count_lines(source: Source, require_final_newline: bool) -> tuple[int, int]:
    lines = size = 0
    last = b""
    for chunk in _chunks(source):
        lines += chunk.count(b"\n")
        size += len(chunk)
        last = chunk
    if not size:
        raise LetorError(source.name, None, "the file is empty")
    if not last.endswith(b"\n"):
        if require_final_newline:
            raise LetorError(
                source.name,
                lines + 1,
                "the last line has no line end, so the file may have been cut; if it is whole, "
                "pass require_final_newline=False",
                last.rpartition(b"\n")[2],
            )
        lines += 1
    return lines, size


def _blocks(source: Source, bar: Bar) -> Iterator[tuple[int, bytes]]:
    """Whole lines, some megabytes at a time, with the number of the first of them."""
    number, rest = 1, b""
    for chunk in _chunks(source):
        bar.update(len(chunk))
        whole, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest += chunk
            continue
        block = rest + whole + newline
        yield number, block
        number += block.count(b"\n")
        rest = tail
    if rest:
        yield number, rest


class _Rows:
    """The growing dataset: one array of the final height, widened only if a new id asks for it."""

    def __init__(self, name: str, lines: int, n_features: int | None, dtype: np.dtype):
        self.name, self.lines, self.n_features, self.dtype = name, lines, n_features, dtype
        self.features = np.zeros((lines, n_features or 0), dtype)
        self.relevance: list[np.ndarray] = []
        self.qids: list[np.ndarray] = []
        self.count = 0

    def append(self, number: int, block: bytes, zero_based: bool) -> None:
        sparse, grades, qids = self._parse(number, block, zero_based)
        if not len(grades):
            return  # nothing but comments
        # scikit-learn reports one column where there is none.
        width = int(sparse.indices.max()) + 1 if sparse.nnz else 0
        if width > self.features.shape[1]:
            wider = np.zeros((self.lines, width), self.dtype)
            wider[: self.count, : self.features.shape[1]] = self.features[: self.count]
            self.features = wider
        rows = slice(self.count, self.count + len(grades))
        sparse.resize(len(grades), max(self.features.shape[1], 1))
        if self.features.shape[1]:
            sparse.toarray(out=self.features[rows])
        self.relevance.append(grades)
        self.qids.append(qids)
        self.count = rows.stop

    def _parse(self, number: int, block: bytes, zero_based: bool) -> tuple[Any, ...]:
        reader = require("sklearn.datasets", "experiments").load_svmlight_file
        limit = self.n_features or MAX_INFERRED_FEATURES
        problem = None
        try:
            sparse, grades, qids = reader(
                io.BytesIO(block), dtype=self.dtype, zero_based=zero_based, query_id=True
            )
        except (ValueError, OverflowError, MemoryError) as error:
            problem = f"scikit-learn's reader refuses it: {error}"
        else:
            with np.errstate(over="ignore"):
                grades = grades.astype(self.dtype)
            fine = np.isfinite(sparse.data).all() and np.isfinite(grades).all()
            fine = bool(fine and (grades >= 0).all() and len(qids) == len(grades))
            if not (fine and sparse.shape[1] <= limit and check_heads(block)):
                problem = "a line is not of the form '<grade> qid:<q> <id>:<value> …'"
        if problem is None:
            return sparse, grades, qids
        given = self.n_features is not None
        raise first_error(self.name, number, block, self.dtype, zero_based, limit, given) or (
            LetorError(self.name, number, f"{problem} (in the lines from here on)")
        )

    def dataset(self) -> RankingDataset:
        if not self.count:
            raise LetorError(self.name, None, "the file has no documents, only comments")
        features, relevance = self.features[: self.count], np.concatenate(self.relevance)
        qids = np.concatenate(self.qids)
        changes = np.flatnonzero(np.diff(qids)) + 1
        starts, places = np.concatenate([[0], changes]), None
        if len(np.unique(qids)) < len(starts):  # a query in several places
            _, first, member = np.unique(qids, return_index=True, return_inverse=True)
            order = np.argsort(first[member], kind="stable")
            features, relevance, qids = features[order], relevance[order], qids[order]
            places = torch.from_numpy(order)
            starts = np.concatenate([[0], np.flatnonzero(np.diff(qids)) + 1])
        return RankingDataset(
            torch.from_numpy(features),
            torch.from_numpy(relevance),
            torch.from_numpy(np.concatenate([starts, [self.count]])),
            query_ids=torch.from_numpy(qids[starts]),
            document_ids=places,
            info={"name": Path(self.name).name},
        )


def save_letor(dataset: RankingDataset, path: str | os.PathLike[str]) -> None:
    """Write LETOR text that `load_letor` reads back, compressed for .gz, .bz2 and .xz.

    Values come back bit for bit when read with the same dtype; zeros are left out, so pass
    `n_features` when reading if the last columns may be all zero. Groups are not part of the
    format and are not written: `RankingDataset.save` keeps everything.

    Chapter 10.
    """
    if len(set(dataset.query_ids.tolist())) < len(dataset):
        raise ValueError("save_letor: two queries share an id and would be read back as one.")
    target = Path(path)
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with openers.get(target.suffix, open)(temporary, "wt", encoding="ascii", newline="\n") as f:
            for qid, query in zip(dataset.query_ids.tolist(), dataset, strict=True):
                f.writelines(_lines(qid, query.features.numpy(), query.relevance.tolist()))
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _lines(qid: int, features: np.ndarray, relevance: list[float]) -> Iterator[str]:
    # 9 and 17 significant digits identify every float32 and float64.
    pattern = " %d:%.9g" if features.dtype == np.float32 else " %d:%.17g"
    for row, grade in zip(features, relevance, strict=True):
        columns = np.flatnonzero(row)
        pairs = np.empty((len(columns), 2), object)
        pairs[:, 0], pairs[:, 1] = columns + 1, row[columns].astype(float)
        yield f"{grade:.17g} qid:{qid}" + pattern * len(columns) % tuple(pairs.ravel()) + "\n"
