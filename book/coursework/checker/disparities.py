"""The coursework's tasks on disparity, chapter 5."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from checker.examine import Case, Finding, Slip, as_tensor, compare
from fairpg_lite.disparity import group_disparity, individual_disparity

HAND = 0.005  # by hand, two or three decimals
FORGOT_MASK = (
    "The mask has no effect. Where it is False there is no document: what stands there must not "
    "count."
)

# --- wrong ways to D_ind: each is (exposure, merit, mask=None) -> value ---------------------


def _hinges(exposure: Tensor, merit: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """v_i/M_i - v_j/M_j ``(n, n)`` and the pairs of H, padding left out."""
    if mask is not None:
        exposure, merit = exposure[mask], merit[mask]
    ratio = exposure / merit
    pairs = (merit[:, None] >= merit) & (merit > 0)
    return ratio[:, None] - ratio, pairs


def _mean(values: Tensor) -> Tensor:
    """Zero where there is nothing to average, as the task's text says."""
    return values.mean() if values.numel() else values.sum()


def _two_sided(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pdiff, pairs = _hinges(v, m, mask)
    return _mean(pdiff.abs()[pairs])


def _no_hinge(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pdiff, pairs = _hinges(v, m, mask)
    return _mean(pdiff[pairs])


def _reversed(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pdiff, pairs = _hinges(v, m, mask)
    return _mean((-pdiff).relu()[pairs])


def _summed(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pdiff, pairs = _hinges(v, m, mask)
    return pdiff.relu()[pairs].sum()


def _without_diagonal(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pdiff, pairs = _hinges(v, m, mask)
    return _mean(pdiff.relu()[pairs & ~torch.eye(len(pairs), dtype=torch.bool)])


def _strictly(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pdiff, pairs = _hinges(v, m, mask)
    merit = m if mask is None else m[mask]
    return _mean(pdiff.relu()[pairs & (merit[:, None] > merit)])


def _all_squares(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pdiff, pairs = _hinges(v, m, mask)
    return pdiff.relu()[pairs].sum() / pairs.numel()


def _all_pairs(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    return _mean(_hinges(v, m, mask)[0].relu())


def _merit_ignored(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pairs = _hinges(v, m, mask)[1]
    exposure = v if mask is None else v[mask]
    return _mean((exposure[:, None] - exposure).relu()[pairs])


def _merit_without_bar(v: Tensor, m: Tensor, mask: Tensor | None = None) -> Tensor:
    pdiff, _ = _hinges(v, m, mask)
    merit = m if mask is None else m[mask]
    return _mean(pdiff.relu()[merit[:, None] >= merit])


IND_SLIPS = (
    Slip(
        "The difference counts in both directions. D_ind is one-sided: only the document of "
        "higher merit can be too far ahead, max(0, ...).",
        _two_sided,
    ),
    Slip("The max(0, ...) is missing: negative differences cancel positive ones.", _no_hinge),
    Slip(
        "The sign is reversed: it is the document of *higher* merit that must not get more "
        "exposure per unit of merit.",
        _reversed,
    ),
    Slip("That is the sum over the pairs; D_ind divides it by their number |H|.", _summed),
    Slip(
        "The pairs (i, i) are missing from |H|. They add 0 to the sum and 1 each to the number "
        "of pairs, as the paper defines H.",
        _without_diagonal,
    ),
    Slip(
        "H wants M_i >= M_j, and you have M_i > M_j: documents of equal merit form pairs too "
        "(and so does each with itself).",
        _strictly,
    ),
    Slip("The sum is divided by n * n; divide by |H|, the number of pairs in H.", _all_squares),
    Slip("All pairs are counted; H wants those with M_i >= M_j.", _all_pairs),
    Slip("Exposure must be divided by merit before it is compared.", _merit_ignored),
    Slip(
        "H wants M_j > 0: a document without merit takes no part, and dividing by its merit is "
        "dividing by zero.",
        _merit_without_bar,
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


class Documents(NamedTuple):
    """A few documents of one query: ``exposure (n,)``, ``merit (n,)``, ``groups (n,)``."""

    exposure: Tensor
    merit: Tensor
    groups: Tensor


def draw_documents(n: int, generator: Generator, zeros: bool = False) -> Documents:
    """Round numbers, two groups of unequal size, the first document in group 0."""
    exposure = torch.randint(20, 101, (n,), generator=generator).double() / 100
    merit = torch.randint(0 if zeros else 1, 6, (n,), generator=generator).double()
    groups = torch.zeros(n, dtype=torch.long)
    groups[torch.randperm(n, generator=generator)[: max(1, n // 3)]] = 1
    return Documents(exposure, merit, groups)


def three_documents_from(generator: Generator) -> Documents:
    """Three documents whose D_ind and D_group are positive, and which tell a slip or two apart.

    With three documents a few slips coincide with the right answer; the two that people make most
    often, the |G| factor and the pairs (i, i), do not.
    """
    while True:
        found = draw_documents(3, generator)
        d_ind, d_group = individual_disparity(*found[:2]), group_disparity(*found)
        ratios = {round(float(x), 3) for x in found.exposure / found.merit}
        apart = min(
            abs(float(_without_diagonal(*found[:2]) - d_ind)),
            abs(float(g_factor(*found) - d_group)),
        )
        means = [float(found.merit[found.groups == g].mean()) for g in (0, 1)]
        distinct = len(ratios) == len(set(found.exposure.tolist())) == 3
        if min(float(d_ind), float(d_group), apart) > 0.02 and distinct and means[0] != means[1]:
            return found


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
    documents = three_documents_from(generator)
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
        value = as_tensor(given, shown)
        found = compare(_constant(value), [Case(shown, right)], slips, tolerance=HAND)
        share += found.share / 2
        if found.message:
            messages.append(f"{name}: {found.message}")
            read.append("Individual disparity" if name == "D_ind" else "Group disparity")
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
        "padding": _padded(drawn[0], 0),
        "padding in the other group": _padded(drawn[0], 1),
    }
    for edge, given in edges.items():
        names = ("exposure", "merit", "groups", "mask")
        cases.append(Case(dict(zip(names, given, strict=True)), group_disparity(*given), edge))
    return compare(answers[0], cases, GROUP_SLIPS)
