"""The coursework's tasks on policies and exposure, chapters 3 and 4."""

import itertools
import math
from typing import Any

import torch
from torch import Generator, Tensor

from checker.calls import numbers, shown_by
from checker.examine import EDGES, Case, Finding, Slip, Wrong, answer_of, compare, seconds
from checker.given import always_one, discount_of_document_1, position_of_document_0
from fairpg_lite.exposure import position_bias, ranking_exposure
from fairpg_lite.policy import PlackettLuce

DRAWS = 20_000
NUMERICS = "what a computer gets wrong with exp"
NATURAL = "This is the natural logarithm; the position bias is 1/log2(1 + j), base 2."


def random_scores(n: int, generator: Generator) -> Tensor:
    return 1.5 * torch.randn(n, generator=generator, dtype=torch.float64)


def bias(n: int) -> Tensor:
    return position_bias(n, dtype=torch.float64)


# --- task 1a: the probability of a ranking ------------------------------------------------


def probability(scores: Tensor, ranking: Tensor) -> Tensor:
    return PlackettLuce(scores).log_prob(ranking).exp()


def _weights_without_exp(scores: Tensor, ranking: Tensor) -> Tensor:
    placed = scores[ranking]
    return (placed / placed.flip(0).cumsum(0).flip(0)).prod()


PROBABILITY_SLIPS = (
    Slip(
        "That is the logarithm of the probability; the task asks for the probability itself.",
        lambda s, r: PlackettLuce(s).log_prob(r),
    ),
    Slip(
        "`ranking` is read as positions. It holds documents: ranking[0] is the document that "
        "stands first, so the scores in ranked order are scores[ranking].",
        lambda s, r: probability(s, r.argsort()),
    ),
    Slip(
        "The sums below the fractions run over the documents placed so far. They must run over "
        "those that are left, from the current position to the end.",
        lambda s, r: probability(s, r.flip(0)),
    ),
    Slip(
        "Every factor divides by the sum over all documents. A document that has been placed "
        "cannot be drawn again: divide by those that are left.",
        lambda s, r: s.softmax(-1).prod(),
    ),
    Slip("The scores are used as weights; the weight is exp(score).", _weights_without_exp),
    Slip(
        "`ranking` has no effect: this is the probability of the ranking 0, 1, 2, ...",
        lambda s, r: probability(s, torch.arange(len(s))),
    ),
)


def ranking_probability(answers: tuple[Any, ...], generator: Generator) -> Finding:
    rankings = [[1, 2, 0], [2, 0, 3, 1], [3, 1, 4, 0, 2]]
    pairs = [
        (random_scores(len(r), generator), torch.tensor(r), "") for r in rankings for _ in range(2)
    ]
    one = random_scores(1, generator)
    pairs.append((one, torch.tensor([0]), "there is one document, and one way to rank it"))
    cases = [Case({"scores": s, "ranking": r}, probability(s, r), edge) for s, r, edge in pairs]
    numerical = {
        "exp(800) overflows, but only differences of scores matter": [800.0, 801.0, 799.5],
        "exp(-801) underflows to 0, so that the last fraction is 0/0; stay with logarithms, "
        "logsumexp instead of sum": [0.0, 801.0, 800.0],
    }
    for edge, values in numerical.items():
        far, ranking = torch.tensor(values, dtype=torch.float64), torch.tensor([2, 1, 0])
        inputs = {"scores": far, "ranking": ranking}
        cases.append(Case(inputs, probability(far, ranking), edge, (NUMERICS,), tolerance=5e-4))
    return compare(answers[0], cases, PROBABILITY_SLIPS)


# --- task 1b: expectation by enumeration --------------------------------------------------


def _all(scores: Tensor, value: Any) -> tuple[Tensor, Tensor]:
    """Probabilities and values ``(n!,)`` of all rankings."""
    rankings = torch.tensor(list(itertools.permutations(range(len(scores)))))
    values = torch.tensor([value(r) for r in rankings], dtype=torch.float64)
    return PlackettLuce(scores).log_prob(rankings).exp(), values


def _expected(scores: Tensor, value: Any) -> Tensor:
    p, values = _all(scores, value)
    return (p * values).sum()


