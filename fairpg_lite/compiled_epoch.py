"""Epochs of updates for a linear scorer and for one hidden layer, without a call to PyTorch.

All parameters stand in one vector: the weights ``(h, d)`` of the first layer and, if there is a
second, the biases of the first and the weights of the second, ``(h,)`` both. A linear scorer is a
first layer of one. A bias in the scores themselves is left alone: no policy notices it.
"""

import inspect
import math
import zlib
from typing import Any

import numpy as np

from fairpg_lite import compiled_gradient
from fairpg_lite.compiled_gradient import compiled, entropy, exact, log_weights, sampled

# Moments below this are zero for any purpose; left alone they would become denormal numbers, which
# take eighty times as long to compute with.
_TINY = 1e-30


@compiled
def forward(x, theta, hidden, layer, scores):
    """Scores ``(n,)``; ``layer (n, h)`` keeps what comes out of the first layer."""
    n, d = x.shape
    h = max(hidden, 1)
    zero = theta.dtype.type(0)
    w = theta[: h * d].reshape((h, d))
    if hidden == 0:  # row after row, so that memory is read in one stream
        for i in range(n):
            total = zero
            for k in range(d):
                total += x[i, k] * w[0, k]
            scores[i] = total
        return
    for i in range(0, n, 4):  # four documents at a time, the last perhaps more than once
        i1, i2, i3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        for c in range(h):
            s0, s1, s2, s3 = zero, zero, zero, zero
            for k in range(d):
                s0 += x[i, k] * w[c, k]
                s1 += x[i1, k] * w[c, k]
                s2 += x[i2, k] * w[c, k]
                s3 += x[i3, k] * w[c, k]
            layer[i, c], layer[i1, c], layer[i2, c], layer[i3, c] = s0, s1, s2, s3
    for i in range(n):
        total = zero
        for c in range(h):
            layer[i, c] = max(layer[i, c] + theta[h * d + c], zero)
            total += layer[i, c] * theta[h * d + h + c]
        scores[i] = total


@compiled
def backward(x, theta, hidden, layer, slope, grad):
    """Add to ``grad`` the gradient by the parameters, given that by the scores; spoils layer."""
    n, d = x.shape
    h = max(hidden, 1)
    zero = theta.dtype.type(0)
    for i in range(n):
        g = theta.dtype.type(slope[i])
        for c in range(h):
            if hidden == 0:
                layer[i, c] = g
                continue
            grad[h * d + h + c] += g * layer[i, c]
            layer[i, c] = g * theta[h * d + h + c] if layer[i, c] > 0 else zero
            grad[h * d + c] += layer[i, c]
    by_w = grad[: h * d].reshape((h, d))
    for i in range(0, n, 4):
        i1, i2, i3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        for c in range(h):
            g0 = layer[i, c]
            g1 = layer[i1, c] if i1 == i + 1 else zero
            g2 = layer[i2, c] if i2 == i + 2 else zero
            g3 = layer[i3, c] if i3 == i + 3 else zero
            for k in range(d):
                by_w[c, k] += g0 * x[i, k] + g1 * x[i1, k] + g2 * x[i2, k] + g3 * x[i3, k]


@compiled
def update(theta, grad, opt, step):
    """One step of `torch.optim.Adam`, or of plain descent if there are no moments."""
    lr, weight_decay, beta1, beta2, epsilon, first, second = opt
    kind = theta.dtype.type
    decay, epsilon, zero, tiny = kind(weight_decay), kind(epsilon), kind(0), kind(_TINY)
    rate = kind(lr / (1.0 - beta1**step))
    if len(first) == 0:
        for k in range(len(theta)):
            theta[k] -= rate * (grad[k] + decay * theta[k])
        return
    root = kind(1.0 / math.sqrt(1.0 - beta2**step))
    new1, new2 = kind(1.0 - beta1), kind(1.0 - beta2)
    for k in range(len(theta)):
        g = grad[k] + decay * theta[k]
        m = first[k] + new1 * (g - first[k])
        v = second[k] + new2 * (g * g - second[k])
        first[k] = m if abs(m) > tiny else zero
        second[k] = v if v > tiny else zero
        theta[k] -= rate * m / (np.sqrt(v) * root + epsilon)


def _epoch(done: int) -> Any:
    """The loop over batches, which returns ``done`` at its end."""

    @compiled
    def epoch(x, problem, gamma, times, hidden, opt, theta, order, ends, longest, room, noise,
              step, terms, norms):  # fmt: skip
        """Updates from batch to batch; batch b holds the queries ``order[ends[b - 1]:ends[b]]``.

        ``longest`` says how many documents its longest query has, ``room`` how many the largest
        batch. Utility, disparity and entropy of each query go into ``terms``, the norm of each
        batch's gradient into ``norms``. Returns the batch at which something stopped being finite
        (before its update), or ``done``.
        """
        offsets = problem.offsets
        scores, log_w, slope = np.empty(room), np.empty(room), np.empty(room)
        layer = np.empty((room, max(hidden, 1)), theta.dtype)
        grad = np.empty_like(theta)
        begin, drawn = 0, 0
        for b in range(len(ends)):
            count, at, lowest, finite = ends[b] - begin, 0, 0.0, 0.0
            for q in order[begin : ends[b]]:
                rows = slice(offsets[q], offsets[q + 1])
                here = slice(at, at + rows.stop - rows.start)
                forward(x[rows], theta, hidden, layer[here], scores[here])
                if problem.samples == 0:
                    log_w[here] = log_weights(scores[here], times.widest[longest[b]])
                    lowest = min(lowest, log_w[here].min())
                finite += 0.0 * scores[here].sum()
                at = here.stop
            if finite != 0.0:
                return b
            shape = (problem.samples, count, longest[b])
            draws = noise[drawn : drawn + shape[0] * shape[1] * shape[2]].reshape(shape)
            drawn += draws.size
            grad[:] = 0
            slope[:at] = 0.0
            at, objective = 0, 0.0
            for i in range(begin, ends[b]):
                q = order[i]
                rows = slice(offsets[q], offsets[q + 1])
                here = slice(at, at + rows.stop - rows.start)
                s, g = scores[here], slope[here]
                if problem.samples > 0:
                    u, d = sampled(s, draws[:, i - begin, : len(s)], problem, q, g)
                else:
                    u, d = exact(s, log_w[here], lowest, longest[b], problem, times, q, g)
                terms[i, 0], terms[i, 1], terms[i, 2] = u, d, entropy(s, gamma, g)
                objective += u - problem.lam * d + gamma * terms[i, 2]
                g /= -count  # the gradient of minus the mean over the batch
                backward(x[rows], theta, hidden, layer[here], g, grad)
                at = here.stop
            norms[b] = math.sqrt((grad * grad).sum())
            if not math.isfinite(norms[b] + objective):
                return b
            update(theta, grad, opt, step + b + 1)
            begin = ends[b]
        return done

    return epoch


# Numba keeps what it compiled for as long as the file of a function is unchanged, whatever becomes
# of the functions it calls in other files. A number in the closure is part of its key.
epoch = _epoch(-1 - zlib.crc32(inspect.getsource(compiled_gradient).encode()))
