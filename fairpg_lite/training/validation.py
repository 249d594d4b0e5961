"""The objective of a training on a whole dataset, as exactly as it can be had."""

import dataclasses

import torch
from torch import nn

from fairpg_lite.data import RankingDataset
from fairpg_lite.pooling import Pool
from fairpg_lite.scorers import eval_mode, score
from fairpg_lite.training.config import TrainConfig
from fairpg_lite.training.distributed import sum_over_processes

# Queries in one batch, rankings for a utility that has to be sampled, and accuracy of exposure.
_BATCH_SIZE = 64
_SAMPLES = 100
_TOLERANCE = 1e-6


def objective_on(
    scorer: nn.Module, dataset: RankingDataset, config: TrainConfig
) -> tuple[float, float]:
    """Mean utility and mean disparity of the training objective on a dataset.

    Exposure is integrated whatever ``config.method`` is. A utility that is not linear in exposure
    is averaged over 100 rankings, drawn with a fixed seed. Under `torch.distributed` the means are
    over the datasets of all processes. Queries count by their weights, if they have some. A pooled
    disparity is that of all queries together; of
    several processes, the mean of their pools weighted by their queries.

    Args:
        scorer: The module that scores; it is in evaluation mode meanwhile.
        dataset: The queries to average over.
        config: Which utility and disparity, of which merit, gain and position bias.

    Returns:
        Utility and disparity; the latter is 0 if there is none, or no groups that it needs.

    >>> from fairpg_lite import LinearScorer, synthetic
    >>> lottery = LinearScorer(2, init=0.0)
    >>> utility, disparity = objective_on(lottery, synthetic(20), TrainConfig())
    >>> f"{utility:.3f} {disparity:.3f}"
    '0.741 0.000'
    """
    first = next(scorer.parameters())
    generator = torch.Generator(first.device).manual_seed(0)
    exact = dataclasses.replace(config, method="exact", samples=_SAMPLES, tolerance=_TOLERANCE)
    sums = torch.zeros(3, dtype=torch.float64, device=first.device)
    batches = dataset.to(device=first.device).batches(_BATCH_SIZE, dtype=first.dtype, reuse=True)
    pools: list[Pool] = []
    with eval_mode(scorer):
        for batch in batches:
            terms, exposure = exact.terms_and_exposure(score(scorer, batch), batch, generator)
            if exact.pooled != "query":
                pools.append(exact.pool_of(exposure, batch))
            if batch.query_weights is None:
                n_queries = batch.mask[:, 0].sum()
                sums += torch.stack([terms.utility.sum(), terms.disparity.sum(), n_queries])
            else:
                weights = batch.query_weights.double()
                utility = (weights * terms.utility.double()).sum()
                disparity = (weights * terms.disparity.double()).sum()
                sums += torch.stack([utility, disparity, weights.sum()])
    if pools:
        n_queries = sums[2]
        sums[1] = n_queries * exact.pooled_disparity(Pool.joined(pools))
    utility_sum, disparity_sum, count = sum_over_processes(sums).tolist()
    return utility_sum / count, disparity_sum / count
