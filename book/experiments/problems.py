"""The data of the two group-fairness experiments, as settings that a result file can name.

A problem gives the training and the test queries of a seed. Which of the two readings of each data
set is which: the page "Where the paper and its code differ", entries 16 and 29 to 32.
"""

from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch

from fairpg_lite.data import RankingDataset, german_credit, synthetic


class Parts(NamedTuple):
    """What a method learns from and what it is judged on; one object if they are the same."""

    train: RankingDataset
    test: RankingDataset


@dataclass(frozen=True)
class SyntheticData:
    """The paper's synthetic queries, drawn anew for every seed; trained and judged on the same."""

    clip: float = 5.0
    """Highest relevance, 5 in the paper's text, 4 in the authors' run."""
    n_queries: int = 100

    @property
    def name(self) -> str:
        return f"clip{self.clip:g}"

    def load(self, seed: int) -> Parts:
        both = synthetic(seed=seed, dtype=torch.float64, **asdict(self))
        return Parts(both, both)


@dataclass(frozen=True)
class GermanData:
    """German Credit as ranking queries of ten; the defaults are the authors' run. Chapter 12."""

    attributes: int = 9
    """9 as in the authors' run (29 features), or 20 as in the paper's text (61)."""
    ratio: str = "weights"
    """How "four to one" is read, "weights" of persons (authors), or "exact", 8 and 2 (text)."""
    split: str = "rows"
    """Training persons, the first 800 "rows" (authors), or "random"."""
    group: str = "sex"
    """"sex" as recorded, or "age" (25 or younger)."""
    redrawn: bool = False
    """Whether a seed draws queries of its own; otherwise all seeds share those of seed 0."""
    n_train: int = 500
    n_test: int = 100

    @property
    def name(self) -> str:
        text = "" if (self.attributes, self.ratio) == (9, "weights") else "-text"
        return self.group + text + ("-redrawn" if self.redrawn else "")

    def load(self, seed: int) -> Parts:
        settings = asdict(self)
        seed = seed if settings.pop("redrawn") else 0
        return Parts(*german_credit(seed, dtype=torch.float64, **settings))


Problem = SyntheticData | GermanData
