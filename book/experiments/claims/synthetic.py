"""What decides the claims of Section 4.2, on synthetic data (Figure 1; chapter 9).

The text decides: relevance clipped at 5, D_group and the programme's constraint by equation (4),
DELTR's difference two-sided. DELTR is judged by its sorted lists, as the authors did; the text does
not say. Other readings stand beside.
"""

from collections.abc import Callable

from experiments.claims.measures import (
    Curve,
    Figure,
    Point,
    angle,
    change,
    lead,
    length,
    level,
    minus,
    opposite,
    remaining,
    share,
)
from experiments.claims.verdicts import Beside, Check, Checks

#: Disparities at which methods are compared, as parts of PG-Rank's own; None: the other's lowest.
PARTS: dict[float | None, str] = {
    0.75: "¾ of PG-Rank's D_group",
    0.5: "½ of PG-Rank's D_group",
    0.25: "¼ of PG-Rank's D_group",
}
LOWEST: dict[float | None, str] = {None: "its own lowest D_group"}
#: Rivals by their words: the stored name, and "sorted_" for the most probable ranking.
POST = {"post-processing": ("post_processing-definition", "")}
FACTOR = {"post-processing (with the factor)": ("post_processing-authors", "")}


def fair(problem: str) -> str:
    return f"fair_pg_rank-sample-{problem}"


def deltr(gap: str = "two_sided", prefix: str = "sorted_") -> dict[str, tuple[str, str]]:
    words = "DELTR, sorted" if prefix else "DELTR, policy"
    return {words: (f"deltr-{gap}", prefix)}


# Checks for both data sets


def trades_off(problem: str) -> Checks:
    """Half of the disparity, for less NDCG than what needs no fair learning."""
    method, uniform = fair(problem), f"uniform-{problem}"
    left = remaining(method, "d_group", 25.0)
    lists, heat = (Curve(method, upto=0.0, heated=heated) for heated in (False, True))
    words = "NDCG at half the disparity, minus PG-Rank"
    return (
        Check("D_group at λ = 25, share of λ = 0", left, high=0.5, digits=2),
        Check(
            f"{words} mixed with random lists", lead(Curve(method, above=0.0), lists, uniform), 0.0
        ),
        Check(f"{words} at a temperature", lead(Curve(method, above=0.0), heat, uniform), 0.0),
    )


def better(
    problem: str, rivals: dict[str, tuple[str, str]], parts: dict[float | None, str] = PARTS
) -> Checks:
    """NDCG at equal disparity. Every method may choose its λ, and may draw lots."""
    return tuple(
        Check(
            f"NDCG minus that of {words}, at {at}",
            lead(
                Curve(fair(problem)), Curve(f"{key}-{problem}", prefix), f"uniform-{problem}", part
            ),
            low=0.0,
        )
        for words, (key, prefix) in rivals.items()
        for part, at in parts.items()
    )


def by_direction(problem: str) -> Check:
    return Check(
        "share of D_group left by the direction alone (sorted lists)",
        remaining(fair(problem), "sorted_d_group", 25.0),
        high=0.5,
        digits=2,
    )


def other_side(problem: str) -> Checks:
    """How much of the side that D_group does not count maximising utility leaves."""
    random = Point(f"uniform-{problem}", opposite)
    ours = share(Point(fair(problem), opposite), random)
    words = "lead of the group with less merit at λ = 0, share of random lists'"
    return (Check(words, ours, high=0.1, digits=2),)


# Checks for these data


def halves(words: str, problem: str, figure: Figure, digits: int) -> Checks:
    """A number must fall from λ = 0 to 5, and from there to 25."""
    return tuple(
        Check(
            f"{words}, λ from {start:g} to {end:g}",
            change(fair(problem), figure, start, end),
            high=0.0,
            digits=digits,
        )
        for start, end in ((0.0, 5.0), (5.0, 25.0))
    )


def along_the_diagonal(problem: str) -> Checks:
    found = level(Point(fair(problem), angle))
    return (Check("angle of θ at λ = 0, in degrees, where 45 is θ₁ = θ₂", found, 40.0, 50.0, 1),)


def nearer_to_it(problem: str) -> Checks:
    found = level(Point(fair(problem), angle))
    return (Check("angle of θ at λ = 0: nearer to 45 than to 0", found, 22.5, 67.5, 1),)


def more_random(problem: str) -> Checks:
    return halves("change in the length of θ", problem, length, 2)


def discounts(problem: str) -> Checks:
    last = level(Point(fair(problem), angle, 25.0))
    return (
        *halves("change in the angle of θ, degrees", problem, angle, 1),
        Check("angle at λ = 25: θ₁ at least twice θ₂", last, high=26.565, digits=1),
    )


