"""What decides the claims about German Credit (Section 4.3; chapter 12).

The text can be read in two ways (which attributes, what "4:1" weighs), so the authors' run decides;
every seed draws its own queries, so intervals cover their choice. Other readings stand beside.
"""

from experiments.catalogue import (
    DELTR_ONE_SIDED,
    DELTR_REVERSED,
    DELTR_TWO_SIDED,
    FAIR_PG_RANK,
    POST_PROCESSING,
    POST_PROCESSING_WITH_FACTOR,
    SEX,
    SEX_REDRAWN,
    SEX_TEXT_REDRAWN,
    UNIFORM,
    Method,
    Variant,
)
from experiments.claims.curves import Curve, lead
from experiments.claims.group_checks import (
    DELTR,
    DELTR_READINGS,
    POST,
    WITH_FACTOR,
    better,
    better_at_their_fairest,
    by_direction,
    trades_off,
)
from experiments.claims.quantities import (
    Point,
    highest_seed,
    level,
    lowest_seed,
    remaining,
    run_spread,
)
from experiments.claims.verdicts import Beside, Check, Checks

_SAME = "the same queries for every run, as in the paper"


def converges(variant: Variant) -> Checks:
    """Runs perform alike."""
    experiment = FAIR_PG_RANK.on(variant)
    return (
        Check(
            "spread of NDCG over runs at the worst λ, share of what λ moves",
            run_spread(experiment, "ndcg"),
            high=0.1,
            digits=2,
        ),
        Check(
            "spread of D_group over runs at the worst λ, share of what λ moves",
            run_spread(experiment, "d_group"),
            high=0.1,
            digits=2,
        ),
    )


def fails(method: Method) -> Checks:
    """No λ halves the disparity of the policy."""
    quantity = remaining(method.on(SEX_REDRAWN), "d_group", "lowest")
    words = "lowest D_group at a λ above 0, share of λ = 0"
    return (Check(words, quantity, low=0.5, digits=2),)


def sorted_lists_fail(method: Method) -> Checks:
    """No λ halves the disparity of the sorted lists."""
    quantity = remaining(method.on(SEX_REDRAWN), "sorted_d_group", "lowest")
    words = "lowest D_group at a λ above 0, share of λ = 0, sorted lists"
    return (Check(words, quantity, low=0.5, digits=2),)


def over_lottery(method: Method) -> Checks:
    """What λ saves over the method's own lottery; nothing, if the method fails."""
    experiment = method.on(SEX_REDRAWN)
    quantity = lead(
        Curve(experiment, above=0.0), Curve(experiment, upto=0.0), UNIFORM.on(SEX_REDRAWN)
    )
    words = "NDCG at half its own disparity, minus its λ = 0 in a lottery"
    return (Check(words, quantity, high=0.0),)


def believed_gone_in_a_draw(method: Method) -> Checks:
    """At λ = .2 there is a draw of the queries without disparity on the estimates."""
    estimated = Point(method.on(SEX_REDRAWN), "d_group_estimated", 0.2)
    words = "D_group on the estimates, lowest of all draws"
    return (Check(words, lowest_seed(estimated), high=1e-6, digits=5),)


def believed_gone_in_all_draws(lam: float) -> Checks:
    """No draw of the queries has disparity on the estimates."""
    estimated = Point(POST_PROCESSING.on(SEX_REDRAWN), "d_group_estimated", lam)
    words = "D_group on the estimates, highest of all draws"
    return (Check(words, highest_seed(estimated), high=1e-6, digits=5),)


def not_gone(method: Method, reading: str) -> Check:
    """The true disparity at the largest lambda."""
    quantity = level(Point(method.on(SEX_REDRAWN), "d_group", "last"))
    return Check(f"true D_group at the largest λ ({reading})", quantity, low=0.0)


#: What decides, by claim.
CHECKS: dict[str, Checks] = {
    "G1": trades_off(SEX_REDRAWN),
    "G2": converges(SEX),
    "G3": fails(POST_PROCESSING),
    "G4": sorted_lists_fail(DELTR_TWO_SIDED),
    "G5": better(SEX_REDRAWN, [POST, DELTR]),
    "G6": believed_gone_in_a_draw(POST_PROCESSING),
    "G7": (
        not_gone(POST_PROCESSING, "definition"),
        not_gone(POST_PROCESSING_WITH_FACTOR, "with the factor"),
    ),
    "G8": (by_direction(SEX_REDRAWN),),
}
_OTHER_READINGS: dict[str, dict[str, Checks]] = {
    "G1": {
        _SAME: trades_off(SEX),
        "20 attributes, eight people to two, queries redrawn": trades_off(SEX_TEXT_REDRAWN),
    },
    "G2": {"queries redrawn: what the band leaves out": converges(SEX_REDRAWN)},
    "G3": {
        WITH_FACTOR: fails(POST_PROCESSING_WITH_FACTOR),
        "in a lottery: failing would be 0 or less": over_lottery(POST_PROCESSING),
    },
    "G4": {
        "DELTR's own one-sided penalty": sorted_lists_fail(DELTR_ONE_SIDED),
        "the authors' reversed side": sorted_lists_fail(DELTR_REVERSED),
        "as a policy: failing is 0 or less": over_lottery(DELTR_TWO_SIDED),
    },
    "G5": {
        **{label: better(SEX_REDRAWN, [rival]) for label, rival in DELTR_READINGS.items()},
        "where the baseline is at its fairest": better_at_their_fairest(SEX_REDRAWN, [POST, DELTR]),
    },
    "G6": {
        "in every draw": believed_gone_in_all_draws(0.2),
        "in every draw, at λ = 10 instead": believed_gone_in_all_draws(10.0),
        "with the factor |G| at λ = .2": believed_gone_in_a_draw(POST_PROCESSING_WITH_FACTOR),
    },
    "G8": {_SAME: (by_direction(SEX),)},
}
#: What stands beside, by claim.
BESIDE = {
    claim_id: [Beside(label, "german", checks) for label, checks in readings.items()]
    for claim_id, readings in _OTHER_READINGS.items()
}
