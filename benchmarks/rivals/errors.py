"""How wrong is a gradient for the time that it takes? Every way, many lengths, spreads and lists.

python -m benchmarks.rivals.errors [--overwrite]

For each objective and length: the relative error of the gradient by the scores (root mean square
over repetitions, median over queries) at five spreads of the scores, against a programme over
subsets (n = 10) or the race at its finest tolerance; and the time of one thread in which each way
finds it, one query after the other, all ways in turn. All is compiled by Numba: the rivals here,
and the exact gradient of the package. What is stored already is kept unless ``--overwrite`` is
given, so that a run that was stopped goes on where it was.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.quasirandom import SobolEngine

from benchmarks import _timing
from benchmarks.rivals.estimates import codes, exact_gradients, sampled_gradients
from benchmarks.rivals.problems import OBJECTIVES, Trial
from benchmarks.rivals.ways import EXACT, SAMPLED, Way

COMMAND = "python -m benchmarks.rivals.errors"
STORED = "rivals_errors"
LENGTHS = (10, 24, 100, 1000)
SPREADS = (0.0, 1.0, 3.0, 10.0, 20.0)
SAMPLES = (1, 2, 3, 10, 30, 100, 300, 1000)
TOLERANCES = (1e-3, 1e-5, 1e-7)
#: How many queries are tried at once.
QUERIES = {10: 24, 24: 24, 100: 8, 1000: 3}
#: How many lists at most, by length; the error falls on like one over their root.
MOST_LISTS = {10: 1000, 24: 1000, 100: 1000, 1000: 100}
#: Sums as published are followed up to so many steps of an estimate.
MOST_STEPS = 3e7
#: The times of drawing do not depend on the scores; they are taken at this spread.
TIMED_SPREAD = 3.0
ROUNDS = 3


def repetitions(n: int, samples: int) -> int:
    """How often a gradient is estimated to find its error, fewer where it takes long."""
    few, some, many = {10: (6, 12, 40), 24: (6, 12, 40), 100: (3, 6, 16)}.get(n, (2, 4, 8))
    if samples >= 1000:
        return few
    return some if samples >= 300 else many


def tried(n: int) -> list[int]:
    """The numbers of lists that are tried for n documents."""
    return [samples for samples in SAMPLES if samples <= MOST_LISTS[n]]


def drawn(way: Way, trial: Trial, samples: int, source: Any) -> NDArray[np.float64]:
    """Waiting times ``(B, S, n)``, Exp(1), from a NumPy generator or a Sobol engine."""
    shape = (trial.queries, samples, trial.n)
    if not way.sobol:
        return source.standard_exponential(shape)
    uniform = source.draw(trial.queries * samples, dtype=torch.float64).numpy()
    return -np.log1p(-np.minimum(uniform, 1.0 - 1e-12)).reshape(shape)


def estimate(way: Way, trial: Trial, samples: int, source: Any, times: Any) -> NDArray[np.float64]:
    """One gradient ``(B, n)`` for each query, lists and all."""
    waits = drawn(way, trial, samples, source)
    return sampled_gradients(trial.scores, waits, codes(way, trial.bias), trial.problem, times)


def serves(way: Way, trial: Trial) -> bool:
    """Whether a way differs from another one on this objective."""
    if way.exact_charges:
        return "D_" in trial.objective
    if way.name.endswith("first places"):
        return "@" in trial.objective and trial.n > 10
    return True


def relative(squares: list[NDArray[np.float64]], truth: NDArray[np.float64]) -> float:
    """The median over queries of the relative error, from squared lengths ``(B,)``."""
    length = np.square(truth).sum(-1)
    return float(np.median(np.sqrt(np.mean(squares, axis=0) / length)))


def errors_of(trial: Trial) -> list[dict[str, Any]]:
    """The error of every way and number of lists, and of the exact gradient."""
    times = trial.times(1e-5)
    rows = []
    for samples in tried(trial.n):
        rng = np.random.default_rng(samples)
        # The sums of PL-Rank-2 are those of PL-Rank-3 in another order.
        ways = [way for way in SAMPLED if serves(way, trial) and way.name != "PL-Rank-2"]
        ways = [way for way in ways if samples >= way.fewest]
        squares: dict[str, list[NDArray[np.float64]]] = {way.name: [] for way in ways}
        for repetition in range(repetitions(trial.n, samples)):
            independent = rng.standard_exponential((trial.queries, samples, trial.n))
            engine = SobolEngine(trial.n, scramble=True, seed=1000 * samples + repetition)
            even = drawn(BY_SOBOL, trial, samples, engine)
            for way in ways:
                code = (*codes(way, trial.bias)[:-1], False)
                waits = even if way.sobol else independent
                got = sampled_gradients(trial.scores, waits, code, trial.problem, times)
                squares[way.name].append(np.square(got - trial.truth).sum(-1))
        for way in ways:
            error = relative(squares[way.name], trial.truth)
            rows.append({"way": way.name, "setting": samples, "error": error})
            if way.name == "PL-Rank-3":
                rows.append({"way": "PL-Rank-2", "setting": samples, "error": error})
    for tolerance in TOLERANCES:
        got = exact_gradients(trial.scores, trial.problem, trial.times(tolerance))
        error = relative([np.square(got - trial.truth).sum(-1)], trial.truth)
        rows.append({"way": EXACT, "setting": tolerance, "error": error})
    return rows


BY_SOBOL = next(way for way in SAMPLED if way.sobol)


def times_of_ways(trials: dict[float, Trial]) -> dict[tuple[str, float, float | None], float]:
    """Microseconds per query by way, setting and spread; the spread is None for drawn lists."""
    trial = trials[TIMED_SPREAD]
    times = trial.times(1e-5)
    rng = np.random.default_rng(0)
    engine = SobolEngine(trial.n, scramble=True, seed=0)
    work: dict[tuple[str, float, float | None], Callable[[], object]] = {}
    for way in SAMPLED:
        for samples in tried(trial.n):
            steps = samples * trial.n**2 if way.by_definition else 0
            if serves(way, trial) and samples >= way.fewest and steps <= MOST_STEPS:
                source = engine if way.sobol else rng
                key = (way.name, float(samples), None)
                work[key] = partial(estimate, way, trial, samples, source, times)
    for spread, other in trials.items():
        for tolerance in TOLERANCES:
            known = (other.scores, other.problem, other.times(tolerance))
            work[EXACT, tolerance, spread] = partial(exact_gradients, *known)
    return {key: 1e6 * spent / trial.queries for key, spent in cpu_seconds(work).items()}


def cpu_seconds(work: dict[Any, Callable[[], object]]) -> dict[Any, float]:
    """Median processor seconds of each function, all in turn, each often enough to be measured."""
    calls = {}
    for key, function in work.items():
        function()
        start = time.process_time()
        function()
        once = time.process_time() - start
        calls[key] = max(1, round(0.004 / max(once, 1e-6)))
    spent: dict[Any, list[float]] = {key: [] for key in work}
    for _ in range(ROUNDS):
        for key, function in work.items():
            start = time.process_time()
            for _ in range(calls[key]):
                function()
            spent[key].append((time.process_time() - start) / calls[key])
    return {key: median(values) for key, values in spent.items()}


def cells_of(objective: str, n: int) -> list[dict[str, Any]]:
    """All rows of an objective and a length."""
    trials = {spread: Trial(objective, n, spread, QUERIES[n]) for spread in SPREADS}
    spent = times_of_ways(trials)
    rows = []
    for spread, trial in trials.items():
        for row in errors_of(trial):
            at = spread if row["way"] == EXACT else None
            microseconds = spent.get((row["way"], float(row["setting"]), at))
            place = {"objective": objective, "n": n, "spread": spread}
            rows.append({**place, **row, "microseconds": microseconds})
    return rows


def main() -> None:
    """Measure what is not stored yet, and store it objective by objective."""
    torch.set_num_threads(1)
    path = _timing.RESULTS / f"{STORED}.json"
    rows: list[dict[str, Any]] = []
    if path.exists() and "--overwrite" not in sys.argv:
        rows = _timing.table_rows(json.loads(path.read_text()))
    done = {(row["objective"], row["n"]) for row in rows}
    for n in LENGTHS:
        for objective in OBJECTIVES:
            if (objective, n) in done or (objective == "NDCG@10" and n == 10):
                continue
            start = time.process_time()
            rows += cells_of(objective, n)
            spent = time.process_time() - start
            print(f"n = {n}, {objective}: {spent:.0f} s", flush=True)
            _timing.store_table(STORED, COMMAND, rows, queries=QUERIES)


if __name__ == "__main__":
    main()
