"""What decides the claims about synthetic data (Section 4.2; chapter 9).

The text decides: relevance clipped at 5, D_group and the programme by (4), DELTR's difference
two-sided. Other readings stand beside.
"""

import math

from experiments.catalogue import (
    CLIPPED_AT_4,
    CLIPPED_AT_5,
    FAIR_PG_RANK,
    POST_PROCESSING,
    POST_PROCESSING_WITH_FACTOR,
    SEX_REDRAWN,
    X1_ALONE,
    X1_AND_SOME_X2,
    Method,
    Variant,
)
from experiments.claims.group_checks import (
    DELTR,
    DELTR_READINGS,
    POST,
    POST_WITH_FACTOR,
    WITH_FACTOR,
    Rival,
    better,
    better_at_their_fairest,
    by_direction,
    other_side,
    trades_off,
)
from experiments.claims.quantities import (
    Figure,
    Point,
    ahead,
    angle,
    change,
    difference,
    length,
    level,
    remaining,
)
from experiments.claims.verdicts import Beside, Check, Checks

#: The authors' own numbers for Figure 1, from the outputs stored in their notebook (chapter 9), of
#: Fair-PG-Rank: theta1, theta2, NDCG, D_group by lambda. One unseeded run; D_group is sampled with
#: 20 rankings. Shown beside ours and never mixed with them.
PUBLISHED = {
    0.0: (4.667, 3.459, 0.9739, 0.01315),
    1.0: (4.147, 2.500, 0.9706, 0.01208),
    3.0: (3.741, 1.731, 0.9651, 0.01020),
    5.0: (3.135, 0.940, 0.9553, 0.00820),
    8.0: (3.589, 1.027, 0.9564, 0.00820),
    10.0: (1.454, 0.336, 0.9171, 0.00495),
    25.0: (0.816, 0.204, 0.8858, 0.00262),
}


def checks_of(variant: Variant) -> dict[str, Checks]:
    """The checks of every claim, by its id, for one clip."""
    return {
        "S1": (
            angle_at(0.0, variant, "of θ at λ = 0, in degrees, where 45 is θ₁ = θ₂", 40.0, 50.0),
        ),
        "S2": falls(variant, length, "the length of θ", 2),
        "S3": (
            *falls(variant, angle, "the angle of θ, degrees", 1),
            angle_at(25.0, variant, "at λ = 25: θ₁ at least twice θ₂", high=26.565),
        ),
        "S4": length_matters(variant),
        "S5": falls(variant, "d_group", "D_group", 4),
        "S6": trades_off(variant),
        "S7": (
            Check(
                "change in the angle of θ, degrees",
                change(FAIR_PG_RANK.on(variant), angle, 0.0, 25.0),
                high=0.0,
                digits=1,
            ),
            angle_at(25.0, variant, "at λ = 25: θ₂ at most a tenth of θ₁", high=5.71),
            by_direction(variant),
        ),
        "S8": misled(variant),
        "S9": less_fair(variant, POST_PROCESSING),
        "S10": little_effect(variant, DELTR),
        "S11": better(variant, [DELTR]),
        "S12": better(variant, [POST]),
        "S13": (
            Check(
                "D_group with a quarter of x₂ in the score, minus without x₂",
                ahead(X1_AND_SOME_X2.on(variant), X1_ALONE.on(variant), "d_group"),
                low=0.0,
            ),
        ),
        "S14": other_side(variant),
    }


def angle_at(
    lam: float, variant: Variant, words: str, low: float = -math.inf, high: float = math.inf
) -> Check:
    """The angle of Fair-PG-Rank's theta at one lambda."""
    quantity = level(Point(FAIR_PG_RANK.on(variant), angle, lam))
    return Check(f"angle {words}", quantity, low=low, high=high, digits=1)


def falls(variant: Variant, figure: Figure, words: str, digits: int) -> Checks:
    """A number must fall from λ = 0 to 5, and from there to 25."""
    experiment = FAIR_PG_RANK.on(variant)
    return (
        Check(
            f"change in {words}, λ from 0 to 5",
            change(experiment, figure, 0.0, 5.0),
            high=0.0,
            digits=digits,
        ),
        Check(
            f"change in {words}, λ from 5 to 25",
            change(experiment, figure, 5.0, 25.0),
            high=0.0,
            digits=digits,
        ),
    )


