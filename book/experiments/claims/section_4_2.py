"""Claims of Section 4.2: the synthetic data (Figure 1; chapter 9).

Decided on relevance clipped at 5, as the text has it; the authors' clip at 4 stands beside.
"""

from collections.abc import Callable

from experiments.claims.measures import (
    advantage_over_chance,
    angle,
    between,
    change,
    lead,
    length,
    level,
    remaining,
)
from experiments.claims.published import (
    SYNTHETIC,
    SYNTHETIC_DELTR,
    SYNTHETIC_POST,
    arrow,
)
from experiments.claims.verdicts import Beside, Check, Claim

Checks = tuple[Check, ...]
DATA = "synthetic"


def fair(problem: str) -> str:
    return f"fair_pg_rank-sample-{problem}"


def also_clip_4(checks: Callable[[str], Checks]) -> tuple[Beside, ...]:
    return (Beside("relevance clipped at 4, as the authors ran it", DATA, checks("clip4")),)


def halves(words: str, problem: str, figure: str | Callable[..., float], digits: int) -> Checks:
    """A figure must fall from lambda 0 to 5, and from there to 25."""
    spans = {"λ from 0 to 5": (0.0, 5.0), "λ from 5 to 25": (5.0, 25.0)}
    return tuple(
        Check(f"{words}, {span}", change(fair(problem), figure, *ends), high=0.0, digits=digits)
        for span, ends in spans.items()
    )


def along_the_diagonal(problem: str) -> Checks:
    direction = level(fair(problem), angle, 0.0)
    return (
        Check("angle of θ at λ = 0, in degrees: nearer to 45 than to 0", direction, 22.5, 67.5, 1),
        Check("the same: within 5 degrees of 45", direction, 40.0, 50.0, 1),
    )


def more_random(problem: str) -> Checks:
    return halves("change in the length of θ", problem, length, 2)


def discounts(problem: str) -> Checks:
    return (
        *halves("change in the angle of θ, degrees", problem, angle, 1),
        Check(
            "angle at λ = 25: θ₁ at least twice θ₂",
            level(fair(problem), angle, "last"),
            high=26.565,
            digits=1,
        ),
    )


def length_matters(problem: str) -> Checks:
    method = fair(problem)
    return (
        Check(
            "NDCG at λ = 25, θ as learned minus the same direction, infinitely long",
            between(method, "ndcg", "sorted_ndcg", "last"),
            high=0.0,
        ),
        Check(
            "D_group, the same comparison",
            between(method, "d_group", "sorted_d_group", "last"),
            high=0.0,
        ),
        Check(
            "D_group of the infinitely long θ, direction of λ = 25 minus that of 0",
            change(method, "sorted_d_group"),
            high=0.0,
        ),
    )


def disparity_falls(problem: str) -> Checks:
    return halves("change in D_group", problem, "d_group", 4)


def trades_off(problem: str) -> Checks:
    method = fair(problem)
    return (
        Check(
            "D_group at λ = 25, share of λ = 0", remaining(method, "d_group"), high=0.5, digits=2
        ),
        Check(
            "NDCG at half the disparity, minus PG-Rank mixed with random lists",
            advantage_over_chance(method, f"uniform-{problem}"),
            low=0.0,
        ),
    )


def neutralises(problem: str) -> Checks:
    method = fair(problem)
    return (
        Check("change in the angle of θ, degrees", change(method, angle), high=0.0, digits=1),
        Check("change in D_group", change(method, "d_group"), high=0.0),
        Check(
            "angle at λ = 25: θ₂ at most a tenth of θ₁",
            level(method, angle, "last"),
            high=5.71,
            digits=1,
        ),
        Check(
            "share of D_group left by the direction alone (sorted lists)",
            remaining(method, "sorted_d_group"),
            high=0.5,
            digits=2,
        ),
    )


def misled(problem: str, scaling: str = "definition") -> Checks:
    method = f"post_processing-{scaling}-{problem}"
    return (
        Check(
            "D_group on the estimates, largest λ, share of λ = 0",
            remaining(method, "d_group_estimated"),
            high=0.1,
            digits=2,
        ),
        Check("true D_group, the same", remaining(method, "d_group"), low=0.5, digits=2),
    )


