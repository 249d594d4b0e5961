"""The paper's synthetic data (Section 4.2)."""

import torch

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
    """Two features, one of them hidden for the minority group.

    Every document is in G1 with probability `minority`, independently ("in expectation 8 … and
    2"); x1 and x2 are uniform on (0, 3); its relevance is x1 + x2 clipped to [0, clip]. Only
    then is x2 replaced by 0 for G1. features (n_queries * n_docs, 2) are (x1, x2).

    The authors' notebook clips at 4 where the paper says 5: `clip=4.0` is their run, up to
    their random draw, which had no seed.

    One torch.Generator seeded with `seed` gives first the uniform draws for membership, then
    those for (x1, x2), in float64: the same seed with another `clip`, `minority` or `dtype`
    keeps the same draws. `dtype` is torch's default unless given.

    Chapters 7 and 9; section 4.2 of the paper.

    >>> synthetic()
    RankingDataset(100 queries, 1000 documents, 2 features, groups 0/1)
    """
    if n_queries < 1 or n_docs < 1:
        raise ValueError(
            f"synthetic: n_queries is {n_queries}, n_docs is {n_docs}; give 1 or more."
        )
    if not 0 <= minority <= 1 or not clip > 0:
        raise ValueError(f"synthetic: minority is {minority}, clip is {clip}; see the docstring.")
    generator = torch.Generator().manual_seed(seed)
    n = n_queries * n_docs
    groups = (torch.rand(n, generator=generator, dtype=torch.float64) < minority).long()
    x = 3 * torch.rand(n, 2, generator=generator, dtype=torch.float64)
    relevance = x.sum(1).clamp(0.0, clip)
    x[groups == 1, 1] = 0.0
    dtype = dtype or torch.get_default_dtype()
    return RankingDataset(
        x.to(dtype),
        relevance.to(dtype),
        torch.arange(0, n + 1, n_docs),
        groups=groups,
        info={"name": "synthetic", "seed": seed, "clip": clip, "minority": minority},
    )
