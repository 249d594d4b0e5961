"""The coursework's tasks on policies and exposure, chapters 3 and 4."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from checker.examine import (
    EDGES,
    Ask,
    Cases,
    Question,
    Seen,
    Slips,
    Wrong,
    answered,
    require,
    require_own_lines,
    say,
)
from checker.given import Terms, position_of_document_0
from fairpg_lite import PlackettLuce, position_bias, ranking_exposure

DRAWS = 20_000
ERRORS = 5.5  # standard errors, in some 60 comparisons


def double(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def random_scores(n: int, generator: Generator) -> Tensor:
    return 1.5 * torch.randn(n, generator=generator, dtype=torch.float64)


def bias(n: int) -> Tensor:
    return position_bias(n, dtype=torch.float64)


# --- task 1a: the probability of a ranking ------------------------------------------------


def probability(scores: Tensor, ranking: Tensor) -> Tensor:
    return PlackettLuce(scores).log_prob(ranking).exp()


def _lists(generator: Generator) -> Cases:
    rankings = [torch.tensor(r) for r in ([1, 2, 0], [2, 0, 3, 1], [3, 1, 4, 0, 2])]
    ordinary = [(random_scores(len(r), generator), r) for r in rankings for _ in range(2)]
    one, three = torch.tensor([0]), torch.tensor([2, 1, 0])
    return ordinary, {
        "there is one document, and one way to rank it": (random_scores(1, generator), one),
        say("task1a", "overflow"): (double(800.0, 801, 799.5), three),
        say("task1a", "underflow"): (double(0.0, 801, 800), three),
    }


_LIST: Slips = {
    "logarithm": lambda s, r: PlackettLuce(s).log_prob(r),
    "positions": lambda s, r: probability(s, r.argsort()),
    "placed_so_far": lambda s, r: probability(s, r.flip(0)),
    "with_replacement": lambda s, r: s.softmax(-1).prod(),
    "no_exp": lambda s, r: (s[r] / s[r].flip(0).cumsum(0).flip(0)).prod(),
    "negated": lambda s, r: probability(-s, r),
    "ranking_ignored": lambda s, r: probability(s, torch.arange(len(s))),
    "geometric_mean": lambda s, r: (PlackettLuce(s).log_prob(r) / len(r)).exp(),
    "without_itself": lambda s, r: _without_itself(s[r].exp()),
}


def _without_itself(weights: Tensor) -> Tensor:
    """The product of each weight over the sum of those behind it; the last factor is 1."""
    behind = weights.flip(0).cumsum(0).flip(0) - weights
    return (weights[:-1] / behind[:-1]).prod()


_NUMERICS = {say("task1a", e): (say("task1a", "numerics"),) for e in ("overflow", "underflow")}
ranking_probability = Question(
    "task1a",
    "scores ranking",
    probability,
    _lists,
    _LIST,
    topics=_NUMERICS,
    at_edges=5e-4,
    own_lines=(),
)


# --- task 1b: expectation by enumeration --------------------------------------------------


def _all(scores: Tensor, value: Any) -> tuple[Tensor, Tensor]:
    """Probabilities and values ``(n!,)`` of all rankings."""
    rankings = torch.tensor(list(itertools.permutations(range(len(scores)))))
    values = torch.tensor([value(r) for r in rankings], dtype=torch.float64)
    return probability(scores, rankings), values


def _expected(scores: Tensor, value: Any) -> Tensor:
    p, values = _all(scores, value)
    return (p * values).sum()


def _values(generator: Generator) -> Cases:
    sizes = (2, 3, 3, 4, 4, 1)
    *ordinary, one = [(random_scores(n, generator), position_of_document_0) for n in sizes]
    return ordinary, {"n = 1": one}


_EXPECTED: Slips = {
    "unweighted": lambda s, value: _all(s, value)[1].mean(),
    "summed": lambda s, value: _all(s, value)[1].sum(),
    "most_probable": lambda s, value: value(PlackettLuce(s).mode),
    "log_weights": lambda s, value: (_all(s, value)[0].log() * _all(s, value)[1]).sum(),
    "value_forgotten": lambda s, value: _all(s, value)[0].sum(),
    "divided": lambda s, value: _expected(s, value) / math.factorial(len(s)),
}
LOG_PROB = ("PlackettLuce.__init__", "PlackettLuce.log_prob")
EXPECTATION = Question("task1b", "scores value", _expected, _values, _EXPECTED, own_lines=LOG_PROB)


def expectation(answers: Sequence[Ask], generator: Generator) -> None:
    never_drawn(EXPECTATION, answers, generator)


def never_drawn(question: Question, answers: Sequence[Ask], generator: Generator) -> None:
    """Ask the question; where the answer is wrong and changes from call to call, say that."""
    inputs, odd = question.inputs(generator)
    try:
        question.compare(answers[0], inputs, odd)
    except Wrong:
        for each in inputs:
            first, _ = answered(answers[0], question.named(each))
            second, _ = answered(answers[0], question.named(each))
            if first.shape == second.shape and not torch.equal(first, second):
                raise Wrong(say(question.task, "sampled")) from None
        raise


# --- task 2: the sampler ------------------------------------------------------------------

_rule = partial(require, "task2")


def sampler(answers: Sequence[Ask], generator: Generator) -> None:
    ask = answers[0]
    # Close enough that all documents come first, far enough that no two are alike.
    scores = torch.linspace(-1.4, 1.4, 8, dtype=torch.float64)
    scores = scores[torch.randperm(8, generator=generator)]
    _, first = answered(ask, _request(scores, 4, seed=1), Terms(watch=True))
    require_own_lines(first)
    rankings = _drawn(ask, scores, DRAWS, seed=1)
    again, other = (_drawn(ask, scores, DRAWS, seed) for seed in (1, 3))
    _rule(torch.equal(rankings, again), "unseeded")
    _rule((rankings != rankings[0]).any(), "all_alike", draws=DRAWS, scores=scores)
    _rule(not torch.equal(rankings, other), "unused")
    _place_by_place(rankings, scores)
    _independent(ask, scores[:4])
    try:
        _drawn(ask, random_scores(1, generator), 4, seed=2)
        for far in (double(-1000, 1000, 0), double(-3000, -2000, 0), double(-2000, -3000, 0)):
            certain = _drawn(ask, far, 50, seed=2) == far.argsort(descending=True)
            _rule(certain.all(), "certain", scores=far)
    except Wrong as wrong:
        raise Wrong(EDGES + str(wrong), 0.5) from None


def _request(scores: Tensor, samples: int, seed: int) -> dict[str, Any]:
    """The arguments of a sampler."""
    stream = torch.Generator().manual_seed(seed)
    return {"scores": scores, "samples": samples, "generator": stream}


def _drawn(ask: Ask, scores: Tensor, samples: int, seed: int) -> Tensor:
    """The student's rankings ``(samples, n)``, if that is what they are."""
    answer, _ = answered(ask, _request(scores, samples, seed))
    got, wanted = tuple(answer.shape), (samples, len(scores))
    _rule(got == wanted, "shape", got=got, wanted=wanted, scores=scores)
    broken = (answer.sort(-1).values != torch.arange(len(scores))).any(-1)
    row = answer[broken.int().argmax()].tolist()
    _rule(not broken.any(), "not_once", row=row, scores=scores)
    return answer.long()


