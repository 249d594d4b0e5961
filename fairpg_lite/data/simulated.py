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
    """Two features, one of them hidden for the minority group (chapters 7 and 9).

    Every document is in G1 with probability `minority`; x1 and x2 are uniform on (0, 3), its
    relevance is x1 + x2 clipped to [0, clip], and only then is x2 replaced by 0 for G1. features
    (n_queries * n_docs, 2) are (x1, x2). The authors' notebook clips at 4 where the paper, in
    section 4.2, says 5.

    One generator gives first the draws for membership, then those for (x1, x2), in float64: the
    same seed with another `clip`, `minority` or `dtype` (torch's default) keeps the same draws.

    >>> synthetic()
    RankingDataset(100 queries, 1000 documents, 2 features, groups 0/1)
    """
    if n_queries < 1 or n_docs < 1 or not 0 <= minority <= 1 or not clip > 0:
        given = f"{n_queries} queries of {n_docs}, minority {minority}, clip {clip}"
        raise ValueError(f"synthetic: {given}; give 1 or more, a share in [0, 1], a clip above 0.")
    generator = torch.Generator().manual_seed(_check.seed("synthetic: seed", seed))
    n = n_queries * n_docs
    groups = (torch.rand(n, generator=generator, dtype=torch.float64) < minority).long()
    x = 3 * torch.rand(n, 2, generator=generator, dtype=torch.float64)
    relevance = x.sum(1).clamp(0.0, clip)
    x[groups == 1, 1] = 0.0
    return RankingDataset(
        x.to(dtype or torch.get_default_dtype()),
        relevance,
        torch.arange(0, n + 1, n_docs),
        groups=groups,
        info={"name": "synthetic", "seed": seed, "clip": clip, "minority": minority},
    )
