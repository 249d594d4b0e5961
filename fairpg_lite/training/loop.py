"""PG-Rank and Fair-PG-Rank: Algorithm 1 of the paper's appendix (chapter 7)."""

import copy
import dataclasses
import io
import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from fairpg_lite import _check
from fairpg_lite._extras import progress_bar
from fairpg_lite._files import refusing, write_whole
from fairpg_lite.batch import Batch
from fairpg_lite.compiled import epochs as compiled
from fairpg_lite.compiled.epochs import SHARED
from fairpg_lite.data import RankingDataset
from fairpg_lite.objective import Terms, ideals
from fairpg_lite.pooling import Pool, check_poolable
from fairpg_lite.scorers import eval_mode, score
from fairpg_lite.training.checkpoint import AFRESH, CHECKPOINT, load_checkpoint, run_of
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.history import History


def fit(
    scorer: nn.Module,
    dataset: RankingDataset,
    config: TrainConfig | None = None,
    valid: RankingDataset | None = None,
    *,
    progress: bool = True,
    checkpoint: str | Path | None = None,
) -> History:
    """Train ``scorer`` in place to maximise mean U - lam * D over the queries of ``dataset``.

    The scorer is any module from features ``(…, n, d)`` to scores ``(…, n)``; one whose ``forward``
    has an argument ``mask`` is told which documents are real. It is trained on its own device and
    in its own number format. With ``valid`` the objective is
    evaluated on those queries after each epoch, the weights of the best epoch are kept
    (``history.kept``), and ``config.patience`` may end the training. The file ``checkpoint`` keeps
    the state after each epoch; one that is there is continued, to the same result bit by bit. It
    belongs to its data, settings and scorer, of which only ``config.epochs`` may grow. Ctrl-C ends
    the training with what it has, and ``history.stopped`` says so.

    Under ``torchrun``, with ``torch.distributed`` initialised, every process calls `fit` on its own
    shard of the queries, and an update goes along the mean over the batches of all of them. Chapter
    7, eq-07-chain; Algorithm 1 of the paper.
    """
    run = _Run(scorer, dataset, config or TrainConfig(), valid)
    if checkpoint is not None:
        run.keep_at(Path(checkpoint))
    history, work = run.history, run.config.batch_size * dataset.features.numel() / len(dataset)
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        if work < SHARED:
            torch.set_num_threads(1)
        bar = stack.enter_context(progress_bar("training", run.config.epochs, "epoch", progress))
        bar.update(len(history))
        try:
            while not run.finished():
                run.epoch()
                bar.set_postfix(U=history.utility[-1], D=history.disparity[-1], refresh=False)
                bar.update(1)
                run.save()
        except KeyboardInterrupt:
            history.stopped = "interrupted"
    history.kept = len(history)
    if run.best is not None:
        _, history.kept, weights = run.best
        scorer.load_state_dict(weights)
    return history


def objective_on(
    scorer: nn.Module, dataset: RankingDataset, config: TrainConfig
) -> tuple[float, float]:
    """Mean utility and disparity of the training objective on ``dataset``, exact where possible.

    A utility that is not linear in exposure is averaged over 100 rankings drawn with a fixed seed.
    The scorer is in eval mode meanwhile. A disparity that is pooled is that of all queries
    together; under `torch.distributed`, the mean of the processes' pools, by their queries.
    """
    first = next(scorer.parameters())
    generator = torch.Generator(first.device).manual_seed(0)
    exact = dataclasses.replace(config, method="exact", samples=100, tolerance=1e-6)
    sums = torch.zeros(3, dtype=torch.float64, device=first.device)
    pools: list[Pool] = []
    with eval_mode(scorer):
        for batch in dataset.to(device=first.device).batches(64, dtype=first.dtype, reuse=True):
            terms, exposure = exact.terms_and_exposure(score(scorer, batch), batch, generator)
            sums += torch.stack([*(t.sum() for t in terms[:2]), batch.mask[:, 0].sum()])
            if config.pooled != "query":
                pools.append(exact.pool_of(exposure, batch))
    if pools:
        sums[1] = sums[2] * exact.pooled_disparity(Pool.joined(pools))
    utility_sum, disparity_sum, count = _total(sums).tolist()
    return utility_sum / count, disparity_sum / count


