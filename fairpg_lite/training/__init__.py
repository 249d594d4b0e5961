"""Training: settings, the loop over epochs, checkpoints, budgets, and scikit-learn's manners."""

from fairpg_lite.training.budget import fit_to_budget
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.estimator import FairRanker
from fairpg_lite.training.history import History
from fairpg_lite.training.loop import fit, objective_on

__all__ = [
    "FairRanker",
    "History",
    "TrainConfig",
    "fit",
    "fit_to_budget",
    "objective_on",
]
