"""The coursework's tasks on disparity, chapter 5."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Generator, Tensor

from checker.examine import Ask, Cases, Question, Slips, typed
from checker.given import Documents
from checker.policies import double
from fairpg_lite.disparity import group_disparity, individual_disparity

HAND = 0.001  # three decimals by hand, rounded or cut off
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


def _queries(generator: Generator) -> Cases:
    drawn = [draw_documents(n, generator)[:2] for n in (3, 4, 4, 5, 6, 8)]
    tied = double(1.0, 0.6, 0.5, 0.9), torch.ones(4).double()
    (v, m), three = drawn[1], torch.arange(4) < 3
    without = m * double(1, 0, 1, 1)
    return [*drawn, (tied[0][:3], tied[1][:3])], {
        "a document without merit": (v, without, None),
        "nobody has merit, so there is no pair and D_ind is 0": (v, 0 * m, None),
        "one document": (v[:1], m[:1], None),
        "padding": (*tied, three),
        "padding, and a document without merit": (v, without, three),
    }


_INDIVIDUAL: Slips = {
    "two_sided": partial(_pairwise, hinge=torch.abs),
    "no_hinge": partial(_pairwise, hinge=lambda gap: gap),
    "reversed": partial(_pairwise, hinge=lambda gap: torch.relu(-gap)),
    "summed": partial(_pairwise, count=lambda pairs: 1),
    "no_diagonal": partial(_pairwise, pairs=lambda a: (a >= 0) & ~torch.eye(len(a)).bool()),
    "strict": partial(_pairwise, pairs=lambda ahead: ahead > 0),
    "n_squared": partial(_pairwise, count=torch.numel),
    "all_pairs": partial(_pairwise, pairs=torch.isfinite, bar=False),
    "no_merit": lambda v, m, mask=None: _pairwise(v * m, m),
    "tie_upwards": partial(_pairwise, pairs=lambda a: (a >= 0) & ~(a == 0).triu(1)),
    "tie_downwards": partial(_pairwise, pairs=lambda a: (a >= 0) & ~(a == 0).tril(-1)),
    "no_mask": lambda v, m, mask=None: individual_disparity(v, m),
    "no_bar": partial(_pairwise, bar=False),
}
individual = Question("task4b", "exposure merit mask", individual_disparity, _queries, _INDIVIDUAL)


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
) -> Tensor:
    """D_group with a part replaced: the ratio of a group, what orders the groups, the hinge."""
    parts = [(exposure[groups == g], merit[groups == g]) for g in (0, 1)]
    high, low = sorted(parts, key=lambda part: -float(order(part[1])))
    return hinge(ratio(*high) - ratio(*low))


g_factor = partial(_by_group, ratio=lambda v, m: v.sum() / m.mean())
two_sided_groups = partial(_by_group, hinge=torch.abs)


def _two_groups(n: int, generator: Generator, positive: bool) -> Documents:
    """Documents, some without merit, whose D_group is positive or zero, as asked."""
    while True:
        found = draw_documents(n, generator, zeros=True)
        merits = [found.merit[found.groups == g].mean() for g in (0, 1)]
        fits = (float(group_disparity(*found)) > 0.01) == positive
        if fits and float(min(merits)) > 0 and merits[0] != merits[1]:
            return found


def _queries_with_groups(generator: Generator) -> Cases:
    sizes = ((3, True), (5, True), (5, False), (7, True), (7, False), (9, True))
    drawn = [_two_groups(n, generator, positive) for n, positive in sizes]
    flipped = [(d.exposure, d.merit, 1 - d.groups) for d in drawn]
    v, m, g = drawn[1]
    tie, padded = torch.full_like(m, 2.0), (double(1.0, 0.2, 0.2, 0.9), double(5, 2, 2, 1))
    return [*drawn, *flipped], {
        "a tie in merit": (v, tie, g, None),
        "a tie in merit, groups renamed": (v, tie, 1 - g, None),
        "one group is absent": (v, m, 0 * g, None),
        "one group has no merit": (v, m * (g == 0), g, None),
        "nobody has merit": (v, 0 * m, g, None),
        "padding": (*padded, torch.tensor([0, 1, 1, 0]), torch.arange(4) < 3),
        "padding in the other group": (*padded, torch.tensor([0, 1, 1, 1]), torch.arange(4) < 3),
    }


_GROUP: Slips = {
    "g_factor": g_factor,
    "g_inverted": partial(_by_group, ratio=lambda v, m: v.mean() / m.sum()),
    "reversed": partial(_by_group, hinge=lambda gap: torch.relu(-gap)),
    "two_sided": two_sided_groups,
    "no_hinge": partial(_by_group, hinge=lambda gap: gap),
    "no_merit": partial(_by_group, ratio=lambda v, m: v.mean()),
    "only_with_merit": partial(_by_group, ratio=lambda v, m: v[m > 0].sum() / m.sum()),
    "group_0": partial(_by_group, order=lambda m: 0.0),
    "total_merit": partial(_by_group, order=torch.sum),
    "tie_is_zero": lambda v, m, g, mask=None: group_disparity(v, m, g, mask) * (m.std() > 0),
    "absent_is_nan": partial(group_disparity, undefined=float("nan")),
    "no_mask": lambda v, m, g, mask=None: group_disparity(v, m, g),
}
group = Question(
    "task4c", "exposure merit groups mask", group_disparity, _queries_with_groups, _GROUP
)


# --- the documents, and task 4a: both by hand -------------------------------------------------


def draw_documents(n: int, generator: Generator, zeros: bool = False) -> Documents:
    """Round numbers, and two groups of unequal size."""
    exposure = torch.randint(20, 101, (n,), generator=generator).double() / 100
    merit = torch.randint(0 if zeros else 1, 6, (n,), generator=generator).double()
    groups = torch.zeros(n, dtype=torch.long)
    groups[torch.randperm(n, generator=generator)[: max(1, n // 3)]] = 1
    return Documents(exposure, merit, groups)


@lru_cache(maxsize=64)
def three_documents(seed: int) -> Documents:
    """Three documents for which no slip leads to the right answer, or close to another slip's.

    Two of equal merit in group 0, so that the ties of H count; one of higher merit in group 1, and
    of less than theirs together, so that the groups' order is neither that of their names nor that
    of their total merits. Where D_group is positive its two-sided form is the same; D_ind's is not.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    while True:
        low, place = drawn(2, 5), drawn(0, 3)
        groups = (torch.arange(3) == place).long()
        merit = low + groups * float(drawn(low + 1, min(2 * low, 6)) - low)
        exposure = torch.randint(20, 101, (3,), generator=generator).double() / 100
        found = Documents(exposure, merit.double(), groups)
        both = ((individual, found[:2]), (group, found))
        if len(set(exposure.tolist())) == 3 and all(_apart(*each) for each in both):
            return found


def _apart(question: Question, query: tuple[Tensor, ...]) -> bool:
    """Whether different slips are too far from each other, and from what is right, to be confused.

    Some cannot err on three documents; and several ways to get D_group wrong give 0.
    """
    right = float(question.right(*query))
    if right < 0.02:
        return False
    values = [float(slip(*query)) for slip in question.slips.values()]
    wrong = [value for value in values if value == value and abs(value - right) > 1e-9]
    several = sorted([right, *(value for value in wrong if value), *([0.0] if 0 in wrong else [])])
    return all(b - a > 2.2 * HAND for a, b in itertools.pairwise(several))


def by_hand(answers: Sequence[Ask], generator: Generator) -> None:
    """Two numbers, each half of the points."""
    three = three_documents(generator.initial_seed())
    ind, grp = (replace(q, relative=0.0, absolute=HAND + 1e-9) for q in (individual, group))
    typed(("D_ind", answers[0], ind, three[:2]), ("D_group", answers[1], grp, three))
