"""Which ways to a gradient there are: what each draws, subtracts and knows."""

from dataclasses import dataclass

from benchmarks.rivals.kernels import (
    LEAVE_ONE_OUT,
    MEAN,
    NONE,
    PL_RANK,
    REINFORCE,
    TO_GO,
    UNIFORM,
)


@dataclass(frozen=True)
class Way:
    """A way to estimate the gradient from drawn lists."""

    name: str
    kind: int
    """What a draw is multiplied with, `REINFORCE`, `TO_GO` or `PL_RANK`."""
    baseline: int = NONE
    """What is subtracted from it, `NONE`, `MEAN`, `LEAVE_ONE_OUT` or `UNIFORM`."""
    first_places: bool = True
    """Whether a list ends at the last place that pays. Else all documents are drawn, and draws
    that pay nothing count, too."""
    centred: bool = False
    """Whether the mean pull is subtracted from all pulls, which changes no gradient of theirs, as
    total exposure is constant."""
    exact_charges: bool = False
    """Whether the pulls come from the exact exposure, and not from that of the drawn lists."""
    sobol: bool = False
    """Whether the lists come from a scrambled Sobol sequence, and not from independent numbers."""
    by_definition: bool = False
    """Whether sums run over documents and draws, as published, and not over each once."""

    @property
    def fewest(self) -> int:
        """The least number of lists that this way can do with."""
        return 1 if self.baseline in (NONE, UNIFORM) else 2


#: The paper's own way, and the one that the package has by ``baseline="loo"``.
PAPER = Way("REINFORCE, mean", REINFORCE, MEAN, first_places=False)
LOO = Way("REINFORCE, leave-one-out", REINFORCE, LEAVE_ONE_OUT, first_places=False)
TO_GO_LOO = Way("reward-to-go, leave-one-out", TO_GO, LEAVE_ONE_OUT)
PL_RANK_3 = Way("PL-Rank-3", PL_RANK)
PL_RANK_3_LOO = Way("PL-Rank-3, leave-one-out", PL_RANK, LEAVE_ONE_OUT)
EXACT_CHARGES = Way(
    "exact charges, leave-one-out",
    REINFORCE,
    LEAVE_ONE_OUT,
    first_places=False,
    exact_charges=True,
)
EXACT_CHARGES_TO_GO = Way(
    "exact charges, reward-to-go, uniform", TO_GO, UNIFORM, exact_charges=True
)

SAMPLED = (
    Way("REINFORCE, no baseline", REINFORCE, first_places=False),
    Way("REINFORCE, centred", REINFORCE, first_places=False, centred=True),
    PAPER,
    LOO,
    Way("REINFORCE, leave-one-out, first places", REINFORCE, LEAVE_ONE_OUT),
    TO_GO_LOO,
    Way("reward-to-go, uniform", TO_GO, UNIFORM),
    Way("PL-Rank-1", TO_GO, by_definition=True),
    Way("PL-Rank-2", PL_RANK, by_definition=True),
    PL_RANK_3,
    Way("PL-Rank-3, centred", PL_RANK, centred=True),
    PL_RANK_3_LOO,
    Way("PL-Rank-3, uniform", PL_RANK, UNIFORM),
    Way("Sobol, leave-one-out", REINFORCE, LEAVE_ONE_OUT, first_places=False, sobol=True),
    Way("Sobol, reward-to-go, uniform", TO_GO, UNIFORM, sobol=True),
    EXACT_CHARGES,
    EXACT_CHARGES_TO_GO,
)
BY_NAME = {way.name: way for way in SAMPLED}
EXACT = "exact"
