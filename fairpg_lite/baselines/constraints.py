"""Fairness of exposure as rows of a linear programme (chapters 9 and 12).

Every row is linear in exposure ``v``; a disparity is a weighted sum of hinges of rows, the very
number that `group_disparity` and `individual_disparity` return for the same merit.
"""

from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.disparity import Merit, group_ratios, merit_of

SCALINGS = ("definition", "authors")


class FairnessRows(NamedTuple):
    """``rows (k, n)`` of coefficients on exposure, some of which share a slack variable.

    ``slack (k,)`` names the slack of each row and ``weight (m,)`` its share in the disparity:
    ``D = sum_s weight[s] * max(0, largest row of slack s times exposure)``.

    Chapter 9.
    """

    rows: Tensor
    slack: Tensor
    weight: Tensor

    def disparity(self, exposure: Tensor) -> Tensor:
        """The disparity ``(…)`` of ``exposure (…, n)`` that the programme charges for."""
        excess = (exposure @ self.rows.mT).relu()
        index = self.slack.expand(excess.shape)
        hinge = excess.new_zeros((*excess.shape[:-1], len(self.weight)))
        return hinge.scatter_reduce(-1, index, excess, "amax") @ self.weight


def _collect(rows: list[Tensor], slack: list[int], weight: float, n: int) -> FairnessRows:
    count = max(slack, default=-1) + 1
    stacked = torch.stack(rows) if rows else torch.zeros(0, n, dtype=torch.float64)
    index = torch.tensor(slack, dtype=torch.int64)
    return FairnessRows(stacked, index, torch.full((count,), weight, dtype=torch.float64))


def group_rows(
    relevance: Tensor,
    groups: Tensor,
    *,
    scaling: str = "definition",
    merit: str | Merit = "identity",
    two_sided: bool = False,
) -> FairnessRows:
    """Rows for D_group, equation (4), of documents with ``relevance (n,)`` and ``groups (n,)``.

    For each pair of groups: exposure per unit of merit of the group with the higher mean merit
    minus that of the other; both directions where merits tie or with ``two_sided``. An estimated
    relevance below zero counts as no merit, and a group without merit forms no pair.

    ``scaling="authors"`` is what the published notebooks solve: the *sum* of exposures over the
    *mean* merit, i.e. the ratio times the size of the group, with raw relevance as merit and the
    sum of a group's merit raised to 0.01 where it is smaller.

    Chapters 5 and 9, eq-05-dgroup.
    """
    if scaling not in SCALINGS:
        raise ValueError(f"group_rows: scaling is {scaling!r}; choose one of {SCALINGS}.")
    relevance, n = relevance.double(), len(relevance)
    labels, index = torch.unique(groups, return_inverse=True)
    member = torch.nn.functional.one_hot(index, len(labels)).T.double()
    size = member.sum(-1)
    if scaling == "authors":
        mean = (member @ relevance).clamp(min=0.01) / size
        per_merit = member / mean.unsqueeze(-1)
    else:
        worth = merit_of(relevance.clamp(min=0.0), merit)
        _check.non_negative("group_rows", "merit", worth)
        # Linear in exposure, so the unit vectors give its coefficients: one ratio, one formula.
        unit = torch.eye(n, dtype=torch.float64)
        ratio, means = group_ratios(unit, worth.expand(n, n), index.expand(n, n))
        per_merit, mean = ratio.T, means[0]
    rows, slack = [], []
    pairs = [(a, b) for a, b in combinations(range(len(labels)), 2) if mean[a] > 0 and mean[b] > 0]
    for s, (a, b) in enumerate(pairs):
        for high, low in ((a, b), (b, a)):
            if two_sided or mean[high] >= mean[low]:
                rows.append(per_merit[high] - per_merit[low])
                slack.append(s)
    return _collect(rows, slack, 1.0 / max(len(pairs), 1), n)


def individual_rows(
    relevance: Tensor, *, merit: str | Merit = "identity", two_sided: bool = False
) -> FairnessRows:
    """Rows for D_ind, equation (3): one for each pair with M_i >= M_j > 0, i and j different.

    The pairs (i, i) have no row but count in the size of H, as in `individual_disparity`. With
    ``two_sided`` every pair has both directions under one slack.

    Chapters 5 and 11, eq-05-dind.
    """
    worth = merit_of(relevance.double().clamp(min=0.0), merit)
    _check.non_negative("individual_rows", "merit", worth)
    n, deserving = len(worth), worth > 0
    ahead = (worth.unsqueeze(-1) >= worth) & deserving & deserving.unsqueeze(-1)
    count = int(ahead.sum())
    pairs = (ahead & ~torch.eye(n, dtype=torch.bool)).nonzero()
    per_merit = torch.diag(torch.where(deserving, 1.0 / torch.where(deserving, worth, 1.0), 0.0))
    rows = per_merit[pairs[:, 0]] - per_merit[pairs[:, 1]]
    slack = torch.arange(len(pairs))
    weight = torch.full((len(pairs),), 1.0 / max(count, 1), dtype=torch.float64)
    if two_sided:
        rows, slack = torch.cat([rows, -rows]), torch.cat([slack, slack])
    return FairnessRows(rows, slack, weight)
