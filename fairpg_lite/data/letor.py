"""LETOR text (SVMlight with query ids), `<grade> qid:<q> <id>:<value> …`, read and written.

One pattern knows the lines that are right, and NumPy their numbers. Where something is amiss, the
lines are read again, word by word, to name the first that is wrong.
"""

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
from fairpg_lite.data.arrays import gathered
from fairpg_lite.data.dataset import RankingDataset

PathLike = str | os.PathLike[str]
BLOCK_BYTES = 4 << 20  # of text, parsed at once
# One stray id, 99999, in a short file would otherwise ask for gigabytes of zeros: without
# n_features the array is limited, to 64 MB of float32 or so many values for each byte of the file.
MAX_VALUES, MAX_VALUES_PER_BYTE = 1 << 24, 50
PACKERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_NUMBER = rb"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+"
_IDS = {"whole": rb"[+-]?[0-9]{1,18}", "text": rb"[^\s:#]+", "none": rb""}  # of queries
# A document (grade, query id, pairs), a comment (with a name, perhaps), both or nothing.
_LINE = re.compile(
    rb"\s*+(?:(%b)(?:\s++qid:([^\s:#]++))?+((?:\s++\+?[0-9]{1,9}+:(?:%b|NULL))*+))?+"
    rb"\s*+(?:#(?:.*?\bdocid\s*=\s*(\S+))?.*)?" % (_NUMBER, _NUMBER),
    re.DOTALL,
)


class LetorError(ValueError):
    """A fault in a LETOR file (chapter 10), with the file, the line and the word that is wrong."""


def load_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> RankingDataset:
    """Read LETOR text from a file, plain or .gz, .bz2, .xz, or from several as if they were one.

    Queries keep the order in which they first occur, documents that of the file; a query whose
    lines are scattered is gathered, and `document_ids` says which document of the file (from 0)
    each row is. Query ids are whole numbers if the file's first one is, otherwise texts; for lines
    without any, LightGBM's file `PATH.query` has the number of documents of each query in turn. A
    comment `#docid = NAME` names the document in `documents`; other comments and empty lines are
    skipped, absent and `NULL` values are 0. Without `n_features` the largest id is the number of
    columns. A fault is a `LetorError`. Chapter 10.
    """
    if hasattr(path, "columns"):
        raise TypeError("load_letor: give a path; RankingDataset.from_pandas takes a DataFrame.")
    paths = [os.fspath(p) for p in ([path] if isinstance(path, (str, os.PathLike)) else path)]
    known = (torch.float32, torch.float64)
    if not paths or dtype not in known or (n_features is not None and n_features < 1):
        raise ValueError(
            f"load_letor: {len(paths)} files, dtype is {dtype}, n_features is {n_features}; give "
            "one file or more, torch.float32 or torch.float64, and 1 feature or more."
        )
    kind = np.dtype(str(dtype).removeprefix("torch."))
    reader = _Reader(kind, n_features)
    for file in paths:
        reader.read(file)
    queries, order, offsets = gathered(reader.queries)
    size = sum(map(os.path.getsize, paths))
    return RankingDataset(
        torch.from_numpy(reader.features(size, np.argsort(order))),
        torch.from_numpy(np.concatenate(reader.grades)[order]),
        offsets,
        query_ids=queries,
        document_ids=torch.from_numpy(order),
        documents=[reader.names[i] for i in order] if any(reader.names) else None,
        info={"name": " + ".join(Path(p).name for p in paths)},
    )


