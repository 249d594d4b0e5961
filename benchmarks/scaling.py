"""What an update costs as lists get longer, samples more, and scores wider.

python -m benchmarks.scaling
"""

from collections.abc import Callable

import torch

from benchmarks import _timing
from fairpg_lite import PlackettLuce, expected_dcg, individual_disparity

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
        policy = PlackettLuce(scores)
        if method == "exact":
            exposure = policy.exposure(tolerance=1e-5)
        else:
            exposure = policy.sampled_exposure(samples=samples, generator=g)
        value = expected_dcg(exposure, relevance) - individual_disparity(exposure, relevance)
        torch.autograd.grad(value.sum(), scores)

    return run


def main() -> None:
    """Measure, print ratios and store."""
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


if __name__ == "__main__":
    main()
