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
    """The share of users who look at each position.

    Chapters 1 and 4, eq-01-position-bias; section 2.2 of the paper.

    Args:
        n: Number of positions.
        kind: "log2" is 1/log2(1+j), the paper's choice and DCG's discount; "reciprocal" is 1/j;
            "geometric" is decay**(j-1).
        k: Nobody looks beyond this position; None is no such limit.
        decay: The factor from one position to the next, of "geometric" only.
        dtype: Number format of the result; None is torch's default.

    Returns:
        ``(n,)``, from position 1 to n.

    >>> position_bias(4, "reciprocal", k=2)
    tensor([1.0000, 0.5000, 0.0000, 0.0000])
    """
    if n < 1:
        raise ValueError(f"position_bias: n is {n}; give one position at least.")
    if k is not None and k < 1:
        raise ValueError(f"position_bias: k is {k}; look at one position at least.")
    if not 0.0 < decay <= 1.0:
        raise ValueError(f"position_bias: decay is {decay}; give a factor above 0 and at most 1.")
    position = torch.arange(1, n + 1, dtype=torch.float64)
    if kind == "log2":
        bias = 1.0 / torch.log2(1.0 + position)
    elif kind == "reciprocal":
        bias = 1.0 / position
    elif kind == "geometric":
        bias = decay ** (position - 1)
    else:
        raise ValueError(
            f"position_bias: kind is {kind!r}; choose 'log2', 'reciprocal' or 'geometric'."
        )
    if k is not None:
        bias = torch.where(position <= k, bias, 0.0)
    return bias.to(dtype or torch.get_default_dtype())


def ranking_exposure(rankings: Tensor, position_bias: Tensor, mask: Tensor | None = None) -> Tensor:
    """Exposure that given rankings pay to each document: the bias at its position.

    Chapter 4, eq-04-paid.

    Args:
        rankings: ``(…, n)``, the document at each position.
        position_bias: ``(n,)`` or longer.
        mask: ``(…, n)``, True for a real document; padding gets zero. None: all are real.

    Returns:
        ``(…, n)``, by document.

    >>> ranking_exposure(torch.tensor([2, 0, 1]), torch.tensor([1.0, 0.6, 0.5]))
    tensor([0.6000, 0.5000, 1.0000])
    """
    n = rankings.shape[-1]
    check_bias("ranking_exposure", position_bias, n)
    exposure = torch.zeros(rankings.shape, dtype=position_bias.dtype, device=rankings.device)
    exposure = exposure.scatter(-1, rankings, position_bias[:n].expand(rankings.shape))
    return exposure if mask is None else exposure * mask


def bias_like(where: str, bias: Tensor | None, like: Tensor) -> Tensor:
    """A given position bias, or else the paper's, ``(n,)`` for tensors ``like (…, n)``."""
    n = like.shape[-1]
    if bias is None:
        return log2_bias(n, like.dtype, like.device)
    check_bias(where, bias, n)
    return bias[:n].to(like)


def paid_places(bias: Tensor) -> int:
    """How many places a position bias ``(n,)`` pays, up to the last that is not zero; 1 at least.

    >>> paid_places(torch.tensor([1.0, 0.0, 0.5, 0.0]))
    3
    """
    paid = bias.nonzero()
    return 1 if len(paid) == 0 else int(paid[-1]) + 1


@lru_cache(maxsize=1024)
@torch.inference_mode(False)
def log2_bias(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The paper's position bias, made once for each length: whoever takes it must not write to it.

    It is made outside inference mode, because a later gradient may need it.
    """
    return position_bias(n, dtype=dtype).to(device)


def check_bias(where: str, bias: Tensor, n: int) -> None:
    """Refuse all but a finite, non-negative vector that covers n positions."""
    _check.floating(where, "position_bias", bias)
    if bias.ndim != 1 or len(bias) < n:
        raise ValueError(
            f"{where}: position_bias has shape {tuple(bias.shape)}; "
            f"give a value for each of the {n} positions."
        )
    _check.finite(where, "position_bias", bias, least=0.0)
