"""The data of chapters 10 and 11: Yahoo's files, their stand-in, or the MSLR sample.

A process loads them once however many cells it runs. The two large sources are memory-mapped, so
that workers on one machine share one copy.
"""

from functools import lru_cache
from typing import NamedTuple

import torch

from experiments.stand_in import yahoo_like
from fairpg_lite.data import RankingDataset, mslr_sample, yahoo
from fairpg_lite.data.sets import PUBLISHED_COUNTS, remembered, user_cache_directory

#: The stand-in's world; a constant, so that all numbers on "the stand-in" are of the same data.
STAND_IN_SEED = 0
#: Below this a stand-in is made anew in memory (70 MB); above it, once, on disk.
IN_MEMORY = 1000
#: A share of the queries never leaves fewer than this, or than there are.
FEWEST = 20
MSLR_VALID = 10


class Parts(NamedTuple):
    """What a ranker learns from, what its settings are chosen by, and what it is judged by."""

    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset


@lru_cache(maxsize=2)
def load_parts(
    data: str, share: float, check_counts: bool, root: str | None, split_seed: int = 0
) -> Parts:
    """The first ``share`` of the queries of "yahoo" (in ``root``), "stand-in" or "mslr".

    ``check_counts`` refuses files of Yahoo with other than the published counts; ``split_seed``
    says which of MSLR's 42 training queries are set aside for validation.
    """
    if data == "stand-in":
        counts = {part: share_of(queries, share) for part, (queries, _) in PUBLISHED_COUNTS.items()}
        return Parts(*(stand_in(part, queries) for part, queries in counts.items()))
    if data == "yahoo":
        expected = PUBLISHED_COUNTS if check_counts else None
        parts = Parts(*yahoo(root, expected_counts=expected, progress=False))
    elif data == "mslr":
        train, test = mslr_sample(dtype=torch.float64)
        kept = (len(train) - MSLR_VALID) / len(train)
        train, valid = train.split((kept, 1 - kept), seed=split_seed)
        parts = Parts(train, valid, test)
    else:
        raise ValueError(f"load_parts: data is {data!r}; choose one of yahoo, stand-in, mslr.")
    # Consecutive queries, so views and not copies.
    return Parts(*(part[: share_of(len(part), share)] for part in parts))


def share_of(queries: int, share: float) -> int:
    """How many queries a share is: rounded, and no fewer than FEWEST where there are so many.

    >>> share_of(19_944, 0.05), share_of(40, 0.05), share_of(6, 0.05)
    (997, 20, 6)
    """
    return min(queries, max(FEWEST, round(queries * share)))


def stand_in(part: str, queries: int) -> RankingDataset:
    """The stand-in; if large, from the user's cache, memory-mapped, and stored there if absent.

    The cache counts as current if ``yahoo_like`` makes the same first queries today. Full size
    takes 2 GB on disk. Where it cannot be stored, a warning says so and the data stay in this
    process's memory.
    """
    if queries <= IN_MEMORY:
        return yahoo_like(queries, STAND_IN_SEED, part=part)
    return remembered(
        user_cache_directory() / f"stand-in-seed{STAND_IN_SEED}" / f"{part}-{queries}.safetensors",
        yahoo_like(FEWEST, STAND_IN_SEED, part=part).fingerprint(),
        lambda: yahoo_like(queries, STAND_IN_SEED, part=part),
    )


def describe(data: str, parts: Parts) -> str:
    """The sentences that name the data; said in every output."""
    counts = " / ".join(f"{len(part):,}" for part in parts) + " queries (train / valid / test)"
    if data == "yahoo":
        published = [queries for queries, _ in PUBLISHED_COUNTS.values()]
        note = "" if [*map(len, parts)] == published else ", not the published number"
        return f"Yahoo Set 1 from its files: {counts}{note}."
    if data == "stand-in":
        return (
            f"A Yahoo-shaped stand-in (yahoo_like, seed {STAND_IN_SEED}), not Yahoo's data: "
            f"{counts}. Its recipe was tuned until linear models, networks and trees came in this "
            "order: the order is put in by design and is no evidence for the paper's Table 1."
        )
    return (
        f"MSLR-WEB10K Fold 1, the committed sample: {counts}, "
        "the first two a random split of 42 that goes with the seed."
    )
