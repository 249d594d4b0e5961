"""How often is a certified budget broken, and what does the certificate cost (chapter 14)?

`python -m experiments.certificates` makes populations of queries with paths of policies, draws
calibration queries from them 2,000 times, and writes results/certificates: table.csv (choosing a
policy), bounds.csv (bounding one policy), and table.json, which says what made them. Some four
minutes on one core. Every population is a file of its own below cells/, so a stopped run goes on
where it was.

Three paths, from the fairest policy to the most useful one. *Prices* are Fair-PG-Rank at falling
lambda. *Temperatures* are PG-Rank's scores divided by falling numbers. *Thresholds* are the rival,
after Guo, Ton, Liu and Li (arXiv 2306.07188): the next document is drawn from the softmax of a
given ranker, but only among documents whose probability there reaches a threshold; so 0 is
Plackett-Luce and 1 a sorted list. The paper controls the risk of losing utility (its third version:
utility or fairness) with the bounds of distribution-free risk control; here they bound disparity,
by the Hoeffding-Bentkus bound. We have read its abstracts and not its code: that the threshold is
on the probability among those left, and one for all positions, is our reading.
"""

import argparse
import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.stats import binom, norm
from torch import Tensor

import fairpg_lite as fl
from fairpg_lite.batch import Batch
from fairpg_lite.betting import betting_bound, log_capital
from fairpg_lite.data.german import CREDIT, SEX, encode, german_rows
from fairpg_lite.scorers import Scorer
from fairpg_lite.sweeps.provenance import commit, versions
from fairpg_lite.training.certificate import largest_disparity

STORED = Path(__file__).resolve().parents[2] / "results" / "certificates"
COMMAND = "python -m experiments.certificates"
#: Populations of each kind, and calibration sets drawn from each.
POPULATIONS = 4
DRAWS = 500
#: Queries in a population; the rival's policies are costlier, and judged on the first of them.
SIZE = 2_000
RIVAL_SIZE = 500
#: Queries of other persons than those of the population.
OTHERS_SIZE = 1_000
SIZES = (100, 300, 1_000, 3_000)
ALPHAS = (0.05, 0.1)
DELTAS = {"synthetic": (0.006, 0.01), "german": (0.01, 0.02)}
LAMS = {
    "synthetic": (60, 40, 30, 25, 20, 17, 14, 12, 10, 9, 8, 7, 6, 5, 4, 2, 0),
    "german": (50, 25, 16, 12, 10, 8, 6, 4, 2, 1, 0),
}
TEMPERATURES = tuple(2 ** (k / 4) for k in range(14, -4, -1))
THRESHOLDS = (0.0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.2, 1.0)
#: The policy whose bounds bounds.csv has.
BOUNDED_LAM = {"synthetic": 25, "german": 8}


class PathResult(NamedTuple):
    """Policies from the fairest to the most useful, on all queries of a population."""

    d_group: np.ndarray
    """``(P, N)``, of each policy and query."""
    ndcg: np.ndarray
    """``(P,)``, means."""


# Populations


def german_persons(seed: int) -> dict[str, np.ndarray]:
    """A thousand persons, drawn with replacement from the file, in three parts that share none."""
    rows = german_rows()
    generator = np.random.default_rng([seed, 3])
    order = generator.permutation(len(rows))
    parts = np.split(order, [400, 700])
    names = ("train", "calibration", "others")
    return {
        name: generator.choice(part, len(part)) for name, part in zip(names, parts, strict=True)
    }


def german_queries(
    persons: np.ndarray, training: np.ndarray, n: int, seed: int
) -> fl.RankingDataset:
    """Queries of ten of these persons, drawn with the weights of the authors' notebook."""
    rows = german_rows()
    features, _ = encode(rows, 9, training)
    is_good = np.array([row[CREDIT] == "1" for row in rows])
    is_female = np.array([row[SEX] in ("A92", "A95") for row in rows])
    weights = np.where(is_good[persons], 0.2, 0.8)
    drawn = np.random.default_rng([seed, 4]).choice(persons, 10 * n, p=weights / weights.sum())
    return fl.RankingDataset(
        torch.from_numpy(features[drawn]),
        torch.from_numpy(is_good[drawn]).double(),
        torch.arange(0, 10 * n + 1, 10),
        groups=torch.from_numpy(is_female[drawn]).long(),
    )


