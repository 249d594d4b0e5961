"""The methods that Fair-PG-Rank is compared with, each at its best.

Post-processing and DELTR are the paper's fairness baselines (chapters 9 and 12), RankSVM and
gradient-boosted trees its rankers (chapter 10). Needs ``pip install "fairpg-lite[experiments]"``.
"""

from fairpg_lite.baselines.birkhoff import Mixture, birkhoff, sample_rankings
from fairpg_lite.baselines.constraints import FairnessRows, group_rows
from fairpg_lite.baselines.deltr import deltr, deltr_loss, top_exposure_gap
from fairpg_lite.baselines.gbdt import TreeScorer, gbdt
from fairpg_lite.baselines.postprocess import InfeasibleError, fair_ranking_lp, post_process
from fairpg_lite.baselines.ranksvm import Fitted, rank_svm
from fairpg_lite.baselines.regression import linear_regression

__all__ = [
    "FairnessRows",
    "Fitted",
    "InfeasibleError",
    "Mixture",
    "TreeScorer",
    "birkhoff",
    "deltr",
    "deltr_loss",
    "fair_ranking_lp",
    "gbdt",
    "group_rows",
    "linear_regression",
    "post_process",
    "rank_svm",
    "sample_rankings",
    "top_exposure_gap",
]
