"""The whole book as one PDF for print: `make pdf` writes _build/fairpg-lite.pdf.

The built pages become one page without the theme, which Chromium prints. It is printed twice: the
first time tells on which sheet each heading stands, the second has these numbers in the contents.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from bs4 import Tag

from tools import built_page
from tools.chromium import chromium, wait_for_formulas

ROOT = built_page.ROOT
TARGET = ROOT / "_build" / "fairpg-lite.pdf"
MATHJAX = "_static/mathjax/tex-svg-full.js"
FOOTER = (
    '<div style="width:100%;font:8pt sans-serif;text-align:center;color:#444">'
    '<span class="pageNumber"></span></div>'
)
# Short code stays together; longer code may break, or half a sheet would stay empty before it.
MARK_LONG = """() => document.querySelectorAll('pre').forEach(
  e => { if (e.offsetHeight > 200) e.classList.add('long'); })"""
# How far a thing reaches over the right edge of the text, in pixels.
OVERHANG = """() => [...document.querySelectorAll('.page *')]
  .filter(e => !e.closest('svg, mjx-assistive-mml') && e.getClientRects().length
    && e.getBoundingClientRect().right > document.body.getBoundingClientRect().right + 2)
  .map(e => e.tagName + ': ' + e.textContent.trim().slice(0, 60))"""
FILL_IN = """numbers => document.querySelectorAll('.number').forEach(
  e => { e.textContent = numbers[e.dataset.for] ?? ''; })"""
SHEETS, MEGABYTES = 400, 16
LEFT_OUT = {"book/api"}  # thirty sheets of docstrings, which `help` shows
TEXT_WIDTH = 642  # CSS pixels between the margins of print.css: 170 mm


def unique_ids(article: Tag, name: str, known: set[str]) -> None:
    """Give every id its page's name, and turn links between the book's pages into links inside."""
    here = built_page.slug(name)
    seen: set[str] = set()
    for element in article.select("[id]"):
        if element.find_parent(class_="drawn"):  # names inside a figure, unique in the whole book
            continue
        place = str(element["id"])
        if place in seen:  # every exercise's text has the same id: a link means the first
            del element["id"]
        else:
            seen.add(place)
            element["id"] = f"{here}--{place}"
    for link in article.select("a[href]"):
        parts = urlsplit(str(link["href"]))
        if parts.scheme or parts.netloc:
            continue
        target = name
        if parts.path:
            folder = Path(name).parent
            target = (folder / parts.path).with_suffix("").as_posix()
        if target in known:
            start = built_page.slug(target)
            link["href"] = f"#{start}--{parts.fragment}" if parts.fragment else f"#{start}"
        else:  # a file, or a page that is not in this PDF: the words stay
            del link["href"]


def headings(article: Tag) -> Iterable[tuple[str, str, str]]:
    """(kind, id, words) of the page's title and of its sections."""
    for heading in article.select("h1, h2"):
        section = heading.find_parent("section")
        inside_box = heading.find_parent(class_=["admonition", "exercise", "proof"])
        if section is not None and inside_box is None:
            kind = "page-title" if heading.name == "h1" else "section"
            yield kind, str(section["id"]), heading.get_text(" ", strip=True)


def title_page(config: dict) -> str:
    # No <h1>: a heading that takes two lines loses a space among the bookmarks.
    return (
        f'<div class="title-page"><p class="title">{html.escape(config["title"])}</p>'
        "<p>A book that derives, tests and reproduces Singh and Joachims, "
        "<em>Policy Learning for Fairness in Ranking</em> (NeurIPS 2019).</p>"
        f"<p>{html.escape(config['author'])}, {html.escape(str(config['copyright']))}. "
        "Text CC BY 4.0, code MIT.</p>"
        "<p>Code that draws or checks is left out, and so is the list of the module's functions; "
        "the notebooks and the pages have them.</p></div>"
    )


