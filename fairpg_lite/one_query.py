r"""Algorithm 1 on one query at a time: the paper's own setting, without a graph (chapter 7).

With one query per update a tensor holds a few hundred numbers, and calling PyTorch a hundred times
costs more than the arithmetic. Here the gradient with respect to the scores is the one that
chapters 6 and 7 derive by hand, in two dozen NumPy calls; the scorer keeps its own backward pass.
`fairpg_lite.objective` says the same with autograd, for batches, any metric and any device, and is
the definition: the tests hold the two together, on the same draws, to rounding.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray

from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import merit_of
from fairpg_lite.exposure import position_bias
from fairpg_lite.objective import NdcgWeights

Array = NDArray[np.float64]

# Queries whose noise is drawn in one call: the stream of numbers is the same, the calls are fewer.
_AHEAD = 64
# Scores spread wider than this go through logarithms: exp() of the lowest would vanish.
_WIDE = 500.0


class Step(NamedTuple):
    """The gradient of the objective by the scores ``(n,)``, and what the history records."""

    gradient: Array
    utility: float
    disparity: float
    entropy: float


class OneQuery:
    """The estimator of U - lam * D + gamma * H for single queries of a dataset."""

    def __init__(self, dataset: RankingDataset, config: TrainConfig, weights: NdcgWeights):
        self.config, self.bounds = config, dataset.offsets.tolist()
        longest = int(dataset.lengths.max())
        bias = config.position_bias
        bias = position_bias(longest, dtype=torch.float64) if bias is None else bias
        self.bias: Array = bias.double().numpy()
        self.weight: Array = weights.weight.double().numpy()
        self.constant: list[float] = weights.constant.tolist()
        self.merit: Array = merit_of(dataset.relevance.double(), config.merit).numpy()
        self.groups = None if dataset.groups is None else _labels(dataset.groups)
        self.rows = {n: np.tile(self.bias[:n], (config.samples, 1)) for n in range(1, longest + 1)}

    @staticmethod
    def covers(config: TrainConfig) -> bool:
        """Whether these settings are the paper's: NDCG, sampled, one query per update, on a CPU."""
        paper = (config.method, config.batch_size, config.utility) == ("sample", 1, "ndcg")
        return (
            paper and config.device == "cpu" and config.disparity in ("group", "individual", None)
        )

    def noise(self, order: list[int], generator: torch.Generator) -> Iterator[Array]:
        """Reversed Gumbel noise ``(S, n)`` for each query in turn, as `PlackettLuce` draws it."""
        samples = self.config.samples
        for start in range(0, len(order), _AHEAD):
            sizes = [self.bounds[q + 1] - self.bounds[q] for q in order[start : start + _AHEAD]]
            keys = torch.empty(samples * sum(sizes), dtype=torch.float64)
            keys.uniform_(generator=generator).clamp_(min=1e-300).log_().neg_().log_()
            values, end = keys.numpy(), 0
            for n in sizes:
                begin, end = end, end + samples * n
                yield values[begin:end].reshape(samples, n)

    def step(self, query: int, scores: Array, noise: Array, gamma: float) -> Step:
        """Line by line: draw S rankings, see what they pay, weigh grad log pi by what they earn."""
        start, end = self.bounds[query], self.bounds[query + 1]
        n = end - start
        rankings = (noise - scores).argsort(1)
        exposure = _to_documents(rankings, self.rows[n]) / len(rankings)
        weight = self.weight[start:end]
        disparity, slope = self._disparity(start, end, exposure)
        value = weight - self.config.lam * slope if self.config.lam > 0 else weight
        reward = value.take(rankings) @ self.bias[:n]
        gradient = self._score_function(scores, rankings, reward)
        entropy, entropy_slope = _softmax_entropy(scores)
        if gamma > 0:
            gradient += gamma * entropy_slope
        utility = float(weight @ exposure) + self.constant[query]
        return Step(gradient, utility, disparity, entropy)

    def _score_function(self, scores: Array, rankings: NDArray[np.int64], reward: Array) -> Array:
        """mean over s of (reward_s - b) grad log pi(r_s), equation (6) of the paper."""
        samples = len(reward)
        if self.config.baseline is not None:
            reward = reward - reward.sum() / samples
        if self.config.baseline == "loo":
            reward = reward * (samples / (samples - 1))
        shifted = scores - scores.max()
        wide = shifted.min() < -_WIDE
        picked = _picked_wide(shifted, rankings) if wide else _picked(shifted, rankings)
        picked *= reward[:, None]
        return (reward.sum() - _to_documents(rankings, picked)) / samples

    def _disparity(self, start: int, end: int, exposure: Array) -> tuple[float, Array]:
        """The disparity of one query and its slope in exposure ``(n,)``."""
        kind, merit = self.config.disparity, self.merit[start:end]
        if kind == "individual":
            return individual_slope(exposure, merit)
        if kind == "group" and self.groups is not None:
            return group_slope(exposure, merit, self.groups[start:end], self.config.undefined)
        return 0.0, np.zeros_like(exposure)


