"""How much faster is ``fit`` than the paper's loop taken literally?

python -m benchmarks.training

On one thread, with nothing else to do and beside a busy loop: the compiled epochs and
autograd, one query per update and 64, sampled and exact, and a pass over the features at memory
speed, the floor. Then what an update consists of, beside what the network's matrix products would
take for all documents at once; `evaluate` beside scoring alone, on as many queries as Yahoo's data
have; and what compiling takes, and loading what was compiled.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numba import njit
from torch import nn

from benchmarks import _timing
from experiments.stand_in import yahoo_like
from fairpg_lite import (
    LinearScorer,
    MLPScorer,
    PlackettLuce,
    RankingDataset,
    TrainConfig,
    evaluate,
    german_credit,
    reference,
)
from fairpg_lite.compiled.epochs import Epoch
from fairpg_lite.compiled.kernels.adam import update
from fairpg_lite.compiled.kernels.arguments import Optimizer
from fairpg_lite.compiled.kernels.exact import exact_terms, fill_log_weights
from fairpg_lite.compiled.kernels.kernel import FASTMATH
from fairpg_lite.compiled.kernels.network import backward, forward
from fairpg_lite.compiled.kernels.sampled import sampled_terms
from fairpg_lite.exact import exact_err
from fairpg_lite.metrics import satisfaction
from fairpg_lite.scorers import score
from fairpg_lite.training.run import Run

COMMAND = "python -m benchmarks.training"
# Queries per round: a random handful for the literal loop, more for autograd by single queries, and
# as many as are sorted by length together (50 batches of 64) for the rest.
LITERAL, SINGLE, MANY = 20, 128, 3200
YAHOO = 20_000
ROUNDS = 5
WAYS = [f"{method} {size}" for size in (1, 64) for method in ("sample", "exact")]

PROBE = """
import json, time, torch
from fairpg_lite import LinearScorer, RankingDataset, TrainConfig, fit
data = RankingDataset(torch.rand(6, 3), torch.ones(6), [0, 2, 6])
start = time.perf_counter()
fit(LinearScorer(3), data, TrainConfig(epochs=1, compiled=True), progress=False)
print(json.dumps(time.perf_counter() - start))
"""


def literal_epoch(
    scorer: nn.Module, data: RankingDataset, samples: int, lam: float, disparity: str
) -> Callable[[], None]:
    """The paper's loop over the queries of ``data``, taken literally."""
    optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-5)
    generator = torch.Generator().manual_seed(0)
    queries = list(data)

    def run() -> None:
        reference.fair_pg_rank(
            scorer,
            optimizer,
            queries,
            disparity=disparity,
            lam=lam,
            samples=samples,
            generator=generator,
        )

    return run


def reading_epoch(data: RankingDataset) -> Callable[[], None]:
    """A pass over the features at memory speed."""

    def run() -> None:
        data.features.sum()

    return run


def measure(
    name: str, data: RankingDataset, model: type, samples: int, lam: float, disparity: str
) -> dict:
    """Microseconds per query of every way to train one model on one data set."""

    def scorer() -> nn.Module:
        return model(data.n_features, generator=torch.Generator().manual_seed(0))

    chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    few, some = data.subset(chosen[:LITERAL]), data.subset(chosen[:SINGLE])
    work = {"literal": literal_epoch(scorer(), few, samples, lam, disparity)}
    queries = {"literal": len(few), "reading": len(data)}
    for way in WAYS:
        method, size = way.split()
        for fast in (True, False):
            part = some if size == "1" and not fast else data
            config = TrainConfig(
                lam=lam,
                disparity=disparity,
                method=method,
                samples=samples,
                batch_size=int(size),
                lr=1e-5,
                compiled=fast,
            )
            key = way if fast else f"autograd {way}"
            work[key] = Run(scorer(), part, config).epoch
            queries[key] = len(part)
    work["reading"] = reading_epoch(data)
    idle = _timing.interleaved(work, ROUNDS)
    with _timing.busy(1):
        beside = _timing.interleaved({way: work[way] for way in WAYS}, ROUNDS)
    return {
        "data": name,
        "model": model.__name__,
        "lam": lam,
        "microseconds": {key: value / queries[key] * 1e6 for key, value in idle.items()},
        "beside a busy loop": {key: beside[key] / queries[key] * 1e6 for key in WAYS},
    }


@njit(error_model="numpy", fastmath=FASTMATH)  # not cached: it is not in the kernels' folder
def walk(
    part, features, problem, times, hidden, optimizer, theta, noise, layer, scores, slope, grad
):
    """One part of an update by single queries, for each query in turn."""
    for q in range(len(problem.offsets) - 1):
        rows = slice(problem.offsets[q], problem.offsets[q + 1])
        query_scores = scores[rows]
        query_slope = slope[rows]
        n = len(query_scores)
        if part == "forward":
            forward(features[rows], theta, hidden, layer[rows], query_scores)
        elif part == "backward":
            backward(features[rows], theta, hidden, layer[rows], query_slope, grad)
        elif part == "Adam":
            update(theta, grad, optimizer, 1)
        elif problem.samples > 0:
            query_noise = noise[: problem.samples * n].reshape((problem.samples, n))
            sampled_terms(query_scores, query_noise, problem, q, query_slope)
        else:
            log_w = np.empty(n)
            lowest = fill_log_weights(query_scores, times.widest_gap[n], log_w)
            exact_terms(query_scores, log_w, lowest, n, problem, times, q, query_slope)


