"""LETOR files (SVMlight with query ids), read and written."""

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairpg_lite._files import whole_file
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.gathering import gather
from fairpg_lite.data.letor_lines import (
    WHOLE_NUMBER,
    Documents,
    LetorError,
    Rules,
    as_text,
    first_fault,
    kind_of_ids,
    parse,
)

PathLike = str | os.PathLike[str]
BLOCK_BYTES = 4 << 20  # of text, parsed at once
# One stray id, 99999, in a short file would otherwise ask for gigabytes of zeros: without
# n_features the array is limited, to 64 MB of float32 or so many values for each byte of the file.
MAX_VALUES = 1 << 24
MAX_VALUES_PER_BYTE = 50
PACKERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def load_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> RankingDataset:
    r"""Read LETOR text, `<grade> qid:<q> <id>:<value> … # comment` on each line.

    Absent and `NULL` values are 0; empty lines and comments are skipped, except that a comment
    `#docid = NAME` names the document. For lines without query ids, LightGBM's file `PATH.query`
    is read: the number of documents of each query in turn.

    Args:
        path: A file, plain or packed (.gz, .bz2, .xz), or several that are read as if they were
            one. No query may be in two of them.
        n_features: The number of features; None is the largest id in the files.
        dtype: `torch.float32` or `torch.float64`. It is not torch's default dtype, so that a file
            gives the same dataset everywhere, and large files half as large a one; their text
            seldom has more than the seven digits that float32 holds.

    Returns:
        The dataset. Queries keep the order in which they first occur, documents that of the file;
        a query whose lines are scattered is gathered, and `document_ids` says which document of the
        file (from 0) each row was. Query ids are whole numbers if the file's first one is,
        otherwise texts. `documents` has the names, if there are any.

    Raises:
        LetorError: A fault in a file; the message names the file, the line and the word.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pages.txt"
    ...     _ = path.write_text("2 qid:7 1:0.5 3:1.25\n0 qid:7 2:4\n")
    ...     dataset = load_letor(path)
    >>> dataset.features, dataset.relevance
    (tensor([[0.5000, 0.0000, 1.2500],
            [0.0000, 4.0000, 0.0000]]), tensor([2., 0.]))
    """
    if hasattr(path, "columns"):
        raise TypeError(
            "load_letor: path is a DataFrame; RankingDataset.from_pandas makes a dataset of it."
        )
    if isinstance(path, (str, os.PathLike)):
        path = [path]
    paths = [os.fspath(file) for file in path]
    if not paths:
        raise ValueError("load_letor: path is an empty list; give one file or more.")
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"load_letor: dtype is {dtype}; give torch.float32 or torch.float64.")
    if n_features is not None and n_features < 1:
        raise ValueError(f"load_letor: n_features is {n_features}; give 1 or more, or None.")

    reader = _Reader(np.dtype(str(dtype).removeprefix("torch.")), n_features)
    for file in paths:
        reader.read(file)
    gathered = gather(reader.queries)
    documents = None
    if any(reader.names):
        documents = [reader.names[row] for row in gathered.rows]
    n_bytes = sum(map(os.path.getsize, paths))
    return RankingDataset(
        torch.from_numpy(reader.features(n_bytes, np.argsort(gathered.rows))),
        torch.from_numpy(reader.grades()[gathered.rows]),
        gathered.offsets,
        query_ids=gathered.ids,
        document_ids=torch.from_numpy(gathered.rows),
        documents=documents,
        info={"name": " + ".join(Path(file).name for file in paths)},
    )


def save_letor(dataset: RankingDataset, path: PathLike) -> None:
    """Write LETOR text that `load_letor` reads back, whole or not at all.

    Values come back bit for bit when they are read with the dtype that they have. Zeros are left
    out, so pass `n_features` when reading if the last columns may be all zero. Names of documents
    become comments, `#docid = NAME`. Groups are not part of the format; `RankingDataset.save` keeps
    them.

    Args:
        dataset: What to write. No two queries may share an id, and texts must be such as can stand
            in a line: no white space in names, and neither white space nor `#` or `:` in ids.
        path: The file; it is packed if it ends in .gz, .bz2 or .xz.

    >>> import tempfile
    >>> dataset = RankingDataset(torch.eye(2), torch.tensor([1.0, 0.0]), offsets=[0, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_letor(dataset, Path(folder) / "pages.txt")
    ...     print((Path(folder) / "pages.txt").read_text(), end="")
    1 qid:0 1:1
    0 qid:0 2:1
    """
    query_ids = dataset.query_ids.tolist()
    _refuse_ids(query_ids)
    names = [""] * dataset.n_documents
    if dataset.documents is not None:
        names = dataset.documents.tolist()
        _refuse_names(names)
    # 9 and 17 significant digits identify every float32 and float64.
    pair_format = " %d:%.9g" if dataset.features.dtype == torch.float32 else " %d:%.17g"
    name_of_next = iter(names)
    opener = PACKERS.get(Path(path).suffix, open)
    with (
        whole_file(Path(path)) as temporary,
        opener(temporary, "wt", encoding="utf-8", newline="\n") as file,
    ):
        for query_id, query in zip(query_ids, dataset, strict=True):
            features = query.features.numpy(force=True)
            for row, grade in zip(features, query.relevance.tolist(), strict=True):
                columns = np.flatnonzero(row)
                pairs = zip((columns + 1).tolist(), row[columns].tolist(), strict=True)
                text = "".join([pair_format % pair for pair in pairs])
                name = next(name_of_next)
                comment = f" #docid = {name}" if name else ""
                file.write(f"{grade:.17g} qid:{query_id}{text}{comment}\n")


