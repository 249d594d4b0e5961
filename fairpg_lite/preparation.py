"""From the columns of a file to what a scorer sees: groups read off, columns dropped, scaled.

Learned once on the training set and kept with the model, so that a test file is treated alike.
"""

from dataclasses import dataclass
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

    Chapter 10.

    Groups come first, from the raw features; then a column may be dropped; then the rest is scaled.

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
    """Id of the feature that holds the groups; None: the dataset's own groups, if any."""
    group_threshold: float | None = None
    """Group 1 is above it, group 0 is the rest; None: one group per distinct value."""
    group_values: tuple[float, ...] = ()
    """Without a threshold: the values of groups 0, 1, … in the training set, rising."""
    drop_group_feature: bool = False
    """Whether the scorer is spared (or denied) the group feature."""
    groups_given: bool = False
    """Whether the training set came with groups of its own, a side file's, say."""
    mean: Tensor | None = None
    """For "standard": what is subtracted from each column that is left."""
    divisor: Tensor | None = None
    """For "standard": what it is divided by; 1 for a constant column."""

    @classmethod
    def learn(
        cls,
        train: RankingDataset,
        *,
        normalize: str = "none",
        zero_based: bool = False,
        group_feature: int | None = None,
        group_threshold: float | None = None,
        drop_group_feature: bool = False,
    ) -> Self:
        """The preparation that `train` asks for; scales and group values come from it alone."""
        if normalize not in NORMALIZATIONS:
            raise ValueError(
                f"Preparation.learn: normalize is {normalize!r}; "
                f"choose one of {', '.join(map(repr, NORMALIZATIONS))}."
            )
        if group_feature is None and (drop_group_feature or group_threshold is not None):
            raise ValueError("Preparation.learn: a threshold or a drop needs group_feature.")
        plan = cls(
            train.n_features,
            normalize=normalize,
            zero_based=zero_based,
            group_feature=group_feature,
            group_threshold=group_threshold,
            drop_group_feature=drop_group_feature,
            groups_given=train.groups is not None,
        )
        changes: dict[str, Any] = {}
        if group_feature is not None and group_threshold is None:
            changes["group_values"] = plan._distinct(train)
        if normalize == "standard":
            changes["mean"], changes["divisor"] = scale_of(plan._kept(train.features))
        return cls(**{**plan.__dict__, **changes})

    @property
    def n_scored(self) -> int:
        """Columns that the scorer sees."""
        return self.n_features - self.drop_group_feature

    def __call__(self, dataset: RankingDataset) -> RankingDataset:
        """`dataset` as the scorer is to see it; groups it already has are kept."""
        name = dataset.info.get("name", "the dataset")
        if dataset.n_features != self.n_features:
            raise ValueError(
                f"{name} has {dataset.n_features} features, the model was trained on "
                f"{self.n_features}; if {name} is sparse and its last features are all zero, read "
                f"it with n_features={self.n_features} (--n-features {self.n_features})."
            )
        groups = dataset.groups
        if groups is None and self.group_feature is not None:
            groups = self._groups(dataset, name)
        prepared = dataset.replace(groups=groups, features=self._kept(dataset.features))
        if self.normalize == "minmax":
            return prepared.normalize("minmax")
        if self.mean is not None and self.divisor is not None:
            return prepared.replace(features=rescale(prepared.features, self.mean, self.divisor))
        return prepared

    def _column(self) -> int:
        assert self.group_feature is not None
        column = self.group_feature - (not self.zero_based)
        if not 0 <= column < self.n_features:
            first = int(not self.zero_based)
            raise ValueError(
                f"Preparation: the group feature is {self.group_feature}, the features are "
                f"{first} to {self.n_features - 1 + first}."
            )
        return column

    def _kept(self, features: Tensor) -> Tensor:
        if not self.drop_group_feature:
            return features
        column = self._column()
        return torch.cat([features[:, :column], features[:, column + 1 :]], dim=1)

    def _distinct(self, train: RankingDataset) -> tuple[float, ...]:
        values = train.features[:, self._column()].unique().tolist()
        if len(values) > MAX_GROUPS:
            raise ValueError(
                f"Preparation.learn: feature {self.group_feature} takes {len(values):,} values, "
                f"too many for groups (at most {MAX_GROUPS}); give a threshold "
                "(--group-threshold), or another feature."
            )
        return tuple(values)

    def _groups(self, dataset: RankingDataset, name: str) -> Tensor:
        values = dataset.features[:, self._column()]
        if self.group_threshold is not None:
            # In the features' own type: float32's 0.1 is a little above float64's.
            return (values > torch.tensor(self.group_threshold, dtype=values.dtype)).long()
        known = torch.tensor(self.group_values, dtype=values.dtype)
        labels = torch.searchsorted(known, values.contiguous()).clamp(max=len(known) - 1)
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
        arrays = ("mean", "divisor")
        plain = {name: value for name, value in self.__dict__.items() if name not in arrays}
        return {**plain, "group_values": list(self.group_values)}

    def arrays(self) -> dict[str, Tensor]:
        """The arrays: `mean` and `divisor` for "standard", otherwise none."""
        found = {"mean": self.mean, "divisor": self.divisor}
        return {name: value for name, value in found.items() if value is not None}