def data_of(kind: str, seed: int) -> dict[str, fl.RankingDataset]:
    """Training queries, the population, and for German Credit that of other persons."""
    if kind == "synthetic":
        return {
            "train": fl.synthetic(100, seed=seed, dtype=torch.float64),
            "calibration": fl.synthetic(SIZE, seed=1_000_000 + seed, dtype=torch.float64),
        }
    persons = german_persons(seed)
    sizes = {"train": 500, "calibration": SIZE, "others": OTHERS_SIZE}
    return {
        name: german_queries(persons[name], persons["train"], size, 10 * seed + number)
        for number, (name, size) in enumerate(sizes.items())
    }


# Policies


def trained(kind: str, train: fl.RankingDataset, lam: float, seed: int) -> fl.LinearScorer:
    """A linear scorer by exact Fair-PG-Rank at a price."""
    generator = torch.Generator().manual_seed(seed)
    scorer = fl.LinearScorer(train.n_features, dtype=torch.float64, generator=generator)
    shared = fl.TrainConfig(method="exact", lam=float(lam), seed=seed)
    if kind == "synthetic":  # the authors' schedule
        config = dataclasses.replace(shared, lr=0.1, lr_decay=0.5, epochs=5)
    else:
        config = dataclasses.replace(shared, lr=0.05, epochs=10, batch_size=50)
    fl.fit(scorer, train, config, progress=False)
    return scorer


@torch.no_grad()
def path_of(rankers: Sequence[Scorer], queries: fl.RankingDataset) -> PathResult:
    """What a path of rankers does on queries."""
    judged = [fl.evaluate(ranker, queries, ("ndcg", "d_group")) for ranker in rankers]
    d_group = np.stack([one.per_query["d_group"].numpy() for one in judged])
    return PathResult(d_group, np.array([one.ndcg for one in judged]))


def thresholded_exposure(scores: Tensor, threshold: float) -> Tensor:
    """Exposure of drawing the next only among documents whose probability reaches a threshold.

    The next draw depends on which documents are placed, not on their order, so all orders of a set
    are followed together: 2^n sets instead of n! lists.

    Args:
        scores: ``(Q, n)``; n up to about 12.
        threshold: From 0, which is Plackett-Luce, to 1, which is sorting.

    Returns:
        ``(Q, n)``, exact.
    """
    queries, n = scores.shape
    bias = fl.position_bias(n, dtype=scores.dtype)
    # Documents first: what is added to is then a row, which lies in one piece.
    weights = (scores - scores.amax(-1, keepdim=True)).exp().T.contiguous()
    exposure = torch.zeros_like(weights)
    chance = torch.zeros(2**n, queries, dtype=scores.dtype)
    chance[0] = 1.0
    for placed in range(2**n - 1):  # a set has a smaller number than those that contain it
        left = [i for i in range(n) if not placed >> i & 1]
        probability = weights[left] / weights[left].sum(0)
        is_allowed = (probability >= threshold) | (probability >= probability.amax(0))
        allowed = probability * is_allowed
        step = chance[placed] * allowed / allowed.sum(0)
        exposure[left] += bias[n - len(left)] * step
        for row, document in enumerate(left):
            chance[placed | 1 << document] += step[row]
    exposure = exposure.T
    return exposure


