"""The lists that were shown for a query, as a policy."""

from collections.abc import Sequence

import torch
from torch import Tensor

from fairpg_lite.exposure import bias_like


class ShownLists:
    """The policy that shows each of some lists equally often, and nothing below their ends.

    A list may stop early. A document that is in none of them has exposure 0, and still counts in
    the ideal ranking and in merit, because it is one of the n documents.

    Args:
        lists: The documents of each list, best first, as numbers below ``n``.
        n: The number of documents of the query, shown or not.

    >>> shown = ShownLists([[2, 0], [2]], n=4)
    >>> shown.exposure(torch.tensor([1.0, 0.5, 0.25, 0.125]))
    tensor([0.2500, 0.0000, 1.0000, 0.0000])
    """

    def __init__(self, lists: Sequence[Sequence[int]], n: int):
        if len(lists) == 0:
            raise ValueError("ShownLists: there is no list; give one at least.")
        position_of = torch.zeros(len(lists), n, dtype=torch.long)
        for number, documents in enumerate(lists):
            for position, document in enumerate(documents, 1):
                _check_document(number, document, n)
                if position_of[number, document] > 0:
                    raise ValueError(
                        f"ShownLists: list {number} has document {document} twice; name it once."
                    )
                position_of[number, document] = position
        #: ``(S, n)``, the position of each document in each list, from 1; 0 is not shown.
        self.position_of = position_of
        self.mask: Tensor | None = None

    def exposure(self, position_bias: Tensor | None = None) -> Tensor:
        """The position bias ``(n,)`` that each document got on average; None is 1/log2(1+j)."""
        return self.exposure_by_list(position_bias).mean(0)

    def exposure_by_list(self, position_bias: Tensor | None = None) -> Tensor:
        """The position bias ``(S, n)`` that each list gave to each document.

        Args:
            position_bias: ``(n,)`` or longer; None is 1/log2(1+j) in double precision.

        Returns:
            ``(S, n)``, 0 for a document that is not in the list.
        """
        dtype = torch.float64 if position_bias is None else position_bias.dtype
        like = torch.empty(self.position_of.shape[-1], dtype=dtype)
        bias = bias_like("exposure", position_bias, like)
        unseen = bias.new_zeros(1)
        return torch.cat([unseen, bias])[self.position_of]

    def position_probs(self) -> Tensor:
        """How often each document stood at each place ``(n, n)``; a row may sum to less than 1."""
        n = self.position_of.shape[-1]
        counts = torch.zeros(n, n + 1, dtype=torch.float64)
        ones = torch.ones_like(self.position_of.T, dtype=torch.float64)
        counts.scatter_add_(-1, self.position_of.T, ones)
        return counts[:, 1:] / len(self.position_of)

    def sample(
        self, sample_shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Rankings ``(*sample_shape, n)`` that begin with one of the lists.

        A ranking of a `Policy` names all documents, so those that were not shown follow. A measure
        of whole rankings, such as AP, would count them; `audit` does not.
        """
        chosen = torch.randint(len(self.position_of), sample_shape, generator=generator)
        return self._completed()[chosen]

    @property
    def mode(self) -> Tensor:
        """The list ``(n,)`` that was shown most often, followed by what it does not show."""
        rankings, counts = torch.unique(self._completed(), dim=0, return_counts=True)
        most_often: Tensor = rankings[counts.argmax()]
        return most_often

    def _completed(self) -> Tensor:
        """The lists ``(S, n)``, each followed by the documents that it does not show."""
        n = self.position_of.shape[-1]
        behind = torch.where(self.position_of == 0, n + 1, self.position_of)
        return behind.argsort(dim=-1, stable=True)


def _check_document(number: int, document: int, n: int) -> None:
    """Refuse a document that is none of the n."""
    if not 0 <= document < n:
        raise ValueError(
            f"ShownLists: list {number} has document {document}, and there are {n}; "
            f"number them from 0 to {n - 1}."
        )
