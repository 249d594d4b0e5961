"""How wrong is a gradient for the time it takes? No baseline, mean, leave-one-out, exact.

python -m benchmarks.gradients
"""

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


def gradient(scores: Tensor, relevance: Tensor, **how: Any) -> Tensor:
    """Gradient of NDCG - D_ind by the scores, query by query ``(Q, n)``."""
    exposure = PlackettLuce(scores).exposure(**how)
    value = expected_ndcg(exposure, relevance) - individual_disparity(exposure, relevance)
    return torch.autograd.grad(value.sum(), scores)[0]


def in_a_row(*problem: Tensor, **how: Any) -> None:
    """Several at once: the first after a much larger way finds its memory given back."""
    for _ in range(ROW):
        gradient(*problem, **how)


def main() -> None:
    """Root mean square error over queries and five draws, relative to the true gradient."""
    torch.set_num_threads(1)
    scores, relevance = problem()
    truth = gradient(scores, relevance, tolerance=1e-12)
    rows: list[dict[str, Any]] = []
    settings: dict[str, list[tuple[float, dict]]] = {
        baseline or "none": [
            (s, {"method": "sample", "samples": s, "baseline": baseline}) for s in SAMPLES
        ]
        for baseline in (None, "mean", "loo")
    }
    settings["exact"] = [(t, {"tolerance": t}) for t in TOLERANCES]
    work = {}
    for name, choices in settings.items():
        for setting, how in choices:
            errors = []
            for seed in range(1 if name == "exact" else 5):
                g = torch.Generator().manual_seed(seed)
                got = gradient(scores, relevance, generator=g, **how)
                errors.append((got - truth).square().sum(-1) / truth.square().sum(-1))
            error = float(torch.stack(errors).mean().sqrt())
            rows.append({"way": name, "setting": setting, "error": error})
            work[f"{name} {setting}"] = partial(in_a_row, scores, relevance, **how)
            print(f"{name:>6} {setting:>8g}: relative error {error:9.2e}")
    # All in turn: a busy spell of the machine then slows every way alike.
    for row, spent in zip(rows, _timing.interleaved(work, 15).values(), strict=True):
        row["seconds"] = spent / QUERIES / ROW
    _timing.store("gradients", COMMAND, rows=rows)


if __name__ == "__main__":
    main()