def length_matters(variant: Variant) -> Checks:
    """Theta as learned, against the same direction with an infinitely long theta: sorting."""
    experiment = FAIR_PG_RANK.on(variant)
    useful = difference(Point(experiment, "ndcg", 25.0), Point(experiment, "sorted_ndcg", 25.0))
    unfair = difference(
        Point(experiment, "d_group", 25.0), Point(experiment, "sorted_d_group", 25.0)
    )
    turned = change(experiment, "sorted_d_group", 0.0, 25.0)
    return (
        Check(
            "NDCG at λ = 25, θ as learned minus the same direction, infinitely long",
            useful,
            high=0.0,
        ),
        Check("D_group, the same comparison", unfair, high=0.0),
        Check(
            "D_group of the infinitely long θ, direction of λ = 25 minus that of 0",
            turned,
            high=0.0,
        ),
    )


def misled(variant: Variant) -> Checks:
    """Post-processing believes that the disparity is gone, and most of it is there."""
    experiment = POST_PROCESSING.on(variant)
    return (
        Check(
            "D_group on the estimates, largest λ, share of λ = 0",
            remaining(experiment, "d_group_estimated"),
            high=0.1,
            digits=2,
        ),
        Check(
            "true D_group, the same",
            remaining(experiment, "d_group"),
            low=0.5,
            digits=2,
        ),
    )


def less_fair(variant: Variant, method: Method) -> Checks:
    """Disparity grows with lambda."""
    quantity = change(method.on(variant), "d_group")
    return (Check("change in D_group, λ from 0 to the largest", quantity, low=0.0),)


def little_effect(variant: Variant, rival: Rival) -> Checks:
    """Disparity moves by less than a quarter."""
    shown = "sorted lists" if rival.prefix else "policy"
    quantity = remaining(rival.method.on(variant), f"{rival.prefix}d_group")
    return (Check(f"D_group at λ = 10⁶, share of λ = 0, {shown}", quantity, 0.75, 1.25, 2),)


def other_readings() -> dict[str, dict[str, Checks]]:
    """What else can be asked on the same data, by claim and by label."""
    loosely = angle_at(0.0, CLIPPED_AT_5, "of θ at λ = 0: nearer to 45 than to 0", 22.5, 67.5)
    effects = {}
    comparisons = {}
    for label, rival in DELTR_READINGS.items():
        effects[label] = little_effect(CLIPPED_AT_5, rival)
        comparisons[label] = better(CLIPPED_AT_5, [rival])
    return {
        "S1": {"loosely: nearer to the diagonal than to the axis": (loosely,)},
        "S9": {WITH_FACTOR: less_fair(CLIPPED_AT_5, POST_PROCESSING_WITH_FACTOR)},
        "S10": effects,
        "S11": comparisons,
        "S12": {
            WITH_FACTOR: better(CLIPPED_AT_5, [POST_WITH_FACTOR]),
            "where post-processing is at its fairest": better_at_their_fairest(
                CLIPPED_AT_5, [POST, POST_WITH_FACTOR]
            ),
        },
    }


def beside() -> dict[str, list[Beside]]:
    """What stands beside each claim: other readings, the other clip, other data."""
    readings = other_readings()
    stand_beside: dict[str, list[Beside]] = {}
    for claim_id, checks_at_4 in checks_of(CLIPPED_AT_4).items():
        stand_beside[claim_id] = [
            Beside(label, "synthetic", checks)
            for label, checks in readings.get(claim_id, {}).items()
        ]
        label = "relevance clipped at 4, as the authors ran it"
        stand_beside[claim_id].append(Beside(label, "synthetic", checks_at_4))
    on_german = Beside("on German Credit, queries redrawn", "german", other_side(SEX_REDRAWN))
    stand_beside["S14"].append(on_german)
    return stand_beside


#: What decides, by claim.
CHECKS = checks_of(CLIPPED_AT_5)
#: What stands beside, by claim.
BESIDE = beside()
