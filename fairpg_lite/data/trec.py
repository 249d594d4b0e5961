"""Files of TREC: a run of some system, the judgements of assessors, and groups of documents.

A run has lines ``qid Q0 doc rank score tag``, judgements (qrels) have lines ``qid 0 doc grade``.
"""

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fairpg_lite.data.dataset import RankingDataset

# How far below the last retrieved document the others stand: in a Plackett-Luce policy of the
# scores, none of them is ever drawn before a retrieved one.
_GAP = 1000.0

RUN_LINE = "qid Q0 doc rank score tag"
QRELS_LINE = "qid 0 doc grade"

PathName = str | os.PathLike[str]


class Line(NamedTuple):
    """The words of a line, and where it stands."""

    place: str
    words: list[str]


def from_trec(run: PathName, qrels: PathName, groups: PathName | None = None) -> RankingDataset:
    r"""Read what a system retrieved, and how good it was, from files of TREC.

    The one feature is the score of the run; its ranks are not read, and neither is its tag. A
    judged document that was not retrieved is part of its query, too: it merits exposure and counts
    in the ideal ranking. Its score is 1000 below that of the last retrieved document, so it stands
    after all of those. To give it no exposure at all, cut the position bias off at the depth of the
    run, ``position_bias(n, k=data.info["depth"])``, n being ``int(data.lengths.max())``.

    Args:
        run: A file of lines ``qid Q0 doc rank score tag``, in any order.
        qrels: A file of lines ``qid 0 doc grade``, in any order. Grades below 0 count 0.
        groups: A file of lines ``doc label``, or ``qid doc label`` if the group of a document is
            another in another query. None is a dataset without groups.

    Returns:
        The queries that both files have, in the order of the run, with features in double
        precision. `documents` are their names, `document_ids` are equal for equal names, and
        `info` has "unjudged", the number of retrieved documents without a grade (their relevance
        is 0); "only_in_run" and "only_in_qrels", the numbers of queries that were left out;
        "depth", the length of the longest list of the run; and "group_names".

    Raises:
        ValueError: A line cannot be right; the message names file and line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    ...     run = Path(folder, "run.txt")
    ...     _ = run.write_text("7 Q0 apple 1 2.5 bm25\n7 Q0 pear 2 1.5 bm25\n")
    ...     qrels = Path(folder, "qrels.txt")
    ...     _ = qrels.write_text("7 0 pear 1\n7 0 plum 2\n")
    ...     data = from_trec(run, qrels)
    >>> data.documents.tolist(), data.features[:, 0].tolist(), data.relevance.tolist()
    (['apple', 'pear', 'plum'], [2.5, 1.5, -998.5], [0.0, 1.0, 2.0])
    >>> data.info["unjudged"]
    1
    """
    scores = values_by_query(run, columns=6, column=4, meaning="score", form=RUN_LINE)
    grades = values_by_query(qrels, columns=4, column=3, meaning="grade", form=QRELS_LINE)
    queries = [query for query in scores if query in grades]
    if not queries:
        raise ValueError(
            f"from_trec: {run} and {qrels} have no query in common; give the judgements of this "
            "run's queries."
        )
    documents: list[str] = []
    query_of_document: list[str] = []
    features: list[float] = []
    relevance: list[float] = []
    offsets = [0]
    unjudged = 0
    for query in queries:
        retrieved = scores[query]
        judged = grades[query]
        last = min(retrieved.values()) - _GAP
        missed = [document for document in judged if document not in retrieved]
        for document in [*retrieved, *missed]:
            documents.append(document)
            query_of_document.append(query)
            features.append(retrieved.get(document, last))
            relevance.append(max(0.0, judged.get(document, 0.0)))
        unjudged += len(retrieved.keys() - judged.keys())
        offsets.append(len(documents))
    info: dict[str, Any] = {
        "name": Path(run).name,
        "unjudged": unjudged,
        "only_in_run": len(scores) - len(queries),
        "only_in_qrels": len(grades) - len(queries),
        "depth": max(len(scores[query]) for query in queries),
    }
    labels = None
    if groups is not None:
        names = _group_names(groups, query_of_document, documents)
        info["group_names"] = sorted(set(names))
        number_of_group = {name: number for number, name in enumerate(info["group_names"])}
        labels = [number_of_group[name] for name in names]
    number_of_name: dict[str, int] = {}
    for document in documents:
        number_of_name.setdefault(document, len(number_of_name))
    return RankingDataset(
        torch.tensor(features, dtype=torch.float64).unsqueeze(-1),
        torch.tensor(relevance, dtype=torch.float64),
        offsets,
        groups=None if labels is None else torch.tensor(labels),
        query_ids=queries,
        document_ids=torch.tensor([number_of_name[document] for document in documents]),
        documents=documents,
        info=info,
    )


def values_by_query(
    path: PathName, *, columns: int, column: int, meaning: str, form: str
) -> dict[str, dict[str, float]]:
    """Return the number of each document of each query, both in the order of the file."""
    values: dict[str, dict[str, float]] = {}
    for line in lines_of(path):
        demand_columns(line, columns, form)
        query = line.words[0]
        document = line.words[2]
        of_query = values.setdefault(query, {})
        if document in of_query:
            raise ValueError(
                f"{line.place}: document {document!r} of query {query!r} was there before; name "
                "each document of a query once."
            )
        of_query[document] = number_in(line, column, meaning)
    if not values:
        raise ValueError(f"{os.fspath(path)}: the file is empty; give lines '{form}'.")
    return values


def number_in(line: Line, column: int, meaning: str) -> float:
    """Return the finite number in a column."""
    word = line.words[column]
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{line.place}: the {meaning} {word!r} is not a finite number.")
    return value


def _group_names(path: PathName, query_of_document: list[str], documents: list[str]) -> list[str]:
    """Return the group of each document."""
    by_query, names = names_by_key(path)
    names_of_documents = []
    for query, document in zip(query_of_document, documents, strict=True):
        key = (query, document) if by_query else (document,)
        if key not in names:
            raise ValueError(
                f"{os.fspath(path)}: there is no group of document {document!r} of query "
                f"{query!r}; give one for each document that is retrieved or judged."
            )
        names_of_documents.append(names[key])
    return names_of_documents


def names_by_key(path: PathName) -> tuple[bool, Mapping[tuple[str, ...], str]]:
    """Return whether lines name queries; and the group by document, or by query and document."""
    names: dict[tuple[str, ...], str] = {}
    columns = 0
    for line in lines_of(path):
        if columns == 0:
            columns = 3 if len(line.words) == 3 else 2
        demand_columns(line, columns, "qid doc label" if columns == 3 else "doc label")
        key = tuple(line.words[:-1])
        if key in names:
            raise ValueError(
                f"{line.place}: the group of {' '.join(key)!r} was there before; give it once."
            )
        names[key] = line.words[-1]
    return columns == 3, names


def demand_columns(line: Line, columns: int, form: str) -> None:
    """Refuse a line with more or fewer words."""
    if len(line.words) != columns:
        raise ValueError(
            f"{line.place}: {len(line.words)} columns; a line is '{form}', {columns} columns."
        )


def lines_of(path: PathName) -> Iterator[Line]:
    """Yield the lines of a file that hold anything."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            place = f"{os.fspath(path)}, line {number}"
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{place}: not UTF-8 text ({error.reason}).") from error
            words = text.split()
            if words:
                yield Line(place, words)
