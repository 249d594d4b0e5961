"""The trade-off curve: Fair-PG-Rank at every lambda and seed, on data of one's own."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpg_lite.data import RankingDataset
from fairpg_lite.models.preparation import Preparation
from fairpg_lite.sweeps.cells import grid
from fairpg_lite.sweeps.experiment import FairPGRank, Splits
from fairpg_lite.sweeps.records import key_of
from fairpg_lite.sweeps.running import run_and_store
from fairpg_lite.sweeps.tables import as_table, collect
from fairpg_lite.training.config import TrainConfig

if TYPE_CHECKING:
    import pandas as pd


def tradeoff(
    train: RankingDataset,
    test: RankingDataset,
    lams: Iterable[float],
    seeds: int | Iterable[int] = 5,
    *,
    out: str | Path,
    valid: RankingDataset | None = None,
    config: TrainConfig | None = None,
    hidden: int | None = None,
    evaluate_options: Mapping[str, Any] | None = None,
    prepare: Preparation | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    timeout: float = 300.0,
    overwrite: bool = False,
    progress: bool = True,
) -> "pd.DataFrame":
    """Train at every lambda and seed, and evaluate on ``test``.

    The table is also ``out/table.csv``, with the settings in ``out/table.json``; the models are
    below ``out/models``. Killed, or stopped by Ctrl-C, the same call goes on where it was; more
    lambdas or seeds are added.

    Args:
        train: The queries to train on.
        test: The queries to evaluate on.
        lams: Weights of the disparity.
        seeds: How many, or which.
        out: The directory of the results.
        valid: The queries to choose the epoch by; None keeps the last epoch.
        config: How to train, but for lambda and seed; None is ``TrainConfig()``.
        hidden: Units of the scorer's hidden layer; None is a linear scorer.
        evaluate_options: Options of `evaluate`, such as ``{"measures": ("ndcg", "d_ind")}``.
        prepare: What made the features, to be stored with the models.
        jobs: Processes on this machine.
        scheduler: Address of a Dask cluster to use instead, ``tcp://host:8786``.
        timeout: Seconds that the cluster may be without a worker.
        overwrite: Compute everything anew.
        progress: Show a progress bar.

    Returns:
        A row for each run, by lambda and seed, with the columns experiment, lam, seed and the
        measures.

    Raises:
        RuntimeError: A run failed. The others are kept, and the same call tries it again.

    >>> import tempfile
    >>> from fairpg_lite import synthetic
    >>> config = TrainConfig(method="exact", epochs=1, batch_size=10)
    >>> with tempfile.TemporaryDirectory() as out:
    ...     table = tradeoff(
    ...         synthetic(20, seed=0), synthetic(20, seed=1), [0, 10], seeds=2, out=out,
    ...         config=config, progress=False,
    ...     )
    >>> len(table)
    4
    >>> list(table.columns)
    ['experiment', 'lam', 'seed', 'ndcg', 'd_group', 'k']
    """
    experiment = FairPGRank(
        Splits(train, test, valid),
        config or TrainConfig(),
        hidden,
        evaluate_options or {},
        prepare=prepare,
    )
    cells = grid(experiment, lams, range(seeds) if isinstance(seeds, int) else seeds)
    records = run_and_store(
        cells,
        Path(out),
        jobs=jobs,
        scheduler=scheduler,
        timeout=timeout,
        overwrite=overwrite,
        progress=progress,
    )
    collect(out)
    failed = [record["error"] for record in records if record["status"] == "failed"]
    if failed:
        raise RuntimeError(
            f"tradeoff: {len(failed)} of {len(cells)} runs failed, the first with "
            f"{failed[0]['type']}: {failed[0]['message']}; the same call tries them again."
        )
    return as_table(sorted(records, key=key_of))
