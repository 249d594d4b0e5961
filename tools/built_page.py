"""One page of the built book, taken apart: its text without the theme, for print and for slides.

Both show exactly what the page shows, outputs included, so nothing can drift from the chapters.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
# What only a screen needs: links to a heading, buttons, scripts, definitions that appear on a word,
# pages within the page.
SCREEN_ONLY = (
    "a.headerlink, button, script, style, .copybtn, [role=tooltip], iframe, "
    ".code-toggle, .code-toggle + label"
)
# Folded code of a cell: it draws a figure or checks a sentence, and the notebook has it.
FOLDED_CODE = ".cell.tag_hide-input > details, .cell.tag_hide-cell"


def parts_in_order() -> list[tuple[str, list[str]]]:
    """The book's parts with their pages, as _toc.yml lists them; the first part is unnamed."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = [("", [toc["root"]])]
    for part in toc["parts"]:
        parts.append(
            (part.get("caption", ""), [name for entry in part["chapters"] for name in names(entry)])
        )
    return parts


def names(entry: dict) -> list[str]:
    """The pages of one entry of _toc.yml, its sections included."""
    inner = [name for section in entry.get("sections", []) for name in names(section)]
    return [entry["file"], *inner]


def read(name: str, html: Path = HTML) -> tuple[BeautifulSoup, Tag]:
    """The whole page `name` (such as "book/notation") and the element that holds its text."""
    file = html / f"{name}.html"
    if not file.is_file():
        raise FileNotFoundError(
            f"built_page.read: {name}.html is not built; run `make book` first."
        )
    soup = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article")
    if article is None:
        raise ValueError(
            f"built_page.read: {name}.html has no <article>; is it a page of the book?"
        )
    formulas_as_tex(article)
    for word in article.select("button.xp-word"):  # a word that sets a figure; still a word
        word.unwrap()
    return soup, article


def formulas_as_tex(article: Tag) -> None:
    """Formulas drawn by book/_ext/formulas.py become TeX again, as MathJax reads it."""
    for formula in article.select(".math[data-tex]"):
        drawn = formula.find("mjx-container")
        if not isinstance(drawn, Tag):
            continue
        own_lines = drawn.get("display") == "true"
        opening, closing = (r"\[", r"\]") if own_lines else (r"\(", r"\)")
        drawn.replace_with(f"{opening}{formula['data-tex']}{closing}")
        del formula["data-tex"]


def for_paper(article: Tag) -> None:
    """Buttons, scripts, checks, the code of figures and code's colours go, other folds open.

    A slider keeps the frame it starts with, and the answers of a quiz move to its end.
    """
    answers_last(article)
    for element in article.select(f"{SCREEN_ONLY}, {FOLDED_CODE}"):
        element.decompose()
    for folded in article.select("details"):
        summary = folded.find("summary")
        if isinstance(summary, Tag):  # what the fold is about: another reading, an optional box
            summary.name = "p"
            summary["class"] = "fold-title"
            summary.string = summary.get_text(" ", strip=True)
        folded.name = "div"
        folded["class"] = "unfolded"
    for coloured in article.select(".highlight pre span"):  # a third of all elements
        coloured.unwrap()
    for figure in article.select("figure.frames"):
        for hidden in figure.select(".drawn[hidden]"):
            hidden.decompose()
        for slider in figure.select("input"):
            slider.replace_with(" = ")


def answers_last(article: Tag) -> None:
    """What a quiz says to each answer, below the last question and no longer under the options."""
    questions = article.select("fieldset.quiz")
    if not questions:
        return
    box = BeautifulSoup("", "html.parser").new_tag("div", attrs={"class": "answers"})
    box.append("Answers")
    for number, question in enumerate(questions, start=1):
        for option in question.select(".quiz-option"):
            letter = "".join(part.get_text() for part in option.select("label")).strip()[:3]
            for feedback in option.select(".quiz-feedback > p:first-child"):
                feedback.insert(0, f"{number} {letter} ")
            for feedback in option.select(".quiz-feedback"):
                feedback["class"] = "answer"
                box.append(feedback.extract())
    questions[-1].insert_after(box)


def inline_images(article: Tag, page: Path) -> None:
    """Put the pictures into the text itself, so that the result is one file."""
    for image in article.select("img"):
        source = str(image["src"])
        if not source.startswith("data:"):
            file = page.parent / unquote(urlsplit(source).path)
            kind = mimetypes.guess_type(file.name)[0] or "image/png"
            data = base64.b64encode(file.read_bytes()).decode()
            image["src"] = f"data:{kind};base64,{data}"


def figure_style() -> str:
    """The style sheet of figures that are a part of the page."""
    return (ROOT / "book" / "_static" / "drawn.css").read_text(encoding="utf-8")


def formula_settings() -> str:
    """The book's settings of MathJax, macros included: the body of a script."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    settings = config["sphinx"]["config"]["mathjax3_config"]
    # What MyST adds: where formulas are.
    settings["options"]["processHtmlClass"] = "tex2jax_process|mathjax_process|math|output_area"
    return f"window.MathJax = {json.dumps(settings)}"


def slug(name: str) -> str:
    """A page's name as the start of an id.

    >>> slug("book/04_exposure")
    'p-book-04_exposure'
    """
    return "p-" + re.sub(r"[^\w-]", "-", name)
