"""One training run: its state, an epoch of it, and what is kept of it."""

import copy
import dataclasses
import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from fairpg_lite import _check
from fairpg_lite._files import refusing, write_whole
from fairpg_lite.batch import Batch
from fairpg_lite.compiled import switch
from fairpg_lite.compiled.epochs import Epoch
from fairpg_lite.data import RankingDataset
from fairpg_lite.objective import ideals
from fairpg_lite.pooling import Pool, RunningPool, check_poolable, check_weights
from fairpg_lite.scorers import eval_mode, score
from fairpg_lite.training.checkpoint import AFRESH, identity_of, load_checkpoint, to_bytes
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.distributed import (
    process_count,
    process_rank,
    sum_over_processes,
    weighted_batches,
)
from fairpg_lite.training.history import History
from fairpg_lite.training.optimizers import new_optimizer
from fairpg_lite.training.validation import objective_on

Weights = dict[str, Tensor]


class Best(NamedTuple):
    """The epoch whose objective on the validation queries is the highest so far."""

    objective: float
    epoch: int
    """Counted from 1."""
    weights: Weights


class Finished(NamedTuple):
    """What stays if the training is interrupted now."""

    weights: Weights
    """What the scorer is to hold."""
    checkpoint: bytes | None
    """What the checkpoint file is to hold; None is to leave it alone."""


class EpochMeans(NamedTuple):
    """Means over the queries, and over the updates, of an epoch."""

    utility: float
    disparity: float
    entropy: float
    gradient_norm: float


