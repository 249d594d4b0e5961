"""Sphinx extension: the directive `explorable`, a figure whose reader can move something.

    ```{explorable} candidates
    A caption: one sentence that says what to try. Without one the figure has its usual caption.
    ```

and the role `explore`, a word in the text that sets the figure's state when it is pressed:

    Train at {explore}`a price of 10 <train?lam=10&train=1>`.

The figure's files are in book/explorables/: a script of its own, those that it shares with the
others, a style sheet, and a picture (made by tools/explorable_pictures.py) that stands in where
scripts are off, in print and in the PDF. Only pages with an explorable load them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.writers.html5 import HTML5Translator

FOLDER = Path(__file__).resolve().parents[1] / "explorables"
SHARED = ("exposure.js", "explorable.js")
#: What a figure loads before its own script, beside what all of them share.
FIRST = {"train": ("training.js", "train_data.js"), "pull": ("training.js",)}


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
    "list": Kind(
        "A ranked list of ten people, the five men (score .89) above the five women (.88), with "
        "the attention that each place gets: 1.00, .63, .50 and so on down to .29. A woman gets 46 "
        "% less attention than a man.",
        "One list, and the attention that its places get. People with the same score are ordered "
        "by lot. Move the slider: the more is left to chance, the closer the two groups come, and "
        "the headline says what that costs.",
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
    "train": Kind(
        "A map of D_group over the two weights of a linear scorer. It is 0 in the middle, where "
        "chance decides, .007 at weights 5 and 1, .009 at 5 and 4, and .016 at 5 and -1. Four "
        "paths start in the middle: trained at price 0 the weights end at 5.0 and 3.9, at price 5 "
        "at 4.4 and 2.5, at price 10 at 3.1 and 1.3, at price 25 at 1.3 and .4.",
        "Fair-PG-Rank on the paper’s synthetic queries. On a screen it trains in the page: choose "
        "a price and press Train, or turn the price and see where the training ends.",
    ),
    "race": Kind(
        "Six lanes on a logarithmic clock, one for each of six documents A to F with falling "
        "scores. Each shows when its runner has arrived in half of all races: A after .14, F after "
        "1.88. Beside each stands its chance to be first, .44 for A to .03 for F.",
        "A ranking as a race. On a screen the documents run: five steps lead from one race to the "
        "exact exposure.",
    ),
    "pull": Kind(
        "Three clouds of a hundred points each, the pulls of single drawn lists on the scores of "
        "two documents: with the whole reward they scatter widely around the exact gradient, minus "
        "a baseline less, and with reward-to-go least.",
        "What one drawn list says about the gradient. On a screen you can draw lists and see where "
        "each pulls; a baseline and reward-to-go make the cloud smaller, and its centre stays.",
    ),
}


class Explorable(nodes.General, nodes.Element):
    """The figure: a picture, then an `ExplorableCaption`."""


class ExplorableRoom(nodes.General, nodes.Element):
    """What holds the picture, and keeps the height of what will take its place."""


class ExplorableCaption(nodes.General, nodes.Element):
    """What to try."""


class ExplorableDirective(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in KINDS:
            raise self.error(f"explorable: there is no {name!r}; choose one of {', '.join(KINDS)}")
        figure = Explorable(kind=name, ids=[f"explore-{name}"], classes=[f"xp-kind-{name}"])
        self.set_source_info(figure)
        room = ExplorableRoom()
        room += nodes.image(uri=f"/book/explorables/{name}.svg", alt=KINDS[name].alt)
        figure += room
        caption = ExplorableCaption()
        if self.content:
            self.state.nested_parse(self.content, self.content_offset, caption)
        else:
            caption += nodes.paragraph("", KINDS[name].caption)
        figure += caption
        return [figure]


class ExploreWord(nodes.General, nodes.TextElement):
    """A word that sets the state of a figure."""


class ExploreRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        match = re.fullmatch(r"(.+?)\s*<(\w+)\?([^<>]+)>", self.text, flags=re.S)
        if match is None or match[2] not in KINDS:
            text = "explore: write {explore}`words <figure?name=value>` with a figure of "
            message = self.inliner.reporter.error(text + ", ".join(KINDS), line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        words, kind, state = match.groups()
        return [ExploreWord(words, words, kind=kind, state=state)], []


def open_word(self: HTML5Translator, node: ExploreWord) -> None:
    attributes = {"data-explorable": node["kind"], "data-state": node["state"], "type": "button"}
    self.body.append(self.starttag(node, "button", "", CLASS="xp-word", **attributes))


def close_word(self: HTML5Translator, node: ExploreWord) -> None:
    self.body.append("</button>")


def open_figure(self: HTML5Translator, node: Explorable) -> None:
    self.body.append(self.starttag(node, "figure", CLASS="explorable"))


def close_figure(self: HTML5Translator, node: Explorable) -> None:
    self.body.append("</figure>\n")


def open_room(self: HTML5Translator, node: ExplorableRoom) -> None:
    self.body.append('<div class="xp-room">')


def close_room(self: HTML5Translator, node: ExplorableRoom) -> None:
    self.body.append("</div>")


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
        names = [*SHARED]
        for kind in kinds:
            names += [*FIRST.get(kind, ()), f"{kind}.js"]
        for name in dict.fromkeys(names):
            app.add_js_file(f"explorables/{name}", loading_method="defer")


def setup(app: Sphinx) -> dict:
    app.add_node(Explorable, html=(open_figure, close_figure), latex=(nothing, nothing))
    app.add_node(ExplorableRoom, html=(open_room, close_room), latex=(nothing, nothing))
    app.add_node(ExplorableCaption, html=(open_caption, close_caption), latex=(nothing, nothing))
    app.add_node(ExploreWord, html=(open_word, close_word), latex=(nothing, nothing))
    app.add_role("explore", ExploreRole())
    app.add_directive("explorable", ExplorableDirective)
    app.connect("builder-inited", copy_files)
    app.connect("html-page-context", load_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
