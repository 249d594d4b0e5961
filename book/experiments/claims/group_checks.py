"""Checks that synthetic data and German Credit share: a trade-off, rivals at equal disparity."""

from collections.abc import Iterable
from typing import NamedTuple

from experiments.catalogue import (
    DELTR_ONE_SIDED,
    DELTR_REVERSED,
    DELTR_TWO_SIDED,
    FAIR_PG_RANK,
    POST_PROCESSING,
    POST_PROCESSING_WITH_FACTOR,
    UNIFORM,
    Method,
    Variant,
)
from experiments.claims.curves import Curve, lead
from experiments.claims.quantities import Point, opposite, remaining, share
from experiments.claims.verdicts import Check, Checks, Quantity

#: Disparities at which methods are compared, as parts of PG-Rank's own.
PARTS = {0.75: "¾", 0.5: "½", 0.25: "¼"}


class Rival(NamedTuple):
    """A method as it is compared with Fair-PG-Rank."""

    method: Method
    words: str
    """What the board calls it."""
    prefix: str = ""
    """"sorted_" judges its most probable ranking."""


POST = Rival(POST_PROCESSING, "post-processing")
POST_WITH_FACTOR = Rival(POST_PROCESSING_WITH_FACTOR, "post-processing (with the factor)")
#: DELTR is judged by its sorted lists, as the authors did; the text does not say.
DELTR = Rival(DELTR_TWO_SIDED, "DELTR, sorted", "sorted_")
#: Three other ways to judge it, by the labels that stand beside a verdict.
DELTR_READINGS = {
    "DELTR's own one-sided penalty": Rival(DELTR_ONE_SIDED, "DELTR, sorted", "sorted_"),
    "the authors' reversed side": Rival(DELTR_REVERSED, "DELTR, sorted", "sorted_"),
    "DELTR as a policy, not sorted": Rival(DELTR_TWO_SIDED, "DELTR, policy"),
}
WITH_FACTOR = "with the factor |G| of appendix and code"


def trades_off(variant: Variant) -> Checks:
    """Half of the disparity, for less NDCG than what needs no fair learning."""
    experiment = FAIR_PG_RANK.on(variant)
    fair = Curve(experiment, above=0.0)
    mixed = Curve(experiment, upto=0.0)
    heated = Curve(experiment, upto=0.0, heated=True)
    uniform = UNIFORM.on(variant)
    return (
        Check(
            "D_group at λ = 25, share of λ = 0",
            remaining(experiment, "d_group", 25.0),
            high=0.5,
            digits=2,
        ),
        Check(
            "NDCG at half the disparity, minus PG-Rank mixed with random lists",
            lead(fair, mixed, uniform),
            low=0.0,
        ),
        Check(
            "NDCG at half the disparity, minus PG-Rank at a temperature",
            lead(fair, heated, uniform),
            low=0.0,
        ),
    )


def better(variant: Variant, rivals: Iterable[Rival]) -> Checks:
    """NDCG at equal disparity. Every method may choose its λ, and may draw lots."""
    checks = []
    for rival in rivals:
        for part, fraction in PARTS.items():
            words = f"NDCG minus that of {rival.words}, at {fraction} of PG-Rank's D_group"
            checks.append(Check(words, _lead_over(rival, variant, part), low=0.0))
    return tuple(checks)


def better_at_their_fairest(variant: Variant, rivals: Iterable[Rival]) -> Checks:
    """The same at the lowest disparity that a rival reaches without random lists."""
    checks = []
    for rival in rivals:
        words = f"NDCG minus that of {rival.words}, at its own lowest D_group"
        checks.append(Check(words, _lead_over(rival, variant, None), low=0.0))
    return tuple(checks)


def _lead_over(rival: Rival, variant: Variant, part: float | None) -> Quantity:
    return lead(
        Curve(FAIR_PG_RANK.on(variant)),
        Curve(rival.method.on(variant), rival.prefix),
        UNIFORM.on(variant),
        part,
    )


def by_direction(variant: Variant) -> Check:
    """What the direction of theta alone does for the disparity."""
    return Check(
        "share of D_group left by the direction alone (sorted lists)",
        remaining(FAIR_PG_RANK.on(variant), "sorted_d_group", 25.0),
        high=0.5,
        digits=2,
    )


def other_side(variant: Variant) -> Checks:
    """How much of the side that D_group does not count maximising utility leaves."""
    learned = Point(FAIR_PG_RANK.on(variant), opposite)
    random_lists = Point(UNIFORM.on(variant), opposite)
    return (
        Check(
            "lead of the group with less merit at λ = 0, share of random lists'",
            share(learned, random_lists),
            high=0.1,
            digits=2,
        ),
    )
