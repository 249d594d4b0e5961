"""Sphinx extension: the directive `quiz`, one question with options and a word on each of them.

    ```{quiz} How much exposure does the second position get?
    :label: quiz-1-second

    - [ ] 1/2

      That is 1/j. Here attention falls like 1/log2(1+j).

    - [x] .63

      It is 1/log2(3).
    ```

Exactly one option is right, and every option has feedback: anything else fails the build. On the
page it is a group of radio buttons, and what was chosen shows its feedback: no script, no network.
In the PDF all feedback stands at the end (tools/built_page.py). The style: book/_static/book.css.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator
from sphinx.writers.latex import LaTeXTranslator

MARKS = {"[ ]": False, "[x]": True}


class Question(nodes.General, nodes.Element):
    """One question: its `Legend`, then its options."""


class Legend(nodes.General, nodes.TextElement):
    """What is asked."""


class Option(nodes.General, nodes.Element):
    """One answer with the attributes `name` (of the group), `letter` and `right`."""


class Label(nodes.General, nodes.TextElement):
    """The words of an answer."""


class Feedback(nodes.General, nodes.Element):
    """What is said to those who chose it."""


class Quiz(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[dict] = {"label": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        if "label" not in self.options:
            raise self.error("quiz: a question needs a :label:, such as quiz-1-second")
        name = nodes.make_id(self.options["label"])
        question = Question(ids=[name])
        self.set_source_info(question)
        number = self.env.new_serialno("quiz") + 1
        text, messages = self.state.inline_text(" ".join(self.arguments[0].split()), self.lineno)
        question += Legend("", "", nodes.strong("", f"Question {number}. "), *text)
        answers = self.answers()
        if sum(right for right, _, _ in answers) != 1:
            raise self.error(f"quiz {name}: mark exactly one option with [x], the others with [ ]")
        for letter, (right, label, feedback) in zip(string.ascii_lowercase, answers, strict=False):
            option = Option(name=name, letter=letter, right=right)
            option += Label("", "", nodes.Text(f"({letter}) "), *label)
            verdict = nodes.strong("", "Right. " if right else "Not so. ")
            feedback[0].insert(0, verdict)
            option += Feedback("", *feedback)
            question += option
        return [question, *messages]

    def answers(self) -> list[tuple[bool, list[nodes.Node], list[nodes.Element]]]:
        """(whether it is right, its words, its feedback) of each option."""
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        lists = [x for x in body.children if isinstance(x, nodes.bullet_list)]
        if len(body.children) != 1 or not lists or len(lists[0]) < 2:
            raise self.error("quiz: below the question comes one list with two options or more")
        return [self.answer(item) for item in lists[0].children]

    def answer(self, item: nodes.Element) -> tuple[bool, list[nodes.Node], list[nodes.Element]]:
        first = item[0][0] if item.children and item[0].children else nodes.Text("")
        mark = first.astext()[:3]
        if mark not in MARKS:
            raise self.error(f"quiz: an option begins with [ ] or [x], not {mark!r}")
        if len(item) < 2:
            raise self.error(f"quiz: no feedback below the option {item.astext()!r}")
        words = [nodes.Text(first.astext()[3:].lstrip()), *item[0].children[1:]]
        return MARKS[mark], words, list(item.children[1:])


def open_question(self: HTML5Translator, node: Question) -> None:
    self.body.append(self.starttag(node, "fieldset", CLASS="quiz"))


def open_legend(self: HTML5Translator, node: Legend) -> None:
    self.body.append("<legend>")


def open_option(self: HTML5Translator, node: Option) -> None:
    name, letter = node["name"], node["letter"]
    verdict = "right" if node["right"] else "wrong"
    self.body.append(
        f'<div class="quiz-option quiz-{verdict}">'
        f'<input type="radio" name="{name}" id="{name}-{letter}">'
    )


def open_label(self: HTML5Translator, node: Label) -> None:
    option = node.parent
    self.body.append(f'<label for="{option["name"]}-{option["letter"]}">')


def open_feedback(self: HTML5Translator, node: Feedback) -> None:
    self.body.append('<div aria-live="polite"><div class="quiz-feedback">')


def closing(html: str) -> Callable[[HTML5Translator, nodes.Element], None]:
    def close(self: HTML5Translator, node: nodes.Element) -> None:
        self.body.append(html)

    return close


def nothing(self: LaTeXTranslator, node: nodes.Element) -> None:
    """In LaTeX question, options and feedback are paragraphs like any others."""


def new_paragraph(self: LaTeXTranslator, node: nodes.Element) -> None:
    self.body.append("\n\n")


def setup(app: Sphinx) -> dict:
    parts = {
        Question: (open_question, closing("</fieldset>\n")),
        Legend: (open_legend, closing("</legend>\n")),
        Option: (open_option, closing("</div>\n")),
        Label: (open_label, closing("</label>\n")),
        Feedback: (open_feedback, closing("</div></div>\n")),
    }
    for node, html in parts.items():
        app.add_node(node, html=html, latex=(nothing, new_paragraph))
    app.add_directive("quiz", Quiz)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
