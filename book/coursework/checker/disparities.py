"""The coursework's tasks on disparity, chapter 5."""

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Generator, Tensor

from checker.calls import as_answer
from checker.examine import Case, Close, Finding, Slip, compare, settled
from checker.given import Documents
from fairpg_lite.disparity import group_disparity, individual_disparity

HAND = 0.001  # three decimals by hand, rounded or cut off
FORGOT_MASK = (
    "The mask has no effect. Where it is False there is no document: what stands there must not "
    "count."
)

# --- wrong ways to D_ind: each is (exposure, merit, mask=None) -> value ---------------------

Pairs = Callable[[Tensor, Tensor], Tensor]


def _pairwise(
    exposure: Tensor,
    merit: Tensor,
    mask: Tensor | None = None,
    *,
    hinge: Callable[[Tensor], Tensor] = torch.relu,
    order: Pairs = torch.ge,
    drop: Callable[[int], Tensor] | None = None,
    count: Callable[[Tensor], float] | None = None,
    per_merit: bool = True,
    bar: bool = True,
) -> Tensor:
    """D_ind with a part replaced: the hinge, who forms a pair, which are dropped, the divisor."""
    if mask is not None:
        exposure, merit = exposure[mask], merit[mask]
    ratio = exposure / merit if per_merit else exposure
    pairs = order(merit[:, None], merit)
    if bar:
        pairs = pairs & (merit > 0)
    if drop is not None:
        pairs = pairs & ~drop(len(merit)).bool()
    total = hinge(ratio[:, None] - ratio)[pairs].sum()
    divisor = float(pairs.sum()) if count is None else count(pairs)
    return total / divisor if divisor else total * 0


