"""Claims about Yahoo's data: Table 1 (Section 4.1; chapter 10) and Figure 2 (4.3; chapter 11).

Nobody may hand those data on: without a reader's own run in results/yahoo these claims cannot be
tested here. The same checks on other data stand beside.
"""

from experiments.catalogue import (
    GBDT,
    LINEAR_PG_RANK,
    LINEAR_PG_RANK_ENTROPY,
    NETWORK_PG_RANK,
    NETWORK_PG_RANK_ENTROPY,
    RANK_SVM,
    Method,
)
from experiments.claims.quantities import ahead, change, overlap, remaining
from experiments.claims.verdicts import Beside, Check, Checks

#: The two models of Figure 2, which has no entropy.
MODELS = {LINEAR_PG_RANK: "linear model", NETWORK_PG_RANK: "network"}


def linear_beats_rank_svm(figure: str, metric: str) -> Checks:
    """PG-Rank minus RankSVM, with the text's entropy weight and the authors'."""
    with_entropy = ahead(LINEAR_PG_RANK_ENTROPY.name, RANK_SVM.name, figure)
    without = ahead(LINEAR_PG_RANK.name, RANK_SVM.name, figure)
    return (
        Check(f"{metric}, linear PG-Rank (γ = 1) minus RankSVM", with_entropy, low=0.0),
        Check(f"{metric}, linear PG-Rank (γ = 0) minus RankSVM", without, low=0.0),
    )


def network_beats_linear(figure: str, metric: str) -> Checks:
    """One model minus the other, both with the text's entropy weight or the authors'."""
    with_entropy = ahead(NETWORK_PG_RANK_ENTROPY.name, LINEAR_PG_RANK_ENTROPY.name, figure)
    without = ahead(NETWORK_PG_RANK.name, LINEAR_PG_RANK.name, figure)
    return (
        Check(f"{metric}, network minus linear model (γ = 1)", with_entropy, low=0.0),
        Check(f"{metric}, network minus linear model (γ = 0)", without, low=0.0),
    )


def competitive() -> Checks:
    """PG-Rank at most .02 of NDCG@10 behind boosted trees."""
    with_entropy = ahead(NETWORK_PG_RANK_ENTROPY.name, GBDT.name, "test_ndcg_at_10")
    without = ahead(NETWORK_PG_RANK.name, GBDT.name, "test_ndcg_at_10")
    return (
        Check("NDCG@10, PG-Rank's network (γ = 1) minus GBDT", with_entropy, low=-0.02),
        Check("NDCG@10, PG-Rank's network (γ = 0) minus GBDT", without, low=-0.02),
    )


def emphasis(method: Method, model: str) -> Checks:
    """Disparity and NDCG both fall."""
    d_ind = change(method.name, "test_policy_d_ind")
    ndcg = change(method.name, "test_policy_ndcg_at_10")
    return (
        Check(f"change in D_ind, λ from 0 to the largest, {model}", d_ind, high=0.0),
        Check(f"change in NDCG@10, λ from 0 to the largest, {model}", ndcg, high=0.0),
    )


def to_zero(method: Method, model: str) -> Checks:
    """Less than a twentieth of the disparity is left."""
    left = remaining(method.name, "test_policy_d_ind")
    return (Check(f"D_ind at the largest λ, share of λ = 0, {model}", left, high=0.05, digits=3),)


def generalises(method: Method, model: str) -> Checks:
    """Test and training agree at every lambda."""
    ndcg = overlap(method.name, "policy_ndcg_at_10")
    d_ind = overlap(method.name, "policy_d_ind", relative=True)
    return (
        Check(f"NDCG@10, test minus training, worst λ, {model}", ndcg, -0.02, 0.02, 3),
        Check(f"D_ind, the same, as a share of λ = 0, {model}", d_ind, -0.1, 0.1, 2),
    )


#: What decides, by claim.
CHECKS: dict[str, Checks] = {
    "T1": linear_beats_rank_svm("test_ndcg_at_10", "NDCG@10"),
    "T2": linear_beats_rank_svm("test_err", "ERR"),
    "T3": (
        *network_beats_linear("test_ndcg_at_10", "NDCG@10"),
        *network_beats_linear("test_err", "ERR"),
    ),
    "T4": competitive(),
    "F1": tuple(check for each in MODELS.items() for check in emphasis(*each)),
    "F2": tuple(check for each in MODELS.items() for check in to_zero(*each)),
    "F3": tuple(check for each in MODELS.items() for check in generalises(*each)),
}
#: The same on other data, by claim.
BESIDE = {
    claim_id: [
        Beside("open MSLR sample, other data", "mslr", checks),
        Beside("stand-in, order put in by design: no evidence", "yahoo-stand-in", checks),
    ]
    for claim_id, checks in CHECKS.items()
}
