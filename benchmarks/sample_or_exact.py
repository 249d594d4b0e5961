"""Do "sample" and "exact" learn the same model at the same lambda? Twenty seeds of section 4.2.

python -m benchmarks.sample_or_exact

The authors' schedule (Adam at 0.1, halved every epoch, five epochs, one query at a time) on the
synthetic data, with S = 10 and S = 100 samples and without sampling. Sampling looks at max(0, x) of
a noisy x: the disparity it sees is too large, its slope where x is above zero too small, and where
x is below zero it still gets a gradient at times. On balance it acts like a smaller lambda (chapter
8 measures this). Exact training has none of it.
"""

from dataclasses import dataclass
from typing import Any

import torch
from tqdm import tqdm

from benchmarks import _timing
from benchmarks.sweep import SyntheticQueries
from fairpg_lite import LinearScorer, TrainConfig
from fairpg_lite.sweeps import FairPGRank, Trained, grid

COMMAND = "python -m benchmarks.sample_or_exact"
LAMS = (0, 1, 3, 5, 8, 10, 25)
SEEDS = 20
WAYS = {
    "sample, S = 10": TrainConfig(lr=0.1, lr_decay=0.5, epochs=5, samples=10),
    "sample, S = 100": TrainConfig(lr=0.1, lr_decay=0.5, epochs=5, samples=100),
    "exact": TrainConfig(lr=0.1, lr_decay=0.5, epochs=5, method="exact"),
}


@dataclass(frozen=True)
class WithWeights(FairPGRank):
    """The figures are exact and on the training queries, as in the paper; and the two weights."""

    def measure(self, trained: Trained) -> dict[str, Any]:
        """NDCG and D_group, D_group as the last epoch saw it, and the weights."""
        assert isinstance(trained.scorer, LinearScorer)
        measured = super().measure(trained)
        theta1, theta2 = trained.scorer.linear.weight.flatten().tolist()
        return {
            "ndcg": measured["ndcg"],
            "d_group": measured["d_group"],
            "seen_d_group": trained.history.disparity[-1],
            "theta1": theta1,
            "theta2": theta2,
        }


def main() -> None:
    """Run the grid, print the means and store everything."""
    torch.set_num_threads(1)
    runs = []
    for way, config in WAYS.items():
        experiment = WithWeights(SyntheticQueries(), config)
        for cell in tqdm(grid(experiment, LAMS, range(SEEDS)), desc=way):
            measured = experiment(cell.lam, cell.seed)
            runs.append({"way": way, "lam": cell.lam, "seed": cell.seed, **measured})
    _timing.store("sample_or_exact", COMMAND, seeds=list(range(SEEDS)), cells=runs)
    print(f"{'way':<18}{'lambda':>7}{'NDCG':>9}{'D_group':>10}{'seen':>9}{'theta2/theta1':>15}")
    for way in WAYS:
        for lam in LAMS:
            mean = means(runs, way, lam)
            ratio = mean["theta2"] / mean["theta1"]
            print(
                f"{way:<18}{lam:>7}{mean['ndcg']:>9.4f}{mean['d_group']:>10.5f}"
                f"{mean['seen_d_group']:>9.5f}{ratio:>15.3f}"
            )


def means(runs: list[dict[str, Any]], way: str, lam: float) -> dict[str, float]:
    """The means over the seeds of one way and lambda."""
    seeds = [run for run in runs if run["way"] == way and run["lam"] == lam]
    names = ("ndcg", "d_group", "seen_d_group", "theta1", "theta2")
    return {name: sum(run[name] for run in seeds) / len(seeds) for name in names}


if __name__ == "__main__":
    main()
