"""The coursework's tasks on gradients and training, chapters 6 and 7."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

import fairpg_lite as fl
from checker.disparities import g_factor, two_sided_groups
from checker.examine import (
    Ask,
    Cases,
    Part,
    Question,
    Seen,
    Slips,
    Wrong,
    answered,
    require,
    say,
    typed,
)
from checker.given import LAMBDAS, Terms, course_data, settings
from checker.policies import LOG_PROB, bias, random_scores
from fairpg_lite.relevance import exponential_gain, linear_gain
from fairpg_lite.training import objective_on

#: Seeds of `runs` and of `sweeps` on which every slip shows.
TELLING_RUNS = (0, 3, 6, 8, 9, 13, 15, 17, 18)
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
    gain: Callable[[Tensor], Tensor] = exponential_gain,
) -> Tensor:
    """The gradient of expected DCG by the package: through exposure, by autograd."""
    s = scores.clone().requires_grad_()
    exposure = _sampled(fl.PlackettLuce(s), rankings, baseline)
    return torch.autograd.grad((gain(relevance) * exposure).sum(), s)[0]


def _sampled(policy: fl.PlackettLuce, rankings: Tensor, baseline: str | None = "mean") -> Tensor:
    """Exposure as a mean over ``rankings``, with the paper's gradient."""
    return policy.sampled_exposure(rankings=rankings, baseline=baseline)


def _weighted(
    scores: Tensor,
    relevance: Tensor,
    rankings: Tensor,
    *,
    baseline: Callable[[Tensor], Tensor] = torch.mean,
    of_log: bool = True,
) -> Tensor:
    """The estimate list by list: each DCG less the baseline, times the slope of pi or log pi."""
    s = scores.clone().requires_grad_()
    values = (exponential_gain(relevance)[rankings] * bias(len(scores))).sum(-1)
    log_p = fl.PlackettLuce(s).log_prob(rankings)
    chances = log_p if of_log else log_p.exp()
    return torch.autograd.grad(((values - baseline(values)) * chances).mean(), s)[0]


def _exact_gradient(scores: Tensor, relevance: Tensor, rankings: Tensor) -> Tensor:
    """The gradient of expected DCG without any sample."""
    s = scores.clone().requires_grad_()
    dcg = (exponential_gain(relevance) * fl.PlackettLuce(s).exposure()).sum()
    return torch.autograd.grad(dcg, s)[0]


def _best_dcg(relevance: Tensor) -> Tensor:
    gains = exponential_gain(relevance).sort(descending=True).values
    return (gains * bias(len(gains))).sum()


