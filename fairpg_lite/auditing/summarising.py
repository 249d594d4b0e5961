"""Means, intervals and tables of what was measured."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from fairpg_lite.auditing.bracket import lists_for_width
from fairpg_lite.auditing.findings import Found, GroupFound, MeasureFound, PairFound, QueryFound
from fairpg_lite.auditing.joining import AuditedData
from fairpg_lite.auditing.measuring import AUDITED, Measured, Settings, resampled_means
from fairpg_lite.auditing.report import Audit
from fairpg_lite.measures import MEASURES
from fairpg_lite.resampling import drawn_indices, interval_of

#: A bracket is called narrow if it is at most this part of its upper end wide.
NARROW = 0.1


def summarise(
    data: AuditedData, measured: Measured, settings: Settings, origin: dict[str, Any]
) -> Audit:
    """The means, intervals and tables of what was measured.

    Args:
        data: The queries.
        measured: The numbers of each query.
        settings: The choices.
        origin: How it was made.

    Returns:
        The audit.
    """
    means = _Means(measured)
    typical_lists = float(measured.lists.double().median())
    deepest = max(len(query.relevance) for query in data.queries)
    return Audit(
        sources=data.sources,
        counts=data.counts,
        groups=_groups(data, measured, means),
        pairs=_pairs(data, measured),
        measures={name: _measure(name, measured, means, typical_lists) for name in AUDITED},
        utilities={name: means.found(f"utility {name}") for name in measured.utilities},
        worst=_worst(data, measured),
        lists=(int(measured.lists.min()), int(measured.lists.max())),
        position_bias=settings.bias(deepest).tolist(),
        k=settings.k,
        merit=_name_of(settings.merit),
        gain=_name_of(settings.gain),
        per_query=_per_query(data, measured),
        origin=origin,
    )


class _Means:
    """The means over queries of all columns, and the same for each draw of queries."""

    def __init__(self, measured: Measured):
        columns = {f"value {name}": column for name, column in measured.values.items()}
        columns |= {f"lower {name}": column for name, column in measured.lower_ends.items()}
        columns |= {f"utility {name}": column for name, column in measured.utilities.items()}
        for number in range(measured.attention_share.shape[-1]):
            columns[f"attention {number}"] = measured.attention_share[:, number]
            columns[f"merit {number}"] = measured.merit_share[:, number]
            columns[f"documents {number}"] = measured.document_share[:, number]
        self.number_of = {name: number for number, name in enumerate(columns)}
        table = torch.stack(list(columns.values()), dim=-1)
        self.means = table.nanmean(0)
        self.answers = (~table.isnan()).sum(0)
        self.resampled = resampled_means(table, drawn_indices(len(table)))

    def mean(self, name: str) -> float:
        return float(self.means[self.number_of[name]])

    def found(self, name: str) -> Found:
        low, high = self._interval(self.resampled[:, self.number_of[name]], name)
        return Found(self.mean(name), low, high)

    def _interval(self, resampled: Tensor, name: str) -> tuple[float, float]:
        """The interval of a resampled number; NaN where a single query has an answer."""
        if self.answers[self.number_of[name]] < 2:
            return math.nan, math.nan
        return interval_of(resampled)

    def found_ratio(self, upper: str, lower: str) -> Found:
        """One mean over another, less 1."""
        upper_means = self.resampled[:, self.number_of[upper]]
        lower_means = self.resampled[:, self.number_of[lower]]
        low, high = self._interval(upper_means / lower_means - 1.0, upper)
        return Found(_ratio(self.mean(upper), self.mean(lower)), low, high)


def _measure(name: str, measured: Measured, means: _Means, typical_lists: float) -> MeasureFound:
    upper = means.found(f"value {name}")
    queries = int((~measured.values[name].isnan()).sum())
    if name not in measured.lower_ends:
        return MeasureFound(
            name, MEASURES[name].label, upper.value, None, upper.low, upper.high, queries, None
        )
    lower = means.found(f"lower {name}")
    width = upper.value - max(0.0, lower.value)
    needed = lists_for_width(typical_lists, width, NARROW * upper.value)
    return MeasureFound(
        name, MEASURES[name].label, upper.value, lower.value, lower.low, upper.high, queries, needed
    )


def _groups(data: AuditedData, measured: Measured, means: _Means) -> list[GroupFound]:
    sizes = torch.zeros(len(data.group_names), dtype=torch.long)
    for query in data.queries:
        present = query.groups[query.has_group]
        sizes += torch.bincount(present, minlength=len(sizes))
    found = []
    for number, name in enumerate(data.group_names):
        found.append(
            GroupFound(
                name=name,
                documents=int(sizes[number]),
                queries=int((~measured.mean_exposure[:, number].isnan()).sum()),
                document_share=means.mean(f"documents {number}"),
                merit_share=means.mean(f"merit {number}"),
                attention_share=means.mean(f"attention {number}"),
                to_merit=means.found_ratio(f"attention {number}", f"merit {number}"),
            )
        )
    return [group for group in found if group.documents > 0]


def _pairs(data: AuditedData, measured: Measured) -> list[PairFound]:
    """All pairs of groups that meet in a query, compared within queries that have both."""
    found = []
    for first, second in _number_pairs(len(data.group_names)):
        both = measured.mean_exposure[:, [first, second]]
        both = both[~both.isnan().any(-1)]
        if len(both) == 0:
            continue
        mean = both.mean(0)
        low, high = math.nan, math.nan
        if len(both) > 1:
            resampled = resampled_means(both, drawn_indices(len(both)))
            low, high = interval_of(resampled[:, 0] / resampled[:, 1] - 1.0)
        relative = Found(_ratio(float(mean[0]), float(mean[1])), low, high)
        names = data.group_names
        found.append(PairFound(names[first], names[second], len(both), relative))
    return found


def _number_pairs(count: int) -> Iterator[tuple[int, int]]:
    for first in range(count):
        for second in range(first + 1, count):
            yield first, second


def _worst(data: AuditedData, measured: Measured) -> list[QueryFound]:
    rows = []
    for number, query in enumerate(data.queries):
        gap = float(measured.values["group_gap"][number])
        if math.isnan(gap):
            continue
        rows.append(
            QueryFound(
                name=query.name,
                documents=len(query.relevance),
                group_gap=gap,
                signed_gap=float(measured.values["signed_gap"][number]),
                d_group=float(measured.values["d_group"][number]),
                ndcg=float(measured.utilities["ndcg"][number]),
            )
        )
    return sorted(rows, key=lambda row: -row.group_gap)


def _per_query(data: AuditedData, measured: Measured) -> dict[str, dict[str, float]]:
    """The numbers of each query by its name."""
    columns: dict[str, Tensor] = dict(measured.values)
    columns |= {f"{name}_lower_end": column for name, column in measured.lower_ends.items()}
    columns |= measured.utilities
    columns["lists"] = measured.lists
    by_query = {}
    for number, query in enumerate(data.queries):
        by_query[query.name] = {name: column[number].item() for name, column in columns.items()}
    return by_query


def _ratio(upper: float, lower: float) -> float:
    """One number over another, less 1; NaN over 0."""
    return upper / lower - 1.0 if lower > 0 else math.nan


def _name_of(choice: object) -> str:
    return choice if isinstance(choice, str) else getattr(choice, "__name__", "a function")
