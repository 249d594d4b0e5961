"""The report as one page: no script, nothing from the network, and every name is text."""

import math
from html import escape

from fairpg_lite.auditing import words
from fairpg_lite.auditing.findings import Findings, GroupFound, MeasureFound
from fairpg_lite.auditing.page_style import STYLE
from fairpg_lite.auditing.utilities import UTILITIES

#: How many queries, names and groups the page shows; report.json has all.
WORST_SHOWN = 6
NAMES_SHOWN = 2
GROUPS_SHOWN = 6

# The page may style itself, and nothing else: a name cannot become a script or a request.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page_of(audit: Findings) -> str:
    """The text of ``report.html``.

    Args:
        audit: What was found.

    Returns:
        A whole page of HTML.
    """
    title = "Who gets the attention? An audit of rankings"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>",
        f"<h1>{title}</h1>",
        f'<p class="soft">Of {_sources(audit)}.</p>',
        _short(audit),
        _section("Attention beside merit", _groups(audit)),
        _section("The measures", _measures(audit)),
        _section("Query by query", _spread(audit) + _worst(audit)),
        _section("How useful the lists are", _utilities(audit)),
        _section("What the data have and lack", _counts(audit)),
        '<div class="pair">',
        _section("What was assumed", _list(words.assumptions(audit))),
        _section("What was not tested", _list(words.NOT_TESTED)),
        "</div>",
        _footer(audit),
        "</main></body></html>\n",
    ]
    return "\n".join(parts)


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _sources(audit: Findings) -> str:
    """The names of the runs."""
    names = [escape(name.replace("\\", "/").rpartition("/")[2]) for name in audit.sources]
    if len(names) > 3:
        return f"{names[0]} to {names[-1]}, {len(names)} files"
    return ", ".join(names)


def _short(audit: Findings) -> str:
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in words.summary(audit))
    return f'<div class="short">{sentences}</div>'


def _list(items: "list[str] | tuple[str, ...]") -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _name(name: str) -> str:
    """A name of the user's as HTML."""
    return escape(words.shortened(name))


# --- groups ---------------------------------------------------------------------------------------


def _groups(audit: Findings) -> str:
    """Bars of the shares of each group."""
    shown = audit.groups[:GROUPS_SHOWN]
    kind = "many" if len(shown) > 2 else "few"
    content = f'<div class="{kind}">' + "".join(_bars(group) for group in shown) + "</div>"
    if len(audit.groups) > len(shown):
        left = len(audit.groups) - len(shown)
        content += f'<p class="soft">Groups that are only in report.json: {left}.</p>'
    content += (
        '<p class="soft">Shares within a query, as means over the queries in which anything has '
        "merit. Where attention is shorter than merit, the group gets less than its due.</p>"
    )
    return content


def _bars(group: GroupFound) -> str:
    """A group: its documents, its merit, its attention."""
    rows = "".join(
        _bar(kind, kind, share)
        for kind, share in (
            ("documents", group.document_share),
            ("merit", group.merit_share),
            ("attention", group.attention_share),
        )
    )
    by_merit = f"{words.compared(group.to_merit.value)} than merit would give"
    head = f"<strong>{_name(group.name)}</strong> <span class='soft'>{by_merit}</span>"
    return f'<div class="group"><p>{head}</p>{rows}</div>'


def _bar(label: str, kind: str, share: float) -> str:
    width = 0.0 if math.isnan(share) else 100.0 * share
    value = "–" if math.isnan(share) else f"{width:.1f} %"
    return (
        f'<div class="bar"><span>{label}</span><div class="track">'
        f'<div class="fill {kind}" style="width:{width:.2f}%"></div></div>'
        f'<span class="value">{value}</span></div>'
    )


# --- tables ---------------------------------------------------------------------------------------


def _table(heads: list[str], rows: list[list[str]], caption: str = "", kind: str = "stack") -> str:
    """A table of cells that are HTML; the rows of a "stack" become blocks on a phone."""
    head_cells = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = ""
    for row in rows:
        body += f'<tr><td class="name">{row[0]}</td>'
        for name, cell in zip(heads[1:], row[1:], strict=True):
            body += f'<td data-head="{name}">{cell}</td>'
        body += "</tr>"
    note = f"<caption>{caption}</caption>" if caption else ""
    head = f"<thead><tr>{head_cells}</tr></thead>"
    return f'<table class="{kind}">{note}{head}<tbody>{body}</tbody></table>'


