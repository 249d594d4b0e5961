"""The coursework's tasks on gradients and training, chapters 6 and 7."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Generator, Tensor

from checker.disparities import g_factor, two_sided_groups
from checker.examine import Ask, Case, Question, Slips, say, typed
from checker.given import LAMBDAS, course_data, settings
from checker.policies import random_scores
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset, synthetic
from fairpg_lite.disparity import group_disparity
from fairpg_lite.evaluate import evaluate
from fairpg_lite.metrics import ndcg
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.relevance import exponential_gain, linear_gain
from fairpg_lite.scorers import LinearScorer
from fairpg_lite.train import fit

#: Seeds of `sweep_data` on which training depends on where it starts, and much on lambda.
TELLING = (4, 41, 60, 194)

# --- task 5: the log-derivative estimator ---------------------------------------------------


def _estimate(
    scores: Tensor,
    relevance: Tensor,
    rankings: Tensor,
    *,
    baseline: str | None = "mean",
    gain: Callable[[Tensor], Tensor] = exponential_gain,
) -> Tensor:
    """The gradient of expected DCG by the package: through exposure, by autograd."""
    s = scores.clone().requires_grad_()
    exposure = PlackettLuce(s).exposure(method="sample", rankings=rankings, baseline=baseline)
    return torch.autograd.grad((gain(relevance) * exposure).sum(), s)[0]


def _estimates(generator: Generator) -> list[Case]:
    cases = []
    for n, samples in ((3, 3), (4, 5), (6, 10)):
        scores = random_scores(n, generator)
        relevance = torch.randperm(n, generator=generator).double() % 5
        rankings = PlackettLuce(scores).sample((samples,), generator)
        rankings[0], rankings[1] = torch.arange(n), torch.arange(n).roll(1)  # never all alike
        cases.append(Case((scores, relevance, rankings)))
    scores, relevance, rankings = cases[0].inputs
    alike = "all samples are the same ranking, so none is better than the mean"
    edges = {
        alike: (scores, relevance, rankings[:1].expand(4, 3).clone()),
        "scores of 800: exp overflows, differences do not": (scores + 800, relevance, rankings),
        "nothing is relevant": (scores, 0 * relevance, rankings),
    }
    return [*cases, *(Case(query, edge, tolerance=5e-4) for edge, query in edges.items())]


_GRADIENT: Slips = {
    "summed": lambda s, rel, r: _estimate(s, rel, r) * len(r),
    "no_baseline": partial(_estimate, baseline=None),
    "leave_one_out": partial(_estimate, baseline="loo"),
    "reversed": lambda s, rel, r: -_estimate(s, rel, r),
    "natural_log": lambda s, rel, r: _estimate(s, rel, r) / math.log(2),
    "linear_gain": partial(_estimate, gain=linear_gain),
}
gradient = Question("task5", "scores relevance rankings", _estimate, _estimates, _GRADIENT)

# --- task 6: Fair-PG-Rank ---------------------------------------------------------------------


def _fitted(data: RankingDataset, *how: Any, **twist: Any) -> Tensor:
    """Weights ``(d,)`` after `fit` with plain gradient steps; ``twist`` changes a setting."""
    scorer = LinearScorer(data.n_features, init=0.0, dtype=torch.float64)
    asked = dict(zip(("lam", "lr", "epochs", "samples", "seed"), how, strict=True))
    fit(scorer, data, TrainConfig(**{"optimizer": "sgd", **asked, **twist}), progress=False)
    return scorer.linear.weight[0].detach().clone()


def _one_query(disparity: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A disparity for `fit` from one for a single query; 0 where a group or its merit is absent."""
    return lambda v, m, g, mask: disparity(v[0], m[0], g[0]).nan_to_num(posinf=0.0).unsqueeze(0)


