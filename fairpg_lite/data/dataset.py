"""RankingDataset: queries with their documents, kept as a few long arrays."""

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.data import arrays
from fairpg_lite.data.arrays import FIELDS
from fairpg_lite.data.batches import Batches
from fairpg_lite.data.storage import load_arrays, save_arrays


class Query(NamedTuple):
    """One query: `features (n, d)`, `relevance (n,)`, `groups (n,)` or None.

    Chapter 2.
    """

    features: Tensor
    relevance: Tensor
    groups: Tensor | None


@dataclass(eq=False, repr=False)
class RankingDataset:
    """Queries of any length, their documents concatenated.

    features (N, d), relevance (N,), groups (N,) or None; query i owns the rows
    `offsets[i]:offsets[i + 1]`, so `offsets` has shape (Q + 1,). `query_ids` are whole numbers (a
    tensor) or texts (a NumPy array), 0, 1, … if not given; `document_ids` are whole numbers, the
    row of a table, say; `documents` are names, "" for none; `info` has plain values.

    Chapters 2 and 6.

    >>> ds = RankingDataset(torch.eye(3), torch.tensor([1.0, 0.0, 2.0]), offsets=[0, 2, 3])
    >>> ds
    RankingDataset(2 queries, 3 documents, 3 features, no groups)
    >>> ds[0].relevance
    tensor([1., 0.])
    >>> len(ds[1:])
    1
    """

    features: Tensor
    relevance: Tensor
    offsets: Any
    _: KW_ONLY
    groups: Tensor | None = None
    query_ids: Any = None
    document_ids: Tensor | None = None
    documents: list[str] | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values in arrays.prepared(self._fields()).items():
            setattr(self, name, values)
        self.info = dict(self.info or {})
        # Plain integers: indexing a tensor for every query would cost more than the query's view.
        self._bounds: list[int] = self.offsets.tolist()

    @classmethod
    def from_queries(cls, queries: Iterable[Sequence[Any]], **rest: Any) -> Self:
        """From the `(features, relevance)` or `(features, relevance, groups)` of each query."""
        parts = []
        for i, (features, relevance, *groups) in enumerate(queries):
            try:
                own = {"groups": groups[0]} if groups else {}
                parts.append(cls(features, relevance, [0, len(features)], **own))
            except (TypeError, ValueError) as error:
                raise ValueError(f"RankingDataset.from_queries: query {i}: {error}") from error
        return cls(**{**arrays.joined(parts), "query_ids": None, **rest})

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        *,
        query: str,
        relevance: str,
        features: Sequence[str] | None = None,
        group: str | None = None,
        document: str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """From a table (pandas, polars, pyarrow) with a row per document, in any order.

        The other arguments name its columns. `features` are all that have no other part unless
        given; the sorted values of `group` become groups 0, 1, … (`info["group_names"]`), and
        `document_ids` says which row each document was.

        >>> import pandas
        >>> frame = pandas.DataFrame({"q": ["a", "b", "a"], "grade": [1, 0, 2], "x": [3, 4, 5]})
        >>> ds = RankingDataset.from_pandas(frame, query="q", relevance="grade")
        >>> ds.query_ids.tolist(), ds.relevance, ds.document_ids
        (['a', 'b'], tensor([1., 2., 0.]), tensor([0, 2, 1]))
        """
        roles = {"query": query, "relevance": relevance, "group": group, "document": document}
        return cls(**arrays.of_frame(frame, roles, features, dtype or torch.get_default_dtype()))

    @classmethod
    def concat(cls, datasets: Sequence["RankingDataset"]) -> Self:
        """The queries of all `datasets`, one after another; their ids stay as they are."""
        names = [str(dataset.info.get("name", "?")) for dataset in datasets]
        return cls(**arrays.joined(datasets), info={"name": " + ".join(names)})

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FIELDS}

    @property
    def n_documents(self) -> int:
        return len(self.features)

    @property
    def n_features(self) -> int:
        return self.features.shape[1]

    @property
    def lengths(self) -> Tensor:
        """Documents per query (Q,)."""
        return self.offsets.diff()

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __repr__(self) -> str:
        labels = [] if self.groups is None else self.groups.unique().tolist()
        groups = "no groups" if self.groups is None else f"groups {'/'.join(map(str, labels))}"
        return (
            f"RankingDataset({len(self)} queries, {self.n_documents} documents, "
            f"{self.n_features} features, {groups})"
        )

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> "RankingDataset": ...

    def __getitem__(self, index: int | slice) -> "Query | RankingDataset":
        if isinstance(index, slice):
            return self.subset(range(*index.indices(len(self))))
        i = index + len(self) if index < 0 else index
        if not 0 <= i < len(self):
            raise IndexError(f"RankingDataset: query {index} of {len(self)}.")
        rows = slice(self._bounds[i], self._bounds[i + 1])
        groups = None if self.groups is None else self.groups[rows]
        return Query(self.features[rows], self.relevance[rows], groups)

    def __iter__(self) -> Iterator[Query]:
        return (self[i] for i in range(len(self)))

    def replace(self, **changes: Any) -> "RankingDataset":
        """A new dataset that shares every array but those in `changes` (other groups, say)."""
        return dataclasses.replace(self, **changes)

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> "RankingDataset":
        """The dataset with features and relevance in `dtype`, every array on `device`."""
        moved = copy.copy(self)
        for name, values in self._fields().items():
            if isinstance(values, Tensor):
                kind = dtype if values.is_floating_point() else None
                setattr(moved, name, values.to(device=device, dtype=kind or values.dtype))
        moved.info = dict(self.info)
        return moved

    def subset(self, queries: Sequence[int] | Tensor) -> "RankingDataset":
        """The named queries, in that order; a query may be named twice (a bootstrap sample).

        Consecutive queries give views; any other choice copies the chosen documents.
        """
        named, bounds = torch.as_tensor(queries).cpu(), torch.tensor(self._bounds)
        chosen = torch.arange(len(self))[named if named.dtype == torch.bool else named.long()]
        lengths = bounds.diff()[chosen]
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        rows: slice | Tensor = slice(0, 0)
        if len(chosen) and bool((chosen.diff() == 1).all()):
            rows = slice(int(bounds[chosen[0]]), int(bounds[chosen[-1] + 1]))
        elif len(chosen):
            shift = (bounds[chosen] - offsets[:-1]).repeat_interleave(lengths)
            rows = torch.arange(int(offsets[-1])) + shift
        taken = {name: arrays.pick(getattr(self, name), rows) for name in arrays.PER_DOCUMENT}
        return self.replace(offsets=offsets, query_ids=arrays.pick(self.query_ids, chosen), **taken)

    def split(self, fractions: Sequence[float], seed: int = 0) -> tuple["RankingDataset", ...]:
        """Disjoint parts with the given fractions of the queries, drawn at random by `seed`.

        >>> ds = RankingDataset(torch.ones(10, 1), torch.ones(10), offsets=range(11))
        >>> [len(part) for part in ds.split((0.8, 0.2))]
        [8, 2]
        """
        bounds = [round(sum(fractions[:k]) * len(self)) for k in range(len(fractions) + 1)]
        wrong = not fractions or min(fractions) <= 0 or sum(fractions) > 1 + 1e-9
        if wrong or any(start == end for start, end in pairwise(bounds)):
            raise ValueError(
                f"RankingDataset.split: fractions {tuple(fractions)} of {len(self)} queries must "
                "be positive, sum to at most 1 and leave no part empty."
            )
        generator = torch.Generator().manual_seed(_check.seed("RankingDataset.split: seed", seed))
        order = torch.randperm(len(self), generator=generator)
        return tuple(self.subset(order[a:b].sort().values) for a, b in pairwise(bounds))

    def shard(self, rank: int, world: int) -> "RankingDataset":
        """Part `rank` (from 0) of `world` parts of consecutive queries, a view, for one process."""
        if not 0 <= rank < world or world > len(self):
            wanted = f"part {rank} of {world}, {len(self)} queries"
            raise ValueError(f"RankingDataset.shard: {wanted}; at most one part for each query.")
        return self[rank * len(self) // world : (rank + 1) * len(self) // world]

    def batches(
        self,
        size: int = 1,
        shuffle: bool = False,
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype | None = None,
        reuse: bool = False,
    ) -> Batches:
        """Padded batches of `size` queries; see `Batches` for their order and for `reuse`."""
        own = (self.features, self.relevance, self.groups, self._bounds)
        return Batches(*own, size, shuffle, generator, dtype, reuse)

    def normalize(
        self, method: str = "minmax", fitted_on: "RankingDataset | None" = None
    ) -> "RankingDataset":
        """A copy with rescaled features.

        "minmax": to [0, 1] within each query (constant features become 0). "standard": mean 0
        and deviation 1 over the documents of `fitted_on`, which must be named, so that a test
        set is never scaled by itself: `test.normalize("standard", fitted_on=train)`.
        """
        if method == "minmax" and fitted_on is None:
            scaled = arrays.minmax_per_query(self.features, self._bounds)
        elif method == "standard" and fitted_on is not None:
            scaled = arrays.rescale(self.features, *arrays.scale_of(fitted_on.features))
        else:
            raise ValueError(
                f"RankingDataset.normalize: method={method!r} with fitted_on={fitted_on!r}; use "
                'normalize("minmax") or normalize("standard", fitted_on=train).'
            )
        return self.replace(features=scaled)

    def fingerprint(self) -> str:
        """A SHA-256 of everything but `info`: equal for equal data, wherever it lies."""
        return arrays.digest(self._fields())

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write all of it to one file, whole or not at all, without pickle."""
        save_arrays(self._fields(), self.info, path, overwrite)

    @classmethod
    def load(cls, path: str | Path, mmap: bool = True) -> "RankingDataset":
        """Read what `save` wrote, checksums verified, but for features mapped by `mmap`."""
        return cls(**load_arrays(path, mmap))

    def __getstate__(self) -> dict[str, Any]:
        # torch pickles the whole storage behind a view: ten queries would carry the full dataset.
        def own(value: Any) -> Any:
            if isinstance(value, Tensor) and value.untyped_storage().nbytes() > value.nbytes:
                return value.clone()
            return value

        return {name: own(value) for name, value in self.__dict__.items()}
