r"""Where the exact integrals are read: at a few nodes z_m and times t (chapter 4).

A position bias as a short sum of powers, :math:`v(1 + k) = \sum_m a_m z_m^k`, makes the exposure of
a document a sum of rank generating functions. For the logarithmic discount a handful of real nodes
between 0 and 1 suffice; anything else (a cut-off, a measured curve) has nodes on a circle.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from fairpg_lite.exposure import position_bias

_MOST_NODES = 40


def discount_nodes(
    n: int, bias: Tensor | None, tolerance: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Nodes z and coefficients a, each ``(M,)``, with ``v(1 + k) = Re sum_m a_m z_m**k``, k < n."""
    if bias is None:
        return named_nodes("log2", n, None, tolerance, dtype)
    return _fitted(bias.detach().cpu().double().numpy().tobytes(), tolerance, dtype)


@lru_cache(maxsize=1024)
def named_nodes(
    kind: str, n: int, k: int | None, tolerance: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The same of a `position_bias` by name; shared, so never written to.

    If the whole list counts the fit is made for 16, 24, 32, 48, 64, ... positions, so that queries
    of different lengths share one.
    """
    if k is None or k >= n:
        power = max(16, 1 << (n - 1).bit_length())
        n, k = (3 * power // 4 if 16 < n <= 3 * power // 4 else power), None
    bias = position_bias(n, kind, k=k, dtype=torch.float64)
    return _fitted(bias.numpy().tobytes(), tolerance, dtype)


@lru_cache(maxsize=256)
@torch.inference_mode(False)
def _fitted(bias: bytes, tolerance: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    values = np.frombuffer(bias, dtype=np.float64)
    z, a = exponential_sum(values, tolerance) or circle(values, tolerance)
    kind = dtype if np.isrealobj(z) else dtype.to_complex()
    return torch.from_numpy(z).to(kind), torch.from_numpy(a).to(kind)


def exponential_sum(values: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
    """The shortest sum of real powers within ``tolerance`` of ``values (n,)``, or None.

    The rows of the Hankel matrix ``values[i + j]`` move by a factor z_m from one to the next, so
    the nodes are the eigenvalues of the shift on its leading singular vectors (known as ESPRIT).
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

    Their number is odd: at z = -1 a factor of the race could vanish. A bias that is zero beyond k
    needs about 3 k, on a circle so small that higher powers fall below ``tolerance``.
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


def reachable(tolerance: float, dtype: torch.dtype) -> float:
    """No finer than the number format allows."""
    if not 0.0 < tolerance < 0.1:
        raise ValueError(f"exposure: tolerance is {tolerance}; give a number such as 1e-6.")
    return max(tolerance, 1e-12 if dtype == torch.float64 else 2e-6)


def log_weights(scores: Tensor, mask: Tensor | None = None, tolerance: float = 1e-10) -> Tensor:
    """Scores ``(…, n)`` to log-weights ``(…, n)`` of a race whose weights sum to one.

    A gap so wide that an overtaking has probability below ``tolerance`` is narrowed to the least
    such gap: scores of ±1e4 cost no more than scores of ±40. Padding never arrives: ``-inf``.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    n = scores.shape[-1]
    widest = 3.0 - math.log(tolerance) + 2.0 * math.log(n)
    log_w = scores.log_softmax(-1)
    # Weights are at most one, so the lightest document bounds every gap.
    if n == 1 or -_lowest(log_w) <= widest:
        return log_w
    ordered, order = scores.sort(dim=-1, descending=True)
    gaps = (ordered[..., :-1] - ordered[..., 1:]).nan_to_num(0.0).clamp(max=widest)
    depth = torch.nn.functional.pad(gaps.cumsum(-1), (1, 0))
    narrowed = torch.zeros_like(scores).scatter(-1, order, -depth)
    return (narrowed if mask is None else narrowed.masked_fill(~mask, -math.inf)).log_softmax(-1)


def _lowest(log_w: Tensor) -> float:
    """Log-weight of the lightest document of all queries; padding does not count."""
    real = log_w.detach()
    lowest = float(real.amin()) if real.numel() else 0.0  # no query at all
    return lowest if lowest != -math.inf else float(real[real > -math.inf].amin())


def times(log_w: Tensor, nodes: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """When to look at the race ``(Q,)``, as log-times, and the weight of each look ``(Q,)``."""
    digits = -math.log(tolerance)
    step = 8.0 / digits
    if nodes.is_complex():
        # Near z = 1 the integrand varies as fast as the rank itself, which spreads like sqrt(n).
        step = min(step, 4.0 / math.sqrt(digits * min(log_w.shape[-1], 2 * len(nodes))))
    return time_grid(log_w, step, tolerance)


def time_grid(log_w: Tensor, step: float, tolerance: float) -> tuple[Tensor, Tensor]:
    r"""Log-times and quadrature weights ``(Q,)`` of a trapezoid sum for :math:`\int f(t)\,dt/t`.

    With :math:`\log t = x - e^{-x}` the integrand dies doubly exponentially at both ends, where
    the trapezoid rule converges exponentially in 1/step. The ends are cut at ``tolerance``.
    """
    # x - exp(-x) = -reach at the left end: a few Newton steps from a close guess are plenty.
    reach = -math.log(tolerance)
    first = -math.log(reach)
    for _ in range(4):
        first -= (first - math.exp(-first) + reach) / (1.0 + math.exp(-first))
    last = math.log(reach) - _lowest(log_w)
    count = max(2, math.ceil((last - first) / step) + 1)
    return _grid(first, step, count, log_w.dtype, log_w.device)


@lru_cache(maxsize=256)
@torch.inference_mode(False)
def _grid(
    first: float, step: float, count: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Made once for each length; shared, so never written to, and fit for a gradient later on."""
    x = first + step * torch.arange(count, dtype=torch.float64, device=device)
    decay = torch.exp(-x)
    return (x - decay).to(dtype), (step * (1.0 + decay)).to(dtype)
