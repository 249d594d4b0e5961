"""Scoring models h(x): features ``(…, n, d)`` to scores ``(…, n)``. Any ``nn.Module`` will do."""

import math

import torch
from torch import Tensor, nn


class LinearScorer(nn.Module):
    """One weight per feature, started uniformly within ``init`` of zero (paper: 0.001).

    There is no bias term by default: a Plackett-Luce policy ignores a shift of all scores.

    Chapters 6, 7 and 9.
    """

    def __init__(
        self,
        n_features: int,
        *,
        bias: bool = False,
        init: float = 1e-3,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.linear = nn.Linear(n_features, 1, bias=bias, dtype=dtype)
        _uniform(self, init, generator)

    def forward(self, features: Tensor) -> Tensor:
        # A matrix times a vector: quicker, forward and backward, than a matrix of one column.
        scores = features @ self.linear.weight.view(-1)
        return scores if self.linear.bias is None else scores + self.linear.bias


class MLPScorer(nn.Module):
    """One hidden ReLU layer (the paper: 32 units, all weights in ±1/sqrt(32)).

    Chapter 10.
    """

    def __init__(
        self,
        n_features: int,
        hidden: int = 32,
        *,
        init: float | None = None,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.hidden = nn.Linear(n_features, hidden, dtype=dtype)
        self.output = nn.Linear(hidden, 1, dtype=dtype)
        _uniform(self, 1.0 / math.sqrt(hidden) if init is None else init, generator)

    def forward(self, features: Tensor) -> Tensor:
        return self.output(torch.relu(self.hidden(features))).squeeze(-1)


@torch.no_grad()
def _uniform(module: nn.Module, reach: float, generator: torch.Generator | None) -> None:
    for parameter in module.parameters():
        parameter.uniform_(-reach, reach, generator=generator)
