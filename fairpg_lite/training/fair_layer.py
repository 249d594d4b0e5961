r"""Make an existing ranker fair, without training it again (chapter 14).

A ranker gives scores, and nobody wishes to change it. `make_fair` puts a layer behind it, whose
one or few numbers are chosen so that the mean disparity on some queries keeps a budget at the
highest NDCG:

=============== ===================================================================================
"temperature"   `PlackettLuce` of the scores divided by a temperature
"mixture"       the sorted list, or with some chance a random one
"head"          `PlackettLuce` of a weight on the score and a bonus for each group, trained
"programme"     the linear programme of Singh and Joachims (2018) on calibrated scores, at a price
=============== ===================================================================================

The first two need nothing but scores where they serve; the last two need the groups as well.

*Calibration.* The programme divides exposure by merit, so it must be told relevances and not scores
on some scale: a negative score is no merit, and twice the score is not twice the merit. An isotonic
regression maps scores to the mean relevance of documents with such scores; it may only rise, so
within a group it keeps the ranker's order, apart from ties. Each group has a regression of its own,
because the same score may stand for more relevance in one group than in another, and the programme
would then take the ranker's bias for merit.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, overload

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._extras import progress_bar, require
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import Disparity
from fairpg_lite.evaluation import Evaluation, Predictor, evaluate
from fairpg_lite.measures import DISPARITIES, MEASURES, Measure, of_disparity
from fairpg_lite.policy import (
    DoublyStochastic,
    FixedRanking,
    MakePolicy,
    Mixture,
    PlackettLuce,
    Policy,
)
from fairpg_lite.post_processing import fair_ranking_lp
from fairpg_lite.relevance import Merit
from fairpg_lite.scorers import LinearScorer, Scorer, eval_mode, score
from fairpg_lite.training.budget import fit_to_budget
from fairpg_lite.training.config import TrainConfig

METHODS = ("temperature", "mixture", "head", "programme")
#: Scores of all documents ``(N,)``, or what makes them.
Scores = Tensor | np.ndarray | Scorer | Predictor
# Queries scored together.
_BATCH_SIZE = 64
# Halvings between the best number of a grid and its neighbour that breaks the budget.
_REFINEMENTS = 8


@dataclass(frozen=True)
class FairLayer(Sequence[Policy]):
    """An existing ranker made fair: one policy for each query that `make_fair` was given.

    It is a sequence of these policies, so `evaluate` takes it as it is. For other queries there are
    `on` and, for a single request, `policy`.
    """

    method: str
    """One of `METHODS`."""
    budget: float
    """What the disparity was to be at most."""
    parameters: dict[str, float]
    """The numbers that were chosen, by name."""
    utility: float
    """Mean NDCG on the queries that the numbers were chosen on."""
    disparity: float
    """Mean disparity on the queries that the numbers were chosen on."""
    fresh: Evaluation | None
    """NDCG and the disparity on the fresh queries; None if there were none."""
    fresh_disparity: float | None
    """Mean disparity on the fresh queries; None if there were none."""
    way: "Way"
    """What makes policies of scores and groups."""
    policies: list[Policy]
    """Of the queries that the numbers were chosen on."""

    @property
    def keeps_budget(self) -> bool:
        """Whether the budget is kept on fresh queries, or without them on those chosen on."""
        judged = self.disparity if self.fresh_disparity is None else self.fresh_disparity
        return judged <= self.budget

    @property
    def message(self) -> str:
        """The outcome in words."""
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in self.parameters.items())
        text = (
            f"{self.method} ({numbers}): disparity {self.disparity:.3g} on the "
            f"{len(self.policies)} queries it was chosen on, for a budget of {self.budget:g}"
        )
        if self.disparity > self.budget:
            text += ", which this method cannot keep"
        if self.fresh_disparity is None:
            return text + "; unknown on fresh queries, give valid="
        verdict = "within" if self.fresh_disparity <= self.budget else "above"
        return f"{text}; {self.fresh_disparity:.3g} on fresh queries, {verdict} the budget"

    def policy(self, scores: Tensor, groups: Tensor | None = None) -> Policy:
        """The policy of one request.

        Args:
            scores: ``(n,)``, of the ranker that was made fair.
            groups: ``(n,)``; "temperature" and "mixture" do not look at them.

        Returns:
            A policy over the n documents.
        """
        _check.floating("policy", "scores", scores)
        if scores.ndim != 1:
            raise ValueError(
                f"policy: scores has shape {tuple(scores.shape)}; give those of one query, (n,)."
            )
        _check.finite("policy", "scores", scores)
        if self.way.needs_groups:
            if groups is None:
                raise ValueError(
                    f"policy: {self.method!r} needs the groups of the documents; give groups=."
                )
            _check.same_shape("policy", "groups", groups, "scores", scores.shape)
        return self.way.policy(scores.double(), groups)

    def on(self, scores: Scores, dataset: RankingDataset) -> list[Policy]:
        """The policies of other queries.

        Args:
            scores: As for `make_fair`, of the documents of ``dataset``.
            dataset: Queries; their relevance is not looked at.

        Returns:
            One policy for each query, for `evaluate`.
        """
        return _policies(self.way, _scores_of("on", scores, dataset), dataset)

    @overload
    def __getitem__(self, index: int) -> Policy: ...

    @overload
    def __getitem__(self, index: slice) -> list[Policy]: ...

    def __getitem__(self, index: int | slice) -> Policy | list[Policy]:
        return self.policies[index]

    def __len__(self) -> int:
        return len(self.policies)

    def __repr__(self) -> str:
        return f"FairLayer({self.message})"


def make_fair(
    scores: Scores,
    data: RankingDataset,
    method: str = "temperature",
    budget: float = 0.01,
    *,
    valid: RankingDataset | tuple[Tensor | np.ndarray, RankingDataset] | None = None,
    disparity: str | Disparity = "d_group",
    merit: str | Merit = "identity",
    position_bias: Tensor | None = None,
    calibrated: bool = False,
    progress: bool = True,
) -> FairLayer:
    """Put a layer behind a ranker that keeps a disparity budget at the highest NDCG it can.

    The budget is kept on ``data``, where the layer was chosen; on fresh queries the disparity may
    be higher or lower, and ``valid`` says what it is on some. For a promise about all queries take
    `certify` with a path of layers.

    Args:
        scores: ``(N,)``, the ranker's score of each document of ``data``, on any scale; or what
            makes scores of features: a scorer, or an estimator with ``predict``.
        data: Judged queries that the ranker was not trained on, if possible, with groups.
        method: One of "temperature", "mixture", "head" and "programme"; see above.
        budget: What the mean disparity is to be at most, zero or more.
        valid: Fresh queries. With scores ``(N,)`` a pair of their scores and the queries.
        disparity: A name in `fairpg_lite.measures.DISPARITIES`, or a function. The programme knows
            "d_group" only.
        merit: Of a relevance, by name or a function. The programme knows "identity" only.
        position_bias: Attention per position ``(n,)``; None is 1/log2(1+j). The programme knows
            the latter only.
        calibrated: Whether the scores are relevances already, on the scale of the judgements; only
            the programme asks. By default they are calibrated on ``data``, each group for itself.
        progress: Whether to show a progress bar on stderr.

    Returns:
        One policy for each query of ``data``, the numbers that were chosen, and the disparity on
        ``data`` and on fresh queries. ``message`` says if the budget is not kept.

    Raises:
        ValueError: If scores and data do not fit, or an argument makes no sense.

    >>> from fairpg_lite import synthetic
    >>> data, fresh = synthetic(100, seed=0), synthetic(400, seed=1)
    >>> def ranker(features):
    ...     return 5.0 * features.sum(-1)
    >>> fair = make_fair(ranker, data, budget=0.006, valid=fresh, progress=False)
    >>> fair.disparity <= 0.006
    True
    >>> fair[0].sample(k=3).shape
    torch.Size([3])
    """
    _check_choices(method, budget, disparity, merit, position_bias)
    measure = _measure_of(disparity)
    if "groups" in measure.needs and data.groups is None:
        raise ValueError(
            f"make_fair: {measure.name} compares groups, and data has none; "
            "data.replace(groups=...)."
        )
    if method in ("head", "programme") and data.groups is None:
        raise ValueError(
            f"make_fair: {method!r} treats groups apart, and data has none; data.replace("
            "groups=...), or choose 'temperature' or 'mixture'."
        )
    values = _scores_of("make_fair", scores, data)
    fresh_values, fresh_data = _fresh_queries(scores, valid)
    judge = _Judge(data, values, measure, merit, position_bias)
    if method == "temperature":
        way: Way = _best_temperature(judge, budget, progress)
    elif method == "mixture":
        way = _best_mixture(judge, budget, progress)
    elif method == "head":
        way = _trained_head(judge, budget, disparity, progress)
    else:
        way = _best_programme(judge, budget, calibrated, progress)
    chosen = judge(way)
    fresh = None
    fresh_disparity = None
    if fresh_data is not None and fresh_values is not None:
        fresh = _judged(way, fresh_values, fresh_data, measure, merit, position_bias)
        fresh_disparity = fresh.means[measure.name]
    return FairLayer(
        method=method,
        budget=budget,
        parameters=way.parameters(),
        utility=chosen.utility,
        disparity=chosen.disparity,
        fresh=fresh,
        fresh_disparity=fresh_disparity,
        way=way,
        policies=_policies(way, values, data),
    )


def calibrate(scores: Tensor, relevance: Tensor) -> "Calibration":
    """The isotonic regression of relevance on scores: the best guess that never falls.

    Needs ``pip install "fairpg-lite[experiments]"``.

    Args:
        scores: ``(N,)``, on any scale.
        relevance: ``(N,)``, of the same documents.

    Returns:
        A function of scores.

    >>> to_relevance = calibrate(torch.tensor([-2.0, -1.0, 0.0, 3.0]), torch.tensor([0, 1, 0, 2]))
    >>> to_relevance(torch.tensor([-9.0, -1.0, 0.0, 1.5, 9.0]))
    tensor([0.0000, 0.5000, 0.5000, 1.2500, 2.0000], dtype=torch.float64)
    """
    optimize = require("scipy.optimize", "experiments")
    levels, level_of = np.unique(scores.double().numpy(force=True), return_inverse=True)
    counts = np.bincount(level_of)
    means = np.bincount(level_of, weights=relevance.double().numpy(force=True)) / counts
    fitted = optimize.isotonic_regression(means, weights=counts.astype(np.float64)).x
    return Calibration(levels, fitted)


class Calibration(NamedTuple):
    """A rising function of scores, by values between which it is linear."""

    scores: np.ndarray
    """``(L,)``, rising."""
    relevance: np.ndarray
    """``(L,)``, not falling; beyond the ends it stays as it is."""

    def __call__(self, scores: Tensor) -> Tensor:
        """Estimated relevance ``(…)`` of scores ``(…)``, in double precision."""
        values = np.interp(scores.double().numpy(force=True), self.scores, self.relevance)
        return torch.as_tensor(values)


class Way(Protocol):
    """A layer with its numbers chosen."""

    @property
    def needs_groups(self) -> bool:
        """Whether policies need the groups of the documents."""
        ...

    def parameters(self) -> dict[str, float]:
        """The numbers by name."""
        ...

    def policy(self, scores: Tensor, groups: Tensor | None) -> Policy:
        """The policy of one query, of scores ``(n,)`` and groups ``(n,)``."""
        ...

    def scored(self, scores: Tensor, groups: Tensor | None) -> "tuple[Tensor, MakePolicy] | None":
        """Scores ``(N,)`` and what makes policies of them; None if there is no such way."""
        ...


@dataclass(frozen=True)
class _Temperature:
    """`PlackettLuce` of scores divided by a temperature."""

    temperature: float
    needs_groups: bool = False

    def parameters(self) -> dict[str, float]:
        return {"temperature": self.temperature}

    def policy(self, scores: Tensor, groups: Tensor | None) -> Policy:
        return PlackettLuce(scores / self.temperature)

    def scored(self, scores: Tensor, groups: Tensor | None) -> tuple[Tensor, MakePolicy]:
        return scores / self.temperature, PlackettLuce


@dataclass(frozen=True)
class _RandomLists:
    """The sorted list, or with a chance a random one."""

    chance: float
    needs_groups: bool = False

    def parameters(self) -> dict[str, float]:
        return {"chance of a random list": self.chance}

    def policy(self, scores: Tensor, groups: Tensor | None) -> Policy:
        return self._mixed(scores, None)

    def scored(self, scores: Tensor, groups: Tensor | None) -> tuple[Tensor, MakePolicy]:
        return scores, self._mixed

    def _mixed(self, scores: Tensor, mask: Tensor | None) -> Policy:
        sorted_list = FixedRanking(PlackettLuce(scores, mask).mode, mask, scores.dtype)
        random_list = PlackettLuce(torch.zeros_like(scores), mask)
        return Mixture([sorted_list, random_list], [1.0 - self.chance, self.chance])


@dataclass(frozen=True)
class _Head:
    """`PlackettLuce` of a weight on the score and a bonus for each group but the first."""

    weight: float
    bonuses: dict[int, float]
    needs_groups: bool = True

    def parameters(self) -> dict[str, float]:
        named = {f"bonus of group {label}": value for label, value in self.bonuses.items()}
        return {"weight of the score": self.weight, **named}

    def policy(self, scores: Tensor, groups: Tensor | None) -> Policy:
        return PlackettLuce(self.scored(scores, groups)[0])

    def scored(self, scores: Tensor, groups: Tensor | None) -> tuple[Tensor, MakePolicy]:
        if groups is None:
            raise ValueError("make_fair: 'head' needs groups, and these queries have none.")
        bonus = torch.zeros_like(scores)
        for label in groups.unique().tolist():
            _check_known("head", label, self.bonuses)
            bonus[groups == label] = self.bonuses[label]
        return self.weight * scores + bonus, PlackettLuce


@dataclass(frozen=True)
class _Programme:
    """The linear programme on estimated relevance, at a price of disparity."""

    lam: float
    calibrations: dict[int, Calibration] | None
    needs_groups: bool = True

    def parameters(self) -> dict[str, float]:
        return {"lam": self.lam}

    def policy(self, scores: Tensor, groups: Tensor | None) -> Policy:
        if groups is None:
            raise ValueError("make_fair: 'programme' needs groups, and these queries have none.")
        estimate = scores
        if self.calibrations is not None:
            estimate = torch.zeros_like(scores)
            for label in groups.unique().tolist():
                _check_known("programme", label, self.calibrations)
                is_member = groups == label
                estimate[is_member] = self.calibrations[label](scores[is_member])
        return DoublyStochastic(fair_ranking_lp(estimate, groups, self.lam))

    def scored(self, scores: Tensor, groups: Tensor | None) -> None:
        return None


class _Outcome(NamedTuple):
    """What a layer does on the queries that it is chosen on."""

    utility: float
    disparity: float


@dataclass(frozen=True)
class _Judge:
    """What judges layers, on the queries that they are chosen on."""

    data: RankingDataset
    scores: Tensor
    measure: Measure
    merit: str | Merit
    position_bias: Tensor | None

    def __call__(self, way: Way) -> _Outcome:
        judged = _judged(way, self.scores, self.data, self.measure, self.merit, self.position_bias)
        return _Outcome(judged.means["ndcg"], judged.means[self.measure.name])

    def spread(self) -> float:
        """The median over queries of the standard deviation of scores within a query."""
        deviations = [
            float(part.std(correction=0)) for part in self.scores.split(self.data.lengths.tolist())
        ]
        spread = float(np.median([one for one in deviations if one > 0] or [0.0]))
        if spread == 0.0:
            raise ValueError(
                "make_fair: in each query all scores are equal, which ranks nothing; give the "
                "scores of a ranker."
            )
        return spread


def _judged(
    way: Way,
    scores: Tensor,
    dataset: RankingDataset,
    measure: Measure,
    merit: str | Merit,
    position_bias: Tensor | None,
) -> Evaluation:
    """NDCG and the disparity of a layer on queries."""
    measures = ("ndcg", measure)
    scored = way.scored(scores, dataset.groups)
    if scored is None:
        policies = _policies(way, scores, dataset)
        return evaluate(policies, dataset, measures, merit=merit, position_bias=position_bias)
    layered, make_policy = scored
    return evaluate(
        layered, dataset, measures, merit=merit, position_bias=position_bias, policy=make_policy
    )


def _policies(way: Way, scores: Tensor, dataset: RankingDataset) -> list[Policy]:
    """One policy for each query of a dataset."""
    lengths = dataset.lengths.tolist()
    groups: Iterator[Tensor | None]
    if dataset.groups is None:
        groups = iter([None] * len(lengths))
    else:
        groups = iter(dataset.groups.split(lengths))
    parts = zip(scores.split(lengths), groups, strict=True)
    return [way.policy(query_scores, query_groups) for query_scores, query_groups in parts]


def _best_temperature(judge: _Judge, budget: float, progress: bool) -> Way:
    """The layer of the temperature, from 1/32 of the scores' spread to 64 times it."""
    spread = judge.spread()
    logs = [math.log(spread) + k / 2 * math.log(2) for k in range(12, -11, -1)]
    return _best(judge, lambda log: _Temperature(math.exp(log)), logs, budget, progress)


