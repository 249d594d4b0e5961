"""The methods that Fair-PG-Rank is compared with, each at its best.

Post-processing and DELTR are the paper's fairness baselines (chapters 9 and 12), RankSVM and
gradient-boosted trees its rankers (chapter 10). Needs ``pip install "fairpg-lite[experiments]"``.
"""

from fairpg_lite.baselines.deltr import deltr as deltr
from fairpg_lite.baselines.deltr import deltr_loss as deltr_loss
from fairpg_lite.baselines.deltr import top_exposure_gap as top_exposure_gap
from fairpg_lite.baselines.lp import fair_ranking_lp as fair_ranking_lp
from fairpg_lite.baselines.lp import group_rows as group_rows
from fairpg_lite.baselines.lp import post_process as post_process
from fairpg_lite.baselines.rankers import gbdt as gbdt
from fairpg_lite.baselines.rankers import linear_regression as linear_regression
from fairpg_lite.baselines.rankers import rank_svm as rank_svm
