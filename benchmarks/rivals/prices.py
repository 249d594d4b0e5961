"""What does a lambda buy, by the way to the gradient and by the step size? Twenty seeds.

python -m benchmarks.rivals.prices

The paper's synthetic data and the authors' schedule (Adam at .1, halved every epoch, five epochs,
one query at a time), and once more at half that rate. Four gradients: the paper's from ten lists,
and from a hundred; the same ten lists with charges taken from the exact exposure, so that the hinge
of the disparity has no bias left and only noise remains; and the exact one. The models are judged
exactly, on the queries that they learned from, as in the paper.
"""

from typing import Any

import torch
from tqdm import tqdm

from benchmarks import _timing
from benchmarks.rivals.learning import Learner, queries_of
from benchmarks.rivals.ways import BY_NAME
from fairpg_lite import synthetic
from fairpg_lite.objective import Objective

COMMAND = "python -m benchmarks.rivals.prices"
STORED = "rivals_prices"
LAMS = (0, 1, 3, 5, 8, 10, 12, 15, 17, 18, 20, 25)
SEEDS = range(20)
RATES = (0.1, 0.05)
EPOCHS = 5
#: Name of the way, and lists per query.
WAYS = (
    ("REINFORCE, mean", 10),
    ("REINFORCE, mean", 100),
    ("exact charges, leave-one-out", 10),
    ("exact", 0),
)


def trained(lam: float, seed: int, way: tuple[str, int], rate: float) -> Learner:
    """A linear scorer after five epochs."""
    data = synthetic(seed=seed, dtype=torch.float64)
    wanted = Objective(lam=float(lam), method="exact")
    name, samples = way
    learner = Learner(queries_of(data, wanted), BY_NAME.get(name), samples, hidden=0, seed=seed)
    for epoch in range(EPOCHS):
        learner.learn(len(data), rate * 0.5**epoch)
    return learner


def main() -> None:
    """Train all, print the means and store everything."""
    torch.set_num_threads(1)
    cells: list[dict[str, Any]] = []
    for lam in tqdm(LAMS):
        for rate in RATES:
            for way in WAYS:
                for seed in SEEDS:
                    learner = trained(lam, seed, way, rate)
                    ndcg, d_group = learner.judged(learner.train)
                    name, samples = way
                    place = {"way": name, "samples": samples, "rate": rate, "lam": lam}
                    theta = [float(x) for x in learner.theta]
                    measured = {"ndcg": ndcg, "d_group": d_group, "theta": theta}
                    cells.append({**place, "seed": seed, **measured})
    _timing.store(STORED, COMMAND, seeds=list(SEEDS), cells=cells)
    print(f"{'way':<32}{'lists':>6}{'rate':>6}" + "".join(f"{lam:>8}" for lam in LAMS))
    for rate in RATES:
        for name, samples in WAYS:
            means = []
            for lam in LAMS:
                key = (name, samples, rate, lam)
                at = [c for c in cells if (c["way"], c["samples"], c["rate"], c["lam"]) == key]
                means.append(sum(c["d_group"] for c in at) / len(at))
            shown = "".join(f"{mean:>8.4f}" for mean in means)
            print(f"{name:<32}{samples:>6}{rate:>6}{shown}")


if __name__ == "__main__":
    main()
