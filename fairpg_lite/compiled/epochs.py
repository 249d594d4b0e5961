"""The accelerator: whole epochs of Algorithm 1 compiled with Numba (chapter 15).

`fairpg_lite.objective`, with autograd, says what every number means; here the same numbers come
from loops over ragged queries, on the same random draws, a hundred times as fast where an update
is one query. ``TrainConfig(compiled=...)`` is the only way in.
"""

import math
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.optim import Optimizer

from fairpg_lite import exposure
from fairpg_lite.data import RankingDataset
from fairpg_lite.nodes import discount_nodes, reachable, times
from fairpg_lite.objective import ideals
from fairpg_lite.relevance import GAINS, merit_of
from fairpg_lite.scorers import LinearScorer, MLPScorer
from fairpg_lite.training.config import TrainConfig

#: Below so many visits of a query "auto" leaves a run to autograd: compiling takes longer.
WORTHWHILE = 20_000
# Queries walked through in one call: Ctrl-C is heard in between, and only their noise is kept.
_AT_ONCE = 500
_BASELINES = {None: 0, "mean": 1, "loo": 2}
_DISPARITIES = {None: 0, "d_ind": 1, "d_group": 2, "group_gap": 3}
# An update of fewer numbers than this (documents times features) is not worth a second thread:
# threads wait for each other, and on a busy machine for twenty times as long as the work takes.
SHARED = 4_000_000
_FORMATS = (torch.float32, torch.float64)


def why_not(scorer: nn.Module, dataset: RankingDataset, config: TrainConfig) -> str | None:
    """Why these settings need autograd, in the words of an error; None if they do not."""
    weights, features = list(scorer.parameters()), dataset.features
    known = type(scorer) in (LinearScorer, MLPScorer)
    known = known and all(type(layer) is nn.Linear for layer in scorer.children())
    hooked = any(part._forward_hooks or part._forward_pre_hooks for part in scorer.modules())
    right = features.dtype in _FORMATS and features.is_contiguous()
    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    name, dtype = type(scorer).__name__, weights[0].dtype
    doubts = {
        f"{name} is neither a LinearScorer nor an MLPScorer as it comes": not known or hooked,
        "some of the scorer's parameters are frozen": not all(p.requires_grad for p in weights),
        "the scorer is neither float32 nor float64": dtype not in _FORMATS,
        "the features are not one contiguous float32 or float64 array": not right,
        f"utility is {config.utility!r}": not config.is_linear,
        f"disparity is {config.disparity!r}": config.disparity not in _DISPARITIES,
        f"pooled is {config.pooled!r}": config.pooled != "query",
        f"the scorer is on {weights[0].device}": weights[0].device.type != "cpu",
        "several processes train together": together,
    }
    if reasons := [reason for reason, found in doubts.items() if found]:
        return reasons[0]
    try:
        import fairpg_lite.compiled.loops  # noqa: F401
    except ImportError as error:
        return f'Numba cannot be imported ({error}; pip install "fairpg-lite[fast]" brings it)'
    return None


def serves(scorer: nn.Module, dataset: RankingDataset, config: TrainConfig) -> bool:
    """Whether to take the compiled way, as ``config.compiled`` says; True may be an error."""
    short = config.compiled == "auto" and len(dataset) * config.epochs < WORTHWHILE
    if short or not config.compiled:
        return False
    reason = why_not(scorer, dataset, config)
    if reason is not None and config.compiled != "auto":
        raise ValueError(
            f"fit: compiled=True, but {reason}; choose compiled='auto' or False for autograd."
        )
    return reason is None


#: What is known of documents (N,) and queries (Q,) before training, and the objective: query q owns
#: the rows offsets[q]:offsets[q + 1], and its utility is constant + sum of weight times exposure.
#: Baselines and disparities have the numbers above; 0 samples: exact.
Problem = namedtuple(
    "Problem", "offsets weight constant merit groups n_groups bias lam samples baseline disparity"
)
#: When to look at the race of n documents: from x = first in steps of step[n]. Nodes z and
#: coefficients a stand at at[n]:at[n + 1]; gaps are narrowed to widest[n].
Times = namedtuple("Times", "z a at step widest first log_reach")
#: What an epoch saw: utility, disparity and entropy of each query (Q, 3), the gradient's norm in
#: each update, and, where it broke off, the queries at which something was not finite.
Seen = namedtuple("Seen", "terms norms bad")


