"""Fairness of exposure as rows of a linear programme (chapters 9 and 12).

Every row is linear in exposure ``v``; a disparity is a weighted sum of hinges of rows, the very
number that `group_disparity` returns for the same merit.
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
    if scaling == "authors":
        member = torch.nn.functional.one_hot(index, len(labels)).T.double()
        mean = (member @ relevance).clamp(min=0.01) / member.sum(-1)
        per_merit = member / mean.unsqueeze(-1)
    else:
        deserved = merit_of(relevance.clamp(min=0.0), merit)
        _check.non_negative("group_rows", "merit", deserved)
        # Linear in exposure, so the unit vectors give its coefficients: one ratio, one formula.
        unit = torch.eye(n, dtype=torch.float64)
        ratio, means = group_ratios(unit, deserved.expand(n, n), index.expand(n, n))
        per_merit, mean = ratio.T, means[0]
    pairs = [(a, b) for a, b in combinations(range(len(labels)), 2) if mean[a] > 0 and mean[b] > 0]
    ahead = [
        (slack, per_merit[high] - per_merit[low])
        for slack, (a, b) in enumerate(pairs)
        for high, low in ((a, b), (b, a))
        if two_sided or mean[high] >= mean[low]
    ]
    rows = [row for _, row in ahead] or [per_merit.new_zeros(0, n)]
    share = torch.full((len(pairs),), 1.0 / max(len(pairs), 1), dtype=torch.float64)
    slack = torch.tensor([slack for slack, _ in ahead], dtype=torch.int64)
    return FairnessRows(torch.cat([row.reshape(-1, n) for row in rows]), slack, share)
