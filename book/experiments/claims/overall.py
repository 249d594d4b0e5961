"""Sentences of the abstract, introduction and conclusion that sum up others (chapter 13)."""

from experiments.claims.verdicts import Claim

_RULE = "Sums up the claims named beside; the same rule, one level up."

CLAIMS = (
    Claim(
        id="A1",
        where="Abstract; Sections 1 and 5",
        words="The approach is effective for individual and for group fairness, on simulated and "
        "on real data.",
        rule=_RULE,
        parts=("S5", "S6", "F1", "F2", "G1"),
    ),
    Claim(
        id="A2",
        where="Section 1",
        words="Learning finds biases in the representation that post-processing cannot see.",
        rule=_RULE,
        parts=("S3", "S8"),
    ),
    Claim(
        id="A3",
        where="Sections 1 and 5",
        words="The policy gradient trains high-quality, competitive rankers.",
        rule=_RULE,
        parts=("T1", "T2", "T3", "T4"),
    ),
    Claim(
        id="A4",
        where="Sections 4.2 and 4.3",
        words="Fair-PG-Rank can trade usefulness for fairness while the baselines fail.",
        rule=_RULE,
        parts=("S6", "S11", "S12", "G1", "G3", "G4", "G5"),
    ),
)
