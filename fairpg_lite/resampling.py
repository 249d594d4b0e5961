"""Intervals and tests by drawing the queries again.

The same digits with or without SciPy, because readers compare them; tests/module/test_evaluation.py
compares both functions with ``scipy.stats``.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

RESAMPLES = 2000


def weighted_mean(values: Tensor, weights: Tensor | None = None) -> Tensor:
    """The mean ``()`` of ``values (Q,)`` by ``weights (Q,)``; None weighs all alike.

    >>> weighted_mean(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0]))
    tensor(2.)
    """
    if weights is None:
        return values.mean()
    return (weights * values).sum() / weights.sum()


def bootstrap_interval(values: Tensor, weights: Tensor | None = None) -> tuple[float, float]:
    """95 % percentile interval of the mean of ``values (Q,)``; NaN if there are none.

    With ``weights (Q,)`` it is that of their weighted mean; a query keeps its weight.

    >>> low, high = bootstrap_interval(torch.arange(100.0).double())
    >>> low < 49.5 < high
    True
    """
    count = len(values)
    if count == 0:
        return float("nan"), float("nan")
    means = []
    for index in drawn_indices(count):
        means.append(weighted_mean(values[index], None if weights is None else weights[index]))
    return interval_of(torch.stack(means))


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
    return p_value_of(torch.stack(sums), float(differences.sum()))


def interval_of(resampled: Tensor) -> tuple[float, float]:
    """The 95 % percentile interval of resampled values ``(R,)``; NaN ones are left out.

    >>> interval_of(torch.arange(101.0).double())
    (2.5, 97.5)
    """
    resampled = resampled[~resampled.isnan()]
    if len(resampled) == 0:
        return float("nan"), float("nan")
    ends = torch.tensor([0.025, 0.975], dtype=torch.float64)
    low, high = resampled.quantile(ends).tolist()
    return low, high


def p_value_of(resampled: Tensor, seen: float) -> float:
    """The share of resampled values ``(R,)`` as far from 0 as the one that was seen, itself one.

    NaN if nothing was seen.

    >>> p_value_of(torch.tensor([-1.0, 0.5, 2.0]), 1.0)
    0.75
    """
    if math.isnan(seen):
        return float("nan")
    is_as_far = resampled.abs() >= abs(seen) * (1.0 - 1e-12)
    return (1 + int(is_as_far.sum())) / (1 + len(resampled))


def drawn_indices(count: int) -> Iterator[Tensor]:
    """`RESAMPLES` times ``count`` of the numbers below ``count``, with replacement."""
    for uniform in _uniform_numbers(count):
        yield (uniform * count).long()


def fair_coins(count: int) -> Iterator[Tensor]:
    """`RESAMPLES` times ``count`` booleans, each as often True as False."""
    for uniform in _uniform_numbers(count):
        yield uniform > 0.5


def _uniform_numbers(count: int) -> Iterator[Tensor]:
    """`RESAMPLES` times ``count`` numbers between 0 and 1, the same at each call."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(RESAMPLES):
        yield torch.rand(count, generator=generator, dtype=torch.float64)
