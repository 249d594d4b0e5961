"""Intervals and tests by drawing the queries again.

The same digits with or without SciPy, because readers compare them; tests/module/test_evaluation.py
compares both functions with ``scipy.stats``.

Queries that share documents are not independent: whoever is easy to rank is easy in all of them.
Drawing such queries again understates how far a mean would move if other documents had been met.
`Membership` says which documents are in which queries, and by how much an interval must be wider.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import torch
from torch import Tensor

RESAMPLES = 2000

# Queries whose overlaps with all others are counted at once.
_QUERIES_AT_ONCE = 64


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


@dataclass(frozen=True)
class Membership:
    """Which documents are in which queries.

    >>> membership = Membership(torch.tensor([0, 0, 1, 1]), torch.tensor([7, 8, 8, 9]), 2)
    >>> membership.is_shared
    True
    """

    queries: Tensor
    """``(N,)``, the number of each document's query, from 0."""
    document_ids: Tensor
    """``(N,)``, equal for the same item in several queries."""
    count: int
    """How many queries there are, Q."""

    @cached_property
    def occurrences(self) -> Tensor:
        """How often each item is in each query, sparse ``(Q, I)``."""
        items, item = torch.unique(self.document_ids, return_inverse=True)
        ones = torch.ones(len(item), dtype=torch.float64)
        index = torch.stack([self.queries, item])
        shape = (self.count, len(items))
        return torch.sparse_coo_tensor(index, ones, shape, check_invariants=True).coalesce()

    @cached_property
    def is_shared(self) -> bool:
        """Whether any item is in two queries or more."""
        n_items = self.occurrences.shape[1]
        return self.occurrences.values().numel() > n_items

    def among(self, is_kept: Tensor) -> "Membership":
        """The membership of some of the queries, ``is_kept (Q,)``, which are numbered anew."""
        number = is_kept.long().cumsum(0) - 1
        rows = is_kept[self.queries]
        return Membership(number[self.queries[rows]], self.document_ids[rows], int(is_kept.sum()))

    def widening(self, values: Tensor) -> float:
        r"""By how much shared documents widen the interval of a mean over queries.

        Each query's value is taken for the sum of a part of its own and of a part of each of its
        documents, :math:`y_q = \mu + \sum_i Z_{qi} a_i + r_q`, where :math:`Z_{qi}` says how often
        document i is in query q. The variances of both parts follow from two sums of squares, of
        the deviations from the mean and of the deviations summed by document, whose expectations
        are linear in the two variances. Then the mean over Q queries has the variance
        :math:`\sigma_a^2 \sum_i (\sum_q Z_{qi})^2 / Q^2 + \sigma_r^2 / Q`.

        Args:
            values: ``(Q,)``, no NaN.

        Returns:
            The standard error of this variance over that of independent queries, 1 at least.

        Raises:
            ValueError: If the queries share their documents in such a way that the two variances
                cannot be told apart, as when every query has the same documents.

        >>> membership = Membership(torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2]), 3)
        >>> membership.widening(torch.tensor([0.1, 0.5, 0.3]).double())  # nothing is shared
        1.0
        """
        if not self.is_shared:
            return 1.0
        count = self.count
        z = self.occurrences
        deviations = (values - values.mean()).double()
        squares = float(deviations.square().sum())
        by_item = torch.mv(z.t(), deviations)
        squares_by_item = float(by_item.square().sum())
        traces = self._traces
        determinant = traces.overlap**2 - traces.overlap_squared * (count - 1)
        if abs(determinant) <= 1e-9 * traces.squared * count:
            raise ValueError(
                "interval over documents: the queries share their documents in such a way that "
                "what is due to documents cannot be told from what is due to queries; "
                "take over='queries'."
            )
        if squares == 0.0:
            return 1.0
        of_document = (traces.overlap * squares - (count - 1) * squares_by_item) / determinant
        if of_document <= 0.0:
            return 1.0
        of_query = (traces.overlap * squares_by_item - traces.overlap_squared * squares) / (
            determinant
        )
        if of_query < 0.0:
            of_query = 0.0
            of_document = squares / traces.overlap
        variance = of_document * traces.sum_of_overlaps / count**2 + of_query / count
        return max(1.0, math.sqrt(variance * count**2 / squares))

    @cached_property
    def _traces(self) -> "_Traces":
        """What the expectations of the two sums of squares are made of."""
        count = self.count
        z = self.occurrences
        per_item = torch.sparse.sum(z, 0).to_dense()
        sum_of_overlaps = float(per_item.square().sum())
        row_sums = torch.mv(z, per_item)
        squared = 0.0
        for start in range(0, count, _QUERIES_AT_ONCE):
            stop = min(start + _QUERIES_AT_ONCE, count)
            few = torch.index_select(z, 0, torch.arange(start, stop)).to_dense()
            squared += float(torch.sparse.mm(z, few.t()).square().sum())
        overlap = float(z.values().square().sum()) - sum_of_overlaps / count
        overlap_squared = (
            squared - 2.0 * float(row_sums.square().sum()) / count + sum_of_overlaps**2 / count**2
        )
        return _Traces(overlap, overlap_squared, sum_of_overlaps, squared)


@dataclass(frozen=True)
class _Traces:
    """Of the overlaps K = ZZ' of queries, with H = I - 11'/Q, which takes the mean away."""

    overlap: float
    """tr(HK)."""
    overlap_squared: float
    """tr(HKHK)."""
    sum_of_overlaps: float
    """1'K1."""
    squared: float
    """tr(KK), the scale of what rounding leaves of a zero."""


def bootstrap_interval_over_documents(
    values: Tensor, membership: Membership
) -> tuple[float, float]:
    """The interval of `bootstrap_interval`, as much wider as shared documents make it.

    Args:
        values: ``(Q,)``; NaN for a query that is left out.
        membership: Of the Q queries.

    Returns:
        The lower and the upper end.

    >>> membership = Membership(torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2]), 3)
    >>> values = torch.tensor([0.1, 0.5, 0.3]).double()
    >>> bootstrap_interval_over_documents(values, membership) == bootstrap_interval(values)
    True
    """
    is_kept = ~values.isnan()
    kept = values[is_kept]
    low, high = bootstrap_interval(kept)
    if len(kept) == 0:
        return low, high
    widening = membership.among(is_kept).widening(kept)
    if widening == 1.0:
        return low, high
    mean = float(kept.mean())
    # A mean is not below the least of its values, nor above the largest.
    low = max(mean - widening * (mean - low), float(kept.min()))
    high = min(mean + widening * (high - mean), float(kept.max()))
    return low, high


def normal_p_value(values: Tensor, membership: Membership) -> float:
    """Two-sided p-value of a mean of zero, by its standard error with shared documents.

    Args:
        values: ``(Q,)``; NaN for a query that is left out.
        membership: Of the Q queries.

    Returns:
        The p-value of a normal distribution; NaN if there are no values.

    >>> membership = Membership(torch.arange(50), torch.arange(50), 50)
    >>> normal_p_value(torch.ones(50).double() + torch.arange(50) / 50, membership) < 0.01
    True
    """
    is_kept = ~values.isnan()
    kept = values[is_kept]
    if len(kept) == 0:
        return float("nan")
    mean = float(kept.mean())
    if mean == 0.0:
        return 1.0
    widening = membership.among(is_kept).widening(kept)
    error = widening * float(kept.std(correction=0)) / math.sqrt(len(kept))
    if error == 0.0:
        return 0.0
    return 2.0 * NormalDist().cdf(-abs(mean) / error)


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