def _surprises(rankings: Tensor, scores: Tensor) -> tuple[Tensor, float]:
    """How many standard errors too often each document is drawn at each place ``(n - 1, n)``, and
    high scores at all places: the derivative by the temperature, the sharpest test of it.

    Who is drawn, less the probability among those left, is a martingale with a known variance.
    """
    place, here = rankings.argsort(-1).unsqueeze(1), torch.arange(len(scores) - 1).unsqueeze(1)
    p = (place >= here) * scores.exp()
    p = p / p.sum(-1, keepdim=True)
    away = (place == here).double() - p
    variance = (p @ scores**2 - (p @ scores) ** 2).sum()
    each = away.sum(0) / (p * (1 - p)).sum(0).sqrt()
    return each, float((away @ scores).sum() / variance.sqrt())


def _place_by_place(rankings: Tensor, scores: Tensor) -> None:
    """A right sampler fails by chance about once in 100,000 times."""
    each, steeper = _surprises(rankings, scores)
    off = (each.abs() > ERRORS).any(-1)
    if not off.any() and abs(steeper) < 4.5:
        return
    slips = {
        "ascending": (rankings.flip(-1), scores),
        "positions": (rankings.argsort(-1), scores),
        "noise_sign": (rankings.flip(-1), -scores),
        "scores_ignored": (rankings, 0 * scores),
    }
    name = "from_place" if off.any() and not off[0] else "temperature"
    for slip, given in slips.items():
        name = slip if (_surprises(*given)[0].abs() < ERRORS).all() else name
    values = {"place": 1 + int(off.int().argmax()), "kind": "more" if steeper > 0 else "less"}
    _rule(False, name, **values, scores=scores)


