"""The strict rules for one line of LETOR text: used to name the line that is wrong."""

import os
import re

import numpy as np

# Where scikit-learn would accept `qidx:7`, or a number with underscores, these do not.
_HEAD = re.compile(rb"\s*[^\s:#_]+\s+qid:[+-]?[0-9]+(?=[\s#]|\Z)")
_WHOLE = re.compile(rb"[+-]?[0-9]+\Z")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


class LetorError(ValueError):
    """A fault in a LETOR file: `path`, `line` (from 1, or None) and the offending `text`.

    Chapter 10.
    """

    def __init__(self, path: str, line: int | None, reason: str, text: bytes | None = None):
        self.path, self.line, self.reason = os.fspath(path), line, reason
        self.text = None if text is None else text.decode("utf-8", "backslashreplace")
        where = self.path if line is None else f"{self.path}, line {line}"
        shown = self.text
        if shown is not None and len(shown) > 100:
            shown = shown[:97] + "…"
        super().__init__(f"{where}: {reason}" + ("." if shown is None else f": {shown!r}."))

    def __reduce__(self) -> tuple[object, ...]:  # an error must survive the way from a worker
        text = None if self.text is None else self.text.encode()
        return LetorError, (self.path, self.line, self.reason, text)


def check_heads(block: bytes) -> bool:
    """Does every line with a document begin with a grade and a query id, none with underscores?

    This much is checked on every line of a file, so it must be quick: one match per line.
    """
    underscores = b"_" in block
    for line in block.split(b"\n"):
        if _HEAD.match(line) is None and line.partition(b"#")[0].strip():
            return False
        if underscores and b"_" in line.partition(b"#")[0]:
            return False
    return True


def first_error(
    path: str,
    number: int,
    block: bytes,
    dtype: np.dtype,
    zero_based: bool,
    limit: int,
    limit_given: bool,
) -> LetorError | None:
    """The first line of `block` that breaks a rule, or None; `number` is its first line's."""
    for line in block.split(b"\n"):
        fault = _fault(line.partition(b"#")[0].split(), dtype, zero_based, limit, limit_given)
        if fault is not None:
            return LetorError(path, number, *fault)
        number += 1
    return None


def _fault(
    tokens: list[bytes], dtype: np.dtype, zero_based: bool, limit: int, limit_given: bool
) -> tuple[str, bytes] | None:
    if not tokens:
        return None
    reason = _bad_number(tokens[0], dtype)
    if reason or float(tokens[0]) < 0:
        return f"the grade {reason or 'is negative'}", tokens[0]
    name, colon, qid = tokens[1].partition(b":") if len(tokens) > 1 else (b"", b"", b"")
    if name != b"qid" or not colon:
        return "no 'qid:<number>' after the grade", b" ".join(tokens[:3])
    if not _WHOLE.match(qid) or not -(2**63) <= int(qid) < 2**63:
        return "the query id is not a 64-bit whole number", tokens[1]
    previous = -1 if zero_based else 0
    for token in tokens[2:]:
        fault, previous = _feature_fault(token, previous, dtype, zero_based)
        if fault is None and previous >= limit + (not zero_based):
            way_out = "is beyond n_features" if limit_given else "is very large; pass n_features"
            fault = f"the feature id {way_out} ({limit} {'' if limit_given else 'at most '}columns)"
        if fault is not None:
            return fault, token
    return None


def _feature_fault(
    token: bytes, previous: int, dtype: np.dtype, zero_based: bool
) -> tuple[str | None, int]:
    name, colon, value = token.partition(b":")
    if not colon:
        return "a feature is not of the form <id>:<value>", previous
    if not _WHOLE.match(name) or len(name) > 18:
        return "the feature id is not a whole number", previous
    index = int(name)
    if index < (0 if zero_based else 1):
        hint = "" if zero_based or index < 0 else " (if ids begin at 0, pass zero_based=True)"
        return f"feature ids begin at {int(not zero_based)}{hint}", previous
    if index <= previous:
        return "the feature ids of a line must rise", previous
    reason = _bad_number(value, dtype)
    return (f"the value {reason}" if reason else None), index


def _bad_number(text: bytes, dtype: np.dtype) -> str | None:
    if not _NUMBER.match(text):
        lowered = text.lower().lstrip(b"+-")
        if lowered in (b"nan", b"inf", b"infinity"):
            return "is not finite"
        return "is not a decimal number"
    with np.errstate(over="ignore"):
        if not np.isfinite(np.float64(float(text)).astype(dtype)):
            hint = "; pass dtype=torch.float64" if dtype == np.float32 else ""
            return f"is too large for {dtype.name}{hint}"
    return None
