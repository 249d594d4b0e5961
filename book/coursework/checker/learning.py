"""The coursework's tasks on gradients and training, chapters 6 and 7."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

import fairpg_lite as fl
from checker.disparities import g_factor, two_sided_groups
from checker.examine import Ask, Cases, Question, Seen, Slips, Wrong, answered, require, say, typed
from checker.given import LAMBDAS, course_data, settings
from checker.policies import bias, random_scores
from fairpg_lite.training import objective_on

#: Seeds of `runs` and of `sweeps` on which every slip shows.
TELLING_RUNS = (2, 13, 37, 40, 46, 73, 80, 164)
TELLING_SWEEPS = (4, 41, 60, 194)


def _one_of(seeds: Sequence[int], made: Callable[[int], list[Any]], stream: Generator) -> Cases:
    """Inputs, none of them odd, made with one of the seeds."""
    return made(seeds[int(torch.randint(len(seeds), (), generator=stream))]), {}


# --- task 5: the log-derivative estimator ---------------------------------------------------


def _estimate(
    scores: Tensor,
    relevance: Tensor,
    rankings: Tensor,
    *,
    baseline: str | None = "mean",
    gain: Callable[[Tensor], Tensor] = fl.exponential_gain,
) -> Tensor:
    """The gradient of expected DCG by the package: through exposure, by autograd."""
    s = scores.clone().requires_grad_()
    exposure = fl.PlackettLuce(s).exposure(method="sample", rankings=rankings, baseline=baseline)
    return torch.autograd.grad((gain(relevance) * exposure).sum(), s)[0]


def _estimates(generator: Generator) -> Cases:
    cases = []
    for n, samples in ((3, 3), (4, 5), (6, 10)):
        scores = random_scores(n, generator)
        relevance = torch.randperm(n, generator=generator).double() % 5
        rankings = fl.PlackettLuce(scores).sample((samples,), generator)
        rankings[0], rankings[1] = torch.arange(n), torch.arange(n).roll(1)  # never all alike
        cases.append((scores, relevance, rankings))
    scores, relevance, rankings = cases[0]
    alike = "all samples are the same ranking, so none is better than the mean"
    return cases, {
        alike: (scores, relevance, rankings[:1].expand(4, 3).clone()),
        "scores of 800: exp overflows, differences do not": (scores + 800, relevance, rankings),
        "nothing is relevant": (scores, 0 * relevance, rankings),
    }


_GRADIENT: Slips = {
    "summed": lambda s, rel, r: _estimate(s, rel, r) * len(r),
    "no_baseline": partial(_estimate, baseline=None),
    "leave_one_out": partial(_estimate, baseline="loo"),
    "reversed": lambda s, rel, r: -_estimate(s, rel, r),
    "natural_log": lambda s, rel, r: _estimate(s, rel, r) / math.log(2),
    "linear_gain": partial(_estimate, gain=fl.linear_gain),
}
gradient = Question(
    "task5", "scores relevance rankings", _estimate, _estimates, _GRADIENT, at_edges=5e-4
)

# --- task 6: Fair-PG-Rank ---------------------------------------------------------------------


def _fitted(data: fl.RankingDataset, *how: Any, **twist: Any) -> Tensor:
    """Weights ``(d,)`` after `fit` with plain gradient steps; ``twist`` changes a setting."""
    scorer = fl.LinearScorer(data.n_features, init=0.0, dtype=torch.float64)
    asked = dict(zip(("lam", "lr", "epochs", "samples", "seed"), how, strict=True))
    fl.fit(scorer, data, fl.TrainConfig(**{"optimizer": "sgd", **asked, **twist}), progress=False)
    return scorer.linear.weight[0].detach().clone()


def _one_query(disparity: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A disparity for `fit` from one for a single query; 0 where a group or its merit is absent."""
    return lambda v, m, g, mask: disparity(v[0], m[0], g[0]).nan_to_num(posinf=0.0).unsqueeze(0)


