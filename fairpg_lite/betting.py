r"""Upper bounds of a mean by betting, without assumptions but a range (chapter 14).

Somebody claims that the mean of numbers between 0 and 1 is at least m. We bet against it: with one
unit of capital, before each number :math:`x_t` is shown, we stake :math:`\lambda_t` on its being
below m,

.. math:: K_t = \prod_{i \le t} \bigl(1 - \lambda_i (x_i - m)\bigr), \qquad
          0 \le \lambda_i < 1 / (1 - m).

If the claim is true, the capital is not expected to grow, whatever the stakes, as long as each was
chosen before its number was seen; so the chance that it ever reaches :math:`1/\alpha` is at most
:math:`\alpha` (Ville's inequality). If it does reach it, the claim is rejected at level
:math:`\alpha`, and the least rejected m is an upper bound of the mean with confidence
:math:`1 - \alpha`. This holds for every number of draws, small ones included.

After Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS B,
2024). The stakes are their predictable plug-in,

.. math:: \lambda_t = \sqrt{\frac{2 \log(1/\alpha)}{n\, \hat\sigma^2_{t-1}}},

with a running variance of the numbers seen so far, and at most .95 of what a single number of 1
could ruin.
"""

import math

import torch
from torch import Tensor

from fairpg_lite import _check

# The share of the largest stake that is allowed: with all of it, a single 1 would end the game.
_BOLDEST = 0.95
# A bound is found by halving an interval so often: to 1e-12 of its length.
_HALVINGS = 40
# The running mean and variance begin as those of one earlier number, as in the paper.
_FIRST_MEAN = 0.5
_FIRST_VARIANCE = 0.25


def log_capital(values: Tensor, mean: float, alpha: float, *, cap: float = 1.0) -> Tensor:
    r"""Log of the largest capital of bets against "the mean is ``mean`` or more".

    Args:
        values: ``(…, n)``, independent draws in the order in which they were made, zero or more.
            What is above ``cap`` counts as ``cap``.
        mean: The mean m that is claimed, above 0 and below ``cap``.
        alpha: The level that the stakes are chosen for; every level is valid, and at this one
            the bets are at their best.
        cap: The top of the range.

    Returns:
        ``(…)``, the largest over all numbers of draws up to n. If it is at least
        :math:`\log(1/\alpha)`, the claim is rejected at level :math:`\alpha`.

    >>> fair = torch.zeros(300, dtype=torch.float64)
    >>> bool(log_capital(fair, 0.01, alpha=0.1) >= math.log(10))
    True
    >>> bool(log_capital(fair[:200], 0.01, alpha=0.1) >= math.log(10))
    False
    """
    _check_values("log_capital", values, cap)
    _check_alpha("log_capital", alpha)
    if not 0.0 < mean < cap:
        raise ValueError(
            f"log_capital: mean is {mean:g} and cap is {cap:g}; give a mean above 0 and below cap."
        )
    shares = values.double().clamp(max=cap) / cap
    claimed = torch.tensor(mean / cap, dtype=torch.float64, device=values.device)
    return _log_capital(shares, claimed, _stakes(shares, alpha))


