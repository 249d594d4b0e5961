"""From files to an audit."""

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fairpg_lite import _check
from fairpg_lite._extras import progress_bar
from fairpg_lite._version import __version__
from fairpg_lite.auditing.joining import AuditedData, join_lists, join_policies
from fairpg_lite.auditing.judgements import read_grades, read_groups
from fairpg_lite.auditing.measuring import PositionBias, Settings, measure
from fairpg_lite.auditing.reading import read_log
from fairpg_lite.auditing.report import Audit
from fairpg_lite.auditing.summarising import summarise
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.exposure import check_bias
from fairpg_lite.policy import Policy
from fairpg_lite.relevance import GAINS, MERITS, Gain, Merit


def audit(
    runs: Any,
    qrels: Any,
    groups: Any,
    *,
    position_bias: PositionBias = None,
    k: int | None = None,
    merit: str | Merit = "identity",
    gain: str | Gain = "linear",
    order: str = "rank",
    command: str | None = None,
    progress: bool = False,
) -> Audit:
    """Audit the lists that a ranker has shown: who gets attention, and who merits it.

    No model is needed. Several runs, several draws in a file or a table, are draws of one policy;
    then each disparity has two ends that hold the true one between them on average
    (`fairpg_lite.auditing.bracket`). One list for each query is taken for what everybody is shown.

    A list is judged as shown: below its end nobody looks. A judged document that is in no list has
    exposure 0 and counts in the ideal ranking and in merit. A shown document without a grade counts
    as grade 0, one without a group takes part in no comparison of groups; both are counted.
    Chapter 16.

    Args:
        runs: A file name or several: TREC runs ``qid Q0 doc rank score tag``, or JSON lines as
            `fairpg-lite rank` writes them. Or a DataFrame with the columns query, document, rank,
            and draw and score if there are any.
        qrels: A file of lines ``qid 0 doc grade``; a DataFrame with the columns query, document and
            grade; or grades by query and document, ``{"q1": {"apple": 1}}``. Grades below 0 count
            0.
        groups: A file of lines ``doc label`` or ``qid doc label``; a ``.csv`` file or a DataFrame
            with the columns document and group, and query if a group is another in another query;
            or names by document, ``{"apple": "fruit"}``.
        position_bias: Attention to each position, a vector; below its end nobody looks. Or a
            function that makes the vector for n positions. None is 1/log2(1+j).
        k: Nobody looks below position k; None is no such limit.
        merit: Of a grade, by name or a function.
        gain: Of a grade in NDCG; "linear" is trec_eval's.
        order: Lists are in the order of their ranks, "rank"; or of their scores, "score", with ties
            as trec_eval breaks them.
        command: What the report says it was made by; None says nothing.
        progress: Whether to show a bar on stderr.

    Returns:
        What was found; ``audit(...).save("report")`` writes the page and its numbers.

    >>> import pandas
    >>> run = pandas.DataFrame({"query": "jobs", "document": ["ann", "bob"], "rank": [2, 1]})
    >>> found = audit(run, {"jobs": {"ann": 1, "bob": 1}}, {"ann": "women", "bob": "men"})
    >>> [f"{group.name} {group.to_merit.value:+.0%}" for group in found.groups]
    ['men +23%', 'women -23%']
    """
    settings = _settings(position_bias, k, merit, gain)
    log = read_log(runs, order)
    data = join_lists(log, read_grades(qrels), read_groups(groups))
    origin = _origin(command, [*log.sources, *_paths(qrels), *_paths(groups)])
    return _audited(data, settings, origin, progress)


def audit_policies(
    policies: Sequence[Policy],
    dataset: RankingDataset,
    *,
    position_bias: PositionBias = None,
    k: int | None = None,
    merit: str | Merit = "identity",
    gain: str | Gain = "linear",
    command: str | None = None,
    progress: bool = False,
) -> Audit:
    """Audit policies that are known: exposure is exact, so nothing has two ends.

    Args:
        policies: One for each query, in their order.
        dataset: The queries, with groups; ``info["group_names"]`` are their names.
        position_bias: As in `audit`.
        k: As in `audit`.
        merit: As in `audit`.
        gain: As in `audit`.
        command: As in `audit`.
        progress: As in `audit`.

    Returns:
        What was found.

    >>> from fairpg_lite import PlackettLuce, synthetic
    >>> data = synthetic(n_queries=20)
    >>> found = audit_policies([PlackettLuce(query.relevance) for query in data], data)
    >>> f"{found.measures['d_group'].value:.4f}"
    '0.0005'
    """
    settings = _settings(position_bias, k, merit, gain)
    return _audited(join_policies(policies, dataset), settings, _origin(command, []), progress)


def _settings(
    position_bias: PositionBias, k: int | None, merit: str | Merit, gain: str | Gain
) -> Settings:
    """The choices of an audit, looked at before anything is read."""
    if k is not None and not (_check.is_whole(k) and k >= 1):
        raise ValueError(f"audit: k is {k!r}; give a whole number from 1, or None.")
    if isinstance(position_bias, torch.Tensor):
        check_bias("audit", position_bias, 1)
        if not bool((position_bias > 0).any()):
            raise ValueError("audit: position_bias is 0 at every position; somebody must look.")
    if isinstance(merit, str) and merit not in MERITS:
        raise ValueError(f"audit: merit is {merit!r}; choose one of {', '.join(MERITS)}.")
    if isinstance(gain, str) and gain not in GAINS:
        raise ValueError(f"audit: gain is {gain!r}; choose one of {', '.join(GAINS)}.")
    return Settings(position_bias, k, merit, gain)


def _audited(
    data: AuditedData, settings: Settings, origin: dict[str, Any], progress: bool
) -> Audit:
    with progress_bar("audit", len(data.queries), "query", progress) as bar:
        measured = measure(data, settings, bar.update)
    return summarise(data, measured, settings, origin)


def _paths(source: Any) -> list[str]:
    """The name of a file; none of anything else."""
    return [os.fspath(source)] if isinstance(source, str | os.PathLike) else []


def _origin(command: str | None, sources: list[str]) -> dict[str, Any]:
    """How the report is made: command, versions, and a checksum of each file."""
    checksums = {}
    for source in sources:
        if Path(source).is_file():
            checksums[source] = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    return {
        "command": command,
        "fairpg_lite": __version__,
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "sha256": checksums,
    }
