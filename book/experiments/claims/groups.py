"""What decides the claims about group fairness: synthetic data (4.2) and German Credit (4.3).

On synthetic data (chapter 9) the text decides: relevance clipped at 5, D_group and the programme by
(4), DELTR's difference two-sided. DELTR is judged by its sorted lists, as the authors did; the text
does not say. On German Credit (chapter 12) it can be read in two ways (which attributes, what "4:1"
weighs), so the authors' run decides; every seed draws its own queries, so intervals cover their
choice. Other readings stand beside.
"""

import math
from collections.abc import Callable
from typing import Any

from experiments.claims.measures import (
    Curve,
    Figure,
    Point,
    ahead,
    angle,
    change,
    extreme,
    lead,
    length,
    level,
    minus,
    opposite,
    remaining,
    run_spread,
)
from experiments.claims.verdicts import Beside, Check, Checks

#: Disparities at which methods are compared, as parts of PG-Rank's own.
PARTS = {0.75: "¾", 0.5: "½", 0.25: "¼"}
#: Rivals by their words: the stored name, and "sorted_" for the most probable ranking.
POST = {"post-processing": ("post_processing-definition", "")}
FACTOR = {"post-processing (with the factor)": ("post_processing-authors", "")}


# Checks for both data sets


def fair(problem: str) -> str:
    return f"fair_pg_rank-sample-{problem}"


def deltr(gap: str = "two_sided", prefix: str = "sorted_") -> dict[str, tuple[str, str]]:
    words = "DELTR, sorted" if prefix else "DELTR, policy"
    return {words: (f"deltr-{gap}", prefix)}


def trades_off(problem: str) -> Checks:
    """Half of the disparity, for less NDCG than what needs no fair learning."""
    method, uniform = fair(problem), f"uniform-{problem}"
    lists, heat = (
        lead(Curve(method, above=0.0), Curve(method, upto=0.0, heated=heated), uniform)
        for heated in (False, True)
    )
    left = remaining(method, "d_group", 25.0)
    words = "NDCG at half the disparity, minus PG-Rank"
    return (
        Check("D_group at λ = 25, share of λ = 0", left, high=0.5, digits=2),
        Check(f"{words} mixed with random lists", lists, low=0.0),
        Check(f"{words} at a temperature", heat, low=0.0),
    )


def better(problem: str, rivals: dict[str, tuple[str, str]], lowest: bool = False) -> Checks:
    """NDCG at equal disparity. Every method may choose its λ, and may draw lots."""
    found = []
    for words, (key, prefix) in rivals.items():
        ours, theirs = Curve(fair(problem)), Curve(f"{key}-{problem}", prefix)
        for part in [None] if lowest else PARTS:
            at = f"{PARTS[part]} of PG-Rank's" if part else "its own lowest"
            measure = lead(ours, theirs, f"uniform-{problem}", part)
            found.append(Check(f"NDCG minus that of {words}, at {at} D_group", measure, low=0.0))
    return tuple(found)


def by_direction(problem: str) -> Check:
    left = remaining(fair(problem), "sorted_d_group", 25.0)
    words = "share of D_group left by the direction alone (sorted lists)"
    return Check(words, left, high=0.5, digits=2)


def other_side(problem: str) -> Checks:
    """How much of the side that D_group does not count maximising utility leaves."""
    random = Point(f"uniform-{problem}", opposite)
    ours = minus(Point(fair(problem), opposite), random, ratio=True)
    words = "lead of the group with less merit at λ = 0, share of random lists'"
    return (Check(words, ours, high=0.1, digits=2),)


def readings(checks: Callable[..., Checks]) -> dict[str, Checks]:
    """The three other ways to judge DELTR: its own penalty, the authors' side, as a policy."""
    return {
        "DELTR's own one-sided penalty": checks("one_sided"),
        "the authors' reversed side": checks("reversed"),
        "DELTR as a policy, not sorted": checks("two_sided", ""),
    }


# Checks for synthetic data


def angle_of(problem: str, words: str, low: float, high: float, at: float = 0.0) -> Check:
    found = level(Point(fair(problem), angle, at))
    return Check(f"angle {words}", found, low, high, digits=1)


