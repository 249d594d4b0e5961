"""Write what the explorable `train` needs of the module: `python -m tools.explorable_data`.

The paper's synthetic queries, the order in which `fit` takes them, and a map of NDCG and D_group
over the two weights of a linear scorer. The page trains by itself; the map, a second of work there,
is stored. tests/book/test_explorables.py compares all of it with the module.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import torch

from fairpg_lite import evaluate, synthetic

FOLDER = Path(__file__).resolve().parents[1] / "book" / "explorables"
SEED = 0
EPOCHS = 5
#: The map's corner nearest to zero, its far corner, and the number of points on each side.
LOW, HIGH, POINTS = -1.0, 7.0, 33
#: What the largest stored number, 65535, stands for.
NDCG_SCALE, D_GROUP_SCALE = 1.0, 0.05
#: Features lie between 0 and this; six bytes keep them to 1e-14.
FEATURE_SCALE = 4.0


def packed(numbers: np.ndarray) -> str:
    """The bytes of an array, lowest first, as text."""
    little = numbers.astype(numbers.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode()


def in_six_bytes(numbers: np.ndarray) -> str:
    """Numbers between 0 and `FEATURE_SCALE` in six bytes each, lowest first."""
    whole = np.round(numbers / FEATURE_SCALE * 2.0**48).astype("<u8")
    return packed(whole.reshape(-1, 1).view(np.uint8)[:, :6])


def orders() -> list[list[int]]:
    """The order of the queries in each epoch, as `fit` draws it with this seed."""
    generator = torch.Generator().manual_seed(2 * SEED)
    return [torch.randperm(100, generator=generator).tolist() for _ in range(EPOCHS)]


def surface() -> tuple[np.ndarray, np.ndarray]:
    """NDCG and D_group at every pair of weights [second, first], each a square of numbers."""
    data = synthetic(seed=SEED, dtype=torch.float64)
    axis = np.linspace(LOW, HIGH, POINTS)
    ndcg = np.zeros((POINTS, POINTS))
    d_group = np.zeros((POINTS, POINTS))
    for row, second in enumerate(axis):
        for column, first in enumerate(axis):
            weights = torch.tensor([first, second], dtype=torch.float64)
            evaluation = evaluate(data.features @ weights, data, measures=("ndcg", "d_group"))
            ndcg[row, column] = evaluation.ndcg
            d_group[row, column] = evaluation.d_group
    return ndcg, d_group


def as_short(numbers: np.ndarray, scale: float) -> str:
    """Numbers between 0 and `scale` in two bytes each."""
    return packed(np.round(numbers / scale * 65535).astype(np.uint16))


def main() -> None:
    """Write book/explorables/train_data.js."""
    data = synthetic(seed=SEED, dtype=torch.float64)
    features = data.features.clone()
    # The second feature is hidden for group 1; its relevance, if not cut, tells what it was.
    groups = data.groups
    if groups is None:
        raise RuntimeError("explorable_data: the synthetic set has no groups.")
    hidden = groups == 1
    features[hidden, 1] = (data.relevance - features[:, 0])[hidden]
    ndcg, d_group = surface()
    content = {
        "x": in_six_bytes(features.numpy()),
        "scale": FEATURE_SCALE,
        "groups": "".join(str(int(g)) for g in groups),
        "documents": 10,
        "clip": 5,
        "orders": orders(),
        "map": {
            "low": LOW,
            "high": HIGH,
            "points": POINTS,
            "ndcg": as_short(ndcg, NDCG_SCALE),
            "dGroup": as_short(d_group, D_GROUP_SCALE),
            "scales": [NDCG_SCALE, D_GROUP_SCALE],
        },
    }
    text = json.dumps(content, separators=(",", ":"))
    source = "/* Made by tools/explorable_data.py. */\n"
    file = FOLDER / "train_data.js"
    file.write_text(f"{source}fairpg.trainData = {text};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
