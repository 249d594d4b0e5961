"""Fair-PG-Rank trained on clicks alone, against the one trained on labels (chapter 17).

An old ranker shows lists drawn from its Plackett-Luce policy; users look at position j with
probability 1/log2(1 + j) and click with the relevance as probability. The learner sees the lists
and the clicks. It puts estimates in the place of the labels, for the utility and for the merit:
clicks over the exact expected exposure of the old policy ("weighted"), or over the exposure that
all documents of the query would have if they were shown alike ("rate", clicks per list but for a
factor).
All are judged by the labels of queries that nobody trained on.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from experiments.cells import Cells
from fairpg_lite import (
    LinearScorer,
    PlackettLuce,
    RankingDataset,
    TrainConfig,
    evaluate,
    fit,
    mslr_sample,
    position_bias,
    synthetic,
)
from fairpg_lite.sweeps import Cell, Splits, grid

#: What the summary shows.
COLUMNS = {
    "ndcg": "NDCG",
    "d_group": "D_group",
    "d_ind": "D_ind",
    "seen_disparity": "disparity on the estimates",
}
#: Where relevance and merit come from.
SOURCES = ("labels", "weighted", "rate")
#: Lists logged for each training query.
LISTS = (100,)
#: PG-Rank, and one price for each kind of data, which lowers the disparity by about a half.
SYNTHETIC_LAMS = (0.0, 5.0)
MSLR_LAMS = (0.0, 10.0)
#: Of MSLR's 136 features, the one that the old ranker sorts by: BM25 of the whole document.
BM25 = 109


@dataclass(frozen=True)
class FromClicks:
    """Fair-PG-Rank, its relevance and merit taken from clicks or from labels."""

    data: str
    """"synthetic", with D_group, or "mslr", with D_ind."""
    source: str
    """One of `SOURCES`."""
    lists: int
    """Lists logged for each training query; 0 with labels."""
    epochs: int

    @property
    def name(self) -> str:
        """The name of its results."""
        if self.source == "labels":
            return f"labels-{self.data}"
        return f"{self.source}-{self.lists}-{self.data}"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        """Log, estimate, train and judge.

        Args:
            lam: The price of the disparity.
            seed: Draws queries, log, start and training.

        Returns:
            NDCG and disparities on the test queries by their labels; and the disparity that the
            learner sees on its training queries, by its own estimates.
        """
        splits = load(self.data, seed)
        train = splits.train
        if self.source != "labels":
            draws = torch.Generator().manual_seed(seed)
            clicks, exposure = log_of(train, old_scores(self.data, train), self.lists, draws)
            if self.source == "rate":
                exposure = mean_exposure(train)
            train = train.replace(relevance=clicks / (self.lists * exposure))
        start = torch.Generator().manual_seed(seed)
        scorer = LinearScorer(train.n_features, generator=start, dtype=torch.float64)
        fit(scorer, train, settings(self.data, lam, seed, self.epochs), progress=False)
        measures = ("ndcg", "d_ind") if train.groups is None else ("ndcg", "d_group", "d_ind")
        found = evaluate(scorer, splits.test, measures, gain="linear")
        disparity = "d_ind" if train.groups is None else "d_group"
        seen = evaluate(scorer, train, (disparity,))
        return {**found.means, "seen_disparity": seen.means[disparity]}


def load(data: str, seed: int) -> Splits:
    """Training and test queries whose relevance is the probability of a click when seen.

    Args:
        data: "synthetic", drawn by the seed; or "mslr", whose 84 queries are split by it.
        seed: Of the draw or the split.

    Returns:
        Both in double precision, relevance between 0 and 1.
    """
    if data == "synthetic":
        train = synthetic(100, seed=2 * seed, dtype=torch.float64)
        test = synthetic(200, seed=2 * seed + 1, dtype=torch.float64)
        return Splits(_as_probabilities(train, 5.0), _as_probabilities(test, 5.0))
    first, second = mslr_sample(dtype=torch.float64)
    halves = RankingDataset.concat([first, second]).split((0.5, 0.5), seed=seed)
    return Splits(*(_as_probabilities(half, 4.0) for half in halves))


def _as_probabilities(dataset: RankingDataset, most: float) -> RankingDataset:
    """The dataset with its grades over the highest one."""
    return dataset.replace(relevance=dataset.relevance / most)


def old_scores(data: str, dataset: RankingDataset) -> Tensor:
    """The scores ``(N,)`` of the ranker that made the log.

    On synthetic data x2, which is 0 for the whole minority; on MSLR ten times BM25.
    """
    if data == "synthetic":
        return dataset.features[:, 1]
    return 10.0 * dataset.features[:, BM25]


def log_of(
    dataset: RankingDataset, scores: Tensor, lists: int, draws: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw lists from a Plackett-Luce policy and clicks on them.

    Args:
        dataset: Queries whose relevance is the probability of a click when seen.
        scores: ``(N,)``, of the policy.
        lists: How many for each query.
        draws: Where lists and clicks come from.

    Returns:
        The clicks on each document ``(N,)``, and its expected exposure ``(N,)`` under the policy.
    """
    clicks = []
    exposures = []
    for query, of_query in zip(dataset, scores.split(dataset.lengths.tolist()), strict=True):
        policy = PlackettLuce(of_query)
        rankings = policy.sample((lists,), generator=draws)
        chance = position_bias(len(of_query), dtype=torch.float64) * query.relevance[rankings]
        is_clicked = torch.rand(chance.shape, generator=draws, dtype=torch.float64) < chance
        counts = torch.zeros(len(of_query), dtype=torch.float64)
        counts.index_add_(0, rankings.reshape(-1), is_clicked.double().reshape(-1))
        clicks.append(counts)
        exposures.append(policy.exposure())
    return torch.cat(clicks), torch.cat(exposures)