class Epoch:
    """Epochs of updates of ``scorer`` by ``optimizer``, Adam or SGD, on a data set."""

    def __init__(
        self, scorer: nn.Module, dataset: RankingDataset, config: TrainConfig, optimizer: Optimizer
    ):
        # A bias in the scores themselves is left alone: no policy notices it.
        self.optimizer, self.hidden = optimizer, 0
        self.parameters: list[Tensor] = [next(scorer.parameters())]
        if isinstance(scorer, MLPScorer):
            self.hidden = scorer.hidden.out_features
            self.parameters = [*scorer.hidden.parameters(), scorer.output.weight]
        self.features, self.lengths = dataset.features.numpy(), dataset.lengths.numpy()
        dtype = self.parameters[0].dtype
        self.large = config.batch_size * self.features.size >= SHARED * len(dataset)
        self.problem = _problem(dataset, config, dtype)
        self.times = _times(self.lengths, config, dtype)

    @torch.no_grad()
    def run(
        self, queries: Tensor, sizes: list[int], generator: torch.Generator, gamma: float, lr: float
    ) -> Seen:
        """One epoch over ``queries (Q,)``, of which each update takes as many as ``sizes`` says.

        Draws from ``generator`` what `PlackettLuce.sample` would draw for the padded batches.
        """
        from fairpg_lite.compiled.loops import epoch, together

        state, settings, step = self._state()
        vectors = [parameters_to_vector(tensors) for tensors in state]
        theta, *moments = (vector.numpy() for vector in vectors)
        opt = (lr, *settings, *(moments or (theta[:0], theta[:0])))
        order, ends = queries.numpy(), np.cumsum(sizes)
        seen = Seen(np.full((len(order), 3), np.nan), np.full(len(ends), np.nan), [])
        starts, lengths = np.concatenate([[0], ends[:-1]]), self.lengths[order]
        longest, before = np.maximum.reduceat(lengths, starts), np.cumsum(lengths) - lengths
        place = before - np.repeat(before[starts], ends - starts)
        drawn = self.problem.samples * (ends - starts) * longest
        many, pool = max(1, _AT_ONCE // int(ends[0])), ThreadPoolExecutor(torch.get_num_threads())
        loop = together(pool) if self.large else epoch
        try:
            for b in range(0, len(ends), many):
                some = slice(b, b + many)
                own = slice(starts[b], ends[some][-1])
                noise = torch.empty(int(drawn[some].sum()), dtype=torch.float64)
                noise.uniform_(generator=generator).clamp_(min=1e-300).log_().neg_().log_()
                failed = loop(
                    (self.features, self.problem, self.times, self.hidden, theta), float(gamma),
                    opt, order[own], ends[some] - starts[b], place[own], longest[some],
                    noise.numpy(), step, seen.terms[own], seen.norms[some],
                )  # fmt: skip
                if failed >= 0:
                    batch = slice(starts[b + failed], ends[b + failed])
                    bad = order[batch][~np.isfinite(seen.terms[batch]).all(1)]
                    return seen._replace(bad=(bad if len(bad) else order[batch]).tolist())
                step += len(longest[some])
        finally:
            pool.shutdown()
            for tensors, vector in zip(state, vectors, strict=True):
                vector_to_parameters(vector, tensors)
            for p in self.parameters if moments else ():
                self.optimizer.state[p]["step"].fill_(step)
        return seen

    def _state(self) -> tuple[list[list[Tensor]], tuple[float, ...], int]:
        """Parameters and moments; the optimiser's settings; and how many steps it has taken."""
        group, state = self.optimizer.param_groups[0], self.optimizer.state
        if not isinstance(self.optimizer, torch.optim.Adam):
            return [self.parameters], (group["weight_decay"], 0.0, 0.0, 0.0), 0
        names = ("exp_avg", "exp_avg_sq")
        for p in self.parameters:
            if not state[p]:
                state[p] = {"step": torch.tensor(0.0)} | {n: torch.zeros_like(p) for n in names}
        moments = [[state[p][name] for p in self.parameters] for name in names]
        settings = (group["weight_decay"], *group["betas"], group["eps"])
        return [self.parameters, *moments], settings, int(state[self.parameters[0]]["step"])


def _problem(dataset: RankingDataset, config: TrainConfig, dtype: torch.dtype) -> Problem:
    """Worked out by the definition's own functions."""
    # Query by query, as a function of one's own may look at the others of its query.
    relevance = dataset.relevance.to(dtype).split(dataset.lengths.tolist())
    merit = torch.cat([merit_of(grades, config.merit) for grades in relevance])
    gain = config.gain if callable(config.gain) else GAINS[config.gain]
    weight, constant = torch.cat([gain(grades) for grades in relevance]), torch.zeros(len(dataset))
    if config.utility == "ndcg":
        ideal = ideals(dataset, config, dtype)
        over = ideal.repeat_interleave(dataset.lengths)
        weight, constant = torch.where(over > 0, weight / over, 0.0), (ideal == 0).to(dtype)
    groups, kind = torch.zeros_like(merit, dtype=torch.int64), _DISPARITIES[config.disparity]  # type: ignore[index]
    if dataset.groups is not None:
        groups = torch.unique(dataset.groups, return_inverse=True)[1]
    elif kind > 1:
        kind = 0  # as in `objective`
    bias = config.position_bias
    if bias is None:
        bias = exposure.position_bias(int(dataset.lengths.max()), dtype=torch.float64)
    by_document = (weight.double(), constant.double(), merit.double(), groups)
    arrays = [values.numpy() for values in (dataset.offsets, *by_document)]
    samples = config.samples if config.method == "sample" else 0
    rest = (float(config.lam), samples, _BASELINES[config.baseline], kind)
    return Problem._make([*arrays, int(groups.max()) + 1, bias.double().numpy(), *rest])


def _times(lengths: np.ndarray, config: TrainConfig, dtype: torch.dtype) -> Times:
    """For all lengths that occur."""
    tolerance = reachable(config.tolerance, dtype)
    step, widest = np.ones((2, int(lengths.max()) + 2))
    count = np.zeros(len(step), np.int64)
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
    at, log_reach = np.cumsum(count), math.log(-math.log(tolerance))
    return Times(np.concatenate(z), np.concatenate(a), at, step, widest, first, log_reach)
