"""One epoch of updates: optimiser state and random numbers in, weights and terms out."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fairpg_lite.compiled.kernels import arguments
from fairpg_lite.compiled.kernels.arguments import Floats, Ints, Model, Plan
from fairpg_lite.compiled.problem import problem_of, times_of
from fairpg_lite.data import RankingDataset
from fairpg_lite.objective import Objective
from fairpg_lite.scorers import MLPScorer

#: An update of fewer numbers than this (documents times features) is not worth a second thread:
#: threads wait for each other, and on a busy machine for twenty times as long as the work takes.
SHARED = 4_000_000

# Queries per compiled call: Ctrl-C is heard in between, and only their noise is in memory.
_QUERIES_PER_CALL = 500


class Seen(NamedTuple):
    """What an epoch of B updates on Q queries saw."""

    terms: Floats
    """Utility, disparity and entropy of each query ``(Q, 3)``, in the order of the epoch."""
    norms: Floats
    """Norm of the gradient in each update ``(B,)``."""
    bad: list[int]
    """The queries at which something was not finite, where the epoch broke off; else empty."""


class Epoch:
    """Epochs of updates of a scorer on a data set.

    Args:
        scorer: A LinearScorer or MLPScorer, changed in place.
        dataset: The training queries.
        objective: What is maximised.
        optimizer: Adam or SGD over the scorer's parameters; its state is read and changed.
        batch_size: Queries per update, which decides whether threads share one.
    """

    def __init__(
        self,
        scorer: nn.Module,
        dataset: RankingDataset,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        *,
        batch_size: int,
    ):
        self.optimizer = optimizer
        # A bias of the scores themselves is left alone: no policy notices it.
        if isinstance(scorer, MLPScorer):
            self.hidden = scorer.hidden.out_features
            self.parameters: list[Tensor] = [*scorer.hidden.parameters(), scorer.output.weight]
        else:
            self.hidden = 0
            self.parameters = [next(scorer.parameters())]
        self.features = dataset.features.numpy()
        self.lengths = dataset.lengths.numpy()
        dtype = self.parameters[0].dtype
        self.problem = problem_of(dataset, objective, dtype)
        self.times = times_of(self.lengths, objective, dtype)
        self.is_large = batch_size * self.features.size >= SHARED * len(dataset)

    @torch.no_grad()
    def run(
        self, queries: Tensor, sizes: list[int], generator: torch.Generator, gamma: float, lr: float
    ) -> Seen:
        """One epoch of updates, after which scorer and optimiser have moved on.

        Args:
            queries: The queries in the order of the epoch, ``(Q,)``.
            sizes: The number of queries in each batch.
            generator: Where the noise comes from: what `PlackettLuce.sample` would draw for the
                padded batches.
            gamma: Weight of the entropy.
            lr: Learning rate.

        Returns:
            Terms and norms. Where a number is not finite the epoch ends before that update, and
            ``bad`` names the queries.
        """
        # Not at the top: these import Numba.
        from fairpg_lite.compiled.kernels.batches import DONE, run_batches
        from fairpg_lite.compiled.threads import run_batches_on

        tensors = [self.parameters, *self._moments()]
        vectors = [parameters_to_vector(members) for members in tensors]
        theta = vectors[0].numpy()
        steps_taken = self._steps_taken()
        model = Model(self.features, self.problem, self.times, self.hidden, theta)
        optimizer = self._optimizer_arguments(lr, [vector.numpy() for vector in vectors[1:]])
        order = queries.numpy()
        schedule = _Schedule(order, sizes, self.lengths)
        seen = Seen(np.full((len(order), 3), np.nan), np.full(len(sizes), np.nan), [])
        pool = ThreadPoolExecutor(torch.get_num_threads())  # starts threads when it gets work
        loop = run_batches_on(pool) if self.is_large else run_batches
        try:
            for batches in schedule.calls():
                plan = schedule.plan(batches)
                noise = _noise(schedule.documents(batches) * self.problem.samples, generator)
                query_slice = schedule.queries(batches)
                failed = loop(
                    model, float(gamma), optimizer, plan, noise, steps_taken,
                    seen.terms[query_slice], seen.norms[batches],
                )  # fmt: skip
                if failed != DONE:
                    batch = batches.start + failed
                    bad = _not_finite(order, seen.terms, schedule.queries(slice(batch, batch + 1)))
                    return seen._replace(bad=bad)
                steps_taken += len(plan.ends)
        finally:
            # Also where Ctrl-C comes in between: weights and moments of the finished calls.
            pool.shutdown()
            for members, vector in zip(tensors, vectors, strict=True):
                vector_to_parameters(vector, members)
            self._count_steps(steps_taken)
        return seen

    @property
    def _is_adam(self) -> bool:
        return isinstance(self.optimizer, torch.optim.Adam)

    def _moments(self) -> list[list[Tensor]]:
        """Adam's first and second moments of the parameters, zeros before the first step."""
        if not self._is_adam:
            return []
        state = self.optimizer.state
        for parameter in self.parameters:
            if not state[parameter]:
                state[parameter] = {
                    "step": torch.tensor(0.0),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        first = [state[parameter]["exp_avg"] for parameter in self.parameters]
        second = [state[parameter]["exp_avg_sq"] for parameter in self.parameters]
        return [first, second]

    def _steps_taken(self) -> int:
        """How many steps Adam has taken; plain descent does not count them."""
        if not self._is_adam:
            return 0
        return int(self.optimizer.state[self.parameters[0]]["step"])

    def _count_steps(self, steps_taken: int) -> None:
        """Tell Adam how many steps it has taken."""
        if self._is_adam:
            for parameter in self.parameters:
                self.optimizer.state[parameter]["step"].fill_(steps_taken)

    def _optimizer_arguments(
        self, lr: float, moments: list[NDArray[np.floating]]
    ) -> arguments.Optimizer:
        """The optimiser as kernels take it; plain descent has no moments."""
        group = self.optimizer.param_groups[0]
        weight_decay = float(group["weight_decay"])
        if not self._is_adam:
            none = np.empty(0, self.parameters[0].detach().numpy().dtype)
            return arguments.Optimizer(lr, weight_decay, 0.0, 0.0, 0.0, none, none)
        beta1, beta2 = group["betas"]
        return arguments.Optimizer(lr, weight_decay, beta1, beta2, group["eps"], *moments)


class _Schedule:
    """The batches of an epoch, divided into compiled calls of a few batches each.

    Args:
        order: The queries in the order of the epoch, ``(Q,)``.
        sizes: The number of queries in each of the B batches.
        lengths: The number of documents of every query of the data set.
    """

    def __init__(self, order: Ints, sizes: list[int], lengths: Ints):
        self.order = order
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - np.asarray(sizes)
        ordered_lengths = lengths[order]
        self.longest = np.maximum.reduceat(ordered_lengths, self.starts)
        documents_before = np.cumsum(ordered_lengths) - ordered_lengths
        self.row_starts = documents_before - np.repeat(documents_before[self.starts], sizes)
        self.padded_documents = np.asarray(sizes) * self.longest
        self.batches_per_call = max(1, _QUERIES_PER_CALL // sizes[0])

    def calls(self) -> list[slice]:
        """The batches of each call."""
        count = len(self.ends)
        return [
            slice(first, min(first + self.batches_per_call, count))
            for first in range(0, count, self.batches_per_call)
        ]

    def queries(self, batches: slice) -> slice:
        """Where the queries of some batches stand in the order."""
        return slice(self.starts[batches.start], self.ends[batches.stop - 1])

    def documents(self, batches: slice) -> int:
        """The number of documents of some batches, padding included."""
        return int(self.padded_documents[batches].sum())

    def plan(self, batches: slice) -> Plan:
        """Some batches as kernels take them."""
        queries = self.queries(batches)
        return Plan(
            queries=self.order[queries],
            ends=self.ends[batches] - queries.start,
            row_starts=self.row_starts[queries],
            longest=self.longest[batches],
        )


def _noise(count: int, generator: torch.Generator) -> Floats:
    """Gumbel noise ``(count,)`` with its sign reversed, as `PlackettLuce.sample` draws it."""
    noise = torch.empty(count, dtype=torch.float64)
    noise.uniform_(generator=generator).clamp_(min=1e-300)
    return noise.log_().neg_().log_().numpy()


def _not_finite(order: Ints, terms: Floats, batch: slice) -> list[int]:
    """The queries of a batch whose terms are not finite; all of them if it is the gradient."""
    queries = order[batch]
    is_bad = ~np.isfinite(terms[batch]).all(1)
    if is_bad.any():
        queries = queries[is_bad]
    return [int(q) for q in queries]
