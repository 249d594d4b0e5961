r"""DELTR, a learning-to-rank loss with an exposure penalty (Zehlike & Castillo; chapters 9 and 12).

.. math:: L = -\sum_i P_y(i) \log P_s(i) + \lambda\, \mathrm{gap}^2

with :math:`P_y, P_s` the probabilities of standing first under the judgements and the scores (a
softmax, as in ListNet), and the gap between the groups' mean top-1 exposure. Group 1 is protected.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fairpg_lite.data import RankingDataset

#: Which gap is squared.
GAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "one-sided": lambda behind: behind.relu(),
    "two-sided": lambda behind: behind,
    "reversed": lambda behind: (-behind).relu(),
}


def top_exposure_gap(scores: Tensor, groups: Tensor, mask: Tensor | None = None) -> Tensor:
    """How far the protected group is behind ``(…)``: others' mean top-1 exposure minus its own.

    Exposure is the softmax of ``scores (…, n)`` times v_1 = 1 (DELTR's text has 1/ln 2: its lambda
    is ours divided by (1/ln 2)**2). Where a side has no document there is no gap: 0. Chapter 9.
    """
    real = torch.ones_like(groups, dtype=torch.bool) if mask is None else mask
    top = scores.masked_fill(~real, -math.inf).softmax(-1)
    sides = torch.stack([(groups != 1) & real, (groups == 1) & real])
    others, ours = torch.where(sides, top, 0.0).sum(-1) / sides.sum(-1).clamp(min=1)
    return torch.where(sides.any(-1).all(0), others - ours, 0.0)


def deltr_loss(
    scores: Tensor,
    relevance: Tensor,
    groups: Tensor,
    lam: float,
    mask: Tensor | None = None,
    *,
    gap: str = "one-sided",
    target: str = "softmax",
) -> Tensor:
    """DELTR's loss ``(…)`` of ``scores (…, n)``, one value per query.

    ``gap``: "one-sided" (DELTR: penalise the protected group being behind), "two-sided" (the
    paper's text: the plain square) or "reversed" (the published notebooks: penalise it being
    ahead). ``target``: "softmax" of relevance (DELTR), or "relevance" itself (the notebooks).
    Chapter 9; appendix B.3 of the paper.

    >>> deltr_loss(torch.zeros(2), torch.tensor([1.0, 1.0]), torch.tensor([0, 1]), lam=1.0)
    tensor(0.6931)
    """
    if gap not in GAPS or target not in ("softmax", "relevance"):
        known = f"{list(GAPS)}, and 'softmax' or 'relevance'"
        raise ValueError(f"deltr_loss: gap is {gap!r} and target {target!r}; choose of {known}.")
    padding = torch.zeros_like(groups, dtype=torch.bool) if mask is None else ~mask
    aim = relevance.masked_fill(padding, 0.0)
    if target == "softmax":
        aim = relevance.masked_fill(padding, -math.inf).softmax(-1)
    # Padding has log-probability -inf; 0 * -inf must not happen.
    log_top = scores.masked_fill(padding, -math.inf).log_softmax(-1).masked_fill(padding, 0.0)
    behind = top_exposure_gap(scores, groups, mask)
    return -(aim * log_top).sum(-1) + lam * GAPS[gap](behind).square()


def deltr(train: RankingDataset, lam: float, *, scorer: nn.Module, **options: Any) -> nn.Module:
    """``scorer``, trained in place to the least mean `deltr_loss` over the queries, and returned.

    All queries at once by L-BFGS: the optimum that the paper's stochastic descent looks for. The
    initial weights are kept where no better ones are found. Chapter 9; appendix B.3 of the paper.
    """
    if train.groups is None or not 0 <= lam < math.inf:
        raise ValueError(f"deltr: give data with groups and a finite lam of 0 or more, not {lam}.")
    search = torch.optim.LBFGS(
        scorer.parameters(), max_iter=300, tolerance_grad=1e-9, tolerance_change=1e-12,
        history_size=20, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def mean_loss() -> Tensor:
        search.zero_grad()
        total = torch.zeros(())
        for batch in train.batches(256):
            known: Any = batch.relevance, batch.groups, lam, batch.mask
            part = deltr_loss(scorer(batch.features), *known, **options).sum() / len(train)
            part.backward()
            total = total + part.detach()
        return total

    before, start = copy.deepcopy(scorer.state_dict()), float(mean_loss())
    search.step(mean_loss)
    if not float(mean_loss()) < start:
        scorer.load_state_dict(before)
    search.zero_grad()
    return scorer
