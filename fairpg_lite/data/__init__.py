"""Data: RankingDataset, the sets of the paper, an open sample, LETOR files, and TREC's."""

# No file here has the name of a function, so that the function never hides the file.
from fairpg_lite.data.batches import Batches
from fairpg_lite.data.dataset import Query, RankingDataset
from fairpg_lite.data.german import german_credit
from fairpg_lite.data.letor import load_letor, save_letor
from fairpg_lite.data.letor_lines import LetorError
from fairpg_lite.data.mslr import mslr_sample
from fairpg_lite.data.simulated import synthetic
from fairpg_lite.data.trec import from_trec

__all__ = [
    "Batches",
    "LetorError",
    "Query",
    "RankingDataset",
    "from_trec",
    "german_credit",
    "load_letor",
    "mslr_sample",
    "save_letor",
    "synthetic",
]
