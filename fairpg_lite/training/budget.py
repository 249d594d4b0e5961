r"""Training to a disparity budget: the constrained problem of section 2.1 (chapter 14).

The paper writes down :math:`\max_\pi U \text{ s.t. } D \le \delta` and then chooses lambda by hand.
The dual function of that problem has slope :math:`D(\lambda) - \delta`, so climbing it in its one
variable means raising lambda while the policy is over budget and lowering it while it is under.
"""

import copy
import dataclasses
import math
from dataclasses import dataclass, field

from torch import nn

from fairpg_lite._extras import progress_bar
from fairpg_lite.data import RankingDataset
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.history import History
from fairpg_lite.training.loop import fit, objective_on

# Trainings at most, and doublings of lambda in a row that may leave the disparity where it is.
_ROUNDS, _PATIENCE = 30, 4


@dataclass
class BudgetResult:
    """What ``fit_to_budget`` found; ``rounds`` lists every (lambda, utility, disparity) tried.

    ``utility`` and ``disparity`` are those that were held to the budget: on the validation queries
    where there are some, else on the training queries, as ``train_disparity`` always is.
    """

    delta: float
    lam: float = 0.0
    utility: float = 0.0
    disparity: float = math.inf
    train_disparity: float = math.inf
    converged: bool = False
    message: str = ""
    rounds: list[tuple[float, float, float]] = field(default_factory=list)
    history: History = field(default_factory=History, repr=False)


def fit_to_budget(
    scorer: nn.Module,
    dataset: RankingDataset,
    delta: float,
    config: TrainConfig | None = None,
    *,
    valid: RankingDataset | None = None,
    tolerance: float = 0.02,
    progress: bool = True,
) -> BudgetResult:
    """Train ``scorer`` in place with the least lambda whose disparity is at most ``delta``.

    Every round trains from the scorer's initial weights at one lambda (that of ``config`` is
    ignored): doubling from 1 while the policy is over budget, then halving the interval, until the
    disparity, measured exactly, lies within ``tolerance * delta`` below the budget. A budget that
    stays out of reach however large lambda grows is reported with the least disparity found. With
    ``valid`` those queries are held to the budget and choose the epoch; the result's message says
    where a budget does not carry over. Ctrl-C ends the search with KeyboardInterrupt.
    Chapters 2 and 14, eq-02-constrained; section 2.1 of the paper.
    """
    config = config or TrainConfig(method="exact")
    if not delta >= 0 or config.disparity is None:
        found = f"delta is {delta} and config.disparity {config.disparity}"
        raise ValueError(f"fit_to_budget: {found}; give zero or more, and what to bound.")
    initial = best_weights = copy.deepcopy(scorer.state_dict())
    result, judged = BudgetResult(delta), dataset if valid is None else valid
    lam, low, high = 0.0, 0.0, math.inf
    with progress_bar("budget", _ROUNDS, "fit", progress) as bar:
        for _ in range(_ROUNDS):
            scorer.load_state_dict(initial)
            tried = dataclasses.replace(config, lam=lam)
            history = fit(scorer, dataset, tried, valid, progress=False)
            if history.stopped == "interrupted":  # or Ctrl-C would only lead to the next lambda
                raise KeyboardInterrupt
            utility, disparity = objective_on(scorer, judged, tried)
            result.rounds.append((lam, utility, disparity))
            over = disparity > delta
            # Within budget lambda falls from round to round; before, the least disparity counts.
            if not over or (high == math.inf and disparity < result.disparity):
                best_weights = copy.deepcopy(scorer.state_dict())
                close = lam == 0.0 or delta - disparity <= tolerance * delta
                result.lam, result.utility, result.disparity = result.rounds[-1]
                result.converged, result.history = not over and close, history
            bar.update(1)
            low, high = (lam, high) if over else (low, lam)
            recent = [d for *_, d in result.rounds[-_PATIENCE - 1 :]]
            stuck = high == math.inf and len(recent) > _PATIENCE and min(recent) > 0.99 * recent[0]
            jump = high - low <= 1e-6 * low  # the disparity jumps here: no lambda uses it up
            if result.converged or jump or stuck:
                break
            lam = (low + high) / 2 if high < math.inf else max(1.0, 2 * low)
    scorer.load_state_dict(best_weights)
    result.train_disparity = objective_on(scorer, dataset, config)[1]
    result.message = _message(result)
    return result


def _message(result: BudgetResult) -> str:
    delta, trained, disparity = result.delta, result.train_disparity, result.disparity
    if result.converged:
        text = "converged" if result.lam else "lambda is 0: the budget does not bind"
    elif disparity <= delta:
        text = "within budget, but not close to it; allow more tolerance"
    else:
        largest = max(lam for lam, *_ in result.rounds)
        text = f"infeasible here: the least disparity found is {disparity:.3g}, above delta = "
        text += f"{delta:g} (lambda up to {largest:g})"
    if (trained <= delta) != (disparity <= delta):
        text += f"; the budget does not carry over: disparity {trained:.3g} on the training "
        text += f"queries, {disparity:.3g} on the validation queries"
    return text
