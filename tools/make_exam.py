"""A private exam: `make exam SEED=7` draws the numbers, and computes the answers.

Two variants, A and B, with a sheet of answers each, are written to `_build/exam`. The questions are
those of `TEMPLATES`, a function for each, which draws its numbers and works out its answer; the
same seed gives the same exam. The bank in the book is public, so it is practice; this is not.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
Draw = random.Random


class Question(NamedTuple):
    """What is asked and answered; ``facts`` are the numbers drawn and found, for whoever checks."""

    chapter: int
    text: str
    answer: str
    points: int
    facts: dict[str, Any]


def bias(position: int) -> float:
    """The position bias of a position, counted from 1.

    >>> bias(3)
    0.5
    """
    return 1 / math.log2(1 + position)


def three(value: float) -> str:
    """Three decimals, as the book writes them.

    >>> three(0.25), three(-1.5)
    ('.250', '-1.500')
    """
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def listed(values: Sequence[Any]) -> str:
    """Values in a sentence.

    >>> listed([1, 2, 3])
    '1, 2 and 3'
    """
    words = [str(value) for value in values]
    return f"{', '.join(words[:-1])} and {words[-1]}"


# --- Part I -------------------------------------------------------------------------------------


def two_groups_in_blocks(draw: Draw) -> Question:
    size = draw.randint(2, 6)
    upper = [bias(j) for j in range(1, size + 1)]
    lower = [bias(j) for j in range(size + 1, 2 * size + 1)]
    share = sum(lower) / sum(upper)
    merit = draw.choice([0.8, 0.9, 0.95])
    less = round(merit - 0.01, 2)
    disparity = sum(upper) / size / merit - sum(lower) / size / less
    return Question(
        1,
        f"{size} candidates of group 0, each of merit {merit}, stand above {size} of group 1, each "
        f"of merit {less}. What share of the upper group's mean exposure does the lower one get, "
        "and how large is $D_{group}$? What would change if the lower group's merit were .01?",
        f"The means are {three(sum(upper) / size)} and {three(sum(lower) / size)}, a share of "
        f"{share:.0%}. $D_{{group}}$ is {three(disparity)}. The list and the exposures would stay; "
        "only the ratio to merit, and so the disparity, would change: per unit of so small a merit "
        "the lower group would be ahead, and $D_{group}$ would be 0.",
        4,
        {"size": size, "merit": merit, "less": less, "share": share, "disparity": disparity},
    )


def ndcg_of_a_list(draw: Draw) -> Question:
    grades = draw.sample([0, 1, 2, 3], 3)
    while grades == sorted(grades, reverse=True):
        draw.shuffle(grades)
    gain = [2**grade - 1 for grade in grades]
    dcg = sum(g * bias(j) for j, g in enumerate(gain, 1))
    best = sum(g * bias(j) for j, g in enumerate(sorted(gain, reverse=True), 1))
    return Question(
        2,
        f"Documents of relevance {listed(grades)} are listed in this order; the gain is "
        "$2^{rel} - 1$. What is the NDCG? Can a lottery over lists have a higher one than the best "
        "list, and why?",
        f"DCG {three(dcg)}, at best {three(best)}, so NDCG is {three(dcg / best)}. No: an "
        "expectation is an average of the lists' values and cannot exceed the largest.",
        3,
        {"grades": grades, "ndcg": dcg / best},
    )


def probability_of_a_list(draw: Draw) -> Question:
    weights = draw.sample(range(1, 7), 3)  # no two alike: one list is the most probable
    most = sorted(range(3), key=lambda document: -weights[document])
    order = draw.sample([0, 1, 2], 3)
    probability = Fraction(1)
    left = sum(weights)
    for document in order:
        probability *= Fraction(weights[document], left)
        left -= weights[document]
    scores = listed([f"$\\ln {weight}$" for weight in weights])
    return Question(
        3,
        f"Three documents have the scores {scores}. How probable is the list "
        f"{listed([1 + document for document in order])}, and which list is the most probable? "
        "Give a reason that is more than one draw at a time.",
        f"{probability}. The list {listed([1 + document for document in most])}, sorted by score: "
        "of two neighbours in the other order, a swap leaves all numerators and all denominators "
        "but one, which becomes smaller; so every list that is not sorted can be made more "
        "probable.",
        4,
        {"weights": weights, "order": order, "probability": float(probability)},
    )


def exposure_of_two(draw: Draw) -> Question:
    odds = draw.randint(2, 9)
    first = Fraction(odds, odds + 1)
    high = float(first) + float(1 - first) * bias(2)
    low = 1 + bias(2) - high
    return Question(
        4,
        f"Two documents have the scores $\\ln {odds}$ and 0. What is the exposure of "
        "each, and what "
        "do the two sum to under any policy?",
        f"The first stands on top with probability {first}, so it gets {three(high)} and the other "
        f"{three(low)}; together always {three(1 + bias(2))}.",
        3,
        {"odds": odds, "high": high, "low": low},
    )


def individual_by_hand(draw: Draw) -> Question:
    merit = draw.choice([1, 2, 3])
    other = draw.randint(merit + 1, 5)
    merits = [other, merit, merit]
    exposures = [round(value, 2) for value in (bias(1), bias(2), bias(3))]
    pairs = [(i, j) for i in range(3) for j in range(3) if merits[i] >= merits[j]]
    ratio = [v / m for v, m in zip(exposures, merits, strict=True)]
    total = sum(max(0.0, ratio[i] - ratio[j]) for i, j in pairs)
    return Question(
        5,
        f"Documents of merit {listed(merits)} get the exposures {listed(exposures)}. How "
        "many pairs "
        "are in $H$, and what is $D_{ind}$? Who is over-exposed for it, and whom does it not see?",
        f"{len(pairs)} pairs, the pairs $(i,i)$ included; $D_{{ind}}$ is "
        f"{three(total)}/{len(pairs)} "
        f"= {three(total / len(pairs))}. Charged is whoever has at least the other's "
        "merit and more "
        "exposure per unit of it; a document of lower merit that is ahead is not seen.",
        5,
        {"merits": merits, "exposures": exposures, "d_ind": total / len(pairs)},
    )


def group_by_hand(draw: Draw) -> Question:
    while True:
        merits = [draw.randint(1, 5) for _ in range(3)]
        exposures = [draw.randint(20, 100) / 100 for _ in range(3)]
        mean = (merits[0] + merits[1]) / 2
        gap = (exposures[0] + exposures[1]) / 2 / mean - exposures[2] / merits[2]
        lead = mean - merits[2]
        disparity = max(0.0, gap if lead > 0 else -gap)
        if merits[0] != merits[1] and lead and (disparity > 0.02 or gap * lead < -0.02):
            break
    kind = "charged" if disparity else "not charged, since the other group is ahead"
    return Question(
        5,
        f"Group 0 has documents of merit {merits[0]} and {merits[1]} with the exposures "
        f"{exposures[0]} and {exposures[1]}, group 1 one of merit {merits[2]} with {exposures[2]}. "
        "What is $D_{group}$, and what would be left in if exposure were summed and "
        "merit averaged?",
        f"{three(disparity) if disparity else 0}: the group of higher mean merit is group "
        f"{0 if lead > 0 else 1}, and it "
        f"is {kind}. A factor $|G|$, which makes the larger group look over-exposed.",
        4,
        {"merits": merits, "exposures": exposures, "d_group": disparity},
    )


# --- Part II ------------------------------------------------------------------------------------


def advantages(draw: Draw) -> Question:
    values = [draw.randint(1, 9) for _ in range(3)]
    while len(set(values)) < 3 or sum(values) % 3:
        values = [draw.randint(1, 9) for _ in range(3)]
    mean = sum(values) // 3
    centred = [value - mean for value in values]
    alone = [Fraction(3, 2) * value for value in centred]
    return Question(
        6,
        f"Three sampled lists have the DCG {listed(values)}. What are their advantages with the "
        "mean baseline and with leave-one-out, and which of the two estimates is unbiased?",
        f"{listed(centred)}; and {listed(alone)}, which is $S/(S-1) = 3/2$ times as much. "
        "Leave-one-out is unbiased; the mean contains the list itself and shrinks the estimate.",
        4,
        {"values": values, "centred": centred, "alone": [float(x) for x in alone]},
    )


def lottery_and_list(draw: Draw) -> Question:
    merit = draw.choice([0.5, 1, 2, 4])
    of_list = (bias(1) - bias(2)) / merit / 4
    return Question(
        7,
        f"A fair coin puts either of two documents of merit {merit} on top. What is the "
        "mean of the "
        "lists' $D_{ind}$, and what is the $D_{ind}$ of the policy? Which of the two does "
        "Fair-PG-Rank lower, and what would go wrong with the other?",
        f"Each list has {three(of_list)}, so the mean is {three(of_list)}; the policy's "
        "exposures are "
        "equal, and its disparity is 0. Fair-PG-Rank lowers that of the policy; with the "
        "other every "
        "lottery between unfair lists would count as unfair, so that randomness could buy nothing.",
        5,
        {"merit": merit, "of_list": of_list},
    )


def error_of_a_gradient(draw: Draw) -> Question:
    error = draw.choice([0.4, 0.5, 0.6])
    factor = draw.choice([2, 3, 4, 5, 10])
    lists = 10 * factor**2
    return Question(
        8,
        f"From 10 sampled lists the entries of a gradient have a standard error of {error}. How "
        f"many lists does a standard error of {error / factor:g} take? Does the bias of a "
        "disparity that is computed from ten lists fall if a thousand such disparities are "
        "averaged?",
        f"{lists}: the error falls with $1/\\sqrt{{S}}$, so that one {factor} times smaller takes "
        f"{factor}$^2$ times the lists. No: the average approaches the expectation of one of them, "
        "which is too large, as the hinge is convex. Only more lists in each help.",
        3,
        {"factor": factor, "lists": lists},
    )


# --- Part III and IV ----------------------------------------------------------------------------


def hidden_feature(draw: Draw) -> Question:
    first = draw.randint(1, 2)
    second = draw.randint(1, 2)
    weight = draw.choice([0.5, 1, 2])
    seen = first + weight * second
    return Question(
        9,
        f"In the synthetic data relevance is $x_1 + x_2$, and $x_2$ is 0 for the minority. Two "
        f"documents have $x_1 = {first}$ and a true $x_2$ of {second}, one of them in the "
        "minority. "
        f"Which scores does $\\theta = (1, {weight})$ give them? For which $\\theta$ are "
        "they equal, "
        "and what does that cost?",
        f"{seen:g} for the majority's, {first} for the minority's, at equal relevance "
        f"{first + second}. Equal only for $\\theta_2 = 0$, which gives up what $x_2$ "
        "says about the "
        "majority, and with it NDCG.",
        4,
        {"first": first, "second": second, "weight": weight, "scores": [seen, first]},
    )


def policy_or_its_mode(draw: Draw) -> Question:
    odds = draw.randint(2, 9)
    grades = draw.choice([[2, 1], [3, 1], [3, 2]])
    gains = [2**grade - 1 for grade in grades]
    best = gains[0] + gains[1] * bias(2)
    worst = gains[1] + gains[0] * bias(2)
    expected = (odds + worst / best) / (odds + 1)
    return Question(
        10,
        f"Two documents have the relevance {listed(grades)}, the gain is $2^{{rel}} - 1$, and the "
        f"score of the first is $\\ln {odds}$ higher. What is the expected NDCG of the policy, and "
        "what that of its most probable list? Which of the two should be compared with RankSVM's?",
        f"The two lists have the NDCG 1 and {three(worst)}/{three(best)} = {three(worst / best)}, "
        f"so the policy has $({odds} + {three(worst / best)})/{odds + 1} = {three(expected)}$, and "
        "its most probable list 1. The sorted list: RankSVM sorts, so a lottery beside it would "
        "pay for its randomness.",
        4,
        {"odds": odds, "grades": grades, "expected": expected},
    )


def fairness_of_a_lottery(draw: Draw) -> Question:
    merits = [draw.choice([1.1, 1.2, 1.25, 1.4]), 1]
    exposure = (1 + bias(2)) / 2
    sorted_ratio = [bias(1) / merits[0], bias(2)]
    d_ind = max(0.0, sorted_ratio[0] - sorted_ratio[1]) / 3
    return Question(
        11,
        f"Two documents have merit {merits[0]} and 1. What is $D_{{ind}}$ of the sorted "
        "list and of "
        "the uniform policy? Does a value of 0 mean that both are treated in proportion to merit?",
        f"{three(d_ind)} and 0: under the uniform policy both get {three(exposure)}, which per "
        f"unit of merit is less for the better one. No: in proportion the better would get "
        f"{merits[0]} times as much, and the uniform policy gives both the same.",
        4,
        {"merits": merits, "sorted": d_ind},
    )


def undefined_queries(draw: Draw) -> Question:
    queries = 100
    without = draw.choice([30, 40, 45, 50])
    mean = draw.choice([0.04, 0.06, 0.08])
    reported = mean * (queries - without) / queries
    return Question(
        12,
        f"In {without} of {queries} test queries one group has nobody creditworthy, and the mean "
        f"$D_{{group}}$ of the others is {mean}. What does a table report that counts the "
        "undefined "
        "ones as 0? Name one reason why a result for code A92 of German Credit is no finding about "
        "women.",
        f"{three(reported)}. By the corrected code table A92 means a woman who is not "
        "single or a man "
        "who is, so the group mixes the two.",
        4,
        {"without": without, "mean": mean, "reported": reported},
    )


def interval_and_verdict(draw: Draw) -> Question:
    seeds = draw.choice([16, 25, 100])
    mean = draw.choice([0.010, 0.012, 0.015])
    deviation = draw.choice([0.02, 0.03, 0.05])
    half = 1.96 * deviation / math.sqrt(seeds)
    inside = mean - half <= 0
    word = "contains 0, so the sign is open" if inside else "leaves 0 out, so A is ahead of B"
    return Question(
        13,
        f"Over {seeds} seeds method A is ahead of B by {mean} on average, with a standard "
        "deviation "
        f"of {deviation}. Give a 95 % interval for the difference (1.96 standard errors). What may "
        "be claimed about other seeds? The best of six lambdas was chosen for A on the same test "
        "queries: what is wrong with that?",
        f"{mean:.4f} ± {half:.4f}, which {word}. The choice was made on the data "
        "that judge it, "
        "so A's figure is too good; choose on other queries.",
        5,
        {"seeds": seeds, "mean": mean, "deviation": deviation, "half": half},
    )


def several_groups(draw: Draw) -> Question:
    merits = draw.sample([1, 2, 3, 4], 3)
    ratios = [draw.randint(10, 60) / 100 for _ in range(3)]
    total = 0.0
    for i in range(3):
        for j in range(3):
            if merits[i] > merits[j]:
                total += max(0.0, ratios[i] - ratios[j])
    return Question(
        15,
        f"Three groups have the mean merits {listed(merits)} and the ratios of exposure to merit "
        f"{listed(ratios)}. What is the mean of $D_{{group}}$ over the three pairs? Who "
        "chooses the "
        "merit function, and what does another one change?",
        f"{three(total / 3)}. Whoever runs the ranking: merit is a decision; with a flatter one "
        "exposure that was in proportion is no longer fair.",
        4,
        {"merits": merits, "ratios": ratios, "disparity": total / 3},
    )


def certified_on_a_path(draw: Draw) -> Question:
    delta = draw.choice([0.010, 0.012, 0.015])
    bounds = sorted(draw.randint(3, 9) / 1000 for _ in range(draw.choice([2, 3])))
    bounds += [round(delta + 0.003, 3), round(delta - 0.001, 3)]
    certified = 0
    while bounds[certified] <= delta:
        certified += 1
    return Question(
        14,
        "Policies stand on a path from the fairest to the most useful. Their upper bounds of the "
        f"mean disparity, each at level .1, are {listed(bounds)}, and the budget is {delta}. Which "
        "are certified by fixed-sequence testing, and why is the last one not?",
        f"The first {certified}. The test stops at the first bound above the budget; whoever went "
        "on would test several policies at level .1 each, and be wrong more often than that.",
        4,
        {"bounds": bounds, "delta": delta, "certified": certified},
    )


def users_for_an_error(draw: Draw) -> Question:
    deviation = draw.choice([0.04, 0.06, 0.08])
    error = draw.choice([0.002, 0.004])
    users = round((deviation / error) ** 2)
    return Question(
        16,
        "Every user sees one list drawn from the same policy, and the gap between two groups "
        f"varies from list to list with a standard deviation of {deviation}. After how many users "
        f"is the standard error of the mean gap {error}? From few lists the disparity, which "
        "counts only one direction, is too high on average: why?",
        f"({deviation}/{error})² = {users}. Noise that makes the gap larger is counted, and noise "
        "that would make it negative is cut off at 0.",
        4,
        {"deviation": deviation, "error": error, "users": users},
    )


def weighted_clicks(draw: Draw) -> Question:
    lists = draw.choice([200, 400, 500])
    clicks = draw.choice([12, 18, 30])
    first = draw.choice([0.1, 0.2, 0.3])
    propensity = first + (1 - first) * 0.5
    relevance = clicks / (lists * propensity)
    return Question(
        17,
        f"An old policy put a document at position 1 with probability {first}, else at position 3. "
        "Readers look at position j with probability 1/log2(1 + j). The document was clicked "
        f"{clicks} times in {lists} lists. Estimate its relevance by inverse propensity scoring. "
        "What does the click rate estimate instead?",
        f"The propensity is {first} + {1 - first:.1f} · .5 = {three(propensity)}, so the estimate "
        f"is {three(relevance)}. The rate estimates relevance times propensity: the old policy's "
        "favour is built in.",
        4,
        {"lists": lists, "clicks": clicks, "first": first, "relevance": relevance},
    )


def cells_and_workers(draw: Draw) -> Question:
    cells = draw.choice([24, 30, 36])
    workers = draw.choice([5, 7, 8, 9])
    seconds = draw.choice([10, 20, 40])
    rounds = -(-cells // workers)
    more = -(-cells // (rounds - 1)) - workers
    return Question(
        18,
        f"A sweep has {cells} cells of {seconds} s each. How long does it take on "
        f"{workers} workers, "
        "not counting their start, and how many more workers make it faster?",
        f"{rounds} rounds, {rounds * seconds} s. With {rounds - 1} rounds it takes "
        f"{more} more; any fewer change nothing.",
        3,
        {
            "cells": cells,
            "workers": workers,
            "each": seconds,
            "seconds": rounds * seconds,
            "more": more,
        },
    )


TEMPLATES: tuple[Callable[[Draw], Question], ...] = (
    two_groups_in_blocks,
    ndcg_of_a_list,
    probability_of_a_list,
    exposure_of_two,
    individual_by_hand,
    group_by_hand,
    advantages,
    lottery_and_list,
    error_of_a_gradient,
    hidden_feature,
    policy_or_its_mode,
    fairness_of_a_lottery,
    undefined_queries,
    interval_and_verdict,
    certified_on_a_path,
    several_groups,
    users_for_an_error,
    weighted_clicks,
    cells_and_workers,
)


def exam(seed: int, variant: str, chapters: Sequence[int] = ()) -> list[Question]:
    """The questions of a variant, in the order of the chapters; all chapters by default."""
    made = []
    for template in TEMPLATES:
        question = template(Draw(f"{seed}-{variant}-{template.__name__}"))
        if not chapters or question.chapter in chapters:
            made.append(question)
    return made


def as_text(questions: Sequence[Question], title: str, answers: bool) -> str:
    """An exam, or its sheet of answers, as Markdown."""
    points = sum(question.points for question in questions)
    lines = [f"# {title}", "", f"{points} points, {3 * points} minutes. Pen, paper, a calculator."]
    lines += ["", "The position bias of position j is 1/log2(1 + j)."]
    for number, question in enumerate(questions, 1):
        lines += ["", f"**{number}.** ({question.points} points) {question.text}"]
        if answers:
            lines += ["", f"*Chapter {question.chapter}.* {question.answer}"]
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.make_exam", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seed", required=True, help="any word or number; keep it to yourself")
    parser.add_argument("--chapters", type=int, nargs="*", default=[], help="only these")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "exam", help="a folder")
    options = parser.parse_args(arguments)
    known = {question.chapter for question in exam(0, "A")}
    unknown = sorted(set(options.chapters) - known)
    if unknown:
        parser.error(f"there is no question on chapter {unknown[0]}; there are on {sorted(known)}.")
    options.out.mkdir(parents=True, exist_ok=True)
    for variant in ("A", "B"):
        questions = exam(options.seed, variant, options.chapters)
        for answers in (False, True):
            name = f"{'answers' if answers else 'exam'}_{variant}.md"
            title = f"{'Answers' if answers else 'Exam'}, variant {variant}"
            (options.out / name).write_text(as_text(questions, title, answers), encoding="utf-8")
    print(f"Made the variants A and B, and their answers, in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