def falls(words: str, problem: str, figure: Figure, digits: int) -> Checks:
    """A number must fall from λ = 0 to 5, and from there to 25."""
    spans = {"0 to 5": (0.0, 5.0), "5 to 25": (5.0, 25.0)}
    found = {name: change(fair(problem), figure, *span) for name, span in spans.items()}
    words = f"change in {words}, λ from"
    return tuple(Check(f"{words} {at}", x, high=0.0, digits=digits) for at, x in found.items())


def length_matters(problem: str) -> Checks:
    method, at = fair(problem), 25.0
    useful, unfair = (
        minus(Point(method, name, at), Point(method, f"sorted_{name}", at))
        for name in ("ndcg", "d_group")
    )
    found = {
        "NDCG at λ = 25, θ as learned minus the same direction, infinitely long": useful,
        "D_group, the same comparison": unfair,
        "D_group of the infinitely long θ, direction of λ = 25 minus that of 0": change(
            method, "sorted_d_group", 0.0, at
        ),
    }
    return tuple(Check(words, measure, high=0.0) for words, measure in found.items())


def less_fair(problem: str, scaling: str = "definition") -> Checks:
    found = change(f"post_processing-{scaling}-{problem}", "d_group")
    return (Check("change in D_group, λ from 0 to the largest", found, low=0.0),)


def little_effect(problem: str, gap: str = "two_sided", prefix: str = "sorted_") -> Checks:
    words = "sorted lists" if prefix else "policy"
    found = remaining(f"deltr-{gap}-{problem}", f"{prefix}d_group")
    return (Check(f"D_group at λ = 10⁶, share of λ = 0, {words}", found, 0.75, 1.25, 2),)


def checks_of(problem: str) -> dict[str, Checks]:
    """The checks of every claim, for one clip."""
    post = f"post_processing-definition-{problem}"
    believed, true = remaining(post, "d_group_estimated"), remaining(post, "d_group")
    turn = change(fair(problem), angle, 0.0, 25.0)
    used = ahead(f"fixed-0.25-{problem}", f"fixed-0-{problem}", "d_group")
    left, x_2 = (
        "D_group on the estimates, largest λ, share of λ = 0",
        "a quarter of x₂ in the score",
    )
    never = -math.inf
    return {
        "S1": (angle_of(problem, "of θ at λ = 0, in degrees, where 45 is θ₁ = θ₂", 40.0, 50.0),),
        "S2": falls("the length of θ", problem, length, 2),
        "S3": (
            *falls("the angle of θ, degrees", problem, angle, 1),
            angle_of(problem, "at λ = 25: θ₁ at least twice θ₂", never, 26.565, 25.0),
        ),
        "S4": length_matters(problem),
        "S5": falls("D_group", problem, "d_group", 4),
        "S6": trades_off(problem),
        "S7": (
            Check("change in the angle of θ, degrees", turn, high=0.0, digits=1),
            angle_of(problem, "at λ = 25: θ₂ at most a tenth of θ₁", never, 5.71, 25.0),
            by_direction(problem),
        ),
        "S8": (
            Check(left, believed, high=0.1, digits=2),
            Check("true D_group, the same", true, low=0.5, digits=2),
        ),
        "S9": less_fair(problem),
        "S10": little_effect(problem),
        "S11": better(problem, deltr()),
        "S12": better(problem, POST),
        "S13": (Check(f"D_group with {x_2}, minus without x₂", used, low=0.0),),
        "S14": other_side(problem),
    }


# Checks for German Credit

REDRAWN, FIXED, TEXT = "sex-redrawn", "sex", "sex-text-redrawn"


def converges(problem: str) -> Checks:
    found = {name: run_spread(fair(problem), name.lower()) for name in ("NDCG", "D_group")}
    words = "over runs at the worst λ, share of what λ moves"
    return tuple(Check(f"spread of {n} {words}", x, high=0.1, digits=2) for n, x in found.items())


def fails(method: str, prefix: str = "") -> Checks:
    """No λ halves the disparity."""
    found = remaining(f"{method}-{REDRAWN}", f"{prefix}d_group", "lowest")
    words = "lowest D_group at a λ above 0, share of λ = 0"
    return (Check(words + (", sorted lists" if prefix else ""), found, low=0.5, digits=2),)


