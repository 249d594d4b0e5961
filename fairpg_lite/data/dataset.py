"""RankingDataset: queries with their documents, kept as a few long arrays."""

import copy
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Self, overload

import numpy as np
import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite.data import arrays, storage
from fairpg_lite.data.batches import Batches
from fairpg_lite.data.tables import arrays_of_table, table_of_arrays

PER_DOCUMENT = ("features", "relevance", "groups", "document_ids", "documents")


class Query(NamedTuple):
    """One query of a dataset: `features (n, d)`, `relevance (n,)`, `groups (n,)` or None."""

    features: Tensor
    relevance: Tensor
    groups: Tensor | None


@dataclass(eq=False, repr=False)
class RankingDataset:
    """Queries of any length, their documents concatenated (chapter 6).

    `len(dataset)` is the number of queries, `dataset[i]` is a `Query`, and a slice is again a
    dataset. Of what is given, whole numbers become tensors and texts NumPy arrays; what does not
    fit is refused with a `ValueError`.

    Args:
        features: Floating-point numbers `(N, d)`, a row for each document.
        relevance: Grades `(N,)`, finite and not negative; kept in the dtype of the features.
        offsets: Whole numbers `(Q + 1,)` that rise from 0 to N: query i owns the rows
            `offsets[i]:offsets[i + 1]`.
        groups: A label 0, 1, … for each document `(N,)`, or None.
        query_ids: Whole numbers or texts `(Q,)`; None is 0, 1, …
        document_ids: Whole numbers `(N,)`, such as the row of a table that a document was, or None.
            Measures over many queries take documents of one id for the same item.
        documents: Names of documents, texts `(N,)` with "" for none; or None.
        columns: Other values of the documents by name, each `(N,)` and finite, or None. A column
            can be the merit (`TrainConfig(merit="column:NAME")`, and so in `evaluate`), and a
            disparity or utility of your own that has an argument `columns` is given all of them.
        query_weights: How much each query counts in means and in training, `(Q,)`, zero or more;
            None is all alike.
        info: What else is known of the data, plain values by name.

    >>> dataset = RankingDataset(torch.eye(3), torch.tensor([1.0, 0.0, 2.0]), offsets=[0, 2, 3])
    >>> dataset
    RankingDataset(2 queries, 3 documents, 3 features, no groups)
    >>> dataset[0].relevance
    tensor([1., 0.])
    >>> len(dataset[1:])
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
    columns: Mapping[str, Tensor] | None = None
    query_weights: Tensor | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values in arrays.checked(self._fields()).items():
            setattr(self, name, values)
        # Plain integers: indexing a tensor for every query would cost more than the query's view.
        self._bounds: list[int] = self.offsets.tolist()

    def _fields(self) -> dict[str, Any]:
        """Return all arrays by name."""
        return {name: getattr(self, name) for name in arrays.FIELDS}

    # --- made of something else -------------------------------------------------------------------

    @classmethod
    def from_queries(cls, queries: Iterable[Sequence[Any]]) -> Self:
        """Make a dataset of one tuple for each query.

        Args:
            queries: `(features, relevance)` or `(features, relevance, groups)` of each query, of
                shapes `(n, d)`, `(n,)` and `(n,)`, all with groups or none.

        Returns:
            The dataset; its query ids are 0, 1, …

        >>> first = (torch.zeros(2, 3), torch.tensor([1.0, 0.0]))
        >>> second = (torch.ones(1, 3), torch.tensor([2.0]))
        >>> RankingDataset.from_queries([first, second])
        RankingDataset(2 queries, 3 documents, 3 features, no groups)
        """
        where = "RankingDataset.from_queries"
        parts = []
        for number, query in enumerate(queries):
            if len(query) not in (2, 3):
                raise ValueError(
                    f"{where}: query {number} has {len(query)} entries; give (features, relevance) "
                    "or (features, relevance, groups)."
                )
            fields = dict.fromkeys(arrays.FIELDS)
            fields |= zip(("features", "relevance", "groups"), query, strict=False)
            fields["offsets"] = [0, len(query[0])]
            parts.append(arrays.checked(fields, f"{where}: query {number}"))
        joined = _joined(parts, where, "query")
        joined["query_ids"] = None
        return cls(**joined)

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
        columns: Sequence[str] = (),
        query_weight: str | None = None,
    ) -> Self:
        """Make a dataset of a pandas table with a row for each document, in any order.

        Queries keep the order in which they first occur, and their documents that of the table.

        Args:
            frame: The DataFrame.
            query: The column that says which query a row belongs to, whole numbers or texts.
            relevance: The column of grades.
            features: The columns of features; None is all that have no other part.
            group: The column of groups; its sorted values become 0, 1, … and are kept in
                `info["group_names"]`. None is a dataset without groups.
            document: The column of names of documents. None is a dataset without names.
            columns: Columns of numbers to be kept by their names, as the dataset's `columns`.
            query_weight: The column of weights, the same in all rows of a query. None is a dataset
                without weights.

        Returns:
            The dataset, with features in torch's default dtype; `document_ids` says which row of
            the table (from 0) each document was.

        >>> import pandas
        >>> frame = pandas.DataFrame({"q": ["a", "b", "a"], "grade": [1, 0, 2], "x": [3, 4, 5]})
        >>> dataset = RankingDataset.from_pandas(frame, query="q", relevance="grade")
        >>> dataset.query_ids.tolist(), dataset.relevance, dataset.document_ids
        (['a', 'b'], tensor([1., 2., 0.]), tensor([0, 2, 1]))
        """
        arguments = arrays_of_table(
            frame,
            query=query,
            relevance=relevance,
            features=features,
            group=group,
            document=document,
            columns=columns,
            query_weight=query_weight,
        )
        return cls(**arguments)

    def to_pandas(self) -> Any:
        """Make a pandas table with a row for each document.

        Returns:
            A DataFrame with the columns "query", "document" (if there are names), "relevance",
            "group" (if there are groups; by their names in `info["group_names"]`, if known),
            "feature_1" to "feature_d" (or the names in `info["feature_names"]`, if there are d),
            the dataset's `columns` by their names and "query_weight" (if there are weights).
            The index is "document_id", if there are ids. The way back is `from_pandas` with these
            names of columns.

        >>> dataset = RankingDataset(torch.eye(2), torch.ones(2), offsets=[0, 2], groups=[0, 1])
        >>> dataset.to_pandas()
           query  relevance  group  feature_1  feature_2
        0      0        1.0      0        1.0        0.0
        1      0        1.0      1        0.0        1.0
        """
        return table_of_arrays(self._fields(), self.info)

    @classmethod
    def concat(cls, datasets: Sequence["RankingDataset"]) -> Self:
        """Join datasets, the queries of one after those of another.

        Args:
            datasets: One or more, alike in the number of features and in which arrays they have.

        Returns:
            The dataset of all queries; their ids stay as they are.

        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 2, 3])
        >>> RankingDataset.concat([dataset, dataset]).query_ids
        tensor([0, 1, 0, 1])
        """
        parts = [dataset._fields() for dataset in datasets]
        names = [str(dataset.info.get("name", "?")) for dataset in datasets]
        joined = _joined(parts, "RankingDataset.concat", "dataset")
        return cls(**joined, info={"name": " + ".join(names)})

    # --- what is in it ----------------------------------------------------------------------------

    @property
    def n_documents(self) -> int:
        """The number N of documents of all queries."""
        return len(self.features)

    @property
    def n_features(self) -> int:
        """The number d of features."""
        return self.features.shape[1]

    @property
    def lengths(self) -> Tensor:
        """The number of documents of each query `(Q,)`."""
        lengths: Tensor = self.offsets.diff()
        return lengths

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __repr__(self) -> str:
        groups = "no groups"
        if self.groups is not None:
            labels = np.unique(self.groups.numpy(force=True)).tolist()
            groups = f"groups {'/'.join(map(str, labels))}"
        return (
            f"RankingDataset({len(self)} queries, {self.n_documents} documents, "
            f"{self.n_features} features, {groups})"
        )

    @overload
    def __getitem__(self, index: int) -> Query: ...

    @overload
    def __getitem__(self, index: slice) -> "RankingDataset": ...

    def __getitem__(self, index: int | slice) -> "Query | RankingDataset":
        """Return the `Query` with this number (views), or a dataset of a slice of them."""
        if isinstance(index, slice):
            return self.subset(range(*index.indices(len(self))))
        i = range(len(self))[index]
        rows = slice(self._bounds[i], self._bounds[i + 1])
        groups = None if self.groups is None else self.groups[rows]
        return Query(self.features[rows], self.relevance[rows], groups)

    def __iter__(self) -> Iterator[Query]:
        return (self[i] for i in range(len(self)))

    def batches(
        self,
        size: int = 1,
        shuffle: bool = False,
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype | None = None,
        reuse: bool = False,
    ) -> Batches:
        """Return the queries in padded batches; iterate over the result once for each epoch.

        Args:
            size: The number of queries in a batch, 1 or more; the last may have fewer.
            shuffle: Whether to draw a random order of queries anew for each epoch. For a size
                above 1 queries of similar length share a batch either way, which saves padding:
                pools of 50 batches are sorted by length, and then the batches are shuffled.
            generator: Where the order comes from; None is torch's global generator.
            dtype: The dtype of features and relevance; None is that of the dataset.
            reuse: Whether the padded features of all batches share one memory. It is faster, but
                a batch is good only until the next one is drawn.

        Returns:
            An iterable of `Batch` with a length. A batch of neighbours of one length (any batch of
            size 1, say) holds views of the dataset; any other is a copy.

        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 2, 3])
        >>> for batch in dataset.batches(2):
        ...     print(batch.queries, batch.mask)
        tensor([1, 0]) tensor([[ True, False],
                [ True,  True]])
        """
        return Batches(
            features=self.features,
            relevance=self.relevance,
            groups=self.groups,
            document_ids=self.document_ids,
            columns=self.columns,
            query_weights=self.query_weights,
            bounds=self._bounds,
            size=size,
            shuffle=shuffle,
            generator=generator,
            dtype=dtype,
            reuse=reuse,
        )

    # --- parts of it, and changed copies ----------------------------------------------------------

    def subset(self, queries: Sequence[int] | Tensor) -> "RankingDataset":
        """Choose queries.

        Args:
            queries: The numbers of the queries, in any order, as often as wanted (a bootstrap
                sample); or a boolean mask `(Q,)`.

        Returns:
            The dataset of these queries, in their order. Consecutive queries give views, any other
            choice copies the chosen documents.

        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 2, 3])
        >>> dataset.subset([1, 0, 1]).query_ids
        tensor([1, 0, 1])
        """
        index = np.asarray(queries)
        if len(index) == 0:
            index = index.astype(np.int64)  # NumPy takes an empty list for floats
        chosen = np.arange(len(self))[index]
        starts = [self._bounds[i] for i in chosen.tolist()]
        ends = [self._bounds[i + 1] for i in chosen.tolist()]
        rows = _rows(starts, ends)
        taken: dict[str, Any] = {}
        for name in PER_DOCUMENT:
            values = getattr(self, name)
            taken[name] = None if values is None else values[rows]
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        taken["offsets"] = list(accumulate(lengths, initial=0))
        taken["query_ids"] = self.query_ids[chosen]
        if self.columns is not None:
            taken["columns"] = {name: values[rows] for name, values in self.columns.items()}
        if self.query_weights is not None:
            taken["query_weights"] = self.query_weights[chosen]
        return self.replace(**taken)

    def split(self, fractions: Sequence[float], seed: int = 0) -> tuple["RankingDataset", ...]:
        """Divide the queries at random into disjoint parts.

        Args:
            fractions: The share of each part, above 0; they sum to at most 1.
            seed: Decides who goes where: the same seed, the same parts.

        Returns:
            A dataset for each fraction; its queries keep their order.

        >>> dataset = RankingDataset(torch.eye(4), torch.ones(4), offsets=[0, 1, 2, 3, 4])
        >>> train, test = dataset.split((0.75, 0.25))
        >>> train.query_ids, test.query_ids
        (tensor([0, 1, 3]), tensor([2]))
        """
        where = "RankingDataset.split"
        if len(fractions) == 0:
            raise ValueError(f"{where}: fractions is empty; give the share of each part.")
        for i, fraction in enumerate(fractions):
            if not fraction > 0:
                raise ValueError(f"{where}: fractions[{i}] is {fraction}; it must be positive.")
        total = sum(fractions)
        if total > 1 + 1e-9:
            raise ValueError(f"{where}: fractions sum to {total:g}; they may sum to 1 at most.")
        bounds = [round(share * len(self)) for share in accumulate(fractions, initial=0.0)]
        for i, (start, end) in enumerate(pairwise(bounds)):
            if start == end:
                raise ValueError(
                    f"{where}: fractions[{i}] is {fractions[i]} of {len(self)} queries, which "
                    "leaves that part empty; give a larger fraction or more queries."
                )
        generator = torch.Generator().manual_seed(_check.seed(f"{where}: seed", seed))
        order = torch.randperm(len(self), generator=generator)
        return tuple(self.subset(order[a:b].sort().values) for a, b in pairwise(bounds))

    def shard(self, rank: int, world: int) -> "RankingDataset":
        """Take the part of one process: `world` parts of consecutive queries, as even as can be.

        Args:
            rank: Which part, from 0.
            world: How many parts, one for each query at most.

        Returns:
            The part, a view.

        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 1, 2, 3])
        >>> [dataset.shard(rank, 2).query_ids.tolist() for rank in range(2)]
        [[0], [1, 2]]
        """
        where = "RankingDataset.shard"
        if world < 1:
            raise ValueError(f"{where}: world is {world}; give the number of parts, 1 or more.")
        if world > len(self):
            raise ValueError(
                f"{where}: world is {world}, and the dataset has {len(self)} queries; "
                "make at most one part for each query."
            )
        if not 0 <= rank < world:
            raise ValueError(f"{where}: rank is {rank}; the {world} parts are 0 to {world - 1}.")
        start = rank * len(self) // world
        end = (rank + 1) * len(self) // world
        return self[start:end]

    def replace(
        self,
        *,
        features: Any = ...,
        relevance: Any = ...,
        offsets: Any = ...,
        groups: Any = ...,
        query_ids: Any = ...,
        document_ids: Any = ...,
        documents: Any = ...,
        columns: Any = ...,
        query_weights: Any = ...,
        info: Any = ...,
    ) -> "RankingDataset":
        """Change some arrays.

        Args:
            features: The new features; `...`, here and below, keeps what there is.
            relevance: The new relevance.
            offsets: The new offsets.
            groups: The new groups, or None to take them away.
            query_ids: The new ids of queries, or None for 0, 1, …
            document_ids: The new ids of documents, or None to take them away.
            documents: The new names of documents, or None to take them away.
            columns: All columns that the new dataset is to have, or None to take them away.
            query_weights: The new weights of queries, or None to take them away.
            info: The new info.

        Returns:
            A new dataset that shares all other arrays with this one.

        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 2, 3])
        >>> dataset.replace(groups=[0, 1, 1])
        RankingDataset(2 queries, 3 documents, 3 features, groups 0/1)
        """
        arguments = {
            "features": features,
            "relevance": relevance,
            "offsets": offsets,
            "groups": groups,
            "query_ids": query_ids,
            "document_ids": document_ids,
            "documents": documents,
            "columns": columns,
            "query_weights": query_weights,
            "info": info,
        }
        changes = {name: value for name, value in arguments.items() if value is not ...}
        return dataclasses.replace(self, **changes)

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> "RankingDataset":
        """Convert the numbers, move the arrays, or both.

        Args:
            dtype: The new dtype of features, relevance, weights and columns of floats; None keeps
                what they have.
            device: Where all arrays go; None keeps the place.

        Returns:
            A new dataset; arrays that need no change are shared.

        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 2, 3])
        >>> dataset.to(torch.float64).relevance.dtype
        torch.float64
        """

        def converted(values: Tensor) -> Tensor:
            new_dtype = values.dtype
            if dtype is not None and values.is_floating_point():
                new_dtype = dtype
            return values.to(device=device, dtype=new_dtype)

        moved = copy.copy(self)
        for name, values in self._fields().items():
            if isinstance(values, Tensor):
                setattr(moved, name, converted(values))
        if self.columns is not None:
            moved.columns = {name: converted(values) for name, values in self.columns.items()}
        return moved

    def normalize(self) -> "RankingDataset":
        """Scale each feature to [0, 1] within each query.

        Returns:
            A new dataset; a feature that is constant within a query is 0 there.

        >>> dataset = RankingDataset(torch.tensor([[2.0], [4.0], [3.0]]), torch.ones(3), [0, 3])
        >>> dataset.normalize().features[:, 0]
        tensor([0.0000, 1.0000, 0.5000])
        """
        # The difference of two large finite numbers may overflow, that of their halves does not.
        scaled = self.features / 2
        for start, end in pairwise(self._bounds):
            rows = scaled[start:end]
            low, high = rows.aminmax(dim=0)
            span = torch.where(high > low, high - low, 1.0)
            scaled[start:end] = ((rows - low) / span).clamp_(0.0, 1.0)
        normalized = copy.copy(self)
        normalized.features = scaled
        return normalized

    # --- kept, compared, sent ---------------------------------------------------------------------

    def fingerprint(self) -> str:
        """Compute a SHA-256 of all arrays (of everything but `info`).

        Returns:
            64 hexadecimal digits, equal for equal data, wherever it lies in memory or on disk.

        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 2, 3])
        >>> dataset.fingerprint() == dataset.replace(info={"name": "pages"}).fingerprint()
        True
        """
        return storage.digest(self._fields())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of the dataset to one file, whole or not at all.

        Args:
            path: The file; folders are made, and an older file is replaced.

        >>> import tempfile
        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 2, 3])
        >>> with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ...     dataset.save(f"{folder}/pages")
        ...     RankingDataset.load(f"{folder}/pages")
        RankingDataset(2 queries, 3 documents, 3 features, no groups)
        """
        storage.write(path, self._fields(), self.info)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "RankingDataset":
        """Read a file of `save`.

        Nothing in the file is run. The features are memory-mapped, so that a large file opens at
        once and processes of one machine share it; writing to them does not change the file.

        Args:
            path: The file.

        Returns:
            The dataset, on the CPU.

        Raises:
            ValueError: The file is damaged, or `save` of another version wrote it.

        >>> import tempfile
        >>> dataset = RankingDataset(torch.eye(3), torch.ones(3), offsets=[0, 2, 3])
        >>> with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ...     dataset.save(f"{folder}/pages")
        ...     RankingDataset.load(f"{folder}/pages").relevance
        tensor([1., 1., 1.])
        """
        fields, info = storage.read(path)
        try:
            return cls(**fields, info=info)
        except (TypeError, ValueError) as error:
            raise storage.damaged(path, error) from error

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: of a view, its rows and not the memory behind them."""
        return {name: storage.compact(value) for name, value in self.__dict__.items()}


def _rows(starts: list[int], ends: list[int]) -> Any:
    """Return what indexes the rows of the queries with these bounds: a slice if it can be one."""
    if not starts:
        return slice(0)
    if starts[1:] == ends[:-1]:
        return slice(starts[0], ends[-1])
    return np.concatenate([np.arange(start, end) for start, end in zip(starts, ends, strict=True)])


def _joined(parts: Sequence[dict[str, Any]], where: str, kind: str) -> dict[str, Any]:
    """Return the arrays of all `parts`, one after another; `kind` is what an error calls a part."""
    if not parts:
        raise ValueError(f"{where}: there is no {kind}; give one or more.")
    joined: dict[str, Any] = {}
    for name in (*PER_DOCUMENT, "query_ids", "query_weights"):
        columns = [part[name] for part in parts]
        for number, column in enumerate(columns):
            _refuse_unlike(columns[0], column, name, where, f"{kind} {number}", f"{kind} 0")
        if isinstance(columns[0], Tensor):
            joined[name] = torch.cat(columns)
        elif columns[0] is not None:
            joined[name] = np.concatenate(columns)
    lengths = torch.cat([part["offsets"].diff() for part in parts])
    joined["offsets"] = list(accumulate(lengths.tolist(), initial=0))
    joined["columns"] = _joined_columns(parts, where, kind)
    return joined


def _joined_columns(
    parts: Sequence[dict[str, Any]], where: str, kind: str
) -> dict[str, Tensor] | None:
    """Return the named columns of all `parts`, one after another; None if they have none."""
    names = list(parts[0]["columns"] or {})
    for number, part in enumerate(parts):
        if set(part["columns"] or {}) != set(names):
            raise ValueError(
                f"{where}: {kind} 0 has the columns {sorted(names)}, {kind} {number} has "
                f"{sorted(part['columns'] or {})}; give all the same columns."
            )
    if not names:
        return None
    return {name: torch.cat([part["columns"][name] for part in parts]) for name in names}


def _refuse_unlike(
    first: Any, column: Any, name: str, where: str, place: str, first_place: str
) -> None:
    """Refuse a `column` that cannot be joined to the `first` of that name."""
    if (first is None) != (column is None):
        raise ValueError(
            f"{where}: only one of {first_place} and {place} has {name}; give all of them {name}, "
            "or none."
        )
    if type(first) is not type(column):
        raise ValueError(
            f"{where}: {name} are numbers in one of {first_place} and {place}, and texts in the "
            "other; make them alike."
        )
    if name == "features" and first.shape[1] != column.shape[1]:
        raise ValueError(
            f"{where}: {place} has {column.shape[1]} features, {first_place} has {first.shape[1]}; "
            "give all the same features."
        )
