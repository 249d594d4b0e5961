"""The loop over batches with its two steps shared out to threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from fairpg_lite.compiled.kernels.batches import batch_loop, grade_batch, score_batch

# Always as many, so that sums come out the same on any number of threads.
_PARTS = 8


def run_batches_on(pool: ThreadPoolExecutor) -> Callable[..., int]:
    """`run_batches` with the queries of every batch shared out to the threads of ``pool``.

    The loop itself then runs as Python, which costs little beside batches as large as these.
    """
    return batch_loop(partial(_score_in_parts, pool), partial(_grade_in_parts, pool))


def _score_in_parts(
    pool: ThreadPoolExecutor,
    model: Any,
    queries: Any,
    row_starts: Any,
    longest: Any,
    workspace: Any,
) -> float:
    """`score_batch` for the parts of a batch."""

    def score(part: slice) -> float:
        return float(score_batch(model, queries[part], row_starts[part], longest, workspace))

    return min(pool.map(score, _parts(len(queries))))


def _grade_in_parts(
    pool: ThreadPoolExecutor,
    model: Any,
    queries: Any,
    row_starts: Any,
    longest: Any,
    workspace: Any,
    lowest: Any,
    noise: Any,
    gamma: Any,
    share: Any,
    terms: Any,
    grad: Any,
) -> float:
    """`grade_batch` for the parts of a batch, each with a gradient of its own to add to."""
    parts = _parts(len(queries))
    grads = np.zeros((len(parts), len(grad)), grad.dtype)

    def grade(part: slice, part_grad: Any) -> float:
        total = grade_batch(
            model, queries[part], row_starts[part], longest, workspace, lowest,
            noise[:, part], gamma, share, terms[part], part_grad,
        )  # fmt: skip
        return float(total)

    total = sum(pool.map(grade, parts, grads))
    grad += grads.sum(0)
    return total


def _parts(count: int) -> list[slice]:
    """Slices that divide ``count`` queries into parts of nearly equal size, none of them empty."""
    bounds = np.linspace(0, count, min(_PARTS, count) + 1).astype(int).tolist()
    return [slice(start, end) for start, end in pairwise(bounds)]
