"""The coursework's tasks on gradients and training, chapters 6 and 7."""

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Generator, Tensor

from checker.calls import as_answer
from checker.disparities import g_factor, two_sided_groups
from checker.examine import Case, Close, Finding, Slip, Wrong, compare, settled
from checker.given import LAMBDAS, course_data, settings
from checker.policies import bias, random_scores
from fairpg_lite import metrics
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset, synthetic
from fairpg_lite.disparity import group_disparity
from fairpg_lite.evaluate import evaluate
from fairpg_lite.exposure import ranking_exposure
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.scorers import LinearScorer
from fairpg_lite.train import fit

COST = 0.00016  # four decimals, of two numbers with four decimals
#: Seeds of `sweep_data` on which training depends on where it starts, and much on lambda.
TELLING = (4, 41, 60, 194)

# --- task 5: the log-derivative estimator ---------------------------------------------------


def _estimate(
    scores: Tensor,
    relevance: Tensor,
    rankings: Tensor,
    *,
    baseline: str | None = "mean",
    gain: Callable[[Tensor], Tensor] = metrics.exponential_gain,
) -> Tensor:
    """The gradient of expected DCG by the package: through exposure, by autograd."""
    s = scores.clone().requires_grad_()
    exposure = PlackettLuce(s).exposure(method="sample", rankings=rankings, baseline=baseline)
    return torch.autograd.grad((gain(relevance) * exposure).sum(), s)[0]


def _wrong_lookup(scores: Tensor, relevance: Tensor, rankings: Tensor) -> Tensor:
    """DCG with the gain of document k paid at position k of v[ranking]."""
    s = scores.clone().requires_grad_()
    values = (metrics.exponential_gain(relevance) * bias(len(scores))[rankings]).sum(-1)
    return torch.autograd.grad(PlackettLuce(s).expect(values, rankings), s)[0]


def _wrong_slope(scores: Tensor, relevance: Tensor, rankings: Tensor) -> Tensor:
    """One minus the softmax for each document, as if nothing were removed from the urn."""
    paid = ranking_exposure(rankings, bias(len(scores)))
    values = (metrics.exponential_gain(relevance) * paid).sum(-1)
    n = len(scores)
    slope = 1.0 - n * scores.softmax(-1)
    return ((values - values.mean())[:, None] * slope).mean(0)


GRADIENT_SLIPS = (
    Slip(
        "The gradient is summed over the samples; the paper averages it, 1/S.",
        lambda s, rel, r: _estimate(s, rel, r) * len(r),
    ),
    Slip(
        "There is no baseline: subtract the mean DCG of the samples from each DCG. Without it "
        "the estimate is right on average and much noisier.",
        lambda s, rel, r: _estimate(s, rel, r, baseline=None),
    ),
    Slip(
        "No baseline, and summed over the samples rather than averaged.",
        lambda s, rel, r: _estimate(s, rel, r, baseline=None) * len(r),
    ),
    Slip(
        "That is the leave-one-out baseline, a good choice; the task asks for the paper's, the "
        "mean over all S samples.",
        lambda s, rel, r: _estimate(s, rel, r, baseline="loo"),
    ),
    Slip(
        "The sign is reversed: this gradient points to lower DCG.",
        lambda s, rel, r: -_estimate(s, rel, r),
    ),
    Slip(
        "The discount has a natural logarithm; DCG here is with log2(1 + j).",
        lambda s, rel, r: _estimate(s, rel, r) / math.log(2),
    ),
    Slip(
        "The gain is rel; this DCG has 2**rel - 1.",
        lambda s, rel, r: _estimate(s, rel, r, gain=metrics.linear_gain),
    ),
    Slip(
        "relevance and v are matched by document number. In a ranking, position k holds document "
        "ranking[k]: the DCG is (gain[ranking] * v).sum().",
        _wrong_lookup,
    ),
    Slip(
        "The slope of log pi divides by all documents at every position; by position k the "
        "first k - 1 are gone.",
        _wrong_slope,
    ),
)


