"""The coursework's last task: a disparity of one's own. Not one right answer, but rules to keep."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from checker.examine import Ask, Wrong, require, value_of
from checker.policies import bias
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import synthetic
from fairpg_lite.disparity import group_disparity, individual_disparity
from fairpg_lite.scorers import LinearScorer
from fairpg_lite.train import fit, objective_on


class Query(NamedTuple):
    """The arguments of a disparity, ``(B, n)`` each."""

    exposure: Tensor
    merit: Tensor
    groups: Tensor
    mask: Tensor | None = None


def own_disparity(answers: Sequence[Ask], generator: Generator) -> None:
    """Half of the points for a measure of unfairness, all for one that can be trained on."""
    _measures(answers[0], generator)
    try:
        _trains(answers[0], generator)
    except Wrong as wrong:
        raise Wrong(str(wrong), 0.5) from None


def _rule(holds: Any, name: str, query: Query | None = None, **values: Any) -> None:
    require("task8", holds, name, **(query._asdict() if query else {}), **values)


def _asked(ask: Ask, query: Query) -> tuple[Tensor, Tensor | None]:
    """One value per query ``(B,)``, and the gradient of their sum by exposure if there is one."""
    wanted = query.exposure.shape[:-1]
    answer = ask(query._asdict(), False, torch.ones(wanted, dtype=torch.float64))
    value = value_of(answer)
    got = tuple(value.shape)
    _rule(got == wanted, "shape", query, got=got, wanted=tuple(wanted))
    return value, answer.slope


def _random(generator: Generator, queries: int = 3, n: int = 6) -> Query:
    rows = [bias(n)[torch.randperm(n, generator=generator)] for _ in range(queries)]
    merit = torch.randint(1, 6, (queries, n), generator=generator).double()
    groups = torch.tensor([0, 1, 0, 0, 1, 0]).expand(queries, n).clone()
    return Query(torch.stack(rows), merit, groups)


def _measures(ask: Ask, generator: Generator) -> None:
    query = _random(generator)
    value, _ = _asked(ask, query)
    _rule(torch.isfinite(value).all(), "not_finite", query)
    _rule((value >= -1e-12).all(), "negative", query, least=float(value.min()))
    for share in (0.1, 0.2):
        fair = query._replace(exposure=share * query.merit)
        most = float(_asked(ask, fair)[0].abs().max())
        _rule(most <= 1e-8, "fair", fair, share=share, most=most)
    # Equal merit, one group on top.
    exposure = bias(6).unsqueeze(0)
    unfair = Query(exposure, torch.ones_like(exposure), torch.tensor([[0, 0, 0, 1, 1, 1]]))
    amount, slope = _asked(ask, unfair)
    _rule(amount > 1e-6, "unfair", unfair)
    _rule(slope is not None, "no_gradient", unfair)
    flat = slope is None or not torch.isfinite(slope).all() or not slope.any()
    _rule(not flat, "flat", unfair)
    moved = Query(*(part.roll(1, -1) for part in query[:3]))  # no document stays where it was
    _rule(torch.allclose(value, _asked(ask, moved)[0], atol=1e-9), "order", query)


def _trains(ask: Ask, generator: Generator) -> None:
    query = _random(generator, queries=1)
    padded = query._replace(mask=torch.arange(6).unsqueeze(0) < 5)
    bare = Query(*(part[:, :-1] for part in query[:3]))
    same = torch.allclose(_asked(ask, bare)[0], _asked(ask, padded)[0], atol=1e-9)
    _rule(same, "padding", padded)
    # Some queries have nobody of merit; one NaN among them would end any training.
    query = _random(generator)
    query = query._replace(merit=query.merit * torch.tensor([[1.0], [0.0], [1.0]]))
    for what, found in zip(("answer", "gradient"), _asked(ask, query), strict=True):
        finite = found is None or torch.isfinite(found).all()
        _rule(finite, "without_merit", query, what=what)
    query = _random(generator, queries=40)
    value, _ = _asked(ask, query)
    known = {"D_ind": individual_disparity(*query[:2]), "D_group": group_disparity(*query[:3])}
    for measure, other in known.items():
        away = value - float((value * other).sum() / (other * other).sum()) * other
        _rule(float(away.norm()) >= 0.03 * float(value.norm()), "known", measure=measure)
    _learns(ask, generator)


def _learns(ask: Ask, generator: Generator) -> None:
    """Training against it, with a weight in its own scale, must bring it down."""
    seed = int(torch.randint(10_000, (), generator=generator))
    data = synthetic(n_queries=30, seed=seed).to(dtype=torch.float64)

    def disparity(exposure: Tensor, *rest: Any) -> Tensor:
        """The answer, wherever it was found, with its gradient by exposure."""
        value, slope = _asked(ask, Query(exposure.detach(), *rest))
        return value if slope is None else value + (slope * (exposure - exposure.detach())).sum(-1)

    def after_training(lam: float) -> float:
        start = torch.Generator().manual_seed(0)
        scorer = LinearScorer(data.n_features, generator=start, dtype=torch.float64)
        config = TrainConfig(
            lam=lam, disparity=disparity, method="exact", lr=0.1, epochs=12, batch_size=10
        )
        fit(scorer, data, config, progress=False)
        return objective_on(scorer, data, config)[1]

    try:
        before = after_training(lam=0.0)
        after = after_training(lam=20.0 / max(before, 1e-9))
    except (ValueError, RuntimeError, ArithmeticError) as error:
        _rule(False, "stops", error=f"{type(error).__name__}: {error}")
    _rule(after < 0.97 * before, "not_learned", before=before, after=after)