def _estimates(generator: Generator) -> Cases:
    cases = []
    for n, samples in ((3, 3), (4, 5), (4, 4), (5, 6), (6, 10)):
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
    "linear_gain": partial(_estimate, gain=linear_gain),
    "positions": lambda s, rel, r: _estimate(s, rel, r.argsort(-1)),
    "probability": partial(_weighted, of_log=False),
    "ndcg": lambda s, rel, r: _estimate(s, rel, r) / _best_dcg(rel),
    "exact": _exact_gradient,
    "max_baseline": partial(_weighted, baseline=torch.max),
}
gradient = Question(
    "task5",
    "scores relevance rankings",
    _estimate,
    _estimates,
    _GRADIENT,
    at_edges=5e-4,
    own_lines=(*LOG_PROB, "exponential_gain"),
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

    def of_batch(
        exposure: Tensor, merit: Tensor, groups: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        value = disparity(exposure[0], merit[0], groups[0])
        return value.nan_to_num(posinf=0.0).unsqueeze(0)

    return of_batch


def runs(seed: int) -> list[tuple[Any, ...]]:
    """Five small ones, two without fairness: the arguments of `_fitted`."""
    made = []
    for k, lam in enumerate((0.0, 6.0, 0.0, 3.0, 6.0)):
        data = fl.synthetic(
            n_queries=6, n_docs=5, seed=seed + 1000 * (k // 2), minority=0.4, dtype=torch.float64
        )
        made.append((data, lam, 0.3, 2, 8, (seed + k) % 7))
    return made


@dataclass(frozen=True)
class _Loop:
    """Algorithm 1 step by step, as students write it, with a part done wrongly.

    ``draws`` says when the stream of rankings is seeded: once, for each "epoch" or "query", or not
    at all, as the "order" of the queries is used for it. ``steps`` is "plain", "adam",
    "accumulated" (gradients are never zeroed), "epoch" or "epoch mean" (one step for all queries).
    ``lists`` is which rankings the disparity sees: those of the "same" draw as the utility, of a
    "second" draw, or a second draw for "both". ``exact`` names what is computed without sampling.
    """

    draws: str = "once"
    steps: str = "plain"
    lists: str = "same"
    exact: str = ""
    per_list: bool = False
    merit: Callable[[Tensor], Tensor] = lambda relevance: relevance

    def __call__(
        self,
        data: fl.RankingDataset,
        lam: float,
        lr: float,
        epochs: int,
        samples: int,
        seed: int,
    ) -> Tensor:
        order = torch.Generator().manual_seed(2 * seed)
        stream = torch.Generator().manual_seed(2 * seed + 1)
        theta = torch.zeros(data.n_features, dtype=torch.float64, requires_grad=True)
        adam = torch.optim.Adam([theta], lr=lr, maximize=True)
        gathered = torch.zeros_like(theta)
        for _ in range(epochs):
            if self.draws == "epoch":
                stream.manual_seed(2 * seed + 1)
            queries = torch.randperm(len(data), generator=order).tolist()
            for q in queries:
                if self.draws == "query":
                    stream.manual_seed(2 * seed + 1)
                source = order if self.draws == "order" else stream
                objective = self._objective(data[q], theta, lam, samples, source)
                (slope,) = torch.autograd.grad(objective, theta)
                gathered += slope
                with torch.no_grad():
                    if self.steps == "plain":
                        theta += lr * slope
                    elif self.steps == "accumulated":
                        theta += lr * gathered
                    elif self.steps == "adam":
                        theta.grad = slope
                        adam.step()
            if self.steps in ("epoch", "epoch mean"):
                with torch.no_grad():
                    theta += lr * gathered / (len(queries) if self.steps == "epoch mean" else 1)
                gathered.zero_()
        return theta.detach()

    def _objective(
        self, query: Any, theta: Tensor, lam: float, samples: int, source: Generator
    ) -> Tensor:
        x, relevance, groups = query
        policy = fl.PlackettLuce(x @ theta)
        rankings = policy.sample((samples,), source)
        of_utility = rankings
        of_disparity = rankings
        if self.lists != "same":
            of_disparity = policy.sample((samples,), source)
        if self.lists == "both":
            of_utility = of_disparity
        v = policy.exposure() if "utility" in self.exact else _sampled(policy, of_utility)
        utility = fl.expected_ndcg(v, relevance)
        merit = self.merit(relevance)
        if self.per_list:
            paid = fl.ranking_exposure(rankings, bias(len(merit)))
            each = fl.group_disparity(paid, merit.expand_as(paid), groups.expand_as(rankings))
            log_p = policy.log_prob(rankings)
            return utility - lam * ((each - each.mean()) * log_p).mean()
        v = policy.exposure() if "disparity" in self.exact else _sampled(policy, of_disparity)
        return utility - lam * fl.group_disparity(v, merit, groups)


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
    "individual": partial(_fitted, disparity="d_ind"),
    "two_sided": partial(_fitted, disparity=_one_query(two_sided_groups)),
    "exact": _Loop(exact="utility and disparity"),
    "exact_utility": _Loop(exact="utility"),
    "exact_disparity": _Loop(exact="disparity"),
    "merit_is_gain": _Loop(merit=exponential_gain),
    "not_zeroed": _Loop(steps="accumulated"),
    "second_draw": _Loop(lists="second"),
    "third_draw": _Loop(lists="both"),
    "reseeded": _Loop(draws="query"),
    "reseeded_epoch": _Loop(draws="epoch"),
    "wrong_stream": _Loop(draws="order"),
    "adam": _Loop(steps="adam"),
    "once_per_epoch": _Loop(steps="epoch"),
    "once_per_epoch_mean": _Loop(steps="epoch mean"),
    "per_list": _Loop(per_list=True),
}
LOOP = Question(
    "task6",
    "data lam lr epochs samples seed",
    _fitted,
    partial(_one_of, TELLING_RUNS, runs),
    _LOOP,
    clue=lambda seen: say("task6", "disparity_half" if seen.inputs[1] else "utility_half"),
    no_fit=True,
)


def loop(answers: Sequence[Ask], generator: Generator) -> None:
    """Where the weights are wrong, look whether they change from call to call."""
    inputs, odd = LOOP.inputs(generator)
    try:
        LOOP.compare(answers[0], inputs, odd)
    except Wrong:
        first, _ = answered(answers[0], LOOP.named(inputs[0]), Terms(no_fit=True))
        second, _ = answered(answers[0], LOOP.named(inputs[0]), Terms(no_fit=True))
        if first.shape == second.shape and not torch.equal(first, second):
            raise Wrong(say("task6", "unseeded")) from None
        raise


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
        result = fl.evaluate(scorer, data, ("ndcg", second), **how)
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
    "reversed": lambda curve, place: -_cost(curve, place),
    "per_cent": lambda curve, place: 100 * _cost(curve, place),
    "per_cent_2": lambda curve, place: round(100 * _cost(curve, place), 2),
    "per_cent_1": lambda curve, place: round(100 * _cost(curve, place), 1),
    "relative": lambda curve, place: _cost(curve, place) / float(curve[0, 0]),
    "relative_per_cent": lambda curve, place: round(
        100 * _cost(curve, place) / float(curve[0, 0]), 2
    ),
}


def _cost(curve: Tensor, place: int) -> float:
    """The NDCG lost at the lambda in this place."""
    return float(curve[0, 0] - curve[place, 0])


def reading(answers: Sequence[Ask], generator: Generator) -> None:
    """Two numbers read off the curve, each half of the points.

    The second goes with the student's own lambda, so that one slip costs only once.
    """
    curve = tradeoff(generator.initial_seed())
    half = Question("task7b", "", lambda curve: halved(curve)[0], clue=_about_lambda)
    lam = answers[0]({}, Terms()).value
    own = halved(curve)[0]
    if lam is not None and lam.numel() == 1 and float(lam) in LAMBDAS[1:]:
        own = float(lam)
    # Two numbers with four decimals.
    cost = Question("task7b", "", _cost, slips=_COST, relative=0, absolute=0.00016)
    asked = "ndcg_cost, NDCG at lambda = 0 minus NDCG at lam_half to four decimals"
    typed(
        Part("lam_half", answers[0], half, (curve,)),
        Part(asked, answers[1], cost, (curve, LAMBDAS.index(own))),
    )


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
    """One value per query ``(B,)``, and the gradient of their sum by exposure if there is one.

    Whatever is asked, no value may be negative.
    """
    wanted = tuple(query.exposure.shape[:-1])
    terms = Terms(upstream=torch.ones(wanted).double())
    value, answer = answered(ask, query._asdict(), terms)
    got = tuple(value.shape)
    _rule(got == wanted, "shape", query, got=got, wanted=wanted)
    least = float(value.nan_to_num().min())
    if least < -1e-9:
        worst = int(value.nan_to_num().argmin())
        parts = [part if part is None else part[worst : worst + 1] for part in query]
        shown = Query._make(parts)
        _rule(False, "negative", shown, least=least)
    return value, answer.slope


BATCHES = 5


def _random(generator: Generator, queries: int = 3, n: int = 6) -> Query:
    """Queries with unequal merits inside both groups, each group on top in some of them."""
    rows = [bias(n)[torch.randperm(n, generator=generator)] for _ in range(queries)]
    merit = torch.randint(1, 6, (queries, n), generator=generator).double()
    groups = torch.tensor([0, 1, 0, 0, 1, 0]).expand(queries, n).clone()
    groups[1::2] = 1 - groups[1::2]
    return Query(torch.stack(rows), merit, groups)


def _one_on_top(top: int, n: int, ahead: int) -> Query:
    """Equal merit, and the ``ahead`` documents of the group ``top`` before the others."""
    groups = (torch.arange(n) >= ahead).long()
    if top == 1:
        groups = 1 - groups
    return Query(bias(n)[None], torch.ones(1, n).double(), groups[None])


def _measures(ask: Ask, generator: Generator) -> None:
    """The rules that make it a measure of unfairness, on several batches."""
    batches = [_random(generator) for _ in range(BATCHES)]
    for query in batches:
        value, _ = _asked(ask, query)
        _rule(torch.isfinite(value).all(), "not_finite", query)
    for query in batches:
        for share in (0.1, 0.2):
            fair = query._replace(exposure=share * query.merit)
            most = float(_asked(ask, fair)[0].abs().max())
            _rule(most <= 1e-8, "fair", fair, share=share, most=most)
    for n, ahead in ((6, 3), (6, 2), (5, 3)):
        for top in (0, 1):
            unfair = _one_on_top(top, n, ahead)
            amount, slope = _asked(ask, unfair)
            _rule(amount > 1e-6, "unfair", unfair, top=top)
            teaches = slope is not None and torch.isfinite(slope).all() and slope.any()
            _rule(teaches, "no_gradient" if slope is None else "flat", unfair)
    for query in batches:
        value, _ = _asked(ask, query)
        moved = Query(*(part.roll(1, -1) for part in query[:3]))  # no document stays where it was
        _rule(torch.allclose(value, _asked(ask, moved)[0], atol=1e-9), "order", query)


def _trains(ask: Ask, generator: Generator) -> None:
    """The rules that training needs, and that it is the student's own."""
    for _ in range(BATCHES):
        query = _random(generator, queries=2)
        real = torch.arange(6).expand(2, 6) < torch.tensor([[5], [4]])
        padded = query._replace(mask=real)
        bare = [Query(*(part[k : k + 1, : 5 - k] for part in query[:3])) for k in (0, 1)]
        expected = torch.cat([_asked(ask, each)[0] for each in bare])
        same = torch.allclose(expected, _asked(ask, padded)[0], atol=1e-9)
        _rule(same, "padding", padded)
        # Some queries have nobody of merit; one NaN among them would end any training.
        query = _random(generator)
        query = query._replace(merit=query.merit * torch.tensor([[1.0], [0.0], [1.0]]))
        for what, found in zip(("answer", "gradient"), _asked(ask, query), strict=True):
            finite = found is None or torch.isfinite(found).all()
            _rule(finite, "without_merit", query, what=what)
    _is_new(ask, generator)
    _learns(ask, generator)


def below_floor(query: Query) -> Tensor:
    """What chapter 7 trains on as its example: attention missing from 75 % of the share earned."""
    share = query.exposure / query.exposure.sum(-1, keepdim=True)
    earned = query.merit / query.merit.sum(-1, keepdim=True)
    return (0.75 * earned - share).relu().sum(-1)


def _is_new(ask: Ask, generator: Generator) -> None:
    """It is none of the book's measures, no function of one, and no sum of its two."""
    query = _random(generator, queries=60)
    value, _ = _asked(ask, query)
    d_ind = fl.individual_disparity(query.exposure, query.merit)
    d_group = fl.group_disparity(query.exposure, query.merit, query.groups)
    known = {"D_ind": d_ind, "D_group": d_group, "chapter 7's `below_floor`": below_floor(query)}
    for measure, other in known.items():
        _rule(_away(value, other[:, None]) >= 0.03, "known", measure=measure)
    _rule(_away(value, torch.stack([d_ind, d_group], -1)) >= 0.03, "mixture")
    for measure, other in known.items():
        _rule(not _same_order(value, other), "function_of", measure=measure)


def _away(value: Tensor, others: Tensor) -> float:
    """What a weighted sum of the columns of ``others (B, k)`` cannot explain, as a share."""
    weights = torch.linalg.lstsq(others, value[:, None]).solution
    return float((value - (others @ weights)[:, 0]).norm() / value.norm().clamp(min=1e-12))


def _same_order(value: Tensor, other: Tensor) -> bool:
    """Whether ``value`` is a rising, or a falling, function of ``other`` as far as seen."""
    value = value / value.abs().max().clamp(min=1e-12)
    other = other / other.abs().max().clamp(min=1e-12)
    order = other.argsort()
    steps = value[order].diff()
    equal = other[order].diff() < 1e-9
    if (steps[equal].abs() > 1e-6).any():
        return False
    return bool((steps > -1e-6).all() or (steps < 1e-6).all())


def _learns(ask: Ask, generator: Generator) -> None:
    """Training against it, with a weight in its own scale, must bring it down."""
    seed = int(torch.randint(10_000, (), generator=generator))
    data = fl.synthetic(n_queries=30, seed=seed).to(dtype=torch.float64)

    def disparity(
        exposure: Tensor,
        merit: Tensor,
        groups: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """The answer, wherever it was found, with its gradient by exposure."""
        assert groups is not None
        value, slope = _asked(ask, Query(exposure.detach(), merit, groups, mask))
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
