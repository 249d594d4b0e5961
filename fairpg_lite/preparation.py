"""From the columns of a file to what a scorer sees: groups read off, columns dropped, scaled.

Learned once on the training set and kept with the model, so that a test file is treated alike.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from fairpg_lite.data import RankingDataset
from fairpg_lite.data.arrays import rescale, scale_of

NORMALIZATIONS = ("none", "minmax", "standard")
# More distinct values than this are measurements, not groups: they need a threshold.
MAX_GROUPS = 50


@dataclass(frozen=True)
class Preparation:
    """How to prepare a dataset for a scorer; `learn` makes one, calling it applies it.

    Groups come first, from the raw features; then a column may be dropped; then the rest is scaled.

    Chapter 10.

    >>> raw = RankingDataset(torch.tensor([[0.0, 3.0], [1.0, 5.0]]), torch.ones(2), [0, 2])
    >>> prepare = Preparation.learn(raw, group_feature=1, drop_group_feature=True)
    >>> prepare(raw).groups, prepare(raw).features
    (tensor([0, 1]), tensor([[3.],
            [5.]]))
    """

    n_features: int
    """Columns of the raw features."""
    normalize: str = "none"
    """"none", "minmax" (to [0, 1] within each query) or "standard" (by the training set)."""
    zero_based: bool = False
    """Whether feature ids begin at 0; in LETOR files they begin at 1."""
    group_feature: int | None = None
    """Id of the feature that holds the groups; None for the dataset's own, if any."""
    group_threshold: float | None = None
    """Group 1 is above it, group 0 is the rest; None for one group per distinct value."""
    group_values: tuple[float, ...] = ()
    """Without a threshold, the values of groups 0, 1, … in the training set, rising."""
    drop_group_feature: bool = False
    """Whether the scorer is spared (or denied) the group feature."""
    groups_given: bool = False
    """Whether the training set came with groups of its own, a side file's, say."""
    mean: Tensor | None = None
    """For "standard", what is subtracted from each column that is left."""
    divisor: Tensor | None = None
    """For "standard", what it is divided by; 1 for a constant column."""

    def __post_init__(self) -> None:
        if self.normalize not in NORMALIZATIONS:
            known = ", ".join(map(repr, NORMALIZATIONS))
            raise ValueError(
                f"Preparation: normalize is {self.normalize!r}; choose one of {known}."
            )
        first = int(not self.zero_based)
        if self.group_feature is None:
            if self.drop_group_feature or self.group_threshold is not None:
                raise ValueError("Preparation: a threshold or a drop needs group_feature.")
        elif not first <= self.group_feature < self.n_features + first:
            raise ValueError(
                f"Preparation: the group feature is {self.group_feature}, the features are "
                f"{first} to {self.n_features - 1 + first}."
            )
        for value in self.arrays().values():
            if self.normalize != "standard" or value.shape != (self.n_scored,):
                raise ValueError(
                    f"Preparation: a scale of shape {tuple(value.shape)} does not fit."
                )

    @classmethod
    def learn(cls, train: RankingDataset, **choices: Any) -> Self:
        """The preparation that ``train`` asks for; scales and group values come from it alone.

        ``choices`` are the fields ``normalize``, ``zero_based``, ``group_feature``,
        ``group_threshold`` and ``drop_group_feature``.
        """
        plan = cls(train.n_features, **choices, groups_given=train.groups is not None)
        column, features = plan._split(train.features)
        if column is not None and plan.group_threshold is None:
            values = column.unique().tolist()
            if len(values) > MAX_GROUPS:
                raise ValueError(
                    f"Preparation.learn: feature {plan.group_feature} takes {len(values):,} "
                    f"values, too many for groups (at most {MAX_GROUPS}); give a threshold "
                    "(--group-threshold), or another feature."
                )
            plan = replace(plan, group_values=tuple(values))
        if plan.normalize == "standard":
            mean, divisor = scale_of(features)
            plan = replace(plan, mean=mean, divisor=divisor)
        return plan

    @property
    def n_scored(self) -> int:
        """Columns that the scorer sees."""
        return self.n_features - self.drop_group_feature

    def __call__(self, dataset: RankingDataset) -> RankingDataset:
        """``dataset`` as the scorer is to see it; groups it already has are kept."""
        name = dataset.info.get("name", "the dataset")
        if dataset.n_features != self.n_features:
            raise ValueError(
                f"{name} has {dataset.n_features} features, the model was trained on "
                f"{self.n_features}; if {name} is sparse and its last features are all zero, read "
                f"it with n_features={self.n_features} (--n-features {self.n_features})."
            )
        groups, (column, features) = dataset.groups, self._split(dataset.features)
        if groups is None and column is not None:
            groups = self._groups(column, name)
        if self.mean is not None and self.divisor is not None:
            features = rescale(features, self.mean, self.divisor)
        prepared = dataset.replace(groups=groups, features=features)
        return prepared.normalize("minmax") if self.normalize == "minmax" else prepared

    def _split(self, features: Tensor) -> tuple[Tensor | None, Tensor]:
        """The column of the groups, if there is one, and what the scorer sees before scaling."""
        if self.group_feature is None:
            return None, features
        column = self.group_feature - (not self.zero_based)
        others = torch.arange(self.n_features) != column
        kept = features[:, others] if self.drop_group_feature else features
        return features[:, column].contiguous(), kept

    def _groups(self, values: Tensor, name: str) -> Tensor:
        if self.group_threshold is not None:
            # In the features' own type: float32's 0.1 is a little above float64's.
            return (values > torch.tensor(self.group_threshold, dtype=values.dtype)).long()
        known = torch.tensor(self.group_values, dtype=values.dtype)
        labels = torch.searchsorted(known, values).clamp(max=len(known) - 1)
        strange = (known[labels] != values).nonzero().flatten()
        if len(strange):
            row = int(strange[0])
            raise ValueError(
                f"{name}: feature {self.group_feature} is {values[row].item():g} in document "
                f"{row}; the groups of the training set were "
                f"{', '.join(f'{value:g}' for value in self.group_values)}."
            )
        return labels

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, ready for JSON."""
        plain = {**vars(self), "group_values": list(self.group_values)}
        return {name: value for name, value in plain.items() if name not in ("mean", "divisor")}

    def arrays(self) -> dict[str, Tensor]:
        """``mean`` and ``divisor`` for "standard", otherwise none."""
        return {n: v for n, v in vars(self).items() if n in ("mean", "divisor") and v is not None}
