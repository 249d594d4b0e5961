"""Sphinx extension: figures that the chapters' code drew become a part of the page.

A picture in an `<img>` sees neither the page's font nor its theme. The notebooks keep their SVG;
here it is written into the page (drawn.py says how), frames of sliders included.
"""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path

from sphinx.application import Sphinx

from drawn import drawn

IMAGE = re.compile(r"<img\b[^>]*>")
ATTRIBUTE = re.compile(r'([\w-]+)(?:="([^"]*)")?')
#: How the slider of book/explorables/sliders.py finds its pictures, in a notebook and on a page.
IN_NOTEBOOK, ON_PAGE = "querySelectorAll('img')", "querySelectorAll('.drawn')"


def source_of(app: Sphinx, address: str) -> Path | None:
    """The file of a picture that the page refers to."""
    name = Path(address).name
    for original, copy in app.builder.images.items():
        if copy == name:
            return Path(app.srcdir) / original
    return None


def inlined(body: str, page: str, read: object) -> str:
    """A page's body with its drawings in it.

    Args:
        body: HTML.
        page: The page's name, such as "book/04_exposure": starts the ids.
        read: A function from an address to the SVG's text, or None where it is no drawing.
    """
    start = re.sub(r"\W+", "-", page.rpartition("/")[2])[:2]
    count = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal count
        given = {key: html.unescape(value) for key, value in ATTRIBUTE.findall(found[0][4:-1])}
        svg = read(given.get("src", ""))  # type: ignore[operator]
        if svg is None:
            return found[0]
        count += 1
        more = ""
        if "data-value" in given:
            more += f' data-value="{html.escape(given["data-value"])}"'
        if "hidden" in given:
            more += " hidden"
        return drawn(svg, given.get("alt", ""), f"f{start}-{count}", more)

    body = IMAGE.sub(replace, body)
    return body.replace(html.escape(IN_NOTEBOOK), ON_PAGE).replace(IN_NOTEBOOK, ON_PAGE)


def put_into_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    def read(address: str) -> str | None:
        start = "data:image/svg+xml;base64,"
        if address.startswith(start):
            text = base64.b64decode(address.removeprefix(start)).decode()
        elif address.endswith(".svg"):
            file = source_of(app, address)
            if file is None or not file.is_file():
                return None
            text = file.read_text(encoding="utf-8")
        else:
            return None
        return text if 'id="figure_1"' in text else None  # matplotlib's, not a logo

    body = context.get("body", "")
    if "<img" in body:
        context["body"] = inlined(body, page, read)


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", put_into_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
