"""How wrong is a gradient for the time it takes? No baseline, mean, leave-one-out, exact.

python -m benchmarks.gradients
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks import _timing
from fairpg_lite import PlackettLuce, expected_ndcg, individual_disparity

COMMAND = "python -m benchmarks.gradients"
SAMPLES = (2, 5, 10, 25, 100, 400)
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-7, 1e-9)
QUERIES, N, ROW = 64, 24, 10


def problem() -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(QUERIES, N, generator=g, dtype=torch.float64).requires_grad_()
    return scores, torch.randint(0, 5, (QUERIES, N), generator=g).double()


def exact_gradient(scores: Tensor, relevance: Tensor, tolerance: float) -> Tensor:
    """Gradient of NDCG - D_ind by the scores, query by query ``(Q, n)``, without sampling."""
    return gradient(scores, relevance, PlackettLuce(scores).exposure(tolerance=tolerance))


def sampled_gradient(
    scores: Tensor,
    relevance: Tensor,
    samples: int,
    baseline: str | None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The paper's estimate of it, from drawn rankings."""
    exposure = PlackettLuce(scores).sampled_exposure(
        samples=samples, baseline=baseline, generator=generator
    )
    return gradient(scores, relevance, exposure)


def gradient(scores: Tensor, relevance: Tensor, exposure: Tensor) -> Tensor:
    """Gradient ``(Q, n)`` of NDCG - D_ind of an exposure by the scores."""
    value = expected_ndcg(exposure, relevance) - individual_disparity(exposure, relevance)
    return torch.autograd.grad(value.sum(), scores)[0]


def in_a_row(estimate: Callable[[], Tensor]) -> None:
    """Several at once: the first after a much larger way finds its memory given back."""
    for _ in range(ROW):
        estimate()


def main() -> None:
    """Root mean square error over queries and five draws, relative to the true gradient."""
    torch.set_num_threads(1)
    scores, relevance = problem()
    truth = exact_gradient(scores, relevance, tolerance=1e-12)
    rows: list[dict[str, Any]] = []
    work: dict[str, Callable[[], None]] = {}

    def add(way: str, setting: float, draws: list[Tensor], again: Callable[[], Tensor]) -> None:
        squares = [(g - truth).square().sum(-1) / truth.square().sum(-1) for g in draws]
        error = float(torch.stack(squares).mean().sqrt())
        rows.append({"way": way, "setting": setting, "error": error})
        work[f"{way} {setting}"] = partial(in_a_row, again)
        print(f"{way:>6} {setting:>8g}: relative error {error:9.2e}")

    for baseline in (None, "mean", "loo"):
        for samples in SAMPLES:
            estimate = partial(sampled_gradient, scores, relevance, samples, baseline)
            draws = [estimate(torch.Generator().manual_seed(seed)) for seed in range(5)]
            add(baseline or "none", samples, draws, estimate)
    for tolerance in TOLERANCES:
        exact = partial(exact_gradient, scores, relevance, tolerance)
        add("exact", tolerance, [exact()], exact)
    # All in turn: a busy spell of the machine then slows every way alike.
    for row, spent in zip(rows, _timing.interleaved(work, 15).values(), strict=True):
        row["seconds"] = spent / QUERIES / ROW
    _timing.store("gradients", COMMAND, rows=rows)


if __name__ == "__main__":
    main()