def mean_exposure(dataset: RankingDataset) -> Tensor:
    """What each document ``(N,)`` would get if all of its query were shown alike."""
    parts = []
    for length in dataset.lengths.tolist():
        mean = position_bias(length, dtype=torch.float64).mean()
        parts.append(mean.expand(length))
    return torch.cat(parts)


def settings(data: str, lam: float, seed: int, epochs: int) -> TrainConfig:
    """How both kinds of data are trained; DCG is linear in relevance, which NDCG is not."""
    if data == "synthetic":
        return TrainConfig(
            lam=lam, disparity="d_group", utility="dcg", gain="linear",
            epochs=epochs, lr=0.1, lr_decay=0.5, samples=10, seed=seed,
        )  # fmt: skip
    return TrainConfig(
        lam=lam, disparity="d_ind", utility="dcg", gain="linear",
        epochs=epochs, lr=0.01, samples=10, seed=seed,
    )  # fmt: skip


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """All cells; 20 repetitions on synthetic data and 10 on MSLR by default."""
    repetitions = {"synthetic": 20, "mslr": 10}
    epochs = {"synthetic": 1 if quick else 5, "mslr": 1 if quick else 20}
    cells = []
    for data, lams in (("mslr", MSLR_LAMS), ("synthetic", SYNTHETIC_LAMS)):
        runs = range(seeds or (2 if quick else repetitions[data]))
        cells += grid(FromClicks(data, "labels", 0, epochs[data]), lams, runs)
        for source in ("weighted", "rate"):
            for lists in LISTS:
                cells += grid(FromClicks(data, source, lists, epochs[data]), lams, runs)
    return cells


def describe_data(cells: Cells) -> str:
    """The sentence that names the data."""
    return (
        "Clicks simulated on lists of an old ranker: the paper's synthetic queries (100 to train, "
        "200 fresh ones to judge, drawn by the seed), and the sample of MSLR-WEB10K (84 queries, "
        "split in halves by the seed); relevance over the highest grade is the probability of a "
        "click when seen."
    )
