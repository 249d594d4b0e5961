"""Scoring models h(x): features ``(…, n, d)`` to scores ``(…, n)``.

Any ``nn.Module`` will do. One whose ``forward`` has an argument ``mask`` is given it: a scorer that
looks at the whole list has to leave padding out.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from fairpg_lite.batch import Batch


class Scorer(Protocol):
    """Anything that scores: a module, or a function of features, and of ``mask`` if it wants."""

    def __call__(self, features: Tensor, /) -> Tensor:
        """One score for each document.

        Args:
            features: ``(…, n, d)``, padding zero.

        Returns:
            ``(…, n)``, higher is better.
        """
        ...


class LinearScorer(nn.Module):
    """One weight per feature (chapters 6, 7 and 9).

    There is no bias term by default: a Plackett-Luce policy ignores a shift of all scores.

    Args:
        n_features: Length d of a document's features.
        bias: Whether to add a constant all the same.
        init: Weights start uniformly within this distance of zero (paper: 0.001).
        generator: Where the start comes from; None is torch's own stream.
        dtype: Number format of the weights; None is torch's default.

    >>> LinearScorer(5)(torch.zeros(2, 10, 5)).shape
    torch.Size([2, 10])
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
        _start_uniformly(self, init, generator)

    def forward(self, features: Tensor) -> Tensor:
        """Scores ``(…, n)`` of features ``(…, n, d)``."""
        # A matrix times a vector: quicker, forward and backward, than a matrix of one column.
        scores = features @ self.linear.weight.view(-1)
        return scores if self.linear.bias is None else scores + self.linear.bias


class MLPScorer(nn.Module):
    """One hidden ReLU layer, weights started uniformly in ±1/sqrt(hidden).

    The output has no bias: a Plackett-Luce policy ignores a shift of all scores.

    Args:
        n_features: Length d of a document's features.
        hidden: Units of the hidden layer (paper: 32).
        generator: Where the start comes from; None is torch's own stream.
        dtype: Number format of the weights; None is torch's default.

    >>> MLPScorer(5, hidden=8)(torch.zeros(2, 10, 5)).shape
    torch.Size([2, 10])
    """

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
        # The bias is drawn with the other weights and then dropped, so that a seed starts the
        # network with which the stored results were made.
        self.output = nn.Linear(hidden, 1, dtype=dtype)
        _start_uniformly(self, 1.0 / math.sqrt(hidden), generator)
        self.output.register_parameter("bias", None)

    def forward(self, features: Tensor) -> Tensor:
        """Scores ``(…, n)`` of features ``(…, n, d)``."""
        scores: Tensor = self.output(torch.relu(self.hidden(features)))
        return scores.squeeze(-1)


def new_scorer(
    n_features: int, hidden: int | None = None, *, seed: int = 0, dtype: torch.dtype | None = None
) -> LinearScorer | MLPScorer:
    """An untrained scorer, started by a seed.

    Args:
        n_features: Length d of a document's features.
        hidden: Units of a hidden layer; None is a linear scorer.
        seed: Fixes the start.
        dtype: Number format of the weights; None is torch's default.

    Returns:
        A `LinearScorer` or an `MLPScorer`.

    >>> new_scorer(5, hidden=3)
    MLPScorer(
      (hidden): Linear(in_features=5, out_features=3, bias=True)
      (output): Linear(in_features=3, out_features=1, bias=False)
    )
    """
    generator = torch.Generator().manual_seed(seed)
    if hidden is None:
        return LinearScorer(n_features, generator=generator, dtype=dtype)
    return MLPScorer(n_features, hidden, generator=generator, dtype=dtype)


def score(scorer: Scorer, batch: Batch) -> Tensor:
    """Scores ``(B, n)`` of a batch, the mask given to a scorer that takes one."""
    if takes_mask(scorer):
        scores = scorer(batch.features, mask=batch.mask)  # type: ignore[call-arg]
    else:
        scores = scorer(batch.features)
    if not isinstance(scores, Tensor):
        raise TypeError(
            f"score: the scorer makes a {type(scores).__name__} of features "
            f"{tuple(batch.features.shape)}; it must make a tensor."
        )
    if scores.shape != batch.mask.shape:
        raise ValueError(
            f"score: the scorer makes {tuple(scores.shape)} of features "
            f"{tuple(batch.features.shape)}; give one score per document, "
            f"{tuple(batch.mask.shape)}, for example with .squeeze(-1)."
        )
    return scores


def takes_mask(scorer: Scorer) -> bool:
    """Whether ``scorer`` has an argument named ``mask``."""
    wrapped = getattr(scorer, "module", None)
    while isinstance(wrapped, nn.Module):  # in DistributedDataParallel and its like
        scorer = wrapped
        wrapped = getattr(scorer, "module", None)
    function: Callable[..., object] = scorer
    if isinstance(scorer, nn.Module):
        function = type(scorer).forward
    try:
        return "mask" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C: no signature to read
        return False


@contextmanager
def eval_mode(scorer: object) -> Iterator[None]:
    """Evaluation mode (no dropout) without gradients; each part's own mode is put back after."""
    parts = list(scorer.modules()) if isinstance(scorer, nn.Module) else []
    modes = [part.training for part in parts]
    for part in parts:
        part.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


@torch.no_grad()
def _start_uniformly(module: nn.Module, reach: float, generator: torch.Generator | None) -> None:
    for parameter in module.parameters():
        parameter.uniform_(-reach, reach, generator=generator)