class _Run:
    """The state of one training run: what an epoch reads and writes."""

    def __init__(
        self,
        scorer: nn.Module,
        dataset: RankingDataset,
        config: TrainConfig,
        valid: RankingDataset | None,
    ):
        self.config = config
        self.scorer = scorer
        first = next(scorer.parameters())
        device, self.dtype = first.device, first.dtype
        self.dataset = data = dataset.to(device=device)
        self.valid = None if valid is None else valid.to(device=device)
        _check_data(data, valid, config)
        if config.lr > torch.finfo(self.dtype).max:
            raise FloatingPointError(f"fit: the learning rate is more than {self.dtype} can hold.")
        self.parameters = [p for p in scorer.parameters() if p.requires_grad]
        self.optimizer = _optimizer(self.parameters, config)
        # All processes begin with the first one's weights, and take the mean of their gradients.
        self.model = DistributedDataParallel(scorer) if _world() > 1 else scorer
        # Two streams, so that changing the number of samples leaves the order of queries alone.
        self.order = torch.Generator().manual_seed(2 * config.seed)
        rank = distributed.get_rank() if _world() > 1 else 0
        self.draws = torch.Generator(device).manual_seed(2 * config.seed + 1 + (rank << 40))
        # For DCG, too: it refuses grades whose gain is too large a number.
        self.ideal = ideals(data, config, self.dtype) if config.is_linear else None
        self.compiled: compiled.Epoch | None = None
        if compiled.serves(scorer, data, config):
            self.compiled = compiled.Epoch(scorer, data, config, self.optimizer)
        self.history = History(compiled=self.compiled is not None)
        self.best: tuple[float, int, dict[str, Tensor]] | None = None
        self.path: Path | None = None

    def keep_at(self, path: Path) -> None:
        """Continue what the file holds, if there is one, and save to it from now on."""
        if _world() > 1:
            raise ValueError("fit: a checkpoint is of one process; several train without.")
        self.path = path
        self.belongs_to = run_of(self.scorer, self.dataset, self.valid, self.config)
        if not path.exists():
            return
        state = load_checkpoint(path, self.belongs_to, self.config.epochs)
        with refusing(f"fit: checkpoint {path}", AFRESH):
            now = {"compiled": self.history.compiled, "stopped": ""}
            self.history = History(**{**state["history"], **now})
            self.best = state["best"]
            self.optimizer.load_state_dict(state["optimizer"])
            self.order.set_state(state["order"])
            self.draws.set_state(state["draws"])
            self.scorer.load_state_dict(state["scorer"])

    def save(self) -> None:
        if self.path is not None:
            state: dict[str, Any] = {"format": CHECKPOINT, "run": self.belongs_to}
            state |= {"history": dataclasses.asdict(self.history), "best": self.best}
            state |= {"scorer": self.scorer.state_dict(), "optimizer": self.optimizer.state_dict()}
            state |= {"order": self.order.get_state(), "draws": self.draws.get_state()}
            torch.save(state, content := io.BytesIO())
            write_whole(self.path, content.getvalue())

    def finished(self) -> bool:
        if len(self.history) >= self.config.epochs:
            self.history.stopped = "epochs"
        elif self.best is not None and self.config.patience is not None:
            waited = len(self.history) - self.best[1]
            self.history.stopped = "patience" if waited >= self.config.patience else ""
        return bool(self.history.stopped)

    def epoch(self) -> None:
        done, config = len(self.history), self.config
        lr = config.lr * config.lr_decay**done
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        seen = self.updates(lr)
        if not all(bool(torch.isfinite(p).all()) for p in self.parameters):
            why = f"a weight is no longer finite after epoch {done + 1}"
            raise FloatingPointError(f"fit: {why}; try a smaller learning rate.")
        if self.valid is not None:
            utility, disparity = objective_on(self.scorer, self.valid, config)
            seen |= {"valid_utility": utility, "valid_disparity": disparity}
            value = utility - config.lam * disparity
            if self.best is None or value > self.best[0]:
                self.best = (value, done + 1, copy.deepcopy(self.scorer.state_dict()))
        for name, mean in seen.items():
            getattr(self.history, name).append(mean)

    def updates(self, lr: float) -> dict[str, float]:
        """An epoch of updates; returns the means that its history is to hold."""
        batches = self.dataset.batches(
            self.config.batch_size, True, self.order, dtype=self.dtype, reuse=True
        )
        if self.compiled is not None:
            seen = self.compiled.run(*batches.order(), self.draws, self.config.entropy, lr)
            if seen.bad:
                self.blame(seen.bad)
            means, norm = seen.terms.mean(0).tolist(), seen.norms.mean()
        else:
            with _check.trusted():
                rows = [self.update(batch, share) for batch, share in _shares(batches)]
            terms = torch.cat([terms for terms, _ in rows], -1).double()
            count = torch.full_like(terms[:1, 0], terms.shape[-1])
            *sums, queries = _total(torch.cat([terms.sum(-1), count])).tolist()
            means = [value / queries for value in sums]
            norm = torch.stack([norm for _, norm in rows]).double().mean()
        return {**Terms(*means)._asdict(), "gradient_norm": float(norm)}

    def update(self, batch: Batch, share: float) -> tuple[Tensor, Tensor]:
        """One step of Algorithm 1: draw, estimate the gradient, move.

        Returns utility, disparity and entropy of each query ``(3, B)``, and the gradient's norm.
        """
        for parameter in self.parameters:
            parameter.grad = None
        scores = score(self.model, batch)
        terms = self.config.terms(scores, batch, self.draws, self.ideal)
        objective = self.config.total(terms)
        # The gradient of minus the mean over the batch.
        objective.backward(torch.full_like(objective, -share))
        norms = [p.grad.norm() for p in self.parameters if p.grad is not None]
        norm = norms[0] if len(norms) == 1 else torch.stack(norms).norm()
        if not math.isfinite(float(norm + objective.detach().sum())):
            bad = ~torch.isfinite(objective) | ~torch.isfinite(scores).all(-1)
            rows = batch.queries[bad] if bool(bad.any()) else batch.queries
            self.blame(rows.tolist())
        self.optimizer.step()
        seen = torch.stack(terms).detach()
        return (seen if share > 0 else seen[:, :0]), norm

    def blame(self, queries: list[int]) -> None:
        where = f"in epoch {len(self.history) + 1}, at query {queries[:5]} of the dataset"
        why = f"the objective or its gradient is not finite {where}"
        raise FloatingPointError(f"fit: {why}; lower the learning rate or scale the features.")