def save_letor(dataset: RankingDataset, path: PathLike) -> None:
    """Write LETOR text that `load_letor` reads back, compressed for .gz, .bz2 and .xz.

    Values come back bit for bit when read with the same dtype; zeros are left out, so pass
    `n_features` when reading if the last columns may be all zero. Document names become
    `#docid = …` comments; groups are not part of the format (`RankingDataset.save` keeps all).
    Chapter 10.
    """
    ids, names = dataset.query_ids.tolist(), [""] * dataset.n_documents
    names = names if dataset.documents is None else dataset.documents.tolist()
    if len(set(ids)) < len(dataset):
        raise ValueError("save_letor: two queries share an id and would be read back as one.")
    for texts, forbidden in ((ids, r"[\s#:]|^$"), (names, r"\s")):
        bad = next((t for t in texts if isinstance(t, str) and re.search(forbidden, t)), None)
        if bad is not None:
            raise ValueError(f"save_letor: {bad!r} cannot stand in LETOR text; rename it.")
    # 9 and 17 significant digits identify every float32 and float64.
    pattern = " %d:%.9g" if dataset.features.dtype == torch.float32 else " %d:%.17g"
    opener, name = PACKERS.get(Path(path).suffix, open), iter(names)
    with (
        whole_file(Path(path)) as temporary,
        opener(temporary, "wt", encoding="utf-8", newline="\n") as file,
    ):
        for qid, query in zip(ids, dataset, strict=True):
            for row, grade in zip(query.features.numpy(), query.relevance.tolist(), strict=True):
                columns = np.flatnonzero(row)
                pairs = zip((columns + 1).tolist(), row[columns].tolist(), strict=True)
                comment = f" #docid = {own}" if (own := next(name)) else ""
                file.write(
                    f"{grade:.17g} qid:{qid}{''.join(map(pattern.__mod__, pairs))}{comment}\n"
                )


