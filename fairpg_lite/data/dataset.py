"""RankingDataset: queries with their documents, kept as a few long arrays."""

import copy
import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._files import whole_file
from fairpg_lite.data import arrays
from fairpg_lite.data.batches import Batches

FORMAT = "fairpg_lite.RankingDataset 4"
PER_DOCUMENT = ("features", "relevance", "groups", "document_ids", "documents")


class Query(NamedTuple):
    """One query: `features (n, d)`, `relevance (n,)`, `groups (n,)` or None (chapter 2)."""

    features: Tensor
    relevance: Tensor
    groups: Tensor | None


@dataclass(eq=False, repr=False)
class RankingDataset:
    """Queries of any length, their documents concatenated (chapters 2 and 6).

    features (N, d), relevance (N,), groups (N,) or None; query i owns the rows
    `offsets[i]:offsets[i + 1]`, so `offsets` has shape (Q + 1,). `query_ids` are whole numbers (a
    tensor) or texts (a NumPy array), 0, 1, … if not given; `document_ids` are whole numbers, the
    row of a table, say; `documents` are names (texts), "" for none; `info` has plain values.

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
    documents: Any = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values in arrays.checked(self._fields()).items():
            setattr(self, name, values)
        # Plain integers: indexing a tensor for every query would cost more than the query's view.
        self._bounds: list[int] = self.offsets.tolist()

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in arrays.FIELDS}

    @classmethod
    def from_queries(cls, queries: Iterable[Sequence[Any]]) -> Self:
        """From the `(features, relevance)` or `(features, relevance, groups)` of each query."""
        parts = [cls(x, y, [0, len(x)], groups=g[0] if g else None) for x, y, *g in queries]
        return dataclasses.replace(cls.concat(parts), query_ids=None)

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
    ) -> Self:
        """From a table with a row per document, in any order; the other arguments name its columns.

        `features` are all that have no other part unless given; the sorted values of `group` become
        groups 0, 1, … (`info["group_names"]`), and `document_ids` says which row a document was.

        >>> import pandas
        >>> frame = pandas.DataFrame({"q": ["a", "b", "a"], "grade": [1, 0, 2], "x": [3, 4, 5]})
        >>> ds = RankingDataset.from_pandas(frame, query="q", relevance="grade")
        >>> ds.query_ids.tolist(), ds.relevance, ds.document_ids
        (['a', 'b'], tensor([1., 2., 0.]), tensor([0, 2, 1]))
        """
        roles = [name for name in (query, relevance, group, document) if name is not None]
        features = [name for name in frame if name not in roles] if features is None else features
        missing = frame[[*roles, *features]].isna().to_numpy()
        if frame.empty or missing.any():
            row = missing.any(1).argmax() if len(missing) else "none"
            raise ValueError(
                f"RankingDataset.from_pandas: no rows, or a value is missing (row {row}); fill or "
                "drop what is missing (DataFrame.fillna, DataFrame.dropna)."
            )
        ids, order, offsets = arrays.gathered(frame[query].tolist())
        table, whole = frame.iloc[order], frame[query].dtype.kind in "iu"
        labels, names = (None, None) if group is None else table[group].factorize(sort=True)
        return cls(
            torch.tensor(table[list(features)].to_numpy(float), dtype=torch.get_default_dtype()),
            table[relevance].astype(float).tolist(),
            offsets,
            groups=labels,
            query_ids=ids if whole else [str(name) for name in ids],
            document_ids=torch.from_numpy(order),
            documents=None if document is None else [str(name) for name in table[document]],
            info={} if names is None else {"group_names": names.tolist()},
        )

    @classmethod
    def concat(cls, datasets: Sequence["RankingDataset"]) -> Self:
        """The queries of all `datasets`, one after another; their ids stay as they are."""
        fields: dict[str, Any] = {}
        for name in (*PER_DOCUMENT, "query_ids"):
            columns = [getattr(dataset, name) for dataset in datasets]
            if len({(type(column), np.shape(column)[1:]) for column in columns}) != 1:
                raise ValueError(f"RankingDataset.concat: {name} is not alike in all datasets.")
            join = torch.cat if isinstance(columns[0], Tensor) else np.concatenate
            fields[name] = None if columns[0] is None else join(columns)
        offsets = accumulate(torch.cat([d.lengths for d in datasets]).tolist(), initial=0)
        info = {"name": " + ".join(str(dataset.info.get("name", "?")) for dataset in datasets)}
        return cls(**fields, offsets=list(offsets), info=info)

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

    def __getitem__(self, index: int | slice) -> Any:
        """The `Query` with this number, or a dataset of some of them."""
        if isinstance(index, slice):
            return self.subset(range(*index.indices(len(self))))
        i = range(len(self))[index]
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
        return moved

    def subset(self, queries: Sequence[int] | Tensor) -> "RankingDataset":
        """The named queries, in that order; a query may be named twice (a bootstrap sample).

        Consecutive queries give views; any other choice copies the chosen documents.
        """
        chosen = np.arange(len(self))[np.asarray(queries) if len(queries) else slice(0)]
        spans = [self._bounds[i : i + 2] for i in chosen.tolist()]
        rows: Any = slice(spans[0][0], spans[-1][1]) if spans else slice(0)
        if any(one[1] != other[0] for one, other in pairwise(spans)):
            rows = np.concatenate([np.arange(*span) for span in spans])
        given = {name: getattr(self, name) for name in PER_DOCUMENT}
        taken = {name: None if array is None else array[rows] for name, array in given.items()}
        offsets = list(accumulate((end - start for start, end in spans), initial=0))
        return self.replace(offsets=offsets, query_ids=self.query_ids[chosen], **taken)

    def split(self, fractions: Sequence[float], seed: int = 0) -> tuple["RankingDataset", ...]:
        """Disjoint parts with the given fractions of the queries, drawn at random by `seed`."""
        bounds = [round(share * len(self)) for share in accumulate(fractions, initial=0.0)]
        if len(bounds) < 2 or sum(fractions) > 1 + 1e-9 or min(np.diff(bounds)) < 1:
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

    def batches(self, size: int = 1, *order: Any, **options: Any) -> Batches:
        """Padded batches of `size` queries; see `Batches` for their order and other options."""
        return Batches(self, size, *order, **options)

    def normalize(self) -> "RankingDataset":
        """A copy with each feature scaled to [0, 1] within each query, 0 where it is constant."""
        moved = copy.copy(self)
        # The difference of two large finite numbers may overflow, that of their halves does not.
        moved.features = scaled = self.features / 2
        for start, end in pairwise(self._bounds):
            low, high = scaled[start:end].aminmax(dim=0)
            span = torch.where(high > low, high - low, 1.0)
            scaled[start:end] = ((scaled[start:end] - low) / span).clamp_(0.0, 1.0)
        return moved

    def fingerprint(self) -> str:
        """A SHA-256 of everything but `info`: equal for equal data, wherever it lies."""
        return arrays.digest(self._fields())

    def save(self, path: str | Path) -> None:
        """Write all of it to one file, whole or not at all."""
        fields = self._fields()
        plain: dict[str, Any] = {
            name: values.tolist() if isinstance(values, np.ndarray) else arrays.own_memory(values)
            for name, values in fields.items()
        }
        checksum = arrays.digest({**fields, "features": None})
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary, temporary.open("wb") as file:
            try:
                torch.save([FORMAT, checksum, plain, self.info], file)
            except RuntimeError as error:  # what torch makes of a full disk
                raise error.__context__ or error from None

    @classmethod
    def load(cls, path: str | Path) -> "RankingDataset":
        """Read what `save` wrote: features memory-mapped, all else verified, no code run."""
        with open(path, "rb") as held:  # torch opens a file twice; no other gets this one's inode
            try:
                kind, expected, fields, info = torch.load(path, "cpu", mmap=True, weights_only=True)
                if kind != FORMAT or arrays.digest({**fields, "features": None}) != expected:
                    raise ValueError("its format or its checksum is another")
                rest = {name: copy.deepcopy(x) for name, x in fields.items() if name != "features"}
                return cls(features=fields["features"], **rest, info=info)
            except Exception as error:
                if not os.path.samestat(os.fstat(held.fileno()), os.stat(path)):
                    return cls.load(path)  # another file has taken its place meanwhile
                raise ValueError(
                    f"RankingDataset.load: {path} is damaged, or not what RankingDataset.save of "
                    f"this version wrote ({type(error).__name__}: {error})."
                ) from error

    def __getstate__(self) -> dict[str, Any]:
        return {name: arrays.own_memory(value) for name, value in self.__dict__.items()}
