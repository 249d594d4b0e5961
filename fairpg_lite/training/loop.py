"""PG-Rank and Fair-PG-Rank: the loop over epochs of Algorithm 1 of the paper's appendix."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from fairpg_lite._extras import progress_bar
from fairpg_lite.compiled.epochs import SHARED
from fairpg_lite.data import RankingDataset
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.history import History
from fairpg_lite.training.run import Run


def fit(
    scorer: nn.Module,
    dataset: RankingDataset,
    config: TrainConfig | None = None,
    valid: RankingDataset | None = None,
    *,
    progress: bool = True,
    checkpoint: str | Path | None = None,
) -> History:
    r"""Train a scorer to be useful and fair (chapter 7).

    Maximises the mean over the queries of ``dataset`` of

    .. math:: U(\pi) - \lambda \, D(\pi) + \gamma \, H(\pi)

    by the updates of the paper's Algorithm 1, in which ``config`` chooses every term. See
    eq-07-chain.

    Ctrl-C raises KeyboardInterrupt, as it does anywhere, and keeps the last finished epoch: the
    scorer holds that epoch's weights (with ``valid``, the best finished epoch's) and the checkpoint
    its state, so that the same call goes on from there.

    While it runs, `fit` sets the number of PyTorch's threads to one for the whole process if an
    update is too small to be shared, and sets it back at the end.

    Under ``torchrun``, with `torch.distributed` initialised, every process calls `fit` on its own
    shard of the queries, and an update goes along the mean over the batches of all of them.

    Args:
        scorer: Any module from features ``(…, n, d)`` to scores ``(…, n)``, trained in place, on
            its own device and in its own number format. One whose ``forward`` has an argument
            ``mask`` is told which documents are real.
        dataset: The training queries.
        config: What is maximised, and how; None is ``TrainConfig()``, which samples as the paper
            does.
        valid: Validation queries. The objective is evaluated on them after each epoch, the weights
            of the best epoch are kept, and ``config.patience`` may end the training. None keeps the
            last epoch.
        progress: Whether to show a progress bar on stderr.
        checkpoint: File for the state after each epoch; None writes none. One that is there is
            continued, to the same result bit by bit. It belongs to its data, settings and scorer,
            of which only ``config.epochs`` may grow. Not in distributed training.

    Returns:
        The course of the training, epoch by epoch; ``history.kept`` says which epoch's weights the
        scorer holds.

    Raises:
        ValueError: If data, settings or checkpoint do not fit together.
        FloatingPointError: If a number is no longer finite; the message names epoch and query.

    >>> from fairpg_lite import LinearScorer, synthetic
    >>> scorer = LinearScorer(2, generator=torch.Generator().manual_seed(0))
    >>> config = TrainConfig(lam=10.0, method="exact", lr=0.1, epochs=5)
    >>> history = fit(scorer, synthetic(n_queries=50), config, progress=False)
    >>> len(history), history.stopped, f"NDCG {history.utility[-1]:.2f}"
    (5, 'epochs', 'NDCG 0.94')
    """
    run = Run(scorer, dataset, config or TrainConfig(), valid)
    try:
        if checkpoint is not None:
            run.continue_from(Path(checkpoint))
        with (
            _threads_for(run),
            progress_bar("training", run.config.epochs, "epoch", progress) as bar,
        ):
            bar.update(len(run.history))
            while not run.stops_because_of():
                run.epoch()
                bar.set_postfix(
                    U=run.history.utility[-1], D=run.history.disparity[-1], refresh=False
                )
                bar.update(1)
        run.end(run.stops_because_of())
    except KeyboardInterrupt:
        run.keep_last_finished()
        raise
    return run.history


@contextmanager
def _threads_for(run: Run) -> Iterator[None]:
    """A block with one thread if an update is too small to be shared, else with all of them."""
    numbers_per_update = run.config.batch_size * run.dataset.features.numel() / len(run.dataset)
    threads_before = torch.get_num_threads()
    try:
        if numbers_per_update < SHARED:
            torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(threads_before)