@dataclass
class _Reader:
    """The rules for the lines of all files, and what was found in them so far."""

    dtype: np.dtype
    n_features: int | None
    queries: list[Any] = field(default_factory=list)  # of each document
    names: list[str] = field(default_factory=list)  # of each document
    grades: list[np.ndarray] = field(default_factory=list)  # (documents,) for each block of lines
    pairs: list[list[np.ndarray]] = field(default_factory=list)  # counts, columns, values

    def read(self, path: str) -> None:
        """Add the documents of a file."""
        self.path, self.ids, own, number = path, "", list[Any](), 1
        for lines in _blocks(path):
            if not lines[-1].endswith(b"\n"):
                last = f"{path}, line {number + len(lines) - 1}"
                raise LetorError(f"{last}: it has no line end; add one if the file is not cut.")
            self.ids = self.ids or self._kind_of_ids(lines)
            found = self._found(lines)
            if found is None:
                raise self._fault(number, lines)
            queries, names, grades, *pairs = found
            own += queries
            self.names += names
            self.grades.append(grades)
            self.pairs.append(pairs)
            number += len(lines)
        if not own:
            raise LetorError(f"{path}: the file is empty or has no documents.")
        earlier = set(self.queries)
        if self.ids == "none":
            own = _counted(path, len(own), len(earlier))
        if shared := earlier.intersection(own):
            raise LetorError(f"{path}: query {min(shared)} is in an earlier file, too.")
        self.queries += own

    def _kind_of_ids(self, lines: list[bytes]) -> str:
        """As the first document has them."""
        first = next((m for m in map(_LINE.fullmatch, lines) if m is not None and m[1]), None)
        if first is None:
            return ""
        if first[2] is None and os.path.isfile(f"{self.path}.query"):
            return "none"
        return "whole" if re.fullmatch(_IDS["whole"], first[2] or b"") else "text"

    def _found(self, lines: list[bytes]) -> list[Any] | None:
        """Query, name and grade of each document, counts, columns and values; None if wrong."""
        matches = [_LINE.fullmatch(line) for line in lines]
        found = [match for match in matches if match is not None and match[1]]
        ids = [match[2] or b"" for match in found]
        text = b"".join(m[3] for m in found).replace(b":NULL", b":0").replace(b":", b" ")
        numbers = np.fromstring(text, sep=" ")
        counts = np.array([match[3].count(b":") for match in found], dtype=np.int64)
        columns = numbers[::2].astype(np.int32) - 1
        rises = (np.diff(columns) > 0) | (np.diff(np.repeat(np.arange(len(found)), counts)) > 0)
        with np.errstate(over="ignore"):
            grades = np.array([float(match[1]) for match in found]).astype(self.dtype)
            values = numbers[1::2].astype(self.dtype)
        right = (
            None not in matches
            and all(re.fullmatch(_IDS[self.ids or "text"], raw) for raw in ids)
            and ((grades >= 0) & np.isfinite(grades)).all()
            and ((columns >= 0) & (columns < (self.n_features or np.inf))).all()
            and (rises.all() and np.isfinite(values).all())
        )
        queries = map(int if self.ids == "whole" else _as_text, ids)
        names = [_as_text(match[4] or b"") for match in found]
        return [list(queries), names, grades, counts, columns, values] if right else None

    def _fault(self, number: int, lines: list[bytes]) -> LetorError:
        """The first word of the first wrong line without which the line would be right."""
        held = f"that {self.dtype.name} can hold"
        held += ", or pass dtype=torch.float64" if self.dtype == np.float32 else ""
        end = "on" if self.n_features is None else f"to n_features={self.n_features}"
        kind = "a whole number, as the file's first is" if self.ids == "whole" else "a text"
        named = [f"qid:<id> with {kind}"] if self.ids != "none" else []
        wanted = [f"a grade: a number, zero or more, {held}", *named]
        pair = f"<id>:<value> with ids that rise from 1 {end} and numbers {held}"
        for k, line in enumerate(lines, number):
            words = line.partition(b"#")[0].split()
            for j, word in enumerate(words + [b""] * (len(words) == 1)):
                begun = words[: j + 1] if j else [word, *(b"qid:1" for _ in named)]
                if self._found([b" ".join(begun)]) is None:
                    place, meant = f"{self.path}, line {k}", wanted[j] if j < len(wanted) else pair
                    return LetorError(f"{place}: {_as_text(word[:60])!r} is not {meant}.")
        return LetorError(f"{self.path}: not LETOR text, near line {number}.")

    def features(self, n_bytes: int, rows: np.ndarray) -> np.ndarray:
        """Features (N, d) of files of `n_bytes`, each document in its place of `rows (N,)`."""
        n, end = len(rows), 0
        widest = max(int(columns.max(initial=-1)) for _, columns, _ in self.pairs) + 1
        if not self.n_features and n * widest > max(MAX_VALUES, MAX_VALUES_PER_BYTE * n_bytes):
            size = f"{n:,} documents and a feature id of {widest}"
            raise LetorError(f"{self.path}: {size} make a very large array; pass n_features.")
        features = np.zeros((n, self.n_features or widest), self.dtype)
        for counts, columns, values in self.pairs:
            start, end = end, end + len(counts)
            features[np.repeat(rows[start:end], counts), columns] = values
        return features


def _blocks(path: str) -> Iterator[list[bytes]]:
    """Some megabytes of unpacked lines at a time, with damage reported as ours."""
    try:
        with PACKERS.get(Path(path).suffix, open)(path, "rb") as stream:
            while lines := stream.readlines(BLOCK_BYTES):
                yield lines
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the file system: not ours to rename
            raise
        raise LetorError(f"{path}: the compressed file is cut or damaged ({error}).") from error


def _counted(path: str, documents: int, first: int) -> list[int]:
    """The query of each document, numbered from `first`, by LightGBM's file beside `path`."""
    words = Path(f"{path}.query").read_bytes().split()
    counts = [int(word) if re.fullmatch(_IDS["whole"], word) else 0 for word in words]
    if min(counts, default=0) < 1 or sum(counts) != documents:
        problem = f"the counts add up to {sum(counts):,}, or one is none"
        raise LetorError(f"{path}.query: {problem}; {path} has {documents:,} documents.")
    return np.repeat(np.arange(first, first + len(counts)), counts).tolist()


def _as_text(raw: bytes) -> str:
    """UTF-8, and what is none of it as Python would write it."""
    return raw.decode("utf-8", "backslashreplace")
