"""The accelerator: whole epochs of Algorithm 1 compiled with Numba (chapter 15).

`fairpg_lite.objective`, with autograd, says what every number means; here the same numbers come
from loops over ragged queries, on the same random draws, a hundred times as fast where an update
is one query. ``TrainConfig(compiled=...)`` is the only way in.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from fairpg_lite import exposure, metrics
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import merit_of
from fairpg_lite.nodes import discount_nodes, reachable, times
from fairpg_lite.objective import NdcgWeights
from fairpg_lite.scorers import LinearScorer, MLPScorer

#: Below so many visits of a query "auto" leaves a run to autograd: compiling takes longer.
WORTHWHILE = 20_000
_BASELINES = {None: 0, "mean": 1, "loo": 2}
_DISPARITIES = {None: 0, "individual": 1, "group": 2, "gap": 3}
_FORMATS = (torch.float32, torch.float64)
# Random numbers drawn, and queries walked through, in one go: few calls, and Ctrl-C is heard.
_DRAWS, _QUERIES = 400_000, 1000


def why_not(scorer: nn.Module, dataset: RankingDataset, config: TrainConfig) -> str | None:
    """Why these settings need autograd, in the words of an error; None if they do not."""
    plain = type(scorer) in (LinearScorer, MLPScorer) and all(
        type(layer) is nn.Linear and not layer._forward_hooks and not layer._forward_pre_hooks
        for layer in scorer.children()
    )
    if not plain or scorer._forward_hooks or scorer._forward_pre_hooks:
        return f"{type(scorer).__name__} is neither a LinearScorer nor an MLPScorer as it comes"
    weights, features = list(scorer.parameters()), dataset.features
    if not all(p.requires_grad for p in weights):
        return "some of the scorer's parameters are frozen"
    if (config.dtype or weights[0].dtype) not in _FORMATS:
        return "the scorer is neither float32 nor float64"
    if features.dtype not in _FORMATS or not features.is_contiguous():
        return "the features are not one contiguous float32 or float64 array"
    if config.utility not in ("ndcg", "dcg"):
        return f"utility is {config.utility!r}"
    if config.disparity not in _DISPARITIES:
        return f"disparity is {config.disparity!r}"
    if config.device != "cpu":
        return f"device is {config.device!r}"
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "several processes train together"
    try:
        import fairpg_lite.compiled_epoch  # noqa: F401
    except ImportError as error:
        return f'Numba cannot be imported ({error}; pip install "fairpg-lite[fast]" brings it)'
    return None


def serves(scorer: nn.Module, dataset: RankingDataset, config: TrainConfig) -> bool:
    """Whether to take the compiled way, as ``config.compiled`` says; where it must not, an error.

    "auto" takes it, where it can serve, for runs of `WORTHWHILE` visits of a query and more.
    """
    if config.compiled == "auto":
        long = len(dataset) * config.epochs >= WORTHWHILE
        return long and why_not(scorer, dataset, config) is None
    if config.compiled and (reason := why_not(scorer, dataset, config)) is not None:
        raise ValueError(
            f"fit: compiled=True, but {reason}; choose compiled='auto' or False for autograd."
        )
    return bool(config.compiled)


class Seen(NamedTuple):
    """What an epoch saw: ``terms (Q, 3)``, utility, disparity, entropy; ``norms``, one per update.

    ``bad``: the queries at which something stopped being finite, where the epoch broke off.
    """

    terms: np.ndarray
    norms: np.ndarray
    bad: list[int]


class Epoch:
    """Epochs of updates of ``scorer`` by ``optimizer``, Adam or SGD, on a data set."""

    def __init__(
        self,
        scorer: nn.Module,
        dataset: RankingDataset,
        config: TrainConfig,
        optimizer: torch.optim.Optimizer,
    ):
        from fairpg_lite import compiled_epoch, compiled_gradient

        self.optimizer, self._loops = optimizer, compiled_epoch
        if isinstance(scorer, MLPScorer):
            self.hidden = scorer.hidden.out_features
            self.parameters = [*scorer.hidden.parameters(), scorer.output.weight]
        else:
            self.hidden, self.parameters = 0, [next(scorer.parameters())]
        self.features, self.lengths = dataset.features.numpy(), dataset.lengths.numpy()
        dtype = self.parameters[0].dtype
        self.problem = compiled_gradient.Problem(*_problem(dataset, config, dtype))
        self.times = compiled_gradient.Times(*_times(self.lengths, config, dtype))

    def run(
        self,
        batches: Tensor | Sequence[Tensor],
        generator: torch.Generator,
        gamma: float,
        lr: float,
    ) -> Seen:
        """One epoch: an update for each of ``batches``, which name queries, or for each query.

        Draws from ``generator`` what `PlackettLuce.sample` would draw for the padded batches.
        """
        sizes = [1] * len(batches) if isinstance(batches, Tensor) else [len(b) for b in batches]
        order = (batches if isinstance(batches, Tensor) else torch.cat(list(batches))).numpy()
        ends = np.cumsum(sizes)
        terms, norms = np.full((len(order), 3), np.nan), np.full(len(ends), np.nan)
        state, settings, step = self._state()
        vectors = [_vector(tensors, self.parameters[0].dtype) for tensors in state]
        theta, *moments = (vector.numpy() for vector in vectors)
        opt = self._loops.Optimizer(float(lr), *settings, *moments)
        try:
            for some, queries, longest, room, noise in self._pieces(order, ends, generator):
                failed = self._loops.epoch(
                    self.features, self.problem, float(gamma), self.times, self.hidden, opt, theta,
                    order[queries], ends[some] - queries.start, longest, room, noise, step,
                    terms[queries], norms[some],
                )  # fmt: skip
                if failed >= 0:
                    last = ends[some.start + failed]
                    rows = slice(last - sizes[some.start + failed], last)
                    bad = order[rows][~np.isfinite(terms[rows]).all(1)]
                    return Seen(terms, norms, (bad if len(bad) else order[rows]).tolist())
                step += some.stop - some.start
        finally:
            for tensors, vector in zip(state, vectors, strict=True):
                vector_to_parameters(vector, tensors)
            for p in self.parameters if state[1] else ():
                self.optimizer.state[p]["step"].fill_(step)
        return Seen(terms, norms, [])

    def _pieces(
        self, order: np.ndarray, ends: np.ndarray, generator: torch.Generator
    ) -> Iterator[tuple[slice, slice, np.ndarray, int, np.ndarray]]:
        """By and by: batches, their queries, what the loops must know of them, and their noise."""
        begins = np.concatenate([[0], ends[:-1]])
        longest = np.maximum.reduceat(self.lengths[order], begins)
        room = int(np.add.reduceat(self.lengths[order], begins).max())
        draws = self.problem.samples * np.cumsum((ends - begins) * longest)
        start = 0
        while start < len(ends):
            drawn = draws[start - 1] if start else 0
            stop = np.searchsorted(draws, drawn + _DRAWS, "right")
            stop = min(stop, np.searchsorted(ends, begins[start] + _QUERIES, "right"))
            stop = max(int(stop), start + 1)
            noise = torch.empty(int(draws[stop - 1] - drawn), dtype=torch.float64)
            noise.uniform_(generator=generator).clamp_(min=1e-300).log_().neg_().log_()
            queries = slice(int(begins[start]), int(ends[stop - 1]))
            yield slice(start, stop), queries, longest[start:stop], room, noise.numpy()
            start = stop

    def _state(self) -> tuple[list[list[Tensor]], tuple[float, ...], int]:
        """Parameters and moments; the optimiser's settings; and how many steps it has taken."""
        group, state = self.optimizer.param_groups[0], self.optimizer.state
        if not isinstance(self.optimizer, torch.optim.Adam):
            return [self.parameters, [], []], (group["weight_decay"], 0.0, 0.0, 0.0), 0
        for p in self.parameters:
            if not state[p]:
                state[p] = {"step": torch.tensor(0.0)}
                state[p] |= {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
        moments = [[state[p][name] for p in self.parameters] for name in ("exp_avg", "exp_avg_sq")]
        settings = (group["weight_decay"], *group["betas"], group["eps"])
        return [self.parameters, *moments], settings, int(state[self.parameters[0]]["step"])


def _vector(tensors: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """All in one, copied."""
    return torch.cat([torch.empty(0, dtype=dtype), *(t.detach().flatten() for t in tensors)])


def _problem(dataset: RankingDataset, config: TrainConfig, dtype: torch.dtype) -> tuple[Any, ...]:
    """The fields of `Problem`, worked out by the definition's own functions."""
    # Query by query, as a function of one's own may look at the others of its query.
    relevance = dataset.relevance.to(dtype).split(dataset.lengths.tolist())
    merit = torch.cat([merit_of(grades, config.merit) for grades in relevance])
    constant = torch.zeros(len(dataset))
    if config.utility == "ndcg":
        weights = NdcgWeights(dataset.relevance, dataset.offsets, config, dtype)
        weight, constant = weights.weight[: dataset.n_documents], weights.constant
    else:
        gain = config.gain if callable(config.gain) else metrics.GAINS[config.gain]
        weight = torch.cat([gain(grades) for grades in relevance])
    groups, kind = torch.zeros_like(merit, dtype=torch.int64), _DISPARITIES[config.disparity]  # type: ignore[index]
    if dataset.groups is not None:
        groups = torch.unique(dataset.groups, return_inverse=True)[1]
    elif kind > 1:
        kind = 0  # as in `batch_disparity`
    bias = exposure.position_bias(int(dataset.lengths.max()), dtype=torch.float64)
    if config.position_bias is not None:
        bias = config.position_bias.double()
    by_document = (weight.double(), constant.double(), merit.double(), groups)
    arrays = [values.numpy() for values in (dataset.offsets, *by_document)]
    samples = config.samples if config.method == "sample" else 0
    rest = (float(config.lam), samples, _BASELINES[config.baseline], kind, float(config.undefined))
    return *arrays, int(groups.max()) + 1, bias.numpy(), *rest


def _times(lengths: np.ndarray, config: TrainConfig, dtype: torch.dtype) -> tuple[Any, ...]:
    """The fields of `Times` for all lengths that occur."""
    longest = int(lengths.max())
    tolerance = reachable(config.tolerance, dtype)
    step, widest = np.ones(longest + 1), np.ones(longest + 1)
    count = np.zeros(longest + 2, np.int64)
    z, a, first = [np.empty(0)], [np.empty(0)], 0.0
    for n in np.unique(lengths).tolist() if config.method == "exact" else []:
        bias = None if config.position_bias is None else config.position_bias[:n]
        nodes, coefficients = discount_nodes(n, bias, tolerance, torch.float64)
        # A light document makes a long grid: its last weight is the step, its first tells where
        # it begins.
        weight = times(torch.full((n,), -60.0).double(), nodes, tolerance)[1]
        step[n], first = float(weight[-1]), -math.log(float(weight[0] / weight[-1]) - 1.0)
        widest[n] = 3.0 - math.log(tolerance) + 2.0 * math.log(n)
        count[n + 1] = len(nodes)
        z.append(nodes.numpy())
        a.append(coefficients.numpy())
    log_reach = math.log(-math.log(tolerance))
    return np.concatenate(z), np.concatenate(a), np.cumsum(count), step, widest, first, log_reach
