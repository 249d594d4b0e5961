r"""DELTR, a learning-to-rank loss with an exposure penalty (Zehlike & Castillo; chapters 9 and 12).

.. math:: L = -\sum_i P_y(i) \log P_s(i) + \lambda\, \mathrm{gap}^2

with :math:`P_y, P_s` the probabilities of standing first under the judgements and the scores (a
softmax, as in ListNet), and the gap between the groups' mean top-1 exposure.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fairpg_lite import _check
from fairpg_lite.baselines.fitted import Fitted
from fairpg_lite.data import Batch, RankingDataset
from fairpg_lite.scorers import LinearScorer

#: Which gap is squared. DELTR's own is "one-sided": the protected group is behind.
GAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "one-sided": lambda behind: behind.relu(),
    "two-sided": lambda behind: behind,
    "reversed": lambda behind: (-behind).relu(),
}
#: Learning rates in the paper's range [1e-3, 1], two to a decade.
LEARNING_RATES = tuple(10.0 ** (k / 2) for k in range(-6, 1))


def top_exposure_gap(
    scores: Tensor, groups: Tensor, mask: Tensor | None = None, *, protected: int = 1
) -> Tensor:
    """How far the protected group is behind ``(…)``: others' mean top-1 exposure minus its own.

    Exposure is the softmax of ``scores (…, n)`` times v_1 = 1/log2(2) = 1 (DELTR's text has the
    natural logarithm, 1/ln 2: its lambda is ours divided by (1/ln 2)**2). A query in which one of
    the two sides has no document has no gap: 0.

    Chapter 9.
    """
    real = torch.ones_like(groups, dtype=torch.bool) if mask is None else mask
    top = scores.masked_fill(~real, -math.inf).softmax(-1)
    ours, others = (groups == protected) & real, (groups != protected) & real
    gap = _mean(top, others) - _mean(top, ours)
    return torch.where(ours.any(-1) & others.any(-1), gap, 0.0)


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    return torch.where(chosen, values, 0.0).sum(-1) / chosen.sum(-1).clamp(min=1)


def deltr_loss(
    scores: Tensor,
    relevance: Tensor,
    groups: Tensor,
    lam: float,
    mask: Tensor | None = None,
    *,
    gap: str = "one-sided",
    target: str = "softmax",
    protected: int = 1,
) -> Tensor:
    """DELTR's loss ``(…)`` of ``scores (…, n)``, one value per query.

    ``gap``: "one-sided" (DELTR: penalise the protected group being behind), "two-sided" (the plain
    square that the paper's text describes) or "reversed" (the published notebooks: penalise it
    being ahead). ``target``: "softmax" of relevance (DELTR), or "relevance" itself, unnormalised,
    as in the notebooks: a query with nothing relevant then has no ranking loss.

    Chapter 9; appendix B.3 of the paper.

    >>> deltr_loss(torch.zeros(2), torch.tensor([1.0, 1.0]), torch.tensor([0, 1]), lam=1.0)
    tensor(0.6931)
    """
    if gap not in GAPS:
        raise ValueError(f"deltr_loss: gap is {gap!r}; choose one of {list(GAPS)}.")
    if target not in ("softmax", "relevance"):
        raise ValueError(f"deltr_loss: target is {target!r}; choose 'softmax' or 'relevance'.")
    for name, value in (("relevance", relevance), ("groups", groups)):
        _check.same_shape("deltr_loss", name, value, "scores", scores.shape)
    real = torch.ones_like(groups, dtype=torch.bool) if mask is None else mask
    aim = torch.where(real, relevance, 0.0)
    if target == "softmax":
        aim = aim.masked_fill(~real, -math.inf).softmax(-1)
    # Padding has log-probability -inf; 0 * -inf must not happen.
    log_top = scores.masked_fill(~real, -math.inf).log_softmax(-1).masked_fill(~real, 0.0)
    fidelity = -(aim * log_top).sum(-1)
    if lam == 0:
        return fidelity
    behind = top_exposure_gap(scores, groups, mask, protected=protected)
    return fidelity + lam * GAPS[gap](behind).square()


def deltr(
    train: RankingDataset,
    lam: float,
    *,
    validation: RankingDataset | None = None,
    gap: str = "one-sided",
    target: str = "softmax",
    protected: int = 1,
    optimizer: str = "sgd",
    learning_rates: Sequence[float] = LEARNING_RATES,
    epochs: int = 20,
    batch_size: int = 1,
    make_scorer: Callable[[], nn.Module] | None = None,
    seed: int = 0,
) -> Fitted:
    """Train a fresh scorer for this ``lam`` with every learning rate; keep the best.

    Best is the smallest mean loss, at this lam, on ``validation`` (without it: on ``train``) after
    any epoch, the untrained scorer included; a rate that diverges loses. ``optimizer="sgd"`` takes
    one query a step, as the paper says. "lbfgs" takes all queries at once and needs no rate: a
    lambda of 1e6 makes the loss too stiff for any rate in the paper's range, and this is then the
    best that the method can do. ``make_scorer`` makes the model (default: linear, the same start
    for every rate).

    Chapter 9; appendix B.3 of the paper.
    """
    if train.groups is None or (validation is not None and validation.groups is None):
        raise ValueError(
            "deltr: the dataset has no groups; add them with dataset.replace(groups=…)."
        )
    if optimizer not in ("sgd", "lbfgs"):
        raise ValueError(f"deltr: optimizer is {optimizer!r}; choose 'sgd' or 'lbfgs'.")
    if not lam >= 0 or math.isinf(lam):
        raise ValueError(f"deltr: lam is {lam}; give a finite number that is not negative.")

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        scores, groups = model(batch.features), batch.groups
        assert groups is not None
        return deltr_loss(
            scores, batch.relevance, groups, lam, batch.mask,
            gap=gap, target=target, protected=protected,
        )  # fmt: skip

    def fresh() -> nn.Module:
        if make_scorer is not None:
            return make_scorer()
        generator = torch.Generator().manual_seed(seed)
        return LinearScorer(train.n_features, generator=generator, dtype=train.features.dtype)

    judge = train if validation is None else validation
    tried: dict[float, float] = {}
    best = Fitted(fresh(), math.nan, math.inf, tried)
    for rate in learning_rates if optimizer == "sgd" else (1.0,):
        model = fresh()
        if optimizer == "sgd":
            state, tried[rate] = _descend(model, loss, train, judge, rate, epochs, batch_size, seed)
        else:
            state, tried[rate] = _minimise(model, loss, train, judge)
        if tried[rate] < best.objective:
            model.load_state_dict(state)
            best = Fitted(model, rate, tried[rate], tried)
    return best


Loss = Callable[[nn.Module, Batch], Tensor]


@torch.no_grad()
def _mean_loss(model: nn.Module, loss: Loss, dataset: RankingDataset) -> float:
    total = sum(float(loss(model, batch).double().sum()) for batch in dataset.batches(256))
    mean = total / len(dataset)
    return mean if math.isfinite(mean) else math.inf


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def _descend(
    model: nn.Module,
    loss: Loss,
    train: RankingDataset,
    judge: RankingDataset,
    rate: float,
    epochs: int,
    batch_size: int,
    seed: int,
) -> tuple[dict[str, Tensor], float]:
    """Stochastic gradient descent; the weights after the best epoch and their loss."""
    order = torch.Generator().manual_seed(seed)
    step = torch.optim.SGD(model.parameters(), lr=rate)
    best, least = _copy(model), _mean_loss(model, loss, judge)
    for _ in range(epochs):
        for batch in train.batches(batch_size, shuffle=True, generator=order):
            step.zero_grad()
            loss(model, batch).mean().backward()
            step.step()
        now = _mean_loss(model, loss, judge)
        if not math.isfinite(now):
            break
        if now < least:
            best, least = _copy(model), now
    return best, least


def _minimise(
    model: nn.Module, loss: Loss, train: RankingDataset, judge: RankingDataset
) -> tuple[dict[str, Tensor], float]:
    """All queries at once by L-BFGS with a line search; the weights and their loss."""
    best, least = _copy(model), _mean_loss(model, loss, judge)
    search = torch.optim.LBFGS(
        model.parameters(), max_iter=300, tolerance_grad=1e-9, tolerance_change=1e-12,
        history_size=20, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure() -> Tensor:
        search.zero_grad()
        total = torch.zeros(())
        for batch in train.batches(256):
            part = loss(model, batch).sum() / len(train)
            part.backward()
            total = total + part.detach()
        return total

    search.step(closure)
    now = _mean_loss(model, loss, judge)
    return (_copy(model), now) if now < least else (best, least)
