"""The methods that Fair-PG-Rank is compared with, each at its best.

Post-processing and DELTR are the paper's fairness baselines (chapters 9 and 12), RankSVM and
gradient-boosted trees its rankers (chapter 10). Needs ``pip install "fairpg-lite[experiments]"``.
"""

from fairpg_lite.baselines.deltr import deltr, deltr_loss, top_exposure_gap
from fairpg_lite.baselines.lp import fair_ranking_lp, group_rows, post_process
from fairpg_lite.baselines.rankers import gbdt, linear_regression, rank_svm

__all__ = [
    "deltr",
    "deltr_loss",
    "fair_ranking_lp",
    "gbdt",
    "group_rows",
    "linear_regression",
    "post_process",
    "rank_svm",
    "top_exposure_gap",
]