def runs(seed: int) -> list[tuple[Any, ...]]:
    """Two small ones, without and with fairness: the arguments of `_fitted`."""
    data = fl.synthetic(n_queries=6, n_docs=5, seed=seed, minority=0.4, dtype=torch.float64)
    return [(data, lam, 0.3, 2, 8, seed % 7) for lam in (0.0, 6.0)]


_REWARD = _one_query(lambda v, m, g: -fl.group_disparity(v, m, g))
_LOOP: Slips = {
    "downhill": partial(_fitted, utility=lambda *x, **y: -fl.ndcg(*x, **y), disparity=_REWARD),
    "rewarded": partial(_fitted, disparity=_REWARD),
    "unweighted": lambda data, lam, *rest: _fitted(data, 0.0, *rest),
    "dcg": partial(_fitted, utility="dcg"),
    "no_baseline": partial(_fitted, baseline=None),
    "leave_one_out": partial(_fitted, baseline="loo"),
    "summed": lambda data, lam, lr, *rest: _fitted(data, lam, lr * rest[1], *rest),
    "g_factor": partial(_fitted, disparity=_one_query(g_factor)),
    "individual": partial(_fitted, disparity="individual"),
    "two_sided": partial(_fitted, disparity=_one_query(two_sided_groups)),
    "exact": partial(_fitted, method="exact"),
}
loop = Question(
    "task6",
    "data lam lr epochs samples seed",
    _fitted,
    partial(_one_of, TELLING_RUNS, runs),
    _LOOP,
    clue=lambda seen: say("task6", "disparity_half" if seen.inputs[1] else "utility_half"),
    no_fit=True,
)

# --- task 7: the sweep --------------------------------------------------------------------------


def _swept(
    data: fl.RankingDataset, lams: Any, second: str = "d_group", shared: str = "", **how: Any
) -> Tensor:
    """NDCG and disparity for each lambda; a slip shares what each should have for itself."""
    stream, scorer, rows = torch.Generator(), None, []
    for k, lam in enumerate(lams):
        if k == 0 or shared != "stream":
            stream.manual_seed(0)
        if scorer is None or shared != "scorer":
            scorer = fl.LinearScorer(data.n_features, generator=stream, dtype=torch.float64)
        fl.fit(scorer, data, settings(lam), progress=False)
        result = fl.evaluate(scorer, data, **how)
        rows.append([result.ndcg, getattr(result, second)])
    return torch.tensor(rows, dtype=torch.float64)


def sweeps(seed: int) -> list[tuple[fl.RankingDataset, tuple[float, ...]]]:
    """A small one: the arguments of `_swept`."""
    data = fl.synthetic(n_queries=4, n_docs=6, seed=seed, minority=0.4, dtype=torch.float64)
    return [(data, (0.0, 20.0, 5.0))]


_SWEEP: Slips = {
    "carried_on": partial(_swept, shared="scorer"),
    "one_stream": partial(_swept, shared="stream"),
    "lam_ignored": lambda data, lams: _swept(data, [0.0] * len(lams)),
    "swapped": lambda data, lams: _swept(data, lams).flip(-1),
    "deterministic": partial(_swept, deterministic=True),
    "individual": partial(_swept, second="d_ind"),
}
_ASKED = partial(_one_of, TELLING_SWEEPS, sweeps)
# Rounded to three decimals is as good: slips show by more there.
sweep = Question("task7a", "data lams", _swept, _ASKED, _SWEEP, relative=0, absolute=6e-4)


@lru_cache(maxsize=8)
def tradeoff(seed: int) -> Tensor:
    """NDCG and D_group ``(L, 2)`` on the course's data for each of `LAMBDAS`."""
    return _swept(course_data(seed), LAMBDAS)