def _measures(audit: Findings) -> str:
    heads = ["measure", "what it asks", "mean", "95 % interval", "queries"]
    rows = [_measure_row(found, audit) for found in audit.measures.values()]
    caption = (
        "Attention per merit, but for parity (attention) and EE-L (attention squared). Queries "
        "without an answer are left out of a mean."
    )
    if audit.is_drawn:
        heads[2] = "at least, at most"
        caption += (
            " The two numbers hold the true mean between them, on average over draws; the interval "
            "covers the choice of queries, too."
        )
    return _table(heads, rows, caption)


def _range(low: float, high: float) -> str:
    """The two ends of an interval; a dash if there is none."""
    return "–" if math.isnan(high) else f"{words.small(low)} to {words.small(high)}"


def _measure_row(found: MeasureFound, audit: Findings) -> list[str]:
    question = words.QUESTIONS[found.name]
    if found.name == "signed_gap" and len(audit.groups) == 2:
        first, second = (escape(words.quoted(group.name)) for group in audit.groups)
        question = f"Attention per merit of {first} less that of {second}. 0 is even."
    interval = _range(found.low, found.high)
    if found.lower_end is not None:
        interval = _range(max(0.0, found.low), found.high)
    answered = f"{words.number(found.queries)} of {words.number(audit.counts.queries)}"
    label = f"<strong>{escape(found.label)}</strong>"
    if math.isnan(found.value):
        return [label, question, "no answer", "–", answered]
    value = words.measure_value(found)
    if audit.is_drawn and found.lower_end is None:
        value += " (right on average)"
    return [label, question, value, interval, answered]


def _worst(audit: Findings) -> str:
    shown = audit.worst[:WORST_SHOWN]
    if not shown:
        return ""
    heads = ["query", "gap", "ahead", "documents", "NDCG"]
    rows = []
    for query in shown:
        ahead = "–"
        if len(audit.groups) == 2:
            ahead = _name(audit.groups[0 if query.signed_gap > 0 else 1].name)
        rows.append(
            [
                _name(query.name),
                words.small(query.group_gap),
                ahead,
                words.number(query.documents),
                words.small(query.ndcg),
            ]
        )
    caption = (
        f"The {len(shown)} queries with the largest two-sided gap, of "
        f"{words.number(len(audit.worst))} that have one. All of them are in report.json."
    )
    return _table(heads, rows, caption, "plain")


def _utilities(audit: Findings) -> str:
    cut_off = "" if audit.k is None else f"@{audit.k}"
    gain = {"linear": "the grade", "exponential": "2^grade - 1", "binary": "1 if relevant"}
    rows = []
    for name, found in audit.utilities.items():
        label = f"{UTILITIES[name]}{cut_off}"
        interval = _range(found.low, found.high)
        rows.append([escape(label), words.small(found.value), interval])
    caption = (
        f"As trec_eval counts (gain in NDCG: {escape(gain.get(audit.gain, audit.gain))}); higher "
        "is better."
    )
    without = len(audit.counts.without_relevant)
    if without:
        caption += f" Queries without anything relevant, {words.number(without)} of them, count 0."
    return _table(["utility", "mean", "95 % interval"], rows, caption, "plain")


