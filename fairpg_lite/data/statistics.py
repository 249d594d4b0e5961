"""Statistics of a dataset's features: scales to normalise by, and a summary to print."""

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


def scale_of(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and divisor (d,) of the columns of features (N, d), in float64 and two passes.

    The divisor is the population's standard deviation, or 1 where the column is constant.
    """
    if not len(features):
        raise ValueError("normalize: the dataset to fit on has no documents.")
    total = torch.zeros(features.shape[1], dtype=torch.float64, device=features.device)
    for block in row_blocks(features):
        total += block.double().sum(0)
    mean, square = total / len(features), torch.zeros_like(total)
    for block in row_blocks(features):
        square += (block.double() - mean).square_().sum(0)
    deviation = (square / len(features)).sqrt()
    # Rounding leaves a constant column with a deviation of about 1e-16 of its size, not 0.
    constant = deviation <= 1e-12 * mean.abs()
    return mean, torch.where(constant, torch.ones_like(deviation), deviation)


def rescale(features: Tensor, mean: Tensor, divisor: Tensor) -> Tensor:
    """Features (N, d) less `mean (d,)`, over `divisor (d,)`, in the features' type."""
    if features.shape[1:] != mean.shape:
        raise ValueError(f"normalize: {features.shape[1]} features here, {len(mean)} in fitted_on.")
    scaled = torch.empty_like(features)
    for block, out in zip(row_blocks(features), row_blocks(scaled), strict=True):
        out.copy_((block.double() - mean) / divisor)
    return scaled


def describe(features: Tensor, relevance: Tensor, groups: Tensor | None, lengths: Tensor) -> str:
    """What is in a dataset, as a small table with one line each; `lengths (Q,)` of its queries."""
    if not len(lengths):
        raise ValueError("RankingDataset.summary: the dataset has no queries.")
    relevance = relevance.double()
    nonzero = torch.zeros(features.shape[1], dtype=torch.int64, device=features.device)
    for block in row_blocks(features):
        nonzero += block.count_nonzero(0)
    density = float(nonzero.sum()) / max(features.numel(), 1)
    rows = {
        "queries": f"{len(lengths):,}",
        "documents": f"{len(features):,}",
        "documents per query": f"{int(lengths.min())} to {int(lengths.max())}, "
        f"mean {float(lengths.double().mean()):.1f}",
        "features": f"{features.shape[1]} ({int((nonzero > 0).sum())} ever non-zero)",
        "non-zero values": f"{100 * density:.1f} %",
    }
    if (relevance != relevance.round()).any() or relevance.max() > 20:  # no grades
        low, mean, high = float(relevance.min()), float(relevance.mean()), float(relevance.max())
        rows["relevance"] = f"{low:.3g} to {high:.3g}, mean {mean:.3g}"
    else:
        shares = 100 * torch.bincount(relevance.long()).double() / len(relevance)
        rows["relevance"] = ", ".join(f"{k}: {s:.1f} %" for k, s in enumerate(shares.tolist()) if s)
    for group in [] if groups is None else groups.unique().tolist():
        members = relevance[groups == group]
        share, mean = 100 * len(members) / len(relevance), float(members.mean())
        rows[f"group {group}"] = f"{share:.1f} % of documents, mean relevance {mean:.3g}"
    rows["features in memory"] = f"{features.nbytes / 1e6:,.1f} MB"
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())
