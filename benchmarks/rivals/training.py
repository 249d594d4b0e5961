"""Which objective does each way reach, and when? Linear scorers and networks on two data sets.

python -m benchmarks.rivals.training [--overwrite]

The Yahoo-shaped stand-in (not Yahoo's data) and German Credit, NDCG alone and NDCG minus lambda
times a disparity, one query per update, Adam at a constant rate. Every way takes the rate out of
one grid that gives the highest objective on validation queries at the end, with seeds that are
not used again. Then come the seeds that count: the objective on test queries at growing numbers
of updates, and the processor time of the updates so far, of one thread. What is stored already is
kept unless ``--overwrite`` is given.
"""

import json
import sys
import time
from functools import lru_cache
from typing import Any

import torch

from benchmarks import _timing
from benchmarks.rivals.learning import Learner, Queries, queries_of
from benchmarks.rivals.ways import BY_NAME, EXACT
from experiments.problems import GermanData
from experiments.stand_in import yahoo_like
from fairpg_lite import RankingDataset
from fairpg_lite.objective import Objective

COMMAND = "python -m benchmarks.rivals.training"
STORED = "rivals_training"
RATES = (0.003, 0.01, 0.03, 0.1)
#: What the package takes if nothing is said; the authors' rate on the synthetic data.
UNTUNED = 0.1
TUNING_SEEDS = (100, 101)
SEEDS = tuple(range(8))
HIDDEN = {"linear": 0, "network": 32}
#: Disparity and lambda by data set.
DEMANDS = {"stand-in": ("d_ind", 3.0), "German Credit": ("d_group", 3.0)}
#: After so many updates the test queries are looked at.
LOOKS = (0, 50, 100, 200, 300, 500, 800, 1200, 2000, 3200, 4800)
#: Name of the way, and lists per query.
LISTS = (
    ("REINFORCE, mean", 10),
    ("reward-to-go, leave-one-out", 10),
    ("reward-to-go, uniform", 1),
    ("reward-to-go, uniform", 10),
    ("PL-Rank-3", 10),
    ("PL-Rank-3, centred", 10),
    ("exact charges, reward-to-go, uniform", 10),
    (EXACT, 0),
)


@lru_cache(maxsize=2)
def parts(data: str, seed: int) -> dict[str, RankingDataset]:
    """Training, validation and test queries; German Credit's are drawn anew for every seed.

    So many queries that hardly one is seen twice: what a way learns is then what it learned of the
    objective, and not of the training queries by heart. (German Credit has 800 persons to draw
    training queries from, so there something remains.)
    """
    if data == "stand-in":
        sizes = {"train": 3200, "valid": 300, "test": 400}
        return {part: yahoo_like(count, part=part) for part, count in sizes.items()}
    loaded = GermanData(redrawn=True, n_train=3500, n_test=400).load(seed)
    train, valid = loaded.train.split((3200 / 3500, 300 / 3500), seed=seed)
    return {"train": train, "valid": valid, "test": loaded.test}


@lru_cache(maxsize=8)
def queries(data: str, part: str, seed: int, fair: bool) -> Queries:
    """A part of the data as kernels take it; there is one stand-in for all seeds."""
    chosen = parts(data, 0 if data == "stand-in" else seed)[part]
    return queries_of(chosen, wanted(data, fair))


def wanted(data: str, fair: bool) -> Objective:
    """What is maximised."""
    disparity, lam = DEMANDS[data]
    return Objective(lam=lam if fair else 0.0, disparity=disparity, method="exact")


def learner(data: str, model: str, fair: bool, way: tuple[str, int], seed: int) -> Learner:
    """A learner that has learned nothing yet."""
    name, samples = way
    return Learner(
        queries(data, "train", seed, fair), BY_NAME.get(name), samples, HIDDEN[model], seed
    )


def value(terms: tuple[float, float], objective: Objective) -> float:
    """U - lam D."""
    utility, disparity = terms
    return utility - objective.lam * disparity


def best_rate(data: str, model: str, fair: bool, way: tuple[str, int]) -> tuple[float, list[float]]:
    """The rate with the highest validation objective in the end, and the mean of each rate."""
    means = []
    objective = wanted(data, fair)
    for rate in RATES:
        reached = []
        for seed in TUNING_SEEDS:
            valid = queries(data, "valid", seed, fair)
            run = learner(data, model, fair, way, seed)
            run.learn(LOOKS[-1], rate)
            reached.append(value(run.judged(valid), objective))
        means.append(sum(reached) / len(reached))
    return RATES[means.index(max(means))], means


def course(run: Learner, test: Queries, rate: float) -> dict[str, list[float]]:
    """Seconds, utility and disparity at every look."""
    found: dict[str, list[float]] = {"seconds": [], "utility": [], "disparity": []}
    for look in LOOKS:
        run.learn(look - run.steps, rate)
        utility, disparity = run.judged(test)
        found["seconds"].append(run.seconds)
        found["utility"].append(utility)
        found["disparity"].append(disparity)
    return found


def cell(data: str, model: str, fair: bool, way: tuple[str, int]) -> dict[str, Any]:
    """The courses of one way at its best rate, and the end of those that were not tuned."""
    objective = wanted(data, fair)
    rate, by_rate = best_rate(data, model, fair, way)
    courses = []
    untuned = []
    for seed in SEEDS:
        test = queries(data, "test", seed, fair)
        run = learner(data, model, fair, way, seed)
        courses.append({"seed": seed, **course(run, test, rate)})
        if way == LISTS[0]:
            plain = learner(data, model, fair, way, seed)
            plain.learn(LOOKS[-1], UNTUNED)
            untuned.append(value(plain.judged(test), objective))
    name, samples = way
    return {
        "data": data,
        "model": model,
        "lam": objective.lam,
        "disparity": objective.disparity,
        "way": name,
        "samples": samples,
        "rate": rate,
        "valid_by_rate": by_rate,
        "courses": courses,
        "untuned": untuned,
    }


def main() -> None:
    """Train what is not stored yet, and store it way by way."""
    torch.set_num_threads(1)
    path = _timing.RESULTS / f"{STORED}.json"
    cells: list[dict[str, Any]] = []
    if path.exists() and "--overwrite" not in sys.argv:
        cells = json.loads(path.read_text())["cells"]
    done = {(c["data"], c["model"], c["lam"] > 0, c["way"], c["samples"]) for c in cells}
    for data in DEMANDS:
        for model in HIDDEN:
            for fair in (False, True):
                for way in LISTS:
                    is_same = way[0].startswith("exact charges") and not fair
                    if is_same or (data, model, fair, *way) in done:
                        continue
                    start = time.process_time()
                    cells.append(cell(data, model, fair, way))
                    spent = time.process_time() - start
                    print(f"{data}, {model}, fair {fair}, {way}: {spent:.0f} s", flush=True)
                    _timing.store(
                        STORED, COMMAND, looks=LOOKS, rates=RATES, untuned=UNTUNED, cells=cells
                    )


if __name__ == "__main__":
    main()
