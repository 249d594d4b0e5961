"""Checks that synthetic data and German Credit share: a trade-off, rivals at equal disparity."""

from typing import NamedTuple

from experiments.catalogue import (
    DELTR,
    DELTR_CODE,
    FAIR_PG_RANK,
    POST_PROCESSING,
    POST_PROCESSING_WITH_FACTOR,
    UNIFORM,
    Method,
    Variant,
)
from experiments.claims.curves import Curve, lead
from experiments.claims.quantities import Point, lowest_remaining, remaining
from experiments.claims.verdicts import Check, Checks
from experiments.protocol import SHARES


class Rival(NamedTuple):
    """A method as it is compared with Fair-PG-Rank."""

    method: Method
    words: str
    """What the board calls it."""


POST = Rival(POST_PROCESSING, "post-processing")
POST_CODE = Rival(POST_PROCESSING_WITH_FACTOR, "post-processing (with the factor)")
HEURISTIC = Rival(DELTR, "DELTR")
HEURISTIC_CODE = Rival(DELTR_CODE, "DELTR (code)")


def trades_off(variant: Variant) -> Checks:
    """Half of the disparity, for less NDCG than PG-Rank loses on the same terms."""
    experiment = FAIR_PG_RANK.on(variant)
    left = remaining(experiment, "d_group", 25.0)
    checks = [Check("D_group at λ = 25, share of λ = 0", left, high=0.5, digits=2)]
    fair = Curve(experiment, above=0.0)
    unfair = Curve(experiment, upto=0.0)
    for part, fraction in SHARES.items():
        words = f"NDCG minus that of PG-Rank, at {fraction} of PG-Rank's D_group"
        checks.append(Check(words, lead(fair, unfair, UNIFORM.on(variant), part), low=0.0))
    return tuple(checks)


def over_one_form(variant: Variant, form: str) -> Checks:
    """The lead over PG-Rank if PG-Rank may be used in one form only."""
    experiment = FAIR_PG_RANK.on(variant)
    fair = Curve(experiment, above=0.0)
    unfair = Curve(experiment, upto=0.0, forms=(form,))
    checks = []
    for part, fraction in SHARES.items():
        words = f"NDCG minus that of PG-Rank, at {fraction} of PG-Rank's D_group"
        checks.append(Check(words, lead(fair, unfair, UNIFORM.on(variant), part), low=0.0))
    return tuple(checks)


def better(variant: Variant, *rivals: Rival) -> Checks:
    """NDCG at equal disparity, every method on the same terms."""
    checks = []
    mine = Curve(FAIR_PG_RANK.on(variant))
    for rival in rivals:
        theirs = Curve(rival.method.on(variant))
        for part, fraction in SHARES.items():
            words = f"NDCG minus that of {rival.words}, at {fraction} of PG-Rank's D_group"
            checks.append(Check(words, lead(mine, theirs, UNIFORM.on(variant), part), low=0.0))
    return tuple(checks)


def fails(variant: Variant, method: Method) -> Checks:
    """Two readings of failing: no λ halves the disparity, and λ saves nothing."""
    experiment = method.on(variant)
    saved = lead(
        Curve(experiment, above=0.0),
        Curve(experiment, upto=0.0),
        UNIFORM.on(variant),
        reference=Point(experiment, "sorted_d_group", 0.0),
    )
    return (
        Check(
            "lowest D_group at a λ above 0, share of λ = 0",
            lowest_remaining(experiment, "d_group"),
            low=0.5,
            digits=2,
        ),
        Check(
            "NDCG at half its sorted lists' D_group, λ above 0 minus λ = 0",
            saved,
            high=0.0,
        ),
    )
