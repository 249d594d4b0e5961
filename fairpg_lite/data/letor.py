"""Reading and writing LETOR text (SVMlight with query ids): `<grade> qid:<q> <id>:<value> …`.

scikit-learn's SVMlight reader does the parsing. It is handed a few megabytes of whole lines at a
time, so that an error concerns few lines, which `letor_lines` reads again to name the line.

What scikit-learn accepts in silence and we refuse: NaN and infinity (also a number too large for
`dtype`), a line without a query id, `qidx:7`, digits grouped by underscores (`1_000`), a
negative grade, a file without documents. It refuses, and we say where: a missing colon, two
colons, ids that are not rising, not whole or below 1. We also refuse a last line without a line
end, the usual sign of a cut file, unless told otherwise. A file cut exactly between two lines
cannot be told from a whole one; `yahoo` compares counts for that reason.
"""

import io
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairpg_lite._extras import require
from fairpg_lite._files import whole_file
from fairpg_lite._progress import Bar, progress_bar
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.letor_lines import (
    SUFFIXES,
    LetorError,
    Rules,
    blocks,
    first_error,
    heads,
    kind_of_ids,
    measure,
    without_nulls,
)

# One stray id, 99999, in a short file would otherwise ask for gigabytes of zeros: without
# n_features the columns are limited, by their number and by the size of the whole array, which
# may hold as many values as a small machine can bear, or a number for each byte of text.
MAX_COLUMNS, MAX_VALUES, MAX_VALUES_PER_BYTE = 100_000, 1 << 26, 50
PathLike = str | os.PathLike[str]


def load_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: torch.dtype = torch.float32,
    zero_based: bool = False,
    text_ids: bool | None = None,
    query_file: PathLike | None = None,
    require_final_newline: bool = True,
    progress: bool = False,
) -> RankingDataset:
    r"""Read LETOR text, plain or compressed (.gz, .bz2, .xz, told by content, not by name).

    Queries keep the order in which they first occur, documents the order of the file; a query
    whose lines are scattered is gathered, and `document_ids` then says which document of the
    file (from 0) each row is; without scattered queries it is None: the file's order. A comment
    `#docid = NAME` gives the document its name in `documents`; other comments and empty lines
    are skipped. Feature ids may leave gaps and begin at 1, or at 0 with `zero_based`. Column j
    of the features is id j + 1 (j with `zero_based`). Absent and `NULL` values are 0.

    Args:
        path: a file, or several to be read as one; no query may be in two of them.
        n_features: the number of columns, for files whose largest id differs (train and test,
            say) or is very large; without it, the largest id.
        dtype: torch.float32 or torch.float64.
        text_ids: whether query ids are texts; None lets the first document decide.
        query_file: for lines without query ids, a file with the number of documents of each
            query in turn; None looks for LightGBM's name, `path` with `.query` at its end.
        require_final_newline: refuse a last line without a line end (see the module).
        progress: show a bar on stderr.

    Raises:
        LetorError: with the file, the line and the offending text; a ValueError.

    Chapter 10.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     file = pathlib.Path(directory) / "two.txt"
    ...     _ = file.write_text("2 qid:7 1:0.5 3:1 #docid = A-1\n0 qid:9 2:4\n")
    ...     ds = load_letor(file)
    >>> ds, ds.documents
    (RankingDataset(2 queries, 2 documents, 3 features, no groups), ['A-1', ''])
    """
    if hasattr(path, "columns"):
        raise TypeError("load_letor: give a path; RankingDataset.from_pandas takes a DataFrame.")
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"load_letor: dtype is {dtype}; use torch.float32 or torch.float64.")
    if n_features is not None and n_features < 1:
        raise ValueError(f"load_letor: n_features is {n_features}; give 1 or more.")
    paths = [os.fspath(p) for p in ([path] if isinstance(path, (str, os.PathLike)) else path)]
    if not paths or (query_file is not None and len(paths) > 1):
        raise ValueError(f"load_letor: {len(paths)} files; give one or more, one with query_file.")
    lines, sizes = zip(*(measure(file, require_final_newline) for file in paths), strict=True)
    allowed = max(MAX_VALUES, MAX_VALUES_PER_BYTE * sum(sizes)) // sum(lines)
    rules = Rules(
        dtype=np.dtype(str(dtype).removeprefix("torch.")),
        zero_based=zero_based,
        columns=n_features or min(MAX_COLUMNS, max(allowed, 1)),
        columns_given=n_features is not None,
        ids="none"
        if query_file is not None
        else {None: "", True: "text", False: "whole"}[text_ids],
    )
    rows = _Rows(rules, sum(lines), n_features or 0)
    names = " + ".join(Path(file).name for file in paths)
    with progress_bar(f"reading {names}", sum(sizes), "B", progress) as bar:
        for file in paths:
            rows.read(file, query_file, bar)
    return rows.dataset(names)


