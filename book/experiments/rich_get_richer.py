"""Do rich documents get richer? Clicks feed estimates, estimates feed rankings (chapter 17).

Section 2.2 of the paper says that its constraint "counteracts unmerited rich-get-richer dynamics".
Here every query has five pairs of twins, two documents of the same relevance. All rankers begin
with the same round of random lists, in which one twin of most pairs happens to be clicked more
often. From then on each ranker shows its lists, users click, and the ranker learns from all clicks
so far. A twin that keeps more exposure than its pair is richer without merit.

Estimates are made in two ways. "rate" is clicks per list shown, which a system has that does not
think of position bias. "weighted" divides clicks by the expected exposure of the policies that were
shown, which is exact. A repetition draws relevance, lists and clicks anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from experiments.cells import Cells, by_seed, lams_of
from experiments.summary import over_seeds
from fairpg_lite import PlackettLuce, expected_ndcg, individual_disparity, position_bias
from fairpg_lite.policy import DoublyStochastic, FixedRanking, Mixture, Policy
from fairpg_lite.sweeps import Cell, grid

#: What the summary shows.
COLUMNS = {
    "ndcg": "NDCG",
    "d_ind": "D_ind",
    "luck": "lead of the lucky twin",
    "inequality": "gap between twins",
}
#: The ways to estimate relevance.
ESTIMATES = ("rate", "weighted")
#: Prices of disparity, and shares of random lists: five each, from little to nearly all.
LAMS = (0.3, 1.0, 3.0, 10.0, 30.0)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
#: Rounds after which the twins are compared.
STOPS = (1, 2, 5, 10, 20, 40)


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float
    over: str
    """What the interval is over."""


class Twins(NamedTuple):
    """Queries of twins and what became of them."""

    relevance: Tensor
    """``(Q, n)``, the probability of a click on a document that is looked at."""
    first_clicks: Tensor
    """``(Q, n)``, clicks in the round that all rankers share."""


@dataclass(frozen=True)
class Loop:
    """A ranker that learns from the clicks on its own lists."""

    ranker: str
    """"uniform", "sorting", "pg_rank", "fair_pg_rank", "mixed_sorting" or "mixed_pg_rank"."""
    estimate: str
    """One of `ESTIMATES`."""
    n_queries: int = 16
    pairs: int = 5
    rounds: int = 40
    lists: int = 10
    """Lists shown for each query in each round."""
    steps: int = 4
    """Steps of Adam on the scores in each round, for a ranker that has scores."""
    lr: float = 0.2

    @property
    def name(self) -> str:
        """The name of its results."""
        return f"{self.ranker}-{self.estimate}"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        """Run the loop.

        Args:
            lam: The price of D_ind for "fair_pg_rank", the share of random lists for those that
                are mixed; otherwise not looked at.
            seed: Draws relevance, lists and clicks; the first round is the same for all rankers.

        Returns:
            NDCG and D_ind by the true relevance, and how far twins are apart, at the end; and the
            lead of the lucky twin after each of `STOPS`.
        """
        draws = torch.Generator().manual_seed(seed)
        half = torch.rand(self.n_queries, self.pairs, generator=draws, dtype=torch.float64)
        relevance = (0.1 + 0.9 * half).repeat_interleave(2, -1)
        n = 2 * self.pairs
        learner = _Learner(self, lam, torch.zeros(self.n_queries, n, dtype=torch.float64))
        policy: Policy = PlackettLuce(torch.zeros_like(relevance))
        current = policy.exposure()
        clicks = torch.zeros_like(relevance)
        exposure = torch.zeros_like(relevance)
        shown = 0
        twins = None
        leads = {}
        for number in range(1, self.rounds + 1):
            rankings = policy.sample((self.lists,), generator=draws)
            clicks += _clicks_on(rankings, relevance, draws)
            exposure += self.lists * current
            shown += self.lists
            if twins is None:
                twins = Twins(relevance, clicks.clone())
            estimates = _estimates(self.estimate, clicks, exposure, shown)
            policy = learner.policy_for(estimates, draws)
            current = policy.exposure()
            if number in STOPS:
                leads[number] = lead_of_the_lucky(current, twins)
        assert twins is not None
        first, second = current[:, 0::2], current[:, 1::2]
        return {
            "ndcg": float(expected_ndcg(current, relevance, gain="linear").mean()),
            "d_ind": float(individual_disparity(current, relevance).mean()),
            "luck": lead_of_the_lucky(current, twins),
            "inequality": float(((first - second).abs() / (first + second)).mean()),
            "leads": [leads[stop] for stop in STOPS if stop <= self.rounds],
        }


def lead_of_the_lucky(exposure: Tensor, twins: Twins) -> float:
    """How far the twin with more clicks in the first round is ahead.

    Args:
        exposure: ``(Q, n)``; documents 2k and 2k + 1 are twins.
        twins: What happened in the first round.

    Returns:
        The mean over pairs, without those of equal clicks, of the difference of their exposures
        over the sum: 0 where luck is forgotten, 1 where the other twin gets nothing.

    >>> twins = Twins(torch.ones(1, 4), torch.tensor([[3.0, 1.0, 2.0, 2.0]]))
    >>> lead = lead_of_the_lucky(torch.tensor([[0.6, 0.4, 1.0, 0.2]]), twins)
    >>> round(lead, 3)  # of the first pair, as the second had equal clicks
    0.2
    """
    side = (twins.first_clicks[:, 0::2] - twins.first_clicks[:, 1::2]).sign()
    first, second = exposure[:, 0::2], exposure[:, 1::2]
    gaps = side * (first - second) / (first + second)
    return float(gaps[side != 0].mean())


def _clicks_on(rankings: Tensor, relevance: Tensor, draws: torch.Generator) -> Tensor:
    """How often each document ``(Q, n)`` is clicked in ``rankings (S, Q, n)``."""
    n = relevance.shape[-1]
    bias = position_bias(n, dtype=torch.float64)
    chance = relevance.expand(rankings.shape).gather(-1, rankings) * bias
    is_clicked = torch.rand(chance.shape, generator=draws, dtype=torch.float64) < chance
    by_document = torch.zeros(rankings.shape, dtype=torch.float64)
    return by_document.scatter(-1, rankings, is_clicked.double()).sum(0)


def _estimates(way: str, clicks: Tensor, exposure: Tensor, shown: int) -> Tensor:
    """Relevance ``(Q, n)`` as the system sees it, drawn towards 1/2 by one more list seen."""
    if way == "rate":
        return (clicks + 0.5) / (shown + 1.0)
    if way == "weighted":
        return (clicks + 0.5) / (exposure + 1.0)
    raise ValueError(f"estimate is {way!r}; choose from {', '.join(ESTIMATES)}.")


class _Learner:
    """Makes a policy of estimates, round after round."""

    def __init__(self, loop: Loop, lam: float, scores: Tensor):
        self.loop = loop
        self.lam = lam
        self.scores = scores.requires_grad_()
        self.optimizer = torch.optim.Adam([self.scores], lr=loop.lr)

    def policy_for(self, estimates: Tensor, draws: torch.Generator) -> Policy:
        """The ranker's policy after it has seen these estimates."""
        ranker = self.loop.ranker
        if ranker == "uniform":
            return PlackettLuce(torch.zeros_like(estimates))
        if ranker == "sorting":
            return _sorted(estimates, draws)
        if ranker == "mixed_sorting":
            return _mixed(_sorted(estimates, draws), self.lam)
        if ranker == "pg_rank":
            return self._trained(estimates, 0.0)
        if ranker == "mixed_pg_rank":
            return _mixed(self._trained(estimates, 0.0), self.lam)
        if ranker == "fair_pg_rank":
            return self._trained(estimates, self.lam)
        raise ValueError(f"there is no ranker {ranker!r}.")

    def _trained(self, estimates: Tensor, lam: float) -> PlackettLuce:
        """The Plackett-Luce policy after some more steps on NDCG - lam D_ind of the estimates."""
        for _ in range(self.loop.steps):
            exposure = PlackettLuce(self.scores).exposure(tolerance=1e-4)
            objective = expected_ndcg(exposure, estimates, gain="linear")
            if lam > 0:
                objective = objective - lam * individual_disparity(exposure, estimates)
            self.optimizer.zero_grad()
            (-objective.sum()).backward()
            self.optimizer.step()
        return PlackettLuce(self.scores.detach().clone())


