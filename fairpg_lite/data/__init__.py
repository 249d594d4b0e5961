"""Data: the paper's sets, open stand-ins, and readers of LETOR files."""

from fairpg_lite.data.batches import Batch, Batches
from fairpg_lite.data.dataset import Query, RankingDataset
from fairpg_lite.data.summary import Summary

__all__ = ["Batch", "Batches", "Query", "RankingDataset", "Summary"]