class _Rows:
    """The growing dataset: one array of the final height, widened only if a new id asks for it."""

    def __init__(self, rules: Rules, lines: int, width: int):
        self.rules, self.lines = rules, lines
        self.features = np.zeros((lines, width), rules.dtype)
        self.relevance: list[np.ndarray] = []
        self.queries: dict[int | str, int] = {}  # from a query's id to its place
        self.places: list[np.ndarray] = []
        self.documents: list[str] = []
        self.count = 0

    def read(self, path: str, query_file: PathLike | None, bar: Bar) -> None:
        """All of one file."""
        first, known = self.count, len(self.queries)
        for number, block in blocks(path, bar):
            if not self.rules.ids:  # the first document decides
                kind = kind_of_ids(block) or ""
                if kind == "none" and _side_file(path) is None:
                    kind = "whole"  # and the error will say what is missing
                self.rules = self.rules._replace(ids=kind)
            self._append(path, number, block, known)
        if self.count == first:
            raise LetorError(path, None, "the file has no documents, only comments")
        if self.rules.ids == "none":
            counts = _counts(path, query_file or _side_file(path), self.count - first)
            self.places.append(known + np.repeat(np.arange(len(counts)), counts))
            self.queries |= {known + k: known + k for k in range(len(counts))}

    def _append(self, path: str, number: int, block: bytes, known: int) -> None:
        sparse, grades, (at, ids, names) = self._parse(path, number, block)
        if not len(grades):
            return  # nothing but comments
        # scikit-learn reports one column where there is none.
        width = int(sparse.indices.max()) + 1 if sparse.nnz else 0
        if width > self.features.shape[1]:
            wider = np.zeros((self.lines, width), self.rules.dtype)
            wider[: self.count, : self.features.shape[1]] = self.features[: self.count]
            self.features = wider
        rows = slice(self.count, self.count + len(grades))
        sparse.resize(len(grades), max(self.features.shape[1], 1))
        if self.features.shape[1]:
            sparse.toarray(out=self.features[rows])
        self.relevance.append(grades)
        self.documents += names
        self.count = rows.stop
        if self.rules.ids == "none":
            return
        places = [self.queries.setdefault(query, len(self.queries)) for query in ids]
        if known and min(places) < known:
            k = next(k for k, place in enumerate(places) if place < known)
            reason = "the query is in an earlier file, too; to keep both, use RankingDataset.concat"
            raise LetorError(path, number + at[k], reason, f"qid:{ids[k]}".encode())
        self.places.append(np.array(places))

    def _parse(self, path: str, number: int, block: bytes) -> tuple[Any, ...]:
        reader = require("sklearn.datasets", "experiments").load_svmlight_file
        rules, problem = self.rules, "a line is not of the form '<grade> qid:<q> <id>:<value> …'"
        try:
            text = io.BytesIO(without_nulls(block))
            sparse, grades = reader(text, dtype=rules.dtype, zero_based=rules.zero_based)
        except (ValueError, OverflowError, MemoryError) as error:
            problem = f"scikit-learn's reader refuses it: {error}"
        else:
            with np.errstate(over="ignore"):
                grades = grades.astype(rules.dtype)
            read = heads(block, rules.ids or "whole")
            fine = np.isfinite(sparse.data).all() and np.isfinite(grades).all()
            fine = bool(fine and (grades >= 0).all() and sparse.shape[1] <= rules.columns)
            if fine and read is not None and len(read[0]) == len(grades):
                return sparse, grades, read
        raise first_error(path, number, block, rules) or (
            LetorError(path, number, f"{problem} (in the lines from here on)")
        )

    def dataset(self, name: str) -> RankingDataset:
        places, order = np.concatenate(self.places), None
        features, relevance = self.features[: self.count], np.concatenate(self.relevance)
        documents = self.documents if any(self.documents) else None
        if (np.diff(places) < 0).any():  # a query in several places
            order = np.argsort(places, kind="stable")
            features, relevance = features[order], relevance[order]
            documents = None if documents is None else [documents[i] for i in order.tolist()]
        return RankingDataset(
            torch.from_numpy(features),
            torch.from_numpy(relevance),
            torch.from_numpy(np.concatenate([[0], np.cumsum(np.bincount(places))])),
            query_ids=list(self.queries),  # type: ignore[arg-type]
            document_ids=None if order is None else torch.from_numpy(order),
            documents=documents,
            info={"name": name},
        )


