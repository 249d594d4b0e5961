"""Which letter a chapter defines, and whether the notation page gives it that meaning.

A sentence such as "let $R$ be", or a displayed formula with a bare symbol on its left, defines a
letter. The notation page has a row for every letter, with the chapters that define it. A definition
anywhere else is a second meaning until somebody writes the chapter into that row, or renames it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jupytext

#: Functions, operators and words; no letters.
OPERATORS = re.compile(
    r"\\(?:E|Prob|grad|nabla|log|ln|exp|min|max|argmax|sum|prod|int|frac|text|left|sqrt|partial|lim"
    r"|indicator|[Bb]ig[lr]?|[lr][vV]ert|st|N?DCG|(?:fair)?pgrank|begin|end|q?quad)$"
)
ACCENTS = r"\\(?:hat|bar|tilde|widehat|mathrm|mathbf|mathcal|operatorname|overline)\b\s*\{?"
SYMBOL = r"(\\[A-Za-z]+|[A-Za-z])"
#: A symbol with what belongs to it: indices, powers, primes, arguments.
LEFT_SIDE = re.compile(
    rf"^(?:{ACCENTS})*{SYMBOL}\}}?(?:_(?:\{{[^{{}}]*(?:\{{[^{{}}]*\}}[^{{}}]*)*\}}|\\?\w+)|\^\{{?[\w*]+\}}?|'"
    r"|\s|\([^()]*(?:\([^()]*\)[^()]*)*\))*$"
)
SPOKEN = re.compile(
    r"\b(?:[Ll]et|[Ww]rite|[Cc]all|[Ww]here|[Ww]ith|[Dd]enote by)\s+(?:us (?:write|call) )?"
    r"\$([^$]+)\$(?:(?:,| and)\s+\$([^$]+)\$)?\s+(?:be|is|are|for|as|denote|stand)\b"
)
ROW = re.compile(r"^\| (\$.+?) \| (.+?) \| ?([^|]*?) ?\|$", re.M)
CHAPTERS = r"(?:\d+|A\d)(?:, (?:\d+|A\d))*"
Row = tuple[str, str, frozenset[str]]


def symbol(formula: str) -> str | None:
    r"""The letter that a formula begins with, or None where that is an operator or a word.

    >>> symbol(r"\hat U(\pi) = 3"), symbol("|G|"), symbol(r"\log t"), symbol(r"\xx^q")
    ('U', 'G', None, '\\xx')
    """
    bare = formula.strip().lstrip("|( ")
    if re.match(r"\\(?:mathrm|operatorname|text)\{\w\w", bare):
        return None  # a word such as Ent
    found = re.match(rf"(?:{ACCENTS})*{SYMBOL}", bare)
    return None if found is None or OPERATORS.match(found[1]) else found[1]


def left_sides(formula: str) -> Iterator[str]:
    """The left sides of a displayed formula's equations, where they are a bare symbol."""
    rows = re.split(r"\\\\(?:\[[^\]]*\])?|\\qquad|\\quad", formula)
    for row in rows:
        row = re.sub(r"\\(?:begin|end)\{[\w*]+\}(?:\{\w+\})?|&|\\[,;!]", " ", row)
        left, equals, _ = row.partition("=")
        if equals and LEFT_SIDE.match(left.strip()):
            yield left.strip()


def definitions(source: str) -> set[str]:
    """The letters that a chapter's markdown defines."""
    formulas = re.findall(r"\$\$(.*?)\$\$", source, re.S)
    found = {symbol(left) for formula in formulas for left in left_sides(formula)}
    prose = re.sub(r"\$\$.*?\$\$", " ", source, flags=re.S)
    for match in SPOKEN.finditer(prose):
        found |= {symbol(part) for part in match.groups() if part}
    return {letter for letter in found if letter}


def markdown(text: Path) -> str:
    cells = jupytext.read(text).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def listed(notation: str) -> list[Row]:
    """The letters of the notation page: letter, meaning, chapters that define it.

    The chapters stand in the last column, or in brackets in the meaning.
    """
    rows = []
    for first, meaning, last in ROW.findall(notation):
        places = re.findall(rf"\(({CHAPTERS})\)", meaning)
        where = " ".join(places) if places else last
        for formula in re.findall(r"\$([^$]+)\$", first):
            letter = symbol(formula)
            if letter:
                rows.append((letter, meaning, frozenset(re.findall(r"A\d|\d+", where))))
    return rows


def number(text: Path) -> str:
    """The chapter of a file: 7 of 07_fair_pg_rank.md, A1 of A1_numerics.md."""
    return text.name.split("_")[0].lstrip("0")


def twice(rows: list[Row]) -> Iterator[str]:
    """Letters to which the notation page itself gives two meanings in one chapter."""
    seen: dict[tuple[str, str], str] = {}
    for letter, meaning, chapters in rows:
        for chapter in sorted(chapters):
            other = seen.setdefault((letter, chapter), meaning)
            if other != meaning:
                yield f"{letter} in chapter {chapter}: {other!r} and {meaning!r}"


def second_meanings(text: Path, notation: Path) -> Iterator[str]:
    """Definitions in a chapter that the notation page does not know."""
    rows, here = listed(notation.read_text(encoding="utf-8")), number(text)
    for letter in sorted(definitions(markdown(text))):
        meanings = [(meaning, chapters) for known, meaning, chapters in rows if known == letter]
        if any(here in chapters for _, chapters in meanings):
            continue
        means = "; ".join(meaning for meaning, _ in meanings) or "nothing yet"
        yield (
            f"defines ${letter}$, which means: {means}. Take another letter, or name chapter "
            f"{here} in its row of book/notation.md"
        )