def _sorted(estimates: Tensor, draws: torch.Generator) -> FixedRanking:
    """One list by estimate, equal ones in random order."""
    shuffled = torch.rand(estimates.shape, generator=draws).argsort(-1)
    by_estimate = estimates.gather(-1, shuffled).argsort(dim=-1, descending=True, stable=True)
    return FixedRanking(shuffled.gather(-1, by_estimate), None, torch.float64)


def _mixed(policy: Policy, share: float) -> Mixture:
    """A policy that shows a random list with probability ``share``."""
    n = policy.mode.shape[-1]
    batch = policy.mode.shape[:-1]
    uniform = DoublyStochastic(torch.full((*batch, n, n), 1.0 / n, dtype=torch.float64))
    return Mixture([policy, uniform], [1.0 - share, share])


def plan(*, seeds: int | None = None, quick: bool = False) -> list[Cell]:
    """All cells; 20 repetitions by default."""
    runs = range(seeds or (2 if quick else 20))
    rounds = 5 if quick else 40
    lams_of_rankers: dict[str, Sequence[float]] = {
        "uniform": (0.0,),
        "sorting": (0.0,),
        "pg_rank": (0.0,),
        "fair_pg_rank": LAMS,
    }
    # What the mixtures are asked for is asked of rates, where luck lasts.
    of_rates = {**lams_of_rankers, "mixed_sorting": SHARES, "mixed_pg_rank": SHARES}
    cells = []
    for estimate, rankers in (("rate", of_rates), ("weighted", lams_of_rankers)):
        for ranker, lams in rankers.items():
            cells += grid(Loop(ranker, estimate, rounds=rounds), lams, runs)
    return cells