def _best_mixture(judge: _Judge, budget: float, progress: bool) -> Way:
    """The layer of the chance of a random list."""
    chances = [k / 20 for k in range(20, -1, -1)]
    return _best(judge, _RandomLists, chances, budget, progress)


def _best_programme(judge: _Judge, budget: float, calibrated: bool, progress: bool) -> Way:
    """The layer of the price in the programme."""
    assert judge.data.groups is not None
    calibrations = None
    if calibrated:
        if bool((judge.scores < 0).any()):
            raise ValueError(
                f"make_fair: calibrated=True, and a score is {float(judge.scores.min()):g}; a "
                "relevance is zero or more. Leave calibrated out, and scores are calibrated."
            )
    else:
        calibrations = {}
        for label in judge.data.groups.unique().tolist():
            is_member = judge.data.groups == label
            calibrations[label] = calibrate(
                judge.scores[is_member], judge.data.relevance[is_member]
            )
    # The logarithm of the price; a free programme sorts, which is tried last.
    logs = [k * math.log(2) for k in range(12, -5, -2)]
    best = _best(
        judge, lambda log: _Programme(math.exp(log), calibrations), logs, budget, progress, 3
    )
    free = _Programme(0.0, calibrations)
    return free if judge(free).disparity <= budget else best


def _trained_head(judge: _Judge, budget: float, disparity: str | Disparity, progress: bool) -> Way:
    """The layer of a weight and bonuses, trained to the budget."""
    assert judge.data.groups is not None
    labels = judge.data.groups.unique().tolist()
    spread = judge.spread()
    columns = [judge.scores / spread]
    columns += [(judge.data.groups == label).double() for label in labels[1:]]
    features = torch.stack(columns, dim=-1)
    dataset = judge.data.replace(
        features=features, relevance=judge.data.relevance.double(), document_ids=None
    )
    head = LinearScorer(features.shape[-1], init=0.0, dtype=torch.float64)
    with torch.no_grad():
        head.linear.weight[0, 0] = 1.0
    config = TrainConfig(
        method="exact",
        disparity=disparity,
        merit=judge.merit,
        position_bias=judge.position_bias,
        lr=0.1,
        lr_decay=0.95,
        epochs=40,
        batch_size=len(dataset),
    )
    fit_to_budget(head, dataset, budget, config, slack=0.05, progress=progress)
    weights = head.linear.weight.detach()[0].tolist()
    bonuses = dict(zip(labels, [0.0, *weights[1:]], strict=True))
    return _Head(weights[0] / spread, bonuses)


