"""Which demands are one demand? Train for each, judge by all (chapter 15).

Every demand is a disparity of `fairpg_lite.measures`. A row of the matrix is a policy that was
trained for one of them, a column is what it is judged by. All rows pay the same price: each gives
up `PRICE` of what PG-Rank has learnt, the way from the NDCG of the uniform policy to that of
PG-Rank. Lambda is doubled until validation queries say that so much is gone, and the last two
policies are mixed so that it is exactly so much there. Test queries judge, and are used for nothing
else. The row "mixed" is PG-Rank mixed with random lists at the same price: what a demand gets from
more randomness, without being asked for.

A repetition draws everything anew: queries (synthetic), persons and queries (german), which queries
train, choose and judge (mslr).

examples:
  python -m experiments.demands
  python -m experiments.demands --data synthetic --repetitions 2 --out /tmp/demands

Each run is a file below OUT until all are there and become one table, so a stopped call goes on
where it was. About 20 minutes on one core.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import t
from torch import Tensor

from experiments.problems import Parts
from fairpg_lite import LinearScorer, PlackettLuce, TrainConfig, expected_ndcg, fit
from fairpg_lite.cli import options, run_command
from fairpg_lite.cli.output import DONE, FAILED, INTERRUPTED, say, shows_progress
from fairpg_lite.data import RankingDataset, german_credit, mslr_sample, synthetic
from fairpg_lite.measures import DISPARITIES
from fairpg_lite.sweeps import Cell, collect, run_cells

PROGRAM = "python -m experiments.demands"
ROOT = Path(__file__).resolve().parents[2]
#: The share of PG-Rank's lead over the uniform policy that every row gives up.
PRICE = 0.1
#: Rows that are no demands.
CONTROLS = ("pg_rank", "mixed")
#: The demands, sorted by what they look at.
FAMILIES = {
    "groups": ("d_group", "group_gap", "parity", "clicks", "awrf"),
    "exposure against merit": ("d_ind", "gini", "inequity"),
    "concentration": ("ee_d", "nash", "gini_welfare", "envy", "dominance"),
    "an ideal": ("ee_l",),
}
#: What is trained for, and what is judged by.
DEMANDS = tuple(name for family in FAMILIES.values() for name in family)
#: Draws of repetitions for the intervals of `matrix`.
RESAMPLES = 2000
DATA = ("synthetic", "german", "mslr")
#: Lambdas at most, each twice the one before; a demand that is met for less stays below the price.
DOUBLINGS = 10
#: Repetitions, as published: as many as half an hour of one core allows.
REPETITIONS = {"synthetic": 24, "german": 13, "mslr": 5}
DESCRIPTION = (
    "synthetic: fairpg_lite.synthetic, 100 / 200 / 400 fresh queries (train / valid / test) in "
    "every repetition. german: German Credit (Statlog; Hofmann 1994, doi 10.24432/C5NC77, "
    "CC BY 4.0), 600 / 200 / 200 persons split anew, queries of ten drawn from them. mslr: the "
    "committed sample of MSLR-WEB10K Fold 1, 84 queries split anew into 36 / 12 / 36, groups by "
    "SiteRank above the median of the query."
)
# Queries that are judged together.
_JUDGED_AT_ONCE = 20
# SiteRank, number 131 of the 136 features, counted from 0.
_SITE_RANK = 130


@dataclass(frozen=True)
class Training:
    """How a policy is trained, at every lambda alike."""

    batch_size: int
    epochs: int
    lr: float = 0.1


#: Few documents: all queries at once. MSLR: queries of similar length together.
TRAININGS = {
    "synthetic": Training(batch_size=100, epochs=60),
    "german": Training(batch_size=100, epochs=30),
    "mslr": Training(batch_size=6, epochs=8),
}


class Learned(NamedTuple):
    """A policy on the way: its scorer, and its NDCG on the validation queries."""

    scorer: LinearScorer
    valid_ndcg: float


@dataclass(frozen=True)
class Demand:
    """One row of the matrix on one data set, as an experiment; ``lam`` is not looked at."""

    data: str
    """One of `DATA`."""
    demand: str
    """One of `DEMANDS` or `CONTROLS`."""
    price: float = PRICE

    @property
    def name(self) -> str:
        """The name of its results."""
        return f"{self.data}-{self.demand}"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        """Train at the price, and judge by every column on the test queries.

        Args:
            lam: Not looked at.
            seed: The repetition.

        Returns:
            NDCG and all disparities on the test queries; "lam_found", where lambda ended; and
            "paid", the share of PG-Rank's lead that was given up on the validation queries.
        """
        parts = load(self.data, seed)
        pg_rank = learned_pg_rank(self.data, seed)
        uniform = _uniform(parts)
        lead = pg_rank.valid_ndcg - uniform.valid_ndcg
        if self.demand == "pg_rank":
            first = pg_rank
            second = pg_rank
            weight = 0.0
            lam_found = 0.0
        elif self.demand == "mixed":
            first = pg_rank
            second = uniform
            weight = self.price
            lam_found = 0.0
        else:
            target = pg_rank.valid_ndcg - self.price * lead
            first, second, lam_found = self._path(parts, pg_rank, uniform, target)
            weight = _weight_of_second(first, second, target)
        mixed_ndcg = (1 - weight) * first.valid_ndcg + weight * second.valid_ndcg
        exposures = mixed_exposure(first.scorer, second.scorer, weight, parts.test)
        return {
            **judged(exposures, parts.test),
            "lam_found": lam_found,
            "paid": (pg_rank.valid_ndcg - mixed_ndcg) / lead,
        }

    def _path(
        self, parts: Parts, pg_rank: Learned, uniform: Learned, target: float
    ) -> tuple[Learned, Learned, float]:
        """The last policy above the target, the first below it, and the latter's lambda."""
        first = pg_rank
        second = pg_rank
        lam = self._first_lam(parts, pg_rank, uniform)
        for doubling in range(DOUBLINGS):
            lam_now = lam * 2**doubling
            first = second
            second = _trained(parts, self.data, self.demand, lam_now)
            if second.valid_ndcg < target:
                break
        return first, second, lam_now

    def _first_lam(self, parts: Parts, pg_rank: Learned, uniform: Learned) -> float:
        """Half of the price per disparity that lies between PG-Rank and the uniform policy.

        In units of the data, so that every demand begins below the price.
        """
        values = []
        for policy in (pg_rank, uniform):
            exposures = mixed_exposure(policy.scorer, policy.scorer, 0.0, parts.train)
            values.append(judged(exposures, parts.train)[self.demand])
        price = self.price * (pg_rank.valid_ndcg - uniform.valid_ndcg)
        return price / max(abs(values[0] - values[1]), 1e-3) / 2


