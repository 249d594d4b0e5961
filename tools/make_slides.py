"""Slides of the chapters for teaching: `make slides` writes _build/slides/*.html.

A deck follows the built chapter: its question, then for each section the numbered formulas with the
words that lead to them and the picture, or a table that its code printed, or else its first
sentences; the three things to remember, and the takeaway last. Speaker notes (key N) are the
section's own first sentences, and of a picture those that follow it. book/slides.yml adds what to
say and ask, and may choose other pieces for a section; what it names and the chapter no longer has
is reported, and the section gets its automatic slide. The pages need no network and no library but
the book's own MathJax, which is copied beside them.
"""

from __future__ import annotations

import copy
import html
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from bs4 import BeautifulSoup, Tag

from tools import built_page

ROOT = built_page.ROOT
PLAN = ROOT / "book" / "slides.yml"
TARGET = ROOT / "_build" / "slides"
MATHJAX = "_static/mathjax/tex-svg-full.js"
HERE = Path(__file__).parent
LONGEST = 45  # words that lead to a formula and still fit on its slide
FEWEST = 7  # words that say something of a formula or an output: "Then" does not
ROWS = 16  # lines or rows of the longest output that fits
# A figure is an image, or drawn in the page.
PICTURE = "figure:has(img, .drawn)"
# A mark that ends a formula, before whatever closes its lines.
LAST_MARK = re.compile(r"(?:\\[,;])?\s*[.,]\s*((?:\\end\{\w+\}\s*)*)\\\]")
# What one does to a figure that moves, and not to a slide.
DOING = re.compile(r"(Choose|Click|Drag|Draw|Move|Press|Run|Start|Turn)\b")
REMEMBER = "three-things-to-remember"
BACK = re.compile(r"exercises|what-the-paper-says|what-comes-next|what-you-should-now")


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
    """No links into the page that was left behind, no buttons, no ids but those of drawings."""
    still_caption(element)
    for formula in [element, *element.select("div.math")]:
        if "math" in (formula.get("class") or []):
            without_last_mark(formula)
    for extra in element.select(built_page.SCREEN_ONLY):
        extra.decompose()
    for link in element.select("a[href]"):
        if not str(link["href"]).startswith("https://"):
            link.unwrap()
    for holder in [element, *element.select("[id]")]:
        if holder.has_attr("id") and not holder.find_parent("svg"):  # drawings refer to their own
            del holder["id"]
    built_page.inline_images(element, page)


def still_caption(element: Tag) -> None:
    """A figure that moves on the page stands still here: its caption asks for nothing."""
    if "explorable" not in (element.get("class") or []):
        return
    for caption in element.select("figcaption"):
        told = [one for one in sentences(plain_words(caption)) if not DOING.match(one)]
        caption.clear()
        caption["class"] = "tex2jax_process mathjax_process"
        caption.append(" ".join(told))


def without_last_mark(formula: Tag) -> None:
    """The comma or the full stop after a formula belongs to the chapter's sentence."""
    for text in formula.find_all(string=re.compile(r"\\\]")):
        text.replace_with(LAST_MARK.sub(r"\1\\]", str(text)))


def sections(article: Tag) -> list[Tag]:
    """The chapter's opening and its sections in order, without exercises and back matter."""
    (first,) = article.select("section:has(> h1)")[:1]
    later = [
        part
        for part in first.find_all("section", recursive=False)
        if not BACK.match(str(part["id"]))
    ]
    return [first, *later]


def own(section: Tag, selector: str) -> list[Tag]:
    """What a reader sees of a section without unfolding; of the opening, before the first part."""
    opening = section.find("h1", recursive=False) is not None
    return [
        found
        for found in section.select(selector)
        if not found.find_parent(["details", "aside"])
        and not any("solution" in name or "dropdown" in name for name in classes_above(found))
        and not (opening and found.find_parent("section") is not section)
    ]


def classes_above(element: Tag) -> list[str]:
    return [name for parent in element.parents for name in (parent.get("class") or [])]


def automatic(section: Tag) -> list[tuple[str, list[Tag]]]:
    """The slides of a section: a suffix for the title, and what to show."""
    pictures = own(section, PICTURE)[:1]
    if section.find("h1", recursive=False):
        return [(" (picture)", [p]) for p in pictures]
    if section["id"] == REMEMBER:
        return [("", own(section, "ul, ol")[:1])]
    formulas = with_words(own(section, "div.math[id]")[:2])
    shown = formulas
    if not formulas and not pictures:
        outputs = own(section, ".cell_output:has(pre), table")
        shown = read_aloud([one for one in outputs if is_table(one)][:1])
        if outputs and not shown:
            shown = [paragraph(one) for one in first_sentences(section)]
    slides = [("", shown)] if shown else []
    return [*slides, *((" (picture)", [p]) for p in pictures)]