def halved(curve: Tensor) -> tuple[float, float]:
    """The smallest lambda that halves D_group (or else the last), and what it costs in NDCG."""
    places = [k for k in range(len(LAMBDAS)) if curve[k, 1] <= curve[0, 1] / 2]
    place = min(places, default=len(LAMBDAS) - 1)
    return LAMBDAS[place], float(curve[0, 0] - curve[place, 0])


def _about_lambda(seen: Seen) -> str:
    curve, lam = seen.inputs[0], float(seen.value)
    if lam not in LAMBDAS:
        return say("task7b", "not_tried", tried=LAMBDAS)
    return say("task7b", "left", left=float(curve[LAMBDAS.index(lam), 1] / curve[0, 1]))


_COST: Slips = {
    "reversed": lambda curve: -halved(curve)[1],
    "per_cent": lambda curve: 100 * halved(curve)[1],
    "relative": lambda curve: halved(curve)[1] / curve[0, 0],
}


def reading(answers: Sequence[Ask], generator: Generator) -> None:
    """Two numbers read off the curve, each half of the points."""
    curve = (tradeoff(generator.initial_seed()),)
    half = Question("task7b", "", lambda curve: halved(curve)[0], clue=_about_lambda)
    cost = replace(half, right=lambda curve: halved(curve)[1], slips=_COST, clue=Question.clue)
    four = replace(cost, relative=0, absolute=0.00016)  # two numbers with four decimals
    asked = "ndcg_cost, NDCG at lambda = 0 minus NDCG at lam_half to four decimals"
    typed(("lam_half", answers[0], half, curve), (asked, answers[1], four, curve))


# --- task 8: a disparity of one's own, with rules to keep instead of one right answer -----------


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
    wanted = tuple(query.exposure.shape[:-1])
    value, answer = answered(ask, query._asdict(), False, torch.ones(wanted).double())
    got = tuple(value.shape)
    _rule(got == wanted, "shape", query, got=got, wanted=wanted)
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
    unfair = Query(bias(6)[None], torch.ones(1, 6).double(), torch.tensor([[0, 0, 0, 1, 1, 1]]))
    amount, slope = _asked(ask, unfair)
    _rule(amount > 1e-6, "unfair", unfair)
    teaches = slope is not None and torch.isfinite(slope).all() and slope.any()
    _rule(teaches, "no_gradient" if slope is None else "flat", unfair)
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
    known = {"D_ind": fl.individual_disparity(*query[:2]), "D_group": fl.group_disparity(*query)}
    for measure, other in known.items():
        away = value - float((value * other).sum() / (other * other).sum()) * other
        _rule(float(away.norm()) >= 0.03 * float(value.norm()), "known", measure=measure)
    _learns(ask, generator)


def _learns(ask: Ask, generator: Generator) -> None:
    """Training against it, with a weight in its own scale, must bring it down."""
    seed = int(torch.randint(10_000, (), generator=generator))
    data = fl.synthetic(n_queries=30, seed=seed).to(dtype=torch.float64)

    def disparity(exposure: Tensor, *rest: Any) -> Tensor:
        """The answer, wherever it was found, with its gradient by exposure."""
        value, slope = _asked(ask, Query(exposure.detach(), *rest))
        return value if slope is None else value + (slope * (exposure - exposure.detach())).sum(-1)

    def after_training(lam: float) -> float:
        start = torch.Generator().manual_seed(0)
        scorer = fl.LinearScorer(data.n_features, generator=start, dtype=torch.float64)
        config = replace(settings(lam), disparity=disparity, epochs=12)
        fl.fit(scorer, data, config, progress=False)
        return objective_on(scorer, data, config)[1]

    try:
        before = after_training(lam=0.0)
        after = after_training(lam=20.0 / max(before, 1e-9))
    except (ValueError, RuntimeError, ArithmeticError) as error:
        _rule(False, "stops", error=f"{type(error).__name__}: {error}")
    _rule(after < 0.97 * before, "not_learned", before=before, after=after)
