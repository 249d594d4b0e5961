"""Sphinx extension: the directive `explorable`, a figure whose reader can move something.

    ```{explorable} candidates
    A caption: one sentence that says what to try. Without one the figure has its usual caption.
    ```

The figure's files are in book/explorables/: a script of its own, the two that it shares with the
others, a style sheet, and a picture (made by tools/explorable_pictures.py) that stands in where
scripts are off, in print and in the PDF. Only pages with an explorable load them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

FOLDER = Path(__file__).resolve().parents[1] / "explorables"
SHARED = ("exposure.js", "explorable.js")


class Kind(NamedTuple):
    """What the picture shows, for those who cannot see it, and the usual caption."""

    alt: str
    caption: str


KINDS = {
    "candidates": Kind(
        "Two rows of ten bars. Above, merit: .89 for each of five men, .88 for each of five women. "
        "Below, the exposure that the sorted list gives them: .590 for a man and .319 for a woman, "
        "while short lines mark .457 and .452, what they would get in proportion to merit.",
        "Ten candidates, and who is seen. On a screen you can drag a merit or turn up the "
        "temperature: the exposure that each candidate can expect is computed anew, exactly.",
    ),
    "hexagon": Kind(
        "A hexagon whose corners are the six lists of three documents with merits 1, .8 and .6. "
        "Up is more exposure for document 1, lower right for document 2, lower left for document "
        "3. In the middle and the lower left D_ind is 0; towards the sorted list, 123 at the "
        "top, it grows. A short line, the frontier, leads from that corner (NDCG 1.000, D_ind "
        ".063) down to the most useful lottery without disparity (NDCG .979).",
        "All lotteries over lists of three documents, each drawn where its exposure is: up is more "
        "for document 1, lower right for 2, lower left for 3. On a screen you can drag the policy, "
        "or raise the price of disparity and see where the best one goes.",
    ),
}


class Explorable(nodes.General, nodes.Element):
    """The figure: a picture, then an `ExplorableCaption`."""


class ExplorableCaption(nodes.General, nodes.Element):
    """What to try."""


class ExplorableDirective(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in KINDS:
            raise self.error(f"explorable: there is no {name!r}; choose one of {', '.join(KINDS)}")
        figure = Explorable(kind=name, ids=[f"explore-{name}"])
        self.set_source_info(figure)
        figure += nodes.image(uri=f"/book/explorables/{name}.svg", alt=KINDS[name].alt)
        caption = ExplorableCaption()
        if self.content:
            self.state.nested_parse(self.content, self.content_offset, caption)
        else:
            caption += nodes.paragraph("", KINDS[name].caption)
        figure += caption
        return [figure]


def open_figure(self: HTML5Translator, node: Explorable) -> None:
    self.body.append(self.starttag(node, "figure", CLASS="explorable"))


def close_figure(self: HTML5Translator, node: Explorable) -> None:
    self.body.append("</figure>\n")


def open_caption(self: HTML5Translator, node: ExplorableCaption) -> None:
    self.body.append("<figcaption>")


def close_caption(self: HTML5Translator, node: ExplorableCaption) -> None:
    self.body.append("</figcaption>\n")


def nothing(self: object, node: nodes.Element) -> None:
    """Other writers show the picture and the caption as they are."""


def lean(source: str) -> str:
    r"""A script without the comments that have lines of their own, and without indentation.

    >>> lean("/* Why,\n   at length. */\nf(() => {\n  // and so\n  return 1; // one\n});\n")
    'f(() => {\nreturn 1; // one\n});\n'
    """
    comments = r"^[ ]*(?:/\*.*?\*/|//[^\n]*)\n"
    return re.sub(r"^\s+", "", re.sub(comments, "", source, flags=re.M | re.S), flags=re.M)


def copy_files(app: Sphinx) -> None:
    if app.builder.format == "html":
        target = Path(app.outdir) / "_static" / "explorables"
        target.mkdir(parents=True, exist_ok=True)
        for file in [*FOLDER.glob("*.js"), *FOLDER.glob("*.css")]:
            text = lean(file.read_text(encoding="utf-8"))
            (target / file.name).write_text(text, encoding="utf-8")


def load_files(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    kinds = [] if doctree is None else sorted({n["kind"] for n in doctree.findall(Explorable)})
    if kinds:
        app.add_css_file("explorables/explorable.css")
        for name in (*SHARED, *(f"{kind}.js" for kind in kinds)):
            app.add_js_file(f"explorables/{name}", loading_method="defer")


def setup(app: Sphinx) -> dict:
    app.add_node(Explorable, html=(open_figure, close_figure), latex=(nothing, nothing))
    app.add_node(ExplorableCaption, html=(open_caption, close_caption), latex=(nothing, nothing))
    app.add_directive("explorable", ExplorableDirective)
    app.connect("builder-inited", copy_files)
    app.connect("html-page-context", load_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
