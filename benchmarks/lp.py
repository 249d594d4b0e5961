"""The post-processing programme: sparse and through `fair_ranking_lp`, or dense through linprog.

Prints ratios, not seconds. A small programme is mostly overhead, so the two ways are close there.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from benchmarks import _timing
from fairpg_lite import group_disparity, position_bias
from fairpg_lite.post_processing import fair_ranking_lp, group_rows
from fairpg_lite.relevance import exponential_gain

LAM = 100.0
Query = tuple[Tensor, Tensor]
Solver = Callable[[Tensor, Tensor], Tensor]


def queries(count: int, n: int, seed: int = 0) -> list[Query]:
    """Two groups, the larger a little better, so that most sorted rankings are unfair."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(count):
        groups = (torch.rand(n, generator=generator) < 0.3).long()
        groups[:2] = torch.tensor([0, 1])
        noise = torch.rand(n, generator=generator, dtype=torch.float64)
        made.append((noise + 1.0 + 0.3 * (groups == 0), groups))
    return made


def sparse(relevance: Tensor, groups: Tensor) -> Tensor:
    return fair_ranking_lp(relevance, groups, LAM)


def plain(relevance: Tensor, groups: Tensor) -> Tensor:
    """The same programme as one would write it down: full arrays, one variable per entry."""
    from scipy.optimize import linprog

    n = len(relevance)
    bias = position_bias(n, dtype=torch.float64).numpy()
    unit = np.eye(n)
    sums = np.vstack([np.kron(unit, np.ones(n)), np.kron(np.ones(n), unit)])
    rows = np.array([np.kron(row, bias) for row in group_rows(relevance, groups).rows.numpy()])
    result = linprog(
        np.append(-np.outer(exponential_gain(relevance).numpy(), bias).ravel(), LAM),
        A_ub=np.hstack([rows, -np.ones((len(rows), 1))]),
        b_ub=np.zeros(len(rows)),
        A_eq=np.hstack([sums, np.zeros((2 * n, 1))]),
        b_eq=np.ones(2 * n),
        bounds=[(0, 1)] * (n * n) + [(0, None)],
    )
    return torch.from_numpy(result.x[:-1].reshape(n, n))


def solve_all(way: Solver, data: list[Query]) -> list[Tensor]:
    return [way(*query) for query in data]


def value(P: Tensor, relevance: Tensor, groups: Tensor) -> float:
    exposure = P @ position_bias(len(relevance), dtype=torch.float64)
    paid = group_disparity(exposure, relevance, groups)
    return float(exponential_gain(relevance) @ exposure - LAM * paid)


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'programmes':>10} {'documents':>9} {'dense / ours':>12} {'difference in value':>20}")
    for count, n in ((100, 10), (10, 30), (2, 60)):
        data = queries(count, n)
        ways = {"ours": partial(solve_all, sparse, data), "dense": partial(solve_all, plain, data)}
        spent = _timing.interleaved(ways, repeats=5)
        pairs = zip(data, solve_all(sparse, data), solve_all(plain, data), strict=True)
        gap = max(abs(value(P, *q) - value(Q, *q)) for q, P, Q in pairs)
        print(f"{count:>10} {n:>9} {spent['dense'] / spent['ours']:>12.2f} {gap:>20.1e}")
    ((relevance, groups),) = queries(1, 100)
    work: dict[str, Callable[[], object]] = {
        "hundred": partial(solve_all, sparse, queries(100, 10)),
        "large": partial(sparse, relevance, groups),
    }
    spent = _timing.interleaved(work, repeats=5)
    ratio = spent["large"] / spent["hundred"]
    print(f"one programme of 100 documents / 100 of 10 documents: {ratio:.2f}")


if __name__ == "__main__":
    main()
