r"""Exposure from the exponential race: :math:`\sum_m a_m G_i(z_m)` without the parts of the sum.

What `RankGeneratingFunction` gives for each node, summed over the nodes while the race is run:
exact training spends much of its time here, and the parts of the sum, an array over documents,
nodes and times, need not be written and read again (chapter 8).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairpg_lite.race import (
    Race,
    documents_first,
    lead_of_each,
    real_part,
    run_race,
    time_pieces,
)


class RaceExposure(torch.autograd.Function):
    """``Re sum_m a_m G_i(z_m)``: log_w ``(…, n)``, nodes and coefficients ``(M,)`` to ``(…, n)``.

    The gradient with respect to ``log_w`` is eq-08-backward of chapter 8. A race that fits one
    piece is kept for the way back; longer ones are run again there, so that the memory stays that
    of one piece.
    """

    @staticmethod
    def forward(
        ctx: Any, log_w: Tensor, nodes: Tensor, coefficients: Tensor, log_t: Tensor, weight: Tensor
    ) -> Tensor:
        ctx.save_for_backward(log_w, nodes, coefficients, log_t, weight)
        flat = documents_first(log_w)
        pieces = time_pieces(flat, nodes, log_t)
        total = torch.zeros_like(flat)
        for piece in pieces:
            paid = _pay(run_race(flat, nodes, log_t[piece]), coefficients, weight[piece])
            total += real_part(paid.density).sum(-2)
        ctx.paid = paid if len(pieces) == 1 and ctx.needs_input_grad[0] else None
        # Contiguous, because everything that follows walks documents within queries.
        return total.transpose(0, 1).contiguous().view(log_w.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        log_w, nodes, coefficients, log_t, weight = ctx.saved_tensors
        flat = documents_first(log_w)
        pull = documents_first(upstream).unsqueeze(1)  # (n, 1, B)
        grad = torch.zeros_like(flat)
        for piece in time_pieces(flat, nodes, log_t):
            race, worth, density = ctx.paid or _pay(
                run_race(flat, nodes, log_t[piece]), coefficients, weight[piece]
            )
            own = (race.inverse * (race.arrival * pull).unsqueeze(1)).mul_(worth)
            # Moving log w_k changes k's own arrival density, and its lead over each of the others.
            direct = (1.0 - race.y).mul_(pull) * density
            grad += real_part(direct - lead_of_each(race, own, nodes)).sum(-2)
        return grad.transpose(0, 1).contiguous().view(log_w.shape), None, None, None, None


class _Paid(NamedTuple):
    """A race, what its product is worth at each node and time ``(M, Q, B)``, and the integrand.

    The latter, ``(n, Q, B)``, is the exposure that a document gains per unit of log-time.
    """

    race: Race
    worth: Tensor
    density: Tensor


def _pay(race: Race, coefficients: Tensor, weight: Tensor) -> _Paid:
    worth = race.product * (coefficients[:, None] * weight).unsqueeze(-1)
    return _Paid(race, worth, (race.inverse * worth).sum(1).mul_(race.arrival))
