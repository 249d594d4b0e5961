r"""Where the exact integrals are evaluated: at a few nodes :math:`z_m` and log-times (chapter 4).

*Nodes.* A position bias written as a short sum of powers,
:math:`v(1 + k) = \sum_m a_m z_m^k`, makes the exposure of a document a sum of rank generating
functions. For the logarithmic discount a handful of real nodes between 0 and 1 suffice; any other
position bias (a cut-off, a measured curve) has nodes on a circle.

*Times.* The integral over the time of arrival is a trapezoid sum over a grid of log-times.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairpg_lite._memory import pieces
from fairpg_lite.exposure import position_bias

# A longer sum of real powers is slower than the circle, which is exact.
_MOST_NODES = 40
# A position bias whose largest value is below this, or above its inverse, is scaled to 1.
_LEAST_SCALE = 1e-3
# Up to this length the Hankel matrix is taken apart as a whole.
_LONGEST_DENSE = 2048
# On longer lists no sum is sought that is more accurate than this.
_FINEST_LONG = 1e-10
# Random directions that span all that is needed of a large Hankel matrix.
_DIRECTIONS = _MOST_NODES + 12
# Up to this length a position bias that is no short sum of powers may have nodes on a circle.
_LONGEST_CIRCLE = 8192

# --- Nodes -------------------------------------------------------------------------------------


def discount_nodes(
    n: int, bias: Tensor | None, tolerance: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    r"""Nodes and coefficients ``(M,)`` of a position bias as a sum of powers.

    .. math:: v(1 + k) = \mathrm{Re} \sum_m a_m z_m^k , \qquad 0 \le k < n .

    Args:
        n: The number of positions.
        bias: The position bias ``(n,)``; None is 1/log2(1+j).
        tolerance: The largest error of the sum at any position; a share of the largest value if
            that is below 0.001 or above 1,000.
        dtype: The floating-point format of the nodes; complex nodes get its complex counterpart.

    Returns:
        The nodes :math:`z_m` and the coefficients :math:`a_m`, each ``(M,)``, real or complex.
        They are cached and shared: do not write to them.

    >>> nodes, coefficients = discount_nodes(3, None, 1e-6, torch.float64)
    >>> (coefficients * nodes ** torch.arange(3).unsqueeze(-1)).sum(-1)
    tensor([1.0000, 0.6309, 0.5000], dtype=torch.float64)
    """
    if bias is None:
        return named_nodes("log2", n, None, tolerance, dtype)
    values = bias.detach().cpu().double()
    largest = float(values.max())
    if _LEAST_SCALE <= largest <= 1.0 / _LEAST_SCALE or largest == 0.0:
        return _fitted_nodes(values.numpy().tobytes(), tolerance, dtype)
    # A bias of another order of magnitude: the tolerance is a share of its largest value.
    nodes, coefficients = _fitted_nodes((values / largest).numpy().tobytes(), tolerance, dtype)
    return nodes, coefficients * largest


@lru_cache(maxsize=1024)
def named_nodes(
    kind: str, n: int, k: int | None, tolerance: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Nodes and coefficients ``(M,)`` of a position bias that `position_bias` knows by name.

    Args:
        kind: The position bias, "log2" or another name that `position_bias` takes.
        n: The number of positions.
        k: The last position that anybody looks at; None is the whole list.
        tolerance: The largest error of the sum at any position.
        dtype: The floating-point format of the nodes.

    Returns:
        The same as `discount_nodes`. They are cached and shared: do not write to them.
    """
    if k is None or k >= n:
        k = None
        n = _fitted_length(n)
    bias = position_bias(n, kind, k=k, dtype=torch.float64)
    return _fitted_nodes(bias.numpy().tobytes(), tolerance, dtype)


