"""What an audit found, in sentences for people who are not statisticians.

Each function returns plain text; names of groups and queries are the user's and are escaped by the
page.
"""

import math

from fairpg_lite.auditing.findings import Findings, Found, GroupFound, MeasureFound, PairFound

#: Characters of a name that are shown.
LONGEST_NAME = 40

#: What each measure asks, for a table; {first} and {second} are groups.
QUESTIONS = {
    "signed_gap": "Who gets more attention for the same merit? Zero is even.",
    "d_group": "By how much is the group with more merit paid better for its merit? 0 is fair.",
    "group_gap": "The same without a direction: whichever group is paid better. 0 is even.",
    "parity": "How far apart is the attention to a document, whatever it merits? 0 is equal.",
    "d_ind": "The same for single documents, all pairs of them. 0 is fair.",
    "ee_l": "How far from a ranker that sorts by merit and draws lots between equals? 0 is there.",
}


def summary(audit: Findings) -> list[str]:
    """The first sentences of the report."""
    return [*about_groups(audit), *about_disparity(audit), about_data(audit)]


def about_data(audit: Findings) -> str:
    """What was looked at."""
    counts = audit.counts
    what = f"{number(counts.queries)} queries with {number(counts.documents)} documents"
    least, most = audit.lists
    if most == 0:
        lists = "The policy itself was audited, so exposure is exact."
    elif most == 1:
        lists = "Each query has one list, which is taken for what everybody is shown."
    elif least == most:
        lists = f"Each query has {number(most)} lists, drawn from a ranker that varies them."
    else:
        lists = f"A query has {number(least)} to {number(most)} lists, drawn from a ranker."
    answered = audit.measures["d_group"].queries
    compared = "Groups can be compared by merit in all of them."
    if answered < counts.queries:
        compared = (
            f"Groups can be compared by merit in {number(answered)} of the queries: in the others, "
            "only one group has a document with merit, or none has."
        )
    return f"{what} were audited. {lists} {compared}"


def about_groups(audit: Findings) -> list[str]:
    """Who gets less than others, and than is due."""
    judged = [group for group in audit.groups if not math.isnan(group.to_merit.value)]
    if len(judged) < 2:
        return ["There is only one group with merit, so there is nothing to compare."]
    worst = min(judged, key=lambda group: group.to_merit.value)
    sentences = [_about_worst(audit, worst)]
    if len(judged) > 2:
        others = [group for group in judged if group is not worst]
        parts = [f"{quoted(group.name)} {compared(group.to_merit.value)}" for group in others]
        sentences.append(f"Beside what their merit would give them get: {'; '.join(parts)}.")
    return sentences


def _about_worst(audit: Findings, worst: GroupFound) -> str:
    """The sentence on the group that gets the least for its merit."""
    by_merit = f"{compared(worst.to_merit.value)} than its merit would give it"
    if abs(worst.to_merit.value) < 0.005:
        by_merit = "what its merit would give it"
    by_merit += f" ({interval(worst.to_merit)})"
    pair = _pair_with(audit.pairs, worst.name)
    if pair is None or len(audit.groups) > 2:
        return f"A document of group {quoted(worst.name)} gets {by_merit}."
    other, relative = pair
    by_other = f"{compared(relative.value)} attention than one of group {quoted(other)}"
    if abs(relative.value) < 0.005:
        by_other = f"as much attention as one of group {quoted(other)}"
    return (
        f"A document of group {quoted(worst.name)} gets {by_other} ({interval(relative)}), and "
        f"{by_merit}."
    )


def _pair_with(pairs: list[PairFound], name: str) -> tuple[str, Found] | None:
    """The group that this one is compared with, and how much less or more it gets."""
    for pair in pairs:
        if pair.first == name:
            return pair.second, pair.relative
        if pair.second == name:
            return pair.first, _inverted(pair.relative)
    return None


def _inverted(relative: Found) -> Found:
    """A relative difference seen from the other side: x less of b is 1/(1-x) - 1 more of a."""
    value, low, high = (
        1.0 / (1.0 + x) - 1.0 for x in (relative.value, relative.high, relative.low)
    )
    return Found(value, low, high)


def about_disparity(audit: Findings) -> list[str]:
    """The paper's disparity between groups, with both ends if lists were drawn."""
    found = audit.measures["d_group"]
    if found.queries == 0:
        return ["No query has two groups with merit, so D_group has no answer."]
    if found.lower_end is None:
        return [
            f"The disparity D_group is {measure_value(found)} on average over queries "
            f"({small_interval(found.low, found.high)}; 0 is fair)."
        ]
    return [
        f"The disparity D_group is at least {small(max(0.0, found.lower_end))} and at most "
        f"{small(found.value)}, as far as these lists can tell; allowing for the choice of "
        f"queries, at least {small(max(0.0, found.low))} and at most {small(found.high)} (95 %). "
        f"{about_narrow(found, audit)}"
    ]


