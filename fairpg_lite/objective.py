"""The objective of one batch, U - lam * D + gamma * H, one value per query (chapters 2 and 7).

Everything but a metric that is not linear in exposure goes one way:
scores -> policy -> exposure -> plain functions.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from fairpg_lite import metrics
from fairpg_lite.batch import Batch
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset
from fairpg_lite.disparity import group_disparity, individual_disparity, merit_of
from fairpg_lite.policy import PlackettLuce


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
    worth: "Worth | None" = None,
) -> Terms:
    """The terms for ``scores (B, n)`` of a batch; ``worth`` saves working out NDCG's weights."""
    mask = None if bool(batch.mask.all()) else batch.mask
    policy = PlackettLuce(scores, mask, validate_args=False)
    rankings = policy.sample((config.samples,), generator) if config.draws else None
    exposure = policy.exposure(
        config.position_bias,
        config.method,
        rankings=rankings,
        baseline=config.baseline,
        tolerance=config.tolerance,
    )
    utility = batch_utility(policy, exposure, rankings, batch, config, worth)
    with torch.set_grad_enabled(config.lam > 0):
        disparity = batch_disparity(exposure, batch, mask, config)
    return Terms(utility, disparity, _entropy(policy, config))


def _entropy(policy: PlackettLuce, config: TrainConfig) -> Tensor:
    with torch.set_grad_enabled(config.entropy > 0):
        return policy.entropy()


def batch_utility(
    policy: PlackettLuce,
    exposure: Tensor,
    rankings: Tensor | None,
    batch: Batch,
    config: TrainConfig,
    worth: "Worth | None" = None,
) -> Tensor:
    """The chosen utility ``(B,)``: from exposure where it is linear in it, else from rankings."""
    if worth is not None:
        weight, constant = worth.of(batch, policy.mask)
        utility = (weight * exposure).sum(-1)
        return utility if constant is None else utility + constant
    if config.utility == "dcg":
        return metrics.expected_dcg(exposure, batch.relevance, mask=policy.mask)
    if config.utility == "ndcg":
        return metrics.expected_ndcg(
            exposure, batch.relevance, position_bias=config.position_bias, mask=policy.mask
        )
    assert rankings is not None
    values = ranking_utility(rankings, batch.relevance, policy.mask, config)
    return policy.expect(values, rankings, config.baseline)


def ranking_utility(
    rankings: Tensor, relevance: Tensor, mask: Tensor | None, config: TrainConfig
) -> Tensor:
    """A metric ``(S, B)`` of given rankings, the sign such that larger is better."""
    if callable(config.utility):
        return config.utility(rankings, relevance, mask=mask)
    if config.utility == "average_rank":
        return -metrics.average_rank(rankings, relevance, mask=mask, undefined=0.0)
    return getattr(metrics, config.utility)(rankings, relevance, mask=mask)


class Worth:
    """NDCG's weights for all documents ``(N,)`` and constants ``(Q,)`` of a dataset."""

    def __init__(self, dataset: RankingDataset, config: TrainConfig, dtype: torch.dtype):
        self.starts = dataset.offsets[:-1]
        # Room at the end: the padding of a short last query points there.
        room = dataset.n_documents + int(dataset.lengths.max())
        self.weight = torch.zeros(room, dtype=dtype, device=self.starts.device)
        self.constant = torch.zeros(len(dataset), dtype=dtype, device=self.starts.device)
        for batch in dataset.replace(features=dataset.features[:, :0]).batches(256, dtype=dtype):
            weight, constant = metrics.ndcg_worth(
                batch.relevance, position_bias=config.position_bias, mask=batch.mask
            )
            self.weight[self._rows(batch)[batch.mask]] = weight[batch.mask]
            self.constant[batch.queries] = constant
        self.any_constant = bool((self.constant != 0).any())

    def _rows(self, batch: Batch) -> Tensor:
        """Row of each document of a batch ``(B, n)``; padding points beyond its query."""
        place = torch.arange(batch.mask.shape[-1], device=self.starts.device)
        return self.starts[batch.queries].unsqueeze(-1) + place

    def of(self, batch: Batch, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Weights ``(B, n)``, zero for padding, and constants ``(B,)`` (None: zero) of a batch."""
        constant = self.constant[batch.queries] if self.any_constant else None
        if len(batch.queries) == 1:
            start = int(self.starts[batch.queries])
            return self.weight[start : start + batch.mask.shape[-1]].unsqueeze(0), constant
        weight = self.weight[self._rows(batch)]
        return weight if mask is None else weight * mask, constant


def batch_disparity(
    exposure: Tensor, batch: Batch, mask: Tensor | None, config: TrainConfig
) -> Tensor:
    """The chosen disparity ``(B,)`` of an exposure ``(B, n)``; zeros if there is none."""
    if config.disparity is None or (config.disparity == "group" and batch.groups is None):
        return torch.zeros_like(exposure[..., 0])
    merit = merit_of(batch.relevance, config.merit)
    if callable(config.disparity):
        return config.disparity(exposure, merit, batch.groups, mask)
    if config.disparity == "individual":
        return individual_disparity(exposure, merit, mask)
    assert batch.groups is not None
    return group_disparity(exposure, merit, batch.groups, mask, undefined=config.undefined)