def over_lottery(method: str, prefix: str = "") -> Checks:
    """What λ saves over the method's own lottery; nothing, if the method fails."""
    name = f"{method}-{REDRAWN}"
    mine, own = Curve(name, prefix, above=0.0), Curve(name, prefix, upto=0.0)
    found = lead(mine, own, f"uniform-{REDRAWN}")
    return (Check("NDCG at half its own disparity, minus its λ = 0 in a lottery", found, high=0.0),)


def believed_gone(scaling: str = "definition", at: float = 0.2, pick: Any = min) -> Checks:
    found = extreme(Point(f"post_processing-{scaling}-{REDRAWN}", "d_group_estimated", at), pick)
    words = "lowest" if pick is min else "highest"
    return (Check(f"D_group on the estimates, {words} of all draws", found, high=1e-6, digits=5),)


def not_gone(scaling: str, words: str) -> Check:
    found = level(Point(f"post_processing-{scaling}-{REDRAWN}", "d_group", "last"))
    return Check(f"true D_group at the largest λ ({words})", found, low=0.0)


WITH_FACTOR = "with the factor |G| of appendix and code"
#: Other readings, each beside its claim.
OTHERS: dict[str, dict[str, Checks]] = {
    "S1": {
        "loosely: nearer to the diagonal than to the axis": (
            angle_of("clip5", "of θ at λ = 0: nearer to 45 than to 0", 22.5, 67.5),
        )
    },
    "S9": {WITH_FACTOR: less_fair("clip5", "authors")},
    "S10": readings(lambda *gap: little_effect("clip5", *gap)),
    "S11": readings(lambda *gap: better("clip5", deltr(*gap))),
    "S12": {
        WITH_FACTOR: better("clip5", FACTOR),
        "where post-processing is at its fairest": better("clip5", POST | FACTOR, lowest=True),
    },
}
SYNTHETIC: dict[str, tuple[Checks, tuple[Beside, ...]]] = {}
for name, at_four in checks_of("clip4").items():
    others = OTHERS.get(name, {}) | {"relevance clipped at 4, as the authors ran it": at_four}
    beside = tuple(Beside(label, "synthetic", of) for label, of in others.items())
    SYNTHETIC[name] = checks_of("clip5")[name], beside
ELSEWHERE = Beside("on German Credit, queries redrawn", "german", other_side("sex-redrawn"))
SYNTHETIC["S14"] = (SYNTHETIC["S14"][0], (*SYNTHETIC["S14"][1], ELSEWHERE))

_SAME = "the same queries for every run, as in the paper"
_GERMAN: dict[str, tuple[Checks, dict[str, Checks]]] = {
    "G1": (
        trades_off(REDRAWN),
        {
            _SAME: trades_off(FIXED),
            "20 attributes, eight people to two, queries redrawn": trades_off(TEXT),
        },
    ),
    "G2": (converges(FIXED), {"queries redrawn: what the band leaves out": converges(REDRAWN)}),
    "G3": (
        fails("post_processing-definition"),
        {
            WITH_FACTOR: fails("post_processing-authors"),
            "in a lottery: failing would be 0 or less": over_lottery("post_processing-definition"),
        },
    ),
    "G4": (
        fails("deltr-two_sided", "sorted_"),
        {
            "DELTR's own one-sided penalty": fails("deltr-one_sided", "sorted_"),
            "the authors' reversed side": fails("deltr-reversed", "sorted_"),
            "as a policy: failing is 0 or less": over_lottery("deltr-two_sided"),
        },
    ),
    "G5": (
        better(REDRAWN, POST | deltr()),
        readings(lambda *gap: better(REDRAWN, deltr(*gap)))
        | {"where the baseline is at its fairest": better(REDRAWN, POST | deltr(), lowest=True)},
    ),
    "G6": (
        believed_gone(),
        {
            "in every draw": believed_gone(pick=max),
            "in every draw, at λ = 10 instead": believed_gone(at=10.0, pick=max),
            "with the factor |G| at λ = .2": believed_gone("authors"),
        },
    ),
    "G7": ((not_gone("definition", "definition"), not_gone("authors", "with the factor")), {}),
    "G8": ((by_direction(REDRAWN),), {_SAME: (by_direction(FIXED),)}),
}
GERMAN = {
    name: (checks, tuple(Beside(label, "german", of) for label, of in beside.items()))
    for name, (checks, beside) in _GERMAN.items()
}
