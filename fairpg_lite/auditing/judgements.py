"""Reading what the lists are judged by: grades of documents, and their groups."""

import csv
import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from fairpg_lite.auditing.reading import table_rows
from fairpg_lite.data.trec import QRELS_LINE, names_by_key, values_by_query

Grades = Mapping[str, Mapping[str, float]]


class Groups(NamedTuple):
    """The name of the group of each document."""

    by_query: bool
    """Whether a document may belong to another group in another query."""
    names: Mapping[tuple[str, ...], str]
    """By (document,) or by (query, document)."""

    def of(self, query: str, document: str) -> str | None:
        """The group of a document, or None if it has none."""
        key = (query, document) if self.by_query else (document,)
        return self.names.get(key)


def read_grades(qrels: Any) -> Grades:
    """The grades by query and document.

    Args:
        qrels: A file of lines ``qid 0 doc grade``; a DataFrame with the columns query, document and
            grade; or grades by query and document.

    Returns:
        The grades, as they are given.
    """
    if isinstance(qrels, Mapping):
        return {
            str(query): {str(document): float(grade) for document, grade in grades.items()}
            for query, grades in qrels.items()
        }
    if not hasattr(qrels, "columns"):
        return values_by_query(qrels, columns=4, column=3, meaning="grade", form=QRELS_LINE)
    grades_by_query: dict[str, dict[str, float]] = {}
    for place, row in table_rows(qrels, ["query", "document", "grade"], "qrels"):
        grades = grades_by_query.setdefault(str(row["query"]), {})
        document = str(row["document"])
        if document in grades:
            raise ValueError(
                f"{place}: document {document!r} of query {row['query']!r} was there before; name "
                "each document of a query once."
            )
        grade = float(row["grade"])
        if not math.isfinite(grade):
            raise ValueError(f"{place}: the grade {grade} is not a finite number.")
        grades[document] = grade
    return grades_by_query


def read_groups(groups: Any) -> Groups:
    """The groups by document, or by query and document.

    Args:
        groups: A file of lines ``doc label`` or ``qid doc label``; a file ``*.csv`` or a DataFrame
            with the columns document and group, and query if groups differ between queries; or
            names of groups by document, or by (query, document).

    Returns:
        The groups.
    """
    if isinstance(groups, Mapping):
        keys = list(groups)
        by_query = bool(keys) and isinstance(keys[0], tuple)
        if by_query:
            names: dict[tuple[str, ...], str] = {}
            for query, document in keys:
                names[str(query), str(document)] = str(groups[query, document])
            return Groups(True, names)
        return Groups(False, {(str(document),): str(name) for document, name in groups.items()})
    if hasattr(groups, "columns"):
        has_query = "query" in groups.columns
        columns = ["query", "document", "group"] if has_query else ["document", "group"]
        rows = [(place, dict(row)) for place, row in table_rows(groups, columns, "groups")]
        return _groups_of_rows(rows, has_query)
    if os.fspath(groups).lower().endswith(".csv"):
        return _groups_of_csv(os.fspath(groups))
    return _not_empty(Groups(*names_by_key(groups)), os.fspath(groups))


def _groups_of_csv(path: str) -> Groups:
    """The groups of a table of commas with a line of names at its top."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames or []
        for column in ("document", "group"):
            if column not in columns:
                raise ValueError(
                    f"{path}: there is no column {column!r} but {', '.join(columns) or 'none'}; "
                    "begin the file with document,group or query,document,group."
                )
        rows = []
        for row in reader:
            place = f"{path}, line {reader.line_num}"
            if any(value is None for value in row.values()) or None in row:
                raise ValueError(f"{place}: {len(columns)} columns are named; give as many values.")
            rows.append((place, dict(row)))
    return _not_empty(_groups_of_rows(rows, "query" in columns), path)


def _groups_of_rows(rows: list[tuple[str, dict[str, Any]]], has_query: bool) -> Groups:
    """The groups of rows with the columns document and group, and query if there is one."""
    names: dict[tuple[str, ...], str] = {}
    for place, row in rows:
        document = str(row["document"])
        key = (str(row["query"]), document) if has_query else (document,)
        if key in names:
            raise ValueError(
                f"{place}: the group of {' '.join(key)!r} was there before; give it once."
            )
        names[key] = str(row["group"])
    return Groups(has_query, names)


def _not_empty(groups: Groups, path: str) -> Groups:
    if not groups.names:
        raise ValueError(f"{path}: the file is empty; give the group of each document.")
    return groups