class Run:
    """The state of one training run: what an epoch reads and writes.

    Args:
        scorer: What is trained, in place.
        dataset: The training queries.
        config: The settings.
        valid: Queries that choose the epoch; None keeps the last.
    """

    def __init__(
        self,
        scorer: nn.Module,
        dataset: RankingDataset,
        config: TrainConfig,
        valid: RankingDataset | None = None,
    ):
        first = _first_parameter(scorer)
        self.config = config
        self.scorer = scorer
        self.dtype = first.dtype
        self.dataset = dataset.to(device=first.device)
        self.valid = None if valid is None else valid.to(device=first.device)
        _check_data(self.dataset, self.valid, config)
        _check_learning_rate(config, self.dtype)

        self.parameters = [p for p in scorer.parameters() if p.requires_grad]
        self.optimizer = new_optimizer(self.parameters, config)
        self.model = scorer
        if process_count() > 1:
            # All processes begin with the first one's weights, and take the mean of their
            # gradients.
            self.model = DistributedDataParallel(scorer)

        # Two streams, so that changing the number of samples leaves the order of queries alone.
        # Processes that train together draw different rankings.
        sampling_seed = 2 * config.seed + 1 + (process_rank() << 40)
        self.order_generator = torch.Generator().manual_seed(2 * config.seed)
        self.sampling_generator = torch.Generator(first.device).manual_seed(sampling_seed)

        self.ideal: Tensor | None = None
        if config.is_linear:  # of DCG, too: this refuses grades whose gain is too large a number
            self.ideal = ideals(self.dataset, config, self.dtype)
        self.compiled: Epoch | None = None
        if switch.serves(
            scorer,
            self.dataset,
            config,
            self.optimizer,
            compiled=config.compiled,
            epochs=config.epochs,
        ):
            self.compiled = Epoch(
                scorer, self.dataset, config, self.optimizer, batch_size=config.batch_size
            )

        self.mean_query_weight: Tensor | None = None
        if self.dataset.query_weights is not None:
            self.mean_query_weight = _mean_over_processes(self.dataset.query_weights)
        self.others: RunningPool | None = None
        if config.running:
            self.others = self._all_queries_as_they_are()

        self.history = History(compiled=self.compiled is not None)
        self.best: Best | None = None
        self.checkpoint: Path | None = None
        self.identity: dict[str, str | None] = {}
        self.last_finished = Finished(_copy_of_weights(scorer), checkpoint=None)

    def continue_from(self, checkpoint: Path) -> None:
        """Go on from the file, if there is one, and save to it from now on."""
        if process_count() > 1:
            raise ValueError(
                "fit: checkpoint= is not supported in distributed training; "
                "save the scorer's state_dict on rank 0."
            )
        self.checkpoint = checkpoint
        self.identity = identity_of(self.scorer, self.dataset, self.valid, self.config)
        if not checkpoint.exists():
            return
        state = load_checkpoint(checkpoint, self.identity, self.config.epochs)
        with refusing(f"fit: checkpoint {checkpoint}", AFRESH):
            history = History(**state["history"])
            history.compiled = self.compiled is not None
            self.history = history
            self.best = None if state["best"] is None else Best(**state["best"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.order_generator.set_state(state["order_generator"])
            self.sampling_generator.set_state(state["sampling_generator"])
            self.scorer.load_state_dict(state["scorer"])
            if self.others is not None:
                self.others.pool.exposure.copy_(state["remembered_exposure"])
        self.last_finished = Finished(self._weights_to_keep(), checkpoint=None)

    def stops_because_of(self) -> str:
        """Why no further epoch follows, "epochs" or "patience"; empty if one does."""
        epochs_done = len(self.history)
        if epochs_done >= self.config.epochs:
            return "epochs"
        if self.best is not None and self.config.patience is not None:
            epochs_since_best = epochs_done - self.best.epoch
            if epochs_since_best >= self.config.patience:
                return "patience"
        return ""

    def epoch(self) -> None:
        """Pass over the training queries once, validate, and save the checkpoint."""
        lr = self.config.lr * self.config.lr_decay ** len(self.history)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        if self.compiled is not None:
            means = self._compiled_updates(self.compiled, lr)
        else:
            means = self._autograd_updates()
        self._check_weights()
        for name, mean in means._asdict().items():
            getattr(self.history, name).append(mean)
        if self.valid is not None:
            self._validate(self.valid)
        # From here on the epoch counts as finished, whenever Ctrl-C comes.
        self.last_finished = Finished(self._weights_to_keep(), self._state_to_save())
        self._save()

    def keep_last_finished(self) -> None:
        """Give scorer and checkpoint what the last finished epoch left them."""
        self.scorer.load_state_dict(self.last_finished.weights)
        self._save()

    def end(self, stopped: str) -> None:
        """Give the scorer the weights that are kept, and the history its last words."""
        self.scorer.load_state_dict(self.last_finished.weights)
        self.history.kept = len(self.history) if self.best is None else self.best.epoch
        self.history.stopped = stopped

    def _compiled_updates(self, compiled_epoch: Epoch, lr: float) -> EpochMeans:
        """An epoch of updates by compiled loops."""
        batches = self.dataset.batches(
            self.config.batch_size, True, self.order_generator, dtype=self.dtype, reuse=True
        )
        queries, sizes = batches.order()
        seen = compiled_epoch.run(queries, sizes, self.sampling_generator, self.config.entropy, lr)
        if seen.bad:
            self._refuse_to_go_on(seen.bad)
        utility, disparity, entropy = seen.terms.mean(0).tolist()
        return EpochMeans(utility, disparity, entropy, float(seen.norms.mean()))

    def _autograd_updates(self) -> EpochMeans:
        """An epoch of updates by autograd."""
        batches = self.dataset.batches(
            self.config.batch_size, True, self.order_generator, dtype=self.dtype, reuse=True
        )
        terms_of_batches = []
        weights_of_batches = []
        norms = []
        with _check.trusted():
            for batch, weight in weighted_batches(batches):
                terms, norm = self._update(batch, weight)
                norms.append(norm)
                if weight > 0:
                    terms_of_batches.append(terms)
                    weights_of_batches.append(self._query_weights(batch))
        terms_of_queries = torch.cat(terms_of_batches, -1).double()
        count = torch.full_like(terms_of_queries[:1, 0], terms_of_queries.shape[-1])
        if self.mean_query_weight is not None:
            weights = torch.cat(weights_of_batches).double()
            terms_of_queries = terms_of_queries * weights
            count = weights.sum().reshape(1)
        sums = sum_over_processes(torch.cat([terms_of_queries.sum(-1), count])).tolist()
        utility_sum, disparity_sum, entropy_sum, n_queries = sums
        return EpochMeans(
            utility_sum / n_queries,
            disparity_sum / n_queries,
            entropy_sum / n_queries,
            float(torch.stack(norms).double().mean()),
        )

    def _update(self, batch: Batch, weight: float) -> tuple[Tensor, Tensor]:
        """One step of Algorithm 1: draw, estimate the gradient, move.

        Returns utility, disparity and entropy of each query ``(3, B)``, and the gradient's norm.
        """
        for parameter in self.parameters:
            parameter.grad = None
        scores = score(self.model, batch)
        if self.others is None:
            terms = self.config.terms(scores, batch, self.sampling_generator, self.ideal)
        else:
            terms, exposure = self.config.terms_and_exposure(
                scores, batch, self.sampling_generator, self.ideal, self.others
            )
            self.others.remember(exposure, batch.mask, batch.queries)
        objective = self.config.total(terms)
        # An optimiser minimises: the gradient of minus the weighted sum over the batch.
        slope = torch.full_like(objective, -weight)
        if self.mean_query_weight is not None:
            slope = slope * self._query_weights(batch)
        torch.autograd.backward(objective, slope)
        norm = _norm_of_gradient(self.parameters)
        if not math.isfinite(float(norm + objective.detach().sum())):
            bad = ~torch.isfinite(objective) | ~torch.isfinite(scores).all(-1)
            queries = batch.queries[bad] if bool(bad.any()) else batch.queries
            self._refuse_to_go_on(queries.tolist())
        self.optimizer.step()
        return torch.stack(terms).detach(), norm

    def _query_weights(self, batch: Batch) -> Tensor:
        """How much each query of a batch counts ``(B,)``, 1 in the mean over the dataset."""
        if self.mean_query_weight is None or batch.query_weights is None:
            return torch.ones_like(batch.relevance[:, 0])
        return batch.query_weights / self.mean_query_weight.to(batch.query_weights)

    def _all_queries_as_they_are(self) -> RunningPool:
        """All training queries with the exposure that the scorer gives them now."""
        exact = dataclasses.replace(self.config, method="exact")
        generator = torch.Generator(self.sampling_generator.device).manual_seed(0)
        pools: list[Pool] = []
        with eval_mode(self.scorer):
            for batch in self.dataset.batches(64, dtype=self.dtype):
                _, exposure = exact.terms_and_exposure(score(self.scorer, batch), batch, generator)
                pools.append(self.config.pool_of(exposure, batch))
        return RunningPool(Pool.joined(pools), self.dataset.offsets)

    def _validate(self, valid: RankingDataset) -> None:
        """Note the objective on the validation queries, and the weights if they are the best."""
        utility, disparity = objective_on(self.scorer, valid, self.config)
        self.history.valid_utility.append(utility)
        self.history.valid_disparity.append(disparity)
        objective = utility - self.config.lam * disparity
        if self.best is None or objective > self.best.objective:
            self.best = Best(objective, len(self.history), _copy_of_weights(self.scorer))

    def _weights_to_keep(self) -> Weights:
        """The best epoch's weights where there is validation, else a copy of the scorer's."""
        if self.best is not None:
            return self.best.weights
        return _copy_of_weights(self.scorer)

    def _state_to_save(self) -> bytes | None:
        """The content of the checkpoint file, or None if there is to be none."""
        if self.checkpoint is None:
            return None
        state: dict[str, Any] = {
            "identity": self.identity,
            "history": dataclasses.asdict(self.history),
            "best": None if self.best is None else self.best._asdict(),
            "scorer": self.scorer.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order_generator": self.order_generator.get_state(),
            "sampling_generator": self.sampling_generator.get_state(),
        }
        if self.others is not None:
            state["remembered_exposure"] = self.others.pool.exposure
        return to_bytes(state)

    def _save(self) -> None:
        """Write the last finished epoch's checkpoint."""
        if self.checkpoint is not None and self.last_finished.checkpoint is not None:
            write_whole(self.checkpoint, self.last_finished.checkpoint)

    def _check_weights(self) -> None:
        """Refuse weights that the last update has made infinite or NaN."""
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.parameters):
            raise FloatingPointError(
                f"fit: a weight is no longer finite after epoch {len(self.history) + 1}; "
                "try a smaller learning rate."
            )

    def _refuse_to_go_on(self, queries: list[int]) -> None:
        """Say at which queries a number was not finite."""
        raise FloatingPointError(
            "fit: the objective or its gradient is not finite in epoch "
            f"{len(self.history) + 1}, at query {queries[:5]} of the dataset; "
            "lower the learning rate or scale the features."
        )


def _check_data(dataset: RankingDataset, valid: RankingDataset | None, config: TrainConfig) -> None:
    """Refuse queries that cannot be trained on with these settings."""
    if len(dataset) == 0:
        raise ValueError("fit: the dataset holds no query.")
    if valid is not None and len(valid) == 0:
        raise ValueError("fit: the validation set holds no query; leave it out, or give it some.")
    if config.lam > 0 and config.needs_groups and dataset.groups is None:
        raise ValueError(
            f"fit: disparity={config.disparity!r} with lam > 0 needs groups; "
            "give the dataset some, dataset.replace(groups=...), or choose 'd_ind'."
        )
    check_poolable("fit", dataset, config.pooled)
    check_weights("fit", dataset.query_weights, config.pooled)
    if config.running and process_count() > 1:
        raise ValueError(
            "fit: running=True is not supported in distributed training, where no process sees all "
            "queries; train in one process, or with running=False."
        )
    if valid is not None:
        check_poolable("fit", valid, config.pooled)
    if bool(dataset.features.sum().isfinite()):
        return
    # A large sum may overflow, too: look at the queries one by one.
    for name, query in zip(dataset.query_ids.tolist(), dataset, strict=True):
        _check.finite("fit", f"features of query {name}, at ", query.features)


def _mean_over_processes(values: Tensor) -> Tensor:
    """The mean ``()`` of values ``(Q,)`` over all processes."""
    total = values.double().sum()
    count = torch.full_like(total, len(values))
    sums = sum_over_processes(torch.stack([total, count]))
    return sums[0] / sums[1]


def _first_parameter(scorer: nn.Module) -> nn.Parameter:
    """The parameter that says where and in which format a scorer works."""
    first = next(scorer.parameters(), None)
    if first is None:
        raise ValueError(
            f"fit: {type(scorer).__name__} has no parameters; there is nothing to train."
        )
    if not any(parameter.requires_grad for parameter in scorer.parameters()):
        raise ValueError(
            f"fit: all parameters of {type(scorer).__name__} are frozen; "
            "set requires_grad_() on those to train."
        )
    return first


def _check_learning_rate(config: TrainConfig, dtype: torch.dtype) -> None:
    """Refuse a learning rate that is infinite in the scorer's number format."""
    if config.lr > torch.finfo(dtype).max:
        raise FloatingPointError(
            f"fit: the learning rate {config.lr:g} is more than {dtype} can hold; "
            "give a smaller one."
        )


def _copy_of_weights(scorer: nn.Module) -> Weights:
    """The scorer's parameters and buffers as they are now."""
    return copy.deepcopy(scorer.state_dict())


def _norm_of_gradient(parameters: list[nn.Parameter]) -> Tensor:
    """The Euclidean norm over all parameters that have a gradient."""
    norms: list[Tensor] = []
    for parameter in parameters:
        if parameter.grad is not None:
            norms.append(parameter.grad.norm())
    if len(norms) == 1:
        return norms[0]
    norm: Tensor = torch.stack(norms).norm()
    return norm