@lru_cache(maxsize=8)
def _telling_runs(seed: int) -> list[Case]:
    """Two runs, without and with fairness, on small data where D_group is not zero throughout."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        seed = int(torch.randint(10_000, (), generator=generator))
        data = synthetic(n_queries=6, n_docs=5, seed=seed, minority=0.4, dtype=torch.float64)
        plain, fair = ((data, lam, 0.3, 2, 8, seed % 7) for lam in (0.0, 6.0))
        factor = _fitted(*fair, disparity=_one_query(g_factor))
        ends = [_fitted(*plain), _fitted(*fair), factor]
        gaps = [(one - other).abs().max() for one, other in itertools.combinations(ends, 2)]
        if min(gaps) > 0.02:
            return [Case(plain), Case(fair)]


_REWARD = _one_query(lambda v, m, g: -group_disparity(v, m, g))
_LOOP: Slips = {
    "downhill": partial(_fitted, utility=lambda *x, **y: -ndcg(*x, **y), disparity=_REWARD),
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
    lambda generator: _telling_runs(generator.initial_seed()),
    _LOOP,
    clue=lambda case, _: say("task6", "disparity_half" if case.inputs[1] else "utility_half"),
    no_fit=True,
)

# --- task 7: the sweep --------------------------------------------------------------------------


def _swept(
    data: RankingDataset, lams: Any, second: str = "d_group", shared: str = "", **how: Any
) -> Tensor:
    """NDCG and disparity for each lambda; a slip shares what each should have for itself."""
    stream, scorer, rows = torch.Generator(), None, []
    for k, lam in enumerate(lams):
        if k == 0 or shared != "stream":
            stream.manual_seed(0)
        if scorer is None or shared != "scorer":
            scorer = LinearScorer(data.n_features, generator=stream, dtype=torch.float64)
        fit(scorer, data, settings(lam), progress=False)
        result = evaluate(scorer, data, **how)
        rows.append([result.ndcg, getattr(result, second)])
    return torch.tensor(rows, dtype=torch.float64)


def sweep_data(seed: int) -> RankingDataset:
    return synthetic(n_queries=4, n_docs=6, seed=seed, minority=0.4, dtype=torch.float64)


def _telling_sweep(generator: Generator) -> list[Case]:
    seed = TELLING[int(torch.randint(len(TELLING), (), generator=generator))]
    return [Case((sweep_data(seed), (0.0, 20.0, 5.0)))]


_SWEEP: Slips = {
    "carried_on": partial(_swept, shared="scorer"),
    "one_stream": partial(_swept, shared="stream"),
    "lam_ignored": lambda data, lams: _swept(data, [0.0] * len(lams)),
    "swapped": lambda data, lams: _swept(data, lams).flip(-1),
    "deterministic": partial(_swept, deterministic=True),
    "individual": partial(_swept, second="d_ind"),
}
# Rounded to three decimals is as good: slips show by more on `TELLING`.
sweep = Question("task7a", "data lams", _swept, _telling_sweep, _SWEEP, relative=0, absolute=6e-4)


@lru_cache(maxsize=8)
def tradeoff(seed: int) -> Tensor:
    """NDCG and D_group ``(L, 2)`` on the course's data for each of `LAMBDAS`."""
    return _swept(course_data(seed), LAMBDAS)


def halved(curve: Tensor) -> tuple[float, float]:
    """The smallest lambda that halves D_group (or else the last), and what it costs in NDCG."""
    places = [k for k in range(len(LAMBDAS)) if curve[k, 1] <= curve[0, 1] / 2]
    place = min(places, default=len(LAMBDAS) - 1)
    return LAMBDAS[place], float(curve[0, 0] - curve[place, 0])


def _about_lambda(case: Case, given: Tensor) -> str:
    curve, lam = case.inputs[0], float(given)
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
    cost = replace(half, right=lambda curve: halved(curve)[1], slips=_COST, clue=None)
    four = replace(cost, relative=0, absolute=0.00016)  # two numbers with four decimals
    asked = "ndcg_cost, NDCG at lambda = 0 minus NDCG at lam_half to four decimals"
    typed(("lam_half", answers[0], half, curve), (asked, answers[1], four, curve))