def _weight_of_second(first: Learned, second: Learned, target: float) -> float:
    """How much of ``second`` to mix in so that NDCG is the target; all of it if it is above."""
    if second.valid_ndcg >= target:
        return 1.0
    return (first.valid_ndcg - target) / (first.valid_ndcg - second.valid_ndcg)


@lru_cache(maxsize=4)
def learned_pg_rank(data: str, seed: int) -> Learned:
    """PG-Rank of a repetition, trained once for all rows."""
    return _trained(load(data, seed), data, None, 0.0)


def _uniform(parts: Parts) -> Learned:
    """The policy of equal scores."""
    scorer = LinearScorer(parts.train.n_features, init=0.0, dtype=torch.float64)
    return Learned(scorer, valid_ndcg(scorer, parts))


def _trained(parts: Parts, data: str, demand: str | None, lam: float) -> Learned:
    """A policy trained from equal scores by the exact gradient, as long as all others."""
    training = TRAININGS[data]
    scorer = LinearScorer(parts.train.n_features, init=0.0, dtype=torch.float64)
    config = TrainConfig(
        disparity=demand,
        lam=lam,
        method="exact",
        batch_size=training.batch_size,
        epochs=training.epochs,
        lr=training.lr,
        compiled=False,
    )
    fit(scorer, parts.train, config, progress=False)
    return Learned(scorer, valid_ndcg(scorer, parts))


def mixed_exposure(
    first: LinearScorer, second: LinearScorer, weight: float, dataset: RankingDataset
) -> list[Tensor]:
    """Expected exposure under a mixture of two policies.

    Args:
        first: The scorer of one.
        second: That of the other.
        weight: Its share.
        dataset: The queries.

    Returns:
        ``(B, n)`` of each batch of `judged`.
    """
    exposures = []
    for batch in dataset.batches(_JUDGED_AT_ONCE):
        with torch.no_grad():
            exposure = PlackettLuce(first(batch.features), batch.mask).exposure()
            if weight > 0:
                other = PlackettLuce(second(batch.features), batch.mask).exposure()
                exposure = (1 - weight) * exposure + weight * other
        exposures.append(exposure)
    return exposures