def _slip(**parts: Any) -> Callable[..., Tensor]:
    def wrong(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
        return _pairwise(v, m, mask, **parts)

    return wrong


def _one_way(upper: bool) -> Callable[..., Tensor]:
    """Of two documents of equal merit, only the pair in which one of them comes first."""

    def wrong(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
        corner = torch.ones(len(v), len(v)).tril(-1).bool()
        corner = corner.T if upper else corner
        tied = m[:, None] == m
        return _pairwise(v, m, mask, drop=lambda n: (corner & tied)[:n, :n])

    return wrong


ONE_WAY = (
    "Of two documents of equal merit only one direction is counted; both (i, j) and (j, i) belong "
    "to H."
)
IND_SLIPS = (
    Slip(
        "The difference counts in both directions. D_ind is one-sided: only the document of "
        "higher merit can be too far ahead, max(0, ...).",
        _slip(hinge=torch.abs),
    ),
    Slip(
        "The max(0, ...) is missing: negative differences cancel positive ones.",
        _slip(hinge=lambda difference: difference),
    ),
    Slip(
        "The sign is reversed: it is the document of *higher* merit that must not get more "
        "exposure per unit of merit.",
        _slip(hinge=lambda difference: torch.relu(-difference)),
    ),
    Slip(
        "That is the sum over the pairs; D_ind divides it by their number |H|.",
        _slip(count=lambda pairs: 1.0),
    ),
    Slip(
        "The pairs (i, i) are missing from |H|. They add 0 to the sum and 1 each to the number "
        "of pairs, as the paper defines H.",
        _slip(drop=torch.eye),
    ),
    Slip(
        "H wants M_i >= M_j, and you have M_i > M_j: documents of equal merit form pairs too "
        "(and so does each with itself).",
        _slip(order=torch.gt),
    ),
    Slip(
        "The sum is divided by n * n; divide by |H|, the number of pairs in H.",
        _slip(count=lambda pairs: float(pairs.numel())),
    ),
    Slip(
        "All pairs are counted; H wants those with M_i >= M_j.",
        _slip(order=lambda one, other: (one == one) & (other == other), bar=False),
    ),
    Slip("Exposure must be divided by merit before it is compared.", _slip(per_merit=False)),
    Slip(ONE_WAY, _one_way(upper=True)),
    Slip(ONE_WAY, _one_way(upper=False)),
    Slip(
        "H wants M_j > 0: a document without merit takes no part, and dividing by its merit is "
        "dividing by zero.",
        _slip(bar=False),
    ),
    Slip(FORGOT_MASK, lambda v, m, mask=None: individual_disparity(v, m)),
)

# --- wrong ways to D_group: (exposure, merit, groups, mask=None) -> value -------------------

Means = Callable[[Tensor, Tensor], Tensor]


def _by_group(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor,
    mask: Tensor | None = None,
    *,
    ratio: Means | None = None,
    order: Means | None = None,
    join: Callable[[Tensor], Tensor] = torch.relu,
) -> Tensor:
    """D_group with a part replaced: the ratio of a group, what orders the groups, the hinge."""
    if mask is not None:
        exposure, merit, groups = exposure[mask], merit[mask], groups[mask]
    ratio = ratio or (lambda v, m: v.mean() / m.mean())
    order = order or (lambda v, m: m.mean())
    parts = [(exposure[groups == g], merit[groups == g]) for g in (0, 1)]
    high, low = sorted(parts, key=lambda part: -float(order(*part)))
    return join(ratio(*high) - ratio(*low))


def _tie_is_zero(v: Tensor, m: Tensor, g: Tensor, mask: Tensor | None = None) -> Tensor:
    tied = m[g == 0].mean() == m[g == 1].mean()
    return torch.zeros((), dtype=v.dtype) if tied else group_disparity(v, m, g, mask)


def _absent_is_nan(v: Tensor, m: Tensor, g: Tensor, mask: Tensor | None = None) -> Tensor:
    return group_disparity(v, m, g, mask, undefined=float("nan"))


def _twist(**parts: Any) -> Callable[..., Tensor]:
    def wrong(v: Tensor, m: Tensor, g: Tensor, mask: Tensor | None = None) -> Tensor:
        return _by_group(v, m, g, mask, **parts)

    return wrong


g_factor = _twist(ratio=lambda v, m: v.sum() / m.mean())
reversed_groups = _twist(join=lambda difference: torch.relu(-difference))
two_sided_groups = _twist(join=torch.abs)

GROUP_SLIPS = (
    Slip(
        "A factor |G| is left in: a sum of exposures over a mean merit. Take the mean of both "
        "(or the sum of both), so that the size of the group cancels. The authors' own baseline "
        "has this slip.",
        g_factor,
    ),
    Slip(
        "The |G| factor the other way round: a mean exposure over a sum of merits.",
        _twist(ratio=lambda v, m: v.mean() / m.sum()),
    ),
    Slip(
        "The sign is reversed: the group of *higher* merit must not be ahead per unit of merit.",
        reversed_groups,
    ),
    Slip(
        "The difference counts in both directions. D_group is one-sided: only the group of "
        "higher merit can be too far ahead, max(0, ...).",
        two_sided_groups,
    ),
    Slip("The max(0, ...) is missing: the result can be negative.", _twist(join=lambda d: d)),
    Slip(
        "Exposure must be divided by merit before it is compared.",
        _twist(ratio=lambda v, m: v.mean()),
    ),
    Slip(
        "Only documents with merit are counted. In D_group every member of a group counts, "
        "those without merit too.",
        _twist(ratio=lambda v, m: v[m > 0].sum() / m.sum()),
    ),
    Slip(
        "Group 0 is always taken for the group of higher merit; compare the merits first.",
        _twist(order=lambda v, m: torch.zeros(())),
    ),
    Slip(
        "The groups are ordered by their total merit; M_G is the mean.",
        _twist(order=lambda v, m: m.sum()),
    ),
    Slip(
        "On a tie in merit the result is 0. With M_G equal, either group may be the higher: "
        "take the larger of the two values.",
        _tie_is_zero,
    ),
    Slip(
        "A query that lacks a group, or a group's merit, has nothing to compare: return 0 there.",
        _absent_is_nan,
    ),
    Slip(FORGOT_MASK, lambda v, m, g, mask=None: group_disparity(v, m, g)),
)

# --- inputs ---------------------------------------------------------------------------------


def draw_documents(n: int, generator: Generator, zeros: bool = False) -> Documents:
    """Round numbers, two groups of unequal size, the first document in group 0."""
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
    while True:
        low = int(torch.randint(2, 5, (), generator=generator))
        merit = torch.full((3,), float(low), dtype=torch.float64)
        groups = torch.zeros(3, dtype=torch.long)
        place = int(torch.randint(3, (), generator=generator))
        merit[place] = float(torch.randint(low + 1, min(2 * low, 6), (), generator=generator))
        groups[place] = 1
        exposure = torch.randint(20, 101, (3,), generator=generator).double() / 100
        found = Documents(exposure, merit, groups)
        rights = float(individual_disparity(*found[:2])), float(group_disparity(*found))
        if min(rights) < 0.02 or len(set(exposure.tolist())) < 3:
            continue
        slips = (
            [float(slip.answer(*found[:2])) for slip in IND_SLIPS],
            [float(slip.answer(*found)) for slip in GROUP_SLIPS],
        )
        if all(_apart(right, values) for right, values in zip(rights, slips, strict=True)):
            return found


def _apart(right: float, values: list[float]) -> bool:
    """Whether different slips are too far from each other, and from what is right, to be confused.

    Some cannot err on three documents; and several ways to get D_group wrong give 0.
    """
    wrong = [value for value in values if value == value and abs(value - right) > 1e-9]
    several = sorted([right, *(value for value in wrong if value), *([0.0] if 0 in wrong else [])])
    return all(b - a > 2.2 * HAND for a, b in itertools.pairwise(several))


def _two_groups(n: int, generator: Generator, positive: bool) -> Documents:
    """Documents, some without merit, whose D_group is positive or zero, as asked."""
    while True:
        found = draw_documents(n, generator, zeros=True)
        merits = [found.merit[found.groups == g].mean() for g in (0, 1)]
        fits = (float(group_disparity(*found)) > 0.01) == positive
        if fits and float(min(merits)) > 0 and merits[0] != merits[1]:
            return found


def _padded(documents: Documents, label: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The documents and one that is not there, with numbers that would count if it were."""
    exposure, merit, groups = (
        torch.cat([part, part.new_tensor([value])])
        for part, value in zip(documents, (0.9, 1.0, label), strict=True)
    )
    return exposure, merit, groups, torch.arange(len(merit)) < len(merit) - 1


# --- the tasks ------------------------------------------------------------------------------


def by_hand(answers: tuple[Any, ...], generator: Generator) -> Finding:
    """Two numbers, each half of the points."""
    documents = three_documents(generator.initial_seed())
    names = ("exposure", "merit", "groups")
    inputs = dict(zip(names, documents, strict=True))
    both = (
        ("D_ind", individual_disparity(*documents[:2]), {k: inputs[k] for k in names[:2]}),
        ("D_group", group_disparity(*documents), inputs),
    )
    share, messages, read = 0.0, list[str](), list[str]()
    for given, slips, (name, right, shown) in zip(
        answers, (IND_SLIPS, GROUP_SLIPS), both, strict=True
    ):
        value = settled(as_answer(given, shown))
        close = Close(0.0, HAND + 1e-9)
        found = compare(_constant(value), [Case(shown, right)], slips, close=close)
        share += found.share / 2
        if found.message:
            messages.append(f"{name}: {found.message}")
            read.append("individual disparity" if name == "D_ind" else "group disparity")
    return Finding(share, "\n".join(messages), tuple(read))


def _constant(value: Tensor) -> Callable[..., Tensor]:
    return lambda *inputs: value


def individual(answers: tuple[Any, ...], generator: Generator) -> Finding:
    drawn = [draw_documents(n, generator) for n in (3, 4, 4, 5, 6, 8)]
    exposure, equal = torch.tensor([[1.0, 0.6, 0.5], [1.0, 1.0, 1.0]], dtype=torch.float64)
    tied = Documents(exposure, equal, drawn[0].groups)
    cases = [
        Case({"exposure": v, "merit": m}, individual_disparity(v, m)) for v, m, _ in [*drawn, tied]
    ]
    v, m, _ = drawn[1]
    without = m * torch.tensor([1.0, 0.0, 1.0, 1.0])
    edges: dict[str, tuple[Tensor, Tensor, Tensor | None]] = {
        "a document without merit": (v, without, None),
        "nobody has merit, so there is no pair and D_ind is 0": (v, 0 * m, None),
        "one document": (v[:1], m[:1], None),
        "padding": (*_padded(tied, 0)[:2], _padded(tied, 0)[3]),
        "padding, and a document without merit": (
            v,
            without,
            torch.tensor([True, True, True, False]),
        ),
    }
    for edge, (exposure, merit, mask) in edges.items():
        right = individual_disparity(exposure, merit, mask)
        cases.append(Case({"exposure": exposure, "merit": merit, "mask": mask}, right, edge))
    return compare(answers[0], cases, IND_SLIPS)


def group(answers: tuple[Any, ...], generator: Generator) -> Finding:
    sizes = ((3, True), (5, True), (5, False), (7, True), (7, False), (9, True))
    drawn = [_two_groups(n, generator, positive) for n, positive in sizes]
    flipped = [Documents(d.exposure, d.merit, 1 - d.groups) for d in drawn]
    cases = [
        Case(dict(zip(Documents._fields, d, strict=True)), group_disparity(*d))
        for d in [*drawn, *flipped]
    ]
    v, m, g = drawn[1]
    tie = torch.full_like(m, 2.0)
    absent = torch.zeros_like(g)
    edges = {
        "a tie in merit": (v, tie, g, None),
        "a tie in merit, groups renamed": (v, tie, 1 - g, None),
        "one group is absent": (v, m, absent, None),
        "one group has no merit": (v, m * (g == 0), g, None),
        "nobody has merit": (v, 0 * m, g, None),
        "padding": _padded(drawn[0], 0),
        "padding in the other group": _padded(drawn[0], 1),
    }
    for edge, given in edges.items():
        names = ("exposure", "merit", "groups", "mask")
        cases.append(Case(dict(zip(names, given, strict=True)), group_disparity(*given), edge))
    return compare(answers[0], cases, GROUP_SLIPS)
