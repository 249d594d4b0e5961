"""The objective, U - lam * D + gamma * H, and its value for each query (chapters 2 and 7).

Everything but a metric that is not linear in exposure goes one way:
scores -> policy -> exposure -> plain functions.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairpg_lite import metrics
from fairpg_lite.batch import Batch
from fairpg_lite.disparity import group_disparity, individual_disparity
from fairpg_lite.policy import PlackettLuce
from fairpg_lite.relevance import merit_of
from fairpg_lite.training.config import GROUP_DISPARITIES, TrainConfig


class Terms(NamedTuple):
    """Utility, disparity and entropy of each query ``(B,)``."""

    utility: Tensor
    disparity: Tensor
    entropy: Tensor

    def total(self, lam: float, gamma: float) -> Tensor:
        """What is maximised ``(B,)``: equation (1) plus the entropy term."""
        value = self.utility
        if lam > 0:
            value = value.sub(self.disparity, alpha=lam)
        if gamma > 0:
            value = value.add(self.entropy, alpha=gamma)
        return value


def batch_terms(
    scores: Tensor,
    batch: Batch,
    config: TrainConfig,
    generator: torch.Generator | None,
    ideal: Tensor | None = None,
) -> Terms:
    """The terms for ``scores (B, n)`` of a batch; ``ideal (Q,)`` is what `ideals` has found."""
    mask = None if bool(batch.mask.all()) else batch.mask
    policy = PlackettLuce(scores, mask)
    rankings = policy.sample((config.samples,), generator) if config.draws else None
    exposure = policy.exposure(
        config.position_bias,
        config.method,
        rankings=rankings,
        baseline=config.baseline,
        tolerance=config.tolerance,
    )
    kind, relevance = config.utility, batch.relevance
    if callable(kind):
        assert rankings is not None
        values = kind(rankings, relevance, mask=mask)
        utility = policy.expect(values, rankings, config.baseline)
    elif kind == "dcg":
        utility = metrics.expected_dcg(exposure, relevance, gain=config.gain, mask=mask)
    else:
        how: Any = {"gain": config.gain, "position_bias": config.position_bias, "mask": mask}
        how["ideal"] = None if ideal is None else ideal[batch.queries]
        utility = metrics.expected_ndcg(exposure, relevance, **how)
    with torch.set_grad_enabled(torch.is_grad_enabled() and config.lam > 0):
        disparity = _disparity(exposure, batch, mask, config)
    with torch.set_grad_enabled(torch.is_grad_enabled() and config.entropy > 0):
        entropy = policy.entropy()
    return Terms(utility, disparity, entropy)


def _disparity(exposure: Tensor, batch: Batch, mask: Tensor | None, config: TrainConfig) -> Tensor:
    """The chosen disparity ``(B,)`` of an exposure ``(B, n)``; zeros if there is none."""
    kind, groups = config.disparity, batch.groups
    if kind is None or (kind in GROUP_DISPARITIES and groups is None):
        return torch.zeros_like(exposure[..., 0])
    merit = merit_of(batch.relevance, config.merit)
    if callable(kind):
        return kind(exposure, merit, groups, mask)
    if kind == "individual":
        return individual_disparity(exposure, merit, mask)
    assert groups is not None
    return group_disparity(exposure, merit, groups, mask, two_sided=kind == "gap")


def ideals(dataset: Any, config: TrainConfig, dtype: torch.dtype) -> Tensor:
    """Ideal DCG of every query of a dataset ``(Q,)``, to be worked out once for all epochs."""
    lengths, grades = dataset.lengths, dataset.relevance.to(dtype)
    ideal = grades.new_empty(len(lengths))
    for n in lengths.unique().tolist():  # queries of one length need no padding
        queries = (lengths == n).nonzero().squeeze(-1)
        rows = dataset.offsets[queries].unsqueeze(-1) + torch.arange(n, device=grades.device)
        ideal[queries] = metrics.ideal_dcg(
            grades[rows], gain=config.gain, position_bias=config.position_bias
        )
    return ideal
