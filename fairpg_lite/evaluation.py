"""What `evaluate` returns: means over queries, how sure they are, and differences between two."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairpg_lite import _check

MEASURES = ("ndcg", "ndcg_at_k", "err", "average_rank", "d_ind", "d_group", "group_gap")
NAN = float("nan")


class Difference(NamedTuple):
    """First less second in the mean over the same queries, and how far chance goes.

    ``low`` and ``high`` bound a bootstrap interval; ``p_value`` is two-sided, by flipping the sign
    of each query's difference.
    """

    mean: float
    low: float
    high: float
    p_value: float
    queries: int


@dataclass(frozen=True)
class Evaluation:
    """Means over queries; ``per_query`` holds each measure ``(Q,)`` in the dataset's order.

    ``ndcg_at_k`` is NDCG at the cut-off ``k`` (None: the whole list). Queries where a measure has
    no answer carry NaN if that was asked for, and the means leave them out. ``group_gap`` is
    D_group without its direction (`group_disparity` with ``two_sided``). ``defined`` says in how
    many queries a measure has an answer of its own, ``counted`` over how many its mean is taken:
    more, where a fixed value stands in for the others.

    Chapters 7 to 13.
    """

    ndcg: float
    ndcg_at_k: float
    err: float
    average_rank: float
    d_ind: float
    d_group: float
    group_gap: float
    k: int | None
    per_query: dict[str, Tensor]
    defined: dict[str, int]

    @property
    def counted(self) -> dict[str, int]:
        """Queries that each mean is taken over."""
        return {name: int((~values.isnan()).sum()) for name, values in self.per_query.items()}

    def to_dict(self) -> dict[str, Any]:
        """The means, ready for JSON."""
        return {"k": self.k, **{name: getattr(self, name) for name in MEASURES}}

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={getattr(self, name):.4f}" for name in MEASURES)
        return f"Evaluation({means}, k={self.k}, queries={len(self.per_query['ndcg'])})"

    def interval(
        self, measure: str, level: float = 0.95, *, resamples: int = 2000, seed: int = 0
    ) -> tuple[float, float]:
        """Bootstrap interval of a mean: the same measure on queries drawn again, with replacement.

        It says how much the mean depends on these queries, not on how a model was trained. Queries
        without an answer are left out.
        """
        values = self._values(measure)
        return _bootstrap(values[~values.isnan()], level, resamples, seed)

    def compare(
        self,
        other: "Evaluation",
        measure: str,
        level: float = 0.95,
        *,
        resamples: int = 2000,
        seed: int = 0,
    ) -> Difference:
        """This evaluation less another of the same queries, query by query."""
        first, second = self._values(measure), other._values(measure)
        if first.shape != second.shape:
            raise ValueError(
                f"compare: {len(first)} queries against {len(second)}; "
                "evaluate both methods on the same dataset."
            )
        paired = first - second
        paired = paired[~paired.isnan()]
        bounds = _bootstrap(paired, level, resamples, seed)
        p_value = _sign_flips(paired, resamples, seed)
        return Difference(float(paired.mean()), *bounds, p_value, len(paired))

    def _values(self, measure: str) -> Tensor:
        if measure not in self.per_query:
            raise ValueError(f"Evaluation: measure is {measure!r}; choose one of {MEASURES}.")
        return self.per_query[measure].double()


def _pieces(count: int, width: int, generator: torch.Generator) -> Iterator[Tensor]:
    """``count`` rows of ``width`` uniform numbers, a million at a time."""
    size = max(1, 1_000_000 // max(1, width))
    for start in range(0, count, size):
        rows = min(size, count - start)
        yield torch.rand(rows, width, generator=generator, dtype=torch.float64)


def _bootstrap(values: Tensor, level: float, resamples: int, seed: int) -> tuple[float, float]:
    if not 0.0 < level < 1.0 or resamples < 2:
        raise ValueError(
            f"interval: level is {level} and resamples is {resamples}; "
            "give a level between 0 and 1, e.g. 0.95, and at least two resamples."
        )
    if len(values) == 0:
        return NAN, NAN
    n, start = len(values), _check.seed("interval: seed", seed)
    generator = torch.Generator().manual_seed(start)
    means = [values[(u * n).long()].mean(-1) for u in _pieces(resamples, n, generator)]
    tail = (1.0 - level) / 2.0
    low, high = torch.cat(means).quantile(torch.tensor([tail, 1.0 - tail], dtype=torch.float64))
    return float(low), float(high)


def _sign_flips(paired: Tensor, resamples: int, seed: int) -> float:
    """Share of sign patterns whose mean is at least as far from 0; all of them if they are few."""
    n = len(paired)
    if n == 0:
        return NAN
    seen = float(paired.sum().abs()) * (1.0 - 1e-12)
    if 2**n <= resamples:
        signs = 1.0 - 2.0 * ((torch.arange(2**n).unsqueeze(-1) >> torch.arange(n)) & 1)
        return float(((signs.double() @ paired).abs() >= seen).double().mean())
    generator = torch.Generator().manual_seed(seed)
    as_far = sum(
        int(((u - 0.5).sign() @ paired).abs().ge(seen).sum())
        for u in _pieces(resamples, n, generator)
    )
    return (1 + as_far) / (1 + resamples)  # the pattern that was seen is one of them
