"""fairpg_lite: fairness of exposure in learning to rank.

Policies, exact exposure, disparities and their gradients, after Singh & Joachims, "Policy Learning
for Fairness in Ranking" (NeurIPS 2019). The book derives every function; start at chapter 1.
"""

# The public names, a line each: `as` with the same name says that it is passed on.
from fairpg_lite._version import __version__ as __version__
from fairpg_lite.data import LetorError as LetorError
from fairpg_lite.data import RankingDataset as RankingDataset
from fairpg_lite.data import german_credit as german_credit
from fairpg_lite.data import load_letor as load_letor
from fairpg_lite.data import mslr_sample as mslr_sample
from fairpg_lite.data import save_letor as save_letor
from fairpg_lite.data import synthetic as synthetic
from fairpg_lite.disparity import group_disparity as group_disparity
from fairpg_lite.disparity import individual_disparity as individual_disparity
from fairpg_lite.evaluation import evaluate as evaluate
from fairpg_lite.exposure import position_bias as position_bias
from fairpg_lite.exposure import ranking_exposure as ranking_exposure
from fairpg_lite.metrics import average_precision as average_precision
from fairpg_lite.metrics import average_rank as average_rank
from fairpg_lite.metrics import dcg as dcg
from fairpg_lite.metrics import err as err
from fairpg_lite.metrics import expected_dcg as expected_dcg
from fairpg_lite.metrics import expected_ndcg as expected_ndcg
from fairpg_lite.metrics import ideal_dcg as ideal_dcg
from fairpg_lite.metrics import ndcg as ndcg
from fairpg_lite.metrics import reciprocal_rank as reciprocal_rank
from fairpg_lite.models.model_file import load_model as load_model
from fairpg_lite.models.model_file import save_model as save_model
from fairpg_lite.models.preparation import Preparation as Preparation
from fairpg_lite.policy import PlackettLuce as PlackettLuce
from fairpg_lite.relevance import binary_gain as binary_gain
from fairpg_lite.relevance import exponential_gain as exponential_gain
from fairpg_lite.relevance import linear_gain as linear_gain
from fairpg_lite.relevance import merit_of as merit_of
from fairpg_lite.scorers import LinearScorer as LinearScorer
from fairpg_lite.scorers import MLPScorer as MLPScorer
from fairpg_lite.sweeps.curve import tradeoff as tradeoff
from fairpg_lite.sweeps.records import Cell as Cell
from fairpg_lite.sweeps.records import grid as grid
from fairpg_lite.sweeps.records import load_cells as load_cells
from fairpg_lite.sweeps.running import run_cells as run_cells
from fairpg_lite.sweeps.running import sweep as sweep
from fairpg_lite.training.budget import fit_to_budget as fit_to_budget
from fairpg_lite.training.config import TrainConfig as TrainConfig
from fairpg_lite.training.estimator import FairRanker as FairRanker
from fairpg_lite.training.loop import fit as fit
