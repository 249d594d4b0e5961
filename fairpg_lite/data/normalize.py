"""Rescaling features: within a query, or by the mean and deviation of a training set."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor

ROWS = 1 << 14  # documents handled at a time, so that statistics need no second copy


def row_blocks(values: Tensor) -> Iterator[Tensor]:
    """Views of `values (N, …)`, a bounded number of rows each."""
    return iter(values.split(ROWS)) if len(values) else iter(())


def minmax_per_query(features: Tensor, bounds: Sequence[int]) -> Tensor:
    """Features (N, d) to [0, 1] within each query; a feature constant in the query becomes 0."""
    scaled = torch.empty_like(features)
    for start, end in pairwise(bounds):
        low, high = features[start:end].aminmax(dim=0)
        # Halves first: high - low of two large finite numbers may overflow, the halves do not.
        span = high / 2 - low / 2
        span = torch.where(span > 0, span, torch.ones_like(span))
        scaled[start:end] = ((features[start:end] / 2 - low / 2) / span).clamp_(0.0, 1.0)
    return scaled


def mean_and_deviation(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and population standard deviation of each column, in float64 and two passes."""
    if not len(features):
        raise ValueError("normalize: the dataset to fit on has no documents.")
    total = torch.zeros(features.shape[1], dtype=torch.float64)
    for block in row_blocks(features):
        total += block.double().sum(0)
    mean = total / len(features)
    square = torch.zeros_like(mean)
    for block in row_blocks(features):
        square += (block.double() - mean).square_().sum(0)
    return mean, (square / len(features)).sqrt()


def scale_of(features: Tensor) -> tuple[Tensor, Tensor]:
    """What `rescale` needs of a training set: mean and divisor of each column, in float64.

    The divisor is the standard deviation, or 1 where the column is constant.
    """
    mean, deviation = mean_and_deviation(features)
    # Rounding leaves a constant column with a deviation of about 1e-16 of its size, not 0.
    constant = deviation <= 1e-12 * mean.abs()
    return mean, torch.where(constant, torch.ones_like(deviation), deviation)


def rescale(features: Tensor, mean: Tensor, divisor: Tensor) -> Tensor:
    """Features (N, d) less `mean (d,)`, over `divisor (d,)`, in the features' type."""
    scaled = torch.empty_like(features)
    for block, out in zip(row_blocks(features), row_blocks(scaled), strict=True):
        out.copy_((block.double() - mean) / divisor)
    return scaled


def standardise(features: Tensor, reference: Tensor) -> Tensor:
    """Features (N, d) scaled by the columns' mean and deviation in `reference (M, d)`.

    A column that is constant in `reference` is only shifted.
    """
    if features.shape[1] != reference.shape[1]:
        raise ValueError(
            f"normalize: {features.shape[1]} features here, {reference.shape[1]} in fitted_on."
        )
    return rescale(features, *scale_of(reference))
