"""What a scorer sees of a file's columns: groups read off, features scaled.

It is learned once, on the training set, and kept with the model, so that a test file is treated
alike.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from fairpg_lite.data import RankingDataset

# More distinct values than this are measurements, not groups: they need a threshold.
MAX_GROUPS = 50


@dataclass(frozen=True)
class Preparation:
    """How to prepare a dataset for a scorer; `learn` makes one, calling it applies it.

    Groups come first, from the raw features; then the features may be scaled. Chapter 10.

    >>> raw = RankingDataset(torch.tensor([[0.0, 3.0], [1.0, 5.0]]), torch.ones(2), [0, 2])
    >>> Preparation.learn(raw, group_feature=2)(raw).groups
    tensor([0, 1])
    """

    n_features: int
    """Columns of the raw features."""
    normalize: str = "none"
    """Either "none" or "minmax", to [0, 1] within each query."""
    group_feature: int | None = None
    """Id (from 1) of the feature that holds the groups; None for the dataset's own, if any."""
    group_threshold: float | None = None
    """Group 1 is above it, group 0 is the rest; None for one group per distinct value."""
    group_values: tuple[float, ...] = ()
    """Without a threshold, the values of groups 0, 1, … in the training set, rising."""
    groups_given: bool = False
    """Whether the training set came with groups of its own, a side file's, say."""

    def __post_init__(self) -> None:
        feature, n = self.group_feature, self.n_features
        if self.normalize not in ("none", "minmax"):
            raise ValueError(f"Preparation: normalize is {self.normalize!r}; 'minmax' or 'none'.")
        if feature is None and self.group_threshold is not None:
            raise ValueError("Preparation: a threshold needs group_feature.")
        if feature is not None and not 1 <= feature <= n:
            raise ValueError(f"Preparation: the group feature is {feature}, there are 1 to {n}.")

    @classmethod
    def learn(cls, train: RankingDataset, **choices: Any) -> Self:
        """The preparation that ``train`` asks for; ``choices`` are fields such as ``normalize``."""
        plan = cls(train.n_features, **choices, groups_given=train.groups is not None)
        if plan.group_feature is None or plan.group_threshold is not None:
            return plan
        values = train.features[:, plan.group_feature - 1].unique().tolist()
        if len(values) > MAX_GROUPS:
            found = f"feature {plan.group_feature} takes {len(values):,} values, not {MAX_GROUPS}"
            raise ValueError(f"Preparation: {found} at most, as groups do; give --group-threshold.")
        return replace(plan, group_values=tuple(values))

    def __call__(self, dataset: RankingDataset) -> RankingDataset:
        """``dataset`` as the scorer is to see it; groups it already has are kept."""
        name, groups = dataset.info.get("name", "the dataset"), dataset.groups
        if dataset.n_features != self.n_features:
            raise ValueError(
                f"{name} has {dataset.n_features} features, the model was trained on "
                f"{self.n_features}; if its last features are all zero, read it with "
                f"n_features={self.n_features} (--n-features {self.n_features})."
            )
        if groups is None and self.group_feature is not None:
            groups = self._groups(dataset.features[:, self.group_feature - 1].contiguous(), name)
        prepared = dataset.replace(groups=groups)
        return prepared.normalize() if self.normalize == "minmax" else prepared

    def _groups(self, values: Tensor, name: str) -> Tensor:
        if self.group_threshold is not None:
            # In the features' own type: float32's 0.1 is a little above float64's.
            return (values > torch.tensor(self.group_threshold, dtype=values.dtype)).long()
        known = torch.tensor(self.group_values, dtype=values.dtype)
        labels = torch.searchsorted(known, values).clamp(max=len(known) - 1)
        strange = values[known[labels] != values]
        if len(strange):
            raise ValueError(
                f"{name}: feature {self.group_feature} is {strange[0].item():g} somewhere; the "
                f"groups of the training set were {', '.join(map('{:g}'.format, known.tolist()))}."
            )
        return labels
