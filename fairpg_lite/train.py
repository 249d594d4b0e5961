"""PG-Rank and Fair-PG-Rank: Algorithm 1 of the paper's appendix (chapter 7)."""

import copy
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairpg_lite import _check
from fairpg_lite._progress import progress_bar
from fairpg_lite.batch import Batch
from fairpg_lite.checkpoint import load_checkpoint, save_checkpoint
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import objective_on
from fairpg_lite.history import History
from fairpg_lite.objective import GROUP_DISPARITIES, NdcgWeights, batch_terms
from fairpg_lite.one_query import OneQuery
from fairpg_lite.optimizers import make_optimizer


def fit(
    scorer: nn.Module,
    dataset: RankingDataset,
    config: TrainConfig | None = None,
    valid: RankingDataset | None = None,
    *,
    progress: bool = True,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1,
) -> History:
    """Train ``scorer`` in place to maximise mean U - lam * D over the queries of ``dataset``.

    ``scorer`` is any module from features ``(…, n, d)`` to scores ``(…, n)``. With ``valid`` the
    objective is evaluated after each epoch, ``config.patience`` may end the training, and the best
    epoch's weights are kept. With ``checkpoint`` the state is written every ``checkpoint_every``
    epochs, and an existing file is continued, to the same result bit by bit. Ctrl-C ends the
    training with what it has, and ``history.stopped`` says so.

    Chapter 7, eq-07-chain; Algorithm 1 of the paper.
    """
    run = _Run(scorer, dataset, config or TrainConfig(), valid)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        run.restore(load_checkpoint(path, run.history.config, scorer))
    with progress_bar("training", run.config.epochs, "epoch", progress) as bar:
        bar.update(len(run.history))
        try:
            while not run.finished():
                run.epoch()
                _show(bar, run.history)
                if path is not None and (
                    run.finished() or len(run.history) % checkpoint_every == 0
                ):
                    save_checkpoint(path, run.state())
        except KeyboardInterrupt:
            run.history.stopped = "interrupted"
    run.keep_best()
    return run.history


def _show(bar: Any, history: History) -> None:
    if hasattr(bar, "set_postfix"):
        figures = {"U": history.utility[-1], "D": history.disparity[-1]}
        bar.set_postfix({name: f"{value:.4f}" for name, value in figures.items()}, refresh=False)
    bar.update(1)


