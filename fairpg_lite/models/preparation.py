"""What a scorer sees of a file's columns: groups read off, features scaled.

It is learned once, on the training set, and kept with the model, so that a test file is treated
alike.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from fairpg_lite.data import RankingDataset

#: More distinct values than this are measurements, not groups: they need a threshold.
MAX_GROUPS = 50


@dataclass(frozen=True)
class Preparation:
    """How to prepare a dataset for a scorer; `learn` makes one, calling it applies it.

    Groups come first, from the raw features; then the features may be scaled.

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
    """Group 1 is above it, group 0 is all others; None for one group per distinct value."""
    group_values: tuple[float, ...] = ()
    """Without a threshold, the values of groups 0, 1, … in the training set, rising."""
    groups_given: bool = False
    """Whether the training set came with groups of its own, a side file's, say."""

    def __post_init__(self) -> None:
        if self.normalize not in ("none", "minmax"):
            raise ValueError(
                f"Preparation: normalize is {self.normalize!r}; choose 'minmax' or 'none'."
            )
        if self.group_feature is None:
            if self.group_threshold is not None:
                raise ValueError(
                    f"Preparation: group_threshold is {self.group_threshold:g}, and there is no "
                    "feature to compare with it; a threshold needs group_feature."
                )
        elif not 1 <= self.group_feature <= self.n_features:
            raise ValueError(
                f"Preparation: the group feature is {self.group_feature}, there are 1 to "
                f"{self.n_features}."
            )

    @classmethod
    def learn(
        cls,
        train: RankingDataset,
        *,
        normalize: str = "none",
        group_feature: int | None = None,
        group_threshold: float | None = None,
    ) -> Self:
        """Make the preparation that suits a training set.

        Args:
            train: The training set, with raw features.
            normalize: "minmax" to scale features to [0, 1] within each query, or "none".
            group_feature: Id (from 1) of the feature that holds the groups; None for the dataset's
                own, if any.
            group_threshold: Group 1 is above it, group 0 is all others; None for one group per
                distinct value, of which there may be 50.

        Returns:
            The preparation, to be applied to this dataset and to others like it.

        >>> raw = RankingDataset(torch.tensor([[1.0], [5.0]]), torch.ones(2), [0, 2])
        >>> Preparation.learn(raw, group_feature=1).group_values
        (1.0, 5.0)
        """
        preparation = cls(
            train.n_features,
            normalize=normalize,
            group_feature=group_feature,
            group_threshold=group_threshold,
            groups_given=train.groups is not None,
        )
        if group_feature is None or group_threshold is not None:
            return preparation
        values = torch.unique(train.features[:, group_feature - 1]).tolist()
        if len(values) > MAX_GROUPS:
            raise ValueError(
                f"Preparation: feature {group_feature} takes {len(values):,} values, and groups "
                f"take {MAX_GROUPS} at most; give a group_threshold."
            )
        return replace(preparation, group_values=tuple(values))

    def __call__(self, dataset: RankingDataset) -> RankingDataset:
        """Prepare a dataset.

        Args:
            dataset: Raw, with as many features as the training set.

        Returns:
            The dataset as the scorer is to see it; groups that it already has are kept.
        """
        name = dataset.info.get("name", "the dataset")
        if dataset.n_features != self.n_features:
            raise ValueError(
                f"{name} has {dataset.n_features} features, the model was trained on "
                f"{self.n_features}; if its last features are all zero, read it with "
                f"n_features={self.n_features}."
            )
        groups = dataset.groups
        if groups is None and self.group_feature is not None:
            column = dataset.features[:, self.group_feature - 1].contiguous()
            groups = self._groups_of(column, name)
        prepared = dataset.replace(groups=groups)
        if self.normalize == "minmax":
            prepared = prepared.normalize()
        return prepared

    def _groups_of(self, column: Tensor, name: str) -> Tensor:
        """The group ``(N,)`` of each value of a feature ``(N,)``."""
        if self.group_threshold is not None:
            # In the features' own type: float32's 0.1 is a little above float64's.
            threshold = torch.tensor(self.group_threshold, dtype=column.dtype)
            return (column > threshold).long()
        known_values = torch.tensor(self.group_values, dtype=column.dtype)
        groups = torch.searchsorted(known_values, column).clamp(max=len(known_values) - 1)
        unknown_values = column[known_values[groups] != column]
        if len(unknown_values):
            values_in_training = ", ".join(f"{value:g}" for value in known_values.tolist())
            raise ValueError(
                f"{name}: feature {self.group_feature} is {unknown_values[0].item():g} somewhere; "
                f"the groups of the training set were {values_in_training}."
            )
        return groups
