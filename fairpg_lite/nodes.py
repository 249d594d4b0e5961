r"""A position bias as a short sum of powers, :math:`v(1 + k) = \sum_m a_m z_m^k` (chapter 4).

In this form the exposure of a document is a sum of rank generating functions. The logarithmic
discount is completely monotone, so a handful of real nodes between 0 and 1 suffice; anything else
(a cut-off, a measured curve) is matched exactly by nodes on a circle.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

_MOST_NODES = 40


@lru_cache(maxsize=256)
def _nodes(bias: bytes, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    values = np.frombuffer(bias, dtype=np.float64)
    return exponential_sum(values, tolerance) or circle(values, tolerance)


@lru_cache(maxsize=1024)
@torch.inference_mode(False)
def _log2_nodes(n: int, tolerance: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Shared, so never written to, and fit for a gradient later on."""
    # 16, 24, 32, 48, 64, ...: a power of two or halfway to the next.
    power = max(16, 1 << (n - 1).bit_length())
    length = 3 * power // 4 if 16 < n <= 3 * power // 4 else power
    return _tensors(*_nodes((1.0 / np.log2(2.0 + np.arange(length))).tobytes(), tolerance), dtype)


def _tensors(z: np.ndarray, a: np.ndarray, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    kind = dtype if np.isrealobj(z) else dtype.to_complex()
    return torch.from_numpy(z).to(kind), torch.from_numpy(a).to(kind)


def discount_nodes(
    n: int, bias: Tensor | None, tolerance: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Nodes z and coefficients a, each ``(M,)``, with ``v(1 + k) = Re sum_m a_m z_m**k`` for k < n.

    ``bias=None`` is the paper's 1/log2(1+j); its fit is made for 16, 24, 32, 48, 64, ... positions,
    so that queries of different lengths share one.
    """
    if bias is None:
        return _log2_nodes(n, tolerance, dtype)
    values = bias.detach().cpu().double().numpy()
    return _tensors(*_nodes(values.tobytes(), tolerance), dtype)


def exponential_sum(values: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
    """The shortest sum of real powers within ``tolerance`` of ``values (n,)``, or None.

    The rows of the Hankel matrix ``values[i + j]`` move by a factor z_m from one to the next, so
    the nodes are the eigenvalues of the shift on its leading singular vectors (the method known
    in signal processing as ESPRIT); the coefficients are then a linear least-squares problem.
    """
    n = len(values)
    rows = n // 2 + 1
    hankel = np.lib.stride_tricks.sliding_window_view(values, n - rows + 1)
    left = np.linalg.svd(hankel, full_matrices=False)[0]
    for count in range(1, min(left.shape[1], rows - 1, _MOST_NODES) + 1):
        basis = left[:, :count]
        shift = np.linalg.lstsq(basis[:-1], basis[1:], rcond=None)[0]
        z = np.linalg.eigvals(shift)
        # A negative or tiny node would let a factor of the race vanish; one above 1 would grow.
        if np.iscomplexobj(z) or z.min() < 1e-4 or z.max() > 1.0 + 1e-9:
            continue
        z = np.minimum(z, 1.0)
        powers = z ** np.arange(n)[:, None]
        a = np.linalg.lstsq(powers, values, rcond=None)[0]
        if np.abs(powers @ a - values).max() <= tolerance:
            return z, a
    return None


def circle(values: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes on a circle, exact for any ``values (n,)``; the lower half is folded into the upper.

    An odd number of nodes keeps z = -1 out, where a factor of the race could vanish. A bias that is
    zero beyond position k needs only about 3 k nodes, on a circle small enough that higher powers
    fall below ``tolerance``.
    """
    n = len(values)
    last = int(np.flatnonzero(values).max(initial=0)) + 1
    length, radius = n | 1, 1.0
    if 3 * last < n:
        length = (3 * last) | 1
        radius = tolerance ** (1.0 / length)
    m = np.arange(length // 2 + 1)
    z = radius * np.exp(2j * math.pi * m / length)
    k = np.arange(last)
    a = (values[:last] * z[:, None] ** -k).sum(-1) / length
    a[1:] *= 2.0
    return z, a