EXPECTATION_SLIPS = (
    Slip(
        "All rankings get the same weight. An expectation weighs each by its probability.",
        lambda s, value: _all(s, value)[1].mean(),
    ),
    Slip(
        "The values are added up without their probabilities.",
        lambda s, value: _all(s, value)[1].sum(),
    ),
    Slip(
        "The sum is divided by the number of rankings; the probabilities already sum to one.",
        lambda s, value: _expected(s, value) / math.factorial(len(s)),
    ),
    Slip(
        "That is the value of the most probable ranking alone; sum over all of them.",
        lambda s, value: value(PlackettLuce(s).mode),
    ),
    Slip(
        "The weights are log-probabilities; take exp first.",
        lambda s, value: (_all(s, value)[0].log() * _all(s, value)[1]).sum(),
    ),
)


def expectation(answers: tuple[Any, ...], generator: Generator) -> Finding:
    values = (always_one, position_of_document_0, discount_of_document_1)
    cases = [
        Case({"scores": s, "value": value}, _expected(s, value))
        for n in (3, 4)
        for value in values
        for s in [random_scores(n, generator)]
    ]
    one = random_scores(1, generator)
    cases.append(
        Case({"scores": one, "value": position_of_document_0}, _expected(one, values[1]), "n = 1")
    )
    return compare(answers[0], cases, EXPECTATION_SLIPS)


# --- task 2: the sampler ------------------------------------------------------------------


def sampler(answers: tuple[Any, ...], generator: Generator) -> Finding:
    function = answers[0]
    # Close enough that every order occurs, far enough that no two orders are equally probable.
    scores = torch.tensor([0.1, 0.9, -0.7], dtype=torch.float64)
    scores += 0.2 * torch.rand(3, generator=generator, dtype=torch.float64)
    longer = torch.linspace(-1.4, 1.4, 8, dtype=torch.float64)
    longer = longer[torch.randperm(8, generator=generator)]
    try:
        rankings = _drawn(function, scores, DRAWS, seed=1)
        _seeded(function, scores, rankings)
        _frequencies(rankings, scores)
        _place_by_place(_drawn(function, longer, DRAWS, seed=4), longer)
        _independent(function, longer[:4])
    except Wrong as wrong:
        return Finding(0.0, str(wrong))
    far = torch.tensor([-1000.0, 1000.0, 0.0], dtype=torch.float64)
    try:
        _drawn(function, random_scores(1, generator), 4, seed=2)
        wide = _drawn(function, far, 50, seed=2)
        if not torch.equal(wide, torch.tensor([1, 2, 0]).expand(50, 3)):
            raise Wrong(f"The order must be certain here. {shown_by({'scores': far})}")
    except Wrong as wrong:
        return Finding(0.5, EDGES + str(wrong))
    return Finding(1.0)


def _drawn(function: Any, scores: Tensor, samples: int, seed: int) -> Tensor:
    """The student's rankings ``(samples, n)``, if that is what they are."""
    inputs = {
        "scores": scores,
        "samples": samples,
        "generator": torch.Generator().manual_seed(seed),
    }
    answer, _ = answer_of(function, inputs)
    shown = shown_by({"scores": scores, "samples": samples})
    if answer.shape != (samples, len(scores)):
        raise Wrong(
            f"The rankings have shape {tuple(answer.shape)}; wanted is (samples, n), here "
            f"{(samples, len(scores))}: samples first, documents last. {shown}"
        )
    broken = (answer.sort(-1).values != torch.arange(len(scores))).any(-1)
    if broken.any():
        row = numbers(answer[broken][0])
        raise Wrong(
            f"A row must list every document once, and {row} does not. Return the order of the "
            f"documents, not their scores, and draw without replacement. {shown}"
        )
    return answer.long()


def _seeded(function: Any, scores: Tensor, rankings: Tensor) -> None:
    if not torch.equal(rankings, _drawn(function, scores, DRAWS, seed=1)):
        raise Wrong(
            "Two calls with equally seeded generators give different rankings: hand `generator` "
            "on to the function that draws the noise."
        )
    if (rankings == rankings[0]).all():
        raise Wrong(
            f"All {DRAWS} rankings are the same. Each sample and each document needs its own "
            f"noise: draw noise of shape (samples, n). {shown_by({'scores': scores})}"
        )
    if torch.equal(rankings, _drawn(function, scores, DRAWS, seed=3)):
        raise Wrong("Two differently seeded generators give the same rankings: one is not used.")