def is_table(output: Tag) -> bool:
    """Whether it has two rows or more, fits, and each row says what its numbers are."""
    text = output.get_text().strip()
    count = len(output.select("tr")) or len(text.splitlines())
    return 2 <= count <= ROWS and not text.startswith(("tensor(", "["))


def with_words(formulas: list[Tag]) -> list[Tag]:
    """Each formula after the words that lead to it.

    These are the paragraph before, or its last sentence; where that says as little as "Then", also
    the last sentence before it, or else the first one after the formula.
    """
    shown: list[Tag] = []
    for formula in formulas:
        lead = paragraph_before(formula)
        said = 0
        if lead is not None and lead not in shown:
            said = len(plain_words(lead).split())
            earlier = paragraph_before(lead) if said < FEWEST else None
            whole = sentences(plain_words(earlier)) if earlier is not None else []
            if whole:
                shown.append(paragraph(whole[-1]))
                said = FEWEST
            shown.append(short(lead))
        shown.append(formula)
        if said < FEWEST:
            shown += [paragraph(one) for one in sentences_after(formula)[:1]]
    return shown


def paragraph_before(element: Tag) -> Tag | None:
    """The paragraph that stands before an element, or before what else leads to it."""
    for before in element.find_previous_siblings(limit=2):
        if before.name == "p":
            return before
    return None


def read_aloud(printed: list[Tag]) -> list[Tag]:
    """What code printed, with what the chapter says of it: as many sentences as say something."""
    shown: list[Tag] = []
    for output in printed:
        told: list[str] = []
        for sentence in sentences_after(output):
            if len(" ".join(told).split()) < FEWEST:
                told.append(sentence)
        shown += [output, paragraph(" ".join(told))]
    return shown


def sentences_after(element: Tag) -> list[str]:
    """The whole sentences that follow an element in its section."""
    section = element.find_parent("section")
    if not isinstance(section, Tag):
        return []
    later = [p for p in element.find_all_next("p") if element not in p.parents]
    return [
        sentence
        for p in own(section, "p")
        if any(p is one for one in later) and not p.find_parent(["figure", "blockquote", "table"])
        for sentence in sentences(plain_words(p))
    ]


def short(whole: Tag) -> Tag:
    """The paragraph, or where it is long the last sentences of it that say something, as text."""
    text = plain_words(whole)
    if len(text.split()) <= LONGEST:
        return whole
    parts = re.split(r"(?<=[.?!])\s+(?=[A-Z(])", text)
    kept = parts.pop()
    while parts and len(kept.split()) < FEWEST:
        kept = f"{parts.pop()} {kept}"
    return paragraph(kept)


def paragraph(text: str) -> Tag:
    """A new paragraph, whose TeX is drawn."""
    made = BeautifulSoup('<p class="tex2jax_process mathjax_process"></p>', "html.parser").p
    assert made is not None
    made.string = text
    return made


def plain_words(element: Tag) -> str:
    """The text of an element without what the page shows on hover only."""
    element = copy.copy(element)
    for extra in element.select("a.headerlink, button, script, [role=tooltip]"):
        extra.decompose()
    return " ".join(element.get_text().split())


def sentences(text: str) -> list[str]:
    """The whole sentences of a text; what breaks off at a formula is left out.

    >>> sentences("First this. Then that? And, with H,")
    ['First this.', 'Then that?']
    """
    parts = re.split(r"(?<=[.?!])\s+(?=[A-Z(])", text)
    return [one for one in parts if one.endswith((".", "?", "!")) and one[0].isupper()]


def first_sentences(section: Tag) -> list[str]:
    """The first whole sentences of a section, three at most: what its author says first."""
    found: list[str] = []
    for paragraph in own(section, "p"):
        if not paragraph.find_parent(["figure", "blockquote", "li"]):
            whole = sentences(plain_words(paragraph))
            found += [one for one in whole if len(one.split()) > 4]  # no run-in heading
        if len(found) >= 3:
            break
    return found[:3]


def opening(section: Tag, word: str) -> list[Tag]:
    """The question or the takeaway at the top of a chapter, as the page shows it."""
    paragraphs = [p for quote in own(section, "blockquote")[:1] for p in quote.find_all("p")]
    return [p for p in paragraphs if plain_words(p).startswith(word)]


def chosen(article: Tag, plan: dict[str, Any], name: str, lost: list[str]) -> list[Tag] | None:
    """What slides.yml picks, or None if the chapter no longer has all of it."""
    found = []
    for selector in plan.get("show", []):
        element = article.select_one(selector)
        if element is None:
            lost.append(f"{name}: nothing is named {selector!r}")
            return None
        found.append(element)
    return found