def parts(data: RankingDataset, model: type) -> dict:
    """Microseconds per query of what an update consists of, beside lower bounds."""
    scorer = model(data.n_features, generator=torch.Generator().manual_seed(0))
    adam = torch.optim.Adam(scorer.parameters())
    work: dict[str, Callable[[], object]] = {}
    for method in ("sample", "exact"):
        config = TrainConfig(lam=1.0, disparity="d_ind", method=method, samples=10)
        epoch = Epoch(scorer, data, config, adam, batch_size=1)
        theta = torch.cat([p.detach().flatten() for p in epoch.parameters]).numpy()
        moments = (np.zeros_like(theta), np.zeros_like(theta))
        optimizer = Optimizer(0.0, 0.0, 0.9, 0.999, 1e-8, *moments)
        noise = np.random.default_rng(0).gumbel(size=10 * int(epoch.lengths.max()))
        layer = np.empty((data.n_documents, max(epoch.hidden, 1)), theta.dtype)
        scores, slope = np.zeros((2, data.n_documents))
        known = (epoch.features, epoch.problem, epoch.times, epoch.hidden, optimizer, theta, noise)
        room = (layer, scores, slope, np.zeros_like(theta))
        for part in ("forward", "backward", "Adam", method):
            work[part] = partial(walk, part, *known, *room)
    work["reading"] = reading_epoch(data)
    if epoch.hidden:
        weight = torch.rand(epoch.hidden, data.n_features)
        by_layer = torch.from_numpy(layer)
        work["products"] = lambda: (data.features @ weight.T, by_layer.T @ data.features)
    spent = _timing.interleaved(work, ROUNDS)
    return {"model": model.__name__} | {k: v / len(data) * 1e6 for k, v in spent.items()}


def evaluating() -> dict[str, float]:
    """Microseconds per query to score a set as large as Yahoo's, and to evaluate on it.

    Beside them the two integrals alone, of exposure and of ERR, which all other measures follow.
    """
    data = yahoo_like(YAHOO, seed=0)
    spent: dict[str, float] = {}
    for model in (LinearScorer, MLPScorer):
        scorer = model(data.n_features, generator=torch.Generator().manual_seed(0))

        @torch.no_grad()
        def scoring(scorer: nn.Module = scorer) -> None:
            for batch in data.batches(64, reuse=True):
                score(scorer, batch)

        def judging(scorer: nn.Module = scorer) -> None:
            evaluate(scorer, data)

        @torch.no_grad()
        def exposing(scorer: nn.Module = scorer) -> None:
            for batch in data.batches(64, reuse=True):
                PlackettLuce(score(scorer, batch), batch.mask).exposure()

        @torch.no_grad()
        def reading_down(scorer: nn.Module = scorer) -> None:
            for batch in data.batches(64, reuse=True):
                exact_err(score(scorer, batch), satisfaction(batch.relevance, 4.0), batch.mask)

        name = model.__name__
        work = {f"scoring, {name}": scoring, f"evaluate, {name}": judging}
        work |= {f"and exposure, {name}": exposing, f"and ERR, {name}": reading_down}
        spent |= _timing.interleaved(work, ROUNDS)
    return {name: value / len(data) * 1e6 for name, value in spent.items()}


def starting() -> dict[str, float]:
    """Seconds that the first epoch of a process takes: to compile, and from the cache."""
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "NUMBA_CACHE_DIR": place}
        command = [sys.executable, "-c", PROBE]
        spent = [
            json.loads(subprocess.run(command, env=environment, capture_output=True).stdout)
            for _ in range(2)
        ]
    return {"compile": spent[0], "load": spent[1]}


def table(rows: list[dict]) -> str:
    """Times the literal loop, in brackets beside a busy loop; autograd; times the floor."""
    shown = [*WAYS, *(f"autograd {way}" for way in WAYS)]
    lines = [f"{'times the literal loop':<34}" + "".join(f"{way:>20}" for way in [*shown, "floor"])]
    for row in rows:
        spent, beside = row["microseconds"], row["beside a busy loop"]
        cells = [f"{spent['literal'] / spent[way]:,.0f}" for way in shown]
        for k, way in enumerate(WAYS):
            cells[k] += f" (/{beside[way] / spent[way]:.1f})"
        cells.append(f"{spent['sample 1'] / spent['reading']:.1f} times")
        label = f"{row['data']}, {row['model'][:-6]}, λ={row['lam']:g}"
        lines.append(f"{label:<34}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    """Measure, print and store."""
    torch.set_num_threads(1)
    problems = [
        ("Yahoo-shaped", yahoo_like(MANY, seed=0), 10, "d_ind"),
        ("German Credit", german_credit(seed=0)[0], 25, "d_group"),
    ]
    rows: list[dict] = []
    for name, data, samples, disparity in problems:
        for model in (LinearScorer, MLPScorer):
            for lam in (0.0, 1.0):
                rows.append(measure(name, data, model, samples, lam, disparity))
                print("\n".join(table(rows[-1:]).splitlines()[len(rows) > 1 :]), flush=True)
    shares = [parts(problems[0][1], model) for model in (LinearScorer, MLPScorer)]
    for share in shares:
        print("µs of each part:", {k: v if k == "model" else round(v, 1) for k, v in share.items()})
    judged = evaluating()
    for name in ("LinearScorer", "MLPScorer"):
        times = judged[f"evaluate, {name}"] / judged[f"scoring, {name}"]
        print(f"evaluate on {YAHOO:,} queries, {name}: {times:.1f} times the cost of scoring them")
    print("µs:", {name: round(value, 1) for name, value in judged.items()})
    spent = starting()
    print(f"compiling takes {spent['compile']:.1f} s, loading {spent['load']:.1f} s")
    _timing.store("training", COMMAND, rows=rows, parts=shares, evaluation=judged, seconds=spent)


if __name__ == "__main__":
    main()
