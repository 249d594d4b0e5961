"""Training: settings, the loop over epochs, checkpoints, budgets, promises, scikit-learn's way.

================ ================================================================================
`config`         what a training is told: `TrainConfig`
`history`        what it reports: `History`
`loop`           `fit`, the loop over epochs
`run`            the state of one training, and one epoch of it
`optimizers`     Adam or SGD
`validation`     the exact objective on a dataset
`checkpoint`     the state in a file
`distributed`    processes that train together
`budget`         `fit_to_budget`: the least lambda that keeps a budget
`certificate`    `certify`: a budget that is kept on queries nobody has seen
`fair_layer`     `make_fair`: an existing ranker made fair
`estimator`      `FairRanker` and `disparity_score`, for scikit-learn, which it imports
================ ================================================================================
"""

from fairpg_lite.training.budget import BudgetResult, fit_to_budget
from fairpg_lite.training.certificate import Certificate, certify, largest_disparity
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.fair_layer import FairLayer, make_fair
from fairpg_lite.training.history import History
from fairpg_lite.training.loop import fit
from fairpg_lite.training.validation import objective_on

__all__ = [
    "BudgetResult",
    "Certificate",
    "FairLayer",
    "History",
    "TrainConfig",
    "certify",
    "fit",
    "fit_to_budget",
    "largest_disparity",
    "make_fair",
    "objective_on",
]
