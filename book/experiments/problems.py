"""The data of all experiments, as settings that a result file can name.

A problem of the group-fairness experiments gives the training and the test queries of a seed.
Which of the two readings of each data set is which: the page "Where the paper and its code differ",
entries 16 and 29 to 32. `load_split` has the data of the rankers (chapters 10 and 11).
"""

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import NamedTuple

import torch

from experiments.stand_in import yahoo_like
from fairpg_lite.data import RankingDataset, german_credit, mslr_sample, synthetic, yahoo
from fairpg_lite.data.sets import PUBLISHED_COUNTS, remembered


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

#: Above so many queries the stand-in is made once, on disk (2 GB at full size), and memory-mapped.
IN_MEMORY = 1000
#: A share of the queries never leaves fewer than this, or than there are.
FEWEST = 20
MSLR_VALID = 10


class Split(NamedTuple):
    """What a ranker learns from, what its settings are chosen by, and what it is judged by."""

    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


@lru_cache(maxsize=2)
def load_split(
    data: str, share: float, check_counts: bool, root: str | None, split_seed: int = 0
) -> Split:
    """The first ``share`` of the queries of "yahoo" (in ``root``), "stand-in" or "mslr".

    Loaded once in a process. ``check_counts`` refuses files of Yahoo with other than the published
    counts; ``split_seed`` says which of MSLR's 42 training queries are set aside for validation.
    """
    if data == "stand-in":
        counts = {part: share_of(queries, share) for part, (queries, _) in PUBLISHED_COUNTS.items()}
        return Split(*(stand_in(part, queries) for part, queries in counts.items()))
    if data == "yahoo":
        parts = Split(*yahoo(root, check_counts=check_counts))
    elif data == "mslr":
        train, test = mslr_sample(dtype=torch.float64)
        kept = (len(train) - MSLR_VALID) / len(train)
        train, valid = train.split((kept, 1 - kept), seed=split_seed)
        parts = Split(train, valid, test)
    else:
        raise ValueError(f"load_split: data is {data!r}; choose one of yahoo, stand-in, mslr.")
    # Consecutive queries, so views and not copies.
    return Split(*(part[: share_of(len(part), share)] for part in parts))


def share_of(queries: int, share: float) -> int:
    """How many queries a share is: rounded, and no fewer than FEWEST where there are so many.

    >>> share_of(19_944, 0.05), share_of(40, 0.05), share_of(6, 0.05)
    (997, 20, 6)
    """
    return min(queries, max(FEWEST, round(queries * share)))


def stand_in(part: str, queries: int) -> RankingDataset:
    """The stand-in of seed 0; if large, from the user's cache, and stored there if absent.

    The cache counts as current if ``yahoo_like`` makes the same first queries today.
    """
    if queries <= IN_MEMORY:
        return yahoo_like(queries, part=part)
    key = yahoo_like(FEWEST, part=part).fingerprint()
    return remembered(f"stand-in-{part}-{queries}", key, lambda: yahoo_like(queries, part=part))


def describe(data: str, parts: Split) -> str:
    """The sentences that name the data; said in every output."""
    counts = " / ".join(f"{len(part):,}" for part in parts) + " queries (train / valid / test)"
    if data == "yahoo":
        published = [queries for queries, _ in PUBLISHED_COUNTS.values()]
        note = "" if [*map(len, parts)] == published else ", not the published number"
        return f"Yahoo Set 1 from its files: {counts}{note}."
    if data == "stand-in":
        return (
            f"A Yahoo-shaped stand-in (yahoo_like, seed 0), not Yahoo's data: {counts}. "
            "Its recipe was tuned until linear models, networks and trees came in this "
            "order: the order is put in by design and is no evidence for the paper's Table 1."
        )
    return (
        f"MSLR-WEB10K Fold 1, the committed sample: {counts}, "
        "the first two a random split of 42 that goes with the seed."
    )