@torch.no_grad()
def thresholds_path(scores: Tensor, queries: fl.RankingDataset) -> PathResult:
    """The rival's path on queries that are all equally long."""
    batch: Batch = next(iter(queries.batches(len(queries), dtype=torch.float64)))
    assert batch.groups is not None
    d_group = []
    ndcg = []
    for threshold in THRESHOLDS:
        exposure = thresholded_exposure(scores.view(batch.relevance.shape), threshold)
        d_group.append(fl.group_disparity(exposure, batch.relevance, batch.groups).numpy())
        # Queries without relevance count 1, as `evaluate` counts them.
        value = fl.expected_ndcg(exposure, batch.relevance)
        ndcg.append(float(value.nan_to_num(1.0).mean()))
    return PathResult(np.stack(d_group), np.array(ndcg))


def heated(scorer: Scorer, temperature: float) -> Scorer:
    """The scorer's scores divided by a temperature."""

    def divided(features: Tensor) -> Tensor:
        return scorer(features) / temperature

    return divided


def warm(scorer: Scorer, train: fl.RankingDataset, delta: float) -> Scorer:
    """The scorer at the least of `TEMPERATURES` at which training queries have half the budget."""
    for temperature in reversed(TEMPERATURES):
        candidate = heated(scorer, temperature)
        if fl.evaluate(candidate, train, ("d_group",)).d_group <= delta / 2:
            break
    return candidate


def population(kind: str, seed: int, out: Path) -> dict[str, np.ndarray]:
    """All paths of one population, from its file if it is there."""
    file = out / "cells" / f"{kind}-{seed}.npz"
    if file.exists():
        return dict(np.load(file))
    data = data_of(kind, seed)
    prices = [trained(kind, data["train"], lam, seed) for lam in LAMS[kind]]
    plain = prices[-1]
    rankers: dict[str, Sequence[Scorer]] = {
        "prices": prices,
        "temperatures": [heated(plain, temperature) for temperature in TEMPERATURES],
    }
    found: dict[str, np.ndarray] = {"cap": np.array(float(largest_disparity(data["train"]).max()))}
    for name, path in rankers.items():
        found[f"{name} d_group"], found[f"{name} ndcg"] = path_of(path, data["calibration"])
        if "others" in data:
            others = path_of(path, data["others"])
            found[f"{name} others"] = others.d_group.mean(1)
    few = data["calibration"][:RIVAL_SIZE]
    bases: dict[str, Scorer] = {"thresholds": plain}
    for delta in DELTAS[kind]:
        bases[f"thresholds warm {delta:g}"] = warm(plain, data["train"], delta)
    for name, scorer in bases.items():
        with torch.no_grad():
            scores = scorer(few.features)
        found[f"{name} d_group"], found[f"{name} ndcg"] = thresholds_path(scores, few)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part.npz")
    np.savez_compressed(part, **found)  # type: ignore[arg-type]
    part.rename(file)
    return found


# Tests of "the mean is delta or more", for values (R, n): which rows reject it


def by_betting(values: np.ndarray, delta: float, alpha: float, cap: float) -> np.ndarray:
    capital = log_capital(torch.from_numpy(values), delta, alpha, cap=cap)
    return (capital >= math.log(1 / alpha)).numpy()


def by_normal(values: np.ndarray, delta: float, alpha: float, cap: float) -> np.ndarray:
    return normal_bound(values, alpha) <= delta


def by_hoeffding_bentkus(values: np.ndarray, delta: float, alpha: float, cap: float) -> np.ndarray:
    """The p-value of distribution-free risk control: the smaller of Hoeffding's and Bentkus'."""
    n = values.shape[-1]
    mean = np.minimum(values, cap).mean(-1) / cap
    claimed = delta / cap
    below = np.minimum(mean, claimed)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(below > 0, below * np.log(below / claimed), 0.0)
    relative_entropy = first + (1 - below) * np.log((1 - below) / (1 - claimed))
    hoeffding = np.exp(-n * relative_entropy)
    bentkus = math.e * binom.cdf(np.ceil(n * mean), n, claimed)
    return np.minimum(hoeffding, bentkus) <= alpha


