"""An open sample of MSLR-WEB10K."""

import io
import lzma

import numpy as np
import torch

from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.resources import read_resource


def mslr_sample(dtype: torch.dtype | None = None) -> tuple[RankingDataset, RankingDataset]:
    """`(train, test)`: the first 42 + 42 queries of MSLR-WEB10K, Fold 1 (chapters 2 and 10).

    136 features, each brought to [0, 1] within its query, and grades 0 to 4. Data: Qin & Liu,
    "Introducing LETOR 4.0 Datasets", arXiv:1306.2597, CC BY 4.0.

    >>> mslr_sample()[0]
    RankingDataset(42 queries, 4955 documents, 136 features, no groups)
    """
    dtype = dtype or torch.get_default_dtype()
    train, test = (mslr_raw(part).normalize().to(dtype) for part in ("train", "test"))
    return train, test


def mslr_raw(part: str) -> RankingDataset:
    """The "train" or "test" queries of the sample, with the values of Microsoft's text."""
    content = lzma.decompress(read_resource(f"mslr_web10k_fold1_{part}.npz.xz"))
    info = {"name": f"MSLR-WEB10K Fold 1, {part}, first 42 queries"}
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        # Stored with the documents of a feature side by side, which compresses to half the size.
        features, *rest = (arrays[name] for name in ("features", "relevance", "offsets"))
        features = torch.from_numpy(np.ascontiguousarray(features.T))
        return RankingDataset(features, *rest, query_ids=arrays["query_ids"], info=info)
