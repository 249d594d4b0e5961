"""The lines of LETOR text: one pattern knows those that are right, and NumPy their numbers.

Where something is amiss, the lines are read again, word by word, to name the first rule that one of
them breaks.
"""

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

BLOCK_BYTES = 4 << 20  # of text, parsed at once
# One stray id, 99999, in a short file would otherwise ask for gigabytes of zeros: without
# n_features the columns are limited, by their number and by the size of the whole array, which
# may hold as many values as a small machine can bear, or a number for each byte of text.
MAX_COLUMNS, MAX_VALUES, MAX_VALUES_PER_BYTE = 100_000, 1 << 26, 50
PACKERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}
_NUMBER = rb"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+"
# A document (grade, query id, pairs), a comment (with a name, perhaps), both or nothing.
_LINE = re.compile(
    rb"\s*+(?:(%b)(?:\s++qid:([^\s:#]++))?+((?:\s++\+?[0-9]{1,9}+:(?:%b|NULL))*+))?+"
    rb"\s*+(?:#(?:.*?\bdocid\s*=\s*(\S+))?.*)?" % (_NUMBER, _NUMBER),
    re.DOTALL,
)


class LetorError(ValueError):
    """A fault in a LETOR file: `path`, `line` (from 1, or None) and the offending `text`.

    Chapter 10.
    """

    def __init__(self, path: str, line: int | None, reason: str, text: bytes | str | None = None):
        self.path, self.line, self.reason = os.fspath(path), line, reason
        self.text = _as_text(text) if isinstance(text, bytes) else text
        super().__init__(self.path, line, reason, self.text)  # what a worker's error is made of

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        if self.text is None:
            return f"{where}: {self.reason}."
        shown = self.text if len(self.text) <= 100 else self.text[:97] + "…"
        return f"{where}: {self.reason}: {shown!r}."


