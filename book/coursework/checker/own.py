"""The coursework's last task: a disparity of one's own. Not one right answer, but rules to keep."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from checker.calls import shown_by
from checker.examine import Finding, Wrong, answer_of, slope_of
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset, synthetic
from fairpg_lite.disparity import group_disparity, individual_disparity
from fairpg_lite.exposure import position_bias
from fairpg_lite.scorers import LinearScorer
from fairpg_lite.train import fit, objective_on

NAMES = ("exposure", "merit", "groups", "mask")
Query = tuple[Tensor, Tensor, Tensor, Tensor | None]


def own_disparity(answers: tuple[Any, ...], generator: Generator) -> Finding:
    """Half of the points for a measure of unfairness, all for one that can be trained on."""
    for share, rules in (
        (0.0, (_shapes, _fair, _unfair, _order)),
        (0.5, (_padding, _without_merit, _new, _learns)),
    ):
        for rule in rules:
            try:
                for message in rule(answers[0], generator):
                    return Finding(share, message)
            except Wrong as wrong:
                return Finding(share, str(wrong))
    return Finding(1.0)


def _value(function: Any, query: Query) -> Tensor:
    """One value per query ``(B,)``."""
    inputs = dict(zip(NAMES, query, strict=True))
    value, _ = answer_of(function, inputs)
    wanted = query[0].shape[:-1]
    if value.shape != wanted:
        raise Wrong(
            f"The answer has shape {tuple(value.shape)}; exposure is {tuple(query[0].shape)}, so "
            f"wanted is {tuple(wanted)}: one value per query, sums over the last axis only "
            f"(dim=-1). {shown_by(inputs)}"
        )
    return value


def _slope(function: Any, query: Query, upstream: Tensor) -> Tensor | None:
    return slope_of(function, dict(zip(NAMES, query, strict=True)), upstream)


def _random(generator: Generator, queries: int = 3, n: int = 6) -> Query:
    exposure = position_bias(n, dtype=torch.float64)
    rows = [exposure[torch.randperm(n, generator=generator)] for _ in range(queries)]
    merit = torch.randint(1, 6, (queries, n), generator=generator).double()
    groups = torch.tensor([0, 1, 0, 0, 1, 0]).expand(queries, n).clone()
    return torch.stack(rows), merit, groups, None


def _shapes(function: Any, generator: Generator) -> Iterator[str]:
    query = _random(generator)
    value = _value(function, query)
    if not torch.isfinite(value).all():
        yield f"The answer is not finite. {shown_by(dict(zip(NAMES, query, strict=True)))}"
    elif (value < -1e-12).any():
        yield (
            f"The answer is negative ({float(value.min()):.4f}). Zero means fair, larger means "
            f"less fair. {shown_by(dict(zip(NAMES, query, strict=True)))}"
        )


def _fair(function: Any, generator: Generator) -> Iterator[str]:
    _, merit, groups, _ = _random(generator)
    for share in (0.1, 0.2):
        value = _value(function, (share * merit, merit, groups, None))
        if value.abs().max() > 1e-8:
            yield (
                f"Exposure is {share} times merit for everybody, as fair as can be, and your "
                f"disparity is {float(value.max()):.4f}; it must be 0. {shown_by({'merit': merit})}"
            )


def _unfair(function: Any, generator: Generator) -> Iterator[str]:
    """Equal merit, one group on top."""
    exposure = position_bias(6, dtype=torch.float64).unsqueeze(0)
    merit, groups = torch.ones_like(exposure), torch.tensor([[0, 0, 0, 1, 1, 1]])
    query = (exposure, merit, groups, None)
    shown = shown_by(dict(zip(NAMES, query, strict=True)))
    if float(_value(function, query)) <= 1e-6:
        yield f"All have the same merit, one group stands on top, and your disparity is 0. {shown}"
    slope = _slope(function, query, torch.ones(1, dtype=torch.float64))
    if slope is None:
        yield f"No gradient flows from the result back to exposure: stay with torch. {shown}"
    elif not torch.isfinite(slope).all() or not slope.any():
        yield f"The gradient by exposure is zero or not finite; it can teach nothing. {shown}"


def _order(function: Any, generator: Generator) -> Iterator[str]:
    exposure, merit, groups, _ = _random(generator)
    p = torch.arange(exposure.shape[-1]).roll(1)  # no document stays where it was
    moved = (exposure[:, p], merit[:, p], groups[:, p], None)
    query = (exposure, merit, groups, None)
    if not torch.allclose(_value(function, query), _value(function, moved), atol=1e-9):
        yield (
            "Listing the same documents in another order changes the answer. The order of the "
            f"arguments is not the ranking. {shown_by(dict(zip(NAMES, query, strict=True)))}"
        )


def _padding(function: Any, generator: Generator) -> Iterator[str]:
    query = _random(generator, queries=1)
    keep = torch.tensor([[True, True, True, True, True, False]])
    exposure, merit, groups, _ = query
    bare = _value(function, (exposure[:, :-1], merit[:, :-1], groups[:, :-1], None))
    padded = _value(function, (*query[:3], keep))
    if not torch.allclose(bare, padded, atol=1e-9):
        shown = shown_by(dict(zip(NAMES, (*query[:3], keep), strict=True)))
        yield f"Half of the points: the mask has no effect; padding must not count. {shown}"


def _without_merit(function: Any, generator: Generator) -> Iterator[str]:
    """Some queries have nobody of merit; one NaN among them would end any training."""
    exposure, merit, groups, _ = _random(generator)
    query = (exposure, merit * torch.tensor([[1.0], [0.0], [1.0]]), groups, None)
    slope = _slope(function, query, torch.ones(3, dtype=torch.float64))
    finite = torch.isfinite(_value(function, query)).all()
    if not finite or (slope is not None and not torch.isfinite(slope).all()):
        shown = shown_by(dict(zip(NAMES[:2], query, strict=False)))
        what = "gradient" if finite else "answer"
        yield (
            f"Half of the points: where nobody in a query has merit, the {what} is not finite. "
            f"Such a query owes nobody anything. {shown}"
        )


def _new(function: Any, generator: Generator) -> Iterator[str]:
    query = _random(generator, queries=40)
    value = _value(function, query)
    known = {
        "D_ind": individual_disparity(*query[:2]),
        "D_group": group_disparity(*query[:3]),
    }
    for name, other in known.items():
        scale = float((value * other).sum() / (other * other).sum())
        if float((value - scale * other).norm()) < 0.03 * float(value.norm()):
            yield (
                f"Half of the points: this is {name} up to a factor, or so near to it that nobody "
                "could tell them apart. Find one of your own."
            )


def _learns(function: Any, generator: Generator) -> Iterator[str]:
    """Training against it, with a weight in its own scale, must bring it down."""
    data = synthetic(n_queries=30, seed=int(torch.randint(10_000, (), generator=generator)))
    data = data.to(dtype=torch.float64)
    before = _after_training(function, data, lam=0.0)
    after = _after_training(function, data, lam=20.0 / max(before, 1e-9))
    if not after < 0.97 * before:
        yield (
            "Half of the points: Fair-PG-Rank trained with a heavy weight on your disparity does "
            f"not bring it down ({before:.4f} without, {after:.4f} with). Is its gradient zero "
            "almost everywhere, or can no ranking of these documents lower it?"
        )


class _Asked(torch.autograd.Function):
    """The student's function as a step of autograd, wherever it runs."""

    @staticmethod
    def forward(ctx: Any, exposure: Tensor, function: Any, query: Query) -> Tensor:
        ctx.function, ctx.query = function, query
        return _value(function, query)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        return _slope(ctx.function, ctx.query, upstream[0]), None, None


def _after_training(function: Any, data: RankingDataset, lam: float) -> float:
    def disparity(
        exposure: Tensor, merit: Tensor, groups: Tensor | None, mask: Tensor | None = None
    ) -> Tensor:
        assert groups is not None  # the course's data have them
        return _Asked.apply(exposure, function, (exposure.detach(), merit, groups, mask))

    scorer = LinearScorer(
        data.n_features, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    config = TrainConfig(
        lam=lam, disparity=disparity, method="exact", lr=0.1, epochs=12, batch_size=10
    )
    try:
        fit(scorer, data, config, progress=False)
        return objective_on(scorer, data, config)[1]
    except Wrong:
        raise
    except Exception as error:
        raise Wrong(
            f"`fit` with your disparity stops with {type(error).__name__}: {error}."
        ) from None
