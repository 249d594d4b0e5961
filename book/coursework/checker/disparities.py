"""The coursework's tasks on disparity, chapter 5."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Generator, Tensor

from checker.examine import Ask, Cases, Part, Question, Slips, typed
from checker.given import Documents
from checker.policies import double
from fairpg_lite.disparity import group_disparity, individual_disparity

HAND = 0.001  # three decimals by hand, rounded or cut off
#: Slips of D_group that cannot err on three documents with merit and without padding.
HARMLESS = ("tie_is_zero", "absent_is_nan", "no_mask", "only_with_merit", "only_relevant")
Measure = Callable[[Tensor], Any]

# --- task 4b: D_ind ---------------------------------------------------------------------------


def _pairwise(
    exposure: Tensor,
    merit: Tensor,
    mask: Tensor | None = None,
    *,
    hinge: Measure = torch.relu,
    pairs: Measure = lambda ahead: ahead >= 0,
    count: Measure = torch.sum,
    bar: bool = True,
) -> Tensor:
    """D_ind with a part replaced: the hinge, who forms a pair, the divisor, the bar M_j > 0."""
    ratio, in_h = exposure / merit, pairs(merit[:, None] - merit)
    in_h = in_h & (merit > 0) if bar else in_h
    total = hinge(ratio[:, None] - ratio)[in_h].sum()
    divisor = float(count(in_h))
    return total / divisor if divisor else total * 0


def _right_individual(exposure: Tensor, merit: Tensor, mask: Tensor | None = None) -> Tensor:
    """D_ind of the real documents alone, so that padding may hold anything."""
    if mask is not None:
        exposure, merit = exposure[mask], merit[mask]
    return individual_disparity(exposure, merit)


def _without_bar(exposure: Tensor, merit: Tensor, mask: Tensor | None) -> Tensor:
    """D_ind of the real documents, those without merit included."""
    if mask is not None:
        exposure, merit = exposure[mask], merit[mask]
    return _pairwise(exposure, merit, bar=False)


def _mean_of_positives(exposure: Tensor, merit: Tensor) -> Tensor:
    """The mean of those terms of D_ind that are positive."""
    ratio = exposure / merit
    gaps = (ratio[:, None] - ratio)[(merit[:, None] >= merit) & (merit > 0)]
    gaps = gaps[gaps > 0]
    return gaps.mean() if len(gaps) else torch.zeros((), dtype=torch.float64)


def _queries(generator: Generator) -> Cases:
    drawn = [draw_documents(n, generator)[:2] for n in (3, 4, 4, 5, 6, 8)]
    tied = double(1.0, 0.6, 0.5, 0.9), torch.ones(4).double()
    (v, m), three = drawn[1], torch.arange(4) < 3
    without = m * double(1, 0, 1, 1)
    absent = torch.where(three, v, math.nan)
    return [*drawn, (tied[0][:3], tied[1][:3])], {
        "a document without merit": (v, without, None),
        "nobody has merit, so there is no pair and D_ind is 0": (v, 0 * m, None),
        "one document": (v[:1], m[:1], None),
        "padding": (*tied, three),
        "padding, and a document without merit": (v, without, three),
        "padding that holds NaN": (absent, torch.where(three, m, math.nan), three),
    }


_INDIVIDUAL: Slips = {
    "two_sided": partial(_pairwise, hinge=torch.abs),
    "no_hinge": partial(_pairwise, hinge=lambda gap: gap),
    "reversed": partial(_pairwise, hinge=lambda gap: torch.relu(-gap)),
    "summed": partial(_pairwise, count=lambda pairs: 1),
    "no_diagonal": partial(_pairwise, pairs=lambda a: (a >= 0) & ~torch.eye(len(a)).bool()),
    "strict": partial(_pairwise, pairs=lambda ahead: ahead > 0),
    "n_squared": partial(_pairwise, count=torch.numel),
    "of_positives": lambda v, m, mask=None: _mean_of_positives(v, m),
    "triangle": partial(_pairwise, pairs=lambda a: (a >= 0) & torch.ones_like(a).bool().triu(1)),
    "shares": lambda v, m, mask=None: _pairwise(v / v.sum(), m / m.sum()),
    "all_pairs": partial(_pairwise, pairs=torch.isfinite, bar=False),
    "no_merit": lambda v, m, mask=None: _pairwise(v * m, m),
    "tie_upwards": partial(_pairwise, pairs=lambda a: (a >= 0) & ~(a == 0).triu(1)),
    "tie_downwards": partial(_pairwise, pairs=lambda a: (a >= 0) & ~(a == 0).tril(-1)),
    "no_mask": lambda v, m, mask=None: individual_disparity(v.nan_to_num(), m.nan_to_num()),
    "no_bar": lambda v, m, mask=None: _without_bar(v, m, mask),
}
individual = Question(
    "task4b", "exposure merit mask", _right_individual, _queries, _INDIVIDUAL, own_lines=()
)


# --- task 4c: D_group -------------------------------------------------------------------------


def _by_group(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor,
    mask: Tensor | None = None,
    *,
    ratio: Callable[[Tensor, Tensor], Tensor] = lambda v, m: v.mean() / m.mean(),
    order: Measure = torch.mean,
    hinge: Measure = torch.relu,
    ties: bool = True,
) -> Tensor:
    """D_group with a part replaced: the ratio of a group, what orders the groups, the hinge.

    Without ``ties`` the first group counts as the higher one where the order is equal.
    """
    parts = [(exposure[groups == g], merit[groups == g]) for g in (0, 1)]
    high, low = sorted(parts, key=lambda part: -float(order(part[1])))
    gap = ratio(*high) - ratio(*low)
    if ties and float(order(high[1])) == float(order(low[1])):
        return torch.maximum(hinge(gap), hinge(-gap))
    return hinge(gap)


g_factor = partial(_by_group, ratio=lambda v, m: v.sum() / m.mean())
two_sided_groups = partial(_by_group, hinge=torch.abs)


def _right_group(
    exposure: Tensor, merit: Tensor, groups: Tensor, mask: Tensor | None = None
) -> Tensor:
    """D_group of the real documents alone, so that padding may hold anything."""
    if mask is not None:
        exposure, merit, groups = exposure[mask], merit[mask], groups[mask]
    return group_disparity(exposure, merit, groups)


def _relevant(m: Tensor) -> Tensor:
    """The mean merit of those who have any; 0 if nobody has."""
    return m[m > 0].mean() if (m > 0).any() else torch.zeros((), dtype=m.dtype)


_only_relevant = partial(
    _by_group, ratio=lambda v, m: v[m > 0].mean() / _relevant(m), order=_relevant
)


def _gap(found: Documents) -> float:
    """The ratio of the group of higher merit less that of the other, with its sign."""
    return float(_by_group(*found, hinge=lambda gap: gap))


def _two_groups(n: int, generator: Generator, positive: bool) -> Documents:
    """Documents of unequal merit, some without, whose D_group is positive or zero, as asked."""
    while True:
        found = draw_documents(n, generator, zeros=True)
        merits = [found.merit[found.groups == g] for g in (0, 1)]
        means = [float(m.mean()) for m in merits]
        if min(means) == 0 or means[0] == means[1] or len(set(merits[0].tolist())) < 2:
            continue
        if (_gap(found) > 0) != positive or abs(_gap(found)) < 0.01:
            continue
        if n < 5 or not positive or abs(float(_only_relevant(*found)) - _gap(found)) > 0.01:
            return found


def _queries_with_groups(generator: Generator) -> Cases:
    sizes = ((3, True), (5, True), (5, False), (7, True), (7, False), (9, True))
    drawn = [_two_groups(n, generator, positive) for n, positive in sizes]
    flipped = [(d.exposure, d.merit, 1 - d.groups) for d in drawn]
    v, m, g = drawn[1]
    tie = torch.full_like(m, 2.0)
    padded = double(1.0, 0.2, 0.2, 0.9), double(5, 2, 2, 1)
    three = torch.arange(4) < 3
    nowhere = double(1.0, 0.2, 0.3, math.nan), double(5, 2, 1, math.nan)
    return [*drawn, *flipped], {
        "a tie in merit": (v, tie, g, None),
        "a tie in merit, groups renamed": (v, tie, 1 - g, None),
        "one group is absent": (v, m, 0 * g, None),
        "one group has no merit": (v, m * (g == 0), g, None),
        "nobody has merit": (v, 0 * m, g, None),
        "padding": (*padded, torch.tensor([0, 1, 1, 0]), three),
        "padding in the other group": (*padded, torch.tensor([0, 1, 1, 1]), three),
        "padding that holds NaN": (*nowhere, torch.tensor([0, 1, 1, 0]), three),
    }


def _tie_is_zero(v: Tensor, m: Tensor, g: Tensor, mask: Tensor | None = None) -> Tensor:
    """D_group, but 0 where the groups have the same mean merit."""
    if mask is not None:
        v, m, g = v[mask], m[mask], g[mask]
    tied = (g == 0).any() and (g == 1).any() and m[g == 0].mean() == m[g == 1].mean()
    return group_disparity(v, m, g) * (not tied)


_GROUP: Slips = {
    "g_factor": g_factor,
    "g_inverted": partial(_by_group, ratio=lambda v, m: v.mean() / m.sum()),
    "reversed": partial(_by_group, hinge=lambda gap: torch.relu(-gap)),
    "two_sided": two_sided_groups,
    "no_hinge": partial(_by_group, hinge=lambda gap: gap),
    "no_merit": partial(_by_group, ratio=lambda v, m: v.mean()),
    "mean_of_ratios": partial(_by_group, ratio=lambda v, m: (v / m).mean()),
    "mean_of_finite_ratios": partial(_by_group, ratio=lambda v, m: (v / m)[m > 0].mean()),
    "only_with_merit": partial(_by_group, ratio=lambda v, m: v[m > 0].sum() / m.sum()),
    "only_relevant": _only_relevant,
    "group_0": partial(_by_group, order=lambda m: 0.0, ties=False),
    "total_merit": partial(_by_group, order=torch.sum),
    "tie_is_zero": _tie_is_zero,
    "absent_is_nan": lambda v, m, g, mask=None: _right_group(v, m, g, mask) / _has_both(v, m, g),
    "no_mask": lambda v, m, g, mask=None: group_disparity(v.nan_to_num(), m.nan_to_num(), g),
}


def _has_both(exposure: Tensor, merit: Tensor, groups: Tensor) -> Tensor:
    """1 if both groups have merit, NaN if not."""
    both = all(merit[groups == g].nan_to_num().sum() > 0 for g in (0, 1))
    return torch.ones_like(exposure[0]) if both else torch.full_like(exposure[0], math.nan)


group = Question(
    "task4c",
    "exposure merit groups mask",
    _right_group,
    _queries_with_groups,
    _GROUP,
    own_lines=(),
)


# --- the documents, and task 4a: both by hand -------------------------------------------------


def draw_documents(n: int, generator: Generator, zeros: bool = False) -> Documents:
    """Round numbers, and two groups of unequal size."""
    exposure = torch.randint(20, 101, (n,), generator=generator).double() / 100
    merit = torch.randint(0 if zeros else 1, 6, (n,), generator=generator).double()
    groups = torch.zeros(n, dtype=torch.long)
    groups[torch.randperm(n, generator=generator)[: max(1, n // 3)]] = 1
    return Documents(exposure, merit, groups)


def reversed_exposure(three: Documents) -> Documents:
    """The same documents with the largest and the smallest exposure exchanged."""
    exposure = three.exposure.clone()
    first, last = exposure.argmax(), exposure.argmin()
    exposure[first], exposure[last] = three.exposure[last], three.exposure[first]
    return three._replace(exposure=exposure)


@lru_cache(maxsize=64)
def three_documents(seed: int) -> Documents:
    """Three documents for which no slip leads to the right answers.

    Two of unequal merit in group 0; one in group 1 of the merit of the better of them, so that a
    tie counts in H, the mean of ratios is not the ratio of means, and the groups' order is neither
    that of their names nor that of their total merits. D_group is positive for the documents as
    they are or with the exposures exchanged, and 0 the other way, so that a two-sided measure is
    wrong on one of the two.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    while True:
        low = drawn(1, 5)
        high = drawn(low + 1, 6)
        place = drawn(0, 3)
        other = (place + drawn(1, 3)) % 3
        groups = (torch.arange(3) == place).long()
        merit = torch.full((3,), float(high), dtype=torch.float64)
        merit[other] = low
        exposure = torch.randint(20, 101, (3,), generator=generator).double() / 100
        found = Documents(exposure, merit, groups)
        swapped = reversed_exposure(found)
        if len(set(exposure.tolist())) < 3 or (_gap(found) > 0) == (_gap(swapped) > 0):
            continue
        groupwise = [
            (float(group.right(*each)), _slip_values(group, each)) for each in (found, swapped)
        ]
        pairwise = float(individual.right(*found[:2])), _slip_values(individual, found[:2])
        if _apart(*pairwise) and _tells(groupwise):
            return found


