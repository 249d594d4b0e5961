"""What exact exposure costs against the length of a list, from 10 documents to 100,000.

python -m benchmarks.long_lists [--small]

For each length a process of its own, so that its memory is its own: the nodes, worked out once;
exposure; exposure with its gradient, of the whole list and of the first ten places; and the same
from ten drawn lists. CPU seconds on one thread, medians of rounds in which all take turns. Then a
thousand documents with scores ever further apart. ``--small`` stores nothing.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor

from benchmarks import _timing
from fairpg_lite import PlackettLuce, position_bias
from fairpg_lite.exact import exact_err
from fairpg_lite.nodes import named_nodes

COMMAND = "python -m benchmarks.long_lists"
LENGTHS = (10, 24, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
PLACES = 10
SAMPLES = 10
TRAINING = 1e-5
EVALUATION = 1e-10
SPREADS = (10.0, 100.0, 1000.0, 20_000.0)


def cpu_seconds(function: Callable[[], object]) -> float:
    """CPU time of one call, which other programs on the machine do not lengthen much."""
    start = time.process_time()
    function()
    return time.process_time() - start


def medians(work: dict[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, float]:
    """Median CPU seconds of a call of each function; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for round_number in range(rounds + 1):
        for name, function in work.items():
            spent = cpu_seconds(partial(repeat, function, calls))
            if round_number > 0:
                times[name].append(spent / calls)
    return {name: median(spent) for name, spent in times.items()}


def repeat(function: Callable[[], object], calls: int) -> None:
    """So many calls: a single short one is below the clock's grain."""
    for _ in range(calls):
        function()


def slope(scores: Tensor, pull: Tensor, exposure: Callable[[PlackettLuce], Tensor]) -> None:
    """An exposure and the gradient of its sum weighted by ``pull``."""
    leaf = scores.clone().requires_grad_()
    (exposure(PlackettLuce(leaf)) * pull).sum().backward()


def of_length(n: int, rounds: int) -> dict[str, object]:
    """Everything about one length, in a process that has done nothing else."""
    torch.set_num_threads(1)
    before = _timing.peak_memory()
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(n, generator=g, dtype=torch.float64)
    pull = torch.randn(n, generator=g, dtype=torch.float64)
    bias = position_bias(n, dtype=torch.float64)
    first = position_bias(n, k=PLACES, dtype=torch.float64)
    nodes_seconds = cpu_seconds(partial(named_nodes, "log2", n, None, EVALUATION, torch.float64))
    nodes, _ = named_nodes("log2", n, None, EVALUATION, torch.float64)
    equal = PlackettLuce(torch.zeros(n, dtype=torch.float64)).exposure()
    exact = PlackettLuce(scores).exposure()
    slope(scores, pull, lambda policy: policy.exposure(tolerance=TRAINING))
    memory = _timing.peak_memory() - before
    work: dict[str, Callable[[], object]] = {
        "exposure": partial(PlackettLuce(scores).exposure),
        "with gradient": partial(
            slope, scores, pull, lambda policy: policy.exposure(tolerance=TRAINING)
        ),
        "first places": partial(
            slope, scores, pull, lambda policy: policy.exposure(first, tolerance=TRAINING)
        ),
        "drawn": partial(
            slope,
            scores,
            pull,
            lambda policy: policy.sampled_exposure(samples=SAMPLES, baseline="loo"),
        ),
        "drawn first places": partial(
            slope,
            scores,
            pull,
            lambda policy: policy.sampled_exposure(first, samples=SAMPLES, baseline="loo"),
        ),
        "reward-to-go": partial(
            slope,
            scores,
            pull,
            lambda policy: policy.sampled_exposure(
                samples=SAMPLES, baseline="uniform", reward_to_go=True
            ),
        ),
    }
    calls = max(1, 2000 // n)
    return {
        "n": n,
        "nodes": len(nodes),
        "nodes seconds": nodes_seconds,
        "bytes": memory,
        "error at equal scores": float((equal - bias.mean()).abs().max()),
        "error of the sum": float((exact.sum() / bias.sum() - 1.0).abs()),
        "seconds": medians(work, rounds, calls),
    }


def of_spread(spread: float, n: int, rounds: int) -> dict[str, object]:
    """A list of n documents with scores spread evenly."""
    scores = torch.linspace(spread / 2, -spread / 2, n, dtype=torch.float64)
    satisfied = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    work: dict[str, Callable[[], object]] = {
        "exposure": partial(PlackettLuce(scores).exposure),
        "err": partial(exact_err, scores, satisfied),
    }
    return {"n": n, "spread": spread, "seconds": medians(work, rounds, 1)}


def main(small: bool = False) -> None:
    """Measure, print and store."""
    torch.set_num_threads(1)
    lengths = LENGTHS[:3] if small else LENGTHS
    rounds = 1 if small else 3
    rows = []
    for n in lengths:
        command = [sys.executable, "-m", "benchmarks.long_lists", "--length", str(n), str(rounds)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        row = json.loads(answer)
        rows.append(row)
        times = ", ".join(f"{name} {1e3 * spent:.3g}" for name, spent in row["seconds"].items())
        print(f"{n:>7} documents, {row['nodes']} nodes, ms of CPU: {times}", flush=True)
    spreads: list[dict[str, object]] = []
    if not small:
        store(rows, spreads)
    for spread in SPREADS:
        row = of_spread(spread, 100 if small else 1000, rounds)
        spreads.append(row)
        print(f"spread {spread:g}: {row['seconds']}", flush=True)
    if not small:
        store(rows, spreads)


def store(rows: list[dict[str, object]], spreads: list[dict[str, object]]) -> None:
    """Write what there is."""
    settings = {
        "places": PLACES,
        "samples": SAMPLES,
        "tolerance of exposure": EVALUATION,
        "tolerance with gradient": TRAINING,
    }
    _timing.store("long_lists", COMMAND, settings=settings, rows=rows, spreads=spreads)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--length"]:
        print(json.dumps(of_length(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main(small="--small" in sys.argv[1:])
