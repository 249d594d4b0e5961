"""Ranking metrics (chapters 2 and 6): one value per ranking, averaging is the caller's line.

Of a ranking: ``rankings (S, …, n)`` lists the document at each position, ``relevance (…, n)`` is
per document. Of an exposure ``(…, n)``: `expected_dcg` and `expected_ndcg`, because the expectation
of DCG over a policy is linear in exposure.
"""

from typing import Protocol

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.exposure import bias_like
from fairpg_lite.relevance import Gain, gains_of


class Utility(Protocol):
    """A utility, ours or yours: what a ranking is worth to the reader, higher is better.

    A function that has an argument ``columns`` is given the named columns of the data, each
    ``(…, n)``: propensities, say.
    """

    def __call__(
        self, rankings: Tensor, relevance: Tensor, *, mask: Tensor | None = None
    ) -> Tensor:
        """One value for each ranking.

        Args:
            rankings: ``(S, …, n)``, the document at each position, padding last.
            relevance: ``(…, n)``, by document.
            mask: ``(…, n)``, True for a real document; None: all are real.

        Returns:
            ``(S, …)``.
        """
        ...


def dcg(
    rankings: Tensor,
    relevance: Tensor,
    *,
    k: int | None = None,
    gain: str | Gain = "exponential",
    position_bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """DCG: the sum over positions of gain times position bias (chapter 2, eq-02-dcg).

    Args:
        rankings: ``(S, …, n)``, the document at each position, padding last.
        relevance: ``(…, n)``, by document.
        k: Only the first k positions count; None is the whole list.
        gain: What a relevance adds: "exponential", "linear", "binary" or a function.
        position_bias: ``(n,)`` or longer; None is 1/log2(1+j).
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(S, …)``.

    >>> dcg(torch.tensor([0, 1, 2]), torch.tensor([1.0, 0.0, 1.0]))
    tensor(1.5000)
    """
    gains = gains_of("dcg", relevance, gain, mask)
    placed = _by_position("dcg", rankings, gains, mask, k)
    return (placed * bias_like("dcg", position_bias, placed)).sum(-1)


def ideal_dcg(
    relevance: Tensor,
    *,
    k: int | None = None,
    gain: str | Gain = "exponential",
    position_bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest DCG of any ranking: best gains at the best positions (chapter 2, eq-02-ndcg).

    Args:
        relevance: ``(…, n)``, by document.
        k: Only the first k positions count; None is the whole list.
        gain: What a relevance adds: "exponential", "linear", "binary" or a function.
        position_bias: ``(n,)`` or longer; None is 1/log2(1+j).
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(…)``.

    >>> ideal_dcg(torch.tensor([0.0, 1.0, 1.0]), position_bias=torch.tensor([1.0, 0.5, 0.25]))
    tensor(1.5000)
    """
    gains = gains_of("ideal_dcg", relevance, gain, mask)
    bias = bias_like("ideal_dcg", position_bias, gains)[:k]
    if mask is not None and position_bias is not None:  # a short list has no later positions
        positions = torch.arange(len(bias), device=bias.device)
        bias = torch.where(positions < mask.sum(-1, keepdim=True), bias, 0.0)
    best_gains = gains.sort(dim=-1, descending=True).values[..., :k]
    best_bias = bias.sort(descending=True).values
    return (best_gains * best_bias).sum(-1)


def ndcg(
    rankings: Tensor,
    relevance: Tensor,
    *,
    k: int | None = None,
    gain: str | Gain = "exponential",
    position_bias: Tensor | None = None,
    mask: Tensor | None = None,
    undefined: float = 1.0,
) -> Tensor:
    """DCG over the largest DCG (chapter 2, eq-02-ndcg).

    Args:
        rankings: ``(S, …, n)``, the document at each position, padding last.
        relevance: ``(…, n)``, by document.
        k: Only the first k positions count; None is the whole list.
        gain: What a relevance adds: "exponential", "linear", "binary" or a function.
        position_bias: ``(n,)`` or longer; None is 1/log2(1+j).
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query with nothing relevant; NaN to find or drop such queries.

    Returns:
        ``(S, …)``.

    >>> round(ndcg(torch.tensor([1, 0]), torch.tensor([1.0, 0.0])).item(), 4)
    0.6309
    """
    value = dcg(rankings, relevance, k=k, gain=gain, position_bias=position_bias, mask=mask)
    ideal = ideal_dcg(relevance, k=k, gain=gain, position_bias=position_bias, mask=mask)
    return _divide(value, ideal, undefined)


def expected_dcg(
    exposure: Tensor,
    relevance: Tensor,
    *,
    gain: str | Gain = "exponential",
    mask: Tensor | None = None,
) -> Tensor:
    r"""E[DCG] of a policy with this exposure: :math:`\sum_i u_i v_\pi(d_i)`.

    The discount is the position bias that the exposure was made with. Chapter 2, eq-02-linear.

    Args:
        exposure: ``(…, n)``.
        relevance: ``(…, n)``.
        gain: What a relevance adds: "exponential", "linear", "binary" or a function.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(…)``.

    >>> expected_dcg(torch.tensor([0.75, 0.25]), torch.tensor([1.0, 2.0]))
    tensor(1.5000)
    """
    gains = gains_of("expected_dcg", relevance, gain, mask)
    _check.same_shape("expected_dcg", "exposure", exposure, "relevance", relevance.shape)
    return (gains * exposure).sum(-1)


def expected_ndcg(
    exposure: Tensor,
    relevance: Tensor,
    *,
    gain: str | Gain = "exponential",
    position_bias: Tensor | None = None,
    mask: Tensor | None = None,
    undefined: float = 1.0,
    ideal: Tensor | None = None,
) -> Tensor:
    """E[NDCG] of a policy with this exposure (chapter 2, eq-02-linear).

    For NDCG@k pass ``position_bias(n, k=k)`` here and to the policy's ``exposure``.

    Args:
        exposure: ``(…, n)``.
        relevance: ``(…, n)``.
        gain: What a relevance adds: "exponential", "linear", "binary" or a function.
        position_bias: ``(n,)`` or longer, the one that the exposure was made with; None is
            1/log2(1+j).
        mask: ``(…, n)``, True for a real document; None: all are real.
        undefined: The answer for a query with nothing relevant; NaN to find or drop such queries.
        ideal: ``(…)``, the result of `ideal_dcg`, to save working it out again.

    Returns:
        ``(…)``.

    >>> expected_ndcg(torch.tensor([0.75, 0.25]), torch.tensor([1.0, 0.0]))
    tensor(0.7500)
    """
    value = expected_dcg(exposure, relevance, gain=gain, mask=mask)
    if ideal is None:
        ideal = ideal_dcg(relevance, gain=gain, position_bias=position_bias, mask=mask)
    return _divide(value, ideal, undefined)


def err(
    rankings: Tensor,
    relevance: Tensor,
    *,
    max_grade: float = 4.0,
    k: int | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Expected reciprocal rank of a user who goes down the list until satisfied.

    A document of grade g satisfies with probability (2**g - 1) / 2**max_grade (Chapelle et al.
    2009). Chapters 2 and 6, eq-02-err.

    Args:
        rankings: ``(S, …, n)``, the document at each position, padding last.
        relevance: ``(…, n)``, by document.
        max_grade: The scale's top grade, 4 on Yahoo and MSLR.
        k: Only the first k positions count; None is the whole list.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(S, …)``, 0 for a query with nothing relevant.

    >>> err(torch.tensor([0, 1]), torch.tensor([1.0, 1.0]), max_grade=1)
    tensor(0.6250)
    """
    satisfied = satisfaction(relevance, max_grade, mask)
    placed = _by_position("err", rankings, satisfied, mask, k)
    going_on = torch.nn.functional.pad((1.0 - placed)[..., :-1].cumprod(-1), (1, 0), value=1.0)
    return (placed * going_on / _positions(placed)).sum(-1)


def satisfaction(relevance: Tensor, max_grade: float, mask: Tensor | None = None) -> Tensor:
    """Probability ``(…, n)`` that a document satisfies the user of `err`; zero for padding."""
    satisfied: Tensor = gains_of("err", relevance, "exponential", mask) * 2.0**-max_grade
    # (2**30 - 1) / 2**30 is one in float32, and no fault of the grade.
    is_above = (satisfied > 1.0) | ((satisfied == 1.0) & (relevance > max_grade))
    if is_above.any():
        raise ValueError(
            f"err: relevance {relevance[is_above].max().item()} is above max_grade={max_grade}; "
            "pass the scale's top grade."
        )
    if (satisfied < 0.0).any():
        raise ValueError(f"err: relevance {relevance.min().item()} is negative; give 0 or more.")
    return satisfied


def average_rank(rankings: Tensor, relevance: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Mean position weighted by relevance (chapter 2, eq-02-average-rank).

    Args:
        rankings: ``(S, …, n)``, the document at each position, padding last.
        relevance: ``(…, n)``, by document.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(S, …)``, NaN for a query with nothing relevant.

    >>> average_rank(torch.tensor([2, 0, 1]), torch.tensor([1.0, 0.0, 1.0]))
    tensor(1.5000)
    """
    grades = gains_of("average_rank", relevance, "linear", mask)
    placed = _by_position("average_rank", rankings, grades, mask)
    return _divide((placed * _positions(placed)).sum(-1), grades.sum(-1), float("nan"))


def average_precision(
    rankings: Tensor, relevance: Tensor, *, k: int | None = None, mask: Tensor | None = None
) -> Tensor:
    """Mean over the relevant documents of the precision at their position.

    Args:
        rankings: ``(S, …, n)``, the document at each position, padding last.
        relevance: ``(…, n)``, by document; any above 0 counts as one.
        k: Only the first k positions count, and the mean is over min(k, relevant documents); None
            is the whole list.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(S, …)``, 0 for a query with nothing relevant.

    >>> average_precision(torch.tensor([0, 1, 2]), torch.tensor([1.0, 0.0, 1.0]))
    tensor(0.8333)
    """
    is_relevant = gains_of("average_precision", relevance, "binary", mask)
    placed = _by_position("average_precision", rankings, is_relevant, mask, k)
    precision = placed.cumsum(-1) / _positions(placed)
    countable = is_relevant.sum(-1).clamp(max=placed.shape[-1])
    return _divide((placed * precision).sum(-1), countable, 0.0)


def reciprocal_rank(
    rankings: Tensor, relevance: Tensor, *, k: int | None = None, mask: Tensor | None = None
) -> Tensor:
    """One over the position of the first relevant document.

    Args:
        rankings: ``(S, …, n)``, the document at each position, padding last.
        relevance: ``(…, n)``, by document; any above 0 counts as one.
        k: Only the first k positions count; None is the whole list.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(S, …)``, 0 where no position that counts has a relevant document.

    >>> reciprocal_rank(torch.tensor([1, 0]), torch.tensor([1.0, 0.0]))
    tensor(0.5000)
    """
    is_relevant = gains_of("reciprocal_rank", relevance, "binary", mask)
    placed = _by_position("reciprocal_rank", rankings, is_relevant, mask, k)
    return (placed / _positions(placed)).amax(-1)


def _by_position(
    where: str, rankings: Tensor, values: Tensor, mask: Tensor | None, k: int | None = None
) -> Tensor:
    """Values ``(…, n)`` of documents, by position ``(S, …, k)``."""
    if k is not None and k < 1:
        raise ValueError(f"{where}: k is {k}; look at one position at least.")
    _check.permutations(where, rankings, values.shape, mask)
    return values.expand(rankings.shape).gather(-1, rankings[..., :k])


def _positions(placed: Tensor) -> Tensor:
    """The positions 1..k of values ``(S, …, k)``."""
    return torch.arange(1, placed.shape[-1] + 1, dtype=placed.dtype, device=placed.device)


def _divide(value: Tensor, total: Tensor, undefined: float) -> Tensor:
    """``value / total``, or ``undefined`` where the total is zero."""
    is_defined = total > 0
    return torch.where(is_defined, value / torch.where(is_defined, total, 1.0), undefined)
