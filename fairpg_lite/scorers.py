"""Scoring models h(x): features ``(…, n, d)`` to scores ``(…, n)``.

Any ``nn.Module`` will do. One whose ``forward`` has an argument ``mask`` is given it: a scorer that
looks at the whole list has to leave padding out.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from fairpg_lite.batch import Batch

#: Anything that scores, a module or a function of features (and mask).
Scorer = Callable[..., Tensor]


def score(scorer: Scorer, batch: Batch) -> Tensor:
    """Scores ``(B, n)`` of a batch, the mask given to a scorer that takes one."""
    scores = scorer(batch.features, **({"mask": batch.mask} if takes_mask(scorer) else {}))
    if not isinstance(scores, Tensor) or scores.shape != batch.mask.shape:
        found = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(
            f"score: the scorer makes {found} of features {tuple(batch.features.shape)}; give one "
            f"score per document, {tuple(batch.mask.shape)}, for example with .squeeze(-1)."
        )
    return scores


def takes_mask(scorer: Scorer) -> bool:
    """Whether ``scorer`` has an argument named ``mask``."""
    while isinstance(wrapped := getattr(scorer, "module", None), nn.Module):
        scorer = wrapped  # in DistributedDataParallel and its like
    function = type(scorer).forward if isinstance(scorer, nn.Module) else scorer
    try:
        return "mask" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C: no signature to read
        return False


@contextmanager
def eval_mode(scorer: object) -> Iterator[None]:
    """Evaluation mode (no dropout) without gradients; each part's own mode is put back after."""
    parts = list(scorer.modules()) if isinstance(scorer, nn.Module) else []
    before = [part.training for part in parts]
    for part in parts:
        part.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in zip(parts, before, strict=True):
            part.training = mode


class LinearScorer(nn.Module):
    """One weight per feature, started uniformly within ``init`` of zero (paper: 0.001).

    There is no bias term by default: a Plackett-Luce policy ignores a shift of all scores
    (chapters 6, 7 and 9).
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
    """One hidden ReLU layer, in the paper 32 units, weights in ±1/sqrt(hidden) (chapter 10)."""

    def __init__(
        self,
        n_features: int,
        hidden: int = 32,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.hidden = nn.Linear(n_features, hidden, dtype=dtype)
        self.output = nn.Linear(hidden, 1, dtype=dtype)
        _uniform(self, 1.0 / math.sqrt(hidden), generator)
        # Dropped only now: the first edition drew it, and the same seed should start the same.
        self.output.register_parameter("bias", None)

    def forward(self, features: Tensor) -> Tensor:
        return self.output(torch.relu(self.hidden(features))).squeeze(-1)


@torch.no_grad()
def _uniform(module: nn.Module, reach: float, generator: torch.Generator | None) -> None:
    for parameter in module.parameters():
        parameter.uniform_(-reach, reach, generator=generator)
