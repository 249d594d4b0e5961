"""Sphinx extension: the notebook behind the download button, for plain Jupyter.

Jupyter knows nothing of MyST's roles and directives, nor of the book's macros. The copy that a
reader downloads has them in words: a reference says what the page says ("Fig. 4.2", "(4.3)"), a
theorem or an exercise is a quotation with a bold title, the macros stand in its first cell, and
code that the page folds is folded.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

import nbformat
from pybtex.database import parse_file
from sphinx.application import Sphinx

ROLE = re.compile(r"\{([a-z]+(?::[a-z]+)?)\}`([^`]+)`")
FENCE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{(?P<kind>[a-z:-]+)\}[ ]*(?P<title>[^\n]*)\n"
    r"(?P<options>(?::[\w-]+:[^\n]*\n)*)(?P<body>.*?)\n?^(?P=fence)[ ]*$",
    re.M | re.S,
)
FOLDED = {"hide-input", "hide-cell", "remove-cell", "remove-input"}


def shown_texts(pages: list[str]) -> dict[str, str]:
    """What the book's pages call the place behind a label.

    >>> shown_texts(['<a class="x" href="04.html#equation-eq-race"><span>(4.1)</span></a>'])
    {'eq-race': '(4.1)'}
    """
    link = re.compile(r'<a [^>]*href="[^"#]*#(?:equation-)?([^"]+)"[^>]*>(.*?)</a>', re.S)
    found: dict[str, str] = {}
    for label, text in (match for page in pages for match in link.findall(page)):
        words = html.unescape(re.sub(r"<[^>]+>", "", text)).strip()
        if words and words != "#":
            found.setdefault(label, words)
    return found


def cited(file: Path) -> dict[str, tuple[str, str]]:
    """Authors and year of every entry of the bibliography."""
    found = {}
    for key, entry in parse_file(str(file)).entries.items():
        names = [" ".join(person.last_names) for person in entry.persons.get("author", [])]
        several = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        found[key] = (several, entry.fields.get("year", ""))
    return found


class Plain:
    """Markdown for Jupyter, made from MyST."""

    def __init__(self, texts: dict[str, str], books: dict[str, tuple[str, str]]) -> None:
        self.texts, self.books = texts, books

    def role(self, match: re.Match[str]) -> str:
        kind, text = match[1], match[2]
        given, target = re.fullmatch(r"(?:(.*?)\s*<)?([^<>]+)>?", text, re.S).groups()
        if kind.startswith("cite"):
            books = [self.books.get(key.strip(), (key.strip(), "")) for key in text.split(",")]
            if kind == "cite:t":
                return ", ".join(f"{names} ({year})" for names, year in books)
            return "(" + "; ".join(f"{names}, {year}" for names, year in books) + ")"
        if kind.startswith("py:"):
            return f"`{given or target.lstrip('~').split('.')[-1]}`"
        if kind in ("term", "chapter", "doc", "math") or (given and kind != "numref"):
            return given or target
        label = re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-")
        return self.texts.get(target, self.texts.get(label, target))

    def directive(self, match: re.Match[str]) -> str:
        kind, title, body = match["kind"], match["title"].strip(), match["body"].strip()
        if kind.endswith("-end") or kind in ("explorable", "index"):
            return ""
        if kind == "math":
            return f"$$\n{body}\n$$"
        name = kind.removeprefix("prf:").removesuffix("-start").capitalize()
        if kind.startswith("solution"):
            title = f"Solution of {self.texts.get(title, 'the exercise').lower()}"
        elif kind in ("admonition", "dropdown"):
            title = title or name
        else:
            label = re.search(r":label:\s*(\S+)", match["options"] or "")
            number = self.texts.get(label[1], name) if label else name
            title = f"{number}: {title}" if title else number
        text = f"**{self.roles(title)}**\n\n{self.text(body)}".strip()
        return "\n".join(f"> {line}".rstrip() for line in text.splitlines())

    def roles(self, text: str) -> str:
        return ROLE.sub(self.role, text)

    def text(self, source: str) -> str:
        r"""One cell; what stands in backquotes of its own stays.

        >>> plain = Plain({"eq-a": "(1.2)", "ex-1": "Exercise 1.1"}, {})
        >>> plain.text("A {term}`policy <policies>` by {eq}`eq-a`.")
        'A policy by (1.2).'
        >>> print(plain.text("```{exercise}\n:label: ex-1\n\nCount.\n```"))
        > **Exercise 1.1**
        >
        > Count.
        """
        source = re.sub(r"^\([\w-]+\)=\n", "", source, flags=re.M)  # a label above a heading
        return self.roles(FENCE.sub(self.directive, source))


def macros(config: dict) -> str:
    """The book's LaTeX macros as a formula that defines them."""
    lines = []
    for name, body in config["tex"]["macros"].items():
        text, count = body if isinstance(body, list) else (body, 0)
        lines.append(f"\\newcommand{{\\{name}}}{f'[{count}]' if count else ''}{{{text}}}")
    return "$" + "".join(lines) + "$"


def convert(notebook: nbformat.NotebookNode, plain: Plain, defined: str) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = plain.text(cell.source)
        elif FOLDED & set(cell.metadata.get("tags", [])):
            cell.metadata["jupyter"] = {"source_hidden": True}
    first = notebook.cells[0]
    if first.cell_type == "markdown":
        first.source += f"\n\n{defined}"


def make_downloads(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    pages = [path.read_text(encoding="utf-8") for path in sorted(out.glob("book/**/*.html"))]
    plain = Plain(shown_texts(pages), cited(Path(app.srcdir) / "book" / "references.bib"))
    for copy in out.glob("_sources/**/*.ipynb"):
        source = Path(app.srcdir) / copy.relative_to(out / "_sources")
        notebook = nbformat.read(source, as_version=4)
        convert(notebook, plain, macros(app.config.mathjax3_config))
        nbformat.write(notebook, copy)


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", make_downloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
