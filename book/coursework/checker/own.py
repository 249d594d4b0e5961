"""The coursework's last task: a disparity of one's own. Not one right answer, but rules to keep."""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from checker.calls import shown_by
from checker.examine import Finding, Wrong, answer_of, say, slope_of
from checker.policies import bias
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset, synthetic
from fairpg_lite.disparity import group_disparity, individual_disparity
from fairpg_lite.scorers import LinearScorer
from fairpg_lite.train import fit, objective_on


class Query(NamedTuple):
    """The arguments of a disparity, ``(B, n)`` each."""

    exposure: Tensor
    merit: Tensor
    groups: Tensor
    mask: Tensor | None = None


def own_disparity(answers: tuple[Any, ...], generator: Generator) -> Finding:
    """Half of the points for a measure of unfairness, all for one that can be trained on."""
    measure, trainable = (_shapes, _fair, _unfair, _order), (_padding, _no_merit, _new, _learns)
    for rule in (*measure, *trainable):
        try:
            rule(answers[0], generator)
        except Wrong as wrong:
            return Finding(0.5 if rule in trainable else 0.0, str(wrong))
    return Finding(1.0)


def _refuse(name: str, shown: dict[str, Any] | None = None, **values: Any) -> None:
    raise Wrong(say("task8", name, shown=shown_by(shown or {}), **values))


def _value(function: Any, query: Query) -> Tensor:
    """One value per query ``(B,)``."""
    value, _ = answer_of(function, query._asdict())
    wanted = query.exposure.shape[:-1]
    if value.shape != wanted:
        shapes = {"got": value.shape, "exposure": query.exposure.shape, "wanted": wanted}
        _refuse("shape", query._asdict(), **{name: tuple(x) for name, x in shapes.items()})
    return value


def _slope(function: Any, query: Query) -> Tensor | None:
    upstream = torch.ones(len(query.exposure), dtype=torch.float64)
    return slope_of(function, query._asdict(), upstream)


def _random(generator: Generator, queries: int = 3, n: int = 6) -> Query:
    rows = [bias(n)[torch.randperm(n, generator=generator)] for _ in range(queries)]
    merit = torch.randint(1, 6, (queries, n), generator=generator).double()
    groups = torch.tensor([0, 1, 0, 0, 1, 0]).expand(queries, n).clone()
    return Query(torch.stack(rows), merit, groups)


def _shapes(function: Any, generator: Generator) -> None:
    query = _random(generator)
    value = _value(function, query)
    if not torch.isfinite(value).all():
        _refuse("not_finite", query._asdict())
    if (value < -1e-12).any():
        _refuse("negative", query._asdict(), least=float(value.min()))


def _fair(function: Any, generator: Generator) -> None:
    query = _random(generator)
    for share in (0.1, 0.2):
        value = _value(function, query._replace(exposure=share * query.merit))
        if value.abs().max() > 1e-8:
            _refuse("fair", {"merit": query.merit}, share=share, most=float(value.max()))


def _unfair(function: Any, generator: Generator) -> None:
    """Equal merit, one group on top."""
    exposure = bias(6).unsqueeze(0)
    query = Query(exposure, torch.ones_like(exposure), torch.tensor([[0, 0, 0, 1, 1, 1]]))
    if float(_value(function, query)) <= 1e-6:
        _refuse("unfair", query._asdict())
    slope = _slope(function, query)
    if slope is None:
        _refuse("no_gradient", query._asdict())
    elif not torch.isfinite(slope).all() or not slope.any():
        _refuse("flat", query._asdict())


def _order(function: Any, generator: Generator) -> None:
    query = _random(generator)
    moved = Query(*(part.roll(1, -1) for part in query[:3]))  # no document stays where it was
    if not torch.allclose(_value(function, query), _value(function, moved), atol=1e-9):
        _refuse("order", query._asdict())


def _padding(function: Any, generator: Generator) -> None:
    query = _random(generator, queries=1)
    padded = query._replace(mask=torch.arange(6).unsqueeze(0) < 5)
    bare = Query(*(part[:, :-1] for part in query[:3]))
    if not torch.allclose(_value(function, bare), _value(function, padded), atol=1e-9):
        _refuse("padding", padded._asdict())


def _no_merit(function: Any, generator: Generator) -> None:
    """Some queries have nobody of merit; one NaN among them would end any training."""
    query = _random(generator)
    query = query._replace(merit=query.merit * torch.tensor([[1.0], [0.0], [1.0]]))
    slope = _slope(function, query)
    finite = torch.isfinite(_value(function, query)).all()
    if not finite or (slope is not None and not torch.isfinite(slope).all()):
        shown = {"exposure": query.exposure, "merit": query.merit}
        _refuse("without_merit", shown, what="gradient" if finite else "answer")


def _new(function: Any, generator: Generator) -> None:
    query = _random(generator, queries=40)
    value = _value(function, query)
    known = {"D_ind": individual_disparity(*query[:2]), "D_group": group_disparity(*query[:3])}
    for name, other in known.items():
        scale = float((value * other).sum() / (other * other).sum())
        if float((value - scale * other).norm()) < 0.03 * float(value.norm()):
            _refuse("known", measure=name)


def _learns(function: Any, generator: Generator) -> None:
    """Training against it, with a weight in its own scale, must bring it down."""
    seed = int(torch.randint(10_000, (), generator=generator))
    data = synthetic(n_queries=30, seed=seed).to(dtype=torch.float64)
    before = _after_training(function, data, lam=0.0)
    after = _after_training(function, data, lam=20.0 / max(before, 1e-9))
    if not after < 0.97 * before:
        _refuse("not_learned", before=before, after=after)


class _Asked(torch.autograd.Function):
    """The student's function as a step of autograd, wherever it runs."""

    @staticmethod
    def forward(ctx: Any, exposure: Tensor, function: Any, query: Query) -> Tensor:
        ctx.function, ctx.query = function, query
        return _value(function, query)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        return slope_of(ctx.function, ctx.query._asdict(), upstream[0]), None, None


def _disparity(
    function: Any, exposure: Tensor, merit: Tensor, groups: Tensor, mask: Tensor | None = None
) -> Tensor:
    return _Asked.apply(exposure, function, Query(exposure.detach(), merit, groups, mask))


def _after_training(function: Any, data: RankingDataset, lam: float) -> float:
    start = torch.Generator().manual_seed(0)
    scorer = LinearScorer(data.n_features, generator=start, dtype=torch.float64)
    asked = partial(_disparity, function)
    config = TrainConfig(lam=lam, disparity=asked, method="exact", lr=0.1, epochs=12, batch_size=10)
    try:
        fit(scorer, data, config, progress=False)
        return objective_on(scorer, data, config)[1]
    except Wrong:
        raise
    except Exception as error:
        raise Wrong(say("task8", "stops", error=f"{type(error).__name__}: {error}")) from None
