"""Relevance estimated by least squares, fairness-oblivious as in the paper (chapter 9)."""

import torch

from fairpg_lite.data import RankingDataset
from fairpg_lite.scorers import LinearScorer

_BLOCK = 1 << 14
# Directions of the (standardised) features with less variance than this count as absent.
_LEAST_VARIANCE = 1e-10


@torch.no_grad()
def linear_regression(dataset: RankingDataset) -> LinearScorer:
    """Ordinary least squares with an intercept: a scorer ``(…, n, d)`` to relevance ``(…, n)``.

    All documents of all queries count alike. Redundant columns (a one-hot coding has them) share
    their weight: the solution of least norm in standardised features. Constant columns get none.
    The features are read in blocks, so a large dataset is never copied.

    Chapter 9.
    """
    if not dataset.n_documents:
        raise ValueError("linear_regression: the dataset has no documents to fit on.")
    d = dataset.n_features
    count = dataset.n_documents
    mean = sum(x.double().sum(0) for x in dataset.features.split(_BLOCK)) / count
    target = dataset.relevance.double().mean()
    gram = torch.zeros(d, d, dtype=torch.float64)
    moment = torch.zeros(d, dtype=torch.float64)
    for x, y in zip(dataset.features.split(_BLOCK), dataset.relevance.split(_BLOCK), strict=True):
        centred = x.double() - mean
        gram += centred.T @ centred / count
        moment += centred.T @ (y.double() - target) / count
    deviation = gram.diagonal().sqrt()
    # A constant column keeps a deviation of rounding size.
    deviation = torch.where(deviation > 1e-12 * mean.abs(), deviation, torch.inf)
    values, vectors = torch.linalg.eigh(gram / deviation / deviation.unsqueeze(-1))
    inverse = torch.where(values > _LEAST_VARIANCE * values.max().clamp(min=1.0), 1 / values, 0.0)
    weight = vectors @ (inverse * (vectors.T @ (moment / deviation))) / deviation
    model = LinearScorer(d, bias=True, init=0.0, dtype=dataset.features.dtype)
    model.linear.weight.copy_(weight.unsqueeze(0))
    model.linear.bias.copy_(target - mean @ weight)
    return model