def _check_data(dataset: RankingDataset, valid: RankingDataset | None, config: TrainConfig) -> None:
    """Refuse queries that cannot be trained on with these settings."""
    if len(dataset) == 0 or (valid is not None and len(valid) == 0):
        raise ValueError("fit: the dataset or the validation set holds no query.")
    if config.lam > 0 and config.needs_groups and dataset.groups is None:
        found = f"disparity={config.disparity!r} with lam > 0 needs groups"
        raise ValueError(f"fit: {found}; give the dataset some, or choose 'd_ind'.")
    check_poolable("fit", dataset, config.pooled)
    if valid is not None:
        check_poolable("fit", valid, config.pooled)
    sound = bool(dataset.features.sum().isfinite())  # one pass; a large sum may overflow, too
    for name, query in () if sound else zip(dataset.query_ids.tolist(), dataset, strict=True):
        _check.finite("fit", f"features of query {name}, at ", query.features)


def _optimizer(parameters: list[nn.Parameter], config: TrainConfig) -> torch.optim.Optimizer:
    settings: dict[str, Any] = {"lr": config.lr, "weight_decay": config.weight_decay}
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, **settings)
    fused = parameters[0].device.type in ("cpu", "cuda")  # others may lack the one-kernel Adam
    try:
        return torch.optim.Adam(parameters, **settings, fused=fused)
    except RuntimeError:  # an older PyTorch
        return torch.optim.Adam(parameters, **settings)


def _world() -> int:
    """How many processes train together (chapter 15)."""
    together = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if together else 1


def _total(values: Tensor) -> Tensor:
    """The sums over all processes, in place."""
    if _world() > 1:
        distributed.all_reduce(values)
    return values


def _shares(batches: Iterable[Batch]) -> Iterator[tuple[Any, float]]:
    """The batches of an epoch, and the weight of each query in the mean that its update takes.

    `DistributedDataParallel` takes the mean over processes, so for the mean over queries a weight
    is the number of processes by that of all their queries; a process that has no batch left
    repeats its last with weight 0, because the others wait for its gradient.
    """
    batch = None
    for own in chain(batches, repeat(None)):
        batch = own or batch
        queries = int(_total(torch.tensor([len(own.queries) if own else 0])))
        if queries == 0:
            return
        yield batch, _world() / queries if own else 0.0