def _counts(audit: Findings) -> str:
    counts = audit.counts
    named = [
        ("queries without anything relevant", counts.without_relevant, ""),
        ("queries shown and not judged", counts.only_shown, "left out"),
        ("queries judged and not shown", counts.only_judged, "left out"),
        ("shown documents without a grade", counts.unjudged, "count as not relevant"),
        ("documents without a group", counts.without_group, "not compared"),
        ("empty or missing draws", counts.empty_draws, "left out"),
        ("lists with gaps in their ranks", counts.with_gaps, "the rest moved up"),
        ("lists whose scores contradict ranks", counts.contradicting, "judged by rank"),
    ]
    lines = []
    for label, names, treatment in named:
        if names:
            lines.append([label, words.number(len(names)), _examples(names, treatment)])
    plain = [
        ("judged documents in no list", counts.not_shown, "exposure 0"),
        ("of these with a grade above 0", counts.relevant_not_shown, "merit, and no attention"),
        ("grades below 0", counts.negative_grades, "count 0"),
    ]
    for label, count, treatment in plain:
        if count:
            lines.append([label, words.number(count), treatment])
    if not lines:
        return (
            "<p>Every query was shown and judged, and every document has a grade and a group.</p>"
        )
    return _table(["what", "how many", "what was done; examples"], lines, kind="stack counts")


def _examples(names: list[str], treatment: str) -> str:
    """What was done with them, and the first names."""
    shown = ", ".join(
        f"<code>{escape(words.shortened(name, 30))}</code>" for name in names[:NAMES_SHOWN]
    )
    more = ", …" if len(names) > NAMES_SHOWN else ""
    return f"{treatment}; {shown}{more}" if treatment else f"{shown}{more}"


# --- the picture of all queries -------------------------------------------------------------------


def _spread(audit: Findings) -> str:
    """A dot for each query at its signed gap, which more than two groups do not have."""
    if not audit.worst:
        return "<p>No query has two groups with merit.</p>"
    if len(audit.groups) != 2:
        return "<p>With more than two groups there is no one gap to draw.</p>"
    gaps = [query.signed_gap for query in audit.worst]
    largest = max(abs(gap) for gap in gaps) or 1.0
    dots = []
    for number, gap in enumerate(gaps):
        x = 300.0 + 285.0 * gap / largest
        y = 12.0 + 46.0 * ((number * 0.618034) % 1.0)
        dots.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
    first, second = (_name(group.name) for group in audit.groups)
    ahead = sum(gap > 0 for gap in gaps)
    behind = sum(gap < 0 for gap in gaps)
    alt = (
        f"One dot per query. {first} is ahead in {ahead} queries, {second} in {behind}; the "
        f"largest gap is {words.small(largest)}."
    )
    mean = 300.0 + 285.0 * audit.measures["signed_gap"].value / largest
    picture = (
        f'<svg viewBox="0 0 600 72" role="img" aria-label="{alt}">'
        '<line x1="0" x2="600" y1="68" y2="68" stroke="var(--line)"/>'
        '<line x1="300" x2="300" y1="2" y2="70" stroke="var(--soft)" stroke-dasharray="3 3"/>'
        f'<g fill="var(--attention)" fill-opacity=".6">{"".join(dots)}</g>'
        f'<line x1="{mean:.1f}" x2="{mean:.1f}" y1="4" y2="68" stroke="var(--merit)" '
        'stroke-width="2.5"/></svg>'
    )
    return (
        f"<figure style='margin:.4rem 0'>{picture}<figcaption class='soft'>A dot for each query: "
        f"right of the dashed line “{first}” gets more attention per merit ({ahead} queries), left "
        f"of it “{second}” ({behind}). The outermost dot is at {words.small(largest)}; the upright "
        "bar is the mean.</figcaption></figure>"
    )


def _footer(audit: Findings) -> str:
    origin = audit.origin
    lines = [
        f"Made by fairpg-lite {escape(str(origin.get('fairpg_lite', '')))}, Python "
        f"{escape(str(origin.get('python', '')))}, PyTorch {escape(str(origin.get('torch', '')))}."
    ]
    if origin.get("command"):
        command = str(origin["command"])
        cut = command if len(command) <= 400 else f"{command[:400]}…"
        lines.append(f"Command: <code>{escape(cut)}</code>")
    checksums = list(dict(origin.get("sha256", {})).items())
    shown = checksums if len(checksums) <= 4 else [checksums[0], *checksums[-2:]]
    for name, digest in shown:
        base = escape(name.replace("\\", "/").rpartition("/")[2])
        lines.append(f"SHA-256 of {base}: <code>{escape(str(digest)[:32])}…</code>")
    lines.append("Every number of this page, and of every query, is in report.json beside it.")
    return "<footer>" + "<br>".join(lines) + "</footer>"
