"""The paper's synthetic set (section 4.2)."""

import torch

from fairpg_lite import _check
from fairpg_lite.data.dataset import RankingDataset


def synthetic(
    n_queries: int = 100,
    n_docs: int = 10,
    seed: int = 0,
    clip: float = 5.0,
    minority: float = 0.2,
    *,
    dtype: torch.dtype | None = None,
) -> RankingDataset:
    """Draw documents with two features, one of them hidden for the minority (chapters 7 and 9).

    Each document is in group 1 with probability `minority`; `x1` and `x2` are uniform on (0, 3),
    and its relevance is `x1 + x2` clipped to [0, clip]. Only then is `x2` replaced by 0 in group 1.

    Args:
        n_queries: The number of queries.
        n_docs: The number of documents of each query.
        seed: Decides all draws. One generator draws membership first and then `(x1, x2)`, in
            float64, so the same seed with another `clip`, `minority` or `dtype` has the same draws.
        clip: The largest relevance: 5 in section 4.2 of the paper, 4 in the authors' notebook.
        minority: The probability of group 1.
        dtype: The dtype of features and relevance; None is torch's default.

    Returns:
        One dataset with features `(n_queries * n_docs, 2)`; another seed makes another one, to
        test on.

    >>> synthetic()
    RankingDataset(100 queries, 1000 documents, 2 features, groups 0/1)
    """
    if n_queries < 1:
        raise ValueError(f"synthetic: n_queries is {n_queries}; give 1 or more.")
    if n_docs < 1:
        raise ValueError(f"synthetic: n_docs is {n_docs}; give 1 or more.")
    if not clip > 0:
        raise ValueError(f"synthetic: clip is {clip}; give a number above 0.")
    if not 0 <= minority <= 1:
        raise ValueError(f"synthetic: minority is {minority}; give a probability, 0 to 1.")
    generator = torch.Generator().manual_seed(_check.seed("synthetic: seed", seed))
    n_documents = n_queries * n_docs
    draws = torch.rand(n_documents, generator=generator, dtype=torch.float64)
    groups = (draws < minority).long()
    features = 3 * torch.rand(n_documents, 2, generator=generator, dtype=torch.float64)
    relevance = features.sum(1).clamp(0.0, clip)
    features[groups == 1, 1] = 0.0
    if dtype is None:
        dtype = torch.get_default_dtype()
    return RankingDataset(
        features.to(dtype),
        relevance,
        torch.arange(0, n_documents + 1, n_docs),
        groups=groups,
        info={"name": "synthetic", "seed": seed, "clip": clip, "minority": minority},
    )