def normal_bound(values: np.ndarray, alpha: float) -> np.ndarray:
    """Mean plus z standard errors, ``(R,)``."""
    n = values.shape[-1]
    return values.mean(-1) + norm.ppf(1 - alpha) * values.std(-1, ddof=1) / math.sqrt(n)


TESTS = {
    "betting": by_betting,
    "normal interval": by_normal,
    "Hoeffding-Bentkus": by_hoeffding_bentkus,
}


def chosen(
    d_group: np.ndarray, draws: np.ndarray, test: Callable, delta: float, alpha: float, cap: float
) -> np.ndarray:
    """The last policy ``(R,)`` before the first that does not pass; -1 is none."""
    last = np.full(len(draws), -1)
    is_going_on = np.ones(len(draws), dtype=bool)
    for number, values in enumerate(d_group):
        rows = np.flatnonzero(is_going_on)
        if len(rows) == 0:
            break
        passes = test(values[draws[rows]], delta, alpha, cap)
        last[rows[passes]] = number
        is_going_on[rows[~passes]] = False
    return last


# Tables


def choices(kind: str, seed: int, found: dict[str, np.ndarray]) -> pd.DataFrame:
    """What each test chooses on each path of one population."""
    rows = []
    generator = np.random.default_rng([seed, 5])
    caps = {"computed": float(found["cap"]), "1": 1.0}
    for n in SIZES:
        uniform = generator.random((DRAWS, n))
        for path in ("prices", "temperatures", "thresholds", "thresholds warm"):
            for delta, alpha in [(d, a) for d in DELTAS[kind] for a in ALPHAS]:
                name = f"thresholds warm {delta:g}" if path == "thresholds warm" else path
                d_group = found[f"{name} d_group"]
                ndcg = found[f"{name} ndcg"]
                truth = d_group.mean(1)
                draws = (uniform * d_group.shape[1]).astype(int)
                keeping = truth <= delta
                best = ndcg[keeping].max() if keeping.any() else math.nan
                for test_name, cap_name in combinations_of(path):
                    picked = chosen(d_group, draws, TESTS[test_name], delta, alpha, caps[cap_name])
                    some = picked >= 0
                    row = {
                        "data": kind,
                        "population": seed,
                        "path": path,
                        "test": test_name,
                        "cap": cap_name,
                        "delta": delta,
                        "alpha": alpha,
                        "queries": n,
                        "draws": DRAWS,
                        "violations": int((truth[picked[some]] > delta).sum()),
                        "none": int((~some).sum()),
                        "ndcg": float(ndcg[picked[some]].sum()),
                        "shortfall": float((best - ndcg[picked[some]]).sum()),
                        "best": best,
                    }
                    if f"{name} others" in found:
                        others = found[f"{name} others"]
                        row["others"] = int((others[picked[some]] > delta).sum())
                    rows.append(row)
    return pd.DataFrame(rows)


def combinations_of(path: str) -> list[tuple[str, str]]:
    """The tests, and the caps they are told, of a path."""
    if path.startswith("thresholds"):
        return [("Hoeffding-Bentkus", "computed"), ("betting", "computed")]
    pairs = [("betting", "computed")]
    if path == "prices":
        pairs += [("betting", "1"), ("normal interval", "computed")]
        pairs += [("Hoeffding-Bentkus", "computed")]
    return pairs


def bounds(kind: str, seed: int, found: dict[str, np.ndarray]) -> pd.DataFrame:
    """Bounds of one policy of a population, and how often they are below the truth."""
    number = LAMS[kind].index(BOUNDED_LAM[kind])
    values = found["prices d_group"][number]
    truth = values.mean()
    cap = float(found["cap"])
    generator = np.random.default_rng([seed, 6])
    rows = []
    for n in SIZES:
        drawn = values[generator.integers(0, len(values), (DRAWS, n))]
        sample = torch.from_numpy(drawn)
        for alpha in ALPHAS:
            ways = {
                "betting": betting_bound(sample, alpha, cap=cap).numpy(),
                "betting, cap 1": betting_bound(sample, alpha).numpy(),
                "normal interval": normal_bound(drawn, alpha),
            }
            for name, bound in ways.items():
                rows.append(
                    {
                        "data": kind,
                        "population": seed,
                        "bound": name,
                        "alpha": alpha,
                        "queries": n,
                        "draws": DRAWS,
                        "truth": truth,
                        "mean_bound": bound.mean(),
                        "wrong": int((bound < truth).sum()),
                    }
                )
    return pd.DataFrame(rows)