def less_fair(problem: str, scaling: str = "definition") -> Checks:
    method = f"post_processing-{scaling}-{problem}"
    return (
        Check("change in D_group, λ from 0 to the largest", change(method, "d_group"), low=0.0),
    )


def little_effect(problem: str, gap: str = "two_sided") -> Checks:
    method = f"deltr-{gap}-{problem}"
    return tuple(
        Check(
            f"D_group at λ = 10⁶, share of λ = 0, {words}",
            remaining(method, figure),
            low=0.75,
            high=1.25,
            digits=2,
        )
        for figure, words in (("sorted_d_group", "sorted lists"), ("d_group", "policy"))
    )


#: Disparities at which methods are compared, as shares of PG-Rank's own.
SHARES: dict[float | None, str] = {
    0.75: "¾ of PG-Rank's D_group",
    0.5: "½ of PG-Rank's D_group",
    0.25: "¼ of PG-Rank's D_group",
}
OWN: dict[float | None, str] = {None: "its own lowest D_group"}


def better(
    problem: str, others: dict[str, tuple[str, str]], shares: dict[float | None, str] = SHARES
) -> Checks:
    """NDCG at equal disparity, against methods by their words: (stored name, prefix)."""
    return tuple(
        Check(
            f"NDCG minus that of {words}, at {part}",
            lead(fair(problem), f"uniform-{problem}", f"{method}-{problem}", prefix, share),
            low=0.0,
        )
        for words, (method, prefix) in others.items()
        for share, part in shares.items()
    )


def better_than_deltr(problem: str, gap: str = "two_sided") -> Checks:
    method = f"deltr-{gap}"
    return better(problem, {"DELTR, sorted": (method, "sorted_"), "DELTR, policy": (method, "")})


POST_PROCESSING = {
    "post-processing (definition)": ("post_processing-definition", ""),
    "post-processing (authors' scaling)": ("post_processing-authors", ""),
}


def better_than_post_processing(problem: str) -> Checks:
    return better(problem, POST_PROCESSING)


def _published_angle(lam: float) -> float:
    first, second, *_ = SYNTHETIC[lam]
    return angle({"theta1": first, "theta2": second})


def _published_length(lam: float) -> float:
    first, second, *_ = SYNTHETIC[lam]
    return length({"theta1": first, "theta2": second})


_EQUAL = (
    "At ¾, ½ and ¼ of PG-Rank's disparity Fair-PG-Rank must have more NDCG. To get there every "
    "method may choose its λ, and may now and then show a random list."
)
_D = "D_group " + arrow(SYNTHETIC[0.0][3], SYNTHETIC[25.0][3])
_ANGLES = f"angle {arrow(_published_angle(0.0), _published_angle(25.0), 1)} (λ = 0, 25)"

