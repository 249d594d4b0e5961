"""What an update costs as lists get longer, samples more, and scores wider.

python -m benchmarks.scaling
"""

from collections.abc import Callable

import matplotlib.pyplot as plt
import torch

from benchmarks import _timing
from fairpg_lite import PlackettLuce, expected_dcg, individual_disparity
from fairpg_lite.figures import use_style

COMMAND = "python -m benchmarks.scaling"
ROUNDS = 45
LENGTHS = (10, 24, 50, 100, 200, 500, 1000)
SAMPLES = (2, 5, 10, 25, 100)
SPREADS = (1, 5, 10, 20, 50)


def update(
    n: int, method: str, samples: int = 10, spread: float = 10.0, queries: int = 64
) -> Callable[[], None]:
    """Forward and backward of U - D for a batch; scores evenly over ``spread``."""
    g = torch.Generator().manual_seed(0)
    order = torch.rand(queries, n, generator=g).argsort(-1)
    scores = (spread * order / max(1, n - 1)).requires_grad_()
    relevance = torch.randint(0, 5, (queries, n), generator=g).float()

    def run() -> None:
        policy = PlackettLuce(scores, validate_args=False)
        exposure = policy.exposure(method=method, samples=samples, generator=g, tolerance=1e-5)
        value = expected_dcg(exposure, relevance) - individual_disparity(exposure, relevance)
        torch.autograd.grad(value.sum(), scores)

    return run


def main() -> None:
    """Measure, print ratios, store and draw."""
    torch.set_num_threads(1)
    by_length = {}
    for n in LENGTHS:
        queries = max(1, 640 // n)
        work = {m: update(n, m, queries=queries) for m in ("sample", "exact")}
        spent = _timing.interleaved(work, ROUNDS)
        by_length[n] = {m: t / queries * 1e6 for m, t in spent.items()}
        ratio = spent["exact"] / spent["sample"]
        print(f"n = {n:>4}: exact costs {ratio:.2f} times sample with S = 10")
    by_samples = _timing.interleaved({str(s): update(24, "sample", s) for s in SAMPLES}, ROUNDS)
    exact = {f"spread {s}": update(24, "exact", spread=s) for s in SPREADS}
    by_spread = _timing.interleaved({"sample": update(24, "sample"), **exact}, ROUNDS)
    for spread in SPREADS:
        ratio = by_spread[f"spread {spread}"] / by_spread["sample"]
        print(f"spread {spread:>3}: exact costs {ratio:.2f} times sample with S = 10 (n = 24)")
    _timing.store(
        "scaling", COMMAND, by_length=by_length, by_samples=by_samples, by_spread=by_spread
    )
    draw(by_length, by_samples, by_spread)


def draw(by_length: dict, by_samples: dict, by_spread: dict) -> None:
    use_style()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.2))
    for method, marker in (("sample", "o"), ("exact", "s")):
        left.loglog(LENGTHS, [by_length[n][method] for n in LENGTHS], marker=marker, label=method)
    left.set_xlabel("documents n")
    left.set_ylabel("µs per query (S = 10, spread 10)")
    left.legend()
    middle.loglog(SAMPLES, [by_samples[str(s)] / 64 * 1e6 for s in SAMPLES], "o-")
    middle.set_xlabel("samples S (n = 24)")
    ratios = [by_spread[f"spread {s}"] / by_spread["sample"] for s in SPREADS]
    right.plot(SPREADS, ratios, "s-")
    right.axhline(3, linestyle=":", color="grey")
    right.set_xlabel("spread of the scores (n = 24)")
    right.set_ylabel("exact / sample")
    _timing.save_figure(figure, "scaling")


if __name__ == "__main__":
    main()
