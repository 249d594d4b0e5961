r"""Position bias and exposure (chapter 4; equation (2) of the paper).

The exposure of a document is the position bias it can expect,
:math:`v_\pi(d_i) = E_{r \sim \pi}[v_{r(d_i)}]`.
"""

from functools import lru_cache

import torch
from torch import Tensor

from fairpg_lite import _check


def position_bias(
    n: int,
    kind: str = "log2",
    *,
    k: int | None = None,
    decay: float = 0.5,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The share of users ``(n,)`` who look at positions 1..n; none beyond ``k``.

    "log2" is 1/log2(1+j), the paper's choice and DCG's discount; "reciprocal" is 1/j; "geometric"
    is decay**(j-1). Chapters 1 and 4, eq-01-position-bias; section 2.2 of the paper.

    >>> position_bias(4, "reciprocal", k=2)
    tensor([1.0000, 0.5000, 0.0000, 0.0000])
    """
    if n < 1 or (k is not None and k < 1) or not 0.0 < decay <= 1.0:
        found = f"n is {n}, k is {k} and decay is {decay}"
        raise ValueError(f"position_bias: {found}; give a position, and a decay in (0, 1].")
    j = torch.arange(1, n + 1, dtype=torch.float64)
    kinds = {
        "log2": 1.0 / torch.log2(1.0 + j),
        "reciprocal": 1.0 / j,
        "geometric": decay ** (j - 1),
    }
    if kind not in kinds:
        raise ValueError(f"position_bias: kind is {kind!r}; choose one of {list(kinds)}.")
    bias = kinds[kind] if k is None else torch.where(j <= k, kinds[kind], 0.0)
    return bias.to(dtype or torch.get_default_dtype())


@lru_cache(maxsize=1024)
@torch.inference_mode(False)
def log2_bias(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    # Shared, so never written to, and made outside inference mode: a gradient may need it later.
    return position_bias(n, dtype=dtype).to(device)


def bias_like(where: str, bias: Tensor | None, like: Tensor) -> Tensor:
    """A given position bias, or else the paper's, ``(n,)`` for tensors ``like (…, n)``."""
    n = like.shape[-1]
    if bias is None:
        return log2_bias(n, like.dtype, like.device)
    check_bias(where, bias, n)
    return bias[:n].to(like)


def check_bias(where: str, bias: Tensor, n: int) -> None:
    """A position bias must be a finite, non-negative vector that covers all n positions."""
    _check.floating(where, "position_bias", bias)
    if bias.ndim != 1 or len(bias) < n:
        found = f"position_bias has shape {tuple(bias.shape)}"
        raise ValueError(f"{where}: {found}; give a value for each of the {n} positions.")
    _check.finite(where, "position_bias", bias, least=0.0)


def ranking_exposure(rankings: Tensor, position_bias: Tensor, mask: Tensor | None = None) -> Tensor:
    """Exposure ``(…, n)`` that given rankings ``(…, n)`` pay to each document: v at its position.

    Padding (``mask`` False) gets zero. Chapter 4, eq-04-paid.

    >>> ranking_exposure(torch.tensor([2, 0, 1]), torch.tensor([1.0, 0.6, 0.5]))
    tensor([0.6000, 0.5000, 1.0000])
    """
    n = rankings.shape[-1]
    check_bias("ranking_exposure", position_bias, n)
    exposure = torch.zeros(rankings.shape, dtype=position_bias.dtype, device=rankings.device)
    exposure = exposure.scatter(-1, rankings, position_bias[:n].expand(rankings.shape))
    return exposure if mask is None else exposure * mask
