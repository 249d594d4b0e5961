"""One step of the optimiser."""

import math

import numpy as np

from fairpg_lite.compiled.kernels.kernel import kernel

# Moments below this count as zero; they would become denormal numbers, eighty times as slow.
_TINY = 1e-30


@kernel
def update(theta, grad, optimizer, step):
    """Step number ``step``, from 1, of `torch.optim.Adam`, or of plain descent without moments.

    ``theta``, and the moments of ``optimizer``, are changed in place.
    """
    number = theta.dtype.type
    decay = number(optimizer.weight_decay)
    rate = number(optimizer.lr / (1.0 - optimizer.beta1**step))
    first_moment = optimizer.first_moment
    second_moment = optimizer.second_moment
    if len(first_moment) == 0:
        theta -= rate * (grad + decay * theta)
        return
    new1 = number(1.0 - optimizer.beta1)
    new2 = number(1.0 - optimizer.beta2)
    root = number(1.0 / math.sqrt(1.0 - optimizer.beta2**step))
    epsilon = number(optimizer.epsilon)
    zero = number(0)
    tiny = number(_TINY)
    for k in range(len(theta)):
        g = grad[k] + decay * theta[k]
        m = first_moment[k] + new1 * (g - first_moment[k])
        v = second_moment[k] + new2 * (g * g - second_moment[k])
        first_moment[k] = m if abs(m) > tiny else zero
        second_moment[k] = v if v > tiny else zero
        theta[k] -= rate * m / (np.sqrt(v) * root + epsilon)