def judged(exposures: Sequence[Tensor], dataset: RankingDataset) -> dict[str, float]:
    """NDCG and every disparity, means over queries; one without an answer counts as in training.

    Args:
        exposures: What `mixed_exposure` returned for the dataset.
        dataset: The queries.

    Returns:
        The means by name.
    """
    values: dict[str, list[Tensor]] = {name: [] for name in ("ndcg", *DEMANDS)}
    for exposure, batch in zip(exposures, dataset.batches(_JUDGED_AT_ONCE), strict=True):
        values["ndcg"].append(expected_ndcg(exposure, batch.relevance, mask=batch.mask))
        for name in DEMANDS:
            value = DISPARITIES[name](exposure, batch.relevance, batch.groups, batch.mask)
            values[name].append(value)
    return {name: float(torch.cat(parts).mean()) for name, parts in values.items()}


def valid_ndcg(scorer: LinearScorer, parts: Parts) -> float:
    """Mean NDCG of a policy on the validation queries."""
    total = 0.0
    for batch in parts.valid.batches(_JUDGED_AT_ONCE):
        with torch.no_grad():
            exposure = PlackettLuce(scorer(batch.features), batch.mask).exposure()
        total += float(expected_ndcg(exposure, batch.relevance, mask=batch.mask).sum())
    return total / len(parts.valid)


@lru_cache(maxsize=4)
def load(data: str, seed: int) -> Parts:
    """Training, validation and test queries of a repetition.

    Args:
        data: One of `DATA`.
        seed: The repetition.

    Returns:
        The three parts, in double precision and with groups.
    """
    if data == "synthetic":
        first_seed = 10_000 + 3 * seed
        return Parts(
            train=synthetic(100, seed=first_seed, dtype=torch.float64),
            valid=synthetic(200, seed=first_seed + 1, dtype=torch.float64),
            test=synthetic(400, seed=first_seed + 2, dtype=torch.float64),
        )
    if data == "german":
        return _german(seed)
    return _mslr(seed)


def _german(seed: int) -> Parts:
    """Of 1,000 persons 600 are trained on, 200 choose and 200 judge; nobody is in two parts."""
    drawn, test = german_credit(
        10_000 + seed,
        attributes=9,
        ratio="weights",
        split="random",
        n_train=3000,
        n_test=200,
        dtype=torch.float64,
    )
    # Every person of the training side, once.
    assert drawn.document_ids is not None
    _, first_row = np.unique(drawn.document_ids.numpy(), return_index=True)
    generator = np.random.default_rng([seed, 15])
    persons = generator.permutation(first_row)
    valid = _queries_of_persons(drawn, persons[:200], 200, generator)
    train = _queries_of_persons(drawn, persons[200:], 100, generator)
    return Parts(train, valid, test)


def _queries_of_persons(
    drawn: RankingDataset, rows: np.ndarray, n_queries: int, generator: np.random.Generator
) -> RankingDataset:
    """Queries of ten of these persons, drawn as `german_credit` does with ratio="weights"."""
    assert drawn.groups is not None
    weights = np.where(drawn.relevance[rows].numpy() > 0, 0.2, 0.8)
    chosen = generator.choice(rows, size=10 * n_queries, p=weights / weights.sum())
    return RankingDataset(
        drawn.features[chosen],
        drawn.relevance[chosen],
        torch.arange(0, 10 * n_queries + 1, 10),
        groups=drawn.groups[chosen],
    )


def _mslr(seed: int) -> Parts:
    """The sample's 84 queries, 36 to train, 12 to choose and 36 to judge.

    Group 1 are documents whose SiteRank is above the median of their query.
    """
    both = RankingDataset.concat(mslr_sample(dtype=torch.float64))
    groups = []
    for query in both:
        site_rank = query.features[:, _SITE_RANK]
        groups.append((site_rank > site_rank.median()).long())
    both = both.replace(groups=torch.cat(groups))
    return Parts(*both.split((36 / 84, 12 / 84, 36 / 84), seed=10_000 + seed))


def plan(
    data: Sequence[str] = DATA,
    repetitions: Mapping[str, int] | None = None,
    rows: Sequence[str] = (*CONTROLS, *DEMANDS),
) -> list[Cell]:
    """All runs, repetition by repetition, so that a stopped one has whole matrices.

    Args:
        data: Some of `DATA`.
        repetitions: How many of each; None is `REPETITIONS`.
        rows: Some of `CONTROLS` and `DEMANDS`.

    Returns:
        The cells.
    """
    repetitions = repetitions or REPETITIONS
    cells = []
    for name in data:
        for seed in range(repetitions[name]):
            cells += [Cell(Demand(name, row), 0.0, seed) for row in rows]
    return cells


