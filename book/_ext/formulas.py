"""Sphinx extension: formulas are typeset when the book is built, not in the reader's browser.

MathJax weighs 2.2 MB, keeps a slow phone busy for two seconds and makes the page jump while it
works. Here the same MathJax runs once, in Node, over all pages that were written; a formula becomes
a small picture with MathML for those who listen, and its TeX stays in `data-tex`. Node comes with
Playwright (`pip install "fairpg-lite[test]"`, as `make book` does); where there is none, the pages
load MathJax as Jupyter Book's usually do.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

from offline import mathjax_file

HERE = Path(__file__).resolve().parent
STYLE = "_static/formulas.css"
# Sphinx writes \( ... \) into a span, and \[ ... \] into a division, after the equation's number.
FORMULA = re.compile(
    r'(?P<open><(?P<tag>span|div) class="math [^>]*?)>(?P<number>\s*<span class="eqno">.*?</span>)?'
    r"\s*\\(?P<kind>[(\[])(?P<tex>.*?)\\[)\]]\s*</(?P=tag)>",
    re.S,
)
MATHJAX_SCRIPTS = re.compile(
    r'<script[^>]*src="[^"]*mathjax/[^"]*"[^>]*></script>\s*'
    r"|<script>window\.MathJax = .*?</script>\s*",
    re.S,
)
logger = logging.getLogger(__name__)


def node() -> str | None:
    """The Node that Playwright brings, else the machine's, else None."""
    try:
        from playwright._impl._driver import compute_driver_executable
    except ImportError:
        return shutil.which("node")
    return str(compute_driver_executable()[0])


def formulas_in(page: str) -> list[dict[str, object]]:
    r"""The formulas of a page in their order: TeX, and whether each stands on lines of its own.

    >>> formulas_in('<p><span class="math x">\\(a &lt; b\\)</span></p>')
    [{'tex': 'a < b', 'display': False}]
    """
    return [
        {"tex": html.unescape(found["tex"]).strip(), "display": found["kind"] == "["}
        for found in FORMULA.finditer(page)
    ]


def typeset(pages: list[list[dict[str, object]]], mathjax: Path, macros: dict) -> dict:
    """What formulas.js makes of the formulas of some pages."""
    program = node()
    if program is None:
        raise FileNotFoundError("formulas.typeset: there is no Node")
    asked = {"mathjax": str(mathjax), "macros": macros, "pages": pages}
    run = subprocess.run(
        [program, str(HERE / "formulas.js")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if run.returncode:
        raise ExtensionError(f"formulas.js failed: {run.stderr.strip()}")
    return json.loads(run.stdout)


def with_formulas(page: str, formulas: Iterable[str], glyphs: str) -> str:
    """The page with its formulas drawn, and without the scripts that would draw them."""
    made = iter(formulas)

    def draw(found: re.Match[str]) -> str:
        tex = html.escape(html.unescape(found["tex"]).strip(), quote=True)
        number = found["number"] or ""
        return f'{found["open"]} data-tex="{tex}">{number}{next(made)}</{found["tag"]}>'

    page = MATHJAX_SCRIPTS.sub("", FORMULA.sub(draw, page))
    store = f'<svg class="formula-glyphs" aria-hidden="true">{glyphs}</svg>'
    return re.sub(r"(<body[^>]*>)", lambda body: body[0] + store, page, count=1)


def link_style(page: str, depth: int) -> str:
    """The page with a link to the formulas' style sheet."""
    link = f'<link rel="stylesheet" href="{"../" * depth}{STYLE}" />\n'
    return page.replace("</head>", f"{link}</head>", 1)


def typeset_pages(app: Sphinx, error: Exception | None) -> None:
    """Draw the formulas of all pages that still hold TeX."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    texts = {}
    for file in sorted(out.rglob("*.html")):
        text = file.read_text(encoding="utf-8")
        if FORMULA.search(text):
            texts[file] = text
    if not texts:
        return
    if node() is None:
        logger.info("formulas: no Node here, so the pages load MathJax")
        return
    macros = app.config.mathjax3_config["tex"]["macros"]
    made = typeset([formulas_in(text) for text in texts.values()], mathjax_file().parent, macros)
    for (file, text), page in zip(texts.items(), made["pages"], strict=True):
        for formula in page["formulas"]:
            if not isinstance(formula, str):
                name = file.relative_to(out)
                logger.warning("formulas: %s: %s in %s", name, formula["error"], formula["tex"])
        drawn = with_formulas(text, map(str, page["formulas"]), page["glyphs"])
        depth = len(file.relative_to(out).parts) - 1
        file.write_text(link_style(drawn, depth), encoding="utf-8")
    hidden = ".formula-glyphs { height: 0; position: absolute; width: 0; }\n"
    hidden += "mjx-container { position: relative; }\n"
    hidden += "mjx-container svg { fill: currentcolor; stroke: currentcolor; stroke-width: 0; }\n"
    (out / STYLE).write_text(made["style"] + hidden, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", typeset_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
