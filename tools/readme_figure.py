"""Draw the figure of README.md from the module: `python tools/readme_figure.py`."""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from fairpg_lite import (
    LinearScorer,
    PlackettLuce,
    TrainConfig,
    evaluate,
    fit,
    position_bias,
    synthetic,
)
from fairpg_lite.figures import PALETTE, use_style

TARGET = Path(__file__).resolve().parent.parent / "book" / "images" / "readme.png"
LAMBDAS = (0, 5, 8, 10, 15, 25)
BLUE, ORANGE = PALETTE["blue"], PALETTE["orange"]


def candidates() -> tuple[Tensor, Tensor]:
    """Exposure of five men at .89 and five women at .88: sorted, and with scores ten times that."""
    merit = torch.tensor([0.89] * 5 + [0.88] * 5, dtype=torch.float64)
    return position_bias(10, dtype=torch.float64), PlackettLuce(10 * merit).exposure()


def trade_off() -> list[tuple[float, float]]:
    """(NDCG, D_group) of Fair-PG-Rank on the synthetic data for each lambda; as in README.md."""
    data, points = synthetic(seed=0), []
    for lam in LAMBDAS:
        scorer = LinearScorer(2, generator=torch.Generator().manual_seed(0))
        config = TrainConfig(lam=lam, method="exact", lr=0.1, epochs=10, batch_size=10)
        fit(scorer, data, config, progress=False)
        result = evaluate(scorer, data)
        points.append((result.ndcg, result.d_group))
    return points


def draw(path: Path = TARGET) -> None:
    use_style()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    sorted_exposure, stochastic = candidates()
    colours = [BLUE] * 5 + [ORANGE] * 5
    places = torch.arange(10)
    left.bar(places - 0.2, sorted_exposure, 0.4, color=colours)
    left.bar(places + 0.2, stochastic, 0.4, color=colours, alpha=0.45)
    left.set_xticks([2, 7], ["five men, merit .89", "five women, merit .88"])
    left.set_ylabel("exposure")
    left.set_title("Sorted (solid) or stochastic (pale)", fontsize=10)
    ndcg, disparity = zip(*trade_off(), strict=True)
    right.plot(disparity, ndcg, "o-", color=BLUE)
    for lam, x, y in zip(LAMBDAS, disparity, ndcg, strict=True):
        right.annotate(
            f"λ = {lam}", (x, y), textcoords="offset points", xytext=(7, -11), fontsize=8
        )
    right.set_xlabel("group disparity (lower is fairer)")
    right.set_ylabel("NDCG (higher is better)")
    right.set_title("Fair-PG-Rank on the paper's synthetic data", fontsize=10)
    right.margins(x=0.15, y=0.12)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    torch.set_num_threads(1)
    draw()
