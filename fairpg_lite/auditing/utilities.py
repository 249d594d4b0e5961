"""How useful shown lists are, as trec_eval counts it.

A document that a list does not show adds nothing, and is part of the ideal. A query without
anything relevant counts 0.
"""

import torch
from torch import Tensor

from fairpg_lite.auditing.shown_lists import ShownLists
from fairpg_lite.exposure import position_bias
from fairpg_lite.metrics import expected_ndcg
from fairpg_lite.policy import Policy
from fairpg_lite.relevance import Gain

#: What they are called on the page.
UTILITIES = {"ndcg": "NDCG", "ap": "average precision", "rr": "reciprocal rank"}


def utilities_of(
    policy: Policy, relevance: Tensor, k: int | None, gain: str | Gain
) -> dict[str, float]:
    """The utilities of a query by name.

    Args:
        policy: Of lists that were shown; of another policy NDCG is the only one.
        relevance: ``(n,)``.
        k: Only the first k positions count; None is all.
        gain: Of a relevance, in NDCG.

    Returns:
        The mean over the lists of each.
    """
    bias = position_bias(len(relevance), k=k, dtype=torch.float64)
    exposure = policy.exposure(bias).double()
    ndcg = expected_ndcg(exposure, relevance, gain=gain, position_bias=bias, undefined=0.0)
    values = {"ndcg": float(ndcg)}
    if isinstance(policy, ShownLists):
        values["ap"] = float(average_precision(policy.position_of, relevance, k).mean())
        values["rr"] = float(reciprocal_rank(policy.position_of, relevance, k).mean())
    return values


def average_precision(position_of: Tensor, relevance: Tensor, k: int | None) -> Tensor:
    """The sum over relevant documents that are shown of the precision there, over all relevant.

    Args:
        position_of: ``(S, n)``, from 1; 0 is not shown.
        relevance: ``(n,)``; any above 0 counts as one.
        k: Only the first k positions count; None is all.

    Returns:
        ``(S,)``, 0 if nothing is relevant.
    """
    is_hit = _hits(position_of, relevance, k)
    total = (relevance > 0).sum()
    if total == 0:
        return torch.zeros(len(position_of), dtype=torch.float64)
    by_position = torch.zeros(len(position_of), position_of.shape[-1] + 1, dtype=torch.float64)
    # Whatever is not shown falls into the first column, which is no position.
    by_position.scatter_(-1, position_of, is_hit.double())
    placed = by_position[:, 1:]
    precision = placed.cumsum(-1) / torch.arange(1, placed.shape[-1] + 1)
    return (precision * placed).sum(-1) / total


def reciprocal_rank(position_of: Tensor, relevance: Tensor, k: int | None) -> Tensor:
    """One over the position of the first relevant document ``(S,)``, 0 if none is shown.

    Args:
        position_of: ``(S, n)``, from 1; 0 is not shown.
        relevance: ``(n,)``; any above 0 counts as one.
        k: Only the first k positions count; None is all.

    Returns:
        ``(S,)``.
    """
    is_hit = _hits(position_of, relevance, k)
    return (is_hit / position_of.clamp(min=1).double()).amax(-1)


def _hits(position_of: Tensor, relevance: Tensor, k: int | None) -> Tensor:
    """Whether a document is relevant and shown ``(S, n)``, among the first k if there is a k."""
    is_hit = (position_of > 0) & (relevance > 0)
    return is_hit if k is None else is_hit & (position_of <= k)
