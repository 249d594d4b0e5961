"""The coursework's tasks on disparity, chapter 5."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import torch
from torch import Generator, Tensor

from checker.examine import Ask, Case, Question, typed
from checker.given import Documents
from fairpg_lite.disparity import group_disparity, individual_disparity

HAND = 0.001  # three decimals by hand, rounded or cut off
Measure = Callable[[Tensor], Tensor]

# --- task 4b: D_ind ---------------------------------------------------------------------------


def _at_least(merit: Tensor) -> Tensor:
    return merit[:, None] >= merit


def _tie_one_way(merit: Tensor, corner: Measure) -> Tensor:
    """Of two documents of equal merit, only the pair in which one of them comes first."""
    tied = (merit[:, None] == merit) & ~corner(torch.ones(len(merit), len(merit))).bool()
    return (merit[:, None] > merit) | tied


def _pairwise(
    exposure: Tensor,
    merit: Tensor,
    mask: Tensor | None = None,
    *,
    hinge: Measure = torch.relu,
    pairs: Measure = _at_least,
    count: Measure = torch.sum,
    per_merit: bool = True,
    bar: bool = True,
) -> Tensor:
    """D_ind with a part replaced: the hinge, who forms a pair, the divisor, ..."""
    if mask is not None:
        exposure, merit = exposure[mask], merit[mask]
    ratio = exposure / merit if per_merit else exposure
    in_h = pairs(merit) & (merit > 0) if bar else pairs(merit)
    total = hinge(ratio[:, None] - ratio)[in_h].sum()
    divisor = float(count(in_h))
    return total / divisor if divisor else total * 0


def _queries(generator: Generator) -> list[Case]:
    drawn = [draw_documents(n, generator)[:2] for n in (3, 4, 4, 5, 6, 8)]
    tied = torch.tensor([[1.0, 0.6, 0.5], [1.0, 1.0, 1.0]], dtype=torch.float64)
    v, m = drawn[1]
    without = m * torch.tensor([1.0, 0.0, 1.0, 1.0])
    padded = _padded(Documents(tied[0], tied[1], torch.zeros(3)), 0)
    edges: dict[str, tuple[Tensor, Tensor, Tensor | None]] = {
        "a document without merit": (v, without, None),
        "nobody has merit, so there is no pair and D_ind is 0": (v, 0 * m, None),
        "one document": (v[:1], m[:1], None),
        "padding": (padded[0], padded[1], padded[3]),
        "padding, and a document without merit": (v, without, torch.arange(4) < 3),
    }
    plain = [Case(pair) for pair in [*drawn, tuple(tied)]]
    return [*plain, *(Case(query, edge) for edge, query in edges.items())]


individual = Question(
    "task4b",
    "exposure merit mask",
    individual_disparity,
    _queries,
    slips={
        "two_sided": partial(_pairwise, hinge=torch.abs),
        "no_hinge": partial(_pairwise, hinge=lambda gap: gap),
        "reversed": partial(_pairwise, hinge=lambda gap: torch.relu(-gap)),
        "summed": partial(_pairwise, count=lambda pairs: torch.ones(())),
        "no_diagonal": partial(_pairwise, pairs=lambda m: _at_least(m) & ~torch.eye(len(m)).bool()),
        "strict": partial(_pairwise, pairs=lambda m: m[:, None] > m),
        "n_squared": partial(_pairwise, count=lambda pairs: torch.tensor(pairs.numel())),
        "all_pairs": partial(
            _pairwise, pairs=lambda m: torch.ones(len(m), len(m)).bool(), bar=False
        ),
        "no_merit": partial(_pairwise, per_merit=False),
        "tie_upwards": partial(_pairwise, pairs=partial(_tie_one_way, corner=lambda x: x.triu(1))),
        "tie_downwards": partial(
            _pairwise, pairs=partial(_tie_one_way, corner=lambda x: x.tril(-1))
        ),
        "no_bar": partial(_pairwise, bar=False),
        "no_mask": lambda v, m, mask=None: individual_disparity(v, m),
    },
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
) -> Tensor:
    """D_group with a part replaced: the ratio of a group, what orders the groups, the hinge."""
    if mask is not None:
        exposure, merit, groups = exposure[mask], merit[mask], groups[mask]
    parts = [(exposure[groups == g], merit[groups == g]) for g in (0, 1)]
    high, low = sorted(parts, key=lambda part: -float(order(part[1])))
    return hinge(ratio(*high) - ratio(*low))


def _tie_is_zero(v: Tensor, m: Tensor, g: Tensor, mask: Tensor | None = None) -> Tensor:
    return group_disparity(v, m, g, mask) * (m[g == 0].mean() != m[g == 1].mean())


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


def _queries_with_groups(generator: Generator) -> list[Case]:
    sizes = ((3, True), (5, True), (5, False), (7, True), (7, False), (9, True))
    drawn = [_two_groups(n, generator, positive) for n, positive in sizes]
    flipped = [(d.exposure, d.merit, 1 - d.groups) for d in drawn]
    v, m, g = drawn[1]
    tie = torch.full_like(m, 2.0)
    edges = {
        "a tie in merit": (v, tie, g, None),
        "a tie in merit, groups renamed": (v, tie, 1 - g, None),
        "one group is absent": (v, m, 0 * g, None),
        "one group has no merit": (v, m * (g == 0), g, None),
        "nobody has merit": (v, 0 * m, g, None),
        "padding": _padded(drawn[0], 0),
        "padding in the other group": _padded(drawn[0], 1),
    }
    plain = [Case(tuple(query)) for query in (*drawn, *flipped)]
    return [*plain, *(Case(query, edge) for edge, query in edges.items())]


group = Question(
    "task4c",
    "exposure merit groups mask",
    group_disparity,
    _queries_with_groups,
    slips={
        "g_factor": g_factor,
        "g_inverted": partial(_by_group, ratio=lambda v, m: v.mean() / m.sum()),
        "reversed": partial(_by_group, hinge=lambda gap: torch.relu(-gap)),
        "two_sided": two_sided_groups,
        "no_hinge": partial(_by_group, hinge=lambda gap: gap),
        "no_merit": partial(_by_group, ratio=lambda v, m: v.mean()),
        "only_with_merit": partial(_by_group, ratio=lambda v, m: v[m > 0].sum() / m.sum()),
        "group_0": partial(_by_group, order=lambda m: torch.zeros(())),
        "total_merit": partial(_by_group, order=torch.sum),
        "tie_is_zero": _tie_is_zero,
        "absent_is_nan": partial(group_disparity, undefined=float("nan")),
        "no_mask": lambda v, m, g, mask=None: group_disparity(v, m, g),
    },
)


# --- the documents, and task 4a: both by hand -------------------------------------------------


def draw_documents(n: int, generator: Generator, zeros: bool = False) -> Documents:
    """Round numbers, two groups of unequal size, the first document in group 0."""
    exposure = torch.randint(20, 101, (n,), generator=generator).double() / 100
    merit = torch.randint(0 if zeros else 1, 6, (n,), generator=generator).double()
    groups = torch.zeros(n, dtype=torch.long)
    groups[torch.randperm(n, generator=generator)[: max(1, n // 3)]] = 1
    return Documents(exposure, merit, groups)


def _padded(documents: Documents, label: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The documents and one that is not there, with numbers that would count if it were."""
    exposure, merit, groups = (
        torch.cat([part, part.new_tensor([value])])
        for part, value in zip(documents, (0.9, 1.0, label), strict=True)
    )
    return exposure, merit, groups, torch.arange(len(merit)) < len(merit) - 1


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
        if (
            min(float(q.right(*query)) for q, query in both) < 0.02
            or len(set(exposure.tolist())) < 3
        ):
            continue
        if all(_apart(question, query) for question, query in both):
            return found


def _apart(question: Question, query: tuple[Tensor, ...]) -> bool:
    """Whether different slips are too far from each other, and from what is right, to be confused.

    Some cannot err on three documents; and several ways to get D_group wrong give 0.
    """
    right = float(question.right(*query))
    values = [float(slip(*query)) for slip in question.slips.values()]
    wrong = [value for value in values if value == value and abs(value - right) > 1e-9]
    several = sorted([right, *(value for value in wrong if value), *([0.0] if 0 in wrong else [])])
    return all(b - a > 2.2 * HAND for a, b in itertools.pairwise(several))


def by_hand(answers: Sequence[Ask], generator: Generator) -> None:
    """Two numbers, each half of the points."""
    three = three_documents(generator.initial_seed())
    ind, grp = (replace(q, relative=0.0, absolute=HAND + 1e-9) for q in (individual, group))
    typed(("D_ind", answers[0], ind, three[:2]), ("D_group", answers[1], grp, three))
