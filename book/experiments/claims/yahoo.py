"""Claims about Yahoo's data: Table 1 (Section 4.1; chapter 10) and Figure 2 (4.3; chapter 11).

Nobody may hand those data on: without a reader's own run in results/yahoo these claims cannot be
tested here. The same checks on other data stand beside. The text has the entropy weight γ = 1, the
authors' stored runs 0; both are judged, the text first.
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

#: The two models, with the text's entropy weight and with the code's.
TEXT = {LINEAR_PG_RANK_ENTROPY: "linear model", NETWORK_PG_RANK_ENTROPY: "network"}
CODE = {LINEAR_PG_RANK: "linear model", NETWORK_PG_RANK: "network"}


def beats(first: Method, second: Method, words: str, figure: str, low: float = 0.0) -> Check:
    """One ranker minus another, without a price of disparity."""
    return Check(words, ahead(first.name, second.name, figure), low=low)


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


def checks_of(models: dict[Method, str]) -> dict[str, Checks]:
    """The checks of every claim, by its id, with one entropy weight."""
    linear, network = models
    svm = "linear PG-Rank minus RankSVM"
    return {
        "T1": (
            beats(linear, RANK_SVM, f"NDCG@10, {svm}", "test_ndcg_at_10"),
            beats(linear, RANK_SVM, f"ERR, {svm}", "test_err"),
        ),
        "T3": (
            beats(network, linear, "NDCG@10, network minus linear model", "test_ndcg_at_10"),
            beats(network, linear, "ERR, network minus linear model", "test_err"),
        ),
        "T4": (
            beats(network, GBDT, "NDCG@10, PG-Rank's network minus GBDT", "test_ndcg_at_10", -0.02),
        ),
        "T5": (beats(linear, RANK_SVM, f"NDCG@10 in training, {svm}", "train_ndcg_at_10"),),
        "F1": tuple(check for each in models.items() for check in emphasis(*each)),
        "F2": tuple(check for each in models.items() for check in to_zero(*each)),
        "F3": tuple(check for each in models.items() for check in generalises(*each)),
    }


#: What decides, by claim.
CHECKS = checks_of(TEXT)
#: What the code does otherwise, by claim: how, and the same checks on its runs.
CODED = {claim_id: ("γ = 0", checks) for claim_id, checks in checks_of(CODE).items()}


def beside() -> dict[str, list[Beside]]:
    """The same on other data, by claim; of Figure 2 only γ = 0 was run there."""
    found: dict[str, list[Beside]] = {}
    for claim_id, checks in CHECKS.items():
        coded = CODED[claim_id][1]
        found[claim_id] = []
        if claim_id.startswith("T"):
            found[claim_id].append(Beside("open MSLR sample, γ = 1", "mslr", checks))
        found[claim_id] += [
            Beside("open MSLR sample, γ = 0", "mslr", coded),
            Beside("stand-in, γ = 0, order by design: no evidence", "yahoo-stand-in", coded),
        ]
    return found


#: What stands beside, by claim.
BESIDE = beside()
