"""Do "sample" and "exact" learn the same model at the same lambda? Twenty seeds of section 4.2.

python -m benchmarks.sample_or_exact

The authors' schedule (Adam at 0.1, halved every epoch, five epochs, one query at a time) on the
synthetic data, with S = 10 and S = 100 samples and without sampling. Sampling looks at max(0, x) of
a noisy x: the disparity it sees is too large, its slope where x is above zero too small, and where
x is below zero it still gets a gradient at times. On balance it acts like a smaller lambda (chapter
8 measures this). Exact training has none of it.
"""

import torch

from benchmarks import _timing
from fairpg_lite import LinearScorer, TrainConfig, evaluate, fit, synthetic
from fairpg_lite._extras import progress_bar

COMMAND = "python -m benchmarks.sample_or_exact"
LAMBDAS = (0, 1, 3, 5, 8, 10, 25)
SEEDS = 20
WAYS: dict[str, dict] = {
    "sample, S = 10": {"method": "sample", "samples": 10},
    "sample, S = 100": {"method": "sample", "samples": 100},
    "exact": {"method": "exact"},
}


def run(lam: float, seed: int, how: dict) -> dict[str, float]:
    """One training run; the figures are exact and on the training queries, as in the paper."""
    data = synthetic(seed=seed)
    scorer = LinearScorer(2, generator=torch.Generator().manual_seed(seed))
    config = TrainConfig(lam=lam, lr=0.1, lr_decay=0.5, epochs=5, seed=seed, **how)
    history = fit(scorer, data, config, progress=False)
    result = evaluate(scorer, data, samples=1)
    one, two = scorer.linear.weight.flatten().tolist()
    return {
        "ndcg": result.ndcg,
        "d_group": result.d_group,
        "seen_d_group": history.disparity[-1],
        "theta1": one,
        "theta2": two,
    }


def main() -> None:
    """Run the grid, print the means and store everything."""
    torch.set_num_threads(1)
    cells = []
    with progress_bar("runs", len(WAYS) * len(LAMBDAS) * SEEDS, "run") as bar:
        for way, how in WAYS.items():
            for lam in LAMBDAS:
                for seed in range(SEEDS):
                    cells.append({"way": way, "lam": lam, "seed": seed, **run(lam, seed, how)})
                    bar.update(1)
    _timing.store("sample_or_exact", COMMAND, seeds=list(range(SEEDS)), cells=cells)
    print(f"{'way':<18}{'lambda':>7}{'NDCG':>9}{'D_group':>10}{'seen':>9}{'theta2/theta1':>15}")
    for way in WAYS:
        for lam in LAMBDAS:
            mean = means(cells, way, lam)
            ratio = mean["theta2"] / mean["theta1"]
            print(
                f"{way:<18}{lam:>7}{mean['ndcg']:>9.4f}{mean['d_group']:>10.5f}"
                f"{mean['seen_d_group']:>9.5f}{ratio:>15.3f}"
            )


def means(cells: list[dict], way: str, lam: float) -> dict[str, float]:
    mine = [c for c in cells if c["way"] == way and c["lam"] == lam]
    names = ("ndcg", "d_group", "seen_d_group", "theta1", "theta2")
    return {name: sum(c[name] for c in mine) / len(mine) for name in names}


if __name__ == "__main__":
    main()
