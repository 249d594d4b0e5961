"""An open sample of MSLR-WEB10K."""

import io
import lzma

import numpy as np
import torch

from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.resources import read_resource


def mslr_sample(dtype: torch.dtype | None = None) -> tuple[RankingDataset, RankingDataset]:
    """Return the first 42 training and 42 test queries of MSLR-WEB10K, Fold 1 (chapters 2 and 10).

    The documents have 136 features, each brought to [0, 1] within its query, and grades 0 to 4.
    Data: Qin & Liu, "Introducing LETOR 4.0 Datasets", arXiv:1306.2597, CC BY 4.0.

    Args:
        dtype: The dtype of features and relevance; None is torch's default.

    Returns:
        The pair `(train, test)`, as Microsoft divided the queries.

    >>> train, test = mslr_sample()
    >>> train
    RankingDataset(42 queries, 4955 documents, 136 features, no groups)
    """
    if dtype is None:
        dtype = torch.get_default_dtype()
    train = mslr_raw("train").normalize().to(dtype)
    test = mslr_raw("test").normalize().to(dtype)
    return train, test


def mslr_raw(part: str) -> RankingDataset:
    """Return the "train" or "test" queries of the sample, with the values of Microsoft's text."""
    if part not in ("train", "test"):
        raise ValueError(f"mslr_raw: part is {part!r}; choose 'train' or 'test'.")
    content = lzma.decompress(read_resource(f"mslr_web10k_fold1_{part}.npz.xz"))
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        # Stored with the documents of a feature side by side, which compresses to half the size.
        features = np.ascontiguousarray(arrays["features"].T)
        return RankingDataset(
            torch.from_numpy(features),
            torch.from_numpy(arrays["relevance"]),
            arrays["offsets"],
            query_ids=arrays["query_ids"],
            info={"name": f"MSLR-WEB10K Fold 1, {part}, first 42 queries"},
        )