def gradient(answers: tuple[Any, ...], generator: Generator) -> Finding:
    cases = []
    for n, samples in ((3, 3), (4, 5), (6, 10)):
        scores = random_scores(n, generator)
        relevance = torch.randperm(n, generator=generator).double() % 5
        rankings = PlackettLuce(scores).sample((samples,), generator)
        rankings[0], rankings[1] = torch.arange(n), torch.arange(n).roll(1)  # never all alike
        inputs = {"scores": scores, "relevance": relevance, "rankings": rankings}
        cases.append(Case(inputs, _estimate(*inputs.values())))
    plain = cases[0].inputs
    alike = {**plain, "rankings": plain["rankings"][:1].expand(4, 3).clone()}
    huge = {**plain, "scores": plain["scores"] + 800}
    nothing = {**plain, "relevance": torch.zeros(3, dtype=torch.float64)}
    edges = {
        "all samples are the same ranking, so none is better than the mean": alike,
        "scores of 800: exp overflows, differences do not": huge,
        "nothing is relevant": nothing,
    }
    cases += [
        Case(inputs, _estimate(*inputs.values()), edge, tolerance=5e-4)
        for edge, inputs in edges.items()
    ]
    return compare(answers[0], cases, GRADIENT_SLIPS)


# --- task 6: Fair-PG-Rank ---------------------------------------------------------------------


def _fitted(
    data: RankingDataset,
    lam: float,
    lr: float,
    epochs: int,
    samples: int,
    seed: int,
    **twist: Any,
) -> Tensor:
    """Weights ``(d,)`` after `fit` with plain gradient steps; ``twist`` changes a setting."""
    scorer = LinearScorer(data.n_features, init=0.0, dtype=torch.float64)
    settings = {"lam": lam, "lr": lr, "epochs": epochs, "samples": samples, "seed": seed}
    config = TrainConfig(**{"optimizer": "sgd", **settings, **twist})
    fit(scorer, data, config, progress=False)
    return scorer.linear.weight[0].detach().clone()


def _one_query(disparity: Callable[..., Tensor], sign: float = 1.0) -> Callable[..., Tensor]:
    """A disparity for `fit` from one for a single query; 0 where a group or its merit is absent."""

    def of_batch(exposure: Tensor, merit: Tensor, groups: Tensor, mask: Tensor | None) -> Tensor:
        value = torch.nan_to_num(disparity(exposure[0], merit[0], groups[0]), posinf=0.0)
        return sign * value.unsqueeze(0)

    return of_batch


def _twisted(**twist: Any) -> Callable[..., Tensor]:
    def wrong(*arguments: Any) -> Tensor:
        return _fitted(*arguments, **twist)

    return wrong


