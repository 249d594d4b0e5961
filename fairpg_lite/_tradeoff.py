"""A ready sweep for one's own data: Fair-PG-Rank at every lambda and seed (chapter 15)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fairpg_lite._records import key
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluate import evaluate
from fairpg_lite.models import save_model
from fairpg_lite.preparation import Preparation
from fairpg_lite.sweep import as_table, collect, grid, load_cells, run_cells
from fairpg_lite.train import fit, new_scorer

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Training:
    """Fair-PG-Rank on one data set, as an experiment of a sweep: train, then judge on ``test``."""

    train: RankingDataset
    test: RankingDataset
    valid: RankingDataset | None = None
    config: TrainConfig = field(default_factory=TrainConfig)
    hidden: int | None = None
    judge: Mapping[str, Any] = field(default_factory=dict)
    name: str = "fair_pg_rank"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        scorer = new_scorer(self.train, self.hidden, seed)
        config = replace(self.config, lam=lam, seed=seed)
        fit(scorer, self.train, config, valid=self.valid, progress=False)
        judge: dict[str, Any] = {
            name: math.nan if v == "nan" else v for name, v in self.judge.items()
        }
        found = evaluate(scorer, self.test, **judge).to_dict()
        measures = {n: None if v is None or math.isnan(v) else v for n, v in found.items()}
        weights = {name: value.tolist() for name, value in scorer.state_dict().items()}
        return {**measures, "weights": weights}


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
    judge: Mapping[str, Any] | None = None,
    prepare: Preparation | None = None,
    name: str = "fair_pg_rank",
    **how: Any,
) -> "pd.DataFrame":
    """Train at every lambda and seed and judge on ``test``: a table with one row for each run.

    Columns: method (``name``), lam, seed, then the measures of `evaluate` with the options
    ``judge``. It is also ``out/table.csv``, with the settings in ``out/table.json``; the model of
    each run is below ``out/models``, for `load_model`. ``seeds`` says how many runs at each lambda,
    or their seeds; ``valid`` chooses the epoch, ``hidden`` makes a hidden layer of so many units,
    ``prepare`` is stored with the models, ``how`` is that of `run_cells`. Killed, the same call
    goes on where it was; more lambdas or seeds are added. If runs fail, the others are kept, and a
    RuntimeError names one.

    Chapter 15.

    >>> import tempfile
    >>> from fairpg_lite import TrainConfig, synthetic
    >>> train, test, config = synthetic(8), synthetic(4, seed=1), TrainConfig(epochs=2, lr=0.1)
    >>> with tempfile.TemporaryDirectory() as out:
    ...     table = tradeoff(train, test, [0, 10], 2, out=out, config=config, progress=False)
    >>> list(table.columns[:4]), len(table)
    (['method', 'lam', 'seed', 'ndcg'], 4)
    """
    out, numbers = Path(out), range(seeds) if isinstance(seeds, int) else seeds
    config = config or TrainConfig()
    # NaN, by which `evaluate` leaves undefined queries out, is no JSON.
    judge = {name: "nan" if v != v else v for name, v in (judge or {}).items()}
    training = Training(train, test, valid, config, hidden, judge, name)
    cells = grid(training, lams, numbers)
    records = run_cells(cells, out, **how)
    for cell, record in zip(cells, records, strict=True):
        if weights := record.get("result", {}).get("weights"):
            scorer, dtype = new_scorer(train, hidden, cell.seed), train.features.dtype
            scorer.load_state_dict({n: torch.tensor(v, dtype=dtype) for n, v in weights.items()})
            used = replace(config, lam=cell.lam, seed=cell.seed)
            where = out / "models" / name / cell.path("").stem
            save_model(scorer, where, prepare=prepare, config=used, overwrite=True)
    collect(out, without=("weights",))
    failed = [record["error"] for record in records if record["status"] == "failed"]
    if failed:
        raise RuntimeError(
            f"tradeoff: {len(failed)} of {len(cells)} runs failed, the first with "
            f"{failed[0]['type']}: {failed[0]['message']}; the same call tries them again."
        )
    asked = {(name, cell.lam, cell.seed) for cell in cells}
    return as_table([record for record in load_cells(out) if key(record) in asked])
