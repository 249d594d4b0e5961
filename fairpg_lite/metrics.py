"""Ranking metrics (chapters 2 and 6): one value per ranking, averaging is the caller's line.

Of a ranking: ``rankings (S, …, n)`` lists the document at each position, ``relevance (…, n)`` is
per document. Of an exposure ``(…, n)``: `expected_dcg` and `expected_ndcg`, because the expectation
of DCG over a policy is linear in exposure.

``k`` looks at the first k positions only. ``gain`` says what a relevance adds: "exponential",
"linear", "binary" or a function. ``mask`` is True for real documents; rankings place padding last.
``undefined`` is the answer for a query with nothing relevant, NaN to find or drop such queries.
"""

from typing import Any

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.exposure import bias_like
from fairpg_lite.relevance import Gain, gains_of


def _in_order(
    where: str, rankings: Tensor, gains: Tensor, mask: Tensor | None, k: int | None = None
) -> tuple[Tensor, Tensor]:
    """Gains by position ``(S, …, k)``, and the positions 1..k."""
    if k is not None and k < 1:
        raise ValueError(f"{where}: k is {k}; look at one position at least.")
    _check.permutations(where, rankings, gains.shape, mask)
    placed = gains.expand(rankings.shape).gather(-1, rankings[..., :k])
    return placed, torch.arange(1, placed.shape[-1] + 1, dtype=gains.dtype, device=gains.device)


def _over(value: Tensor, total: Tensor, undefined: float) -> Tensor:
    """``value / total``, or ``undefined`` where the total is zero."""
    defined = total > 0
    return torch.where(defined, value / torch.where(defined, total, 1.0), undefined)


