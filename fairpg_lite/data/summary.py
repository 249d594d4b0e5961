"""A dataset's figures as a small table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairpg_lite.data.normalize import row_blocks

if TYPE_CHECKING:
    from fairpg_lite.data.dataset import RankingDataset


@dataclass(frozen=True)
class Summary:
    """Figures of a RankingDataset; `repr` and Jupyter show them as a table.

    `lengths` are (minimum, mean, maximum) documents per query; `grades` maps each grade to its
    share of the documents, or is None when relevance is not a small set of whole numbers;
    `groups` maps each group to (share of the documents, mean relevance).

    Chapter 10.
    """

    queries: int
    documents: int
    features: int
    lengths: tuple[int, float, int]
    active_features: int
    density: float
    relevance: tuple[float, float, float]
    grades: dict[int, float] | None
    groups: dict[int, tuple[float, float]] | None
    megabytes: float

    def rows(self) -> list[tuple[str, str]]:
        low, mean, high = self.lengths
        rows = [
            ("queries", f"{self.queries:,}"),
            ("documents", f"{self.documents:,}"),
            ("documents per query", f"{low} to {high}, mean {mean:.1f}"),
            ("features", f"{self.features} ({self.active_features} ever non-zero)"),
            ("non-zero values", f"{100 * self.density:.1f} %"),
        ]
        if self.grades is None:
            low_, mean_, high_ = self.relevance
            rows.append(("relevance", f"{low_:.3g} to {high_:.3g}, mean {mean_:.3g}"))
        else:
            shares = (f"{grade}: {100 * share:.1f} %" for grade, share in self.grades.items())
            rows.append(("relevance", ", ".join(shares)))
        for group, (share, merit) in (self.groups or {}).items():
            text = f"{100 * share:.1f} % of documents, mean relevance {merit:.3g}"
            rows.append((f"group {group}", text))
        return [*rows, ("features in memory", f"{self.megabytes:,.1f} MB")]

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        from html import escape  # only notebooks need it

        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in self.rows()
        )
        return f"<table>{cells}</table>"


def _grades(relevance: Tensor) -> dict[int, float] | None:
    if (relevance != relevance.round()).any() or relevance.max() > 20:
        return None
    shares = torch.bincount(relevance.long()).double() / len(relevance)
    return {grade: share for grade, share in enumerate(shares.tolist()) if share}


def summarise(dataset: "RankingDataset") -> Summary:
    """Compute the figures, a bounded number of rows at a time."""
    if not len(dataset):
        raise ValueError("RankingDataset.summary: the dataset has no queries.")
    nonzero = torch.zeros(dataset.n_features, dtype=torch.int64)
    for block in row_blocks(dataset.features):
        nonzero += block.count_nonzero(0)
    lengths, relevance = dataset.lengths, dataset.relevance.double()
    groups = None
    if dataset.groups is not None:
        groups = {
            group: (
                float((dataset.groups == group).double().mean()),
                float(relevance[dataset.groups == group].mean()),
            )
            for group in dataset.groups.unique().tolist()
        }
    return Summary(
        queries=len(dataset),
        documents=dataset.n_documents,
        features=dataset.n_features,
        lengths=(int(lengths.min()), float(lengths.double().mean()), int(lengths.max())),
        active_features=int((nonzero > 0).sum()),
        density=float(nonzero.sum()) / max(dataset.features.numel(), 1),
        relevance=(float(relevance.min()), float(relevance.mean()), float(relevance.max())),
        grades=_grades(relevance),
        groups=groups,
        megabytes=dataset.features.nbytes / 1e6,
    )