def betting_bound(values: Tensor, alpha: float, *, cap: float = 1.0) -> Tensor:
    r"""Upper bound of a mean, with confidence 1 - alpha, for any distribution on [0, cap].

    It bounds the mean of :math:`\min(x, \mathrm{cap})`, which is the mean itself if nothing can be
    above ``cap``. ``cap`` must be chosen without looking at ``values``.

    Args:
        values: ``(…, n)``, independent draws in the order in which they were made, zero or more.
        alpha: How often the bound may be too low, above 0 and below 1.
        cap: The top of the range.

    Returns:
        ``(…)``, at most ``cap``.

    >>> few = torch.zeros(100, dtype=torch.float64)
    >>> many = torch.zeros(1000, dtype=torch.float64)
    >>> betting_bound(torch.stack([few, few]), alpha=0.1)
    tensor([0.0244, 0.0244], dtype=torch.float64)
    >>> betting_bound(many, alpha=0.1)
    tensor(0.0025, dtype=torch.float64)
    """
    _check_values("betting_bound", values, cap)
    _check_alpha("betting_bound", alpha)
    shares = values.double().clamp(max=cap) / cap
    stakes = _stakes(shares, alpha)
    low = torch.zeros_like(shares[..., 0])
    high = torch.ones_like(low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_rejected = _log_capital(shares, middle, stakes) >= math.log(1.0 / alpha)
        # The capital grows with the mean that is claimed: what lies above `high` is rejected.
        high = torch.where(is_rejected, middle, high)
        low = torch.where(is_rejected, low, middle)
    return high * cap


def queries_needed(delta: float, alpha: float, *, cap: float = 1.0, mean: float = 0.0) -> int:
    r"""The least number of draws with which `betting_bound` can be at most delta.

    About :math:`\mathrm{cap} \cdot \log(1/\alpha) / (\delta - \mathrm{mean})`. This is for draws
    that all equal ``mean``; draws that vary need more.

    Args:
        delta: The bound that is wanted, below ``cap``.
        alpha: How often the bound may be too low.
        cap: The top of the range.
        mean: The value of each draw, below ``delta``.

    Returns:
        A number of draws.

    >>> queries_needed(0.01, 0.1)
    247
    >>> queries_needed(0.01, 0.1, cap=0.25)
    61
    """
    _check_alpha("queries_needed", alpha)
    if not 0.0 <= mean < delta:
        raise ValueError(
            f"queries_needed: mean is {mean:g} and delta is {delta:g}; no number of draws bounds "
            "a mean by less than itself, so give a mean from 0 to below delta."
        )
    if not delta < cap:
        raise ValueError(
            f"queries_needed: delta is {delta:g} and cap is {cap:g}; a bound of cap needs no draw, "
            "so give delta below cap."
        )

    def suffices(n: int) -> bool:
        draws = torch.full((n,), mean, dtype=torch.float64)
        return bool(log_capital(draws, delta, alpha, cap=cap) >= math.log(1.0 / alpha))

    enough = 1
    while not suffices(enough):
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if suffices(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _stakes(shares: Tensor, alpha: float) -> Tensor:
    """The stakes ``(…, n)`` before they are limited, each by the numbers before it."""
    n = shares.shape[-1]
    counts = torch.arange(2, n + 2, dtype=torch.float64, device=shares.device)
    running_mean = (_FIRST_MEAN + shares.cumsum(-1)) / counts
    squares = (shares - running_mean).square()
    running_variance = (_FIRST_VARIANCE + squares.cumsum(-1)) / counts
    first = torch.full_like(shares[..., :1], _FIRST_VARIANCE)
    variance_before = torch.cat([first, running_variance[..., :-1]], dim=-1)
    return (2.0 * math.log(1.0 / alpha) / (n * variance_before)).sqrt()


def _log_capital(shares: Tensor, claimed: Tensor, stakes: Tensor) -> Tensor:
    """Log of the largest capital ``(…)`` against means ``claimed (…)``, all in units of cap."""
    claimed = claimed.unsqueeze(-1)
    limited = torch.minimum(stakes, _BOLDEST / (1.0 - claimed))
    return torch.log1p(-limited * (shares - claimed)).cumsum(-1).amax(-1)


def _check_values(where: str, values: Tensor, cap: float) -> None:
    """Refuse what is no sample of numbers from 0 on."""
    if not 0.0 < cap < math.inf:
        raise ValueError(f"{where}: cap is {cap:g}; give a number above 0.")
    _check.floating(where, "values", values)
    _check.finite(where, "values", values, least=0.0)


def _check_alpha(where: str, alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"{where}: alpha is {alpha}; give a number above 0 and below 1.")
