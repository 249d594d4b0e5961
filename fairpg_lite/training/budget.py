r"""Training to a disparity budget: the constrained problem of the paper's section 2.1.

The paper writes down :math:`\max_\pi U \text{ s.t. } D \le \delta` and then chooses lambda by hand.
The dual function of that problem has slope :math:`D(\lambda) - \delta`, so climbing it in its one
variable means raising lambda while the policy is over budget and lowering it while it is under.
"""

import copy
import dataclasses
import math
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import nn

from fairpg_lite._extras import progress_bar
from fairpg_lite.data import RankingDataset
from fairpg_lite.measures import MEASURES
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.history import History
from fairpg_lite.training.loop import fit
from fairpg_lite.training.validation import objective_on

#: Trainings at most.
MAX_ROUNDS = 30
# So many doublings of lambda in a row that lower the disparity by less than one per cent mean that
# no lambda will do.
_VAIN_DOUBLINGS = 4
_NO_PROGRESS = 0.99
# An interval of lambda narrower than this, relative to its lower end, is a point at which the
# disparity jumps across the budget.
_NARROWEST = 1e-6


class Round(NamedTuple):
    """One training of the search, and what it led to on the queries that are held to the budget."""

    lam: float
    utility: float
    disparity: float


@dataclass
class BudgetResult:
    """What `fit_to_budget` found; the scorer holds these weights.

    >>> BudgetResult(delta=0.01, lam=4.0, utility=0.8, disparity=0.009).lam
    4.0
    """

    delta: float
    """The budget that was asked for."""
    lam: float = 0.0
    """The lambda that was found."""
    utility: float = 0.0
    """Mean on the validation queries where there are some, else on the training queries."""
    disparity: float = math.inf
    """Mean on the validation queries where there are some, else on the training queries; this is
    what is held to the budget."""
    train_disparity: float = math.inf
    """Mean on the training queries."""
    converged: bool = False
    """Whether the budget is kept and used up, or does not bind at all."""
    message: str = ""
    """The outcome in a sentence."""
    rounds: list[Round] = field(default_factory=list)
    """Every training that was made, with its ``lam``, ``utility`` and ``disparity``."""
    history: History = field(default_factory=History, repr=False)
    """The course of the training whose weights are kept."""


