"""fairpg_lite: fairness of exposure in learning to rank.

Policies, exact exposure, disparities and their gradients, after Singh & Joachims, "Policy Learning
for Fairness in Ranking" (NeurIPS 2019). The book derives every function; start at chapter 1.

    scorer -> scores -> policy -> exposure -> measures -> objective

The names below are the public ones, in the order of this pipeline. What a module without an
underscore has beside them may be imported from that module; it may change between minor versions.

`FairRanker` and `disparity_score` are public, too. They need scikit-learn, so they are imported
when they are first asked for.
"""

from typing import TYPE_CHECKING, Any

from fairpg_lite._version import __version__

# Data
from fairpg_lite.data import RankingDataset, german_credit, load_letor, mslr_sample, save_letor
from fairpg_lite.data import from_trec, synthetic

# Scorer
from fairpg_lite.scorers import LinearScorer, MLPScorer

# Policy
from fairpg_lite.policy import DoublyStochastic, Mixture, PlackettLuce, Policy

# Exposure
from fairpg_lite.exposure import position_bias, ranking_exposure

# Measures
from fairpg_lite.metrics import average_precision, average_rank, dcg, err, expected_dcg
from fairpg_lite.metrics import expected_ndcg, ndcg, reciprocal_rank
from fairpg_lite.disparity import group_disparity, group_gap, individual_disparity
from fairpg_lite.evaluation import Evaluation, evaluate

# Objective, and learning it
from fairpg_lite.training import History, TrainConfig, certify, fit, fit_to_budget, make_fair

if TYPE_CHECKING:
    from fairpg_lite.training.estimator import FairRanker as FairRanker
    from fairpg_lite.training.estimator import disparity_score as disparity_score

# What comes after
from fairpg_lite.models import load_model, save_model
from fairpg_lite.sweeps import tradeoff
from fairpg_lite.figures import plot_tradeoff
from fairpg_lite.auditing import Audit, audit

# Not in __all__: `from fairpg_lite import *` must not need scikit-learn.
_NEEDS_SKLEARN = ("FairRanker", "disparity_score")

__all__ = [
    "__version__",
    "RankingDataset",
    "load_letor",
    "save_letor",
    "from_trec",
    "synthetic",
    "german_credit",
    "mslr_sample",
    "LinearScorer",
    "MLPScorer",
    "Policy",
    "PlackettLuce",
    "DoublyStochastic",
    "Mixture",
    "position_bias",
    "ranking_exposure",
    "dcg",
    "ndcg",
    "expected_dcg",
    "expected_ndcg",
    "err",
    "average_rank",
    "average_precision",
    "reciprocal_rank",
    "individual_disparity",
    "group_disparity",
    "group_gap",
    "evaluate",
    "Evaluation",
    "TrainConfig",
    "fit",
    "History",
    "fit_to_budget",
    "certify",
    "make_fair",
    "save_model",
    "load_model",
    "tradeoff",
    "plot_tradeoff",
    "audit",
    "Audit",
]


def __getattr__(name: str) -> Any:
    """Return what needs scikit-learn, which is imported by this."""
    if name not in _NEEDS_SKLEARN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fairpg_lite.training import estimator

    return getattr(estimator, name)


def __dir__() -> list[str]:
    """Return all names, for completion."""
    return sorted([*globals(), *_NEEDS_SKLEARN])
