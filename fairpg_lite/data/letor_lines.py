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
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_WHOLE = re.compile(rb"[+-]?[0-9]{1,40}\Z")
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

    def __init__(self, path: str, line: int | None, reason: str, text: bytes | None = None):
        self.path, self.line, self.reason = os.fspath(path), line, reason
        self.text = None if text is None else _text(text)
        where = self.path if line is None else f"{self.path}, line {line}"
        shown = self.text
        if shown is not None and len(shown) > 100:
            shown = shown[:97] + "…"
        super().__init__(f"{where}: {reason}" + ("." if shown is None else f": {shown!r}."))

    def __reduce__(self) -> tuple[object, ...]:  # an error must survive the way from a worker
        text = None if self.text is None else self.text.encode()
        return LetorError, (self.path, self.line, self.reason, text)


def _open(path: str) -> Any:
    with open(path, "rb") as raw:
        head = raw.read(6)
    opener = next((o for magic, o in OPENERS.items() if head.startswith(magic)), open)
    return opener(path, "rb")


def _chunks(path: str) -> Iterator[bytes]:
    """The file's bytes, a block at a time, with damage reported as ours."""
    try:
        with _open(path) as stream:
            while chunk := stream.read(BLOCK_BYTES):
                yield chunk
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the file system: not ours to rename
            raise
        raise LetorError(path, None, f"the compressed file is cut or damaged ({error})") from error


def measure(path: str, require_final_newline: bool) -> tuple[int, int]:
    """The number of lines and of bytes: a first pass, so that the second needs no second copy."""
    lines = size = 0
    last = b""
    for chunk in _chunks(path):
        lines += chunk.count(b"\n")
        size += len(chunk)
        last = chunk
    if not size:
        raise LetorError(path, None, "the file is empty")
    if not last.endswith(b"\n"):
        if require_final_newline:
            raise LetorError(
                path,
                lines + 1,
                "the last line has no line end, so the file may have been cut; if it is whole, "
                "pass require_final_newline=False",
                last.rpartition(b"\n")[2],
            )
        lines += 1
    return lines, size


def blocks(path: str, bar: Bar) -> Iterator[tuple[int, bytes]]:
    """Whole lines, some megabytes at a time, with the number of the first of them."""
    number, rest = 1, b""
    for chunk in _chunks(path):
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


class Rules(NamedTuple):
    """What the lines of a file must keep to; `ids` is "whole", "text" or "none"."""

    dtype: np.dtype
    zero_based: bool
    columns: int
    columns_given: bool
    ids: str


def kind_of_ids(block: bytes) -> str | None:
    """The kind of query id on the first line with a document; None if there is no such line."""
    for line in block.split(b"\n"):
        tokens = line.partition(b"#")[0].split(None, 2)
        if tokens:
            name, colon, value = (tokens[1] if len(tokens) > 1 else b"").partition(b":")
            if name != b"qid" or not colon:
                return "none"
            return "whole" if _WHOLE.match(value) else "text"
    return None


def heads(block: bytes, ids: str) -> tuple[list[int], list[int | str], list[str]] | None:
    """Of every document: its line in the block (from 0), its query's id, and its name or "".

    None if a line does not begin with a grade and a query id, or has an underscore. This much is
    checked on every line of a file, so it must be quick: one match per line.
    """
    head, underscores, named = _HEADS[ids], b"_" in block, b"docid" in block
    at: list[int] = []
    queries: list[int | str] = []
    names: list[str] = []
    for k, line in enumerate(block.split(b"\n")):
        match = head.match(line)
        if match is None:
            if line.partition(b"#")[0].strip():
                return None
            continue
        if underscores and b"_" in line[match.end() :].partition(b"#")[0]:
            return None
        docid = _DOCID.search(line) if named else None
        at.append(k)
        queries.append(int(match[1]) if ids == "whole" else _text(match[1]))
        names.append("" if docid is None else _text(docid[1]))
    if ids == "whole" and queries and not all(-(2**63) <= int(q) < 2**63 for q in set(queries)):
        return None
    return at, queries, names


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def without_nulls(block: bytes) -> bytes:
    """LETOR's NULL for a missing value as 0, which is what a feature that is absent has."""
    return _NULL.sub(b":0", block) if b":NULL" in block else block


def first_error(path: str, number: int, block: bytes, rules: Rules) -> LetorError | None:
    """The first line of `block` that breaks a rule, or None; `number` is its first line's."""
    for line in block.split(b"\n"):
        fault = _fault(line.partition(b"#")[0].split(), rules)
        if fault is not None:
            return LetorError(path, number, *fault)
        number += 1
    return None


def _fault(tokens: list[bytes], rules: Rules) -> tuple[str, bytes] | None:
    if not tokens:
        return None
    reason = _bad_number(tokens[0], rules.dtype)
    if reason or float(tokens[0]) < 0:
        return f"the grade {reason or 'is negative'}", tokens[0]
    if rules.ids != "none":
        name, colon, qid = tokens[1].partition(b":") if len(tokens) > 1 else (b"", b"", b"")
        if name != b"qid" or not colon:
            return "no 'qid:<number>' after the grade", b" ".join(tokens[:3])
        if rules.ids == "text" and (not qid or b":" in qid):
            return "the query id is empty or holds a colon", tokens[1]
        if rules.ids == "whole" and not (_WHOLE.match(qid) and -(2**63) <= int(qid) < 2**63):
            hint = "; if ids are texts, pass text_ids=True"
            return f"the query id is not a 64-bit whole number{hint}", tokens[1]
    previous = -1 if rules.zero_based else 0
    for token in tokens[1 if rules.ids == "none" else 2 :]:
        fault, previous = _feature_fault(token, previous, rules)
        if fault is None and previous >= rules.columns + (not rules.zero_based):
            given = rules.columns_given
            fault = (
                f"the feature id is beyond n_features ({rules.columns} columns)"
                if given
                else f"the feature id is very large (unasked, {rules.columns} columns at most are "
                "made of so many lines); pass n_features"
            )
        if fault is not None:
            return fault, token
    return None


def _feature_fault(token: bytes, previous: int, rules: Rules) -> tuple[str | None, int]:
    name, colon, value = token.partition(b":")
    if not colon:
        return "a feature is not of the form <id>:<value>", previous
    if not _WHOLE.match(name) or len(name) > 18:
        return "the feature id is not a whole number", previous
    index = int(name)
    if index < (not rules.zero_based):
        hint = "" if rules.zero_based or index < 0 else " (if ids begin at 0, pass zero_based=True)"
        return f"feature ids begin at {int(not rules.zero_based)}{hint}", previous
    if index <= previous:
        return "the feature ids of a line must rise", previous
    reason = None if value == b"NULL" else _bad_number(value, rules.dtype)
    return (f"the value {reason}" if reason else None), index


def _bad_number(text: bytes, dtype: np.dtype) -> str | None:
    if not _NUMBER.match(text):
        finite = text.lower().lstrip(b"+-") not in (b"nan", b"inf", b"infinity")
        return "is not a decimal number" if finite else "is not finite"
    with np.errstate(over="ignore"):
        if not np.isfinite(np.float64(float(text)).astype(dtype)):
            hint = "; pass dtype=torch.float64" if dtype == np.float32 else ""
            return f"is too large for {dtype.name}{hint}"
    return None
