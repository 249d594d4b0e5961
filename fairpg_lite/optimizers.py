"""The optimisers of `fit`: PyTorch's own, with less ceremony per step."""

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from fairpg_lite.config import TrainConfig


class Adam(torch.optim.Adam):
    """`torch.optim.Adam` with a step for inner loops.

    With one query per update, hooks and bookkeeping take most of ``step()``; `quick_step` goes
    straight to PyTorch's functional Adam, on the same state, to the same result.
    """

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float):
        super().__init__(parameters, lr, weight_decay=weight_decay, fused=_fused(parameters))
        self._moments: list[list[Tensor]] | None = None

    def quick_step(self) -> None:
        """One step, for parameters that all have a gradient; else the ordinary one."""
        group = self.param_groups[0]
        parameters = group["params"]
        gradients = [p.grad for p in parameters]
        if any(gradient is None for gradient in gradients):
            self.step()
            return
        if self._moments is None:
            if not all(len(self.state[p]) for p in parameters):
                self.step()  # the first: makes the state
                return
            names = ("exp_avg", "exp_avg_sq", "step")
            self._moments = [[self.state[p][name] for p in parameters] for name in names]
        first, second, steps = self._moments
        beta1, beta2 = group["betas"]
        with torch.no_grad():
            adam(
                parameters,
                gradients,
                first,
                second,
                [],
                steps,
                fused=group["fused"],
                amsgrad=False,
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=False,
            )

    def load_state_dict(self, state: dict) -> None:
        """Restore a checkpoint; the moments are other tensors afterwards."""
        self._moments = None
        super().load_state_dict(state)


class SGD(torch.optim.SGD):
    """`torch.optim.SGD` under the same interface."""

    def quick_step(self) -> None:
        """One step."""
        self.step()


def _fused(parameters: list[nn.Parameter]) -> bool:
    """Whether this PyTorch has the one-kernel Adam for these tensors (on CPUs since 2.4)."""
    try:
        torch.optim.Adam(parameters, fused=True)
    except RuntimeError:
        return False
    return True


def make_optimizer(parameters: list[nn.Parameter], config: TrainConfig) -> Adam | SGD:
    """The optimiser that the configuration asks for."""
    if config.optimizer == "sgd":
        return SGD(parameters, config.lr, weight_decay=config.weight_decay)
    return Adam(parameters, config.lr, config.weight_decay)