def _side_file(path: str) -> str | None:
    """LightGBM's file of query sizes beside `path`, if there is one."""
    stem = path.removesuffix(Path(path).suffix) if Path(path).suffix in SUFFIXES else path
    return next((file for file in (f"{path}.query", f"{stem}.query") if Path(file).is_file()), None)


def _counts(path: str, query_file: PathLike | None, documents: int) -> list[int]:
    """The documents of each query, which must add up to those of the file."""
    if query_file is None:  # one of several files, and not the first
        raise LetorError(path, None, f"no query ids, and no {path}.query beside it")
    side, counts = os.fspath(query_file), []
    for number, line in enumerate(Path(side).read_bytes().splitlines(), start=1):
        if not re.fullmatch(rb"\s*0*[1-9][0-9]{0,17}\s*", line):
            raise LetorError(side, number, "not a number of documents, 1 or more", line)
        counts.append(int(line))
    if sum(counts) != documents:
        reason = f"the counts add up to {sum(counts):,}, {path} has {documents:,} documents"
        raise LetorError(side, None, reason)
    return counts


def save_letor(dataset: RankingDataset, path: PathLike) -> None:
    """Write LETOR text that `load_letor` reads back, compressed for .gz, .bz2 and .xz.

    Values come back bit for bit when read with the same dtype; zeros are left out, so pass
    `n_features` when reading if the last columns may be all zero. Document names become
    `#docid = …` comments. Groups are not part of the format and are not written:
    `RankingDataset.save` keeps everything.

    Chapter 10.
    """
    ids = dataset.query_ids.tolist()
    if len(set(ids)) < len(dataset):
        raise ValueError("save_letor: two queries share an id and would be read back as one.")
    names, bounds = dataset.documents or [""] * dataset.n_documents, dataset.offsets.tolist()
    for texts, forbidden in ((ids, r"[\s#:]|^$"), (names, r"\s")):
        bad = next((t for t in texts if isinstance(t, str) and re.search(forbidden, t)), None)
        if bad is not None:
            raise ValueError(
                f"save_letor: {bad!r} cannot stand in LETOR text, where a space ends a name; "
                "RankingDataset.save keeps any name."
            )
    opener = SUFFIXES.get(Path(path).suffix, open)
    with (
        whole_file(Path(path)) as temporary,
        opener(temporary, "wt", encoding="utf-8", newline="\n") as f,
    ):
        for i, (qid, query) in enumerate(zip(ids, dataset, strict=True)):
            own = names[bounds[i] : bounds[i + 1]]
            f.writelines(_lines(qid, query.features.numpy(), query.relevance.tolist(), own))


def _lines(
    qid: int | str, features: np.ndarray, relevance: list[float], names: list[str]
) -> Iterator[str]:
    # 9 and 17 significant digits identify every float32 and float64.
    pattern = " %d:%.9g" if features.dtype == np.float32 else " %d:%.17g"
    for row, grade, name in zip(features, relevance, names, strict=True):
        columns = np.flatnonzero(row)
        pairs = np.empty((len(columns), 2), object)
        pairs[:, 0], pairs[:, 1] = columns + 1, row[columns].astype(float)
        values = pattern * len(columns) % tuple(pairs.ravel())
        yield f"{grade:.17g} qid:{qid}{values}{f' #docid = {name}' if name else ''}\n"
