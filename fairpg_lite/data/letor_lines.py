"""The lines of LETOR text: taken from a file in blocks, and judged by strict rules."""

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fairpg_lite._progress import Bar

BLOCK_BYTES = 4 << 20
OPENERS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
SUFFIXES = dict(zip((".gz", ".bz2", ".xz"), OPENERS.values(), strict=True))
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(rb"[+-]?[0-9]{1,40}")
# How a line begins, by the kind of its query id. scikit-learn would accept `qidx:7` as well.
_HEADS = {
    "whole": re.compile(rb"\s*[^\s:#_]+\s+qid:([+-]?[0-9]{1,40})(?=[\s#]|\Z)"),
    "text": re.compile(rb"\s*[^\s:#_]+\s+qid:([^\s:#]+)(?=[\s#]|\Z)"),
    "none": re.compile(rb"\s*[^\s:#_]+()(?=[\s#]|\Z)(?!\s+qid)"),
}
_DOCID = re.compile(rb"#.*?\bdocid\s*=\s*(\S+)")
_NULL = re.compile(rb"(?<=[0-9]):NULL(?=[\s#]|\Z)")


class LetorError(ValueError):
    """A fault in a LETOR file: `path`, `line` (from 1, or None) and the offending `text`.

    Chapter 10.
    """

    def __init__(self, path: str, line: int | None, reason: str, text: bytes | str | None = None):
        self.path, self.line, self.reason = os.fspath(path), line, reason
        self.text = as_text(text) if isinstance(text, bytes) else text
        super().__init__(self.path, line, reason, self.text)  # what a worker's error is made of

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        if self.text is None:
            return f"{where}: {self.reason}."
        shown = self.text if len(self.text) <= 100 else self.text[:97] + "…"
        return f"{where}: {self.reason}: {shown!r}."


def as_text(raw: bytes) -> str:
    """UTF-8, and what is none of it as Python would write it."""
    return raw.decode("utf-8", "backslashreplace")


def blocks(path: str, bar: Bar, may_be_cut: bool) -> Iterator[tuple[int, bytes]]:
    """Whole lines, some megabytes at a time, with the number of the first of them."""
    number, rest = 1, b""
    for chunk in _chunks(path, bar):
        whole, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest += chunk
            continue
        block, rest = rest + whole + newline, tail
        yield number, block
        number += block.count(b"\n")
    if rest and not may_be_cut:
        reason = "the last line has no line end, so the file may have been cut; if it is whole, "
        raise LetorError(path, number, reason + "pass require_final_newline=False", rest)
    if rest:
        yield number, rest


def _chunks(path: str, bar: Bar) -> Iterator[bytes]:
    """The file's bytes, unpacked, a block at a time, with damage reported as ours."""
    try:
        with open(path, "rb") as raw:
            head, seen = raw.read(6), 0
            raw.seek(0)
            opener = next((o for magic, o in OPENERS.items() if head.startswith(magic)), None)
            stream = raw if opener is None else opener(raw)
            while chunk := stream.read(BLOCK_BYTES):
                bar.update(raw.tell() - seen)
                seen = raw.tell()
                yield chunk
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the file system: not ours to rename
            raise
        raise LetorError(path, None, f"the compressed file is cut or damaged ({error})") from error


class Rules(NamedTuple):
    """What the lines of a file must keep to; `ids` is one of `_HEADS`, "" for the first line's."""

    dtype: np.dtype
    first_id: int
    ids: str
    may_be_cut: bool


def kind_of_ids(block: bytes, without: bool) -> str:
    """Which of `_HEADS` the first line with a document has, "none" only where that is allowed."""
    for line in block.split(b"\n"):
        if line.partition(b"#")[0].strip():
            kind = next((kind for kind, head in _HEADS.items() if head.match(line)), "text")
            return kind if b"qid:" in line or without else "whole"
    return ""


