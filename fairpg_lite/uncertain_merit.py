r"""Fairness when merit is uncertain (Singh, Kempe and Joachims 2021).

Instead of one relevance a document has draws from a posterior. A policy is phi-fair if every
document stands among the first k at least phi times as often as it deserves to, for every k:

.. math:: P_\pi[\mathrm{rank}(i) \le k] \ge \phi \, P[i \text{ is among the } k \text{ best}]

A function of the probabilities of positions, which says more than exposure does.
"""

import torch
from torch import Tensor

from fairpg_lite import _check
from fairpg_lite._memory import pieces


def phi_fairness(position_probs: Tensor, posterior: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""The largest phi for which a policy is phi-fair, from 0 to 1; higher is fairer.

    .. math:: \min_{i,k} P_\pi[\mathrm{rank}(i) \le k] / P[i \text{ is among the } k \text{ best}]

    over the documents i and the k for which the posterior has a chance above zero. Drawing one
    relevance from the posterior for each query, and ranking by it, has phi = 1.

    Args:
        position_probs: ``(…, n, n)`` [document, position], as ``policy.position_probs()`` returns.
        posterior: ``(D, …, n)``, D draws of all documents' relevance; documents that tie in a draw
            share the places that they fill together.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(…)``, with a gradient in the probabilities; to train a policy, lower ``1 - phi``.

    >>> always_first = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> draws = torch.tensor([[2.0, 1.0], [2.0, 3.0], [1.0, 0.0], [1.0, 0.0]])
    >>> phi_fairness(always_first, draws)  # the second is never first, and best in one draw of four
    tensor(0.)
    >>> phi_fairness(torch.tensor([[0.75, 0.25], [0.25, 0.75]]), draws)
    tensor(1.)
    """
    _check.floating("phi_fairness", "position_probs", position_probs)
    if position_probs.ndim < 2 or position_probs.shape[-1] != position_probs.shape[-2]:
        raise ValueError(
            f"phi_fairness: position_probs has shape {tuple(position_probs.shape)}; "
            "give a row for each document and as many columns, one for each position."
        )
    documents = position_probs.shape[:-1]
    if not isinstance(posterior, Tensor):
        raise TypeError(
            f"phi_fairness: posterior is {_check.kind_of(posterior)}; give a tensor of draws, "
            "torch.as_tensor(posterior)."
        )
    if posterior.shape[1:] != documents:
        raise ValueError(
            f"phi_fairness: posterior has shape {tuple(posterior.shape)} for documents "
            f"{tuple(documents)}; give draws of all of them, (D, *documents)."
        )
    deserved = top_k_probs(posterior, mask).to(position_probs)
    reached = position_probs.cumsum(-1)
    is_bound = deserved > 0
    ratio = torch.where(is_bound, reached / torch.where(is_bound, deserved, 1.0), torch.inf)
    return ratio.flatten(-2).amin(-1).clamp(max=1.0)


def top_k_probs(posterior: Tensor, mask: Tensor | None = None) -> Tensor:
    """The chance of each document to be among the k best, for every k.

    Args:
        posterior: ``(D, …, n)``, D draws of relevance. Of documents that tie in a draw each is
            counted with the chance that it has if the tie is broken at random.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(…, n, n)`` [document, k - 1], zero for padding.

    >>> top_k_probs(torch.tensor([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0]]))
    tensor([[0.7500, 1.0000, 1.0000],
            [0.2500, 1.0000, 1.0000],
            [0.0000, 0.0000, 1.0000]])
    """
    _check.floating("top_k_probs", "posterior", posterior)
    if posterior.ndim < 2 or len(posterior) == 0:
        raise ValueError(
            f"top_k_probs: posterior has shape {tuple(posterior.shape)}; "
            "give draws first and documents last, (D, ..., n)."
        )
    if mask is not None:
        _check.same_shape("top_k_probs", "mask", mask, "a draw", posterior.shape[1:])
        _check.finite("top_k_probs", "posterior", posterior, mask.expand_as(posterior))
    else:
        _check.finite("top_k_probs", "posterior", posterior)
    n = posterior.shape[-1]
    loss = -posterior if mask is None else (-posterior).masked_fill(~mask, torch.inf)
    rising = loss.sort(-1).values
    n_better = torch.searchsorted(rising, loss.contiguous())
    n_tied = torch.searchsorted(rising, loss.contiguous(), right=True) - n_better
    k = torch.arange(1, n + 1, dtype=posterior.dtype, device=posterior.device)
    total = posterior.new_zeros((*posterior.shape[1:], n))
    for draws in pieces(len(posterior), total.numel()):
        left_for_tied = k - n_better[draws].unsqueeze(-1)
        total += (left_for_tied / n_tied[draws].unsqueeze(-1)).clamp(0.0, 1.0).sum(0)
    probs = total / len(posterior)
    return probs if mask is None else torch.where(mask.unsqueeze(-1), probs, 0.0)
