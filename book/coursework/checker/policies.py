"""The coursework's tasks on policies and exposure, chapters 3 and 4."""

import itertools
import math
from typing import Any

import torch
from torch import Generator, Tensor

from checker.calls import numbers, shown_by
from checker.examine import EDGES, Case, Finding, Question, Wrong, answer_of, say, seconds
from checker.given import always_one, discount_of_document_1, position_of_document_0
from fairpg_lite.exposure import position_bias, ranking_exposure
from fairpg_lite.policy import PlackettLuce

DRAWS = 20_000


def double(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def random_scores(n: int, generator: Generator) -> Tensor:
    return 1.5 * torch.randn(n, generator=generator, dtype=torch.float64)


def bias(n: int) -> Tensor:
    return position_bias(n, dtype=torch.float64)


def left(x: Tensor) -> Tensor:
    """At each place the sum over this one and those after it."""
    return x.flip(-1).cumsum(-1).flip(-1)


# --- task 1a: the probability of a ranking ------------------------------------------------


def probability(scores: Tensor, ranking: Tensor) -> Tensor:
    return PlackettLuce(scores).log_prob(ranking).exp()


def _lists(generator: Generator) -> list[Case]:
    rankings = [torch.tensor(r) for r in ([1, 2, 0], [2, 0, 3, 1], [3, 1, 4, 0, 2])]
    cases = [Case((random_scores(len(r), generator), r)) for r in rankings for _ in range(2)]
    one = random_scores(1, generator), torch.tensor([0])
    cases.append(Case(one, "there is one document, and one way to rank it"))
    numerics = (say("task1a", "numerics"),)
    for name, scores in (("overflow", (800.0, 801, 799.5)), ("underflow", (0.0, 801, 800))):
        inputs = double(*scores), torch.tensor([2, 1, 0])
        cases.append(Case(inputs, say("task1a", name), numerics, tolerance=5e-4))
    return cases


ranking_probability = Question(
    "task1a",
    "scores ranking",
    probability,
    _lists,
    slips={
        "logarithm": lambda s, r: PlackettLuce(s).log_prob(r),
        "positions": lambda s, r: probability(s, r.argsort()),
        "placed_so_far": lambda s, r: probability(s, r.flip(0)),
        "with_replacement": lambda s, r: s.softmax(-1).prod(),
        "no_exp": lambda s, r: (s[r] / left(s[r])).prod(),
        "ranking_ignored": lambda s, r: probability(s, torch.arange(len(s))),
    },
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


def _values(generator: Generator) -> list[Case]:
    values = (always_one, position_of_document_0, discount_of_document_1)
    cases = [Case((random_scores(n, generator), value)) for n in (3, 4) for value in values]
    return [*cases, Case((random_scores(1, generator), position_of_document_0), "n = 1")]


expectation = Question(
    "task1b",
    "scores value",
    _expected,
    _values,
    slips={
        "unweighted": lambda s, value: _all(s, value)[1].mean(),
        "summed": lambda s, value: _all(s, value)[1].sum(),
        "divided": lambda s, value: _expected(s, value) / math.factorial(len(s)),
        "most_probable": lambda s, value: value(PlackettLuce(s).mode),
        "log_weights": lambda s, value: (_all(s, value)[0].log() * _all(s, value)[1]).sum(),
    },
)


# --- task 2: the sampler ------------------------------------------------------------------


def sampler(answers: tuple[Any, ...], generator: Generator) -> Finding:
    function = answers[0]
    # Close enough that every order occurs, far enough that no two orders are equally probable.
    scores = double(0.1, 0.9, -0.7)
    scores += 0.2 * torch.rand(3, generator=generator, dtype=torch.float64)
    longer = torch.linspace(-1.4, 1.4, 8, dtype=torch.float64)
    longer = longer[torch.randperm(8, generator=generator)]
    rankings = _drawn(function, scores, DRAWS, seed=1)
    _seeded(function, scores, rankings)
    _frequencies(rankings, scores)
    _place_by_place(_drawn(function, longer, DRAWS, seed=4), longer)
    _independent(function, longer[:4])
    far = double(-1000, 1000, 0)
    try:
        _drawn(function, random_scores(1, generator), 4, seed=2)
        if not (_drawn(function, far, 50, seed=2) == torch.tensor([1, 2, 0])).all():
            raise Wrong(say("task2", "certain", shown=shown_by({"scores": far})))
    except Wrong as wrong:
        return Finding(0.5, EDGES + str(wrong))
    return Finding(1.0)


def _drawn(function: Any, scores: Tensor, samples: int, seed: int) -> Tensor:
    """The student's rankings ``(samples, n)``, if that is what they are."""
    inputs: dict[str, Any] = {"scores": scores, "samples": samples}
    shown, wanted = shown_by(inputs), (samples, len(scores))
    inputs["generator"] = torch.Generator().manual_seed(seed)
    answer, _ = answer_of(function, inputs)
    if answer.shape != wanted:
        got = tuple(answer.shape)
        raise Wrong(say("task2", "shape", got=got, wanted=wanted, shown=shown))
    broken = (answer.sort(-1).values != torch.arange(len(scores))).any(-1)
    if broken.any():
        raise Wrong(say("task2", "not_once", row=numbers(answer[broken][0]), shown=shown))
    return answer.long()


def _seeded(function: Any, scores: Tensor, rankings: Tensor) -> None:
    if not torch.equal(rankings, _drawn(function, scores, DRAWS, seed=1)):
        raise Wrong(say("task2", "unseeded"))
    if (rankings == rankings[0]).all():
        raise Wrong(say("task2", "all_alike", draws=DRAWS, shown=shown_by({"scores": scores})))
    if torch.equal(rankings, _drawn(function, scores, DRAWS, seed=3)):
        raise Wrong(say("task2", "unused"))


def _frequencies(rankings: Tensor, scores: Tensor) -> None:
    """Five standard errors: a right sampler fails by chance about once in 300,000 times."""
    every = torch.tensor(list(itertools.permutations(range(len(scores)))))
    seen = (rankings.unsqueeze(1) == every).all(-1).double().mean(0)

    def fits(p: Tensor) -> bool:
        return bool(((seen - p).abs() < 5 * (p * (1 - p) / DRAWS).sqrt() + 1e-9).all())

    slips = {
        "ascending": probability(scores, every.flip(-1)),
        "positions": probability(scores, every.argsort(-1)),
        "noise_sign": probability(-scores, every.flip(-1)),
        "scores_ignored": probability(0 * scores, every),
    }
    if fits(probability(scores, every)):
        return
    told = say("task2", next((name for name, p in slips.items() if fits(p)), "otherwise"))
    share, often = f"{float(seen.max()):.0%}", every[seen.argmax()].tolist()
    shown = {"scores": numbers(scores), "draws": DRAWS, "often": often, "share": share}
    raise Wrong(say("task2", "evidence", says=told, **shown))


def _place_by_place(rankings: Tensor, scores: Tensor) -> None:
    """At each place, the mean score of who was drawn, against that of who was left to draw from.

    The difference is a martingale with a known variance; its sum over the places is the derivative
    of the likelihood by the temperature, the sharpest test there is of a temperature of 1.
    """
    s = scores[rankings]
    w = s.exp()
    mean = left(w * s) / left(w)
    variance = (left(w * s * s) / left(w) - mean**2)[:, :-1]
    surprise = (s - mean)[:, :-1]
    z = surprise.sum(0) / variance.sum(0).sqrt()
    z_all = float(surprise.sum() / variance.sum().sqrt())
    shown = f"Shown by scores = {numbers(scores)}, {DRAWS} samples."
    off = [k + 1 for k, value in enumerate(z.tolist()) if abs(value) > 5]
    if off and off[0] > 1:
        raise Wrong(say("task2", "from_place", place=off[0], shown=shown))
    if off or abs(z_all) > 5:
        kind = "more" if z_all > 0 else "less"
        raise Wrong(say("task2", "temperature", kind=kind, shown=shown))


def _independent(function: Any, scores: Tensor, calls: int = 1500, samples: int = 6) -> None:
    """Sums over a few samples, in many calls: dependent samples vary too much or too little."""
    before = (scores[:, None] - scores).sigmoid()
    expected = 1.0 + before.sum(0) - 0.5  # less the document against itself
    every = [_drawn(function, scores, samples, seed=100 + k) for k in range(calls)]
    away = torch.stack(every).argsort(-1).double() + 1 - expected
    products = away.sum(1).square().sum(-1) - away.square().sum((1, 2))  # of different samples
    z = float(products.mean() / products.std() * math.sqrt(calls))
    if abs(z) > 5:
        kind = "repeat" if z > 0 else "are opposites of"
        shown = shown_by({"scores": scores, "samples": samples})
        raise Wrong(say("task2", "dependent", kind=kind, shown=shown))


# --- task 3a: exposure by sampling --------------------------------------------------------


def _paid(rankings: Tensor, position: Tensor | None = None) -> Tensor:
    if position is None:
        return ranking_exposure(rankings, bias(rankings.shape[-1])).mean(0)
    return position[rankings.argsort(-1)].mean(0)  # a slip's bias may be infinite


def _places(rankings: Tensor, first: int) -> Tensor:
    return torch.arange(first, first + rankings.shape[-1]).double()


def _samples(generator: Generator) -> list[Case]:
    drawn = [
        PlackettLuce(random_scores(n, generator)).sample((samples,), generator)
        for samples, n in ((2, 3), (3, 4), (6, 5))
    ]
    plain = [Case((r,)) for r in (torch.tensor([[1, 2, 0], [2, 1, 0]]), *drawn)]
    edges = {"a single sample": drawn[0][:1], "a single document": torch.zeros(3, 1).long()}
    return [*plain, *(Case((r,), edge) for edge, r in edges.items())]


def _conserved(case: Case, answer: Tensor) -> str:
    total = float(bias(case.inputs[0].shape[-1]).sum())
    if abs(float(answer.sum()) - total) < 1e-4:
        return say("task3b", "divided_wrongly")
    return say("task3b", "not_conserved", sum=f"{float(answer.sum()):.4f}", all=f"{total:.4f}")


sampled_exposure = Question(
    "task3a",
    "rankings",
    _paid,
    _samples,
    slips={
        "natural_log": lambda r: _paid(r) / math.log(2),
        "indices": lambda r: bias(r.shape[-1])[r].mean(0),
        "summed": lambda r: _paid(r) * len(r),
        "no_mean": lambda r: ranking_exposure(r, bias(r.shape[-1])),
        "from_0": lambda r: _paid(r, 1 / torch.log2(_places(r, 1))),
        "from_2": lambda r: _paid(r, 1 / torch.log2(_places(r, 3))),
        "reciprocal": lambda r: _paid(r, 1 / _places(r, 1)),
    },
    clue=_conserved,
)


# --- task 3b: exact exposure --------------------------------------------------------------


def _exact(scores: Tensor) -> Tensor:
    return PlackettLuce(scores).exposure()


def _against_itself(scores: Tensor) -> Tensor:
    """Document i among its rivals and a copy of itself: the product over j runs over i too."""
    n = len(scores)
    both = [PlackettLuce(torch.cat([scores, s[None]])).exposure(bias(n + 1)) for s in scores]
    return torch.stack(both)[:, :n].diagonal()


def _races(generator: Generator) -> list[Case]:
    plain = [Case((random_scores(n, generator),)) for n in (2, 3, 5, 6)]
    edges = {
        "one document, certain of the first position": random_scores(1, generator),
        "equal scores": double(0, 0, 0, 0),
        "scores of several hundred": 700 + random_scores(3, generator),
    }
    return [*plain, *(Case((s,), edge, tolerance=5e-4) for edge, s in edges.items())]


EXACT = Question(
    "task3b",
    "scores",
    _exact,
    _races,
    slips={
        "natural_log": lambda s: _exact(s) / math.log(2),
        "against_itself": _against_itself,
        "still_running": lambda s: PlackettLuce(s).exposure(bias(len(s)).flip(0)),
        "most_probable": lambda s: ranking_exposure(PlackettLuce(s).mode, bias(len(s))),
        "wrong_sign": lambda s: _exact(-s),
    },
    clue=_conserved,
)


def exact_exposure(answers: tuple[Any, ...], generator: Generator) -> Finding:
    """Then more documents: the work must grow like a power of n, not like n!."""
    found = EXACT(answers, generator)
    work: dict[int, float] = {}
    for n, growth in ((6, 1), (7, 5), (8, 20), (9, 20), (10, 20)):  # n!: 1, 7, 56, 504, 5040
        if found.message:
            return found
        start = seconds(answers[0])
        found = EXACT.compare(answers[0], [Case((random_scores(n, generator),))])
        work[n] = seconds(answers[0]) - start
        if found.message:
            found = Finding(0.5, EDGES + found.message)
        elif work[n] > max(growth * work[6], 0.4):
            found = Finding(0.5, say("task3b", "slow", n=n, growth=growth))
    return found
