"""What decides the claim about rich-get-richer dynamics (Section 2.2; chapter 17).

The paper has no experiment on it. In `experiments.rich_get_richer` clicks feed estimates and
estimates feed rankings; whatever one of two twins of equal merit has more is unmerited.
"""

import numpy as np

from experiments.cells import Cells, by_seed
from experiments.claims.intervals import mean
from experiments.claims.verdicts import Beside, Check, Checks, Estimate, Quantity
from experiments.rich_get_richer import LAMS, STOPS

#: How relevance is estimated, in words.
ESTIMATES = {"rate": "click rates", "weighted": "weighted clicks"}
#: The sentence does not say when: on the way, and at the end.
ROUNDS = (10, 40)


def lead_left(estimate: str, rounds: int) -> Quantity:
    """The lucky twin's lead under Fair-PG-Rank, the mean over prices, less that under PG-Rank.

    Args:
        estimate: A key of `ESTIMATES`.
        rounds: One of `STOPS`.

    Returns:
        The quantity; its interval is over paired repetitions.
    """
    stop = STOPS.index(rounds)

    def measure(cells: Cells) -> Estimate:
        plain = by_seed(cells, f"pg_rank-{estimate}", 0.0)
        fair = [by_seed(cells, f"fair_pg_rank-{estimate}", lam) for lam in LAMS]
        seeds = sorted(set(plain).intersection(*fair))
        differences = []
        for seed in seeds:
            leads = [results[seed]["leads"][stop] for results in fair]
            differences.append(np.mean(leads) - plain[seed]["leads"][stop])
        return mean(differences, f"{len(seeds)} paired repetitions")

    return measure


def counteracts() -> Checks:
    """The lead is smaller with the constraint."""
    checks = []
    for estimate, words in ESTIMATES.items():
        for rounds in ROUNDS:
            label = f"lead of the lucky twin minus PG-Rank's, {words}, after {rounds} rounds"
            checks.append(Check(label, lead_left(estimate, rounds), high=0.0, digits=3))
    return tuple(checks)


#: What decides, by claim.
CHECKS: dict[str, Checks] = {"R1": counteracts()}
#: The authors published no code for it.
CODED: dict[str, tuple[str, Checks]] = {}
#: Nothing stands beside; chapter 17 compares with mixtures.
BESIDE: dict[str, list[Beside]] = {}
