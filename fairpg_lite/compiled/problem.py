"""What is known before training, as arrays: computed by the functions that define it."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import exposure
from fairpg_lite.compiled.kernels import arguments
from fairpg_lite.compiled.kernels.arguments import Ints, Problem, Times
from fairpg_lite.data import RankingDataset
from fairpg_lite.first_places import is_short
from fairpg_lite.nodes import (
    discount_nodes,
    enough_arrivals,
    first_grid,
    grid_parameters,
    reachable,
    widest_gap,
)
from fairpg_lite.objective import Objective, ideals
from fairpg_lite.relevance import GAINS, merit_of

#: The disparities that there are kernels for.
DISPARITIES = {
    None: arguments.NO_DISPARITY,
    "d_ind": arguments.D_IND,
    "d_group": arguments.D_GROUP,
    "group_gap": arguments.GROUP_GAP,
}
BASELINES = {
    None: arguments.NO_BASELINE,
    "mean": arguments.MEAN,
    "loo": arguments.LEAVE_ONE_OUT,
    "uniform": arguments.UNIFORM,
}


def problem_of(dataset: RankingDataset, objective: Objective, dtype: torch.dtype) -> Problem:
    """The documents and queries of a data set, and the objective, for the kernels.

    Args:
        dataset: The training queries.
        objective: What is maximised, with one of `DISPARITIES`.
        dtype: The number format of the scorer, in which autograd would compute gain and merit.

    Returns:
        Everything but the features, in float64.
    """
    weight, constant = _utility(dataset, objective, dtype)
    merit = _by_query(dataset, dtype, lambda relevance: merit_of(relevance, objective.merit))
    disparity = DISPARITIES[objective.disparity]  # type: ignore[index]  # `why_not` has looked
    if dataset.groups is None:
        groups = torch.zeros_like(merit, dtype=torch.int64)
        if objective.needs_groups:  # `Objective.terms` then reports zero, too
            disparity = arguments.NO_DISPARITY
    else:
        groups = torch.unique(dataset.groups, return_inverse=True)[1]
    position_bias = objective.position_bias
    if position_bias is None:
        position_bias = exposure.position_bias(int(dataset.lengths.max()), dtype=torch.float64)
    return Problem(
        offsets=dataset.offsets.numpy(),
        weight=weight.double().numpy(),
        constant=constant.double().numpy(),
        merit=merit.double().numpy(),
        groups=groups.numpy(),
        n_groups=int(groups.max()) + 1,
        position_bias=position_bias.double().numpy(),
        lam=float(objective.lam),
        samples=objective.samples if objective.method == "sample" else 0,
        baseline=BASELINES[objective.baseline],
        reward_to_go=objective.reward_to_go,
        places=exposure.paid_places(position_bias),
        disparity=disparity,
    )


def _utility(
    dataset: RankingDataset, objective: Objective, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Weight of each document's exposure ``(N,)`` and constant of each query ``(Q,)``."""
    gain = objective.gain if callable(objective.gain) else GAINS[objective.gain]
    weight = _by_query(dataset, dtype, gain)
    if objective.utility == "dcg":
        return weight, torch.zeros(len(dataset))
    ideal = ideals(dataset, objective, dtype)
    ideal_of_document = ideal.repeat_interleave(dataset.lengths)
    weight = torch.where(ideal_of_document > 0, weight / ideal_of_document, 0.0)
    constant = (ideal == 0).to(dtype)  # NDCG without a relevant document is 1
    return weight, constant


def _by_query(
    dataset: RankingDataset, dtype: torch.dtype, function: Callable[[Tensor], Tensor]
) -> Tensor:
    """A function of relevance for all documents ``(N,)``, query by query.

    A function of the user's may look at the other documents of a query.
    """
    queries = dataset.relevance.to(dtype).split(dataset.lengths.tolist())
    return torch.cat([function(relevance) for relevance in queries])


def times_of(lengths: Ints, objective: Objective, dtype: torch.dtype) -> Times:
    """Nodes and log-times for all lengths of queries ``(Q,)`` that occur.

    Args:
        lengths: The number of documents of each query.
        objective: What is maximised. Unless its method is "exact" there are no nodes.
        dtype: The number format of the scorer, which limits the tolerance.

    Returns:
        The grids of `fairpg_lite.nodes`, one for each length.
    """
    tolerance = reachable(objective.tolerance, dtype)
    size = int(lengths.max()) + 2
    step = np.ones(size)
    widest = np.ones(size)
    node_counts = np.zeros(size, np.int64)
    nodes = [np.empty(0)]
    coefficients = [np.empty(0)]
    first = 0.0
    arrival = 0.0
    given_bias = objective.position_bias
    places = 0 if given_bias is None else exposure.paid_places(given_bias)
    occurring = np.unique(lengths).tolist() if objective.method == "exact" else []
    for n in occurring:
        widest[n] = widest_gap(n, tolerance)
        bias = None if given_bias is None else given_bias[:n]
        if given_bias is not None and is_short(places, n):
            first, _, arrival = first_grid(places, tolerance)
            continue
        nodes_of_n, coefficients_of_n = discount_nodes(n, bias, tolerance, torch.float64)
        first, step[n], arrival = grid_parameters(n, nodes_of_n, tolerance)
        node_counts[n + 1] = len(nodes_of_n)
        nodes.append(nodes_of_n.numpy())
        coefficients.append(coefficients_of_n.numpy())
    return Times(
        nodes=np.concatenate(nodes),
        coefficients=np.concatenate(coefficients),
        node_starts=np.cumsum(node_counts),
        step=step,
        widest_gap=widest,
        first_bias=np.empty(0) if given_bias is None else given_bias[:places].double().numpy(),
        first_step=first_grid(max(1, places), tolerance).step,
        enough=1.0 + enough_arrivals(max(1, places), tolerance),
        first=first,
        arrival=arrival,
    )