def _fitted_length(n: int) -> int:
    """The least of 16, 24, 32, 48, 64, ... that is at least n, so that many lengths share a fit."""
    power = max(16, 1 << (n - 1).bit_length())
    three_quarters = 3 * power // 4
    if 16 < n <= three_quarters:
        return three_quarters
    return power


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # the cached tensors must be fit for a gradient later on
def _fitted_nodes(bias: bytes, tolerance: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Nodes and coefficients of a position bias, given as the bytes of a float64 array."""
    values = np.frombuffer(bias, dtype=np.float64)
    power_sum = exponential_sum(values, tolerance)
    if power_sum is None:
        _check_circle(len(values))
        power_sum = circle(values, tolerance)
    nodes, coefficients = power_sum
    node_dtype = dtype if np.isrealobj(nodes) else torch.promote_types(dtype, torch.complex64)
    return torch.from_numpy(nodes).to(node_dtype), torch.from_numpy(coefficients).to(node_dtype)


def exponential_sum(values: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
    """The shortest sum of real powers within ``tolerance`` of ``values (n,)``.

    The rows of the Hankel matrix ``values[i + j]`` move by a factor z_m from one to the next, so
    the nodes are the eigenvalues of the shift on its leading singular vectors (known as ESPRIT).

    Args:
        values: The numbers to be written as a sum of powers, ``(n,)``.
        tolerance: The largest error of the sum.

    Returns:
        Nodes and coefficients, each ``(M,)``, or None if no sum of at most 40 powers with nodes
        between 0 and 1 is close enough.

    >>> nodes, coefficients = exponential_sum(3.0 * 0.5 ** np.arange(6), 1e-9)
    >>> float(nodes[0].round(9)), float(coefficients[0].round(9))
    (0.5, 3.0)
    """
    n = len(values)
    if n > _LONGEST_DENSE:
        return _long_exponential_sum(values, max(tolerance, _FINEST_LONG))
    rows = n // 2 + 1
    hankel = np.lib.stride_tricks.sliding_window_view(values, n - rows + 1)
    left = np.linalg.svd(hankel, full_matrices=False)[0]
    most_nodes = min(left.shape[1], rows - 1, _MOST_NODES)
    for count in range(1, most_nodes + 1):
        basis = left[:, :count]
        shift = np.linalg.lstsq(basis[:-1], basis[1:], rcond=None)[0]
        z = np.linalg.eigvals(shift)
        if not _are_admissible(z):
            continue
        z = np.minimum(z, 1.0)
        powers = z ** np.arange(n)[:, None]
        a = np.linalg.lstsq(powers, values, rcond=None)[0]
        if np.abs(powers @ a - values).max() <= tolerance:
            return z, a
    return None


def _are_admissible(nodes: np.ndarray) -> bool:
    """Whether nodes are real and in their range.

    A negative or tiny node would let a factor of the race vanish; one above 1 would grow.
    """
    return not (np.iscomplexobj(nodes) or nodes.min() < 1e-4 or nodes.max() > 1.0 + 1e-9)


def _long_exponential_sum(
    values: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """`exponential_sum` of a long list, in time and memory that grow like its length.

    The leading singular vectors are sought in a random subspace, the coefficients are fitted at
    positions that lie ever further apart, and the error is looked at everywhere.
    """
    left = _leading_vectors(values)
    positions = _thinned_positions(len(values))
    for count in range(1, _MOST_NODES + 1):
        basis = left[:, :count]
        # Least squares as in `exponential_sum`: the columns are orthonormal but for the last row.
        gram = np.eye(count) - np.outer(basis[-1], basis[-1])
        z = np.linalg.eigvals(np.linalg.solve(gram, basis[:-1].T @ basis[1:]))
        if not _are_admissible(z):
            continue
        z = np.minimum(z, 1.0)
        a = np.linalg.lstsq(z ** positions[:, None], values[positions], rcond=None)[0]
        if _largest_error(values, z, a) <= tolerance:
            return z, a
    return None


def _leading_vectors(values: np.ndarray) -> np.ndarray:
    """The leading left singular vectors ``(n / 2 + 1, 52)`` of the Hankel matrix of ``values``.

    The matrix times a vector is a convolution, so that it is never written down. Its singular
    values fall so fast that a few random directions hold all that counts (Halko, Martinsson and
    Tropp 2011).
    """
    n = len(values)
    rows = n // 2 + 1
    columns = n - rows + 1
    length = 1 << (n + rows).bit_length()
    spectrum = np.fft.rfft(values, length)

    def times(vectors: np.ndarray, count: int) -> np.ndarray:
        """The matrix with ``count`` rows times ``vectors (m, columns)``, ``(count, m)``."""
        first = vectors.shape[1] - 1
        out = np.empty((count, len(vectors)))
        for number, vector in enumerate(vectors):
            convolved = np.fft.irfft(spectrum * np.fft.rfft(vector[::-1], length), length)
            out[:, number] = convolved[first : first + count]
        return out

    directions = np.random.default_rng(0).standard_normal((_DIRECTIONS, columns))
    basis = np.linalg.qr(times(directions, rows))[0]
    # The matrix within that basis, turned so that its leading directions come first.
    small = times(basis.T, columns)
    turn = np.linalg.svd(np.linalg.qr(small)[1].T)[0]
    return np.asarray(basis @ turn)


def _thinned_positions(n: int) -> np.ndarray:
    """The first 64 of ``range(n)``, and some 600 up to the last, ever further apart."""
    spread = np.geomspace(64, n - 1, 600).astype(np.int64)
    return np.unique(np.concatenate([np.arange(64), spread]))


def _largest_error(values: np.ndarray, nodes: np.ndarray, coefficients: np.ndarray) -> float:
    """The largest distance of a sum of powers from ``values (n,)``."""
    largest = 0.0
    for part in pieces(len(values), 8 * len(nodes)):
        positions = np.arange(len(values))[part]
        fitted = (nodes ** positions[:, None]) @ coefficients
        largest = max(largest, float(np.abs(fitted - values[part]).max()))
    return largest


def _check_circle(n: int) -> None:
    """Refuse a position bias that would need more nodes than anybody waits for."""
    if n > _LONGEST_CIRCLE:
        raise ValueError(
            f"exposure: position_bias has {n} positions and is no short sum of powers, so that "
            f"exact exposure would need {n // 2 + 1} nodes; give a smooth one in double precision, "
            "one that ends in zeros after a few positions, or use sampled_exposure."
        )


def circle(values: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """A sum of complex powers for any ``values (n,)``, with its nodes on a circle.

    The coefficients are a discrete Fourier transform. Values are real, so the nodes of the lower
    half are the conjugates of the upper half's and are folded into them. The number of nodes on
    the whole circle is odd: at z = -1 a factor of the race could vanish. Values that are zero
    beyond position k need about 3 k nodes, on a circle so small that higher powers fall below
    ``tolerance``.

    Args:
        values: The numbers to be written as the real part of a sum of powers, ``(n,)``.
        tolerance: The largest error of the sum.

    Returns:
        Nodes and coefficients of the upper half circle, each ``(M,)`` and complex.

    >>> nodes, coefficients = circle(np.array([1.0, 0.5, 0.25]), 1e-9)
    >>> (coefficients * nodes ** np.arange(3)[:, None]).sum(-1).real.round(9).tolist()
    [1.0, 0.5, 0.25]
    """
    n = len(values)
    last = int(np.flatnonzero(values).max(initial=0)) + 1
    if 3 * last < n:
        length = (3 * last) | 1
        radius = tolerance ** (1.0 / length)
    else:
        length = n | 1
        radius = 1.0
    m = np.arange(length // 2 + 1)
    z = radius * np.exp(2j * math.pi * m / length)
    k = np.arange(last)
    a = (values[:last] * z[:, None] ** -k).sum(-1) / length
    a[1:] *= 2.0
    return z, a


# --- The race ----------------------------------------------------------------------------------


def reachable(tolerance: float, dtype: torch.dtype) -> float:
    """The tolerance, or the finest one that the number format can reach if that is coarser.

    Args:
        tolerance: The accuracy that is asked for, above 0 and below 0.1.
        dtype: The floating-point format of the scores.

    Returns:
        ``tolerance``, but at least 1e-12 in float64 and 2e-6 in any other format.

    Raises:
        ValueError: If ``tolerance`` is not between 0 and 0.1.

    >>> reachable(1e-10, torch.float64), reachable(1e-10, torch.float32)
    (1e-10, 2e-06)
    """
    if not 0.0 < tolerance < 0.1:
        raise ValueError(
            f"exposure: tolerance is {tolerance}; "
            "give a number above 0 and below 0.1, such as 1e-6."
        )
    finest = 1e-12 if dtype == torch.float64 else 2e-6
    return max(tolerance, finest)


def widest_gap(n: int, tolerance: float) -> float:
    """The gap between neighbouring scores beyond which overtaking is negligible.

    Args:
        n: The number of documents of a query.
        tolerance: The probability that counts as negligible.

    Returns:
        The least difference of log-weights that `log_weights` narrows wider ones to.

    >>> round(widest_gap(10, 1e-10), 2)
    30.63
    """
    return 3.0 - math.log(tolerance) + 2.0 * math.log(n)


def log_weights(scores: Tensor, mask: Tensor | None = None, tolerance: float = 1e-10) -> Tensor:
    """Log-weights ``(…, n)`` of a race whose weights sum to one, from ``scores (…, n)``.

    A gap so wide that an overtaking has probability below ``tolerance`` is narrowed to
    `widest_gap`, so that scores of ±1e4 cost no more than scores of ±40.

    Args:
        scores: One score per document, ``(…, n)``.
        mask: True for a real document ``(…, n)``; padding gets ``-inf``, it never arrives.
        tolerance: The probability of overtaking that counts as negligible.

    Returns:
        ``log_softmax`` of the scores, wide gaps narrowed, ``(…, n)``.

    >>> log_weights(torch.tensor([0.0, 0.0, 1e4]))
    tensor([-28.2231, -28.2231,   0.0000])
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    n = scores.shape[-1]
    widest = widest_gap(n, tolerance)
    log_w = scores.log_softmax(-1)
    # Weights are at most one, so the lightest document bounds every gap.
    if n == 1 or -_lowest(log_w) <= widest:
        return log_w
    ordered, order = scores.sort(dim=-1, descending=True)
    gaps = (ordered[..., :-1] - ordered[..., 1:]).nan_to_num(0.0).clamp(max=widest)
    depth = torch.nn.functional.pad(gaps.cumsum(-1), (1, 0))
    narrowed = torch.zeros_like(scores).scatter(-1, order, -depth)
    if mask is not None:
        narrowed = narrowed.masked_fill(~mask, -math.inf)
    return narrowed.log_softmax(-1)


def _lowest(log_w: Tensor) -> float:
    """Log-weight of the lightest document of all queries; padding does not count."""
    values = log_w.detach()
    if values.numel() == 0:  # no query at all
        return 0.0
    lowest = float(values.amin())
    if lowest == -math.inf:
        lowest = float(values[values > -math.inf].amin())
    return lowest


# --- Times -------------------------------------------------------------------------------------


class TimeGrid(NamedTuple):
    r"""The log-times :math:`x_k - e^{-x_k}` with :math:`x_k` = first + k step, k = 0, 1, ….

    With :math:`\log t = x - e^{-x}` the integrand dies doubly exponentially at both ends, where
    the trapezoid rule converges exponentially in 1/step. The grid ends when the lightest document
    has arrived.
    """

    first: float
    """x at the first log-time."""
    step: float
    """Distance of neighbours in x."""
    arrival: float
    """x by which a document of log-weight 0 has arrived, up to the tolerance."""

    def count(self, lowest: float) -> int:
        """The number of times for a race whose lightest document has log-weight ``lowest``."""
        last = self.arrival - lowest
        return max(2, math.ceil((last - self.first) / self.step) + 1)


def grid_parameters(n: int, nodes: Tensor, tolerance: float) -> TimeGrid:
    """The grid of log-times for queries of ``n`` documents, evaluated at ``nodes (M,)``.

    Args:
        n: The number of documents of the longest query.
        nodes: The nodes of the position bias, real or complex.
        tolerance: The accuracy of the integral.

    Returns:
        Where the grid begins, its step, and until when it goes on.

    >>> round(grid_parameters(10, torch.tensor([0.5]), 1e-6).step, 4)
    0.5791
    """
    digits = -math.log(tolerance)
    step = 8.0 / digits
    if nodes.is_complex():
        # Near z = 1 the integrand varies as fast as the rank itself, which spreads like sqrt(n).
        step = min(step, 4.0 / math.sqrt(digits * min(n, 2 * len(nodes))))
    return _grid_of_step(step, tolerance)


def _grid_of_step(step: float, tolerance: float) -> TimeGrid:
    """The grid with this step whose ends are cut at ``tolerance``."""
    reach = -math.log(tolerance)
    # x - exp(-x) = -reach at the left end: a few Newton steps from a close guess are plenty.
    first = -math.log(reach)
    for _ in range(4):
        first -= (first - math.exp(-first) + reach) / (1.0 + math.exp(-first))
    return TimeGrid(first, step, math.log(reach))


def times(log_w: Tensor, nodes: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """Log-times and quadrature weights ``(Q,)`` for a race, evaluated at ``nodes (M,)``.

    Args:
        log_w: Log-weights of the documents, ``(…, n)``, as `log_weights` makes them.
        nodes: The nodes of the position bias, real or complex.
        tolerance: The accuracy of the integral.

    Returns:
        The log-times and the weight of each in the sum, each ``(Q,)``. They are cached and
        shared: do not write to them.
    """
    grid = grid_parameters(log_w.shape[-1], nodes, tolerance)
    return _times_of(grid, log_w)


@lru_cache(maxsize=256)
def first_grid(places: int, tolerance: float) -> TimeGrid:
    """The grid of log-times for exposure of which only the first positions are paid.

    Args:
        places: How many positions are paid.
        tolerance: The accuracy of the integral.

    Returns:
        Where the grid begins, and its step.
    """
    digits = -math.log(tolerance)
    # The integrand is a sum of terms like t^k exp(-t). Shifted by an angle into the complex plane
    # of log t it grows by cos(angle)^-k at most, and a trapezoid sum errs by that times
    # exp(-2 pi angle / step): the longest step for which an angle keeps this below the tolerance.
    step = 0.0
    for angle in (0.01 * number for number in range(1, 157)):
        growth = -places * math.log(math.cos(angle))
        step = max(step, 2.0 * math.pi * angle / (digits + growth))
    return _grid_of_step(step, tolerance)


@lru_cache(maxsize=256)
def enough_arrivals(places: int, tolerance: float) -> float:
    """The expected number of arrivals at which fewer than ``places`` are negligible.

    A sum of coins of mean m is below k with probability at most exp(-m + k + k log(m / k)), by
    Chernoff's bound.

    Args:
        places: How many positions are paid, k.
        tolerance: The probability that counts as negligible.

    Returns:
        The m at which the bound is ``tolerance``.

    >>> round(enough_arrivals(1, 1e-10), 2)
    27.33
    """
    digits = -math.log(tolerance)
    mean = places + digits
    for _ in range(100):
        mean = places + digits + places * math.log(mean / places)
    return mean


def first_times(log_w: Tensor, places: int, tolerance: float) -> tuple[Tensor, Tensor]:
    """Log-times ``(Q,)``, and weights ``(Q, B)`` of each look for each query.

    Looks after `enough_arrivals` have weight zero, so that a query does not notice which others are
    in its batch.

    Args:
        log_w: Log-weights of the documents, ``(…, n)``, with B queries on all leading axes.
        places: How many positions are paid.
        tolerance: The accuracy of the integral.

    Returns:
        The log-times and the weights.
    """
    flat = log_w.detach().reshape(-1, log_w.shape[-1])
    grid = first_grid(places, tolerance)
    log_t, weight = _times_of(grid, flat)
    enough = 1.0 + enough_arrivals(places, tolerance)  # a document is not its own rival
    count = _own_counts(grid, flat)
    for part in pieces(len(log_t), flat.numel()):
        arrived = -torch.expm1(-(flat + log_t[part, None, None]).exp())
        is_enough = arrived.sum(-1) >= enough
        first = part.start + 1 + is_enough.to(torch.uint8).argmax(0)
        count = torch.where(is_enough.any(0), torch.minimum(count, first), count)
        if bool(is_enough[-1].all()):
            break
    count = count.clamp(min=2)
    longest = 2 if len(count) == 0 else int(count.amax())
    look = torch.arange(longest, device=flat.device).unsqueeze(-1)
    weights = torch.where(look < count, weight[:longest].unsqueeze(-1), 0.0)
    return log_t[:longest], weights


def _own_counts(grid: TimeGrid, log_w: Tensor) -> Tensor:
    """`TimeGrid.count` of each query ``(B,)`` of log-weights ``(B, n)``."""
    lowest = torch.where(log_w > -math.inf, log_w, math.inf).amin(-1).double()
    looks = ((grid.arrival - lowest - grid.first) / grid.step).ceil() + 1
    return looks.clamp(min=2).long()


def time_grid(log_w: Tensor, step: float, tolerance: float) -> tuple[Tensor, Tensor]:
    r"""Log-times and weights ``(Q,)`` of a trapezoid sum for :math:`\int f(t)\,dt/t`.

    The same as `times` with a step of one's own. `TimeGrid` says where the log-times lie.

    Args:
        log_w: Log-weights of the documents, ``(…, n)``.
        step: The distance of neighbouring times in x.
        tolerance: Where the two ends of the integral are cut.

    Returns:
        The log-times and the weight of each in the sum, each ``(Q,)``. They are cached and
        shared: do not write to them.

    >>> log_t, weight = time_grid(torch.tensor([0.5, 0.5]).log(), 0.35, 1e-10)
    >>> t = log_t.exp()
    >>> ((t * torch.exp(-t)) * weight).sum()  # the integral of exp(-t) from 0 to infinity
    tensor(1.0000)
    """
    return _times_of(_grid_of_step(step, tolerance), log_w)


def _times_of(grid: TimeGrid, log_w: Tensor) -> tuple[Tensor, Tensor]:
    """Log-times and weights ``(Q,)`` of a grid, long enough for the lightest document."""
    count = grid.count(_lowest(log_w))
    return _times_made_once(grid.first, grid.step, count, log_w.dtype, log_w.device)


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # the cached tensors must be fit for a gradient later on
def _times_made_once(
    first: float, step: float, count: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Log-times and weights of ``count`` points, shared by all calls, so never written to."""
    x = first + step * torch.arange(count, dtype=torch.float64, device=device)
    decay = torch.exp(-x)
    log_t = (x - decay).to(dtype)
    weight = (step * (1.0 + decay)).to(dtype)
    return log_t, weight
