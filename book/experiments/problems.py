"""The data of all experiments, as settings that a result file can name.

A problem of the group-fairness experiments gives the training and the test queries of a seed; its
readings: "Where the paper and its code differ", 16, 29 to 32. `RankingData` has the rankers' data.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import torch

from experiments.catalogue import (
    AGE_CODE,
    AGE_TEXT,
    CLIPPED_AT_4,
    CLIPPED_AT_5,
    SEX,
    SEX_CODE,
    SEX_TEXT,
    SEX_TEXT_FIXED,
    STARTED_WIDE,
    Variant,
    named,
)
from experiments.stand_in import yahoo_like
from experiments.yahoo_files import PUBLISHED_COUNTS, yahoo
from fairpg_lite.data import RankingDataset, german_credit, mslr_sample, synthetic
from fairpg_lite.sweeps import Splits

#: The versions of the synthetic data, by their highest relevance and the start of the weights.
VARIANT_BY_SETTINGS = {
    (5.0, 1e-3): CLIPPED_AT_5,
    (5.0, 0.707): STARTED_WIDE,
    (4.0, 1e-3): CLIPPED_AT_4,
}
#: Those of German Credit, by group, attributes, ratio, and whether persons are redrawn.
VARIANT_BY_GERMAN_SETTINGS = {
    ("sex", 20, "exact", True): SEX_TEXT,
    ("sex", 9, "weights", True): SEX_CODE,
    ("age", 20, "exact", True): AGE_TEXT,
    ("age", 9, "weights", True): AGE_CODE,
    ("sex", 20, "exact", False): SEX_TEXT_FIXED,
    ("sex", 9, "weights", False): SEX,
}
#: Test queries come from seeds this far from those of the training queries.
TEST_SEEDS = 1_000_000


@dataclass(frozen=True)
class SyntheticData:
    """The paper's synthetic queries; a seed draws training queries and as many test queries."""

    clip: float = 5.0
    """Highest relevance, 5 in the paper's text and 4 in the authors' run."""
    n_queries: int = 100
    start: float = 1e-3
    """Weights start within this distance of 0, .001, or the authors' .707, PyTorch's default."""

    @property
    def variant(self) -> Variant:
        """What these data are called."""
        return named(VARIANT_BY_SETTINGS, (self.clip, self.start))

    def load(self, seed: int) -> Splits:
        """The queries of a seed, in double precision."""
        parts = []
        for part_seed in (seed, TEST_SEEDS + seed):
            queries = synthetic(self.n_queries, seed=part_seed, clip=self.clip, dtype=torch.float64)
            parts.append(queries)
        return Splits(*parts)


@dataclass(frozen=True)
class GermanData:
    """German Credit as ranking queries of ten; the defaults are the authors' run. Chapter 12.

    Where persons are redrawn a seed splits the 1,000 persons and draws queries from both sides.
    """

    attributes: int = 9
    """9 as in the authors' run (29 features), or 20 as in the text (61)."""
    ratio: str = "weights"
    """What four to one means, "weights" of persons (authors) or "exact", 8 and 2 (text)."""
    split: str = "rows"
    """Which persons train, the first 800 "rows" (authors) or "random"."""
    group: str = "sex"
    """"sex" as recorded, or "age" (25 or younger)."""
    redrawn: bool = False
    """Whether a seed draws its own persons and queries, or all share those of seed 0."""
    n_train: int = 500
    n_test: int = 100
    start: float = 1e-3
    """Weights start within this distance of 0."""

    @property
    def variant(self) -> Variant:
        """What these data are called."""
        settings = (self.group, self.attributes, self.ratio, self.redrawn)
        return named(VARIANT_BY_GERMAN_SETTINGS, settings)

    def load(self, seed: int) -> Splits:
        """The queries of a seed, in double precision."""
        train, test = german_credit(
            seed if self.redrawn else 0,
            attributes=self.attributes,
            group=self.group,
            ratio=self.ratio,
            split=self.split,
            n_train=self.n_train,
            n_test=self.n_test,
            dtype=torch.float64,
        )
        return Splits(train, test)


#: What a method of the group-fairness experiments is run on.
GroupProblem = SyntheticData | GermanData


class Parts(NamedTuple):
    """What a ranker learns from, what its settings are chosen by, and what it is judged by."""

    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


