"""Two ways to less disparity that need no learning, and that every fair ranker must beat.

A *lottery* shows a random list with probability a, and the policy's own list otherwise,

    Mixture([policy, DoublyStochastic.uniform(n)], [1 - a, a])

and *heat* divides the scores by a temperature (chapters 9, 12 and 13). D_group is a hinge in every
query, so the disparity of a lottery is far below the straight line from the policy to the uniform
one, and has to be stored for several values of a.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import fairpg_lite as fl
from experiments.catalogue import UNIFORM, identify
from experiments.cells import Cells, Result, by_seed
from experiments.optimum import means, whole_batch
from fairpg_lite.batch import Batch
from fairpg_lite.policy import FixedRanking
from fairpg_lite.scorers import Scorer, score

#: Probabilities of a random list at which D_group is stored. At 0 it is the policy's, at 1 it is 0.
CHANCES = tuple(round(0.05 * k, 2) for k in range(1, 20))
#: Temperatures of the stored line, coldest first; 1, which is the policy itself, is left out.
COLDER = (0.25, 0.5)
WARMER = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0)
TEMPERATURES = COLDER + WARMER
DIGITS = 8


# What an experiment stores


@torch.no_grad()
def lotteries(scorer: Scorer, dataset: fl.RankingDataset) -> dict[str, list[float]]:
    """Lotteries of a scorer's policy, and of its sorted list.

    Args:
        scorer: What gives the scores of a Plackett-Luce policy.
        dataset: Queries with groups.

    Returns:
        D_group at each of `CHANCES`, of both, by the names that they are stored by.
    """
    batch = whole_batch(dataset)
    policy = fl.PlackettLuce(score(scorer, batch), batch.mask)
    ranking = FixedRanking(policy.mode, batch.mask, torch.float64)
    return {
        "lottery_d_group": lottery_d_group(policy.exposure(), batch),
        "sorted_lottery_d_group": lottery_d_group(ranking.exposure(), batch),
    }


def lottery_of(exposure: Tensor, batch: Batch) -> dict[str, Any]:
    """What a comparison needs of a policy that is known by its exposure ``(Q, n)`` alone.

    Sorted are the documents by their exposure.
    """
    order = exposure.argsort(dim=-1, descending=True, stable=True)
    ranking = FixedRanking(order, batch.mask, torch.float64).exposure()
    ndcg, d_group = means(batch, exposure)
    sorted_ndcg, sorted_d_group = means(batch, ranking)
    return {
        "ndcg": ndcg.item(),
        "d_group": d_group.item(),
        "sorted_ndcg": sorted_ndcg.item(),
        "sorted_d_group": sorted_d_group.item(),
        "lottery_d_group": lottery_d_group(exposure, batch),
        "sorted_lottery_d_group": lottery_d_group(ranking, batch),
    }


@torch.no_grad()
def lottery_d_group(exposure: Tensor, batch: Batch) -> list[float]:
    """D_group of the lotteries between a policy and random lists.

    The exposure of a mixture is the mean of the exposures, so one policy serves all chances.

    Args:
        exposure: Of the policy ``(Q, n)``.
        batch: The Q queries, with groups.

    Returns:
        The mean over queries at each of `CHANCES`.
    """
    chances = torch.tensor(CHANCES, dtype=torch.float64).view(-1, 1, 1)
    # All rankings together pay the same in sum; a random list shares it out evenly.
    total = exposure.sum(-1, keepdim=True)
    even = total / batch.mask.sum(-1, keepdim=True) * batch.mask
    _, d_group = means(batch, (1.0 - chances) * exposure + chances * even)
    return [round(value, DIGITS) for value in d_group.tolist()]


def heat(scorer: Scorer, dataset: fl.RankingDataset) -> dict[str, list[float]]:
    """NDCG and D_group of the policy with its scores divided by each of `TEMPERATURES`."""
    scores = scorer(dataset.features).detach().double()
    line: dict[str, list[float]] = {"temperature_ndcg": [], "temperature_d_group": []}
    for temperature in TEMPERATURES:
        evaluation = fl.evaluate(scores / temperature, dataset, ("ndcg", "d_group"))
        line["temperature_ndcg"].append(round(evaluation.ndcg, DIGITS))
        line["temperature_d_group"].append(round(evaluation.d_group, DIGITS))
    return line


# What is read of it


def lottery(result: Result, uniform_ndcg: float, prefix: str = "") -> np.ndarray:
    """The line of a stored run's lotteries.

    Args:
        result: The run's numbers.
        uniform_ndcg: NDCG of random lists on the same queries.
        prefix: "sorted_" for the run's most probable ranking.

    Returns:
        NDCG and D_group ``(2, steps)`` at the chances 0, `CHANCES` and 1.
    """
    chance = np.array([0.0, *CHANCES, 1.0])
    ndcg = (1 - chance) * result[f"{prefix}ndcg"] + chance * uniform_ndcg
    d_group = [result[f"{prefix}d_group"], *result[f"{prefix}lottery_d_group"], 0.0]
    return np.array([ndcg, d_group])


def heated(result: Result, *, from_one: bool = False) -> np.ndarray:
    """The line of a stored run at all temperatures, coldest first.

    Args:
        result: The run's numbers.
        from_one: Leave out what is colder than 1.

    Returns:
        NDCG and D_group ``(2, steps)`` at `COLDER`, 1 and `WARMER`.
    """
    cold = len(COLDER)
    rows = []
    for name in ("ndcg", "d_group"):
        stored = result[f"temperature_{name}"]
        rows.append([*stored[:cold], result[name], *stored[cold:]])
    line = np.array(rows)
    return line[:, cold:] if from_one else line


def best_within(line: np.ndarray, budget: float) -> float:
    """The highest NDCG that a line reaches at a D_group of at most ``budget``.

    Between two of its points a line is straight, and D_group need not fall along it.

    Args:
        line: NDCG and D_group ``(2, steps)``.
        budget: The most disparity.

    Returns:
        The NDCG, or minus infinity where the whole line has more disparity.
    """
    ndcg, d_group = line
    reached = [float(value) for value in ndcg[d_group <= budget]]
    for k in range(len(ndcg) - 1):
        before = d_group[k] - budget
        after = d_group[k + 1] - budget
        if before * after < 0:
            part = before / (before - after)
            reached.append(float(ndcg[k] + part * (ndcg[k + 1] - ndcg[k])))
    return max(reached, default=-math.inf)


def lottery_line(cells: Cells, experiment: str, lam: float = 0.0) -> pd.DataFrame:
    """The lotteries of a stored experiment with the uniform policy of its data.

    Args:
        cells: Stored cells.
        experiment: Its stored name.
        lam: Which of its policies.

    Returns:
        Columns seed, step (the probability of a random list), ndcg and d_group.
    """
    cells = list(cells)
    runs = by_seed(cells, experiment, lam)
    variant = identify(experiment).variant
    if variant is None:
        raise ValueError(f"lottery_line: {experiment} is no experiment on group fairness.")
    uniform = by_seed(cells, UNIFORM.on(variant), 0.0)
    # On fixed queries the uniform policy is the same for all seeds and stored once.
    first = next(iter(uniform.values()))
    lines = {}
    for seed, result in runs.items():
        lines[seed] = lottery(result, uniform.get(seed, first)["ndcg"])
    return _table(lines, [0.0, *CHANCES, 1.0])


def temperature_line(cells: Cells, experiment: str) -> pd.DataFrame:
    """The same for temperatures by which its scores at lambda 0 are divided, 1 first."""
    runs = by_seed(cells, experiment, 0.0)
    lines = {seed: heated(result, from_one=True) for seed, result in runs.items()}
    return _table(lines, [1.0, *WARMER])


def _table(lines: Mapping[int, np.ndarray], steps: Sequence[float]) -> pd.DataFrame:
    """Lines ``(2, steps)`` by seed, as one table."""
    parts = []
    for seed, (ndcg, d_group) in lines.items():
        columns = {"seed": seed, "step": steps, "ndcg": ndcg, "d_group": d_group}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)