def _independent(ask: Ask, scores: Tensor, calls: int = 1500, samples: int = 6) -> None:
    """Sums over a few samples, in many calls: dependent samples vary too much or too little."""
    before = (scores[:, None] - scores).sigmoid()
    expected = 1.0 + before.sum(0) - 0.5  # less the document against itself
    every = [_drawn(ask, scores, samples, seed=100 + k) for k in range(calls)]
    away = torch.stack(every).argsort(-1).double() + 1 - expected
    products = away.sum(1).square().sum(-1) - away.square().sum((1, 2))  # of different samples
    z = float(products.mean() / products.std() * math.sqrt(calls))
    kind = "repeat" if z > 0 else "are opposites of"
    _rule(abs(z) < 5, "dependent", kind=kind, scores=scores)


# --- task 3a: exposure by sampling --------------------------------------------------------


def _paid(rankings: Tensor) -> Tensor:
    """What each ranking pays each document ``(samples, n)``."""
    return ranking_exposure(rankings, bias(rankings.shape[-1]))


def _sampled(rankings: Tensor) -> Tensor:
    return _paid(rankings).mean(0)


def _samples(generator: Generator) -> Cases:
    drawn = [
        (PlackettLuce(random_scores(n, generator)).sample((samples,), generator),)
        for samples, n in ((2, 3), (3, 4), (6, 5), (4, 6), (10, 2))
    ]
    one, alone = drawn[0][0][:1], torch.zeros(3, 1).long()
    ordinary = [(torch.tensor([[1, 2, 0], [2, 1, 0]]),), *drawn]
    return ordinary, {"a single sample": (one,), "a single document": (alone,)}


def _conserved(seen: Seen) -> str:
    total, got = float(bias(seen.inputs[0].shape[-1]).sum()), float(seen.value.sum())
    if abs(got - total) < 1e-4:
        return say("task3b", "divided_wrongly")
    return say("task3b", "not_conserved", sum=f"{got:.4f}", all=f"{total:.4f}")


_SAMPLED: Slips = {
    "natural_log": lambda r: _sampled(r) / math.log(2),
    "indices": lambda r: bias(r.shape[-1])[r].mean(0),
    "summed": lambda r: _paid(r).sum(0),
    "no_mean": _paid,
}
sampled_exposure = Question(
    "task3a", "rankings", _sampled, _samples, _SAMPLED, clue=_conserved, own_lines=()
)


# --- task 3b: exact exposure --------------------------------------------------------------


def _exact(scores: Tensor) -> Tensor:
    return PlackettLuce(scores).exposure()


def _races(generator: Generator) -> Cases:
    return [(random_scores(n, generator),) for n in (2, 3, 4, 5, 6)], {
        "one document, certain of the first position": (random_scores(1, generator),),
        "equal scores": (double(0, 0, 0, 0),),
        "scores of several hundred": (700 + random_scores(3, generator),),
    }


_EXACT: Slips = {
    "natural_log": lambda s: _exact(s) / math.log(2),
    "most_probable": lambda s: ranking_exposure(PlackettLuce(s).mode, bias(len(s))),
    "wrong_sign": lambda s: _exact(-s),
}
EXACT = Question(
    "task3b", "scores", _exact, _races, _EXACT, at_edges=5e-4, clue=_conserved, own_lines=()
)


def exact_exposure(answers: Sequence[Ask], generator: Generator) -> None:
    """Then more documents: the work must grow like a power of n, not like n!."""
    never_drawn(EXACT, answers, generator)
    longer = replace(EXACT, own_lines=None)
    work = list[float]()
    for n, growth in ((6, 1), (7, 5), (8, 20), (9, 20), (10, 20)):  # n!: 1, 7, 56, 504, 5040
        try:
            work.append(longer.compare(answers[0], [(random_scores(n, generator),)], {}))
        except Wrong as wrong:
            raise Wrong(EDGES + str(wrong), 0.5) from None
        if work[-1] > max(growth * work[0], 0.4):
            raise Wrong(say("task3b", "slow", n=n, growth=growth), 0.5)
