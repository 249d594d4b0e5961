"""The optimisers that a training can be told to use."""

import torch
from torch import nn

from fairpg_lite.training.config import TrainConfig


def new_optimizer(parameters: list[nn.Parameter], config: TrainConfig) -> torch.optim.Optimizer:
    """Adam, SGD or one's own on the parameters, as ``config.optimizer`` says."""
    if callable(config.optimizer):
        return config.optimizer(parameters, lr=config.lr, weight_decay=config.weight_decay)
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=config.lr, weight_decay=config.weight_decay)
    # Adam in one kernel is quicker, but other devices may lack it, and so may an older PyTorch.
    fused = parameters[0].device.type in ("cpu", "cuda")
    try:
        return torch.optim.Adam(
            parameters, lr=config.lr, weight_decay=config.weight_decay, fused=fused
        )
    except RuntimeError:
        return torch.optim.Adam(parameters, lr=config.lr, weight_decay=config.weight_decay)