@dataclass
class Reader:
    """The rules for the lines of all files, and what was found in them so far."""

    dtype: np.dtype
    first_id: int
    must_end: bool
    queries: list[int | str] = field(default_factory=list)  # of each document
    names: list[str] = field(default_factory=list)  # of each document
    grades: list[np.ndarray] = field(default_factory=list)  # (documents,) for each block of lines
    pairs: list[tuple[np.ndarray, ...]] = field(default_factory=list)  # counts, columns, values
    owners: dict[int | str, str] = field(default_factory=dict)  # the file of each query
    widest: tuple[int, str, int, str] = (-1, "", 0, "")  # the largest id: column, file, line, text

    def read(self, path: str, ids: str, bar: Any) -> None:
        """Add the documents of a file; its query ids are "whole", "text", or what comes first."""
        self.path, self.ids, before, number = path, ids, len(self.queries), 1
        for lines in self._lines(bar):
            self.ids = self.ids or self._kind_of_ids(lines)
            if self.must_end and not lines[-1].endswith(b"\n"):
                reason = "the last line has no line end, so the file may have been cut; if it is "
                reason += "whole, pass require_final_newline=False"
                raise LetorError(path, number + len(lines) - 1, reason, lines[-1])
            self._parse(number, lines)
            number += len(lines)
        found = len(self.queries) - before
        if not found:
            raise LetorError(path, None, "the file is empty or has no documents")
        if self.ids == "none" and sum(self.counts) != found:
            reason = f"the counts add up to {sum(self.counts):,}, {path} has {found:,} documents"
            raise LetorError(f"{self.side}", None, reason)

    def _lines(self, bar: Any) -> Iterator[list[bytes]]:
        """Some megabytes of unpacked lines at a time, with damage reported as ours."""
        try:
            with open(self.path, "rb") as raw:
                head, seen = raw.read(6), 0
                raw.seek(0)
                packed = [kind for magic, kind in _MAGIC.items() if head.startswith(magic)]
                stream = PACKERS[packed[0]](raw) if packed else raw
                while lines := stream.readlines(BLOCK_BYTES):
                    bar.update(raw.tell() - seen)
                    seen = raw.tell()
                    yield lines
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if getattr(error, "errno", None) is not None:  # of the file system: not ours to rename
                raise
            reason = f"the compressed file is cut or damaged ({error})"
            raise LetorError(self.path, None, reason) from error

    def _kind_of_ids(self, lines: list[bytes]) -> str:
        """How the first document names its query; not at all if LightGBM's file has the counts."""
        words = next(filter(None, map(_words, lines)), None)
        if words is None:
            return ""
        if len(words) > 1 and words[1].startswith(b"qid:"):
            return "whole" if re.fullmatch(rb"qid:[+-]?[0-9]{1,40}", words[1]) else "text"
        stem = self.path.removesuffix(next(filter(self.path.endswith, PACKERS), ""))
        sides = [f"{path}.query" for path in (self.path, stem) if os.path.isfile(f"{path}.query")]
        if not sides:
            return "whole"
        self.side, self.counts = sides[0], list[int]()
        for number, line in enumerate(Path(self.side).read_bytes().splitlines(), start=1):
            if not re.fullmatch(rb"\s*0*[1-9][0-9]{0,17}\s*", line):
                raise LetorError(self.side, number, "not a number of documents, 1 or more", line)
            self.counts.append(int(line))
        numbers = enumerate(self.counts, start=len(self.owners))
        self.numbers = (number for number, count in numbers for _ in range(count))
        return "none"

    def _parse(self, number: int, lines: list[bytes]) -> None:
        matches = [_LINE.fullmatch(line) for line in lines]
        found = [(k, m) for k, m in enumerate(matches, number) if m is not None and m[1]]
        queries = [self._query(m[2]) for _, m in found]
        text = b"".join(m[3] for _, m in found).replace(b":NULL", b":0").replace(b":", b" ")
        numbers = np.fromstring(text, sep=" ")
        counts = np.array([m[3].count(b":") for _, m in found], dtype=np.int64)
        rows = np.repeat(np.arange(len(found)), counts)
        columns = numbers[::2].astype(np.int32) - self.first_id
        falling = (np.diff(columns) <= 0) & (np.diff(rows) == 0)
        with np.errstate(over="ignore"):
            grades = np.array([float(m[1]) for _, m in found]).astype(self.dtype)
            values = numbers[1::2].astype(self.dtype)
        fine = np.isfinite(values).all() and np.isfinite(grades).all() and (grades >= 0).all()
        if None in matches or None in queries or not fine or falling.any() or (columns < 0).any():
            raise self._fault(number, lines)
        for (k, _), query in zip(found, queries, strict=True):
            if self.owners.setdefault(query, self.path) != self.path:
                reason = "the query is in an earlier file, too; RankingDataset.concat keeps both"
                raise LetorError(self.path, k, reason, f"qid:{query}")
        if len(columns) and columns.max() > self.widest[0]:
            k = int(columns.argmax())
            pair = f"{columns[k] + self.first_id}:{values[k]:g}"
            self.widest = (int(columns[k]), self.path, found[rows[k]][0], pair)
        self.queries += queries
        self.names += [_as_text(m[4] or b"") for _, m in found]
        self.grades.append(grades)
        self.pairs.append((counts, columns, values))

    def features(self, n_features: int | None, size: int) -> np.ndarray:
        """All features (N, d), of files of `size` bytes; a column beyond all reason is refused."""
        n, (largest, path, line, text) = len(self.queries), self.widest
        most, beyond = n_features, f"beyond n_features ({n_features} columns)"
        if most is None:
            most = max(1, min(MAX_COLUMNS, max(MAX_VALUES, MAX_VALUES_PER_BYTE * size) // n))
            beyond = f"very large ({most:,} columns at most are made unasked); pass n_features"
        if largest >= most:
            raise LetorError(path, line, f"the feature id is {beyond}", text)
        features, end = np.zeros((n, n_features or largest + 1), self.dtype), 0
        for counts, columns, values in self.pairs:
            start, end = end, end + len(counts)
            features[np.repeat(np.arange(start, end), counts), columns] = values
        return features

    def _query(self, raw: bytes | None) -> Any:
        """A document's query, or None where its id is of another kind than the file's."""
        if self.ids == "none":
            return next(self.numbers, -1) if raw is None else None
        if self.ids == "text" or raw is None:
            return None if not raw or b":" in raw else _as_text(raw)
        whole = re.fullmatch(rb"[+-]?[0-9]{1,40}", raw) and -(2**63) <= int(raw) < 2**63
        return int(raw) if whole else None

    def _fault(self, number: int, lines: list[bytes]) -> LetorError:
        """The first rule that the first wrong line breaks."""
        for k, line in enumerate(lines, number):
            words = _words(line)
            for broken, reason, text in self._rules(words) if words else ():
                if broken:
                    return LetorError(self.path, k, reason, text)
        return LetorError(self.path, number, "not of the form '<grade> qid:<q> <id>:<value> …'")

    def _rules(self, words: list[bytes]) -> Iterator[tuple[Any, str, bytes]]:
        """The rules for a line, in order: whether it breaks this one, what to say, and where."""
        grade, *pairs = words
        yield (bad := self._bad_number(grade)), f"the grade {bad}", grade
        yield float(grade) < 0, "the grade is negative", grade
        if self.ids != "none":
            given = pairs.pop(0) if pairs else b""
            yield given[:4] != b"qid:", "no 'qid:<number>' after the grade", b" ".join(words[:3])
            reason = "is not a 64-bit whole number; if ids are texts, pass text_ids=True"
            reason = reason if self.ids == "whole" else "is empty or holds a colon"
            yield self._query(given[4:]) is None, f"the query id {reason}", given
        last = self.first_id - 1
        for pair in pairs:
            name, colon, value = pair.partition(b":")
            whole = re.fullmatch(rb"[+-]?[0-9]{1,9}", name)
            yield not colon, "a feature is not of the form <id>:<value>", pair
            yield not whole, "the feature id is not a whole number of at most nine digits", pair
            hint = " (if ids begin at 0, pass zero_based=True)" if int(name) == 0 else ""
            yield int(name) < self.first_id, f"feature ids begin at {self.first_id}{hint}", pair
            yield int(name) <= last, "the feature ids of a line must rise", pair
            bad = None if value == b"NULL" else self._bad_number(value)
            yield bad, f"the value {bad}", pair
            last = int(name)

    def _bad_number(self, text: bytes) -> str | None:
        if not re.fullmatch(_NUMBER, text):
            finite = text.lower().lstrip(b"+-") not in (b"nan", b"inf", b"infinity")
            return "is not a decimal number" if finite else "is not finite"
        with np.errstate(over="ignore"):
            if np.isfinite(np.float64(float(text)).astype(self.dtype)):
                return None
        hint = "; pass dtype=torch.float64" if self.dtype == np.float32 else ""
        return f"is too large for {self.dtype.name}{hint}"


def _as_text(raw: bytes) -> str:
    """UTF-8, and what is none of it as Python would write it."""
    return raw.decode("utf-8", "backslashreplace")


def _words(line: bytes) -> list[bytes]:
    return line.partition(b"#")[0].split()