def _frequencies(rankings: Tensor, scores: Tensor) -> None:
    """Five standard errors: a right sampler fails by chance about once in 300,000 times."""
    every = torch.tensor(list(itertools.permutations(range(len(scores)))))
    seen = (rankings.unsqueeze(1) == every).all(-1).double().mean(0)

    def fits(p: Tensor) -> bool:
        return bool(((seen - p).abs() < 5 * (p * (1 - p) / DRAWS).sqrt() + 1e-9).all())

    right = PlackettLuce(scores)
    if fits(right.log_prob(every).exp()):
        return
    slips = {
        "The worst document comes first most often: sort in descending order.": right.log_prob(
            every.flip(-1)
        ),
        "The rows hold the position of each document. Wanted is the document at each position: "
        "one argsort, not two.": right.log_prob(every.argsort(-1)),
        "The noise has the wrong sign: Gumbel noise is -log(-log U), with two minus signs.": (
            PlackettLuce(-scores).log_prob(every.flip(-1))
        ),
        "The scores have no effect: all orders come equally often.": torch.full(
            (len(every),), -math.log(len(every)), dtype=torch.float64
        ),
    }
    told = next((says for says, log_p in slips.items() if fits(log_p.exp())), "")
    told = told or "The rows are rankings, but with other probabilities: is the noise Gumbel?"
    often = int(seen.argmax())
    raise Wrong(
        f"{told} Shown by scores = {numbers(scores)}, {DRAWS} samples: the ranking "
        f"{every[often].tolist()} came in {float(seen[often]):.0%} of them."
    )


def _place_by_place(rankings: Tensor, scores: Tensor) -> None:
    """At each place, the mean score of who was drawn, against that of who was left to draw from.

    The difference is a martingale with a known variance; its sum over the places is the derivative
    of the likelihood by the temperature, the sharpest test there is of a temperature of 1.
    """
    s = scores[rankings]
    w = s.exp()

    def left(x: Tensor) -> Tensor:
        return x.flip(-1).cumsum(-1).flip(-1)

    mean = left(w * s) / left(w)
    variance = (left(w * s * s) / left(w) - mean**2)[:, :-1]
    surprise = (s - mean)[:, :-1]
    z = surprise.sum(0) / variance.sum(0).sqrt()
    z_all = float(surprise.sum() / variance.sum().sqrt())
    shown = f"Shown by scores = {numbers(scores)}, {DRAWS} samples."
    off = [k + 1 for k, value in enumerate(z.tolist()) if abs(value) > 5]
    if off and off[0] > 1:
        raise Wrong(f"From place {off[0]} on the draws are not the policy's. {shown}")
    if off or abs(z_all) > 5:
        kind = "more" if z_all > 0 else "less"
        raise Wrong(
            f"High scores come first {kind} often than exp(score) says: is there a temperature, "
            f"or a factor at the noise? {shown}"
        )


def _independent(function: Any, scores: Tensor, calls: int = 1500, samples: int = 6) -> None:
    """Sums over a few samples, in many calls: dependent samples vary too much or too little."""
    before = (scores[:, None] - scores).sigmoid()
    expected = 1.0 + before.sum(0) - 0.5  # less the document against itself
    every = [_drawn(function, scores, samples, seed=100 + k) for k in range(calls)]
    away = torch.stack(every).argsort(-1).double() + 1 - expected
    both = away.sum(1).square().sum(-1) - away.square().sum(
        (1, 2)
    )  # the products of different ones
    z = float(both.mean() / both.std() * math.sqrt(calls))
    if abs(z) > 5:
        kind = "repeat" if z > 0 else "are opposites of"
        raise Wrong(
            f"Each ranking follows the policy, but the samples of one call {kind} each other: draw "
            f"fresh noise for each. {shown_by({'scores': scores, 'samples': samples})}"
        )


# --- task 3: exposure ---------------------------------------------------------------------


def _paid(rankings: Tensor, position: Tensor | None = None) -> Tensor:
    if position is None:
        return ranking_exposure(rankings, bias(rankings.shape[-1])).mean(0)
    return position[rankings.argsort(-1)].mean(0)  # a slip's bias may be infinite


SAMPLED_SLIPS = (
    Slip(NATURAL, lambda r: _paid(r) / math.log(2)),
    Slip(
        "v[rankings] looks documents up as if they were positions. The document rankings[s, k] "
        "is paid v[k]: write into the document's place (scatter, or `paid[ranking] = v`).",
        lambda r: bias(r.shape[-1])[r].mean(0),
    ),
    Slip("That is the sum over the samples; exposure is their mean.", lambda r: _paid(r) * len(r)),
    Slip(
        "The payments of all samples are there; what is missing is the mean over them.",
        lambda r: ranking_exposure(r, bias(r.shape[-1])),
    ),
    Slip(
        "Positions are counted from 0: the first position has j = 1 and bias 1/log2(2) = 1.",
        lambda r: _paid(r, 1 / torch.log2(torch.arange(r.shape[-1]).double() + 1)),
    ),
    Slip(
        "Positions are counted from 2: the first position has j = 1 and bias 1/log2(2) = 1.",
        lambda r: _paid(r, 1 / torch.log2(torch.arange(r.shape[-1]).double() + 3)),
    ),
    Slip(
        "That is the bias 1/j; the task's is 1/log2(1 + j).",
        lambda r: _paid(r, 1 / torch.arange(1, r.shape[-1] + 1).double()),
    ),
)