def individual_slope(exposure: Array, merit: Array) -> tuple[float, Array]:
    """D_ind of one query and its derivative by exposure ``(n,)``, indicator and all (chapter 7)."""
    bar = np.where(merit > 0, merit, math.inf)
    pairs = merit[:, None] >= bar
    value, slope = _hinge(exposure / bar, pairs, max(int(np.count_nonzero(pairs)), 1))
    return value, slope / bar


def group_slope(
    exposure: Array, merit: Array, groups: NDArray[np.int64], undefined: float = 0.0
) -> tuple[float, Array]:
    """D_group of one query and its derivative by exposure ``(n,)`` (chapter 7)."""
    total = np.bincount(groups, merit)
    present = total > 0
    count = int(np.count_nonzero(present))
    if count < 2:
        return undefined, np.zeros_like(exposure)
    bar = np.where(present, total, math.inf)
    mean = total / np.maximum(np.bincount(groups), 1)
    pairs = (mean[:, None] >= mean) & present[:, None] & present
    value, slope = _hinge(np.bincount(groups, exposure) / bar, pairs, count * (count - 1) / 2)
    return value, (slope / bar)[groups]


def _hinge(ratio: Array, pairs: NDArray[np.bool_], count: float) -> tuple[float, Array]:
    """Sum over pairs of max(0, ratio_i - ratio_j) by count, and its slope in the ratios."""
    excess = ratio[:, None] - ratio
    active = pairs & (excess > 0)
    value = float(excess.ravel() @ active.ravel()) / count
    ahead = active.astype(np.float64)
    return value, (ahead.sum(1) - ahead.sum(0)) / count


def _to_documents(rankings: NDArray[np.int64], by_position: Array) -> Array:
    """Sum over the rankings of a value at each position ``(S, n)``, by document ``(n,)``."""
    total = np.bincount(rankings.ravel(), by_position.ravel(), minlength=rankings.shape[1])
    return cast(Array, total)


def _picked(shifted: Array, rankings: NDArray[np.int64]) -> Array:
    """Chance of being picked, added up over the draws a document was in ``(S, n)``."""
    weight = np.exp(shifted).take(rankings)
    remaining = weight[:, ::-1].cumsum(1)[:, ::-1]
    return weight * np.reciprocal(remaining).cumsum(1)


def _picked_wide(shifted: Array, rankings: NDArray[np.int64]) -> Array:
    """The same in logarithms, for scores that differ by hundreds."""
    placed = shifted.take(rankings)
    remaining = np.logaddexp.accumulate(placed[:, ::-1], 1)[:, ::-1]
    return np.exp(placed + np.logaddexp.accumulate(-remaining, 1))


def _softmax_entropy(scores: Array) -> tuple[float, Array]:
    """Entropy of Softmax(scores) and its slope, -p (log p + H)."""
    log_p = scores - scores.max()
    log_p -= math.log(np.exp(log_p).sum())
    p = np.exp(log_p)
    entropy = -float(p @ log_p)
    return entropy, -p * (log_p + entropy)


def _labels(groups: torch.Tensor) -> NDArray[np.int64]:
    return torch.unique(groups, return_inverse=True)[1].numpy()