class Matrix(NamedTuple):
    """How much of each demand's own improvement every row brings, on one data set."""

    rows: tuple[str, ...]
    """R names: "mixed", then `DEMANDS`."""
    columns: tuple[str, ...]
    """C names, `DEMANDS`."""
    share: np.ndarray
    """``(R, C)``; 1 is as much as training for the column itself."""
    low: np.ndarray
    """Lower ends ``(R, C)`` of 95 % bootstrap intervals over repetitions."""
    high: np.ndarray
    """Their upper ends."""
    is_gained: np.ndarray
    """``(C,)``, whether training for a demand lowers it on the test queries: whether the 95 %
    interval of the mean (Student's t, over repetitions) is above zero. If not, shares of it mean
    nothing."""
    repetitions: int

    @property
    def gained(self) -> list[str]:
        """The columns that gain by their own training."""
        return [c for c, gains in zip(self.columns, self.is_gained, strict=True) if gains]

    @property
    def lost(self) -> list[str]:
        """Those that do not."""
        return [c for c in self.columns if c not in self.gained]


def matrix(records: Iterable[Mapping[str, Any]], data: str) -> Matrix:
    """The matrix of one data set.

    Args:
        records: Stored runs, as `fairpg_lite.sweeps.load_cells` returns them.
        data: One of `DATA`.

    Returns:
        Shares of improvement. With b the value of PG-Rank and x that of a row, both in one
        repetition, the improvement is b - x; a share is a ratio of means over repetitions.
    """
    results: dict[tuple[str, int], Mapping[str, float]] = {}
    for record in records:
        results[record["experiment"], record["seed"]] = record["result"]
    columns = DEMANDS
    rows = ("mixed", *columns)
    seeds = sorted({seed for name, seed in results if name == f"{data}-pg_rank"})
    improvement = np.empty((len(seeds), len(rows), len(columns)))
    for s, seed in enumerate(seeds):
        before = results[f"{data}-pg_rank", seed]
        for r, row in enumerate(rows):
            after = results[f"{data}-{row}", seed]
            for c, column in enumerate(columns):
                improvement[s, r, c] = before[column] - after[column]
    own = np.stack([improvement[:, 1 + c, c] for c in range(len(columns))], axis=1)
    half_width = t.ppf(0.975, len(seeds) - 1) * own.std(0, ddof=1) / np.sqrt(len(seeds))
    is_gained = own.mean(0) > half_width
    draws = np.random.default_rng(0).integers(0, len(seeds), (RESAMPLES, len(seeds)))
    redrawn = improvement[draws].mean(1) / own[draws].mean(1)[:, None, :]
    low, high = np.quantile(redrawn, [0.025, 0.975], axis=0)
    share = improvement.mean(0) / own.mean(0)
    return Matrix(rows, columns, share, low, high, is_gained, len(seeds))


def make_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = options.Parser(prog=PROGRAM, description=__doc__)
    parser.add_argument(
        "--data", nargs="+", choices=DATA, default=list(DATA), help="which (default: all)"
    )
    parser.add_argument(
        "--repetitions",
        type=options.count,
        metavar="X",
        help=f"of each data set (default {REPETITIONS})",
    )
    options.add_results(parser, "results/demands")
    options.add_quiet(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run what is missing, and write the table."""
    out = Path(args.out or os.path.relpath(ROOT / "results" / "demands"))
    repetitions = None
    if args.repetitions:
        repetitions = dict.fromkeys(DATA, args.repetitions)
    cells = plan(args.data, repetitions)
    say(args, f"demands: {len(cells)} cells, in {out}")
    try:
        records = run_cells(cells, out, overwrite=args.overwrite, progress=shows_progress(args))
    except KeyboardInterrupt:
        say(args, f"interrupted; the finished cells are kept in {out}.")
        return INTERRUPTED
    failed = [record for record in records if record["status"] != "done"]
    command = PROGRAM if not args.repetitions else f"{PROGRAM} --repetitions {args.repetitions}"
    print(collect(out, about={"command": command, "data": DESCRIPTION}))
    return FAILED if failed else DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    return run_command(make_parser(), argv)


if __name__ == "__main__":
    sys.exit(main())