def length_matters(problem: str) -> Checks:
    method, at = fair(problem), 25.0
    useful = minus(Point(method, "ndcg", at), Point(method, "sorted_ndcg", at))
    unfair = minus(Point(method, "d_group", at), Point(method, "sorted_d_group", at))
    turned = change(method, "sorted_d_group", 0.0, at)
    words = "D_group of the infinitely long θ, direction of λ = 25 minus that of 0"
    return (
        Check(
            "NDCG at λ = 25, θ as learned minus the same direction, infinitely long",
            useful,
            high=0.0,
        ),
        Check("D_group, the same comparison", unfair, high=0.0),
        Check(words, turned, high=0.0),
    )


def disparity_falls(problem: str) -> Checks:
    return halves("change in D_group", problem, "d_group", 4)


def neutralises(problem: str) -> Checks:
    turn = change(fair(problem), angle, 0.0, 25.0)
    last = level(Point(fair(problem), angle, 25.0))
    return (
        Check("change in the angle of θ, degrees", turn, high=0.0, digits=1),
        Check("angle at λ = 25: θ₂ at most a tenth of θ₁", last, high=5.71, digits=1),
        by_direction(problem),
    )


def misled(problem: str) -> Checks:
    method = f"post_processing-definition-{problem}"
    believed = remaining(method, "d_group_estimated")
    words = "D_group on the estimates, largest λ, share of λ = 0"
    return (
        Check(words, believed, high=0.1, digits=2),
        Check("true D_group, the same", remaining(method, "d_group"), low=0.5, digits=2),
    )


def less_fair(problem: str, scaling: str = "definition") -> Checks:
    found = change(f"post_processing-{scaling}-{problem}", "d_group")
    return (Check("change in D_group, λ from 0 to the largest", found, low=0.0),)


def little_effect(problem: str, gap: str = "two_sided", prefix: str = "sorted_") -> Checks:
    words = "sorted lists" if prefix else "policy"
    found = remaining(f"deltr-{gap}-{problem}", f"{prefix}d_group")
    return (Check(f"D_group at λ = 10⁶, share of λ = 0, {words}", found, 0.75, 1.25, 2),)


def any_use(problem: str) -> Checks:
    found = minus(Point(f"fixed-0.25-{problem}", "d_group"), Point(f"fixed-0-{problem}", "d_group"))
    return (Check("D_group with a quarter of x₂ in the score, minus without x₂", found, low=0.0),)


def readings(checks: Callable[..., Checks]) -> dict[str, Checks]:
    """The three other ways to judge DELTR: its own penalty, the authors' side, as a policy."""
    return {
        "DELTR's own one-sided penalty": checks("one_sided"),
        "the authors' reversed side": checks("reversed"),
        "DELTR as a policy, not sorted": checks("two_sided", ""),
    }


WITH_FACTOR = "with the factor |G| of appendix and code"
#: Checks for a clip, and what else stands beside them.
_CHECKS: dict[str, tuple[Callable[[str], Checks], dict[str, Checks]]] = {
    "S1": (
        along_the_diagonal,
        {"loosely: nearer to the diagonal than to the axis": nearer_to_it("clip5")},
    ),
    "S2": (more_random, {}),
    "S3": (discounts, {}),
    "S4": (length_matters, {}),
    "S5": (disparity_falls, {}),
    "S6": (trades_off, {}),
    "S7": (neutralises, {}),
    "S8": (misled, {}),
    "S9": (less_fair, {WITH_FACTOR: less_fair("clip5", "authors")}),
    "S10": (little_effect, readings(lambda *gap: little_effect("clip5", *gap))),
    "S11": (
        lambda problem: better(problem, deltr()),
        readings(lambda *gap: better("clip5", deltr(*gap))),
    ),
    "S12": (
        lambda problem: better(problem, POST),
        {
            WITH_FACTOR: better("clip5", FACTOR),
            "where post-processing is at its fairest": better("clip5", POST | FACTOR, LOWEST),
        },
    ),
    "S13": (any_use, {}),
    "S14": (other_side, {}),
}


def _beside(name: str) -> tuple[Beside, ...]:
    checks, others = _CHECKS[name]
    found = [Beside(label, "synthetic", of) for label, of in others.items()]
    found.append(
        Beside("relevance clipped at 4, as the authors ran it", "synthetic", checks("clip4"))
    )
    if name == "S14":
        found.append(Beside("on German Credit, queries redrawn", "german", checks("sex-redrawn")))
    return tuple(found)


CHECKS = {name: (checks("clip5"), _beside(name)) for name, (checks, _) in _CHECKS.items()}
