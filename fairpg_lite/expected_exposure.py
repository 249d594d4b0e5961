r"""Expected exposure against that of an ideal policy (Diaz et al. 2020).

The ideal policy ranks by relevance and breaks ties at random, so that equals are treated alike.
With v* its exposure the loss is :math:`\sum_i (v_i - v^*_i)^2`, which is disparity
:math:`\sum_i v_i^2` less relevance :math:`2 \sum_i v_i v^*_i` plus a constant. Position bias is
the user model here; the authors use a user who stops at random.
"""

import torch
from torch import Tensor

from fairpg_lite.disparity import checked_merit
from fairpg_lite.exposure import bias_like


def ideal_exposure(
    merit: Tensor, mask: Tensor | None = None, position_bias: Tensor | None = None
) -> Tensor:
    """Exposure under the policy that sorts by merit and breaks ties at random.

    Documents of equal merit share the positions that they fill together.

    Args:
        merit: ``(…, n)``, zero or more.
        mask: ``(…, n)``, True for a real document; padding gets zero. None: all are real.
        position_bias: ``(n,)`` or longer; None is 1/log2(1+j).

    Returns:
        ``(…, n)``.

    >>> ideal_exposure(torch.tensor([1.0, 0.0, 1.0]), position_bias=torch.tensor([1.0, 0.5, 0.2]))
    tensor([0.7500, 0.2000, 0.7500])
    """
    bias = bias_like("ideal_exposure", position_bias, merit)
    loss = -merit if mask is None else (-merit).masked_fill(~mask, torch.inf)
    rising = loss.sort(-1).values
    first = torch.searchsorted(rising, loss)
    behind = torch.searchsorted(rising, loss, right=True)
    up_to = torch.nn.functional.pad(bias.cumsum(-1), (1, 0))
    shared = (up_to[behind] - up_to[first]) / (behind - first)
    return shared if mask is None else torch.where(mask, shared, 0.0)


def expected_exposure_loss(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    position_bias: Tensor | None = None,
) -> Tensor:
    r"""EE-L: the squared distance from the ideal policy's exposure, :math:`\sum_i (v_i - v^*_i)^2`.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more; what the ideal policy sorts by.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        position_bias: ``(n,)``, the one that the exposure was made with; None is 1/log2(1+j).

    Returns:
        ``(…)``.

    >>> v = torch.tensor([1.0, 0.5])
    >>> expected_exposure_loss(v, torch.ones(2), position_bias=torch.tensor([1.0, 0.5]))
    tensor(0.1250)
    """
    merit = checked_merit("expected_exposure_loss", exposure, merit, mask)
    ideal = ideal_exposure(merit, mask, position_bias)
    real_exposure = exposure if mask is None else torch.where(mask, exposure, 0.0)
    return (real_exposure - ideal).square().sum(-1)


def expected_exposure_disparity(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    r"""EE-D: how concentrated exposure is, :math:`\sum_i v_i^2`; least for the uniform policy.

    Args:
        exposure: ``(…, n)``.
        merit: Not looked at; every disparity takes it.
        groups: Not looked at.
        mask: ``(…, n)``, True for a real document; None: all are real.

    Returns:
        ``(…)``.

    >>> expected_exposure_disparity(torch.tensor([1.0, 0.5]), torch.ones(2))
    tensor(1.2500)
    """
    real_exposure = exposure if mask is None else torch.where(mask, exposure, 0.0)
    return real_exposure.square().sum(-1)


def expected_exposure_relevance(
    exposure: Tensor,
    merit: Tensor,
    groups: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    position_bias: Tensor | None = None,
) -> Tensor:
    r"""EE-R: how well exposure goes with the ideal one, :math:`2 \sum_i v_i v^*_i`; more is better.

    Args:
        exposure: ``(…, n)``.
        merit: ``(…, n)``, zero or more; what the ideal policy sorts by.
        groups: Not looked at; every disparity takes it.
        mask: ``(…, n)``, True for a real document; None: all are real.
        position_bias: ``(n,)``, the one that the exposure was made with; None is 1/log2(1+j).

    Returns:
        ``(…)``.

    >>> v = torch.tensor([1.0, 0.5])
    >>> expected_exposure_relevance(v, torch.ones(2), position_bias=torch.tensor([1.0, 0.5]))
    tensor(2.2500)
    """
    merit = checked_merit("expected_exposure_relevance", exposure, merit, mask)
    return 2.0 * (exposure * ideal_exposure(merit, mask, position_bias)).sum(-1)
