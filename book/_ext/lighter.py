"""Sphinx extension: pages without what no page uses.

The theme's style sheets have rules for a thousand components of Bootstrap, of which this book uses
some dozens; together they weigh more than a chapter. When the book is built, rules are left out
whose classes occur on no page and in no script. And a page's code marks every name, bracket and
space, though they have the colour of plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

#: Style sheets of others, from the folder of static files.
SHEETS = ("styles/*.css", "sphinx-design.min.css", "mystnb.*.css", "basic.css", "proof.css")
PLAIN = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
WORD = re.compile(r"[\w-]+")


def blocks(style: str) -> Iterator[tuple[str, str | None]]:
    """The rules of a style sheet: what stands before the braces, and what is inside.

    >>> list(blocks("@charset 'x';a{b:c}@media print{d{e:f}}"))
    [("@charset 'x'", None), ('a', 'b:c'), ('@media print', 'd{e:f}')]
    """
    place = 0
    while place < len(style):
        opening, stop = style.find("{", place), style.find(";", place)
        if opening < 0 or 0 <= stop < opening:
            end = stop if stop >= 0 else len(style)
            if style[place:end].strip():
                yield style[place:end].strip(), None
            place = end + 1
            continue
        depth, end = 1, opening + 1
        while depth and end < len(style):
            depth += {"{": 1, "}": -1}.get(style[end], 0)
            end += 1
        yield style[place:opening].strip(), style[opening + 1 : end - 1]
        place = end


def selectors(text: str) -> list[str]:
    """The selectors of a rule; a comma inside brackets separates nothing.

    >>> selectors("a, b:is(c, d)")
    ['a', 'b:is(c, d)']
    """
    return [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", text)]


def used(selector: str, words: set[str]) -> bool:
    """Whether a page can have what the selector asks for: all its classes, but for excluded ones.

    >>> used(".a .b", {"a"}), used(".a:not(.b)", {"a"}), used("p", set())
    (False, True, True)
    """
    wanted = re.sub(r":(?:not|is|where|has)\([^()]*\)", "", selector)
    wanted = re.sub(r"\\.", "", wanted)
    return all(name in words for name in CLASS.findall(wanted))


def pruned(style: str, words: set[str]) -> str:
    """A style sheet with the rules that can apply where only `words` are names of classes.

    >>> pruned("/* x */.a{b:c}.d,.e{f:g}@media print{.d{h:i}}", {"a", "e"})
    '.a{b:c}.e{f:g}'
    """
    out = []
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.S)
    for head, body in blocks(style):
        if body is None:
            out.append(f"{head};")
        elif head.startswith(("@media", "@supports", "@layer", "@container")):
            inside = pruned(body, words)
            if inside:
                out.append(f"{head}{{{inside}}}")
        elif head.startswith("@"):
            out.append(f"{head}{{{body}}}")
        else:
            kept = [one for one in selectors(head) if used(one, words)]
            if kept:
                out.append(f"{','.join(kept)}{{{body}}}")
    return "".join(out)


def words_in_use(folder: Path) -> set[str]:
    """Names of classes on the pages in `folder`, and every word of their scripts."""
    found: set[str] = set()
    for page in folder.rglob("*.html"):
        for names in re.findall(r'class=["\']([^"\']*)["\']', page.read_text(encoding="utf-8")):
            found.update(names.split())
    for script in (folder / "_static").rglob("*.js"):
        if script.parent.name != "mathjax":
            found.update(WORD.findall(script.read_text(encoding="utf-8")))
    return found


def prune_styles(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    words = words_in_use(out)
    for pattern in SHEETS:
        for file in (out / "_static").glob(pattern):
            text = file.read_text(encoding="utf-8")
            file.write_text(pruned(text, words), encoding="utf-8")


def plain_code(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    context["body"] = PLAIN.sub(r"\1", context.get("body", ""))


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", plain_code)
    app.connect("build-finished", prune_styles, priority=900)  # when the pages are complete
    return {"parallel_read_safe": True, "parallel_write_safe": True}
