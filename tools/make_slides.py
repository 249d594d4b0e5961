"""Slides of two chapters for teaching: `make slides` writes _build/slides/*.html.

book/slides.yml says which formulas, pictures and results of a built chapter stand on which slide.
The pages need no network and no library but the book's own MathJax, which is copied beside them.
"""

from __future__ import annotations

import copy
import html
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from bs4 import Tag

from tools import built_page

ROOT = built_page.ROOT
PLAN = ROOT / "book" / "slides.yml"
TARGET = ROOT / "_build" / "slides"
MATHJAX = "_static/mathjax/tex-svg-full.js"
HERE = Path(__file__).parent


def words(heading: Tag) -> str:
    """A heading without its number and its link.

    >>> from bs4 import BeautifulSoup
    >>> text = '<h2><span class="section-number">1. </span>Lists<a class="headerlink">#</a></h2>'
    >>> words(BeautifulSoup(text, "html.parser").h2)
    'Lists'
    """
    heading = copy.copy(heading)
    for extra in heading.select(".section-number, .headerlink"):
        extra.decompose()
    return heading.get_text().strip()


def find(article: Tag, selector: str, what: str) -> Tag:
    """The first element that `selector` names in the chapter, as a copy."""
    found = article.select_one(selector)
    if found is None:
        raise ValueError(
            f"make_slides: {what}: nothing in the built page is named {selector!r}; "
            "correct book/slides.yml or build the book again."
        )
    return copy.copy(found)


def clean(element: Tag, page: Path) -> None:
    """No links into the page that was left behind, no buttons, and ids that stay unique."""
    for extra in element.select("a.headerlink, button, script, [role=tooltip]"):
        extra.decompose()
    for link in element.select("a[href]"):
        if not str(link["href"]).startswith("https://"):
            link.unwrap()
    for holder in [element, *element.select("[id]")]:
        if holder.has_attr("id"):
            del holder["id"]
    built_page.inline_images(element, page)


def slide(article: Tag, plan: dict[str, Any], name: str, page: Path) -> str:
    """One slide, as the text of a <section>."""
    section = find(article, f"section#{plan['section']}", name)
    heading = section.find(["h1", "h2", "h3"])
    title = plan.get("title") or (words(heading) if isinstance(heading, Tag) else "")
    shown = []
    for selector in plan.get("show", []):
        element = find(article, selector, name)
        clean(element, page)
        shown.append(str(element))
    # The words hold TeX between \( and \), which MathJax is to read.
    points = "".join(
        f'<li><span class="tex2jax_process mathjax_process">{html.escape(line)}</span></li>'
        for line in plan.get("say", [])
    )
    return (
        f'<section class="slide" aria-label="{html.escape(title)}"><h2>{html.escape(title)}</h2>'
        f"{f'<ul>{points}</ul>' if points else ''}"
        f'<div class="body">{"".join(shown)}</div></section>'
    )


def deck(name: str, plans: list[dict[str, Any]], folder: Path = built_page.HTML) -> str:
    """All slides of the chapter `name`, as one HTML page."""
    soup, article = built_page.read(name, folder)
    title = words(find(article, "h1", name))
    slides = "".join(slide(article, plan, name, folder / f"{name}.html") for plan in plans)
    style, script = (
        (HERE / f"slides.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{style}</style>"
        f"<script>{built_page.formula_settings(soup)}</script>"
        "<script defer src='mathjax.js'></script></head>"
        f"<body class='tex2jax_ignore mathjax_ignore'><main>{slides}</main><footer>"
        f"<span>{html.escape(title)}</span><button id='back' type='button'>back</button>"
        "<output id='counter'></output><button id='next' type='button'>next</button></footer>"
        f"<script>{script}</script></body></html>"
    )


def make_slides(
    target: Path = TARGET, folder: Path = built_page.HTML, plan: Path = PLAN
) -> list[Path]:
    """Write one page of slides per chapter of `plan`; the files."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / MATHJAX, target / "mathjax.js")
    files = []
    for name, plans in yaml.safe_load(plan.read_text(encoding="utf-8")).items():
        files.append(target / f"{Path(name).name}.html")
        files[-1].write_text(deck(name, plans, folder), encoding="utf-8")
    return files


def main() -> int:
    for file in make_slides():
        print(f"Open these slides: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
