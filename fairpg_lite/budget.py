r"""Training to a disparity budget: the constrained problem of section 2.1 (chapter 14).

The paper writes down :math:`\max_\pi U \text{ s.t. } D \le \delta` and then chooses lambda by hand.
The dual function of that problem has slope :math:`D(\lambda) - \delta`, so climbing it in its one
variable means raising lambda while the policy is over budget and lowering it while it is under.
"""

import copy
import dataclasses
from dataclasses import dataclass, field

from torch import nn

from fairpg_lite._progress import progress_bar
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.history import History
from fairpg_lite.train import fit, objective_on

# Doublings of lambda in a row that may leave the disparity where it is before we call it stuck.
_PATIENCE = 4


@dataclass
class BudgetResult:
    """What ``fit_to_budget`` found; ``rounds`` lists every (lambda, utility, disparity) tried.

    ``utility`` and ``disparity`` are those that were held to the budget: on the validation queries
    where there are some, else on the training queries.

    Chapter 14.
    """

    delta: float
    lam: float
    utility: float
    disparity: float
    converged: bool
    message: str
    rounds: list[tuple[float, float, float]] = field(default_factory=list)
    history: History = field(default_factory=History, repr=False)
    train_disparity: float = float("nan")
    """On the training queries, whichever queries decided."""

    @property
    def gap(self) -> float:
        """Budget left over: delta less the disparity reached; negative if over budget."""
        return self.delta - self.disparity


def fit_to_budget(
    scorer: nn.Module,
    dataset: RankingDataset,
    delta: float,
    config: TrainConfig | None = None,
    *,
    valid: RankingDataset | None = None,
    tolerance: float = 0.02,
    start: float = 1.0,
    max_rounds: int = 30,
    progress: bool = True,
) -> BudgetResult:
    """Train ``scorer`` in place with the least lambda whose disparity is at most ``delta``.

    Every round trains from the scorer's initial weights at one lambda: doubling from ``start``
    while the policy is over budget, then halving the interval, until the disparity lies within
    ``tolerance * delta`` below the budget or ``max_rounds`` are spent. The disparity is measured
    exactly. A budget that stays out of reach however large lambda grows is reported with the least
    disparity found, not looped on. Ctrl-C ends the search with KeyboardInterrupt.

    Chapters 2 and 14, eq-02-constrained; section 2.1 of the paper.

    Args:
        scorer: As for `fit`.
        dataset: The training queries.
        delta: The budget.
        config: Settings of each round; its ``lam`` is ignored.
        valid: Queries to hold to the budget instead of the training queries, and to choose the
            epoch by. A policy that meets a budget where it was trained need not meet it elsewhere;
            the result's message says so where it happens.
        tolerance: How much of the budget may be left unused.
        start: The first lambda after 0.
        max_rounds: How many lambdas to try.
        progress: Whether to show a bar on stderr.
    """
    config = config or TrainConfig(method="exact")
    if not delta >= 0:
        raise ValueError(f"fit_to_budget: delta is {delta}; no disparity is below zero.")
    if config.disparity is None:
        raise ValueError("fit_to_budget: config.disparity is None; choose one to bound.")
    search = _Search(scorer, dataset, valid, config, delta)
    with progress_bar("budget", max_rounds, "fit", progress) as bar:
        lam, low, high = 0.0, 0.0, float("inf")
        for _ in range(max_rounds):
            over = search.try_lambda(lam) > delta
            bar.update(1)
            low, high = (lam, high) if over else (low, lam)
            if search.close_enough(tolerance) or search.stuck():
                break
            if high - low <= 1e-6 * low:  # the disparity jumps here: no lambda uses it up
                break
            lam = (low + high) / 2 if high < float("inf") else max(start, 2 * low)
    return search.result(tolerance)


class _Search:
    def __init__(
        self,
        scorer: nn.Module,
        dataset: RankingDataset,
        valid: RankingDataset | None,
        config: TrainConfig,
        delta: float,
    ):
        self.scorer, self.dataset, self.valid = scorer, dataset, valid
        self.config, self.delta = config, delta
        self.initial = copy.deepcopy(scorer.state_dict())
        self.rounds: list[tuple[float, float, float]] = []
        self.best: tuple[tuple[float, float, float], dict, History] | None = None

    def try_lambda(self, lam: float) -> float:
        """Train at ``lam``; returns the disparity and keeps the best round."""
        self.scorer.load_state_dict(self.initial)
        config = dataclasses.replace(self.config, lam=lam)
        history = fit(self.scorer, self.dataset, config, self.valid, progress=False)
        if history.stopped == "interrupted":  # or Ctrl-C would only lead to the next lambda
            raise KeyboardInterrupt
        deciding = self.dataset if self.valid is None else self.valid
        utility, disparity = objective_on(self.scorer, deciding, config)
        self.rounds.append((lam, utility, disparity))
        if self.best is None or self._rank(self.rounds[-1]) < self._rank(self.best[0]):
            weights = copy.deepcopy(self.scorer.state_dict())
            self.best = (self.rounds[-1], weights, history)
        return disparity

    def _rank(self, found: tuple[float, float, float]) -> tuple[bool, float]:
        """Within budget before over budget; then the least lambda, or the least disparity."""
        lam, _, disparity = found
        over = disparity > self.delta
        return over, disparity if over else lam

    def close_enough(self, tolerance: float) -> bool:
        assert self.best is not None
        lam, _, disparity = self.best[0]
        within = self.delta - disparity >= 0.0
        return within and (lam == 0.0 or self.delta - disparity <= tolerance * self.delta)

    def stuck(self) -> bool:
        """Over budget in every round, and the last doublings changed nothing."""
        recent = [disparity for _, _, disparity in self.rounds[-_PATIENCE - 1 :]]
        if len(recent) <= _PATIENCE or min(d for *_, d in self.rounds) <= self.delta:
            return False
        return min(recent) > 0.99 * recent[0]

    def result(self, tolerance: float) -> BudgetResult:
        assert self.best is not None
        (lam, utility, disparity), weights, history = self.best
        self.scorer.load_state_dict(weights)
        converged = self.close_enough(tolerance)
        if converged:
            message = "lambda is 0: the budget does not bind" if lam == 0.0 else "converged"
        elif disparity <= self.delta:
            message = "within budget, but not close to it; allow more rounds, or more tolerance"
        else:
            largest = max(lam for lam, *_ in self.rounds)
            message = (
                f"infeasible here: the least disparity found is {disparity:.3g} "
                f"(lambda up to {largest:g}), above delta = {self.delta:g}"
            )
        trained = disparity
        if self.valid is not None:
            trained = objective_on(self.scorer, self.dataset, self.config)[1]
            message += self._carried_over(trained, disparity)
        return BudgetResult(
            self.delta, lam, utility, disparity, converged, message, self.rounds, history, trained
        )

    def _carried_over(self, trained: float, disparity: float) -> str:
        """What to say where training and validation queries are on two sides of the budget."""
        if (trained <= self.delta) == (disparity <= self.delta):
            return ""
        return (
            f"; the budget does not carry over: disparity {trained:.3g} on the training queries, "
            f"{disparity:.3g} on the validation queries"
        )