class Head(NamedTuple):
    """Of a document: its file and line (from 1), its query's id, and its name or ""."""

    path: str
    line: int
    query: int | str
    name: str


def heads(path: str, number: int, block: bytes, ids: str) -> list[Head] | None:
    """The head of every document, or None if a line has another form or an underscore.

    This much is checked on every line of a file, so it must be quick: one match per line.
    """
    head, underscores, named, found = _HEADS[ids], b"_" in block, b"docid" in block, []
    for k, line in enumerate(block.split(b"\n"), start=number):
        match = head.match(line)
        if match is None:
            if line.partition(b"#")[0].strip():
                return None
            continue
        if underscores and b"_" in line[match.end() :].partition(b"#")[0]:
            return None
        if ids == "whole" and not _fits(match[1]):
            return None
        query = int(match[1]) if ids == "whole" else as_text(match[1])
        docid = _DOCID.search(line) if named else None
        found.append(Head(path, k, query, "" if docid is None else as_text(docid[1])))
    return found


def _fits(qid: bytes) -> bool:
    return len(qid) < 19 or -(2**63) <= int(qid) < 2**63


def without_nulls(block: bytes) -> bytes:
    """LETOR's NULL for a missing value as 0, which is what a feature that is absent has."""
    return _NULL.sub(b":0", block) if b":NULL" in block else block


def first_error(path: str, number: int, block: bytes, rules: Rules) -> LetorError | None:
    """The first line of `block` that breaks a rule, or None; `number` is its first line's."""
    for k, line in enumerate(block.split(b"\n"), start=number):
        fault = _fault(line.partition(b"#")[0].split(), rules)
        if fault is not None:
            return LetorError(path, k, *fault)
    return None


def _fault(tokens: list[bytes], rules: Rules) -> tuple[str, bytes] | None:
    """What is wrong with a line, and the text in question."""
    if not tokens:
        return None
    reason = _bad_number(tokens[0], rules.dtype)
    if reason or float(tokens[0]) < 0:
        return f"the grade {reason or 'is negative'}", tokens[0]
    qid = tokens[1].removeprefix(b"qid:") if len(tokens) > 1 else b""
    if rules.ids != "none" and (len(tokens) < 2 or qid == tokens[1]):
        return "no 'qid:<number>' after the grade", b" ".join(tokens[:3])
    if rules.ids == "text" and (not qid or b":" in qid):
        return "the query id is empty or holds a colon", tokens[1]
    if rules.ids == "whole" and not (_WHOLE.fullmatch(qid) and _fits(qid)):
        hint = "; if ids are texts, pass text_ids=True"
        return f"the query id is not a 64-bit whole number{hint}", tokens[1]
    last = rules.first_id - 1
    for token in tokens[1 if rules.ids == "none" else 2 :]:
        name, colon, value = token.partition(b":")
        bad = None if value == b"NULL" else _bad_number(value, rules.dtype)
        if not colon:
            return "a feature is not of the form <id>:<value>", token
        if not _WHOLE.fullmatch(name) or len(name) > 9:
            return "the feature id is not a whole number of at most nine digits", token
        if int(name) < rules.first_id:
            hint = " (if ids begin at 0, pass zero_based=True)" if int(name) == 0 else ""
            return f"feature ids begin at {rules.first_id}{hint}", token
        if int(name) <= last:
            return "the feature ids of a line must rise", token
        if bad:
            return f"the value {bad}", token
        last = int(name)
    return None


def _bad_number(text: bytes, dtype: np.dtype) -> str | None:
    if not _NUMBER.fullmatch(text):
        finite = text.lower().lstrip(b"+-") not in (b"nan", b"inf", b"infinity")
        return "is not a decimal number" if finite else "is not finite"
    with np.errstate(over="ignore"):
        if not np.isfinite(np.float64(float(text)).astype(dtype)):
            hint = "; pass dtype=torch.float64" if dtype == np.float32 else ""
            return f"is too large for {dtype.name}{hint}"
    return None