@dataclass(frozen=True)
class RankingData:
    """The queries of Table 1 and Figure 2: Yahoo's, a stand-in for them, or an open sample."""

    data: str = "stand-in"
    """"yahoo", "stand-in" (2 GB), "mslr", or "mslr-splits", whose test queries are redrawn, too."""
    share: float = 1.0
    """Of each part, the first so many of its queries."""
    with_valid: bool = True
    """Whether training may look at the validation queries."""
    root: str | None = field(default=None, compare=False, kw_only=True)
    """Where Yahoo's files lie on this machine: no part of an experiment, and not stored. None is
    FAIRPG_YAHOO."""

    def parts(self, seed: int) -> Parts:
        """All three parts. A seed draws the validation queries of "mslr", all parts of
        "mslr-splits", and nothing elsewhere.
        """
        is_drawn = self.data in ("mslr", "mslr-splits")
        return load_parts(self.data, self.share, self.root, seed if is_drawn else 0)

    def load(self, seed: int) -> Splits:
        """The queries of a seed, as `fairpg_lite.sweeps.experiment.FairPGRank` wants them."""
        parts = self.parts(seed)
        return Splits(parts.train, parts.test, parts.valid if self.with_valid else None)

    def describe(self, seed: int) -> str:
        """The sentences that name the data; said in every output."""
        sizes = [len(part) for part in self.parts(seed)]
        counts = " / ".join(f"{size:,}" for size in sizes) + " queries (train / valid / test)"
        if self.data == "yahoo":
            published = [n_queries for n_queries, _ in PUBLISHED_COUNTS.values()]
            note = "" if sizes == published else ", not the published number"
            return f"Yahoo Set 1 from its files: {counts}{note}."
        if self.data == "stand-in":
            return (
                f"A Yahoo-shaped stand-in (yahoo_like, seed 0), not Yahoo's data: {counts}. "
                "Its recipe was tuned until linear models, networks and trees came in this "
                "order: the order is put in by design and is no evidence for the paper's Table 1."
            )
        if self.data == "mslr-splits":
            return (
                f"MSLR-WEB10K Fold 1, the committed sample: {counts}, "
                "a random split of all 84 that goes with the seed."
            )
        return (
            f"MSLR-WEB10K Fold 1, the committed sample: {counts}, "
            "the first two a random split of 42 that goes with the seed."
        )


@lru_cache(maxsize=2)
def load_parts(data: str, share: float, root: str | None = None, split_seed: int = 0) -> Parts:
    """The queries of `RankingData`, kept for the next call.

    Args:
        data: "yahoo", "stand-in", "mslr" or "mslr-splits".
        share: Of each part, the first so many of its queries.
        root: Where Yahoo's files lie; None is FAIRPG_YAHOO.
        split_seed: Which of MSLR's 42 training queries are set aside for validation, or how all
            84 are split.

    Returns:
        Training, validation and test queries.
    """
    if data == "stand-in":
        return _stand_in(share)
    if data == "yahoo":
        train, valid, test = yahoo(root)
    elif data == "mslr-splits":
        train, valid, test = _split_anew(split_seed)
    else:
        both, test = mslr_sample(dtype=torch.float64)
        train, valid = both.split((32 / 42, 10 / 42), seed=split_seed)
    # Consecutive queries, so views and not copies.
    return Parts(
        train[: share_of(len(train), share)],
        valid[: share_of(len(valid), share)],
        test[: share_of(len(test), share)],
    )


def _split_anew(seed: int) -> Parts:
    """All 84 queries of the sample in a new order: 32 to train, 10 to validate, 42 to test."""
    given = mslr_sample(dtype=torch.float64)
    first, second = given
    pool = RankingDataset(
        torch.cat([part.features for part in given]),
        torch.cat([part.relevance for part in given]),
        torch.cat([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        info=first.info,
    )
    return Parts(*pool.split((32 / 84, 10 / 84, 42 / 84), seed=seed))


def _stand_in(share: float) -> Parts:
    """The stand-in with a share of the published numbers of queries."""
    parts = {}
    for part, (n_queries, _) in PUBLISHED_COUNTS.items():
        parts[part] = yahoo_like(share_of(n_queries, share), part=part)
    return Parts(**parts)


def share_of(n_queries: int, share: float) -> int:
    """How many queries a share is: rounded, and no fewer than 20 where there are so many."""
    return min(n_queries, max(20, round(n_queries * share)))