def slide(
    title: str, shown: list[Tag], say: list[str], notes: str, page: Path, size: str = ""
) -> str:
    """One slide, as the text of a <section>, with the speaker's notes; ``size`` may be large."""
    copies = [copy.copy(element) for element in shown]
    for element in copies:
        clean(element, page)
    # The words hold TeX between \( and \), which MathJax is to read.
    mark = '<span class="tex2jax_process mathjax_process">'
    points = "".join(f"<li>{mark}{html.escape(line)}</span></li>" for line in say)
    return (
        f'<section class="slide {size}" aria-label="{html.escape(title)}">'
        f"<h2>{mark}{html.escape(title)}</span></h2>"
        f"{f'<ul>{points}</ul>' if points else ''}"
        f'<div class="body">{"".join(map(str, copies))}</div>'
        f'<aside class="notes" hidden>{mark}{html.escape(notes)}</span></aside></section>'
    )


def slides_of(article: Tag, plan: dict[str, Any], name: str, page: Path, lost: list[str]) -> str:
    """All slides of a chapter; ``lost`` collects what slides.yml names in vain."""
    parts = {str(part["id"]): part for part in sections(article)}
    picked: dict[str, list[dict[str, Any]]] = {}
    for one in plan.get("slides", []):
        if one["section"] not in parts:
            lost.append(f"{name}: there is no section {one['section']!r}")
        picked.setdefault(one["section"], []).append(one)
    made = []
    for number, (key, part) in enumerate(parts.items()):
        heading = part.find(["h1", "h2"])
        title = words(heading) if isinstance(heading, Tag) else key
        notes = " ".join(first_sentences(part))
        own_notes = {0: plan.get("open"), len(parts) - 1: plan.get("close")}.get(number)
        notes = "\n".join(filter(None, [own_notes, notes]))
        mine = [(one, chosen(article, one, name, lost)) for one in picked.get(key, [])]
        if mine and all(shown is not None for _, shown in mine):
            for one, shown in mine:
                told = "\n".join(filter(None, [one.get("notes"), notes]))
                made.append(
                    slide(one.get("title", title), shown or [], one.get("say", []), told, page)
                )
        else:
            if number == 0:
                made.append(slide(title, opening(part, "Question"), [], notes, page, "large"))
                if plan.get("ask"):
                    ask = [paragraph(plan["ask"])]
                    told = plan.get("open", "")
                    made.append(slide("Before we begin", ask, [], told, page, "large"))
            say = picked[key][0].get("say", []) if key in picked else []
            for suffix, shown in automatic(part):
                told = " ".join(sentences_after(shown[0])[:3]) if suffix else ""
                told = told or notes
                made.append(slide(title + suffix, shown, [] if suffix else say, told, page))
    first = next(iter(parts.values()))
    takeaway = opening(first, "Takeaway")
    if takeaway:
        closing = plan.get("close") or "Read it out, and go back to what the class has guessed."
        made.append(slide("The takeaway", takeaway, [], closing, page, "large"))
    return "".join(made)


def deck(
    name: str,
    plan: dict[str, Any],
    folder: Path = built_page.HTML,
    lost: list[str] | None = None,
) -> str:
    """All slides of the chapter `name`, as one HTML page; ``lost`` collects complaints."""
    _, article = built_page.read(name, folder)
    title = words(find(article, "h1", name))
    complaints = lost if lost is not None else []
    slides = slides_of(article, plan, name, folder / f"{name}.html", complaints)
    style, script = (
        (HERE / f"slides.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    style = built_page.figure_style() + style
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{style}</style>"
        f"<script>{built_page.formula_settings()}</script>"
        "<script defer src='mathjax.js'></script></head>"
        f"<body class='tex2jax_ignore mathjax_ignore'><main>{slides}</main><footer>"
        f"<span>{html.escape(title)}</span><button id='back' type='button'>back</button>"
        "<button id='speak' type='button'>notes</button>"
        "<output id='counter'></output><button id='next' type='button'>next</button></footer>"
        f"<script>{script}</script></body></html>"
    )


def make_slides(
    target: Path = TARGET,
    folder: Path = built_page.HTML,
    plan: Path = PLAN,
    lost: list[str] | None = None,
) -> list[Path]:
    """Write one page of slides per chapter of `plan`; the files."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / MATHJAX, target / "mathjax.js")
    files = []
    for name, plans in yaml.safe_load(plan.read_text(encoding="utf-8")).items():
        files.append(target / f"{Path(name).name}.html")
        files[-1].write_text(deck(name, plans or {}, folder, lost), encoding="utf-8")
    return files


def main() -> int:
    lost: list[str] = []
    for file in make_slides(lost=lost):
        print(f"Open these slides: {file}")
    for complaint in lost:
        print(
            f"book/slides.yml: {complaint}; the section has its automatic slide.", file=sys.stderr
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