def describe_data(cells: Cells) -> str:
    """The sentence that names the data."""
    return (
        "Simulated queries of ten documents, five pairs of twins with equal relevance between .1 "
        "and 1; users look at position j with probability 1/log2(1 + j) and click with the "
        "relevance as probability; the seed draws relevance, lists and clicks."
    )


# What the scoreboard asks


def lead_against_pg_rank(cells: Cells, estimate: str, after: int = STOPS[-1]) -> Estimate:
    """The lucky twin's lead under Fair-PG-Rank, the mean over `LAMS`, less that under PG-Rank.

    Args:
        cells: Stored cells of this experiment.
        estimate: One of `ESTIMATES`.
        after: One of `STOPS`, the number of rounds.

    Returns:
        The mean over repetitions and Student's interval; below zero where the constraint
        counteracts.
    """
    cells = list(cells)
    stop = STOPS.index(after)
    plain = by_seed(cells, f"pg_rank-{estimate}", 0.0)
    fair = [by_seed(cells, f"fair_pg_rank-{estimate}", lam) for lam in LAMS]
    differences = []
    for seed in sorted(plain):
        mean = np.mean([results[seed]["leads"][stop] for results in fair])
        differences.append(float(mean) - plain[seed]["leads"][stop])
    found = over_seeds(differences)
    over = f"{len(differences)} repetitions"
    return Estimate(found.mean, found.mean - found.half, found.mean + found.half, over)


def ndcg_against_mixture(cells: Cells, estimate: str, share: float) -> Estimate:
    """NDCG of Fair-PG-Rank less that of PG-Rank mixed with random lists, at the same lead.

    Args:
        cells: Stored cells of this experiment.
        estimate: One of `ESTIMATES`.
        share: Of PG-Rank's own lead, the lead at which both are compared, such as 0.5.

    Returns:
        The difference of NDCG and its interval, percentiles of 2,000 bootstrap draws of
        repetitions; nan where a curve does not reach the lead.
    """
    cells = list(cells)
    fair = _curve(cells, f"fair_pg_rank-{estimate}", f"pg_rank-{estimate}")
    mixed = _curve(cells, f"mixed_pg_rank-{estimate}", f"pg_rank-{estimate}")
    repetitions = fair.shape[1]

    def difference(chosen: np.ndarray) -> float:
        aim = share * fair[0, chosen, 0].mean()
        return _ndcg_at(fair[:, chosen].mean(1), aim) - _ndcg_at(mixed[:, chosen].mean(1), aim)

    generator = np.random.default_rng(0)
    draws = []
    for _ in range(2000):
        chosen = generator.integers(0, repetitions, size=(repetitions,))
        draws.append(difference(chosen))
    low, high = np.percentile(draws, [2.5, 97.5])
    over = f"{repetitions} repetitions"
    return Estimate(difference(np.arange(repetitions)), float(low), float(high), over)


def _curve(cells: list[Any], experiment: str, start: str) -> np.ndarray:
    """Lead and NDCG ``(settings, repetitions, 2)``, from PG-Rank's to random lists'."""
    rows = [by_seed(cells, start, 0.0)]
    rows += [by_seed(cells, experiment, lam) for lam in lams_of(cells, experiment)]
    estimate = start.rpartition("-")[2]
    rows.append(by_seed(cells, f"uniform-{estimate}", 0.0))
    seeds = sorted(rows[0])
    return np.array([[[row[seed]["luck"], row[seed]["ndcg"]] for seed in seeds] for row in rows])


def _ndcg_at(curve: np.ndarray, lead: float) -> float:
    """NDCG where the line through points ``(settings, 2)`` first comes down to a lead."""
    for (lead_before, ndcg_before), (lead_after, ndcg_after) in pairwise(curve):
        if lead_before >= lead >= lead_after:
            if lead_before == lead_after:
                return float(ndcg_before)
            part = (lead_before - lead) / (lead_before - lead_after)
            return float(ndcg_before + part * (ndcg_after - ndcg_before))
    return float("nan")
