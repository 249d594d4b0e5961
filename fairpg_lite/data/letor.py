"""LETOR text (SVMlight with query ids), `<grade> qid:<q> <id>:<value> …`, read and written."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from fairpg_lite._extras import progress_bar
from fairpg_lite._files import whole_file
from fairpg_lite.data.arrays import gathered
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.data.letor_lines import PACKERS, Reader

PathLike = str | os.PathLike[str]


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

    Queries keep the order in which they first occur, documents that of the file; a query whose
    lines are scattered is gathered, and only then `document_ids` says which document of the file
    (from 0) each row is. A comment `#docid = NAME` names the document in `documents`; other
    comments and empty lines are skipped, absent and `NULL` values are 0. For lines without query
    ids, LightGBM's file `PATH.query` has the number of documents of each query in turn.

    Args:
        path: a file, or several to be read as one; no query may be in two of them.
        n_features: the number of columns, for files whose largest id differs (train and test,
            say) or is very large; without it, the largest id.
        dtype: torch.float32 or torch.float64.
        zero_based: whether feature ids begin at 0 instead of 1.
        text_ids: whether query ids are texts; None lets the first document decide.
        require_final_newline: refuse a last line without a line end, the usual sign of a cut file.
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
    name, size = " + ".join(Path(p).name for p in paths), sum(map(os.path.getsize, paths))
    kind = np.dtype(str(dtype).removeprefix("torch."))
    ids = {None: "", True: "text", False: "whole"}[text_ids]
    reader = Reader(kind, int(not zero_based), require_final_newline)
    with progress_bar(f"reading {name}", size, "B", progress) as bar:
        for file in paths:
            reader.read(file, ids, bar)
    features, relevance = reader.features(n_features, size), np.concatenate(reader.grades)
    queries, order, offsets = gathered(reader.queries)
    names, scattered = reader.names, bool((np.diff(order) != 1).any())
    if scattered:
        features, relevance, names = features[order], relevance[order], [names[i] for i in order]
    return RankingDataset(
        torch.from_numpy(features),
        torch.from_numpy(relevance),
        offsets,
        query_ids=queries,
        document_ids=torch.from_numpy(order) if scattered else None,
        documents=names if any(names) else None,
        info={"name": name},
    )


def save_letor(dataset: RankingDataset, path: PathLike) -> None:
    """Write LETOR text that `load_letor` reads back, compressed for .gz, .bz2 and .xz.

    Values come back bit for bit when read with the same dtype; zeros are left out, so pass
    `n_features` when reading if the last columns may be all zero. Document names become
    `#docid = …` comments; groups are not part of the format (`RankingDataset.save` keeps all).

    Chapter 10.
    """
    ids, names = dataset.query_ids.tolist(), dataset.documents or [""] * dataset.n_documents
    if len(set(ids)) < len(dataset):
        raise ValueError("save_letor: two queries share an id and would be read back as one.")
    for texts, forbidden in ((ids, r"[\s#:]|^$"), (names, r"\s")):
        bad = next((t for t in texts if isinstance(t, str) and re.search(forbidden, t)), None)
        if bad is not None:
            raise ValueError(
                f"save_letor: {bad!r} cannot stand in LETOR text, where a space ends a name; "
                "RankingDataset.save keeps any name."
            )
    # 9 and 17 significant digits identify every float32 and float64.
    pattern = " %d:%.9g" if dataset.features.dtype == torch.float32 else " %d:%.17g"
    opener, name = PACKERS.get(Path(path).suffix, open), iter(names)
    with (
        whole_file(Path(path)) as temporary,
        opener(temporary, "wt", encoding="utf-8", newline="\n") as file,
    ):
        for qid, query in zip(ids, dataset, strict=True):
            for row, grade in zip(query.features.numpy(), query.relevance.tolist(), strict=True):
                columns = np.flatnonzero(row)
                pairs = zip((columns + 1).tolist(), row[columns].tolist(), strict=True)
                comment = f" #docid = {own}" if (own := next(name)) else ""
                file.write(
                    f"{grade:.17g} qid:{qid}{''.join(map(pattern.__mod__, pairs))}{comment}\n"
                )
