"""The numbers of an audit, query by query."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.auditing.bracket import lower_end
from fairpg_lite.auditing.joining import AuditedData, AuditedQuery
from fairpg_lite.auditing.shown_lists import ShownLists
from fairpg_lite.auditing.utilities import utilities_of
from fairpg_lite.exposure import position_bias as standard_bias
from fairpg_lite.measures import MEASURES, Options, RankedQueries
from fairpg_lite.relevance import Gain, Merit

NAN = float("nan")

#: The measures of an audit, in the order of the page.
AUDITED = ("signed_gap", "d_group", "group_gap", "parity", "d_ind", "ee_l")
#: Those that are convex in exposure and no less than 0: from drawn lists they have two ends.
BRACKETED = ("d_group", "group_gap", "parity", "d_ind", "ee_l")

#: Attention by position: a vector, a function that makes one for n positions, or 1/log2(1+j).
PositionBias = Tensor | Callable[[int], Tensor] | None


@dataclass(frozen=True)
class Settings:
    """The choices of an audit."""

    position_bias: PositionBias = None
    k: int | None = None
    merit: str | Merit = "identity"
    gain: str | Gain = "linear"

    def bias(self, n: int) -> Tensor:
        """Attention to n positions ``(n,)``, in double precision; 0 below the cut-off.

        A vector that is given may be shorter than n: nobody looks below its end.
        """
        if self.position_bias is None:
            bias = standard_bias(n, dtype=torch.float64)
        elif callable(self.position_bias):
            bias = self.position_bias(n).double()
        else:
            bias = self.position_bias.double()
        padded = torch.zeros(n, dtype=torch.float64)
        end = min(n, len(bias)) if self.k is None else min(n, len(bias), self.k)
        padded[:end] = bias[:end]
        return padded


@dataclass(frozen=True)
class Measured:
    """What was measured, a row for each query; NaN where a query has no answer."""

    values: dict[str, Tensor]
    """Each measure ``(Q,)``: its value, or the upper end where lists were drawn."""
    lower_ends: dict[str, Tensor]
    """The lower end ``(Q,)`` of each measure that has two; empty where nothing was drawn."""
    utilities: dict[str, Tensor]
    """Each utility ``(Q,)``."""
    attention_share: Tensor
    """``(Q, G)``, each group's share of the attention that documents with a group got."""
    merit_share: Tensor
    """``(Q, G)``, its share of their merit."""
    document_share: Tensor
    """``(Q, G)``, its share of these documents."""
    mean_exposure: Tensor
    """``(Q, G)``, the mean exposure of a document of the group."""
    lists: Tensor
    """``(Q,)``, how many lists were shown."""


def measure(
    data: AuditedData, settings: Settings, each: Callable[[int], None] = lambda count: None
) -> Measured:
    """Measure all queries.

    Args:
        data: The queries.
        settings: The choices.
        each: Called with 1 after each query, for a bar of progress.

    Returns:
        The numbers of each query.
    """
    is_drawn = any(query.lists > 1 for query in data.queries)
    values: dict[str, list[float]] = {name: [] for name in AUDITED}
    lower_ends: dict[str, list[float]] = {name: [] for name in BRACKETED if is_drawn}
    utilities: dict[str, list[float]] = {}
    shares: list[Tensor] = []
    for query in data.queries:
        bias = settings.bias(len(query.relevance))
        options = Options(merit=settings.merit, position_bias=bias)
        # A measure that compares groups sees only documents that have one.
        everyone = _ranked(query, torch.ones_like(query.has_group), options)
        with_group = _ranked(query, query.has_group, options)
        for name in AUDITED:
            ranked = with_group if "groups" in MEASURES[name].needs else everyone
            with _check.trusted():
                values[name].append(float(MEASURES[name].compute(ranked)))
            if name in lower_ends:
                lower_ends[name].append(_lower(name, query, ranked, values[name][-1]))
        for name, value in utilities_of(
            query.policy, query.relevance, settings.k, settings.gain
        ).items():
            utilities.setdefault(name, []).append(value)
        shares.append(_shares(query, with_group, len(data.group_names)))
        each(1)
    by_kind = torch.stack(shares, dim=1)
    return Measured(
        values=_tensors(values),
        lower_ends=_tensors(lower_ends),
        utilities=_tensors(utilities),
        attention_share=by_kind[0],
        merit_share=by_kind[1],
        document_share=by_kind[2],
        mean_exposure=by_kind[3],
        lists=torch.tensor([query.lists for query in data.queries]),
    )


def _ranked(query: AuditedQuery, mask: Tensor, options: Options) -> RankedQueries:
    """The query as measures see it."""
    return RankedQueries(query.policy, query.relevance, query.groups, mask, options)


def _lower(name: str, query: AuditedQuery, ranked: RankedQueries, upper: float) -> float:
    """The lower end of a measure: NaN without an answer, 0 if there is one list only."""
    function = MEASURES[name].function
    assert function is not None
    if upper != upper:
        return NAN
    if query.lists < 2:
        return 0.0
    assert isinstance(query.policy, ShownLists)
    bias = ranked.options.position_bias
    lower = lower_end(
        function,
        query.policy.exposure_by_list(bias),
        ranked.merit,
        ranked.groups,
        ranked.mask,
        bias,
    )
    return float(lower)


def _shares(query: AuditedQuery, ranked: RankedQueries, groups: int) -> Tensor:
    """Shares of attention, merit and documents, and mean exposure ``(4, G)``; NaN without any."""
    exposure = ranked.exposure.double()
    counted = torch.stack([torch.ones_like(exposure), ranked.merit, exposure]) * query.has_group
    sums = torch.zeros(3, groups, dtype=torch.float64).index_add_(1, query.groups, counted)
    size, merit, attention = sums
    if merit.sum() > 0 and attention.sum() > 0:
        shares = [attention / attention.sum(), merit / merit.sum(), size / size.sum()]
    else:
        shares = [torch.full((groups,), NAN, dtype=torch.float64)] * 3
    mean_exposure = torch.where(size > 0, attention / size.clamp(min=1.0), NAN)
    return torch.stack([*shares, mean_exposure])


def _tensors(columns: dict[str, list[float]]) -> dict[str, Tensor]:
    return {name: torch.tensor(column, dtype=torch.float64) for name, column in columns.items()}


def resampled_means(columns: Tensor, indices: Iterable[Tensor]) -> Tensor:
    """The mean ``(R, C)`` of columns ``(Q, C)`` over R draws of queries, without NaN.

    Args:
        columns: ``(Q, C)``; NaN is left out.
        indices: R times the queries drawn, ``(Q,)``.

    Returns:
        ``(R, C)``.
    """
    is_there = ~columns.isnan()
    filled = torch.where(is_there, columns, 0.0)
    both = torch.cat([filled, is_there.double()], dim=-1)
    rows = []
    for index in indices:
        times_drawn = torch.bincount(index, minlength=len(columns)).double()
        rows.append(times_drawn @ both)
    total, count = torch.stack(rows).chunk(2, dim=-1)
    return total / count