def contents_line(kind: str, place: str, words: str) -> str:
    return (
        f'<a class="{kind}" href="#{place}"><span>{html.escape(words)}</span>'
        f'<span class="number" data-for="{place}">000</span></a>'
    )


def one_page(parts: list[tuple[str, list[str]]], folder: Path = built_page.HTML) -> str:
    """All pages of `parts` (caption, names) as the text of one HTML page inside `folder`."""
    known = {name for _, names in parts for name in names}
    contents, body = [], []
    for caption, names in parts:
        if caption:
            contents.append(f"<p>{html.escape(caption)}</p>")
            body.append(f'<div class="part"><p>{html.escape(caption)}</p></div>')
        for name in names:
            _, article = built_page.read(name, folder)
            built_page.for_paper(article)
            built_page.inline_images(article, folder / f"{name}.html")
            unique_ids(article, name, known)
            contents += [contents_line(*heading) for heading in headings(article)]
            inside = article.decode_contents()
            body.append(f'<div class="page" id="{built_page.slug(name)}">{inside}</div>')
    style = built_page.figure_style()
    style += (Path(__file__).parent / "print.css").read_text(encoding="utf-8")
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>{html.escape(config['title'])}</title>"
        f"<link rel='stylesheet' href='_static/pygments.css'><style>{style}</style>"
        f"<script>{built_page.formula_settings()}</script><script src='{MATHJAX}'></script></head>"
        f"<body>{title_page(config)}<nav class='contents'><h1>Contents</h1>"
        f"{''.join(contents)}</nav>{''.join(body)}</body></html>"
    )


def sheet_numbers(pdf: Path) -> dict[str, int]:
    """The sheet on which each named place stands, counted from 1."""
    from pypdf import PdfReader

    reader = PdfReader(pdf)
    return {
        name.lstrip("/"): int(reader.get_destination_page_number(place) or 0) + 1
        for name, place in reader.named_destinations.items()
    }


def sheet_count(pdf: Path) -> int:
    from pypdf import PdfReader

    return len(PdfReader(pdf).pages)


def print_page(page: Any, target: Path) -> None:
    page.pdf(
        path=str(target),
        prefer_css_page_size=True,
        print_background=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOTER,
        outline=True,
        tagged=True,
    )


def make_pdf(
    parts: list[tuple[str, list[str]]],
    target: Path = TARGET,
    folder: Path = built_page.HTML,
) -> list[str]:
    """Write the PDF and return what reaches over the margin: nothing, if all is well."""
    source = folder / "print.html"  # beside _static, where its formulas and colours come from
    source.write_text(one_page(parts, folder), encoding="utf-8")
    try:
        with chromium() as browser:
            page = browser.new_page(viewport={"width": TEXT_WIDTH, "height": 900})
            page.set_default_timeout(600_000)  # a thousand formulas on a busy machine
            page.emulate_media(media="print")
            page.goto(source.as_uri())
            wait_for_formulas(page)
            page.evaluate(MARK_LONG)
            overhang = page.evaluate(OVERHANG)
            print_page(page, target)
            page.evaluate(FILL_IN, sheet_numbers(target))
            print_page(page, target)
    finally:
        source.unlink()
    return list(overhang)


def parts_on_paper() -> list[tuple[str, list[str]]]:
    """The book's parts with their pages, but for those of LEFT_OUT."""
    return [
        (caption, [name for name in names if name not in LEFT_OUT])
        for caption, names in built_page.parts_in_order()
    ]


def main(target: Path = TARGET, folder: Path = built_page.HTML) -> int:
    overhang = make_pdf(parts_on_paper(), target, folder)
    for line in overhang:
        print(f"over the margin: {line}")
    sheets, size = sheet_count(target), target.stat().st_size / 1e6
    print(f"{target} ({sheets} sheets, {size:.1f} MB)")
    too_much = sheets > SHEETS or size > MEGABYTES
    if too_much:
        print(f"more than {SHEETS} sheets or {MEGABYTES} MB: nobody prints that")
    return 1 if overhang or too_much else 0


if __name__ == "__main__":
    sys.exit(main())
