"""What a relevance is worth: a gain to the reader, merit to the document (chapters 2 and 5)."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from fairpg_lite import _check

#: A gain or a merit of your own, a function of relevance, elementwise.
Gain = Callable[[Tensor], Tensor]
Merit = Callable[[Tensor], Tensor]


def exponential_gain(relevance: Tensor) -> Tensor:
    """u = 2**rel - 1, the paper's utility of a document (eq-02-gain; section 2.1).

    >>> exponential_gain(torch.tensor([0.0, 1.0, 2.0]))
    tensor([0., 1., 3.])
    """
    return torch.exp2(relevance) - 1.0


def linear_gain(relevance: Tensor) -> Tensor:
    """u = rel.

    >>> linear_gain(torch.tensor([0.0, 1.0, 2.0]))
    tensor([0., 1., 2.])
    """
    return relevance


def binary_gain(relevance: Tensor) -> Tensor:
    """u = 1 for any relevance above zero, else 0.

    >>> binary_gain(torch.tensor([0.0, 1.0, 2.0]))
    tensor([0., 1., 1.])
    """
    return (relevance > 0).to(relevance.dtype)


#: Gains by name; the paper's experiments use the first.
GAINS: dict[str, Gain] = {
    "exponential": exponential_gain,
    "linear": linear_gain,
    "binary": binary_gain,
}
#: Merits by name; the paper's experiments use the first.
MERITS: dict[str, Merit] = {"identity": linear_gain, "square": torch.square, "sqrt": torch.sqrt}


def gains_of(where: str, relevance: Tensor, gain: str | Gain, mask: Tensor | None) -> Tensor:
    """Gain ``(…, n)`` per document, zero for padding; ``where`` is named in errors."""
    _check.floating(where, "relevance", relevance)
    if mask is not None:
        _check.same_shape(where, "mask", mask, "relevance", relevance.shape)
        relevance = torch.where(mask, relevance, 0.0)
    _check.finite(where, "relevance", relevance)
    gains = _function(where, "gain", gain, GAINS)(relevance)
    # The sum as well: an ideal DCG of infinity would make every NDCG zero.
    if not _check.is_trusted() and not gains.sum(-1).isfinite().all():
        raise ValueError(
            f"{where}: a relevance of {relevance.max():g} is too large: its gain, or the sum over "
            f"documents, is more than {gains.dtype} can hold; give smaller grades or gain='linear'."
        )
    return gains if mask is None else torch.where(mask, gains, 0.0)


#: How the name of a merit begins that is a column of the dataset.
COLUMN = "column:"


def merit_of(
    relevance: Tensor,
    merit: str | Merit = "identity",
    columns: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """Merit of documents, by relevance or as a column says (chapter 5).

    Args:
        relevance: ``(…, n)``.
        merit: One of `MERITS` by name, a function of relevance of your own, or "column:NAME".
        columns: The named columns of the documents, each ``(…, n)``.

    Returns:
        ``(…, n)``.

    >>> merit_of(torch.tensor([0.0, 4.0]), "sqrt")
    tensor([0., 2.])
    >>> merit_of(torch.tensor([0.0, 4.0]), "column:sales", {"sales": torch.tensor([3.0, 5.0])})
    tensor([3., 5.])
    """
    if is_column(merit):
        name = str(merit).removeprefix(COLUMN)
        if name not in (columns or {}):
            raise ValueError(
                f"merit is {merit!r}, and the data have "
                f"{', '.join(map(repr, columns)) if columns else 'no columns'}; give the dataset "
                f"that column, dataset.replace(columns={{{name!r}: ...}})."
            )
        assert columns is not None
        return columns[name].to(relevance.dtype)
    return _function("merit_of", "merit", merit, MERITS)(relevance)


def is_column(merit: str | Merit) -> bool:
    """Whether a merit is one that a column says."""
    return isinstance(merit, str) and merit.startswith(COLUMN)


def _function(where: str, name: str, value: str | Gain, known: Mapping[str, Gain]) -> Gain:
    """A function itself, or the known one of that name."""
    if callable(value):
        return value
    if value not in known:
        raise ValueError(f"{where}: {name} is {value!r}; choose one of {list(known)}.")
    return known[value]
