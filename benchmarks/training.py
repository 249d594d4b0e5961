"""How much faster is ``fit`` than the paper's loop taken literally?

python -m benchmarks.training
"""

from collections.abc import Callable

import matplotlib.pyplot as plt
import torch
from torch import nn

from benchmarks import _timing, literal
from fairpg_lite import (
    LinearScorer,
    MLPScorer,
    RankingDataset,
    TrainConfig,
    german_credit,
    yahoo_like,
)
from fairpg_lite.figures import use_style
from fairpg_lite.train import _Run

COMMAND = "python -m benchmarks.training"
# Queries per round: a random handful for the literal loop, more for one query at a time, and as
# many as are sorted by length together (50 batches of 64) for batches.
LITERAL, SINGLE, BATCHED = 20, 256, 3200
COARSE = "exact 64, 1e-4"
ROUNDS = 5


def literal_epoch(
    scorer: nn.Module, data: RankingDataset, samples: int, lam: float, disparity: str
) -> Callable[[], None]:
    """The literal loop over the queries of ``data``."""
    optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-5)
    generator = torch.Generator().manual_seed(0)

    def run() -> None:
        for query in data:
            literal.step(
                scorer,
                optimizer,
                query,
                lam=lam,
                samples=samples,
                disparity=disparity,
                generator=generator,
            )

    return run


def fit_epoch(scorer: nn.Module, data: RankingDataset, config: TrainConfig) -> Callable[[], None]:
    """One epoch of ``fit``, without its setting up."""
    return _Run(scorer, data, config, None).epoch


def scoring_epoch(scorer: nn.Module, data: RankingDataset, size: int) -> Callable[[], None]:
    """The floor: the scorer's forward and backward on the same batches, and nothing else."""

    def run() -> None:
        g = torch.Generator().manual_seed(0)
        for batch in data.batches(size, shuffle=True, generator=g, reuse=True):
            scorer.zero_grad(set_to_none=True)
            scorer(batch.features).sum().backward()

    return run


def reading_epoch(data: RankingDataset) -> Callable[[], None]:
    """A pass over the features at memory speed."""

    def run() -> None:
        data.features.sum()

    return run


def measure(
    name: str, data: RankingDataset, model: type, samples: int, lam: float, disparity: str
) -> dict:
    """Microseconds per query of every way to train one model on one data set."""

    def scorer() -> nn.Module:
        return model(data.n_features, generator=torch.Generator().manual_seed(0))

    def config(method: str, size: int, tolerance: float = 1e-5) -> TrainConfig:
        return TrainConfig(
            lam=lam,
            disparity=disparity,
            method=method,
            samples=samples,
            batch_size=size,
            lr=1e-5,
            tolerance=tolerance,
        )

    chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    parts = {1: data.subset(chosen[:SINGLE]), 64: data}
    few = data.subset(chosen[:LITERAL])
    work = {"literal": literal_epoch(scorer(), few, samples, lam, disparity)}
    queries = {"literal": len(few), "reading": len(data)}
    for size, part in parts.items():
        for method in ("sample", "exact"):
            work[f"{method} {size}"] = fit_epoch(scorer(), part, config(method, size))
        work[f"scoring {size}"] = scoring_epoch(scorer(), part, size)
        queries |= {f"{way} {size}": len(part) for way in ("sample", "exact", "scoring")}
    # Near-uniform scores: 1e-5 is 2e-6 off in exposure and 2e-4 in its gradient, 1e-4 is 4e-5 and
    # 2e-3; sampling's gradient is off by more than itself.
    work[COARSE] = fit_epoch(scorer(), data, config("exact", 64, tolerance=1e-4))
    queries[COARSE] = len(data)
    work["reading"] = reading_epoch(data)
    spent = _timing.interleaved(work, ROUNDS)
    per_query = {key: value / queries[key] * 1e6 for key, value in spent.items()}
    return {"data": name, "model": model.__name__, "lam": lam, "microseconds": per_query}


def table(rows: list[dict]) -> str:
    ways = ["sample 1", "exact 1", "sample 64", "exact 64", COARSE]
    ways += ["scoring 1", "scoring 64", "reading"]
    lines = [
        f"{'times faster than the literal loop':<40}" + "".join(f"{way:>15}" for way in ways),
    ]
    for row in rows:
        spent = row["microseconds"]
        label = f"{row['threads']} threads: {row['data']}, {row['model'][:-6]}, λ={row['lam']:g}"
        ratios = "".join(f"{spent['literal'] / spent[way]:>15,.0f}" for way in ways)
        lines.append(f"{label:<40}{ratios}")
    return "\n".join(lines)


def draw(rows: list[dict]) -> None:
    use_style()
    counts = sorted({row["threads"] for row in rows})
    figure, axes = plt.subplots(
        len(counts), figsize=(8, 3.6 * len(counts)), sharex=True, squeeze=False
    )
    for axis, threads in zip(axes.flat, counts, strict=True):
        _bars(axis, [row for row in rows if row["threads"] == threads])
        axis.set_title(f"{threads} thread{'s' * (threads > 1)}", loc="left", fontsize=9)
    axes[0, 0].legend(ncols=5, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 1.16))
    _timing.save_figure(figure, "training")


def _bars(axis: plt.Axes, rows: list[dict]) -> None:
    ways = ["sample 1", "exact 1", "sample 64", "exact 64", "scoring 64"]
    width = 0.8 / len(ways)
    for k, way in enumerate(ways):
        heights = [row["microseconds"]["literal"] / row["microseconds"][way] for row in rows]
        axis.bar([i + (k - 2) * width for i in range(len(rows))], heights, width, label=way)
    labels = [f"{r['data']}\n{r['model']}\nλ={r['lam']:g}" for r in rows]
    axis.set_xticks(range(len(rows)), labels, fontsize=7)
    axis.set_yscale("log")
    axis.set_ylabel("times the literal loop")


def main() -> None:
    """Measure, print, store and draw: on one thread, and on as many as PyTorch takes by itself."""
    yahoo = yahoo_like(BATCHED, seed=0)
    german, _ = german_credit(seed=0)
    problems = [("Yahoo-shaped", yahoo, 10, "individual"), ("German Credit", german, 25, "group")]
    rows: list[dict] = []
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        for name, data, samples, disparity in problems:
            for model in (LinearScorer, MLPScorer):
                for lam in (0.0, 1.0):
                    row = measure(name, data, model, samples, lam, disparity)
                    rows.append({**row, "threads": threads})
                    print(table(rows[-1:]) if len(rows) == 1 else table(rows[-1:]).splitlines()[1])
    _timing.store("training", COMMAND, rows=rows)
    draw(rows)


if __name__ == "__main__":
    main()