def _best(
    judge: _Judge,
    make: Callable[[float], Way],
    grid: Sequence[float],
    budget: float,
    progress: bool,
    refinements: int = _REFINEMENTS,
) -> Way:
    """The most useful layer within the budget on a grid from fair to sharp, refined once.

    If none is within the budget, the fairest.
    """
    with progress_bar("make_fair", len(grid) + refinements, "layer", progress) as bar:
        outcomes = []
        for number in grid:
            outcomes.append(judge(make(number)))
            bar.update(1)
        keeping = [place for place, found in enumerate(outcomes) if found.disparity <= budget]
        if not keeping:
            fairest = min(range(len(grid)), key=lambda place: outcomes[place].disparity)
            return make(grid[fairest])
        place = max(keeping, key=lambda kept: outcomes[kept].utility)
        best = grid[place]
        if place + 1 == len(grid) or place + 1 in keeping:
            return make(best)
        utility = outcomes[place].utility
        good = grid[place]
        bad = grid[place + 1]
        for _ in range(refinements):
            middle = (good + bad) / 2
            found = judge(make(middle))
            bar.update(1)
            if found.disparity > budget:
                bad = middle
                continue
            good = middle
            if found.utility > utility:
                best = middle
                utility = found.utility
    return make(best)


def _check_known(method: str, label: int, known: Mapping[int, object]) -> None:
    """Refuse a group that the layer was not chosen on."""
    if label not in known:
        raise ValueError(
            f"make_fair: there is a document of group {label}, and the {method} was made for the "
            f"groups {', '.join(str(one) for one in known)}."
        )