def fit_to_budget(
    scorer: nn.Module,
    dataset: RankingDataset,
    delta: float,
    config: TrainConfig | None = None,
    *,
    valid: RankingDataset | None = None,
    slack: float = 0.02,
    progress: bool = True,
) -> BudgetResult:
    r"""Train a scorer with the least lambda whose disparity keeps a budget (chapters 2 and 14).

    .. math:: \max_\pi U(\pi) \quad \text{subject to} \quad D(\pi) \le \delta

    Every round trains from the scorer's initial weights at one lambda: 0 first, then doubling from
    1 while the policy is over budget, then halving the interval, until the disparity, measured
    exactly, is within the budget and not more than ``slack * delta`` below it. See
    eq-02-constrained. If several doublings in a row hardly lower the disparity the search ends, and
    the scorer holds the least disparity found.

    Ctrl-C raises KeyboardInterrupt and ends the search; the scorer then holds the last finished
    epoch of the round that was interrupted, which is at no particular lambda.

    Args:
        scorer: As for `fit`; trained in place, and every round starts from its present weights.
        dataset: The training queries.
        delta: The budget, zero or more; of a welfare loss ("nash", "gini_welfare") or a disparity
            of your own, any number.
        config: As for `fit`; its ``lam`` is ignored, its ``disparity`` is what the budget bounds.
            None is ``TrainConfig(method="exact")`` and not, as for `fit`, the paper's sampling: the
            search compares trainings at lambdas that are close to each other, and only without
            noise in the gradient is it lambda alone that makes them differ.
        valid: Validation queries. They are held to the budget instead of the training queries, and
            choose the epoch of each round; the result's ``message`` says where the budget does not
            carry over. None holds the training queries to it.
        slack: How much of the budget may be left unused, as a fraction of the size of ``delta``.
        progress: Whether to show a progress bar on stderr.

    Returns:
        The lambda, and utility and disparity at it; ``converged`` says whether the budget is kept.

    Raises:
        ValueError: If ``delta`` is below what the disparity can be, or ``config`` has none.

    >>> import torch
    >>> from fairpg_lite import LinearScorer, synthetic
    >>> scorer = LinearScorer(2, generator=torch.Generator().manual_seed(0))
    >>> config = TrainConfig(method="exact", lr=0.1, epochs=5)
    >>> result = fit_to_budget(scorer, synthetic(50), 0.01, config, slack=0.1, progress=False)
    >>> result.converged, 0.009 <= result.disparity <= 0.01
    (True, True)
    """
    if config is None:
        config = TrainConfig(method="exact")
    if config.disparity is None:
        raise ValueError(
            "fit_to_budget: config.disparity is None; choose the disparity that delta bounds."
        )
    if math.isnan(delta):
        raise ValueError("fit_to_budget: delta is nan; give a number.")
    if isinstance(config.disparity, str) and delta < MEASURES[config.disparity].least:
        raise ValueError(
            f"fit_to_budget: delta is {delta}; a budget of {config.disparity} cannot be negative."
        )
    if not slack >= 0:
        raise ValueError(f"fit_to_budget: slack is {slack}; give a fraction of delta, 0 or more.")
    held_to_budget = dataset if valid is None else valid
    initial_weights = copy.deepcopy(scorer.state_dict())
    best_weights = initial_weights
    result = BudgetResult(delta)
    # Lambda is too small at `low`, and large enough at `high`.
    lam = 0.0
    low = 0.0
    high = math.inf
    with progress_bar("budget", MAX_ROUNDS, "fit", progress) as bar:
        for _ in range(MAX_ROUNDS):
            scorer.load_state_dict(initial_weights)
            config_of_round = dataclasses.replace(config, lam=lam)
            history = fit(scorer, dataset, config_of_round, valid, progress=False)
            utility, disparity = objective_on(scorer, held_to_budget, config_of_round)
            result.rounds.append(Round(lam, utility, disparity))
            bar.update(1)

            keeps_budget = disparity <= delta
            is_least_so_far = high == math.inf and disparity < result.disparity
            # Once one lambda keeps the budget, each that does is smaller than the one before.
            if keeps_budget or is_least_so_far:
                best_weights = copy.deepcopy(scorer.state_dict())
                uses_budget = lam == 0.0 or delta - disparity <= slack * abs(delta)
                result.lam = lam
                result.utility = utility
                result.disparity = disparity
                result.converged = keeps_budget and uses_budget
                result.history = history

            if keeps_budget:
                high = lam
            else:
                low = lam
            if result.converged or _is_in_vain(result.rounds, low, high):
                break
            lam = max(1.0, 2 * low) if high == math.inf else (low + high) / 2
    scorer.load_state_dict(best_weights)
    result.train_disparity = objective_on(scorer, dataset, config)[1]
    result.message = _message(result)
    return result


def _is_in_vain(rounds: list[Round], low: float, high: float) -> bool:
    """Whether another lambda would not bring the disparity closer to the budget."""
    if high < math.inf:
        return high - low <= _NARROWEST * low
    recent = [one.disparity for one in rounds[-_VAIN_DOUBLINGS - 1 :]]
    return len(recent) > _VAIN_DOUBLINGS and min(recent) > _NO_PROGRESS * recent[0]


def _message(result: BudgetResult) -> str:
    """The outcome of a search in a sentence."""
    if result.converged and result.lam == 0.0:
        outcome = "lambda is 0: the budget does not bind"
    elif result.converged:
        outcome = "converged"
    elif result.disparity <= result.delta:
        outcome = "within budget, but not close to it; allow more slack"
    else:
        largest_lam = max(one.lam for one in result.rounds)
        outcome = (
            f"infeasible here: the least disparity found is {result.disparity:.3g}, "
            f"above delta = {result.delta:g} (lambda up to {largest_lam:g})"
        )
    train_keeps_budget = result.train_disparity <= result.delta
    keeps_budget = result.disparity <= result.delta
    if train_keeps_budget != keeps_budget:
        outcome += (
            f"; the budget does not carry over: disparity {result.train_disparity:.3g} on the "
            f"training queries, {result.disparity:.3g} on the validation queries"
        )
    return outcome