def dcg(
    rankings: Tensor,
    relevance: Tensor,
    *,
    k: int | None = None,
    gain: str | Gain = "exponential",
    position_bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """DCG ``(S, …)``: sum over positions of gain times position bias (chapter 2, eq-02-dcg).

    >>> dcg(torch.tensor([0, 1, 2]), torch.tensor([1.0, 0.0, 1.0]))
    tensor(1.5000)
    """
    placed, _ = _in_order("dcg", rankings, gains_of("dcg", relevance, gain, mask), mask, k)
    return (placed * bias_like("dcg", position_bias, placed)).sum(-1)


def ideal_dcg(
    relevance: Tensor,
    *,
    k: int | None = None,
    gain: str | Gain = "exponential",
    position_bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest DCG ``(…)``: best gains at the best positions (chapter 2, eq-02-ndcg)."""
    gains = gains_of("ideal_dcg", relevance, gain, mask)
    bias = bias_like("ideal_dcg", position_bias, gains)[:k]
    if mask is not None and position_bias is not None:  # a short list has no later positions
        here = torch.arange(len(bias), device=bias.device) < mask.sum(-1, keepdim=True)
        bias = torch.where(here, bias, 0.0)
    best = gains.sort(dim=-1, descending=True).values[..., :k]
    return (best * bias.sort(descending=True).values).sum(-1)


def ndcg(rankings: Tensor, relevance: Tensor, *, undefined: float = 1.0, **how: Any) -> Tensor:
    """DCG over the best DCG ``(S, …)`` (chapter 2, eq-02-ndcg); 1 if nothing is relevant.

    Further options, ``k``, ``gain``, ``position_bias`` and ``mask``, are those of `dcg`.

    >>> round(ndcg(torch.tensor([1, 0]), torch.tensor([1.0, 0.0])).item(), 4)
    0.6309
    """
    return _over(dcg(rankings, relevance, **how), ideal_dcg(relevance, **how), undefined)


def expected_dcg(
    exposure: Tensor,
    relevance: Tensor,
    *,
    gain: str | Gain = "exponential",
    mask: Tensor | None = None,
) -> Tensor:
    r"""E[DCG] ``(…)`` of a policy with this ``exposure (…, n)``: :math:`\sum_i u_i v_\pi(d_i)`.

    The discount is the position bias that the exposure was made with. Chapter 2, eq-02-linear.
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
    """E[NDCG] ``(…)`` of a policy; ``position_bias`` must be the one the exposure was made with.

    For NDCG@k pass ``position_bias(n, k=k)`` here and to ``PlackettLuce.exposure``. ``ideal (…)``
    saves working out `ideal_dcg`. Chapter 2, eq-02-linear.
    """
    value = expected_dcg(exposure, relevance, gain=gain, mask=mask)
    if ideal is None:
        ideal = ideal_dcg(relevance, gain=gain, position_bias=position_bias, mask=mask)
    return _over(value, ideal, undefined)


def err(
    rankings: Tensor,
    relevance: Tensor,
    *,
    max_grade: float = 4.0,
    k: int | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Expected reciprocal rank ``(S, …)`` of a user who goes down the list until satisfied.

    A document of grade g satisfies with probability (2**g - 1) / 2**max_grade (Chapelle et al.
    2009); ``max_grade`` is the scale's top grade, 4 on Yahoo and MSLR. Nothing relevant: 0.
    Chapters 2 and 6, eq-02-err.

    >>> err(torch.tensor([0, 1]), torch.tensor([1.0, 1.0]), max_grade=1)
    tensor(0.6250)
    """
    satisfied = satisfaction(relevance, max_grade, mask)
    placed, rank = _in_order("err", rankings, satisfied, mask, k)
    going_on = torch.nn.functional.pad((1.0 - placed)[..., :-1].cumprod(-1), (1, 0), value=1.0)
    return (placed * going_on / rank).sum(-1)


def satisfaction(relevance: Tensor, max_grade: float, mask: Tensor | None = None) -> Tensor:
    """Probability ``(…, n)`` that a document satisfies the user of `err`; zero for padding."""
    satisfied = gains_of("err", relevance, "exponential", mask) * 2.0**-max_grade
    # (2**30 - 1) / 2**30 is one in float32, and no fault of the grade.
    above = (satisfied > 1.0) | ((satisfied == 1.0) & (relevance > max_grade))
    if above.any() or (satisfied < 0.0).any():
        worst = relevance[above].max().item() if above.any() else relevance.min().item()
        found = f"relevance {worst} is outside 0..max_grade={max_grade}"
        raise ValueError(f"err: {found}; pass the scale's top grade.")
    return satisfied


def average_rank(rankings: Tensor, relevance: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Mean position ``(S, …)`` weighted by relevance, or NaN (chapter 2, eq-02-average-rank).

    >>> average_rank(torch.tensor([2, 0, 1]), torch.tensor([1.0, 0.0, 1.0]))
    tensor(1.5000)
    """
    grades = gains_of("average_rank", relevance, "linear", mask)
    placed, rank = _in_order("average_rank", rankings, grades, mask)
    return _over((placed * rank).sum(-1), grades.sum(-1), float("nan"))


def average_precision(
    rankings: Tensor, relevance: Tensor, *, k: int | None = None, mask: Tensor | None = None
) -> Tensor:
    """Mean over the relevant documents ``(S, …)`` of the precision at their position.

    Any relevance above 0 counts as one; with ``k`` the mean is over min(k, relevant documents).
    Nothing relevant: 0. Chapter 6.

    >>> average_precision(torch.tensor([0, 1, 2]), torch.tensor([1.0, 0.0, 1.0]))
    tensor(0.8333)
    """
    relevant = gains_of("average_precision", relevance, "binary", mask)
    placed, rank = _in_order("average_precision", rankings, relevant, mask, k)
    total = relevant.sum(-1).clamp(max=placed.shape[-1])
    return _over((placed * placed.cumsum(-1) / rank).sum(-1), total, 0.0)


def reciprocal_rank(
    rankings: Tensor, relevance: Tensor, *, k: int | None = None, mask: Tensor | None = None
) -> Tensor:
    """One over the position ``(S, …)`` of the first relevant document, or 0 (chapter 6).

    >>> reciprocal_rank(torch.tensor([1, 0]), torch.tensor([1.0, 0.0]))
    tensor(0.5000)
    """
    relevant = gains_of("reciprocal_rank", relevance, "binary", mask)
    placed, rank = _in_order("reciprocal_rank", rankings, relevant, mask, k)
    return (placed / rank).amax(-1)
