"""Relevance estimated by least squares, fairness-oblivious as in the paper (chapter 9)."""

import torch

from fairpg_lite.data import RankingDataset
from fairpg_lite.scorers import LinearScorer


@torch.no_grad()
def linear_regression(dataset: RankingDataset) -> LinearScorer:
    """Ordinary least squares with an intercept: a scorer ``(…, n, d)`` to relevance ``(…, n)``.

    All documents of all queries count alike. Redundant columns (a one-hot coding has them) share
    their weight: the solution of least norm in standardised features. Constant columns get none.

    Chapter 9.
    """
    if not dataset.n_documents:
        raise ValueError("linear_regression: the dataset has no documents to fit on.")
    features, relevance = dataset.features.double(), dataset.relevance.double()
    mean, level = features.mean(0), relevance.mean()
    deviation = (features - mean).square().mean(0).sqrt()
    # A constant column keeps a deviation of rounding size.
    deviation = torch.where(deviation > 1e-12 * mean.abs(), deviation, torch.inf)
    standard, target = (features - mean) / deviation, (relevance - level).unsqueeze(-1)
    solution = torch.linalg.lstsq(standard, target, rcond=1e-5, driver="gelsd").solution
    weight = solution[:, 0] / deviation
    model = LinearScorer(dataset.n_features, bias=True, init=0.0, dtype=dataset.features.dtype)
    model.linear.weight.copy_(weight)
    model.linear.bias.copy_(level - mean @ weight)
    return model
