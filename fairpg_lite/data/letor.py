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
    Head,
    LetorError,
    Rules,
    blocks,
    first_error,
    heads,
    kind_of_ids,
    without_nulls,
)

# One stray id, 99999, in a short file would otherwise ask for gigabytes of zeros: without
# n_features the columns are limited, by their number and by the size of the whole array, which
# may hold as many values as a small machine can bear, or a number for each byte of text.
MAX_COLUMNS, MAX_VALUES, MAX_VALUES_PER_BYTE = 100_000, 1 << 26, 50
PathLike = str | os.PathLike[str]
Block = tuple[Any, np.ndarray, list[Head]]  # sparse features, grades, and what lines begin with


def load_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: torch.dtype = torch.float32,
    zero_based: bool = False,
    text_ids: bool | None = None,
    require_final_newline: bool = True,
    progress: bool = False,
) -> RankingDataset:
    r"""Read LETOR text, plain or compressed (.gz, .bz2, .xz, told by content, not by name).

    Queries keep the order in which they first occur, documents the order of the file; a query
    whose lines are scattered is gathered, and `document_ids` then says which document of the
    file (from 0) each row is; without scattered queries it is None: the file's order. A comment
    `#docid = NAME` gives the document its name in `documents`; other comments and empty lines
    are skipped. Feature ids may leave gaps and begin at 1, or at 0 with `zero_based`. Column j
    of the features is id j + 1 (j with `zero_based`). Absent and `NULL` values are 0. For lines
    without query ids, LightGBM's file of the same name with `.query` at its end has the number
    of documents of each query in turn.

    Args:
        path: a file, or several to be read as one; no query may be in two of them.
        n_features: the number of columns, for files whose largest id differs (train and test,
            say) or is very large; without it, the largest id.
        dtype: torch.float32 or torch.float64.
        text_ids: whether query ids are texts; None lets the first document decide.
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
    paths = [os.fspath(p) for p in ([path] if isinstance(path, (str, os.PathLike)) else path)]
    known = (torch.float32, torch.float64)
    if not paths or dtype not in known or (n_features is not None and n_features < 1):
        raise ValueError(
            f"load_letor: {len(paths)} files, dtype is {dtype}, n_features is {n_features}; give "
            "one file or more, torch.float32 or torch.float64, and 1 feature or more."
        )
    kind = np.dtype(str(dtype).removeprefix("torch."))
    ids = {None: "", True: "text", False: "whole"}[text_ids]
    rules = Rules(kind, int(not zero_based), ids, not require_final_newline)
    name, size = " + ".join(Path(p).name for p in paths), sum(map(os.path.getsize, paths))
    found: list[Block] = []
    owners: dict[int | str, str] = {}  # from a query's id to its file
    with progress_bar(f"reading {name}", size, "B", progress) as bar:
        for file in paths:
            found += _read(file, rules, bar, owners)
    return _dataset(found, list(owners), n_features, rules, size).replace(info={"name": name})


def _dataset(
    found: list[Block], queries: list[int | str], n_features: int | None, rules: Rules, size: int
) -> RankingDataset:
    """The blocks of all files in one array, each query's documents side by side."""
    rows = [head for _, _, own in found for head in own]
    limit, beyond = n_features, f"is beyond n_features ({n_features} columns)"
    if limit is None:
        limit = max(1, min(MAX_COLUMNS, max(MAX_VALUES, MAX_VALUES_PER_BYTE * size) // len(rows)))
        beyond = f"is very large ({limit:,} columns at most are made unasked); pass n_features"
    width = max(_width(sparse, own, limit, beyond, rules) for sparse, _, own in found)
    features = np.zeros((len(rows), n_features or width), rules.dtype)
    relevance = np.concatenate([grades for _, grades, _ in found])
    end = 0
    while width and found:  # one after another, and its memory is free at once
        sparse = found.pop(0)[0]
        start, end = end, end + sparse.shape[0]
        sparse.resize(features[start:end].shape)
        sparse.toarray(out=features[start:end])
    place = {query: k for k, query in enumerate(queries)}
    places, names = np.array([place[head.query] for head in rows]), [head.name for head in rows]
    order = np.argsort(places, kind="stable") if (np.diff(places) < 0).any() else None
    if order is not None:  # a query in several places
        features, relevance = features[order], relevance[order]
        names = [names[i] for i in order.tolist()]
    return RankingDataset(
        torch.from_numpy(features),
        torch.from_numpy(relevance),
        np.concatenate([[0], np.cumsum(np.bincount(places))]),
        query_ids=queries,
        document_ids=None if order is None else torch.from_numpy(order),
        documents=names if any(names) else None,
    )


def _read(path: str, rules: Rules, bar: Bar, owners: dict[int | str, str]) -> list[Block]:
    """All blocks of a file; its queries are added to `owners`."""
    side, found = _side_file(path), []
    for number, block in blocks(path, bar, rules.may_be_cut):
        rules = rules._replace(ids=rules.ids or kind_of_ids(block, without=side is not None))
        sparse, grades, own = _parse(path, number, block, rules)
        if own:  # else nothing but comments
            found.append((sparse, grades, own))
    if not found:
        raise LetorError(path, None, "the file is empty or has no documents, only comments")
    if rules.ids == "none" and side is not None:
        names = _names(path, side, sum(len(own) for _, _, own in found), len(owners))
        found = [(x, y, [h._replace(query=next(names)) for h in own]) for x, y, own in found]
    for head in (head for _, _, own in found for head in own):
        if owners.setdefault(head.query, path) != path:
            reason = "the query is in an earlier file, too; to keep both, use RankingDataset.concat"
            raise LetorError(path, head.line, reason, f"qid:{head.query}")
    return found


def _parse(path: str, number: int, block: bytes, rules: Rules) -> Block:
    reader = require("sklearn.datasets", "experiments").load_svmlight_file
    problem = "a line is not of the form '<grade> qid:<q> <id>:<value> …'"
    try:
        text = io.BytesIO(without_nulls(block))
        sparse, grades = reader(text, dtype=rules.dtype, zero_based=not rules.first_id)
    except (ValueError, OverflowError, MemoryError) as error:
        problem = f"scikit-learn's reader refuses it: {error}"
    else:
        with np.errstate(over="ignore"):
            grades = grades.astype(rules.dtype)
        found = heads(path, number, block, rules.ids or "whole")
        fine = np.isfinite(sparse.data).all() and np.isfinite(grades).all() and (grades >= 0).all()
        if fine and found is not None and len(found) == len(grades):
            return sparse, grades, found
    raise first_error(path, number, block, rules) or (
        LetorError(path, number, f"{problem} (in the lines from here on)")
    )


def _width(sparse: Any, heads: list[Head], limit: int, beyond: str, rules: Rules) -> int:
    """The largest column of a block, which must not be beyond `limit`."""
    wide = np.flatnonzero(sparse.indices >= limit)
    if len(wide):
        head = heads[int(np.searchsorted(sparse.indptr, wide[0], "right")) - 1]
        text = f"{sparse.indices[wide[0]] + rules.first_id}:{sparse.data[wide[0]]:g}"
        raise LetorError(head.path, head.line, f"the feature id {beyond}", text)
    # scikit-learn reports one column where there is none.
    return int(sparse.indices.max()) + 1 if sparse.nnz else 0


def _side_file(path: str) -> Path | None:
    """LightGBM's file of query sizes beside `path`, if there is one."""
    stem = path.removesuffix(Path(path).suffix) if Path(path).suffix in SUFFIXES else path
    return next((Path(f"{p}.query") for p in (path, stem) if Path(f"{p}.query").is_file()), None)


def _names(path: str, side: Path, documents: int, known: int) -> Iterator[int]:
    """The number of each document's query, from `known`, by the counts in the side file."""
    counts = []
    for number, line in enumerate(side.read_bytes().splitlines(), start=1):
        if not re.fullmatch(rb"\s*0*[1-9][0-9]{0,17}\s*", line):
            raise LetorError(str(side), number, "not a number of documents, 1 or more", line)
        counts.append(int(line))
    if sum(counts) != documents:
        reason = f"the counts add up to {sum(counts):,}, {path} has {documents:,} documents"
        raise LetorError(str(side), None, reason)
    return (known + k for k, count in enumerate(counts) for _ in range(count))


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
    names = dataset.documents or [""] * dataset.n_documents
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
        opener(temporary, "wt", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(_lines(dataset, ids, names))


def _lines(dataset: RankingDataset, ids: list[int | str], names: list[str]) -> Iterator[str]:
    # 9 and 17 significant digits identify every float32 and float64.
    pattern = " %d:%.9g" if dataset.features.dtype == torch.float32 else " %d:%.17g"
    name = iter(names)
    for qid, query in zip(ids, dataset, strict=True):
        for row, grade in zip(query.features.numpy(), query.relevance.tolist(), strict=True):
            columns = np.flatnonzero(row)
            pairs = zip((columns + 1).tolist(), row[columns].tolist(), strict=True)
            comment = f" #docid = {own}" if (own := next(name)) else ""
            yield f"{grade:.17g} qid:{qid}{''.join(map(pattern.__mod__, pairs))}{comment}\n"
