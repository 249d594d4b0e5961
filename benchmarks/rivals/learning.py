"""Training with any way to a gradient, in one compiled loop: one query at a time, with Adam.

Features to scores, back to the weights, and the step of the optimiser are the package's kernels;
only the gradient by the scores differs from way to way.
"""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils import parameters_to_vector

from benchmarks.rivals.estimates import codes, exact_exposure, exact_gradient, sampled_gradient
from benchmarks.rivals.ways import Way
from fairpg_lite import LinearScorer, MLPScorer, RankingDataset
from fairpg_lite.compiled.kernels.adam import update
from fairpg_lite.compiled.kernels.arguments import Optimizer
from fairpg_lite.compiled.kernels.network import backward, forward
from fairpg_lite.compiled.kernels.objective import objective
from fairpg_lite.compiled.problem import problem_of, times_of
from fairpg_lite.objective import Objective


class Queries(NamedTuple):
    """Queries and what is maximised on them, as kernels take them."""

    features: NDArray[np.floating]
    problem: Any
    times: Any


def queries_of(data: RankingDataset, wanted: Objective) -> Queries:
    """A data set and an objective, whose method must be "exact"."""
    dtype = data.features.dtype
    problem = problem_of(data, wanted, dtype)
    return Queries(data.features.numpy(), problem, times_of(data.lengths.numpy(), wanted, dtype))


@njit(error_model="numpy")
def train(features, problem, times, order, waits, samples, way, hidden, theta, optimizer, steps):
    """An update for each query of ``order``; ``samples`` of 0 is the exact gradient.

    ``waits`` are Exp(1) for all documents of all lists, ``steps`` the updates before this call.
    """
    grad = np.zeros_like(theta)
    used = 0
    for i in range(len(order)):
        q = order[i]
        rows = slice(problem.offsets[q], problem.offsets[q + 1])
        n = rows.stop - rows.start
        layer = np.empty((n, max(hidden, 1)), theta.dtype)
        scores = np.empty(n)
        forward(features[rows], theta, hidden, layer, scores)
        if samples > 0:
            drawn = waits[used : used + samples * n].reshape((samples, n))
            used += samples * n
            slope = sampled_gradient(scores, drawn, way, problem, times, q)
        else:
            slope = exact_gradient(scores, problem, times, q)
        grad[:] = 0
        backward(features[rows], theta, hidden, layer, -slope, grad)
        update(theta, grad, optimizer, steps + i + 1)


@njit(error_model="numpy")
def judge(features, problem, times, hidden, theta):
    """Mean utility and disparity over all queries, by exact exposure."""
    queries = len(problem.offsets) - 1
    utility = 0.0
    disparity = 0.0
    for q in range(queries):
        rows = slice(problem.offsets[q], problem.offsets[q + 1])
        n = rows.stop - rows.start
        layer = np.empty((n, max(hidden, 1)), theta.dtype)
        scores = np.empty(n)
        forward(features[rows], theta, hidden, layer, scores)
        u, d, _ = objective(exact_exposure(scores, times), problem, q)
        utility += u
        disparity += d
    return utility / queries, disparity / queries


@dataclass
class Learner:
    """A scorer that learns from queries by one way.

    Args:
        train: The queries it learns from.
        way: How it gets a gradient from drawn lists; None is exactly.
        samples: Lists per query; 0 goes with None.
        hidden: Units of the hidden layer; 0 is a linear scorer.
        seed: Decides where the weights start, and the order of queries, and the lists.
    """

    train: Queries
    way: Way | None
    samples: int
    hidden: int
    seed: int

    def __post_init__(self) -> None:
        n_features = self.train.features.shape[1]
        start = torch.Generator().manual_seed(self.seed)
        dtype = torch.from_numpy(self.train.features[:0]).dtype
        scorer: nn.Module
        if self.hidden:
            scorer = MLPScorer(n_features, self.hidden, generator=start, dtype=dtype)
            parameters = [*scorer.hidden.parameters(), scorer.output.weight]
        else:
            scorer = LinearScorer(n_features, generator=start, dtype=dtype)
            parameters = [scorer.linear.weight]
        self.theta = parameters_to_vector(parameters).detach().numpy().copy()
        self.moments = (np.zeros_like(self.theta), np.zeros_like(self.theta))
        self.rng = np.random.default_rng(self.seed)
        self.steps = 0
        self.seconds = 0.0
        self.order: list[int] = []

    def learn(self, updates: int, lr: float) -> None:
        """Take so many steps more; ``seconds`` counts the processor time of all steps."""
        problem = self.train.problem
        while len(self.order) < updates:
            self.order += self.rng.permutation(len(problem.offsets) - 1).tolist()
        order = np.array(self.order[:updates], np.int64)
        self.order = self.order[updates:]
        lengths = np.diff(problem.offsets)
        way = codes(self.way, problem.position_bias) if self.way else (0, 0, 0, False, False, False)
        optimizer = Optimizer(lr, 0.0, 0.9, 0.999, 1e-8, *self.moments)
        start = time.process_time()
        waits = self.rng.standard_exponential(self.samples * int(lengths[order].sum()))
        train(
            *self.train, order, waits, self.samples, way,
            self.hidden, self.theta, optimizer, self.steps,
        )  # fmt: skip
        self.seconds += time.process_time() - start
        self.steps += updates

    def judged(self, queries: Queries) -> tuple[float, float]:
        """Mean utility and disparity on some queries, exactly."""
        return judge(*queries, self.hidden, self.theta)