def _refuse_ids(query_ids: list[Any]) -> None:
    """Refuse ids of queries that would be read back as others."""
    if len(set(query_ids)) < len(query_ids):
        raise ValueError(
            "save_letor: two queries share an id and would be read back as one; "
            "replace(query_ids=None) numbers them."
        )
    for query_id in query_ids:
        if isinstance(query_id, str) and re.search(r"[\s#:]|^$", query_id):
            raise ValueError(
                f"save_letor: the query id {query_id!r} cannot stand in LETOR text, where an id "
                "has at least one character, no white space, '#' or ':'; rename it."
            )


def _refuse_names(names: list[str]) -> None:
    """Refuse names of documents that would be read back as others."""
    for name in names:
        if re.search(r"\s", name):
            raise ValueError(
                f"save_letor: the document name {name!r} cannot stand in LETOR text, where a name "
                "has no white space; rename it."
            )


@dataclass
class _Reader:
    """What was read so far: the query of each document, its name, and blocks of the rest."""

    dtype: np.dtype[Any]
    n_features: int | None
    queries: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    blocks: list[Documents] = field(default_factory=list)
    path: str = ""

    def read(self, path: str) -> None:
        """Add the documents of a file."""
        self.path = path
        queries: list[Any] = []
        ids: str | None = None
        n_lines = 0
        for lines in _blocks(path):
            if not lines[-1].endswith(b"\n"):
                raise LetorError(
                    f"{path}, line {n_lines + len(lines)}: it has no line end; "
                    "add one if the file is not cut."
                )
            if ids is None:
                ids = self._kind_of_ids(lines)
            # A block without documents, of comments only, has no ids to be of any kind.
            rules = Rules(self.dtype, self.n_features, ids or "text")
            documents = parse(lines, rules)
            if documents is None:
                raise first_fault(path, n_lines + 1, lines, rules)
            queries += documents.queries
            self.names += documents.names
            self.blocks.append(documents)
            n_lines += len(lines)
        if n_lines == 0:
            raise LetorError(f"{path}: the file is empty.")
        if not queries:
            raise LetorError(f"{path}: the file has no documents, only comments and empty lines.")
        earlier = set(self.queries)
        if ids == "none":
            queries = _queries_beside(path, len(queries), len(earlier))
        shared = earlier.intersection(queries)
        if shared:
            raise LetorError(f"{path}: query {min(shared)} is in an earlier file, too.")
        self.queries += queries

    def _kind_of_ids(self, lines: list[bytes]) -> str | None:
        """Return the kind of the first document's id; "none" only where a file has the queries."""
        ids = kind_of_ids(lines)
        if ids == "none" and not os.path.isfile(f"{self.path}.query"):
            return "text"
        return ids

    def grades(self) -> np.ndarray:
        """Return the grade of each document `(N,)`."""
        return np.concatenate([block.grades for block in self.blocks])

    def features(self, n_bytes: int, row_of_document: np.ndarray) -> np.ndarray:
        """Return the features `(N, d)`, read from `n_bytes`, each document in its row."""
        n_documents = len(row_of_document)
        n_columns = self.n_features
        if n_columns is None:
            n_columns = max(int(block.columns.max(initial=-1)) for block in self.blocks) + 1
            if n_documents * n_columns > max(MAX_VALUES, MAX_VALUES_PER_BYTE * n_bytes):
                raise LetorError(
                    f"{self.path}: {n_documents:,} documents and a feature id of {n_columns} make "
                    "a very large array; pass n_features."
                )
        features = np.zeros((n_documents, n_columns), self.dtype)
        start = 0
        for block in self.blocks:
            end = start + len(block.counts)
            rows = np.repeat(row_of_document[start:end], block.counts)
            features[rows, block.columns] = block.values
            start = end
        return features


def _blocks(path: str) -> Iterator[list[bytes]]:
    """Yield the lines of a file, unpacked, some megabytes at a time."""
    try:
        with PACKERS.get(Path(path).suffix, open)(path, "rb") as stream:
            lines = stream.readlines(BLOCK_BYTES)
            while lines:
                yield lines
                lines = stream.readlines(BLOCK_BYTES)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the file system: not ours to rename
            raise
        raise LetorError(f"{path}: the compressed file is cut or damaged ({error}).") from error


def _queries_beside(path: str, n_documents: int, first: int) -> list[int]:
    """Return the query of each document, from `first` on, by LightGBM's file beside `path`."""
    counts = []
    for number, word in enumerate(Path(f"{path}.query").read_bytes().split(), start=1):
        if not WHOLE_NUMBER.fullmatch(word) or int(word) < 1:
            raise LetorError(
                f"{path}.query, entry {number}: {as_text(word[:60])!r} is not the number of "
                "documents of a query, a whole number above 0."
            )
        counts.append(int(word))
    if sum(counts) != n_documents:
        raise LetorError(
            f"{path}.query: the counts add up to {sum(counts):,}; "
            f"{path} has {n_documents:,} documents."
        )
    numbers = np.arange(first, first + len(counts))
    queries: list[int] = np.repeat(numbers, counts).tolist()
    return queries
