"""What a search over one setting returns."""

from dataclasses import dataclass, field

from torch import nn


@dataclass(frozen=True)
class Fitted:
    """A trained ``scorer`` with the ``setting`` (learning rate or C) that was chosen for it.

    ``objective`` is the value it was chosen by, ``tried`` the value of every setting tried.
    """

    scorer: nn.Module
    setting: float
    objective: float
    tried: dict[float, float] = field(default_factory=dict)
