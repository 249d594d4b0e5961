"""Intervals and tests by drawing the queries again.

The same digits with or without SciPy, because readers compare them; tests/module/test_evaluation.py
compares both functions with ``scipy.stats``.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

RESAMPLES = 2000


def bootstrap_interval(values: Tensor) -> tuple[float, float]:
    """95 % percentile interval of the mean of ``values (Q,)``; NaN if there are none.

    >>> low, high = bootstrap_interval(torch.arange(100.0).double())
    >>> low < 49.5 < high
    True
    """
    count = len(values)
    if count == 0:
        return float("nan"), float("nan")
    means = [values[(uniform * count).long()].mean() for uniform in _uniform_numbers(count)]
    ends = torch.tensor([0.025, 0.975], dtype=torch.float64)
    low, high = torch.stack(means).quantile(ends).tolist()
    return low, high


def sign_flip_p_value(differences: Tensor) -> float:
    """Two-sided p-value of a mean difference of zero; NaN if there are no ``differences (Q,)``.

    The share of sign patterns whose sum is as far from 0 as the one that was seen, itself one.

    >>> sign_flip_p_value(torch.ones(20).double()) < 0.01
    True
    """
    count = len(differences)
    if count == 0:
        return float("nan")
    sums = [(uniform - 0.5).sign() @ differences for uniform in _uniform_numbers(count)]
    is_as_far = torch.stack(sums).abs() >= differences.sum().abs() * (1.0 - 1e-12)
    return (1 + int(is_as_far.sum())) / (1 + RESAMPLES)


def _uniform_numbers(count: int) -> Iterator[Tensor]:
    """`RESAMPLES` times ``count`` numbers between 0 and 1, the same at each call."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(RESAMPLES):
        yield torch.rand(count, generator=generator, dtype=torch.float64)
