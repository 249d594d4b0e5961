r"""Position bias and exposure (chapter 4; equation (2) of the paper).

The exposure of a document is the position bias it can expect,
:math:`v_\pi(d_i) = E_{r \sim \pi}[v_{r(d_i)}]`.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.discount import discount_nodes
from fairpg_lite.race import RankGeneratingFunction, log_weights, time_grid
from fairpg_lite.race_exposure import RaceExposure

#: Default accuracy of exact exposure: errors of about 1e-11 in v and 1e-9 in its gradient.
TOLERANCE = 1e-10


def position_bias(
    n: int,
    kind: str = "log2",
    *,
    k: int | None = None,
    decay: float = 0.5,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The share of users ``(n,)`` who look at positions 1..n.

    ``"log2"`` is 1/log2(1+j), the paper's choice and DCG's discount; ``"reciprocal"`` is 1/j;
    ``"geometric"`` is decay**(j-1). With ``k`` nobody looks beyond position k.

    Chapters 1 and 4, eq-01-position-bias; section 2.2 of the paper.

    >>> position_bias(3)
    tensor([1.0000, 0.6309, 0.5000])
    >>> position_bias(4, "reciprocal", k=2)
    tensor([1.0000, 0.5000, 0.0000, 0.0000])
    """
    if n < 1:
        raise ValueError(f"position_bias: n is {n}; there must be at least one position.")
    if k is not None and k < 1:
        raise ValueError(f"position_bias: k is {k}; at least the first position must count.")
    j = torch.arange(1, n + 1, dtype=torch.float64)
    if kind == "log2":
        bias = 1.0 / torch.log2(1.0 + j)
    elif kind == "reciprocal":
        bias = 1.0 / j
    elif kind == "geometric":
        if not 0.0 < decay <= 1.0:
            raise ValueError(f"position_bias: decay is {decay}; it must lie in (0, 1].")
        bias = decay ** (j - 1.0)
    else:
        raise ValueError(
            f"position_bias: kind is {kind!r}; choose 'log2', 'reciprocal' or 'geometric', "
            "or pass your own tensor wherever a position_bias is taken."
        )
    if k is not None:
        bias = torch.where(j <= k, bias, 0.0)
    return bias.to(dtype or torch.get_default_dtype())


@lru_cache(maxsize=1024)
def log2_bias(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The paper's position bias, made once per length; shared, so never written to."""
    return position_bias(n, dtype=dtype).to(device)


def check_bias(where: str, bias: Tensor, n: int) -> None:
    """A position bias must be a finite, non-negative vector that covers all n positions."""
    _check.floating(where, "position_bias", bias)
    if bias.ndim != 1 or len(bias) < n:
        raise ValueError(
            f"{where}: position_bias has shape {tuple(bias.shape)}; "
            f"give a vector with a value for each of the {n} positions."
        )
    _check.non_negative(where, "position_bias", bias)


def ranking_exposure(rankings: Tensor, position_bias: Tensor, mask: Tensor | None = None) -> Tensor:
    """Exposure ``(…, n)`` that given rankings ``(…, n)`` pay to each document: v at its position.

    Padding (``mask`` False) gets zero.

    Chapter 4, eq-04-paid.

    >>> ranking_exposure(torch.tensor([2, 0, 1]), torch.tensor([1.0, 0.6, 0.5]))
    tensor([0.6000, 0.5000, 1.0000])
    """
    n = rankings.shape[-1]
    check_bias("ranking_exposure", position_bias, n)
    exposure = torch.zeros(rankings.shape, dtype=position_bias.dtype, device=rankings.device)
    exposure = exposure.scatter(-1, rankings, position_bias[:n].expand(rankings.shape))
    return exposure if mask is None else exposure * mask


def exact_exposure(
    scores: Tensor,
    position_bias: Tensor | None = None,
    mask: Tensor | None = None,
    tolerance: float = TOLERANCE,
) -> Tensor:
    """Exposure ``(…, n)`` of the Plackett-Luce policy with ``scores (…, n)``, without sampling.

    Differentiable in the scores. ``position_bias=None`` is 1/log2(1+j).
    """
    n = scores.shape[-1]
    if position_bias is not None:
        position_bias = position_bias[:n]
    tolerance = _reachable(tolerance, scores.dtype)
    nodes, coefficients = discount_nodes(n, position_bias, tolerance, scores.dtype)
    log_w = log_weights(scores, mask, tolerance)
    times = _times(log_w, nodes, tolerance)
    device = scores.device
    return RaceExposure.apply(log_w, nodes.to(device), coefficients.to(device), *times)


def exact_position_probs(
    scores: Tensor, mask: Tensor | None = None, tolerance: float = TOLERANCE
) -> Tensor:
    """Probability ``(…, n, n)`` that the document of a row stands at the position of a column.

    The generating function of a rank, read at the roots of unity, is the Fourier transform of the
    rank's distribution.
    """
    n = scores.shape[-1]
    tolerance = _reachable(tolerance, scores.dtype)
    length = n | 1
    frequency = torch.arange(length // 2 + 1, dtype=torch.float64)
    angle = 2.0 * math.pi / length * frequency
    circle = torch.polar(torch.ones_like(angle), angle).to(scores.dtype.to_complex())
    log_w = log_weights(scores, mask, tolerance)
    times = _times(log_w, circle, tolerance)
    generating = RankGeneratingFunction.apply(log_w, circle.to(scores.device), *times)
    # irfft undoes sum_k p_k exp(-i angle k); ours has the other sign, hence the conjugate.
    return torch.fft.irfft(generating.conj(), n=length, dim=-1)[..., :n]


def _times(log_w: Tensor, nodes: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """When to look at the race ``(Q,)``, and the weight of each look ``(Q,)``."""
    digits = -math.log(tolerance)
    step = 8.0 / digits
    if nodes.is_complex():
        # Near z = 1 the integrand varies as fast as the rank itself, which spreads like sqrt(n).
        step = min(step, 4.0 / math.sqrt(digits * min(log_w.shape[-1], 2 * len(nodes))))
    return time_grid(log_w, step, tolerance)


def _reachable(tolerance: float, dtype: torch.dtype) -> float:
    """No finer than the number format allows."""
    if not 0.0 < tolerance < 0.1:
        raise ValueError(f"exposure: tolerance is {tolerance}; give a number such as 1e-6.")
    return max(tolerance, 1e-12 if dtype == torch.float64 else 2e-6)
