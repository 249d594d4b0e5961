"""What the notebook is given besides `check`: nothing here knows an answer.

When a class is graded, this is all that a submission finds in `checker` (see `checker.sandbox`).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from checker.calls import BLANK
from fairpg_lite.config import TrainConfig
from fairpg_lite.data import RankingDataset, synthetic

#: The weights of fairness that task 7 tries.
LAMBDAS = (0.0, 2.0, 5.0, 10.0, 15.0, 25.0, 40.0)


class Documents(NamedTuple):
    """A few documents of one query: ``exposure (n,)``, ``merit (n,)``, ``groups (n,)``."""

    exposure: Tensor
    merit: Tensor
    groups: Tensor


def course_data(seed: int) -> RankingDataset:
    """The documents that the coursework ranks: the paper's synthetic data, drawn with ``seed``."""
    return synthetic(n_queries=60, n_docs=10, seed=seed, dtype=torch.float64)


def settings(lam: float) -> TrainConfig:
    """How task 7 trains: exact exposure, so that equal code gives equal figures."""
    return TrainConfig(lam=lam, method="exact", lr=0.1, epochs=10, batch_size=10)


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)``, or None with a word where the blank has not been filled yet.

    >>> attempt(max, 2, 3)
    3
    """
    try:
        return function(*arguments)
    except NotImplementedError as error:
        if error.args and error.args != (BLANK,):
            raise
        print(f"{getattr(function, '__name__', 'this')}: {BLANK}")
        return None


def always_one(ranking: Any) -> float:
    return 1.0


def position_of_document_0(ranking: Any) -> float:
    return 1.0 + [int(d) for d in ranking].index(0)


def discount_of_document_1(ranking: Any) -> float:
    return 1.0 / math.log2(2 + [int(d) for d in ranking].index(1))