class _Run:
    """The state of one training run: what an epoch reads and writes."""

    def __init__(
        self,
        scorer: nn.Module,
        dataset: RankingDataset,
        config: TrainConfig,
        valid: RankingDataset | None,
    ):
        self.config, self.valid = config, valid
        self.scorer = scorer.to(device=config.device, dtype=config.dtype)
        self.dtype = next(scorer.parameters()).dtype
        self.dataset = dataset if config.device == "cpu" else dataset.to(device=config.device)
        _check_dataset(self.dataset, config)
        self.parameters = [p for p in scorer.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(self.parameters, config)
        # Two streams, so that changing the number of samples leaves the order of queries alone.
        self.order = torch.Generator().manual_seed(2 * config.seed)
        self.draws = torch.Generator(config.device).manual_seed(2 * config.seed + 1)
        self.weights = None
        if config.utility == "ndcg":
            self.weights = NdcgWeights(
                self.dataset.relevance, self.dataset.offsets, config, self.dtype
            )
        self.one = None
        if self.weights is not None and OneQuery.covers(config):
            self.one = OneQuery(self.dataset, config, self.weights)
        self.history = History(config=config.to_dict())
        self.best: tuple[float, int, dict[str, Tensor]] | None = None

    def finished(self) -> bool:
        if len(self.history) >= self.config.epochs:
            self.history.stopped = "epochs"
        elif self.best is not None and self.config.patience is not None:
            waited = len(self.history) - self.best[1]
            self.history.stopped = "patience" if waited >= self.config.patience else ""
        return bool(self.history.stopped)

    def epoch(self) -> None:
        start = time.perf_counter()
        decay = self.config.lr_decay ** len(self.history)
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.lr * decay
        gamma = self.config.entropy * self.config.entropy_decay ** len(self.history)
        means = self.by_batches(gamma) if self.one is None else self.by_queries(self.one, gamma)
        names = ("utility", "disparity", "entropy", "gradient_norm")
        row = dict(zip(names, means, strict=True))
        self.history.append({**row, "seconds": time.perf_counter() - start})
        if self.valid is not None:
            self.validate(self.valid)

    def by_batches(self, gamma: float) -> list[float]:
        """An epoch of updates; returns means of utility, disparity, entropy, gradient norm."""
        batches = self.dataset.batches(
            self.config.batch_size, True, self.order, dtype=self.dtype, reuse=True
        )
        with _check.trusted():
            rows = [self.update(batch, gamma) for batch in batches]
        columns = [torch.cat([x.reshape(-1) for x in column]) for column in zip(*rows, strict=True)]
        return [float(column.double().mean()) for column in columns]

    def by_queries(self, one: OneQuery, gamma: float) -> list[float]:
        """The same, one query per update."""
        order = torch.randperm(len(self.dataset), generator=self.order).tolist()
        features = self.dataset.features.unsqueeze(0)
        rows = []
        for query, noise in zip(order, one.noise(order, self.draws), strict=True):
            for parameter in self.parameters:
                parameter.grad = None
            x = features[:, one.bounds[query] : one.bounds[query + 1]]
            scores = self.scorer(x.to(self.dtype))
            step = one.step(query, scores.detach().numpy()[0].astype("float64"), noise, gamma)
            scores.backward(torch.from_numpy(-step.gradient[None]).to(scores.dtype))
            norm = math.sqrt(sum(_square(p.grad) for p in self.parameters if p.grad is not None))
            if not math.isfinite(norm + step.utility + step.disparity):
                raise FloatingPointError(_blame([query], len(self.history) + 1))
            self.optimizer.quick_step()
            rows.append((step.utility, step.disparity, step.entropy, norm))
        return [statistics.fmean(column) for column in zip(*rows, strict=True)]

    def update(self, batch: Batch, gamma: float) -> tuple[Tensor, ...]:
        """One step of Algorithm 1: draw, estimate the gradient, move.

        Returns utility, disparity and entropy of each query ``(B,)``, and the gradient's norm.
        """
        for parameter in self.parameters:
            parameter.grad = None
        scores = self.scorer(batch.features)
        terms = batch_terms(scores, batch, self.config, self.draws, self.weights)
        objective = terms.total(self.config.lam, gamma)
        # The gradient of minus the mean over the batch.
        objective.backward(torch.full_like(objective, -1.0 / len(objective)))
        norm = _gradient_norm(self.parameters)
        if not math.isfinite(float(norm + objective.detach().sum())):
            bad = ~torch.isfinite(objective) | ~torch.isfinite(scores).all(-1)
            rows = batch.queries[bad] if bool(bad.any()) else batch.queries
            raise FloatingPointError(_blame(rows.tolist(), len(self.history) + 1))
        self.optimizer.quick_step()
        shown = (terms.utility, terms.disparity, terms.entropy, norm)
        return tuple(part.detach() for part in shown)

    def validate(self, valid: RankingDataset) -> None:
        utility, disparity = objective_on(self.scorer, valid, self.config)
        self.history.append({"valid_utility": utility, "valid_disparity": disparity})
        value = utility - self.config.lam * disparity
        if self.best is None or value > self.best[0]:
            weights = copy.deepcopy(self.scorer.state_dict())
            self.best = (value, len(self.history), weights)

    def keep_best(self) -> None:
        if self.best is not None:
            self.scorer.load_state_dict(self.best[2])

    def state(self) -> dict[str, Any]:
        return {
            "config": self.history.config,
            "history": self.history.to_dict(),
            "scorer": self.scorer.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.order.get_state(),
            "draws": self.draws.get_state(),
            "best": self.best,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.scorer.load_state_dict(state["scorer"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.order.set_state(state["order"])
        self.draws.set_state(state["draws"])
        self.best = state["best"]
        self.history = History(**{**state["history"], "config": self.history.config})
        self.history.stopped = ""


def _check_dataset(dataset: RankingDataset, config: TrainConfig) -> None:
    if len(dataset) == 0:
        raise ValueError("fit: the dataset holds no query.")
    if config.lam > 0 and config.disparity in GROUP_DISPARITIES and dataset.groups is None:
        raise ValueError(
            f"fit: disparity={config.disparity!r} with lam > 0 needs groups, and the dataset has "
            "none; pass groups= to RankingDataset, or choose disparity='individual'."
        )
    # In pieces: on the whole array the check would need as much memory again, and more.
    for start in range(0, dataset.n_documents, 8192):
        bad = ~torch.isfinite(dataset.features[start : start + 8192]).all(-1)
        if not bad.any():
            continue
        row = start + int(torch.nonzero(bad)[0])
        query = int(torch.searchsorted(dataset.offsets, row, right=True)) - 1
        raise ValueError(
            f"fit: features of query {dataset.query_ids.tolist()[query]} (document {row}) hold "
            f"{dataset.features[row][~torch.isfinite(dataset.features[row])][0].item()}; "
            "features must be finite."
        )


def _gradient_norm(parameters: list[nn.Parameter]) -> Tensor:
    norms = [p.grad.norm() for p in parameters if p.grad is not None]
    return norms[0] if len(norms) == 1 else torch.stack(norms).norm()


def _square(gradient: Tensor) -> float:
    flat = gradient.numpy().ravel()
    return float(flat @ flat)


def _blame(queries: list[int], epoch: int) -> str:
    """Name the queries whose scores or objective stopped being finite."""
    return (
        f"fit: the objective or its gradient is not finite in epoch {epoch}, at query "
        f"{queries[:5]} of the dataset; try a smaller learning rate or scale the features."
    )
