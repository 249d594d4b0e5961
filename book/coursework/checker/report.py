"""What a teacher reads after a grading: a table, a page for each student, one for the class."""

import csv
import html
import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from checker import TASKS, written_of
from checker.grade import Result, read_notebook
from checker.names import as_cell, as_lines, as_text

PLACEHOLDER = "*Your answer here.*"
SHADES = {"solved": "#0072B2", "in part": "#56B4E9", "wrong": "#E69F00", "not answered": "#DDDDDD"}
STYLE = """body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ccc;padding:.3rem .5rem;
text-align:left;vertical-align:top}pre{white-space:pre-wrap;background:#f6f6f6;padding:.7rem}
svg{max-width:100%;height:auto}"""


def student_page(result: Result) -> str:
    """What a student is told: the points, and the checker's words."""
    head = f"{as_text(result.student)}: {result.total} of {result.out_of} points"
    if result.reason:
        return f"{head}\n\nNothing was graded: {result.reason}.\n"
    seed = "none" if result.seed is None else result.seed
    told = f"Seed of the notebook: {seed}. Written answers are marked by a person."
    messages = [message for message in result.messages.values() if message]
    return as_lines("\n\n".join([head, told, *result.notes, *messages]) + "\n")


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as CSV in which every text is a text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([as_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()


def grades(results: Sequence[Result], remarks: dict[str, str]) -> str:
    """The table of grades: a row for everything that was handed in."""
    tasks = list(results[0].points) if results else list(TASKS)
    rows: list[list[Any]] = [["student", *tasks, "total", "out of", "graded", "remarks"]]
    for result in results:
        points = [result.points[task] for task in tasks]
        graded = "no" if result.reason else "yes"
        told = result.reason or remarks.get(result.student, "")
        rows.append([as_text(result.student), *points, result.total, result.out_of, graded, told])
    return table(rows)


# --- written answers -----------------------------------------------------------------------------


def written_answers(notebook: Path, week: int | None, known: set[str]) -> dict[str, str]:
    """What a student wrote under each written question; ``known`` are lines that were given."""
    answers = dict.fromkeys(written_of(week), "")
    current = ""
    for cell in read_notebook(notebook):
        source = str(cell["source"])
        asked = re.search(r"\*\*Written answer ([A-Z])", source)
        if asked:
            current = asked[1]
        elif cell.get("cell_type") != "markdown" or source.lstrip().startswith("#"):
            current = ""
        if current in answers and cell.get("cell_type") == "markdown":
            own = [line for line in source.splitlines() if line.strip() not in known]
            answers[current] = "\n".join([answers[current], *own]).strip()
    return answers


def given_lines(text: str) -> set[str]:
    """The lines of an assignment that are no answers."""
    return {line.strip() for line in text.splitlines()} | {PLACEHOLDER, ""}


def written_table(answers: dict[str, dict[str, str]], week: int | None) -> str:
    """A row per student with each written answer and a column for its points."""
    names = written_of(week)
    head = ["student"]
    for name in names:
        head += [name, f"{name}: 0 to 4"]
    rows: list[list[Any]] = [head]
    for student, mine in answers.items():
        row = [as_text(student)]
        for name in names:
            row += [mine.get(name, ""), ""]
        rows.append(row)
    return table(rows)


def written_page(answers: dict[str, dict[str, str]], week: int | None) -> str:
    """The same as a page to read, question by question."""
    parts = list[str]()
    for name in written_of(week):
        parts.append(f"<h2>Written answer {name}</h2>")
        for student, mine in answers.items():
            text = mine.get(name, "") or "(nothing)"
            shown = html.escape(as_lines(text))
            parts.append(f"<h3>{html.escape(as_text(student))}</h3><pre>{shown}</pre>")
    return _page("Written answers", parts)


# --- the class -----------------------------------------------------------------------------------


def outcome(result: Result, task: str) -> str:
    """One of the words in `SHADES`."""
    points = result.points[task]
    if points == TASKS[task].points:
        return "solved"
    if points:
        return "in part"
    return "not answered" if task in result.blank or result.reason else "wrong"


def slip(message: str) -> str:
    r"""The checker's diagnosis without the numbers of one input, so that equal slips look equal.

    >>> slip("task1a  title: 0 of 8 points\n  It is 0.5 too much. Shown by x = 1. Your answer: 2.")
    'It is … too much.'
    """
    head, _, rest = message.partition("\n")
    text = " ".join(rest.split()) or head.partition(": ")[2]
    text = re.split(r" ?(?:Shown by|Your answer:|To read:)", text)[0]
    return re.sub(r"(?<![\w|(])-?\d*\.\d+|(?<![\w|(])-?\d+(?![\w|])", "…", text)


def class_page(results: Sequence[Result], sentence: str, week: int | None) -> str:
    """How the class did: a picture, a row per task with its commonest slips, who is missing."""
    graded = [result for result in results if not result.reason]
    tasks = list(results[0].points) if results else list(TASKS)
    title = "The class" if week is None else f"The class in week {week}"
    parts = [f"<p>{len(results)} submissions, {len(graded)} graded.</p>"]
    if graded:
        totals = sorted(result.total for result in graded)
        parts.append(
            f"<p>Points: median {totals[len(totals) // 2]}, from {totals[0]} to {totals[-1]}, out "
            f"of {graded[0].out_of}.</p>"
        )
    counts = {task: Counter(outcome(result, task) for result in graded) for task in tasks}
    parts.append(_picture(counts, len(graded)))
    parts.append("<table><tr><th>task<th>solved<th>tried<th>the commonest slips</tr>")
    for task in tasks:
        tried = len(graded) - counts[task]["not answered"]
        said = Counter(
            slip(result.messages[task])
            for result in graded
            if outcome(result, task) in ("wrong", "in part")
        )
        listed = "<br>".join(
            f"{count} × {html.escape(as_text(text)) or 'no words'}"
            for text, count in said.most_common(3)
        )
        name = f"{task.removeprefix('task')} {TASKS[task].title}"
        parts.append(
            f"<tr><td>{html.escape(name)}<td>{counts[task]['solved']}<td>{tried}<td>{listed}</tr>"
        )
    parts.append("</table>")
    lost = [result for result in results if result.reason]
    if lost:
        parts.append("<h2>Not graded</h2><ul>")
        for result in lost:
            name, reason = html.escape(as_text(result.student)), html.escape(result.reason)
            parts.append(f"<li>{name}: {reason}</li>")
        parts.append("</ul>")
    parts.append(f"<h2>How it was graded</h2><p>{html.escape(sentence)}</p>")
    return _page(title, parts)


def _picture(counts: dict[str, Counter[str]], size: int) -> str:
    """A bar per task, divided by how its answers turned out."""
    left, width, step = 250, 480, 26
    height = step * (len(counts) + 1) + 10
    told = ", ".join(f"{task} {c['solved']} of {size} solved" for task, c in counts.items())
    parts = [
        f'<svg viewBox="0 0 {left + width + 20} {height}" role="img" '
        f'aria-label="How the answers to each task turned out: {html.escape(told)}">'
    ]
    for row, (task, count) in enumerate(counts.items()):
        y = row * step
        name = html.escape(f"{task.removeprefix('task')} {TASKS[task].title}")
        parts.append(f'<text x="0" y="{y + 17}" font-size="14">{name}</text>')
        x = float(left)
        for word, shade in SHADES.items():
            part = width * count[word] / max(size, 1)
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{part:.1f}" height="{step - 6}" '
                f'fill="{shade}"><title>{count[word]} {word}</title></rect>'
            )
            x += part
    x = float(left)
    y = step * len(counts)
    for word, shade in SHADES.items():
        parts.append(f'<rect x="{x}" y="{y + 9}" width="12" height="12" fill="{shade}"/>')
        parts.append(f'<text x="{x + 16}" y="{y + 20}" font-size="13">{word}</text>')
        x += 120
    return "".join([*parts, "</svg>"])


def _page(title: str, parts: Sequence[str]) -> str:
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{html.escape(title)}</h1>{''.join(parts)}</body></html>\n"
    )
