"""RankingDataset: queries with their documents, kept as a few long arrays."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import torch
from torch import Tensor

from fairpg_lite.data.batches import Batches
from fairpg_lite.data.normalize import minmax_per_query, standardise
from fairpg_lite.data.storage import load_dataset, save_dataset
from fairpg_lite.data.summary import Summary, summarise


class Query(NamedTuple):
    """One query: `features (n, d)`, `relevance (n,)`, `groups (n,)` or None.

    Chapter 2.
    """

    features: Tensor
    relevance: Tensor
    groups: Tensor | None


class RankingDataset:
    """Queries of any length, their documents concatenated.

    features (N, d), relevance (N,), groups (N,) or None, query_ids (Q,), document_ids (N,) or
    None; query i owns the rows `offsets[i]:offsets[i + 1]`, so `offsets` has shape (Q + 1,).
    Nothing is copied where a view will do, and the arrays may be memory-mapped files.

    Chapters 2 and 6.

    >>> ds = RankingDataset(torch.eye(3), torch.tensor([1.0, 0.0, 2.0]), offsets=[0, 2, 3])
    >>> ds
    RankingDataset(2 queries, 3 documents, 3 features, no groups)
    >>> ds[0].relevance
    tensor([1., 0.])
    >>> len(ds[1:])
    1
    """

    def __init__(
        self,
        features: Tensor,
        relevance: Tensor,
        offsets: Tensor | Sequence[int],
        *,
        groups: Tensor | None = None,
        query_ids: Tensor | Sequence[int] | None = None,
        document_ids: Tensor | None = None,
        info: Mapping[str, Any] | None = None,
    ):
        self.features = torch.as_tensor(features)
        if self.features.ndim != 2 or not self.features.is_floating_point():
            raise ValueError(
                f"RankingDataset: features has shape {tuple(self.features.shape)} and type "
                f"{self.features.dtype}; give a floating-point (N, d) tensor."
            )
        self.relevance = torch.as_tensor(relevance).to(self.features.dtype)
        self.offsets = torch.as_tensor(offsets, dtype=torch.int64)
        self.groups = None if groups is None else torch.as_tensor(groups, dtype=torch.int64)
        self.document_ids = (
            None if document_ids is None else torch.as_tensor(document_ids, dtype=torch.int64)
        )
        self.query_ids = (
            torch.arange(len(self.offsets) - 1)
            if query_ids is None
            else torch.as_tensor(query_ids, dtype=torch.int64)
        )
        self.info: dict[str, Any] = dict(info or {})
        self._check()
        # Plain integers: indexing a tensor for every query would cost more than the query's view.
        self._bounds: list[int] = self.offsets.tolist()

    def _check(self) -> None:
        n = len(self.features)
        for name in ("relevance", "groups", "document_ids"):
            values = getattr(self, name)
            if values is not None and values.shape != (n,):
                raise ValueError(
                    f"RankingDataset: {name} has shape {tuple(values.shape)}, features has "
                    f"{tuple(self.features.shape)}; give one {name} value per document."
                )
        steps = self.offsets.diff()
        if self.offsets.ndim != 1 or len(self.offsets) == 0 or self.offsets[0] != 0:
            raise ValueError("RankingDataset: offsets must be one-dimensional and begin with 0.")
        if self.offsets[-1] != n or (len(steps) and steps.min() < 1):
            raise ValueError(
                f"RankingDataset: offsets must rise to the number of documents ({n}), every query "
                f"with at least one document; they end at {int(self.offsets[-1])}, the smallest "
                f"step is {int(steps.min()) if len(steps) else 'absent'}."
            )
        if self.query_ids.shape != steps.shape:
            raise ValueError(
                f"RankingDataset: query_ids has shape {tuple(self.query_ids.shape)}; "
                f"offsets define {len(steps)} queries."
            )
        if n and not (self.relevance.min() >= 0 and torch.isfinite(self.relevance).all()):
            raise ValueError("RankingDataset: relevance must be finite and not negative.")
        if n and self.groups is not None and self.groups.min() < 0:
            raise ValueError("RankingDataset: groups must be labels 0, 1, …; one is negative.")

    @classmethod
    def from_queries(cls, queries: Iterable[Sequence[Tensor | None]], **rest: Any) -> Self:
        """Concatenate `(features, relevance)` or `(features, relevance, groups)` of each query.

        >>> RankingDataset.from_queries([(torch.ones(2, 4), torch.tensor([1.0, 0.0]))])
        RankingDataset(1 queries, 2 documents, 4 features, no groups)
        """
        parts = list(queries)
        if not parts:
            raise ValueError("RankingDataset.from_queries: no query was given.")
        columns = [[part[k] for part in parts if len(part) > k] for k in range(3)]
        features, relevance, groups = (
            [torch.as_tensor(value) for value in column if value is not None] for column in columns
        )
        if len(groups) not in (0, len(parts)):
            raise ValueError("RankingDataset.from_queries: some queries have groups, some do not.")
        offsets = torch.tensor([0] + [len(value) for value in relevance]).cumsum(0)
        return cls(
            torch.cat(features),
            torch.cat(relevance),
            offsets,
            groups=torch.cat(groups) if groups else None,
            **rest,
        )

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
        groups = "no groups"
        if self.groups is not None:
            groups = f"groups {'/'.join(map(str, self.groups.unique().tolist()))}"
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
        names = ("features", "relevance", "offsets", "groups", "query_ids", "document_ids", "info")
        unknown = set(changes) - set(names)
        if unknown:
            raise TypeError(f"RankingDataset.replace: {sorted(unknown)} is not one of {names}.")
        return RankingDataset(**{name: changes.get(name, getattr(self, name)) for name in names})

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> "RankingDataset":
        """The dataset with features and relevance in `dtype`, everything on `device`."""
        groups, documents = self.groups, self.document_ids
        return self.replace(
            features=self.features.to(device=device, dtype=dtype or self.features.dtype),
            relevance=self.relevance.to(device=device, dtype=dtype or self.relevance.dtype),
            groups=None if groups is None else groups.to(device=device),
            document_ids=None if documents is None else documents.to(device=device),
        )

    def subset(self, queries: Sequence[int] | Tensor) -> "RankingDataset":
        """The named queries, in that order; a query may be named twice (a bootstrap sample).

        Consecutive queries give views; any other choice copies the chosen documents.
        """
        chosen = torch.as_tensor(queries)
        if chosen.dtype == torch.bool:
            if chosen.shape != (len(self),):
                raise ValueError(
                    f"RankingDataset.subset: the mask has shape {tuple(chosen.shape)}, "
                    f"there are {len(self)} queries."
                )
            chosen = chosen.nonzero()[:, 0]
        chosen = chosen.to(torch.int64)
        if len(chosen) and not (-len(self) <= chosen.min() and chosen.max() < len(self)):
            raise IndexError(f"RankingDataset.subset: a query outside 0 … {len(self) - 1}.")
        chosen = torch.where(chosen < 0, chosen + len(self), chosen)
        lengths = self.lengths[chosen]
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        rows = self._rows(chosen, lengths, offsets)

        def take(values: Tensor | None) -> Tensor | None:
            return None if values is None else values[rows]

        return self.replace(
            features=take(self.features),
            relevance=take(self.relevance),
            offsets=offsets,
            groups=take(self.groups),
            query_ids=self.query_ids[chosen],
            document_ids=take(self.document_ids),
        )

    def _rows(self, chosen: Tensor, lengths: Tensor, offsets: Tensor) -> slice | Tensor:
        if len(chosen) == 0:
            return slice(0, 0)
        if bool((chosen.diff() == 1).all()):
            return slice(self._bounds[int(chosen[0])], self._bounds[int(chosen[-1]) + 1])
        within = torch.arange(int(offsets[-1])) - offsets[:-1].repeat_interleave(lengths)
        return self.offsets[chosen].repeat_interleave(lengths) + within

    def split(
        self, fractions: Sequence[float], seed: int = 0, shuffle: bool = True
    ) -> tuple["RankingDataset", ...]:
        """Disjoint parts with the given fractions of the queries, drawn at random by `seed`.

        With `shuffle=False` the parts are consecutive, and views: no memory is used. Fractions
        that sum to less than 1 leave queries out.

        >>> ds = RankingDataset(torch.ones(10, 1), torch.ones(10), offsets=range(11))
        >>> [len(part) for part in ds.split((0.8, 0.2))]
        [8, 2]
        """
        if not fractions or min(fractions) <= 0 or sum(fractions) > 1 + 1e-9:
            raise ValueError(
                f"RankingDataset.split: fractions {tuple(fractions)} must be positive and sum to "
                "at most 1."
            )
        ends = [round(sum(fractions[: k + 1]) * len(self)) for k in range(len(fractions))]
        bounds = list(zip([0, *ends[:-1]], ends, strict=True))
        if any(start == end for start, end in bounds):
            raise ValueError(
                f"RankingDataset.split: fractions {tuple(fractions)} of {len(self)} queries leave "
                "a part empty."
            )
        order = torch.arange(len(self))
        if shuffle:
            order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        return tuple(self.subset(order[start:end].sort().values) for start, end in bounds)

    def batches(
        self,
        size: int = 1,
        shuffle: bool = False,
        generator: torch.Generator | None = None,
        *,
        bucket: bool = True,
        dtype: torch.dtype | None = None,
        reuse: bool = False,
    ) -> Batches:
        """Padded batches of `size` queries; see `Batches` for their order and for `reuse`.

        >>> ds = RankingDataset(torch.ones(3, 1), torch.ones(3), offsets=[0, 1, 3])
        >>> [tuple(batch.mask.shape) for batch in ds.batches(size=2)]
        [(2, 2)]
        """
        return Batches(self, size, shuffle, generator, bucket=bucket, dtype=dtype, reuse=reuse)

    def normalize(
        self, method: str = "minmax", fitted_on: "RankingDataset | None" = None
    ) -> "RankingDataset":
        """A copy with rescaled features.

        "minmax": every feature to [0, 1] within each query (constant features become 0), which
        looks at no other query. "standard": mean 0 and standard deviation 1 over the documents
        of `fitted_on`, which must be named, so that a test set is never scaled by itself by
        accident: `test.normalize("standard", fitted_on=train)`.
        """
        if method == "minmax" and fitted_on is None:
            return self.replace(features=minmax_per_query(self.features, self._bounds))
        if method == "standard" and fitted_on is not None:
            return self.replace(features=standardise(self.features, fitted_on.features))
        raise ValueError(
            f"RankingDataset.normalize: method={method!r} with fitted_on={fitted_on!r}; use "
            'normalize("minmax") or normalize("standard", fitted_on=train).'
        )

    def summary(self) -> Summary:
        """The dataset's figures; prints as a small table."""
        return summarise(self)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write a directory of .npy files and a meta.json, all or nothing, without pickle."""
        save_dataset(self, path, overwrite=overwrite)

    @classmethod
    def load(
        cls, path: str | Path, mmap: bool = True, verify: bool | None = None
    ) -> "RankingDataset":
        """Read what `save` wrote; with `mmap` the features stay on disk until they are used.

        Checksums are verified for everything that is read into memory; `verify=True` also reads
        memory-mapped features once to check them.
        """
        return cls(**load_dataset(path, mmap=mmap, verify=verify))

    def __getstate__(self) -> dict[str, Any]:
        # torch pickles the whole storage behind a view: ten queries would carry the full dataset.
        def own(value: Any) -> Any:
            if isinstance(value, Tensor) and value.untyped_storage().nbytes() > value.nbytes:
                return value.clone()
            return value

        return {name: own(value) for name, value in self.__dict__.items()}
