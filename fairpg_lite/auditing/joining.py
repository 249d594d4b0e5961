"""What was shown beside what it is judged by: one record for each query, and what was left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from fairpg_lite.auditing.judgements import Grades, Groups
from fairpg_lite.auditing.reading import Log
from fairpg_lite.auditing.shown_lists import ShownLists
from fairpg_lite.data.dataset import RankingDataset
from fairpg_lite.policy import Policy


@dataclass(frozen=True)
class AuditedQuery:
    """A query, its documents, and the policy that ranks them."""

    name: str
    relevance: Tensor
    """``(n,)``, in double precision, 0 for a document without a grade."""
    groups: Tensor
    """``(n,)``, the number of each document's group; 0 for one that has none."""
    has_group: Tensor
    """``(n,)``, whether a document has a group."""
    policy: Policy

    @property
    def lists(self) -> int:
        """How many lists were shown; 0 if the policy itself is known."""
        return len(self.policy.position_of) if isinstance(self.policy, ShownLists) else 0


@dataclass
class Counts:
    """What the data have, and what they lack: names, so that they can be looked up."""

    queries: int = 0
    """Queries that were audited."""
    documents: int = 0
    """Their documents, a document of two queries counted twice."""
    only_shown: list[str] = field(default_factory=list)
    """Queries that were shown and not judged; left out."""
    only_judged: list[str] = field(default_factory=list)
    """Queries that were judged and not shown; left out."""
    without_relevant: list[str] = field(default_factory=list)
    """Audited queries in which no document has a grade above 0."""
    unjudged: list[str] = field(default_factory=list)
    """Shown documents without a grade, as "query document"; they count as grade 0."""
    not_shown: int = 0
    """Judged documents that no list shows; their exposure is 0."""
    relevant_not_shown: int = 0
    """Those of them with a grade above 0."""
    negative_grades: int = 0
    """Grades below 0; they count 0."""
    without_group: list[str] = field(default_factory=list)
    """Documents without a group, as "query document"; no group measure looks at them."""
    empty_draws: list[str] = field(default_factory=list)
    """Draws that show nothing for a query; they are left out."""
    with_gaps: list[str] = field(default_factory=list)
    """Lists whose ranks leave some out; what follows moved up."""
    contradicting: list[str] = field(default_factory=list)
    """Lists whose scores rise from one rank to the next; judged by rank."""


@dataclass(frozen=True)
class AuditedData:
    """The queries of an audit."""

    queries: list[AuditedQuery]
    group_names: list[str]
    counts: Counts
    sources: list[str]


def join_lists(log: Log, grades: Grades, groups: Groups) -> AuditedData:
    """The queries that were shown and judged.

    Args:
        log: What was shown.
        grades: Grades by query and document.
        groups: The group of each document.

    Returns:
        A record for each query, in the order of the log.
    """
    names = [name for name in log.lists if name in grades]
    if not names:
        raise ValueError(
            "audit: no query that was shown has judgements; give the judgements of these queries "
            f"(shown, for example, {_first(log.lists)}; judged, for example, {_first(grades)})."
        )
    counts = Counts(queries=len(names))
    counts.only_shown = [name for name in log.lists if name not in grades]
    counts.only_judged = [name for name in grades if name not in log.lists]
    counts.empty_draws = log.empty
    counts.with_gaps = log.with_gaps
    counts.contradicting = log.contradicting
    group_names = sorted(set(groups.names.values()))
    number_of_group = {name: number for number, name in enumerate(group_names)}
    queries = []
    for name in names:
        documents = _documents(log.lists[name], grades[name])
        _count(counts, name, documents, log.lists[name], grades[name])
        labels = [groups.of(name, document) for document in documents]
        for document, label in zip(documents, labels, strict=True):
            if label is None:
                counts.without_group.append(f"{name} {document}")
        number_of_document = {document: number for number, document in enumerate(documents)}
        lists = [[number_of_document[document] for document in shown] for shown in log.lists[name]]
        relevance = [max(0.0, grades[name].get(document, 0.0)) for document in documents]
        query = AuditedQuery(
            name=name,
            relevance=torch.tensor(relevance, dtype=torch.float64),
            groups=torch.tensor([number_of_group.get(label or "", 0) for label in labels]),
            has_group=torch.tensor([label is not None for label in labels]),
            policy=ShownLists(lists, len(documents)),
        )
        queries.append(query)
        if not bool((query.relevance > 0).any()):
            counts.without_relevant.append(name)
    if len(counts.without_group) == counts.documents:
        raise ValueError(
            "audit: none of the documents has a group; name them in groups as the run does "
            f"(there, for example, {_first(groups.names)}; here {counts.without_group[0]!r})."
        )
    return AuditedData(queries, group_names, counts, log.sources)


def join_policies(policies: Sequence[Policy], dataset: RankingDataset) -> AuditedData:
    """The queries of a dataset with their policies.

    Args:
        policies: One for each query, in their order.
        dataset: The queries, with groups.

    Returns:
        A record for each query.
    """
    if len(policies) != len(dataset):
        raise ValueError(
            f"audit_policies: {len(policies)} policies for {len(dataset)} queries; give one each."
        )
    if dataset.groups is None:
        raise ValueError(
            "audit_policies: the dataset has no groups; give it some, dataset.replace(groups=...)."
        )
    known_names = dataset.info.get("group_names")
    count = int(dataset.groups.max()) + 1
    group_names = [str(name) for name in known_names or range(count)]
    counts = Counts(queries=len(dataset), documents=dataset.n_documents)
    queries = []
    for query_id, query, policy in zip(dataset.query_ids.tolist(), dataset, policies, strict=True):
        assert query.groups is not None
        if policy.mode.shape != query.relevance.shape:
            raise ValueError(
                f"audit_policies: the policy of query {query_id} ranks "
                f"{policy.mode.shape[-1]} documents, the query has {len(query.relevance)}."
            )
        if not bool((query.relevance > 0).any()):
            counts.without_relevant.append(str(query_id))
        queries.append(
            AuditedQuery(
                name=str(query_id),
                relevance=query.relevance.double(),
                groups=query.groups,
                has_group=torch.ones_like(query.groups, dtype=torch.bool),
                policy=policy,
            )
        )
    return AuditedData(queries, group_names, counts, ["policies"])


def _documents(lists: list[list[str]], grades: Mapping[str, float]) -> list[str]:
    """The documents that a list shows or that have a grade, each once."""
    documents: dict[str, None] = {}
    for shown in lists:
        documents.update(dict.fromkeys(shown))
    documents.update(dict.fromkeys(grades))
    return list(documents)


def _count(
    counts: Counts,
    query: str,
    documents: list[str],
    lists: list[list[str]],
    grades: Mapping[str, float],
) -> None:
    """Add the documents of a query to the counts."""
    shown = {document for documents_shown in lists for document in documents_shown}
    counts.documents += len(documents)
    for document in documents:
        if document not in grades:
            counts.unjudged.append(f"{query} {document}")
            continue
        grade = grades[document]
        counts.negative_grades += grade < 0
        if document not in shown:
            counts.not_shown += 1
            counts.relevant_not_shown += grade > 0


def _first(names: Iterable[str | tuple[str, ...]]) -> str:
    """The first of some names, in quotation marks."""
    for name in names:
        return repr(name if isinstance(name, str) else " ".join(name))
    return "nothing"
