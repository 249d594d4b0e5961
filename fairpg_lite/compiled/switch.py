"""Whether a training takes the compiled way: where it can, and where that pays."""

import torch
from torch import nn

from fairpg_lite.compiled.problem import DISPARITIES
from fairpg_lite.data import RankingDataset
from fairpg_lite.objective import Objective
from fairpg_lite.relevance import is_column
from fairpg_lite.scorers import LinearScorer, MLPScorer

#: Below so many visits of a query "auto" leaves a run to autograd: compiling takes longer.
WORTHWHILE = 20_000

_FORMATS = (torch.float32, torch.float64)


def serves(
    scorer: nn.Module,
    dataset: RankingDataset,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    *,
    compiled: str | bool,
    epochs: int,
) -> bool:
    """Whether to take the compiled way.

    Args:
        scorer: What is trained.
        dataset: The training queries.
        objective: What is maximised.
        optimizer: What takes the steps.
        compiled: ``TrainConfig.compiled``: "auto", True or False.
        epochs: How often each query will be visited.

    Returns:
        ``compiled`` itself if it is True or False; for "auto", whether these settings can be
        compiled and the training is long enough.

    Raises:
        ValueError: If ``compiled`` is True and these settings need autograd.
    """
    if compiled == "auto":
        is_long = len(dataset) * epochs >= WORTHWHILE
        return is_long and why_not(scorer, dataset, objective, optimizer) is None
    if not compiled:
        return False
    reason = why_not(scorer, dataset, objective, optimizer)
    if reason is not None:
        raise ValueError(
            f"fit: compiled=True, but {reason}; choose compiled='auto' or False for autograd."
        )
    return True


def why_not(
    scorer: nn.Module,
    dataset: RankingDataset,
    objective: Objective,
    optimizer: torch.optim.Optimizer | None = None,
) -> str | None:
    """The first reason why these settings need autograd, in the words of an error, or None."""
    return (
        _why_not_scorer(scorer)
        or _why_not_features(dataset)
        or _why_not_objective(objective)
        or _why_not_optimizer(optimizer)
        or _why_not_here()
    )


def _why_not_scorer(scorer: nn.Module) -> str | None:
    """What the kernels cannot do with a scorer, or None."""
    parameters = list(scorer.parameters())
    device = parameters[0].device
    if not _is_plain(scorer):
        name = type(scorer).__name__
        return f"{name} is neither a LinearScorer nor an MLPScorer as it comes"
    if not all(parameter.requires_grad for parameter in parameters):
        return "some of the scorer's parameters are frozen"
    if parameters[0].dtype not in _FORMATS:
        return "the scorer is neither float32 nor float64"
    if device.type != "cpu":
        return f"the scorer is on {device}"
    return None


def _is_plain(scorer: nn.Module) -> bool:
    """Whether a scorer is one of ours, its layers nobody's subclass, and nothing hooked to it."""
    if type(scorer) not in (LinearScorer, MLPScorer):
        return False
    if any(type(layer) is not nn.Linear for layer in scorer.children()):
        return False
    return not any(
        module._forward_hooks or module._forward_pre_hooks for module in scorer.modules()
    )


def _why_not_features(dataset: RankingDataset) -> str | None:
    """What the kernels cannot do with the features, or None."""
    features = dataset.features
    if features.dtype not in _FORMATS or not features.is_contiguous():
        return "the features are not one contiguous float32 or float64 array"
    if dataset.query_weights is not None:
        return "the dataset has query_weights"
    return None


def _why_not_objective(objective: Objective) -> str | None:
    """What the kernels cannot do with an objective, or None."""
    if not objective.is_linear:
        return f"utility is {objective.utility!r}"
    if objective.disparity not in DISPARITIES:
        return f"disparity is {objective.disparity!r}"
    if objective.policy is not None:
        return f"policy is {objective.policy!r}"
    if callable(objective.method):
        return f"method is {objective.method!r}"
    if is_column(objective.merit):
        return f"merit is {objective.merit!r}"
    if objective.pooled != "query":
        return f"pooled is {objective.pooled!r}"
    return None


def _why_not_optimizer(optimizer: torch.optim.Optimizer | None) -> str | None:
    """What the kernels cannot do with an optimiser, or None."""
    if optimizer is None or type(optimizer) in (torch.optim.Adam, torch.optim.SGD):
        return None
    return f"the optimizer is a {type(optimizer).__name__}"


def _why_not_here() -> str | None:
    """What the kernels cannot do in this process, or None."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "several processes train together"
    try:
        import fairpg_lite.compiled.kernels.batches  # noqa: F401
    except ImportError as error:
        return f'Numba cannot be imported ({error}; pip install "fairpg-lite[fast]" brings it)'
    return None
