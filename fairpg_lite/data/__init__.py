"""Data: the paper's sets, an open sample, and readers of LETOR files.

No file here has the name of a function, so that the function never hides the file.
"""

from fairpg_lite.data.dataset import Query, RankingDataset
from fairpg_lite.data.letor import LetorError, load_letor, save_letor
from fairpg_lite.data.sets import german_credit, mslr_sample, synthetic

__all__ = [
    "LetorError",
    "Query",
    "RankingDataset",
    "german_credit",
    "load_letor",
    "mslr_sample",
    "save_letor",
    "synthetic",
]
