"""Lines of LETOR text, `<grade> qid:<q> <id>:<value> … # comment`, parsed many at once.

One pattern knows the lines that are right, and NumPy their numbers. Where something is amiss, the
lines are read again, word by word, to name the first that is wrong.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

_NUMBER = rb"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+"
# A document (grade, query id, pairs), a comment (with a name, perhaps), both or nothing.
_LINE = re.compile(
    rb"\s*+(?:(%b)(?:\s++qid:([^\s:#]++))?+((?:\s++\+?[0-9]{1,9}+:(?:%b|NULL))*+))?+"
    rb"\s*+(?:#(?:.*?\bdocid\s*=\s*(\S+))?.*)?" % (_NUMBER, _NUMBER),
    re.DOTALL,
)
# The query ids of a file are all whole numbers or all texts, or the lines have none.
WHOLE_NUMBER = re.compile(rb"[+-]?[0-9]{1,18}")
_ID_PATTERNS = {
    "whole": WHOLE_NUMBER,
    "text": re.compile(rb"[^\s:#]+"),
    "none": re.compile(rb""),
}


class LetorError(ValueError):
    """A fault in a LETOR file, with the file, the line and the word that is wrong."""


@dataclass(frozen=True)
class Rules:
    """What the lines of a file have to keep to: `ids` is "whole", "text" or "none"."""

    dtype: np.dtype[Any]
    n_features: int | None
    ids: str


class Documents(NamedTuple):
    """The documents of some lines: their queries, names ("" for none) and grades `(N,)`.

    Document i has the next `counts[i]` of the `columns` (from 0) and `values`.
    """

    queries: list[int] | list[str]
    names: list[str]
    grades: np.ndarray
    counts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def parse(lines: list[bytes], rules: Rules) -> Documents | None:
    """Return the documents of `lines`, or None if any line is wrong."""
    matches = [_LINE.fullmatch(line) for line in lines]
    if None in matches:
        return None
    documents = [match for match in matches if match is not None and match[1]]

    raw_ids = [match[2] or b"" for match in documents]
    is_id = _ID_PATTERNS[rules.ids].fullmatch
    if not all(map(is_id, raw_ids)):
        return None

    text = b"".join(match[3] for match in documents)
    numbers = np.fromstring(text.replace(b":NULL", b":0").replace(b":", b" "), sep=" ")
    counts = np.array([match[3].count(b":") for match in documents], dtype=np.int64)
    columns = numbers[::2].astype(np.int32) - 1
    if not _are_ids(columns, counts, rules.n_features):
        return None

    with np.errstate(over="ignore"):  # what the dtype cannot hold becomes infinite, and is refused
        grades = np.array([float(match[1]) for match in documents]).astype(rules.dtype)
        values = numbers[1::2].astype(rules.dtype)
    if not (np.isfinite(values).all() and np.isfinite(grades).all() and (grades >= 0).all()):
        return None

    queries: list[Any] = list(map(int if rules.ids == "whole" else as_text, raw_ids))
    names = [as_text(match[4] or b"") for match in documents]
    return Documents(queries, names, grades, counts, columns, values)


def _are_ids(columns: np.ndarray, counts: np.ndarray, n_features: int | None) -> bool:
    """Return whether the columns of each document rise, from 0 on and below `n_features`."""
    document = np.repeat(np.arange(len(counts)), counts)
    rises = np.diff(columns) > 0
    next_document = np.diff(document) > 0
    limit = np.inf if n_features is None else n_features
    return bool((rises | next_document).all() and (columns >= 0).all() and (columns < limit).all())


def kind_of_ids(lines: list[bytes]) -> str | None:
    """Return the kind of the first document's query id ("none" without), None for no document."""
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is not None and match[1]:
            if match[2] is None:
                return "none"
            return "whole" if WHOLE_NUMBER.fullmatch(match[2]) else "text"
    return None


def first_fault(path: str, first_number: int, lines: list[bytes], rules: Rules) -> LetorError:
    """Return the error that names the first wrong word of `lines`, which `parse` refused.

    A word is wrong if the line up to there is, and up to the word before it was not.
    """
    for number, line in enumerate(lines, first_number):
        if parse([line], rules) is not None:
            continue
        words = line.partition(b"#")[0].split()
        if len(words) == 1:
            words.append(b"")  # the line ends where something else should stand
        for place, word in enumerate(words):
            begin = words[: place + 1]
            if place == 0 and rules.ids != "none":
                begin.append(b"qid:1")  # without which a right grade would be refused, too
            if parse([b" ".join(begin)], rules) is None:
                return LetorError(
                    f"{path}, line {number}: {as_text(word[:60])!r} is not "
                    f"{_expected(place, rules)}."
                )
    return LetorError(f"{path}: not LETOR text, near line {first_number}.")


def _expected(place: int, rules: Rules) -> str:
    """Return what should stand at this place (from 0) of a line, in words."""
    held = f"that {rules.dtype.name} can hold"
    if rules.dtype == np.float32:
        held += ", or pass dtype=torch.float64"
    if place == 0:
        return f"a grade: a number, zero or more, {held}"
    if place == 1 and rules.ids == "whole":
        return "qid:<id> with a whole number, as the file's first is"
    if place == 1 and rules.ids == "text":
        return "qid:<id> with a text"
    end = "on" if rules.n_features is None else f"to n_features={rules.n_features}"
    return f"<id>:<value> with ids that rise from 1 {end} and numbers {held}"


def as_text(raw: bytes) -> str:
    """Return UTF-8 as text, and bytes that are not UTF-8 as Python would write them."""
    return raw.decode("utf-8", "backslashreplace")