def conserved(n: int, answer: Tensor) -> str:
    return (
        f"Your exposures sum to {float(answer.sum()):.4f}; whatever the policy, all "
        f"the attention there is, {float(bias(n).sum()):.4f}, goes to somebody."
        if abs(float(answer.sum() - bias(n).sum())) > 1e-4
        else "The sum of the exposures is right, their division among the documents is not."
    )


def sampled_exposure(answers: tuple[Any, ...], generator: Generator) -> Finding:
    drawn = [
        PlackettLuce(random_scores(n, generator)).sample((samples,), generator)
        for samples, n in ((2, 3), (3, 4), (6, 5))
    ]
    drawn.insert(0, torch.tensor([[1, 2, 0], [2, 1, 0]]))
    cases = [Case({"rankings": r}, _paid(r)) for r in drawn]
    cases.append(Case({"rankings": drawn[1][:1]}, _paid(drawn[1][:1]), "a single sample"))
    single = torch.zeros(3, 1, dtype=torch.long)
    cases.append(Case({"rankings": single}, _paid(single), "a single document"))
    return compare(
        answers[0],
        cases,
        SAMPLED_SLIPS,
        clue=lambda case, answer: conserved(case.inputs["rankings"].shape[-1], answer),
    )


def _race_against_oneself(scores: Tensor) -> Tensor:
    """Document i among its rivals and a copy of itself: the product over j runs over i too."""
    n = len(scores)
    rows = [
        PlackettLuce(torch.cat([scores, scores[i : i + 1]])).exposure(bias(n + 1))[i]
        for i in range(n)
    ]
    return torch.stack(rows)


EXACT_SLIPS = (
    Slip(NATURAL, lambda s: PlackettLuce(s).exposure() / math.log(2)),
    Slip(
        "Document i races against itself: leave j = i out of the coins.",
        _race_against_oneself,
    ),
    Slip(
        "Those who have arrived are counted as still on their way, or the other way round: by "
        "time t document j has arrived with probability 1 - exp(-w_j t).",
        lambda s: PlackettLuce(s).exposure(bias(len(s)).flip(0)),
    ),
    Slip(
        "That is the position bias of the most probable ranking; the policy is a lottery.",
        lambda s: ranking_exposure(PlackettLuce(s).mode, bias(len(s))),
    ),
    Slip(
        "The scores are taken with the wrong sign: a high score means a high rate w = exp(s).",
        lambda s: PlackettLuce(-s).exposure(),
    ),
)


def exact_exposure(answers: tuple[Any, ...], generator: Generator) -> Finding:
    function = answers[0]
    cases = [
        Case({"scores": s}, PlackettLuce(s).exposure())
        for s in (random_scores(n, generator) for n in (2, 3, 5, 6))
    ]
    edges = {
        "one document, certain of the first position": random_scores(1, generator),
        "equal scores": torch.zeros(4, dtype=torch.float64),
        "scores of several hundred": 700 + random_scores(3, generator),
    }
    cases += [
        Case({"scores": s}, PlackettLuce(s).exposure(), edge, tolerance=5e-4)
        for edge, s in edges.items()
    ]
    found = compare(
        function,
        cases,
        EXACT_SLIPS,
        clue=lambda case, answer: conserved(len(case.inputs["scores"]), answer),
    )
    return found if found.message else _many(function, generator)


def _many(function: Any, generator: Generator) -> Finding:
    """More documents: the answers right, and the work growing like a power of n, not like n!."""
    work = {}
    for n, growth in ((6, 1), (7, 5), (8, 20), (9, 20), (10, 20)):  # n!: 1, 7, 56, 504, 5040
        scores = random_scores(n, generator)
        start = seconds(function)
        found = compare(function, [Case({"scores": scores}, PlackettLuce(scores).exposure())])
        work[n] = seconds(function) - start
        if found.message:
            return Finding(0.5, EDGES + found.message)
        if work[n] > max(growth * work[6], 0.4):
            return Finding(
                0.5,
                f"Right for few documents, but {n} take more than {growth} times as long as 6: "
                "going through all n! rankings is too slow where the race is quick.",
            )
    return Finding(1.0)