def about_narrow(found: MeasureFound, audit: Findings) -> str:
    """How many lists would bring the two ends together."""
    if found.lists_for_narrow is None or found.lower_end is None:
        return ""
    if found.lists_for_narrow <= audit.lists[1]:
        return "The two ends are within a tenth of each other."
    return (
        f"About {number(rounded_up(found.lists_for_narrow))} lists per query would bring the two "
        "ends within a tenth of each other."
    )


def measure_value(found: MeasureFound) -> str:
    """The value, or both ends."""
    if math.isnan(found.value):
        return "no answer"
    if found.lower_end is None:
        return small(found.value)
    return f"{small(max(0.0, found.lower_end))} to {small(found.value)}"


def assumptions(audit: Findings) -> list[str]:
    """What the numbers rest on."""
    return [
        about_attention(audit),
        f"Merit of a document is {_merit(audit.merit)}. Whether the grades are themselves fair is "
        "not asked.",
        "A list is judged as it was shown: what stands below its end is not seen. A judged "
        "document that is in no list gets no attention, and still merits it.",
        "A shown document without a grade counts as not relevant. A document without a group takes "
        "part in no comparison between groups.",
        _about_lists(audit),
        "95 % intervals say how much the numbers would move if other queries of the same kind had "
        "been asked (bootstrap over queries, 2,000 draws).",
    ]


def about_attention(audit: Findings) -> str:
    """The position bias, as numbers."""
    bias = audit.position_bias
    seen = [position for position, share in enumerate(bias, 1) if share > 0]
    last = seen[-1] if seen else 1
    shown = [place for place in (1, 2, 3, 5, 10) if place <= last]
    parts = [f"{small(bias[place - 1])} at position {place}" for place in shown]
    text = f"Attention to a position: {', '.join(parts)}"
    if last < len(bias):
        text += f"; nobody looks below position {last}"
    return f"{text}. That is an assumption, not a measurement."


def _merit(name: str) -> str:
    return {
        "identity": "its grade",
        "square": "the square of its grade",
        "sqrt": "the square root of its grade",
    }.get(name, f"a function of its grade ({name})")


def _about_lists(audit: Findings) -> str:
    if audit.lists[1] == 0:
        return "The policies that were given are those that are served."
    if audit.lists[1] == 1:
        return (
            "Everybody is shown the one list. If the ranker varies its lists, one is not enough: "
            "audit several draws."
        )
    return (
        "The lists of a query are independent draws of one ranker that did not change meanwhile. A "
        "disparity of such a sample is too high on average; the lower number takes directions from "
        "one half of the lists and sizes from the other, and is too low on average."
    )


NOT_TESTED = (
    "Whether the files are what people were shown, and whether the sample of queries is typical.",
    "Whether people look at positions as assumed, and whether the grades of the groups can be "
    "compared.",
    "Why a group gets more or less: a gap is no proof of intent, and no gap is no proof of its "
    "absence.",
    "Groups other than these, their combinations, and differences within a group.",
    "What one person saw: fairness of exposure is a statement about many.",
    "Clicks, sales, or anything else that follows from attention.",
)


# --- numbers --------------------------------------------------------------------------------------


def compared(relative: float) -> str:
    """A relative difference in words: "46 % less"."""
    if math.isnan(relative):
        return "an unknown share"
    per_cent = f"{abs(relative) * 100:.0f}"
    if per_cent == "0":
        return "no more and no less"
    return f"{per_cent} % {'less' if relative < 0 else 'more'}"


def interval(found: Found) -> str:
    """A 95 % interval of a relative difference, and whether it leaves 0 out."""
    if math.isnan(found.low):
        return "no interval from a single query"
    text = f"95 % interval: {compared(found.low)} to {compared(found.high)}"
    return text + ("; may be chance" if found.low <= 0.0 <= found.high else "")


def small_interval(low: float, high: float) -> str:
    """A 95 % interval of a plain number."""
    if math.isnan(low):
        return "no interval from a single query"
    return f"95 % interval {small(low)} to {small(high)}"


def small(value: float) -> str:
    """A number with three digits that count."""
    if math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 5)}f}"


def number(count: int) -> str:
    """A whole number with a comma after thousands."""
    return f"{count:,}"


def rounded_up(count: int) -> int:
    """A count with one digit that counts: an estimate should look like one."""
    power = int(10 ** max(0, len(str(count)) - 1))
    return -(-count // power) * power


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    """A name of the user's, cut where it is too long for a page; report.json has all of it."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def quoted(name: str) -> str:
    """A name of the user's, in quotation marks."""
    return f"“{shortened(name)}”"
