"""Claims about Yahoo's data: Table 1 (Section 4.1; chapter 10) and Figure 2 (4.3; chapter 11).

Nobody may hand those data on: without a reader's own run in results/yahoo these claims cannot be
tested here. The same checks on other data stand beside.
"""

from collections.abc import Callable
from itertools import product

from experiments.claims.measures import ahead, change, overlap, remaining
from experiments.claims.verdicts import Check, Checks

METRICS = {"test_ndcg_at_10": "NDCG@10", "test_err": "ERR"}
MODELS = {"linear": "linear model", "neural": "network"}
#: Other data that are asked the same, by what the board calls them.
ELSEWHERE = {
    "open MSLR sample, other data": "mslr",
    "stand-in, order put in by design: no evidence": "yahoo-stand-in",
}


def policy(model: str, entropy: int | str = 0) -> str:
    return f"fair_pg_rank-{model}-entropy{entropy}"


def table_1(words: str, model: str, other: str, *figures: str, low: float = 0.0) -> Checks:
    """PG-Rank minus another ranker, with the text's and the authors' entropy weight (in both)."""
    found = []
    for figure, entropy in product(figures, (1, 0)):
        lead = ahead(policy(model, entropy), other.format(entropy), figure)
        said = f"{METRICS[figure]}, {words.format(f'(γ = {entropy})')}"
        found.append(Check(said, lead, low=low))
    return tuple(found)


def for_both(check: Callable[[str, str], Checks]) -> Checks:
    return tuple(one for model, words in MODELS.items() for one in check(policy(model), words))


def emphasis(method: str, words: str) -> Checks:
    figures = {"test_policy_d_ind": "D_ind", "test_policy_ndcg_at_10": "NDCG@10"}
    return tuple(
        Check(f"change in {name}, λ from 0 to the largest, {words}", change(method, fig), high=0.0)
        for fig, name in figures.items()
    )


def to_zero(method: str, words: str) -> Checks:
    left = remaining(method, "test_policy_d_ind")
    return (Check(f"D_ind at the largest λ, share of λ = 0, {words}", left, high=0.05, digits=3),)


def generalises(method: str, words: str) -> Checks:
    ndcg = overlap(method, "policy_ndcg_at_10")
    d_ind = overlap(method, "policy_d_ind", relative=True)
    return (
        Check(f"NDCG@10, test minus training, worst λ, {words}", ndcg, -0.02, 0.02, 3),
        Check(f"D_ind, the same, as a share of λ = 0, {words}", d_ind, -0.1, 0.1, 2),
    )


_SVM, _NETWORK = "linear PG-Rank {} minus RankSVM", "network minus linear model {}"
_NDCG, _ERR = METRICS
_CHECKS: dict[str, Checks] = {
    "T1": table_1(_SVM, "linear", "rank_svm", _NDCG),
    "T2": table_1(_SVM, "linear", "rank_svm", _ERR),
    "T3": table_1(_NETWORK, "neural", policy("linear", "{}"), *METRICS),
    "T4": table_1("PG-Rank's network {} minus GBDT", "neural", "gbdt", _NDCG, low=-0.02),
    "F1": for_both(emphasis),
    "F2": for_both(to_zero),
    "F3": for_both(generalises),
}
CHECKS = {name: (checks, dict.fromkeys(ELSEWHERE, checks)) for name, checks in _CHECKS.items()}
