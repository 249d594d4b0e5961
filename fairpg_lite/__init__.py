"""fairpg_lite: fairness of exposure in learning to rank.

Policies, exact exposure, disparities and their gradients, after Singh & Joachims, "Policy Learning
for Fairness in Ranking" (NeurIPS 2019). The book derives every function; start at chapter 1.
"""

from fairpg_lite._version import __version__
from fairpg_lite.budget import fit_to_budget
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import (
    LetorError,
    RankingDataset,
    german_credit,
    load_letor,
    mslr_sample,
    save_letor,
    synthetic,
    yahoo,
)
from fairpg_lite.disparity import group_disparity, individual_disparity
from fairpg_lite.estimator import FairRanker
from fairpg_lite.evaluate import evaluate
from fairpg_lite.exposure import position_bias, ranking_exposure
from fairpg_lite.figures import tradeoff
from fairpg_lite.metrics import (
    average_precision,
    average_rank,
    dcg,
    err,
    expected_dcg,
    expected_ndcg,
    ideal_dcg,
    ndcg,
    reciprocal_rank,
)
from fairpg_lite.models import load_model, save_model
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.preparation import Preparation
from fairpg_lite.relevance import binary_gain, exponential_gain, linear_gain, merit_of
from fairpg_lite.scorers import LinearScorer, MLPScorer
from fairpg_lite.sweep import Cell, grid, load_cells, run_cells, sweep
from fairpg_lite.train import fit

__all__ = [
    "Cell",
    "FairRanker",
    "LetorError",
    "LinearScorer",
    "MLPScorer",
    "PlackettLuce",
    "Preparation",
    "RankingDataset",
    "TrainConfig",
    "__version__",
    "average_precision",
    "average_rank",
    "binary_gain",
    "dcg",
    "err",
    "evaluate",
    "expected_dcg",
    "expected_ndcg",
    "exponential_gain",
    "fit",
    "fit_to_budget",
    "german_credit",
    "grid",
    "group_disparity",
    "ideal_dcg",
    "individual_disparity",
    "linear_gain",
    "load_cells",
    "load_letor",
    "load_model",
    "merit_of",
    "mslr_sample",
    "ndcg",
    "position_bias",
    "ranking_exposure",
    "reciprocal_rank",
    "run_cells",
    "save_letor",
    "save_model",
    "sweep",
    "synthetic",
    "tradeoff",
    "yahoo",
]
