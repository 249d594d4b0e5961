"""A linear scorer, or one with a hidden layer: features to scores, and the gradient back.

The weights are one vector ``theta``: those of the first layer ``(h, d)``, and of a scorer with a
hidden layer also its biases ``(h,)`` and the weights of its output ``(h,)``. A linear scorer has
h = 1. A bias of the scores themselves is left out: no policy notices it.
"""

import numpy as np

from fairpg_lite.compiled.kernels.kernel import kernel


@kernel
def forward(features, theta, hidden, layer, scores):
    """Fill in ``scores (n,)``, and ``layer (n, h)`` with what comes out of the first layer."""
    n, d = features.shape
    h = layer.shape[1]
    weights = theta[: h * d].reshape((h, d))
    zero = theta.dtype.type(0)
    for i in range(n):
        for c in range(h % 4):
            total = zero
            for k in range(d):
                total += features[i, k] * weights[c, k]
            layer[i, c] = total
            scores[i] = total
    for c in range(h % 4, h, 4):  # units in fours: a document is read once for all of them
        for i in range(n):
            total0 = zero
            total1 = zero
            total2 = zero
            total3 = zero
            for k in range(d):
                total0 += features[i, k] * weights[c, k]
                total1 += features[i, k] * weights[c + 1, k]
                total2 += features[i, k] * weights[c + 2, k]
                total3 += features[i, k] * weights[c + 3, k]
            layer[i, c] = total0
            layer[i, c + 1] = total1
            layer[i, c + 2] = total2
            layer[i, c + 3] = total3
    if hidden > 0:
        for i in range(n):
            for c in range(h):
                layer[i, c] = max(layer[i, c] + theta[h * d + c], zero)
            total = zero
            for c in range(h):
                total += layer[i, c] * theta[h * d + h + c]
            scores[i] = total


@kernel
def backward(features, theta, hidden, layer, slope, grad):
    """Add to ``grad`` the gradient by ``theta``, given the slope by the scores ``(n,)``."""
    n, d = features.shape
    h = layer.shape[1]
    by_weights = grad[: h * d].reshape((h, d))
    number = theta.dtype.type
    # The documents whose unit is active, padded to a multiple of four by documents of slope 0.
    active = np.empty(n + 3, np.int64)
    active_slope = np.empty(n + 3)
    for c in range(h):
        count = 0
        for i in range(n):
            unit_slope = slope[i]
            if hidden > 0:
                grad[h * d + h + c] += unit_slope * layer[i, c]
                unit_slope *= theta[h * d + h + c] if layer[i, c] > 0 else number(0)
                grad[h * d + c] += unit_slope
            if unit_slope != 0:  # of a hidden unit's documents, about half
                active[count] = i
                active_slope[count] = unit_slope
                count += 1
        active[count : count + 3] = 0
        active_slope[count : count + 3] = 0.0
        for first in range(0, count, 4):  # in fours: the weights are read once for all of them
            i0 = active[first]
            i1 = active[first + 1]
            i2 = active[first + 2]
            i3 = active[first + 3]
            slope0 = number(active_slope[first])
            slope1 = number(active_slope[first + 1])
            slope2 = number(active_slope[first + 2])
            slope3 = number(active_slope[first + 3])
            for k in range(d):
                by_weights[c, k] += (
                    slope0 * features[i0, k]
                    + slope1 * features[i1, k]
                    + slope2 * features[i2, k]
                    + slope3 * features[i3, k]
                )