def summed(table: pd.DataFrame) -> pd.DataFrame:
    """One row for all populations: counts are summed, what is per certified draw is a mean."""
    keys = ["data", "path", "test", "cap", "delta", "alpha", "queries"]
    grouped = table.groupby(keys, sort=False)
    total = grouped[["draws", "violations", "none", "ndcg", "shortfall"]].sum()
    certified = total.draws - total.none
    total["ndcg"] = total.ndcg / certified
    total["shortfall"] = total.shortfall / certified
    total["best"] = grouped.best.mean()
    total["worst_population"] = grouped.violations.max()
    if "others" in table:
        total["others"] = grouped.others.sum(min_count=1)
    return total.reset_index()


def stored_table(
    out: Path, name: str, make: Callable[..., pd.DataFrame], found: dict[str, np.ndarray]
) -> pd.DataFrame:
    """The table ``make(kind, seed, found)``, from its file if it is there."""
    file = out / "cells" / f"{name}.csv"
    if not file.exists():
        _, kind, seed = name.split("-")
        part = file.with_suffix(".part")
        make(kind, int(seed), found).to_csv(part, index=False)
        part.rename(file)
    return pd.read_csv(file, dtype={"cap": str})


def main(out: Path, populations: int = POPULATIONS) -> None:
    """Make what is missing, and write the tables."""
    torch.set_num_threads(1)
    commit_at_start = commit()
    chosen_tables = []
    bound_tables = []
    caps: dict[str, list[float]] = {}
    for kind in ("synthetic", "german"):
        caps[kind] = []
        for seed in range(populations):
            found = population(kind, seed, out)
            caps[kind].append(round(float(found["cap"]), 4))
            chosen_tables.append(stored_table(out, f"choices-{kind}-{seed}", choices, found))
            bound_tables.append(stored_table(out, f"bounds-{kind}-{seed}", bounds, found))
            print(f"{kind} {seed}: cap {found['cap']:.3f}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    table = summed(pd.concat(chosen_tables, ignore_index=True))
    table.to_csv(out / "table.csv", index=False, float_format="%.6g")
    keys = ["data", "bound", "alpha", "queries"]
    grouped = pd.concat(bound_tables, ignore_index=True).groupby(keys, sort=False)
    bounded = grouped[["draws", "wrong"]].sum()
    bounded["truth"] = grouped.truth.mean()
    bounded["mean_bound"] = grouped.mean_bound.mean()
    bounded.reset_index().to_csv(out / "bounds.csv", index=False, float_format="%.6g")
    about = {
        "command": COMMAND,
        "data": "fairpg_lite.synthetic, four populations of 2,000 queries, each with paths "
        "trained on 100 queries of its own; German Credit (Hofmann 1994, doi 10.24432/C5NC77, CC "
        "BY 4.0), four populations of persons drawn with replacement: 400 to train on, 300 of "
        "whose queries 2,000 are the population, and 300 others.",
        "seeds": list(range(populations)),
        "draws of calibration queries from each population": DRAWS,
        "caps": caps,
        "commit": commit_at_start,
        "versions": versions(),
    }
    (out / "table.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=STORED, help="where the tables go")
    parser.add_argument(
        "--populations", type=int, default=POPULATIONS, help="of each kind; fewer to try it"
    )
    arguments = parser.parse_args()
    main(arguments.out, arguments.populations)
