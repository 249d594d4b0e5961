"""Sphinx extension: the glossary has its letters, A to Z, above its words."""

from __future__ import annotations

import html
import re

from sphinx.application import Sphinx

TERM = re.compile(r'<dt id="(?P<id>term-[^"]+)">(?P<words>.*?)<a class="headerlink"', re.S)


def letters(body: str) -> str:
    """Links to the first word of each letter that has one.

    >>> letters('<dt id="term-a">alpha<a class="headerlink"></a></dt>')
    '<nav class="letters" aria-label="Letters of the glossary"><a href="#term-a">A</a></nav>'
    """
    first: dict[str, str] = {}
    for term in TERM.finditer(body):
        words = html.unescape(re.sub("<[^>]*>", "", term["words"])).strip()
        if words[:1].isalpha():
            first.setdefault(words[0].upper(), term["id"])
    links = [f'<a href="#{place}">{letter}</a>' for letter, place in sorted(first.items())]
    return f'<nav class="letters" aria-label="Letters of the glossary">{"".join(links)}</nav>'


def put_letters(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    body = context.get("body", "")
    found = re.search(r'<dl class="[^"]*\bglossary\b', body)
    if found is not None:
        start = found.start()
        context["body"] = body[:start] + letters(body) + body[start:]


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", put_letters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
