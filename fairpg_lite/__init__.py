"""fairpg_lite: fairness of exposure in learning to rank.

Policies, exact exposure, disparities and their gradients, after Singh & Joachims, "Policy Learning
for Fairness in Ranking" (NeurIPS 2019). The book derives every function; start at chapter 1.
"""

from fairpg_lite._version import __version__
from fairpg_lite.disparity import MERITS, group_disparity, individual_disparity, merit_of
from fairpg_lite.exposure import position_bias, ranking_exposure
from fairpg_lite.metrics import (
    average_precision,
    average_rank,
    binary_gain,
    dcg,
    err,
    expected_dcg,
    expected_ndcg,
    exponential_gain,
    ideal_dcg,
    linear_gain,
    ndcg,
    reciprocal_rank,
)
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.scorers import LinearScorer, MLPScorer

__all__ = [
    "MERITS",
    "LinearScorer",
    "MLPScorer",
    "PlackettLuce",
    "__version__",
    "average_precision",
    "average_rank",
    "binary_gain",
    "dcg",
    "err",
    "expected_dcg",
    "expected_ndcg",
    "exponential_gain",
    "group_disparity",
    "ideal_dcg",
    "individual_disparity",
    "linear_gain",
    "merit_of",
    "ndcg",
    "position_bias",
    "ranking_exposure",
    "reciprocal_rank",
]
