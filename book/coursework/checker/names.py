"""Names are text: what students call their files, made harmless for a table, a page and a path.

A name may hold a formula for a spreadsheet, a tag, a newline, or bytes that are no UTF-8. It is
shown so that a teacher recognises it, and never obeyed.
"""

import hashlib
import re

#: What a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_text(text: str) -> str:
    r"""One line that any terminal and any UTF-8 file can take; whatever is odd is written out.

    >>> as_text("Ada\nLovelace\x1b[2J")
    'Ada\\nLovelace\\x1b[2J'
    >>> as_text("M\udcfcller")
    'M\\udcfcller'
    """
    shown = []
    for letter in text:
        if letter == " " or letter.isprintable():
            shown.append(letter)
        else:
            shown.append(letter.encode("unicode_escape").decode("ascii"))
    return "".join(shown)


def as_lines(text: str) -> str:
    r"""Several lines, each as `as_text` has it.

    >>> print(as_lines("a\nb\x07"))
    a
    b\x07
    """
    return "\n".join(as_text(line) for line in text.split("\n"))


def as_cell(text: str) -> str:
    """A cell of a table that no spreadsheet takes for a formula.

    >>> print(as_cell("=1+1"))
    '=1+1
    """
    shown = as_lines(text)
    return f"'{shown}" if shown.lstrip().startswith(FORMULA) else shown


def as_file_name(name: str) -> str:
    """A file name that stands for ``name``: itself where it is plain, else with a mark of its own.

    >>> as_file_name("Ada Lovelace_123")
    'Ada Lovelace_123'
    >>> as_file_name("../ada")
    'ada_60088279'
    """
    plain = re.sub(r"[^\w ().,@+-]+", "_", name).strip(" ._-")[:100]
    if plain == name:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain or 'student'}_{mark}"