def _measure_of(disparity: str | Disparity) -> Measure:
    """The row of a disparity."""
    if callable(disparity):
        return of_disparity("disparity", "disparity", disparity)
    return MEASURES[disparity]


def _check_choices(
    method: str,
    budget: float,
    disparity: str | Disparity,
    merit: str | Merit,
    position_bias: Tensor | None,
) -> None:
    """Refuse choices that make no sense, alone or together."""
    if method not in METHODS:
        raise ValueError(f"make_fair: method is {method!r}; choose one of {', '.join(METHODS)}.")
    if not 0.0 <= budget < math.inf:
        raise ValueError(f"make_fair: budget is {budget}; a disparity budget cannot be negative.")
    if not callable(disparity) and disparity not in DISPARITIES:
        raise ValueError(
            f"make_fair: disparity is {disparity!r}; choose from {', '.join(DISPARITIES)}, or give "
            "a function."
        )
    if method != "programme":
        return
    if disparity != "d_group":
        raise ValueError(
            f"make_fair: the programme knows d_group only, and disparity is {disparity!r}; choose "
            "another method."
        )
    if merit != "identity":
        raise ValueError(
            f"make_fair: the programme takes relevance itself as merit, and merit is {merit!r}; "
            "choose another method."
        )
    if position_bias is not None:
        raise ValueError(
            "make_fair: the programme knows the position bias 1/log2(1+j) only; leave out "
            "position_bias, or choose another method."
        )