def _downhill(*arguments: Any) -> Tensor:
    def worse(rankings: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        return -metrics.ndcg(rankings, relevance, mask=mask)

    return _fitted(*arguments, utility=worse, disparity=_one_query(group_disparity, -1.0))


def _summed_steps(data: RankingDataset, lam: float, lr: float, *rest: Any) -> Tensor:
    return _fitted(data, lam, lr * rest[1], *rest)


def _unweighted(data: RankingDataset, lam: float, *rest: Any) -> Tensor:
    return _fitted(data, 0.0, *rest)


LOOP_SLIPS = (
    Slip(
        "The weights run downhill: add the gradient of U - lam * D, do not subtract it.", _downhill
    ),
    Slip(
        "The disparity is rewarded: the objective is U - lam * D, with a minus.",
        _twisted(disparity=_one_query(group_disparity, -1.0)),
    ),
    Slip("lam has no effect: the disparity is missing from the objective.", _unweighted),
    Slip("The utility is DCG; the task asks for NDCG.", _twisted(utility="dcg")),
    Slip(
        "There is no baseline: subtract the mean of the samples (baseline='mean').",
        _twisted(baseline=None),
    ),
    Slip(
        "That is the leave-one-out baseline; the paper's is the mean (baseline='mean').",
        _twisted(baseline="loo"),
    ),
    Slip("The gradient is summed over the samples; the paper averages it.", _summed_steps),
    Slip(
        "The disparity has the |G| factor: sums of exposure over mean merit.",
        _twisted(disparity=_one_query(g_factor)),
    ),
    Slip("That is D_ind; the task asks for D_group.", _twisted(disparity="individual")),
    Slip(
        "The disparity is two-sided; D_group is max(0, ...) of one side.",
        _twisted(disparity=_one_query(two_sided_groups)),
    ),
    Slip(
        "The exposure is exact; the task asks for the sampled one, on the rankings drawn.",
        _twisted(method="exact"),
    ),
)


def loop(answers: tuple[Any, ...], generator: Generator) -> Finding:
    asked = _telling_runs(generator.initial_seed())
    cases = [Case(inputs, _fitted(*inputs.values())) for inputs in asked]
    return compare(answers[0], cases, LOOP_SLIPS, clue=_which_half, forbid="fairpg_lite.train.fit")


@lru_cache(maxsize=8)
def _telling_runs(seed: int) -> list[dict[str, Any]]:
    """Two runs on a small dataset, without and with fairness, in which fairness matters.

    D_group is one-sided: on some small datasets it is zero throughout, with the |G| factor or
    without, and then a wrong loop would look right.
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        seed = int(torch.randint(10_000, (), generator=generator))
        data = synthetic(n_queries=6, n_docs=5, seed=seed, minority=0.4, dtype=torch.float64)
        common = {"lr": 0.3, "epochs": 2, "samples": 8, "seed": seed % 7}
        runs: list[dict[str, Any]] = [{"data": data, "lam": lam, **common} for lam in (0.0, 6.0)]
        plain, fair = (tuple(run.values()) for run in runs)
        ends = [
            _fitted(*plain),
            _fitted(*fair),
            _fitted(*fair, disparity=_one_query(g_factor)),
        ]
        gaps = [(one - other).abs().max() for one, other in itertools.combinations(ends, 2)]
        if min(gaps) > 0.02:
            return runs


def _which_half(case: Case, answer: Tensor) -> str:
    if case.inputs["lam"] == 0:
        return "It fails without any fairness (lam = 0) already: look at the utility and the step."
    return "Without fairness (lam = 0) it is right: look at the disparity."


# --- task 7: the sweep --------------------------------------------------------------------------


def _trained(data: RankingDataset, lam: float, scorer: LinearScorer | None = None) -> LinearScorer:
    scorer = scorer or LinearScorer(
        data.n_features, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    fit(scorer, data, settings(lam), progress=False)
    return scorer


def _swept(data: RankingDataset, lams: Any, **how: Any) -> Tensor:
    results = [evaluate(_trained(data, lam), data, **how) for lam in lams]
    return torch.tensor([[r.ndcg, r.d_group] for r in results], dtype=torch.float64)


def _carried_on(data: RankingDataset, lams: Any) -> Tensor:
    """The same scorer, trained further for each lambda."""
    scorer, rows = None, []
    for lam in lams:
        scorer = _trained(data, lam, scorer)
        result = evaluate(scorer, data)
        rows.append([result.ndcg, result.d_group])
    return torch.tensor(rows, dtype=torch.float64)


def _one_stream(data: RankingDataset, lams: Any) -> Tensor:
    """A new scorer for each lambda, but all from one generator: no two start alike."""
    stream = torch.Generator().manual_seed(0)
    rows = []
    for lam in lams:
        scorer = LinearScorer(data.n_features, generator=stream, dtype=torch.float64)
        result = evaluate(_trained(data, lam, scorer), data)
        rows.append([result.ndcg, result.d_group])
    return torch.tensor(rows, dtype=torch.float64)


def _individually(data: RankingDataset, lams: Any) -> Tensor:
    results = [evaluate(_trained(data, lam), data) for lam in lams]
    return torch.tensor([[r.ndcg, r.d_ind] for r in results], dtype=torch.float64)


SWEEP_SLIPS = (
    Slip(
        "Each lambda goes on training the scorer of the one before. Make a new scorer inside the "
        "loop.",
        _carried_on,
    ),
    Slip(
        "The scorers share one generator, so that no two start alike: seed a new one with 0 for "
        "each.",
        _one_stream,
    ),
    Slip(
        "lam has no effect: every row is the policy of lam = 0.",
        lambda data, lams: _swept(data, [0.0] * len(lams)),
    ),
    Slip(
        "The columns are swapped: NDCG first, D_group second.",
        lambda data, lams: _swept(data, lams).flip(-1),
    ),
    Slip(
        "That is the most probable ranking's figures (deterministic=True); evaluate the policy.",
        lambda data, lams: _swept(data, lams, deterministic=True),
    ),
    Slip("The second column is D_ind; wanted is D_group.", _individually),
    Slip(
        "Rows and columns are swapped: one row per lambda.",
        lambda data, lams: _swept(data, lams).T,
    ),
)


def sweep_data(seed: int) -> RankingDataset:
    return synthetic(n_queries=4, n_docs=6, seed=seed, minority=0.4, dtype=torch.float64)


def sweep(answers: tuple[Any, ...], generator: Generator) -> Finding:
    """Rounded to three decimals is as good: each slip shows by more than that on `TELLING`."""
    seed = TELLING[int(torch.randint(len(TELLING), (), generator=generator))]
    data, lams = sweep_data(seed), (0.0, 20.0, 5.0)
    case = Case({"data": data, "lams": lams}, _swept(data, lams))
    return compare(answers[0], [case], SWEEP_SLIPS, close=Close(0.0, 6e-4))


@lru_cache(maxsize=8)
def tradeoff(seed: int) -> Tensor:
    """NDCG and D_group ``(L, 2)`` on the course's data for each of `LAMBDAS`."""
    return _swept(course_data(seed), LAMBDAS)


def reading(answers: tuple[Any, ...], generator: Generator) -> Finding:
    """Two numbers read off the curve, each half of the points."""
    lam_given, cost_given = (_number(answer) for answer in answers)
    curve = tradeoff(generator.initial_seed())
    halved = [k for k in range(len(LAMBDAS)) if curve[k, 1] <= curve[0, 1] / 2]
    place = min(halved, default=len(LAMBDAS) - 1)
    lam, cost = LAMBDAS[place], float(curve[0, 0] - curve[place, 0])
    messages = []
    if lam_given != lam:
        messages.append(_about_lambda(lam_given, curve, lam))
    if abs(cost_given - cost) > COST:
        messages.append(_about_cost(cost_given, cost, float(curve[0, 0])))
    return Finding(1.0 - len(messages) / 2, "\n".join(messages))


def _number(answer: Any) -> float:
    value = settled(as_answer(answer, {"answer": answer}))
    if value.numel() != 1:
        raise Wrong(f"Two plain numbers are wanted, and one answer is {answer!r:.60}.")
    return float(value)


def _about_lambda(given: float, curve: Tensor, lam: float) -> str:
    if given not in LAMBDAS:
        return f"lam_half: {given:g} is none of the lambdas tried, {LAMBDAS}."
    left = float(curve[LAMBDAS.index(given), 1] / curve[0, 1])
    if given > lam:
        return f"lam_half: at {given:g} D_group is {left:.0%} of its start; a smaller one does too."
    return f"lam_half: at {given:g} D_group is still {left:.0%} of its value at lambda = 0."


def _about_cost(given: float, cost: float, start: float) -> str:
    told = "ndcg_cost: NDCG at lambda = 0 minus NDCG at lam_half; "
    for value, says in (
        (-cost, "the sign is reversed: a loss is a positive cost."),
        (100 * cost, "that looks like per cent; give the plain difference."),
        (cost / start, "that is the loss relative to the start; give the plain difference."),
    ):
        if abs(given - value) <= COST * max(1.0, abs(value / cost)):
            return told + says
    if abs(given - cost) < 0.0012:
        return told + "that is close, but four decimals are asked."
    return told + f"{given:g} is too {'much' if given > cost else 'little'}."