def _slip_values(question: Question, query: Sequence[Tensor]) -> list[float]:
    return [float(slip(*query)) for slip in question.slips.values()]


def _apart(right: float, values: list[float]) -> bool:
    """Whether the slips that err are too far from each other, and from what is right, to confuse.

    Some cannot err on three documents; and several may be 0.
    """
    if right < 0.02:
        return False
    wrong = {round(value, 9) for value in values if value == value}
    several = sorted({round(right, 9), *wrong})
    return all(b - a > 2.2 * HAND for a, b in itertools.pairwise(several))


def _tells(both: list[tuple[float, list[float]]]) -> bool:
    """Whether every slip of D_group is wrong, and visibly so, on one of the two inputs."""
    (first, values), (second, others) = both
    if max(first, second) < 0.05:
        return False
    for name, value, other in zip(_GROUP, values, others, strict=True):
        if name in HARMLESS:
            continue
        if abs(value - first) < 3 * HAND and abs(other - second) < 3 * HAND:
            return False
    return True


def by_hand(answers: Sequence[Ask], generator: Generator) -> None:
    """Three numbers, each a third of the points."""
    three = three_documents(generator.initial_seed())
    ind = replace(individual, relative=0.0, absolute=HAND + 1e-9, own_lines=None)
    grp = replace(group, relative=0.0, absolute=HAND + 1e-9, own_lines=None)
    typed(
        Part("D_ind", answers[0], ind, three[:2]),
        Part("D_group", answers[1], grp, three),
        Part("D_group after the exchange", answers[2], grp, reversed_exposure(three)),
    )
