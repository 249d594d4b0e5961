"""Reading what was shown: TREC runs, JSON lines, or a table of pandas.

A list is known by its query and its draw. Several runs are draws of one policy, and so are several
lines of JSON for one query, and several values in the column "draw" of a table.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from fairpg_lite.data.trec import RUN_LINE, PathName, demand_columns, lines_of, number_in

ORDERS = ("rank", "score")


@dataclass
class Log:
    """The lists that were shown, and what was odd about them."""

    lists: dict[str, list[list[str]]] = field(default_factory=dict)
    """The lists of each query, each with its documents, best first."""
    empty: list[str] = field(default_factory=list)
    """Draws that show nothing, as "query (draw)"; they are no lists."""
    with_gaps: list[str] = field(default_factory=list)
    """Lists whose ranks leave some out."""
    contradicting: list[str] = field(default_factory=list)
    """Lists whose scores rise from one rank to the next."""
    sources: list[str] = field(default_factory=list)
    """The names of the files, or what the lists came from."""


class Entry(NamedTuple):
    """A document in a list."""

    place: str
    """Where it was read, for messages."""
    document: str
    rank: int
    """From 1; 0 if the order is that of the scores."""
    score: float
    """NaN if there is none."""


#: A list by query and draw.
Drawn = dict[tuple[str, str], list[Entry]]


def read_log(runs: Any, order: str = "rank") -> Log:
    """The lists of files or of a table.

    Args:
        runs: A file name, several of them, or a DataFrame with the columns query, document and
            rank, and draw and score if there are any.
        order: "rank", or "score" to sort by score and not to look at ranks.

    Returns:
        The lists, and what was odd.
    """
    if order not in ORDERS:
        raise ValueError(f"audit: order is {order!r}; choose 'rank' or 'score'.")
    log = Log()
    drawn: Drawn = {}
    if hasattr(runs, "columns"):
        log.sources.append("a table")
        drawn = _drawn_of_table(runs, order)
    else:
        paths = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
        if not paths:
            raise ValueError("audit: there is no run; give one at least.")
        for number, path in enumerate(paths):
            log.sources.append(os.fspath(path))
            if _is_json(path):
                drawn |= _drawn_of_json(path, number, log)
            else:
                drawn |= _drawn_of_run(path, str(number), order)
        log.empty += _missing_draws(drawn, paths)
    for (query, draw), entries in drawn.items():
        name = f"{query} (draw {draw})"
        log.lists.setdefault(query, []).append(_ordered(name, entries, order, log))
    return log


def _missing_draws(drawn: Drawn, paths: Sequence[PathName]) -> list[str]:
    """The queries that a run lacks and another run has, with the file that lacks them."""
    files = {str(number): path for number, path in enumerate(paths) if not _is_json(path)}
    queries = dict.fromkeys(query for query, draw in drawn if draw in files)
    missing = []
    for query in queries:
        for draw, path in files.items():
            if (query, draw) not in drawn:
                missing.append(f"{query} ({Path(path).name})")
    return missing


# --- one reader for each form ---------------------------------------------------------------------


def _drawn_of_run(path: PathName, draw: str, order: str) -> Drawn:
    """The lists of a TREC run."""
    drawn: Drawn = {}
    for line in lines_of(path):
        demand_columns(line, 6, RUN_LINE)
        query = line.words[0]
        document = line.words[2]
        rank = 0 if order == "score" else _rank(line.place, line.words[3])
        score = number_in(line, 4, "score")
        drawn.setdefault((query, draw), []).append(Entry(line.place, document, rank, score))
    if not drawn:
        raise ValueError(f"{os.fspath(path)}: the file is empty; give lines '{RUN_LINE}'.")
    return drawn


def _is_json(path: PathName) -> bool:
    """Whether the first line of a file that holds anything begins an object of JSON."""
    for line in lines_of(path):
        return line.words[0].startswith("{")
    return False


def _drawn_of_json(path: PathName, number: int, log: Log) -> Drawn:
    """The lists of JSON lines, as `fairpg-lite rank` writes them."""
    drawn: Drawn = {}
    for place, record in _json_objects(path):
        query = str(record["query"])
        draw = record.get("draw", record.get("sample", 0))
        key = (query, f"{number}.{draw}")
        if key in drawn:
            raise ValueError(
                f"{place}: draw {draw} of query {query!r} was there before; number draws anew."
            )
        ranking = record["ranking"]
        if len(ranking) == 0:
            log.empty.append(f"{query} (draw {draw})")
            continue
        entries = []
        for rank, document in enumerate(ranking, 1):
            entries.append(Entry(place, str(document), rank, math.nan))
        drawn[key] = entries
    if not drawn:
        raise ValueError(f"{os.fspath(path)}: no line shows a document; give lists that do.")
    return drawn


def _json_objects(path: PathName) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place and the object of each line, with a query and a ranking."""
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            place = f"{os.fspath(path)}, line {number}"
            try:
                record = json.loads(text)
            except json.JSONDecodeError as error:
                raise ValueError(f"{place}: no JSON ({error.msg}).") from error
            is_list = isinstance(record, dict) and isinstance(record.get("ranking"), list)
            if not is_list or "query" not in record:
                raise ValueError(
                    f'{place}: give {{"query": …, "sample": …, "ranking": […]}}, as '
                    "fairpg-lite rank writes it."
                )
            yield place, record


