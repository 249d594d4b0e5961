"""Sphinx extension: a link to the glossary shows the definition, by mouse and by keyboard.

The definition is put into the page when the book is built, as a tooltip beside the link: nothing
is fetched, and it works from a folder. The style is in book/_static/book.css; terms.js there keeps
the tooltip inside the window and closes it on Escape.
"""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment import BuildEnvironment
from sphinx.writers.html5 import HTML5Translator


class DefinedTerm(nodes.General, nodes.Inline, nodes.TextElement):
    """A link with the attributes `refuri`, `number` (of its kind on the page) and `definition`."""


def open_term(self: HTML5Translator, node: DefinedTerm) -> None:
    described = f"term-definition-{node['number']}"
    link = {"href": node["refuri"], "aria-describedby": described}
    self.body.append('<span class="defined-term">')
    self.body.append(self.starttag(node, "a", "", CLASS="reference internal", **link))


def close_term(self: HTML5Translator, node: DefinedTerm) -> None:
    described = f"term-definition-{node['number']}"
    tooltip = f'<span role="tooltip" id="{described}">{node["definition"]}</span>'
    self.body.append(f"</a>{tooltip}</span>")


def plain(definition: nodes.Element) -> nodes.inline:
    """The definition as one line of text and formulas: a tooltip has no links in it."""
    line = nodes.inline()
    for paragraph in definition.findall(nodes.paragraph):
        line += [nodes.Text(" ")] if line.children else []
        line += paragraph.deepcopy().children
    for link in list(
        line.findall(lambda x: isinstance(x, nodes.reference | addnodes.pending_xref))
    ):
        link.parent.replace(link, [nodes.Text(link.astext())])
    return line


def definitions(env: BuildEnvironment) -> dict[tuple[str, str], nodes.inline]:
    """The definition of every term of the book, by page and anchor."""
    places = {(x[3], x[4]) for x in env.get_domain("std").get_objects() if x[2] == "term"}
    found = {}
    for page in {page for page, _ in places}:
        for item in env.get_doctree(page).findall(nodes.definition_list_item):
            anchors = [anchor for term in item.findall(nodes.term) for anchor in term["ids"]]
            body = [x for x in item.children if isinstance(x, nodes.definition)]
            found.update({(page, anchor): plain(x) for anchor in anchors for x in body})
    return {place: found[place] for place in places if place in found}


def add_definitions(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    builder = app.builder
    if not isinstance(builder, StandaloneHTMLBuilder):
        return
    targets = {
        f"{builder.get_relative_uri(docname, page)}#{anchor}": definition
        for (page, anchor), definition in definitions(app.env).items()
        if page != docname  # the glossary itself needs no tooltip
    }
    links = [x for x in doctree.findall(nodes.reference) if x.get("refuri") in targets]
    for number, link in enumerate(links, start=1):
        html = builder.render_partial(targets[link["refuri"]].deepcopy())["fragment"]
        term = DefinedTerm(refuri=link["refuri"], number=number, definition=html.strip())
        term += link.children
        link.parent.replace(link, term)


def setup(app: Sphinx) -> dict:
    app.add_node(DefinedTerm, html=(open_term, close_term))
    app.connect("doctree-resolved", add_definitions)
    app.add_js_file("terms.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