def _scores_of(where: str, scores: Scores, dataset: RankingDataset) -> Tensor:
    """Scores ``(N,)`` of all documents, in double precision."""
    if len(dataset) == 0:
        raise ValueError(f"{where}: there is no query.")
    if isinstance(scores, Tensor | np.ndarray):
        values = torch.as_tensor(scores).detach()
    elif callable(scores):
        values = _scores_of_scorer(scores, dataset)
    elif hasattr(scores, "predict"):
        values = torch.as_tensor(np.asarray(scores.predict(dataset.features.numpy(force=True))))
    else:
        raise TypeError(
            f"{where}: scores is {_check.kind_of(scores)}; give a tensor or an array, one score "
            "per document, a scorer, or an estimator with predict."
        )
    _check.same_shape(where, "scores", values, "relevance", dataset.relevance.shape)
    values = values.double()
    _check.finite(where, "scores", values)
    return values


def _scores_of_scorer(scorer: Scorer, dataset: RankingDataset) -> Tensor:
    """Scores ``(N,)`` of a function of features."""
    lengths = dataset.lengths.tolist()
    starts = dataset.offsets.tolist()
    values = torch.zeros(len(dataset.relevance), dtype=torch.float64)
    dtype = dataset.features.dtype
    if isinstance(scorer, torch.nn.Module):
        first = next(scorer.parameters(), None)
        dtype = dtype if first is None else first.dtype
    with eval_mode(scorer):
        for batch in dataset.batches(_BATCH_SIZE, dtype=dtype):
            padded = score(scorer, batch).double()
            for row, query in enumerate(batch.queries.tolist()):
                start = starts[query]
                values[start : start + lengths[query]] = padded[row, : lengths[query]]
    return values


def _fresh_queries(
    scores: Scores, valid: RankingDataset | tuple[Tensor | np.ndarray, RankingDataset] | None
) -> tuple[Tensor | None, RankingDataset | None]:
    """Scores ``(N,)`` of fresh queries, and the queries."""
    if valid is None:
        return None, None
    if isinstance(valid, tuple):
        if len(valid) != 2 or not isinstance(valid[1], RankingDataset):
            raise TypeError("make_fair: valid is a tuple; give a pair (scores, queries).")
        return _scores_of("make_fair: valid", valid[0], valid[1]), valid[1]
    if isinstance(scores, Tensor | np.ndarray):
        raise TypeError(
            "make_fair: scores are those of data alone, so the fresh queries need scores of their "
            "own; give valid=(scores, queries)."
        )
    return _scores_of("make_fair: valid", scores, valid), valid