def _drawn_of_table(frame: Any, order: str) -> Drawn:
    """The lists of a DataFrame."""
    wanted = ["query", "document", order]
    drawn: Drawn = {}
    for place, row in table_rows(frame, wanted, "runs"):
        key = (str(row["query"]), str(row.get("draw", 0)))
        rank = 0 if order == "score" else _rank(place, row["rank"])
        score = float(row.get("score", math.nan))
        if order == "score" and not math.isfinite(score):
            raise ValueError(f"{place}: the score is {score}; give a finite number.")
        drawn.setdefault(key, []).append(Entry(place, str(row["document"]), rank, score))
    if not drawn:
        raise ValueError("audit: runs has no row; give a row for each document of a list.")
    return drawn


def table_rows(
    frame: Any, columns: Sequence[str], name: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The place and the values of each row of a DataFrame that must have some columns."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(
            f"audit: {name} has no column {', '.join(missing)}, but "
            f"{', '.join(map(str, frame.columns))}; name the columns {', '.join(columns)}."
        )
    # A missing value would otherwise become the text "nan".
    for column in columns:
        if bool(frame[column].isna().any()):
            first = int(frame[column].isna().to_numpy().argmax())
            raise ValueError(f"audit: {name}, row {first}: there is no {column}; give one.")
    names = [str(column) for column in frame.columns]
    for number, values in enumerate(frame.itertuples(index=False, name=None)):
        yield f"{name}, row {number}", dict(zip(names, values, strict=True))


# --- ranks, and the order of a list ---------------------------------------------------------------


def _rank(place: str, value: Any) -> int:
    """A rank, a whole number from 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not number.is_integer():
        raise ValueError(f"{place}: the rank {value!r} is not a whole number.")
    if number < 1:
        raise ValueError(
            f"{place}: the rank is {int(number)}, and ranks begin at 1; number them from 1, or "
            "choose the order 'score'."
        )
    return int(number)


def _ordered(name: str, entries: list[Entry], order: str, log: Log) -> list[str]:
    """The documents of a list, best first."""
    _refuse_documents_twice(name, entries)
    if order == "score":
        # Ties as trec_eval breaks them, by the name of the document from z to a.
        entries = sorted(entries, key=lambda entry: (entry.score, entry.document), reverse=True)
        return [entry.document for entry in entries]
    entries = sorted(entries, key=lambda entry: entry.rank)
    _refuse_ranks_twice(name, entries)
    if entries[-1].rank != len(entries):
        log.with_gaps.append(name)
    scores = [entry.score for entry in entries]
    if any(later > earlier for earlier, later in pairwise(scores)):
        log.contradicting.append(name)
    return [entry.document for entry in entries]


def _refuse_documents_twice(name: str, entries: list[Entry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.document in seen:
            raise ValueError(
                f"{entry.place}: document {entry.document!r} is in the list of query {name} twice; "
                "name it once."
            )
        seen.add(entry.document)


def _refuse_ranks_twice(name: str, entries: list[Entry]) -> None:
    """Refuse two documents of one rank in entries that are sorted by rank."""
    for first, second in pairwise(entries):
        if first.rank == second.rank:
            raise ValueError(
                f"{second.place}: {first.document!r} and {second.document!r} of query {name} both "
                f"have rank {first.rank}; give each its own, or choose the order 'score'."
            )
