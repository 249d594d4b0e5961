"""The trade-off curve: training at every lambda and seed."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fairpg_lite.data import RankingDataset
from fairpg_lite.evaluation import evaluate
from fairpg_lite.models.model_file import save_model
from fairpg_lite.models.preparation import Preparation
from fairpg_lite.scorers import new_scorer
from fairpg_lite.sweeps.records import collect, grid, key, load_cells
from fairpg_lite.sweeps.running import as_table, run_cells
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.loop import fit

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Training:
    """Fair-PG-Rank on one data set, as an experiment of a sweep: train, then judge on ``test``."""

    train: RankingDataset
    test: RankingDataset
    valid: RankingDataset | None
    config: TrainConfig
    hidden: int | None
    judge: Mapping[str, Any]
    name = "Fair-PG-Rank"

    def __call__(self, lam: float, seed: int) -> dict[str, Any]:
        scorer = new_scorer(
            self.train.n_features, self.hidden, seed=seed, dtype=self.train.features.dtype
        )
        config = replace(self.config, lam=lam, seed=seed)
        fit(scorer, self.train, config, valid=self.valid, progress=False)
        judge: Any = {name: math.nan if v == "nan" else v for name, v in self.judge.items()}
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
    **how: Any,
) -> "pd.DataFrame":
    """Train at every lambda and seed, judge on ``test``; returns a row per run (chapter 15).

    Columns: method, lam, seed, then the measures of `evaluate`. It is also ``out/table.csv``, with
    the settings in ``out/table.json``; the models are below ``out/models``. Killed, the same call
    goes on where it was; more lambdas or seeds are added. A run that fails is a RuntimeError in the
    end, and the others are kept.

    ``seeds`` says how many, or which; ``valid`` chooses the epoch; ``hidden`` makes a layer of so
    many units; ``judge`` has options of `evaluate`, such as ``{"k": 10}``; ``prepare``, which made
    the features, is stored with the models; ``how`` is that of `run_cells`.
    """
    out, numbers = Path(out), range(seeds) if isinstance(seeds, int) else seeds
    config = config or TrainConfig()
    # NaN, by which `evaluate` leaves undefined queries out, is no JSON.
    judge = {name: "nan" if v != v else v for name, v in (judge or {}).items()}
    cells = grid(Training(train, test, valid, config, hidden, judge), lams, numbers)
    records = run_cells(cells, out, **how)
    for cell, record in zip(cells, records, strict=True):
        if weights := record.get("result", {}).get("weights"):
            dtype = train.features.dtype
            scorer = new_scorer(train.n_features, hidden, seed=cell.seed, dtype=dtype)
            scorer.load_state_dict({n: torch.tensor(v, dtype=dtype) for n, v in weights.items()})
            used = replace(config, lam=cell.lam, seed=cell.seed)
            where = out / "models" / cell.path("").with_suffix("")
            save_model(scorer, where, prepare=prepare, config=used, overwrite=True)
    collect(out, without=("weights",))
    failed = [record["error"] for record in records if record["status"] == "failed"]
    if failed:
        raise RuntimeError(
            f"tradeoff: {len(failed)} of {len(cells)} runs failed, the first with "
            f"{failed[0]['type']}: {failed[0]['message']}; the same call tries them again."
        )
    asked = {(Training.name, cell.lam, cell.seed) for cell in cells}
    return as_table([record for record in load_cells(out) if key(record) in asked])