CLAIMS = (
    Claim(
        id="S1",
        where="Section 4.2",
        words="For small λ the learned θ lies along θ₁ = θ₂.",
        rule="Loosely: nearer to the diagonal than to the axis that ignores x₂. Strictly: within 5 "
        "degrees.",
        data=DATA,
        checks=along_the_diagonal("clip5"),
        published=f"angle {_published_angle(0.0):.1f} at λ = 0",
        beside=also_clip_4(along_the_diagonal),
    ),
    Claim(
        id="S2",
        where="Section 4.2",
        words="As λ grows the policies become more random.",
        rule="The length of θ must shrink in both halves of the range of λ.",
        data=DATA,
        checks=more_random("clip5"),
        published=f"length {arrow(_published_length(0.0), _published_length(25.0), 2)}",
        beside=also_clip_4(more_random),
    ),
    Claim(
        id="S3",
        where="Section 4.2",
        words="As λ grows the biased feature is discounted: θ₁ ≫ θ₂.",
        rule="The angle must fall in both halves; at the end θ₁ must be at least twice θ₂.",
        data=DATA,
        checks=discounts("clip5"),
        published=_ANGLES,
        beside=also_clip_4(discounts),
    ),
    Claim(
        id="S4",
        where="Section 4.2, Figure 1 (a, b)",
        words="Direction and length of θ both matter for NDCG and D_group.",
        rule="Length: the same direction with an infinitely long θ, which is sorting.",
        data=DATA,
        checks=length_matters("clip5"),
        beside=also_clip_4(length_matters),
    ),
    Claim(
        id="S5",
        where="Section 4.2, Figure 1 (c)",
        words="Fair-PG-Rank lowers the disparity as λ grows.",
        rule="D_group must fall in both halves of the range of λ.",
        data=DATA,
        checks=disparity_falls("clip5"),
        published=_D,
        beside=also_clip_4(disparity_falls),
    ),
    Claim(
        id="S6",
        where="Section 4.2, its title",
        words="Fair-PG-Rank trades usefulness for fairness effectively.",
        rule="It must halve D_group, and lose less NDCG on the way than random lists would.",
        data=DATA,
        checks=trades_off("clip5"),
        published=f"NDCG {arrow(SYNTHETIC[0.0][2], SYNTHETIC[25.0][2])}, {_D}",
        beside=also_clip_4(trades_off),
    ),
    Claim(
        id="S7",
        where="Sections 1, 4, 4.2 and 5",
        words="Fair-PG-Rank detects the biased feature and neutralises it.",
        rule="Detects: θ turns and D_group falls. Neutralises: θ₂ is next to nothing, and the turn "
        "alone halves the disparity.",
        data=DATA,
        checks=neutralises("clip5"),
        published=_ANGLES,
        beside=also_clip_4(neutralises),
    ),
    Claim(
        id="S8",
        where="Sections 1 and 4.2",
        words="Post-processing is misled by relevance estimated from the biased feature.",
        rule="It must believe that the disparity is gone while more than half of it is there.",
        data=DATA,
        checks=misled("clip5"),
        beside=also_clip_4(misled),
    ),
    Claim(
        id="S9",
        where="Section 4.2, Figure 1 (c)",
        words="Post-processing becomes even less fair as λ grows.",
        rule="Decided with the constraint by the paper's definition of D_group (mean exposure over "
        "mean merit). The authors' programme has an extra factor |G|.",
        data=DATA,
        checks=less_fair("clip5"),
        published="D_group "
        + arrow(SYNTHETIC_POST[0.0][1], SYNTHETIC_POST[6.0][1])
        + f", but {SYNTHETIC_POST[0.95][1]:.4f} at λ = .95 (with the factor)",
        beside=(
            Beside("with the authors' factor |G|", DATA, less_fair("clip5", "authors")),
            *also_clip_4(less_fair),
        ),
    ),
    Claim(
        id="S10",
        where="Section 4.2, Figure 1 (c)",
        words="The heuristic of Zehlike and Castillo has little effect on the disparity.",
        rule="Little: D_group moves by less than a quarter, sorted and as a policy. Decided with "
        "the two-sided penalty of the text.",
        data=DATA,
        checks=little_effect("clip5"),
        published="D_group, sorted, "
        + " → ".join(f"{value:.4f}" for value in SYNTHETIC_DELTR.values())
        + " (λ = 0, 10², 10⁶; reversed side)",
        beside=(
            Beside("DELTR's own one-sided penalty", DATA, little_effect("clip5", "one_sided")),
            Beside("the authors' reversed side", DATA, little_effect("clip5", "reversed")),
        ),
    ),
    Claim(
        id="S11",
        where="Section 1",
        words="Fair-PG-Rank performs better than the heuristic of Zehlike and Castillo.",
        rule=_EQUAL,
        data=DATA,
        checks=better_than_deltr("clip5"),
        beside=(
            Beside("DELTR's own one-sided penalty", DATA, better_than_deltr("clip5", "one_sided")),
            Beside("the authors' reversed side", DATA, better_than_deltr("clip5", "reversed")),
        ),
    ),
    Claim(
        id="S12",
        where="Section 4.2, Figure 1 (c)",
        words="Fair-PG-Rank's trade-off is better than post-processing's.",
        rule=_EQUAL,
        data=DATA,
        checks=better_than_post_processing("clip5"),
        published="best with D_group below .0083: NDCG "
        f"{max(u for *_, u, d in SYNTHETIC.values() if d < 0.0083):.4f} "
        f"(Fair-PG-Rank), {SYNTHETIC_POST[0.95][0]:.4f} (post-processing)",
        beside=(
            Beside(
                "where post-processing is at its fairest",
                DATA,
                better("clip5", POST_PROCESSING, OWN),
            ),
            *also_clip_4(better_than_post_processing),
        ),
    ),
)
